/* Sums between points and surfaces on the GPU for the kernel 1/r in double: a surface is a lattice, so a squared distance is one of P squares an axis, summed,
 * and along a row of the surface a pair costs one addition where there were three subtractions and three multiplications (as kernels/pair/pair_kernel_lattice.h).
 *   onto surfaces (P2M, X): a warp sums onto one surface. Each lane has a run of up to RUN surface points that share two coordinates, or several runs
 *     (fmm_cuda_lattice_runs); for 32 sources at a time, a lane each, the 3 P squares come to shared memory. Where rows are few or long, four warps share a row's sources.
 *   from surfaces (L2P, W): each lane has TARGETS points of one leaf and sums over all of the surface, row by row: squares along the row in registers,
 *     densities straight from the cache. Lanes follow one another through all leaves, so that none is left over but at the very end.
 * No sum is shared between lanes, but those of four warps, which are added in their order: bits depend on the tree alone. Roots are twice their value
 * (root_cuda.h), and sums halved at the end. */
#include <stdlib.h>

#include "kernels/pair/root_cuda.h"
#include "runtime/gpu/gpu_cuda.h"

namespace {
enum { WARPS = 4, THREADS = 32 * WARPS, TARGETS = FMM_LATTICE_TARGETS };
enum { LEAST_ORDER = 3, MOST_ORDER = 8 };

constexpr int run_of(int order) { return order == 3 ? 2 : order == 6 ? 5 : 4; }
/* Runs a lane, and lanes that have runs of their own; the others repeat them for every other source. */
constexpr int runs_of(int order) { return order == 8 ? 3 : order == 7 ? 2 : 1; }
constexpr int lanes_of(int order) { return order <= 4 ? 16 : 32; }

template <int P>
struct lattice {
  static constexpr int RUN = run_of(P), RUNS = runs_of(P), LANES = lanes_of(P), POINTS = 6 * (P - 1) * (P - 1) + 2;
  static constexpr int AXIS = (P + 1) / 2 * 2, DENSITY = 3 * AXIS; /* squares by axis, then the density */
  static constexpr int PITCH = (DENSITY + 2) / 2 % 2 ? DENSITY + 2 : DENSITY + 4; /* an odd number of pairs: no bank conflicts */
  static constexpr double STEP = 2.0 / (P - 1);
};

struct job {
  const fmm_cuda_tile *tile;
  const int32_t *order, *box, *unit_end, *first_tile;
  const fmm_cuda_range *range;
  const fmm_cuda_run *run;
  const double *point[3], *density, *center[3], *half, *equivalent; /* point: sources, or targets */
  double radius, *out, *partial;
  int64_t tiles, unit_begin, unit_stop;
  int n_surface, chunk, add;
};

/* A source's squares and density. */
template <int P>
__device__ __forceinline__ void stage(double *to, const double (&at)[3], double radius, double density) {
  typedef lattice<P> S;
#pragma unroll
  for (int k = 0; k < 3; k++)
#pragma unroll
    for (int i = 0; i < S::AXIS; i += 2) {
      double a = fma(-radius, -1 + i * S::STEP, at[k]), b = fma(-radius, -1 + (i + 1) * S::STEP, at[k]);
      *(double2 *)(to + k * S::AXIS + i) = make_double2(a * a, b * b);
    }
  to[S::DENSITY] = density;
}

template <int P>
__device__ __forceinline__ void add_source(const double *from, const int (&a)[lattice<P>::RUNS], const int (&b)[lattice<P>::RUNS], const int (&begin)[lattice<P>::RUNS],
                                           double (&sum)[lattice<P>::RUNS][lattice<P>::RUN]) {
  typedef lattice<P> S;
  double density = from[S::DENSITY];
#pragma unroll
  for (int u = 0; u < S::RUNS; u++) {
    double rest = from[a[u]] + from[b[u]], along[S::RUN];
#pragma unroll
    for (int i = 0; i < S::RUN - 1; i += 2) {
      double2 v = *(const double2 *)(from + begin[u] + i);
      along[i] = v.x, along[i + 1] = v.y;
    }
    if (S::RUN % 2) along[S::RUN - 1] = from[begin[u] + S::RUN - 1];
#pragma unroll
    for (int i = 0; i < S::RUN; i++) fmm_add_twice(sum[u][i], density, rest + along[i]);
  }
}

/* SHARE: warps a tile. */
template <int P, int SHARE>
__global__ void __launch_bounds__(THREADS) onto_surfaces(const job a) {
  typedef lattice<P> S;
  __shared__ __align__(16) double staged[WARPS][32 * S::PITCH];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, own = lane % S::LANES;
  const int64_t number = SHARE == 1 ? (int64_t)blockIdx.x * WARPS + warp : blockIdx.x;
  if (SHARE == 1 && number >= a.tiles) return;
  const fmm_cuda_tile tile = a.tile[a.order ? a.order[number] : number];
  const double center[3] = {a.center[0][tile.box], a.center[1][tile.box], a.center[2][tile.box]}, radius = a.radius * a.half[tile.box];
  double *mine = staged[warp];
  double sum[S::RUNS][S::RUN] = {};
  int rest_a[S::RUNS], rest_b[S::RUNS], begin[S::RUNS], turn = 0;
#pragma unroll
  for (int u = 0; u < S::RUNS; u++) {
    const fmm_cuda_run r = a.run[u * S::LANES + own];
    rest_a[u] = r.a, rest_b[u] = r.b, begin[u] = r.begin;
  }
  for (int n = 0; n < tile.range_count; n++) {
    const fmm_cuda_range range = a.range[tile.range_begin + n];
    for (int first = 0; first < range.count; first += a.chunk) {
      if (SHARE > 1 && turn++ % SHARE != warp) continue;
      int count = min(a.chunk, range.count - first);
      __syncwarp();
      if (lane < count) {
        int64_t j = range.begin + first + lane;
        stage<P>(mine + lane * S::PITCH, {a.point[0][j] - center[0], a.point[1][j] - center[1], a.point[2][j] - center[2]}, radius, a.density[j]);
      }
      __syncwarp();
#pragma unroll(S::RUNS == 1 ? 2 : 1)
      for (int j = lane / S::LANES; j < count; j += 32 / S::LANES) add_source<P>(mine + j * S::PITCH, rest_a, rest_b, begin, sum);
    }
  }
  __syncwarp();
#pragma unroll
  for (int u = 0; u < S::RUNS; u++) {
    const fmm_cuda_run r = a.run[u * S::LANES + own];
#pragma unroll
    for (int i = 0; i < S::RUN; i++) {
      if (S::LANES < 32) sum[u][i] += __shfl_xor_sync(0xffffffffu, sum[u][i], 16);
      if (lane < S::LANES && r.point[i] >= 0) mine[r.point[i]] = sum[u][i];
    }
  }
  double *out = a.out + (int64_t)tile.slot * S::POINTS;
  if (SHARE == 1) __syncwarp();
  else __syncthreads();
  for (int i = SHARE == 1 ? lane : threadIdx.x; i < S::POINTS; i += 32 * SHARE) {
    double f = mine[i];
    if (SHARE > 1) {
      f = staged[0][i];
      for (int w = 1; w < SHARE; w++) f += staged[w][i];
    }
    out[i] = a.add ? out[i] + 0.5 * f : 0.5 * f;
  }
}

/* Values [0, N) from an address that is aligned for pairs where N is even. */
template <int N>
__device__ __forceinline__ void load(const double *from, double (&to)[N]) {
#pragma unroll
  for (int i = 0; i < N / 2 * 2; i += 2) {
    double2 v = N % 2 ? make_double2(from[i], from[i + 1]) : *(const double2 *)(from + i);
    to[i] = v.x, to[i + 1] = v.y;
  }
  if (N % 2) to[N - 1] = from[N - 1];
}
__device__ __forceinline__ double square(double x) { return x * x; }

/* One surface, whose densities are q, onto R points; from[k][r]: point r's distance along axis k from the surface's first plane; step: between planes. */
template <int P, int R>
__device__ __forceinline__ void add_surface(const double *q, const double (&from)[3][R], double step, double (&sum)[R]) {
  constexpr int RING = 4 * P - 4; /* points of an inner plane x: rows y = 0 and y = P - 1, and between them the first and last z of each y */
  double along[R][P], ends[2][R];
#pragma unroll
  for (int r = 0; r < R; r++) {
#pragma unroll
    for (int k = 0; k < P; k++) along[r][k] = square(fma(-(double)k, step, from[2][r]));
    ends[0][r] = along[r][0], ends[1][r] = along[r][P - 1];
  }
  const double *row = q;
  double x = 0;
#pragma unroll 1
  for (int ix = 0; ix < P; ix++, x += 1) {
    const int whole = ix == 0 || ix == P - 1;
    double in_plane[R], y = 0;
#pragma unroll
    for (int r = 0; r < R; r++) in_plane[r] = square(fma(-x, step, from[0][r]));
#pragma unroll 1
    for (int iy = 0; iy < P; iy += whole ? 1 : P - 1, y += whole ? 1 : P - 1) {
      double density[P];
      load<P>(row, density);
#pragma unroll
      for (int r = 0; r < R; r++) {
        double dy = fma(-y, step, from[1][r]), rest = fma(dy, dy, in_plane[r]);
#pragma unroll
        for (int k = 0; k < P; k++) fmm_add_twice(sum[r], density[k], rest + along[r][k]);
      }
      row += whole || iy ? P : 3 * P - 4;
    }
  }
#pragma unroll
  for (int r = 0; r < R; r++)
#pragma unroll
    for (int k = 1; k < P - 1; k++) along[r][k] = square(fma(-(double)k, step, from[0][r]));
  row = q + P * P + P;
  double y = 1;
#pragma unroll 1
  for (int iy = 1; iy < P - 1; iy++, y += 1, row += 2) {
    double2 density[P];
#pragma unroll
    for (int k = 1; k < P - 1; k++) density[k] = *(const double2 *)(row + (k - 1) * RING);
#pragma unroll
    for (int r = 0; r < R; r++) {
      double dy = square(fma(-y, step, from[1][r]));
#pragma unroll
      for (int k = 1; k < P - 1; k++) {
        fmm_add_twice(sum[r], density[k].x, dy + ends[0][r] + along[r][k]);
        fmm_add_twice(sum[r], density[k].y, dy + ends[1][r] + along[r][k]);
      }
    }
  }
}

/* The tile of unit `unit`, the lane's own: units of tile t end at unit_end[t], and that of the warp's first one is known. */
__device__ __forceinline__ int64_t tile_of(const job &a, int64_t first_tile, int64_t unit) {
  int64_t at = first_tile + (threadIdx.x & 31);
  int end = at < a.tiles ? a.unit_end[at] : 0x7fffffff, low = 0;
#pragma unroll
  for (int step = 16; step; step >>= 1)
    if (__shfl_sync(0xffffffffu, end, low + step - 1) <= unit) low += step;
  return min(first_tile + low, a.tiles - 1);
}

template <int P, int R>
__global__ void __launch_bounds__(THREADS) from_surfaces(const job a) {
  typedef lattice<P> S;
  const int64_t warp = a.unit_begin / 32 + (int64_t)blockIdx.x * WARPS + (threadIdx.x >> 5);
  if (32 * warp >= a.unit_stop) return;
  const int64_t unit = 32 * warp + (threadIdx.x & 31), number = tile_of(a, a.first_tile[warp], unit);
  if (unit < a.unit_begin || unit >= a.unit_stop) return;
  const fmm_cuda_tile &tile = a.tile[number];
  const int first = (int)(unit - (number ? a.unit_end[number - 1] : 0)) * R, count = min(R, tile.target_count - first);
  const int64_t target = tile.target_begin + first;
  double at[3][R], sum[R] = {};
#pragma unroll
  for (int r = 0; r < R; r++)
    for (int k = 0; k < 3; k++) at[k][r] = a.point[k][target + min(r, count - 1)];
  for (int n = 0; n < tile.range_count; n++) {
    const int box = a.box ? a.box[tile.range_begin + n] : tile.box;
    const double radius = a.radius * a.half[box];
    double from[3][R];
#pragma unroll
    for (int k = 0; k < 3; k++) {
      double plane = a.center[k][box] - radius;
#pragma unroll
      for (int r = 0; r < R; r++) from[k][r] = at[k][r] - plane;
    }
    add_surface<P, R>(a.equivalent + (int64_t)box * S::POINTS, from, S::STEP * radius, sum);
  }
  double *out = tile.partial >= 0 ? a.partial + tile.partial + first : a.out + target;
#pragma unroll
  for (int r = 0; r < R; r++)
    if (r < count) out[r] = a.add && tile.partial < 0 ? out[r] + 0.5 * sum[r] : 0.5 * sum[r];
}

typedef void sums_kernel(const job);
struct kernels_of { sums_kernel *onto, *onto_shared, *from; };
template <int P>
constexpr kernels_of kernels() { return kernels_of{onto_surfaces<P, 1>, onto_surfaces<P, WARPS>, from_surfaces<P, TARGETS>}; }

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
  a.tile = s->d_tile, a.range = s->d_range, a.box = j->sum == FMM_SUM_W ? s->d_box : NULL /* the tile's own */, a.run = p->d_run;
  a.density = p->d_density, a.half = p->d_half;
  int onto = j->sum == FMM_SUM_P2M || j->sum == FMM_SUM_X;
  for (int k = 0; k < 3; k++) a.point[k] = onto ? p->d_source[k] : p->d_target[k], a.center[k] = p->d_center[k];
  a.n_surface = p->n_surface;
  a.radius = j->sum == FMM_SUM_P2M || j->sum == FMM_SUM_L2P ? p->outer_radius : FMM_INNER_RADIUS;
  a.equivalent = j->sum == FMM_SUM_W ? p->d_up_equivalent : p->d_down_equivalent;
  a.out = j->sum == FMM_SUM_P2M ? p->d_work[0] : j->sum == FMM_SUM_X ? p->d_down_check : j->sum == FMM_SUM_W ? p->d_near : p->d_far;
  a.partial = s->d_partial, a.add = j->sum != FMM_SUM_P2M;
  a.unit_end = s->d_unit_end, a.first_tile = s->d_first_tile;
  return a;
}
}

