/* Sums between points and surfaces on the GPU for the kernel 1/r in double: a surface is a lattice, so a squared distance is one of P squares an axis, summed,
 * and along a row of the surface a pair costs one or two operations where there were three subtractions and three multiplications (as kernels/pair/pair_kernel_lattice.h).
 *   onto surfaces (P2M, X; onto_surface_cuda.h): a warp sums onto one surface. Where rows are few or long, four warps share a row's sources evenly.
 *   from surfaces (L2P, W; potentials, and gradients too): each lane has TARGETS points of one leaf and sums over all of the surface, row by row: squares along the row in registers,
 *     densities in shared memory, where the warp copies those of all its lanes' boxes at once (of more than SURFACES boxes the rest are read where they are). Lanes follow
 *     one another through all leaves, so that none is left over but at the very end; what each does is one record, so that nothing is looked up by way of something else.
 * No sum is shared between lanes, but those of four warps, which are added in their order: bits depend on the tree alone. Roots are twice their value
 * (root_cuda.h), and sums halved at the end. */
#include <cuda_pipeline.h>
#include <stdlib.h>

#include "kernels/pair/from_surface_cuda.h"
#include "kernels/pair/onto_surface_cuda.h"

namespace {
enum { WARPS = 4, THREADS = 32 * WARPS, TARGETS = FMM_LATTICE_TARGETS, SURFACES = 3 /* of a warp in shared memory */ };
constexpr unsigned ALL = ALL_LANES, WHOLE = 0xffffffffu;

struct job {
  onto_job onto;
  const int32_t *order, *box;
  const fmm_cuda_unit *unit;
  const double *point[3], *center[3], *half, *equivalent; /* from surfaces; point: targets */
  const double *shell, *degree; /* (L2P) shell fields by box, to be multiplied by this; NULL: none */
  double radius, *out, *partial;
  int64_t tiles, first, unit_begin, unit_stop, value_stride; /* first: that a warp takes alone; value_stride: from a point's potential to its derivatives */
  unsigned shared;
  int add;
};

/* A tile onto its surface, by SHARE warps, whose rooms begin at `staged`; warp: which of them. */
template <int P, int SHARE>
__device__ __forceinline__ void onto_surface(const job &a, const fmm_cuda_tile &tile, double (*staged)[32 * lattice<P>::PITCH], int warp) {
  typedef lattice<P> S;
  const runs<P> own(a.onto);
  onto<P> to = {};
  double *out = a.out + (int64_t)tile.slot * S::POINTS;
  sum_ranges<P, SHARE>(a.onto, tile, own, staged[warp], warp, to);
  __syncwarp();
  put_sums(a.onto, place_of_box<P>(a.onto, tile.box).steps, to, staged[warp]);
  if (SHARE == 1) __syncwarp();
  else __syncthreads();
  for (int i = SHARE == 1 ? threadIdx.x & 31 : threadIdx.x; i < S::POINTS; i += 32 * SHARE) {
    double f = staged[0][i];
#pragma unroll
    for (int w = 1; w < SHARE; w++) f += staged[w][i];
    out[i] = a.add ? out[i] + f : f;
  }
}

/* Blocks of one tile, a.shared of them, then of a warp a tile; those that are for the other kind are passed over. */
template <int P>
__global__ void __launch_bounds__(THREADS, P == 7 ? 6 : 1 /* as measured on an H200 */) onto_surfaces(const job a) {
  __shared__ __align__(16) double staged[WARPS][32 * lattice<P>::PITCH];
  const int warp = threadIdx.x >> 5, shared = blockIdx.x < a.shared;
  const int64_t number = shared ? blockIdx.x : a.first + ((int64_t)blockIdx.x - a.shared) * WARPS + warp;
  if (number >= a.tiles) return;
  const fmm_cuda_tile tile = a.onto.tile[a.order ? a.order[number] : number];
  if (shared != (tile.lanes_log2 > 5)) return;
  if (shared) onto_surface<P, WARPS>(a, tile, staged, warp);
  else onto_surface<P, 1>(a, tile, staged + warp, 0);
}

/* The densities of the surfaces of a warp's lanes, on their way to shared memory (box -1: none); returns where the lane's will be. */
template <int P>
__device__ __forceinline__ const double *fetch(double *room, const double *equivalent, int box) {
  constexpr int POINTS = lattice<P>::POINTS;
  const int lane = threadIdx.x & 31, before = __shfl_up_sync(ALL, box, 1);
  unsigned heads = __ballot_sync(ALL, lane == 0 || before != box);
  const int place = __popc(heads & ALL >> (31 - lane)) - 1;
#pragma unroll 1
  for (int n = 0; n < SURFACES && heads; n++, heads &= heads - 1) {
    const int which = __shfl_sync(ALL, box, __ffs(heads) - 1);
    if (which < 0) continue;
    for (int i = 2 * lane; i < POINTS; i += 64) __pipeline_memcpy_async(room + n * POINTS + i, equivalent + (int64_t)which * POINTS + i, 2 * sizeof(double));
  }
  __pipeline_commit();
  return place < SURFACES ? room + place * POINTS : equivalent + (int64_t)max(box, 0) * POINTS;
}

template <int P, int G>
__global__ void __launch_bounds__(THREADS, P <= 6 && !G ? 4 : 3) from_surfaces(const job a) {
  typedef lattice<P> S;
  constexpr int R = TARGETS;
  __shared__ __align__(16) double room[WARPS][SURFACES * S::POINTS];
  double *mine = room[threadIdx.x >> 5];
  const int64_t warp = a.unit_begin / 32 + (int64_t)blockIdx.x * WARPS + (threadIdx.x >> 5), unit = 32 * warp + (threadIdx.x & 31);
  if (32 * warp >= a.unit_stop) return;
  const bool wanted = unit >= a.unit_begin && unit < a.unit_stop; /* the others go along */
  const fmm_cuda_unit u = a.unit[min(unit, a.unit_stop - 1)];
  int box = a.box ? a.box[u.first] : u.first;
  const double *q = fetch<P>(mine, a.equivalent, box);
  double at[3][R], sum[R][values_of_point(G)] = {};
#pragma unroll
  for (int r = 0; r < R; r++)
    for (int k = 0; k < 3; k++) at[k][r] = a.point[k][(int64_t)u.target + min(r, u.targets - 1)];
#pragma unroll 1
  for (int n = 0;; q = fetch<P>(mine, a.equivalent, box)) {
    __pipeline_wait_prior(0);
    __syncwarp();
    if (box >= 0) {
      const double radius = a.radius * a.half[box];
      double from[3][R];
#pragma unroll
      for (int k = 0; k < 3; k++) {
        const double center = a.center[k][box]; /* from it, which is exact: the sum of both is not, many levels down */
#pragma unroll
        for (int r = 0; r < R; r++) from[k][r] = at[k][r] - center + radius;
      }
      add_surface<G, P, R>(q, from, S::STEP * radius, sum);
    }
    n++;
    if (!__any_sync(ALL, n < u.boxes)) break;
    __syncwarp(); /* all have read */
    box = n < u.boxes ? a.box[u.first + n] : -1;
  }
  if (!wanted) return;
  const double constant = a.shell ? a.shell[u.first] * a.degree[u.first] : 0;
  const bool whole = u.partial == WHOLE;
#pragma unroll
  for (int v = 0; v < values_of_point(G); v++) {
    double *out = whole ? a.out + v * a.value_stride + u.target : a.partial + u.partial + (int64_t)v * u.stride;
#pragma unroll
    for (int r = 0; r < R; r++)
      if (r < u.targets) out[r] = scaled_sum(sum[r][v], v) + (a.add && whole ? out[r] : v ? 0 : constant);
  }
}

/* walks: a tile's boxes are a list's. */
__global__ void __launch_bounds__(THREADS) list_units(const fmm_cuda_tile *tile, const int32_t *unit_end, int64_t tiles, int64_t units, int walks, fmm_cuda_unit *unit) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i >= units) return;
  int64_t low = 0, high = tiles - 1;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (unit_end[middle] <= i) low = middle + 1;
    else high = middle;
  }
  const fmm_cuda_tile t = tile[low];
  const int64_t first = (i - (low ? unit_end[low - 1] : 0)) * TARGETS;
  unit[i] = fmm_cuda_unit{(uint32_t)(t.target_begin + first), t.partial < 0 ? WHOLE : (uint32_t)(t.partial + first), walks ? (int32_t)t.range_begin : t.box, (uint32_t)t.range_count,
                          (uint32_t)min((int64_t)TARGETS, t.target_count - first), (uint32_t)t.target_count};
}

