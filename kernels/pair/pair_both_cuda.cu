/* U on the GPU for 1/r in double with one Newton step: the sums of two leaves onto one another made together, so that both share distance and root, which are nine of a
 * pair's ten operations. As in pair_cuda.cu a block of 128 threads takes a tile, each group of lanes holds all of the tile's targets in registers (here with their densities),
 * and sources are staged in shared memory and dealt to the groups. What a lane's targets give to a source is summed over the lanes of the group by shuffles, kept in shared memory until
 * the chunk is done and then written to the place that this tile has among the parts of the sources' leaf (runtime/gpu/gpu_both.cu), which another launch adds in their order.
 * The leaf itself, and sources that have not the tile's leaf in their list, are summed onto the tile alone. Bits depend on the tree only: of rows in parts, tiles of other rows make
 * again what they give to the rows that are asked for. Roots are twice their value (root_cuda.h), and sums halved at the end. */
#include <cuda_pipeline.h>

#include "kernels/held_cuda.h"
#include "kernels/pair/root_cuda.h"
#include "runtime/gpu/gpu_cuda.h"

namespace {
enum { WARPS = 4, THREADS = 32 * WARPS, WIDTH = 4 /* values staged of a source: coordinates and density */,
       BEHIND = THREADS / 4 /* sources of no density behind the last: one a group, which has four lanes or more */ };
constexpr int ROOM = (int)FMM_BOTH_CHUNK + BEHIND;
constexpr unsigned ALL = 0xffffffffu;

struct job {
  const fmm_cuda_tile *tile;
  const fmm_cuda_chunk *chunk;
  const fmm_cuda_mate *mate;
  const double *at[3], *density;
  double *out, *partial;
  const int *tiny; /* as in pair_cuda.cu */
  int64_t row_begin, row_end;
};

struct place { int lanes, lane, group, groups, warp, in_warp; };

/* Twice the root; 0 for 0. tiny: also for squares that the seed flushes. */
template <bool TINY>
__device__ __forceinline__ double guarded_root(double r2) {
  double y = fmm_rsqrt_newton_twice(r2, fmm_rsqrt_seed_or_zero(r2));
  if (TINY && r2 < 2.3e-308) y = r2 > 0 ? 2 * rsqrt(r2) : 0;
  return y;
}

__device__ __forceinline__ double square_of(const double (&at)[3], double x, double y, double z) {
  double dx = at[0] - x, dy = at[1] - y, dz = at[2] - z;
  return fma(dz, dz, fma(dy, dy, dx * dx));
}

template <bool TINY, int R>
__device__ __forceinline__ void add_alone(const double *staged, int alone, const place &p, const double (&at)[R][3], double (&sum)[R]) {
#pragma unroll(R <= 2 ? 4 : R <= 4 ? 2 : 1)
  for (int j = p.group; j < alone; j += p.groups) {
    const double *s = staged + WIDTH * j;
    double x = s[0], y = s[1], z = s[2], q = s[3];
#pragma unroll
    for (int r = 0; r < R; r++) sum[r] = fma(q, guarded_root<TINY>(square_of(at[r], x, y, z)), sum[r]);
  }
}

/* N sources at once and the lane's targets; given[n]: what these give to source n. */
template <int N, int R>
__device__ __forceinline__ void add_mates_of(const double *const (&source)[N], const double (&at)[R][3], const double (&density)[R], double (&sum)[R], double (&given)[N]) {
  double s[N][WIDTH];
#pragma unroll
  for (int n = 0; n < N; n++) {
#pragma unroll
    for (int k = 0; k < WIDTH; k++) s[n][k] = source[n][k];
    given[n] = 0;
  }
#pragma unroll
  for (int r = 0; r < R; r++)
#pragma unroll
    for (int n = 0; n < N; n++) {
      double r2 = square_of(at[r], s[n][0], s[n][1], s[n][2]), root = fmm_rsqrt_newton_twice(r2, fmm_rsqrt_seed(r2));
      sum[r] = fma(s[n][3], root, sum[r]);
      given[n] = fma(density[r], root, given[n]);
    }
}

__device__ __forceinline__ double exchange(double v, int step) { return v + __shfl_xor_sync(ALL, v, step); }

/* Sums over lanes that differ in bits below `half`, a power of two: without a loop, whose branches cost as much as the exchanges. */
__device__ __forceinline__ double sum_below(double v, int half) {
  if (half == 4) return exchange(exchange(v, 2), 1);
  if (half == 8) return exchange(exchange(exchange(v, 4), 2), 1);
  if (half == 16) return exchange(exchange(exchange(exchange(v, 8), 4), 2), 1);
  return exchange(v, 1);
}

/* Sources [alone, filled): all groups go as often, as their lanes are of the same warps; behind the last there are some without a density. Two at a time, whose sums are
 * exchanged such that each half of a group goes on with one of them. */
template <int R>
__device__ __forceinline__ void add_mates(const double *staged, double *back, int alone, int filled, const place &p, const double (&at)[R][3], const double (&density)[R], double (&sum)[R]) {
  staged = fmm_held(staged), back = fmm_held(back);
  int first = alone + p.group;
  const int half = p.lanes >> 1, end = filled + p.group; /* first - p.group is the same for all */
  const bool upper = p.lane & half, keeps = (p.lane & (half - 1)) == 0;
  double *own = back + (upper ? p.groups : 0);
#pragma unroll 1
  for (; first + p.groups < end; first += 2 * p.groups) {
    double given[2];
    add_mates_of<2, R>({staged + WIDTH * first, staged + WIDTH * (first + p.groups)}, at, density, sum, given);
    const double mine = sum_below((upper ? given[1] : given[0]) + __shfl_xor_sync(ALL, upper ? given[0] : given[1], half), half);
    if (keeps) own[first] = mine;
  }
  if (first < end) {
    double given[1];
    add_mates_of<1, R>({staged + WIDTH * first}, at, density, sum, given);
    const double all = sum_below(exchange(given[0], half), half);
    if (p.lane == 0) back[first] = all;
  }
}

template <int R>
__device__ __forceinline__ void sum_tile(const job &a, const fmm_cuda_tile &tile, double *staged, double *back) {
  const int lanes = 1 << tile.lanes_log2;
  const place p = {lanes, (int)threadIdx.x & (lanes - 1), (int)threadIdx.x >> tile.lanes_log2, THREADS >> tile.lanes_log2, (int)threadIdx.x >> 5, (int)threadIdx.x & 31};
  const bool wanted = tile.slot >= a.row_begin && tile.slot < a.row_end, tiny = *a.tiny;
  double at[R][3], density[R], sum[R] = {};
#pragma unroll
  for (int r = 0; r < R; r++) {
    int i = p.lane + r * lanes;
    int64_t j = tile.target_begin + min(i, tile.target_count - 1);
    for (int k = 0; k < 3; k++) at[r][k] = a.at[k][j];
    density[r] = i < tile.target_count ? a.density[j] : 0;
  }
  for (int c = 0; c < tile.range_count; c++) {
    const fmm_cuda_chunk chunk = a.chunk[tile.range_begin + c];
    fmm_cuda_mate mate = {};
    if (p.in_warp < chunk.mates) mate = a.mate[chunk.mate_begin + p.in_warp];
    const bool asked = p.in_warp < chunk.mates && mate.partial >= 0 && mate.row >= a.row_begin && mate.row < a.row_end;
    const unsigned all_asked = __ballot_sync(ALL, asked);
    if (!wanted && !all_asked) continue; /* all warps alike */
    for (int n = p.warp; n < chunk.mates; n += WARPS) {
      const int64_t begin = __shfl_sync(ALL, mate.begin, n);
      const int count = __shfl_sync(ALL, mate.count, n), place = __shfl_sync(ALL, mate.place, n);
      for (int i = p.in_warp; i < count; i += 32) {
        double *to = staged + WIDTH * (place + i);
        for (int k = 0; k < 3; k++) __pipeline_memcpy_async(to + k, a.at[k] + begin + i, sizeof(double));
        __pipeline_memcpy_async(to + 3, a.density + begin + i, sizeof(double));
      }
    }
    if (p.warp == 0) { /* where the last one is: nothing but the tile's own leaf, which comes first, lies where a target does */
      static_assert(BEHIND == 32, "one a lane");
      const int64_t last = __shfl_sync(ALL, mate.begin, chunk.mates - 1) + __shfl_sync(ALL, (int)mate.count, chunk.mates - 1) - 1;
      double *to = staged + WIDTH * (chunk.filled + p.in_warp);
      for (int k = 0; k < 3; k++) __pipeline_memcpy_async(to + k, a.at[k] + last, sizeof(double));
      to[3] = 0;
    }
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    if (tiny) add_alone<true, R>(staged, chunk.alone, p, at, sum);
    else add_alone<false, R>(staged, chunk.alone, p, at, sum);
    add_mates<R>(staged, back, chunk.alone, chunk.filled, p, at, density, sum);
    __syncthreads();
    for (int n = p.warp; n < chunk.mates; n += WARPS) {
      const int64_t partial = __shfl_sync(ALL, mate.partial, n);
      const int count = __shfl_sync(ALL, mate.count, n), place = __shfl_sync(ALL, mate.place, n);
      if (all_asked >> n & 1)
        for (int i = p.in_warp; i < count; i += 32) a.partial[partial + i] = 0.5 * back[place + i];
    }
  }
  if (!wanted) return;
  const int held = lanes * R;
#pragma unroll
  for (int r = 0; r < R; r++) {
    double f = sum[r];
    for (int step = 16; step >= lanes; step >>= 1) f = exchange(f, step);
    if (p.in_warp < lanes) staged[p.warp * held + p.lane + r * lanes] = f;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < tile.target_count; i += THREADS) {
    double f = 0;
    for (int w = 0; w < WARPS; w++) f += staged[w * held + i];
    a.out[tile.target_begin + i] += 0.5 * f;
  }
}

__global__ void __launch_bounds__(THREADS, 3) sum_both(const job a) {
  __shared__ __align__(16) double staged[WIDTH * ROOM], back[ROOM];
  static_assert(WARPS * 32 * FMM_BOTH_MOST <= WIDTH * ROOM, "the warps' sums fit where sources were");
  const fmm_cuda_tile tile = a.tile[blockIdx.x];
  switch (tile.per_lane) {
    case 1: sum_tile<1>(a, tile, staged, back); break;
    case 2: sum_tile<2>(a, tile, staged, back); break;
    case 3: sum_tile<3>(a, tile, staged, back); break;
    case 4: sum_tile<4>(a, tile, staged, back); break;
    case 5: sum_tile<5>(a, tile, staged, back); break;
    case 6: sum_tile<6>(a, tile, staged, back); break;
    case 7: sum_tile<7>(a, tile, staged, back); break;
    case 8: sum_tile<8>(a, tile, staged, back); break;
    case 9: sum_tile<9>(a, tile, staged, back); break;
    default: sum_tile<FMM_BOTH_MOST>(a, tile, staged, back);
  }
}

/* A warp 32 points of a leaf: their parts in their order. Blocks: (leaves; which 32 points). */
__global__ void __launch_bounds__(THREADS) join_parts(const fmm_cuda_joint *joint, int64_t n, const double *partial, double *out) {
  const int64_t number = (int64_t)blockIdx.x * WARPS + (threadIdx.x >> 5);
  if (number >= n) return;
  const fmm_cuda_joint j = joint[number];
  const int i = (int)blockIdx.y * 32 + (threadIdx.x & 31);
  if (i >= j.target_count) return;
  const double *from = partial + j.partial + i;
  double sum = 0;
#pragma unroll 8
  for (int k = 0; k < j.parts; k++) sum += from[(int64_t)k * j.target_count];
  out[j.target_begin + i] += sum;
}
}