/* For 1/r in double with one Newton step, one column, potentials where there are points. */
int fmm_cuda_lattice_serves(const fmm_gpu_plan *p, fmm_cuda_sum sum) {
  int to_points = sum == FMM_SUM_W || sum == FMM_SUM_L2P;
  return sum != FMM_SUM_U && p->info->inverse_distance && p->columns == 1 && p->tolerance > 1e-10 && p->order >= LEAST_ORDER && p->order <= MOST_ORDER &&
         !p->sums[sum].single && !(to_points && p->gradient);
}

cudaError_t fmm_cuda_lattice_sum(const fmm_cuda_pair_job *j) {
  const fmm_gpu_plan *p = j->plan;
  const fmm_cuda_sums *s = &p->sums[j->sum];
  if (j->tile_end <= j->tile_begin) return cudaSuccess;
  kernels_of k = find_kernels(p->order);
  job a = job_of(j);
  if (j->sum == FMM_SUM_P2M || j->sum == FMM_SUM_X) {
    int64_t tiles = j->tile_end - j->tile_begin;
    a.tile += j->tile_begin, a.tiles = tiles;
    a.order = tiles == s->n_tiles ? s->d_order : NULL;
    a.chunk = s->shared_rows && j->sum == FMM_SUM_P2M ? 8 : 32;
    if (s->shared_rows) return fmm_cuda_launch(k.onto_shared, dim3((unsigned)tiles), THREADS, 0, j->stream, p->carveout, a);
    return fmm_cuda_launch(k.onto, dim3((unsigned)((tiles + WARPS - 1) / WARPS)), THREADS, 0, j->stream, p->carveout, a);
  }
  a.tiles = s->n_tiles;
  a.unit_begin = j->tile_begin ? s->unit_end[j->tile_begin - 1] : 0, a.unit_stop = s->unit_end[j->tile_end - 1];
  int64_t warps = (a.unit_stop + 31) / 32 - a.unit_begin / 32;
  return fmm_cuda_launch(k.from, dim3((unsigned)((warps + WARPS - 1) / WARPS)), THREADS, 0, j->stream, p->carveout, a);
}