typedef void sums_kernel(const job);
struct kernels_of { sums_kernel *onto, *from[2]; }; /* from: potentials, and gradients too */
template <int P>
constexpr kernels_of kernels() { return kernels_of{onto_surfaces<P>, {from_surfaces<P, 0>, from_surfaces<P, 1>}}; }

kernels_of find_kernels(int order) {
  switch (order) {
    case 3: return kernels<3>();
    case 4: return kernels<4>();
    case 5: return kernels<5>();
    case 6: return kernels<6>();
    case 7: return kernels<7>();
    default: return kernels<8>();
  }
}

job job_of(const fmm_cuda_pair_job *j) {
  const fmm_gpu_plan *p = j->plan;
  const fmm_cuda_sums *s = &p->sums[j->sum];
  job a = {};
  a.onto = onto_job_of(p, j->sum);
  a.box = j->sum == FMM_SUM_W ? s->d_box : NULL /* the unit's own */, a.half = p->d_half;
  for (int k = 0; k < 3; k++) a.point[k] = p->d_target[k], a.center[k] = p->d_center[k];
  a.radius = j->sum == FMM_SUM_L2P ? p->outer_radius : FMM_INNER_RADIUS;
  a.equivalent = j->sum == FMM_SUM_W ? p->d_up_equivalent : p->d_down_equivalent;
  a.out = j->sum == FMM_SUM_P2M ? p->d_work[0] : j->sum == FMM_SUM_X ? p->d_down_check : j->sum == FMM_SUM_W ? p->d_near : p->d_far;
  a.partial = s->d_partial, a.value_stride = p->n_targets, a.add = j->sum == FMM_SUM_X || j->sum == FMM_SUM_W; /* the others are the only ones, once */
  a.unit = s->d_unit;
  if (j->sum == FMM_SUM_L2P) a.shell = p->d_shell, a.degree = p->d_degree_out;
  return a;
}
}