int fmm_cuda_both_serves(const fmm_gpu_plan *p) {
  return p->same_points && fmm_pair_both_on_gpu(p->info, p->gradient, p->columns, !fmm_pair_newton_on_gpu(p->tolerance)) && !p->sums[FMM_SUM_U].single;
}

cudaError_t fmm_cuda_both_sum(const fmm_gpu_plan *p, int64_t row_begin, int64_t row_end, cudaStream_t stream) {
  const fmm_cuda_sums *s = &p->sums[FMM_SUM_U];
  if (row_begin >= row_end || s->n_tiles == 0) return cudaSuccess;
  job a = {s->d_tile, s->d_chunk, s->d_mate, {p->d_source[0], p->d_source[1], p->d_source[2]}, p->d_density, p->d_near, s->d_partial, p->d_tiny, row_begin, row_end};
  return fmm_cuda_launch(sum_both, dim3((unsigned)s->n_tiles), THREADS, 0, stream, p->carveout, a);
}

cudaError_t fmm_cuda_both_join(const fmm_gpu_plan *p, int64_t row_begin, int64_t row_end, cudaStream_t stream) {
  const fmm_cuda_sums *s = &p->sums[FMM_SUM_U];
  int64_t begin = s->row_joint[row_begin], n = s->row_joint[row_end] - begin;
  if (n <= 0) return cudaSuccess;
  return fmm_cuda_launch(join_parts, dim3((unsigned)((n + WARPS - 1) / WARPS), (unsigned)(s->most_joined + 31) / 32), THREADS, 0, stream, p->carveout, (const fmm_cuda_joint *)(s->d_joint + begin), n, (const double *)s->d_partial, p->d_near);
}