/* The surface cut into runs: always the one that covers most of what is left. Each begins at an even place of its axis, as it is read in pairs. */
int fmm_cuda_lattice_runs(const fmm_gpu_plan *p, const int16_t *grid_surface, fmm_cuda_run *runs) {
  const int P = p->order, length = run_of(P), axis_pitch = (P + 1) / 2 * 2, stride[3] = {P * P, P, 1}, most = lanes_of(P) * runs_of(P);
  char done[6 * (MOST_ORDER - 1) * (MOST_ORDER - 1) + 2] = {};
  int n = 0;
  for (int left = p->n_surface; left > 0 && n < most; n++) {
    int best = 0;
    fmm_cuda_run chosen = {};
    for (int axis = 2; axis >= 0; axis--)
      for (int place = 0; place < P * P * ((P + 1) / 2); place++) {
        int u = place % P, v = place / P % P, first = 2 * (place / (P * P)), other[2] = {axis == 0 ? 1 : 0, axis == 2 ? 1 : 2}, gain = 0;
        fmm_cuda_run r = {(uint8_t)(other[0] * axis_pitch + u), (uint8_t)(other[1] * axis_pitch + v), (uint8_t)(axis * axis_pitch + first), 0, {-1, -1, -1, -1, -1, -1}};
        for (int i = 0; i < length && first + i < P; i++) {
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