/* For 1/r in double with one Newton step, one column. */
int fmm_cuda_lattice_serves(const fmm_gpu_plan *p, fmm_cuda_sum sum) {
  return sum != FMM_SUM_U && !p->sums[sum].single && fmm_pair_lattice_on_gpu(p->info, p->order, p->columns, !fmm_pair_newton_on_gpu(p->tolerance));
}

cudaError_t fmm_cuda_lattice_sum(const fmm_cuda_pair_job *j) {
  const fmm_gpu_plan *p = j->plan;
  const fmm_cuda_sums *s = &p->sums[j->sum];
  if (j->tile_end <= j->tile_begin) return cudaSuccess;
  kernels_of k = find_kernels(p->order);
  job a = job_of(j);
  if (j->sum == FMM_SUM_P2M || j->sum == FMM_SUM_X) {
    const int64_t tiles = j->tile_end - j->tile_begin, whole = tiles == s->n_tiles;
    a.onto.tile += j->tile_begin, a.tiles = tiles;
    a.order = whole ? s->d_order : NULL;
    a.shared = (unsigned)(whole ? s->shared_rows : tiles), a.first = whole ? s->shared_rows : 0; /* the shared ones come first, or are anywhere among some */
    return fmm_cuda_launch(k.onto, dim3(a.shared + (unsigned)((tiles - a.first + WARPS - 1) / WARPS)), THREADS, 0, j->stream, p->carveout, a);
  }
  a.unit_begin = j->tile_begin ? s->unit_end[j->tile_begin - 1] : 0, a.unit_stop = s->unit_end[j->tile_end - 1];
  int64_t warps = (a.unit_stop + 31) / 32 - a.unit_begin / 32;
  return fmm_cuda_launch(k.from[p->gradient != 0], dim3((unsigned)((warps + WARPS - 1) / WARPS)), THREADS, 0, j->stream, p->carveout, a);
}

cudaError_t fmm_cuda_lattice_units(const fmm_gpu_plan *p, fmm_cuda_sum sum, cudaStream_t stream) {
  const fmm_cuda_sums *s = &p->sums[sum];
  if (s->n_units == 0) return cudaSuccess;
  list_units<<<(unsigned)((s->n_units + THREADS - 1) / THREADS), THREADS, 0, stream>>>(s->d_tile, s->d_unit_end, s->n_tiles, s->n_units, sum == FMM_SUM_W, s->d_unit);
  return cudaGetLastError();
}

/* The surface cut into runs: always the one that covers most of what is left. Each begins or ends at an end of its axis. */
int fmm_cuda_lattice_runs(const fmm_gpu_plan *p, const int16_t *grid_surface, fmm_cuda_run *runs) {
  const int P = p->order, length = run_of(P), stride[3] = {P * P, P, 1}, most = lanes_of(P) * runs_of(P);
  char done[6 * (FMM_LATTICE_MOST_ORDER - 1) * (FMM_LATTICE_MOST_ORDER - 1) + 2] = {};
  int n = 0;
  for (int left = p->n_surface; left > 0 && n < most; n++) {
    int best = 0;
    fmm_cuda_run chosen = {};
    for (int axis = 2; axis >= 0; axis--)
      for (int place = 0; place < 2 * P * P; place++) {
        int u = place % P, v = place / P % P, first = place / (P * P) * (P - length), other[2] = {axis == 0 ? 1 : 0, axis == 2 ? 1 : 2}, gain = 0;
        fmm_cuda_run r = {(uint8_t)(other[0] * P + u), (uint8_t)(other[1] * P + v), (uint8_t)axis, (uint8_t)first, {-1, -1, -1, -1, -1, -1}};
        for (int i = 0; i < length; i++) {
          int s = grid_surface[u * stride[other[0]] + v * stride[other[1]] + (first + i) * stride[axis]];
          if (s >= 0 && !done[s]) r.point[i] = (int16_t)s, gain++;
        }
        if (gain > best) best = gain, chosen = r;
      }
    for (int i = 0; i < length; i++)
      if (chosen.point[i] >= 0) done[chosen.point[i]] = 1;
    left -= best;
    runs[n] = chosen;
  }
  for (int i = n; i < most; i++) runs[i] = fmm_cuda_run{0, 0, 0, 0, {-1, -1, -1, -1, -1, -1}};
  return most;
}
