/* U on the GPU for 1/r in double with one Newton step: the sums of two leaves onto one another made together, so that both share distance and root, which are nine of a
 * pair's ten operations. A block of 128 threads takes a tile, whose targets lie in shared memory with their densities; each group of lanes sums onto all of them, several a lane in
 * registers, and sources, staged in shared memory too, are dealt to the groups, four at a time. Four blocks are on a multiprocessor of an H200: with targets in registers there would be three.
 * What a lane's targets give to a source is summed over the lanes of the group by shuffles, kept in shared memory until the chunk is done and then written to the place that this tile
 * has among the parts of the sources' leaf (runtime/gpu/gpu_both.cu), which another launch adds in their order.
 * The leaf itself, and sources that have not the tile's leaf in their list (which lists of targets that are the sources have not), are summed onto the tile alone. A leaf that is the whole tree has tiles for
 * mates instead (runtime/gpu/gpu_direct.cu). Bits depend on the tree only: of rows in parts, tiles of other rows make
 * again what they give to the rows that are asked for. Roots are twice their value (root_cuda.h), and sums halved at the end. */
#include <cuda_pipeline.h>

#include "kernels/held_cuda.h"
#include "kernels/pair/root_cuda.h"
#include "runtime/gpu/gpu_cuda.h"

namespace {
enum { WARPS = 4, THREADS = 32 * WARPS, BLOCKS = 4 /* a multiprocessor, where its shared memory holds four */, WIDTH = 4 /* values staged of a source: coordinates and density */,
       BEHIND = THREADS / 4 /* sources of no density behind the last: one a group, which has four lanes or more */,
       MOST_PIECES = 65535 /* blocks of a grid in y */, TARGETS = 64 /* double2 of a lane's target: x and y for 32 lanes, z and density */ };
constexpr int ROOM = (int)FMM_BOTH_CHUNK + BEHIND;
constexpr unsigned ALL = 0xffffffffu;
static_assert(FMM_BOTH_MATES == 32, "one a lane");

/* A block's shared memory. back: what the tile gives to each source. */
struct staged {
  double source[WIDTH * ROOM], back[ROOM];
  double2 target[TARGETS * FMM_BOTH_MOST];
};

struct job {
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

/* The lane's r-th target: coordinates, and density. */
__device__ __forceinline__ double take_target(const double2 *target, int r, double (&at)[3]) {
  const double2 xy = target[TARGETS * r], zq = target[TARGETS * r + 32];
  at[0] = xy.x, at[1] = xy.y, at[2] = zq.x;
  return zq.y;
}

/* N sources, `next` values apart, onto the lane's targets. */
template <bool TINY, int N, int R>
__device__ __forceinline__ void add_alone_of(const double *source, int next, const double2 *target, double (&sum)[R]) {
  double s[N][WIDTH], at[3];
#pragma unroll
  for (int n = 0; n < N; n++) fmm_take(source + n * next, s[n]);
#pragma unroll
  for (int r = 0; r < R; r++) {
    take_target(target, r, at);
#pragma unroll
    for (int n = 0; n < N; n++) sum[r] = fma(s[n][3], guarded_root<TINY>(square_of(at, s[n][0], s[n][1], s[n][2])), sum[r]);
  }
}

/* Sources [0, alone), three at a time, so that a target is read once for three. */
template <bool TINY, int R>
__device__ __forceinline__ void add_alone(const double *source, const double2 *target, int alone, const place &p, double (&sum)[R]) {
  constexpr int N = TINY ? 1 : 3;
  const int next = WIDTH * p.groups;
  source = fmm_held(source), target = fmm_held(target + p.lane);
  int j = p.group;
#pragma unroll 1
  for (; j + (N - 1) * p.groups < alone; j += N * p.groups) add_alone_of<TINY, N, R>(source + WIDTH * j, next, target, sum);
#pragma unroll 1
  for (; N > 1 && j < alone; j += p.groups) add_alone_of<TINY, 1, R>(source + WIDTH * j, next, target, sum);
}

/* Whether points of a pair may be so near that their squared distance is zero, or subnormal. */
enum guard { APART, NEAR, NEAR_AND_TINY };
template <guard G>
__device__ __forceinline__ double root_of(double r2) { return G == APART ? fmm_rsqrt_newton_twice(r2, fmm_rsqrt_seed(r2)) : guarded_root<G == NEAR_AND_TINY>(r2); }

/* N sources at once and the lane's targets; given[n]: what these give to source n. */
template <guard G, int N, int R>
__device__ __forceinline__ void add_mates_of(const double *const (&source)[N], const double2 *target, double (&sum)[R], double (&given)[N]) {
  double s[N][WIDTH], at[3];
#pragma unroll
  for (int n = 0; n < N; n++) fmm_take(source[n], s[n]), given[n] = 0;
#pragma unroll
  for (int r = 0; r < R; r++) {
    const double density = take_target(target, r, at);
#pragma unroll
    for (int n = 0; n < N; n++) {
      const double root = root_of<G>(square_of(at, s[n][0], s[n][1], s[n][2]));
      sum[r] = fma(s[n][3], root, sum[r]);
      given[n] = fma(density, root, given[n]);
    }
  }
}

__device__ __forceinline__ double exchange(double v, int step) { return v + __shfl_xor_sync(ALL, v, step); }

/* Sums over lanes that differ in bits below `half`, a power of two to 16: without a loop, whose branches cost as much as the exchanges. */
__device__ __forceinline__ double sum_below(double v, int half) {
  if (half == 2) return exchange(v, 1);
  if (half == 4) return exchange(exchange(v, 2), 1);
  if (half == 1) return v;
  if (half == 8) return exchange(exchange(exchange(v, 4), 2), 1);
  return exchange(exchange(exchange(exchange(v, 8), 4), 2), 1);
}

/* Of two sums over lanes those that differ in `half` too: the upper lanes go on with the second. */
__device__ __forceinline__ double halve(double first, double second, bool upper, int half) {
  return (upper ? second : first) + __shfl_xor_sync(ALL, upper ? first : second, half);
}

/* Sources [alone, filled): all groups go as often, as their lanes are of the same warps; behind the last there are some without a density. Four at a time, whose sums are
 * exchanged such that each quarter of a group goes on with one of them. */
template <guard G, int R>
__device__ __forceinline__ void add_mates(const double *source, double *back, const double2 *target, int alone, int filled, const place &p, double (&sum)[R]) {
  source = fmm_held(source), back = fmm_held(back), target = fmm_held(target + p.lane);
  int first = alone + p.group;
  const int half = p.lanes >> 1, quarter = p.lanes >> 2, end = filled + p.group; /* first - p.group is the same for all */
  const bool upper = p.lane & half, second = p.lane & quarter, keeps = (p.lane & (quarter - 1)) == 0;
  double *own = back + ((upper ? 2 : 0) + (second ? 1 : 0)) * p.groups;
#pragma unroll 1
  for (; first + 3 * p.groups < end; first += 4 * p.groups) {
    double given[4];
    const double *s = source + WIDTH * first;
    const int next = WIDTH * p.groups;
    add_mates_of<G, 4, R>({s, s + next, s + 2 * next, s + 3 * next}, target, sum, given);
    const double mine = sum_below(halve(halve(given[0], given[2], upper, half), halve(given[1], given[3], upper, half), second, quarter), quarter);
    if (keeps) own[first] = mine;
  }
#pragma unroll 1
  for (; first < end; first += p.groups) {
    double given[1];
    add_mates_of<G, 1, R>({source + WIDTH * first}, target, sum, given);
    const double all = sum_below(exchange(given[0], half), half);
    if (p.lane == 0) back[first] = all;
  }
}

/* The tile's targets, those behind the last without a density. */
__device__ __forceinline__ void stage_targets(const job &a, const fmm_cuda_chunk &chunk, double2 *target) {
  const int lanes = 1 << chunk.lanes_log2;
  for (int i = threadIdx.x; i < lanes * chunk.per_lane; i += THREADS) {
    const int64_t j = chunk.target_begin + min(i, chunk.target_count - 1);
    double2 *to = target + TARGETS * (i >> chunk.lanes_log2) + (i & (lanes - 1));
    __pipeline_memcpy_async(&to[0].x, a.at[0] + j, sizeof(double));
    __pipeline_memcpy_async(&to[0].y, a.at[1] + j, sizeof(double));
    __pipeline_memcpy_async(&to[32].x, a.at[2] + j, sizeof(double));
    if (i < chunk.target_count) __pipeline_memcpy_async(&to[32].y, a.density + j, sizeof(double));
    else to[32].y = 0;
  }
}

/* A chunk's sources; `mate`: each lane's. */
__device__ __forceinline__ void stage_sources(const job &a, const fmm_cuda_chunk &chunk, const fmm_cuda_mate &mate, const place &p, double *source) {
  for (int n = p.warp; n < chunk.mates; n += WARPS) {
    const int64_t begin = __shfl_sync(ALL, mate.begin, n);
    const int count = __shfl_sync(ALL, mate.count, n), place = __shfl_sync(ALL, mate.place, n);
    for (int i = p.in_warp; i < count; i += 32) {
      double *to = source + WIDTH * (place + i);
      for (int k = 0; k < 3; k++) __pipeline_memcpy_async(to + k, a.at[k] + begin + i, sizeof(double));
      __pipeline_memcpy_async(to + 3, a.density + begin + i, sizeof(double));
    }
  }
  if (p.warp == 0) { /* where the last one is: nothing but the tile's own leaf, which comes first, lies where a target does */
    static_assert(BEHIND == 32, "one a lane");
    const int64_t last = __shfl_sync(ALL, mate.begin, chunk.mates - 1) + __shfl_sync(ALL, (int)mate.count, chunk.mates - 1) - 1;
    double *to = source + WIDTH * (chunk.filled + p.in_warp);
    for (int k = 0; k < 3; k++) __pipeline_memcpy_async(to + k, a.at[k] + last, sizeof(double));
    to[3] = 0;
  }
}

template <bool MAY_BE_NEAR, int R>
__device__ __forceinline__ void sum_tile(const job &a, fmm_cuda_chunk chunk, staged &s) {
  const int lanes = 1 << chunk.lanes_log2;
  const place p = {lanes, (int)threadIdx.x & (lanes - 1), (int)threadIdx.x >> chunk.lanes_log2, THREADS >> chunk.lanes_log2, (int)threadIdx.x >> 5, (int)threadIdx.x & 31};
  const bool wanted = chunk.row >= a.row_begin && chunk.row < a.row_end, tiny = *a.tiny;
  double sum[R] = {};
  stage_targets(a, chunk, s.target);
  for (;;) {
    fmm_cuda_mate mate = {};
    if (p.in_warp < chunk.mates) mate = a.mate[chunk.mate_begin + p.in_warp];
    const bool asked = p.in_warp < chunk.mates && mate.partial >= 0 && mate.row >= a.row_begin && mate.row < a.row_end;
    const unsigned all_asked = __ballot_sync(ALL, asked);
    if (wanted || all_asked) { /* all warps alike */
      stage_sources(a, chunk, mate, p, s.source);
      __pipeline_commit();
      __pipeline_wait_prior(0);
      __syncthreads();
      if (tiny) add_alone<true, R>(s.source, s.target, chunk.alone, p, sum);
      else add_alone<false, R>(s.source, s.target, chunk.alone, p, sum);
      if (!MAY_BE_NEAR) add_mates<APART, R>(s.source, s.back, s.target, chunk.alone, chunk.filled, p, sum);
      else if (tiny) add_mates<NEAR_AND_TINY, R>(s.source, s.back, s.target, chunk.alone, chunk.filled, p, sum);
      else add_mates<NEAR, R>(s.source, s.back, s.target, chunk.alone, chunk.filled, p, sum);
      __syncthreads();
      for (int n = p.warp; n < chunk.mates; n += WARPS) {
        const int64_t partial = __shfl_sync(ALL, mate.partial, n);
        const int count = __shfl_sync(ALL, mate.count, n), place = __shfl_sync(ALL, mate.place, n);
        if (all_asked >> n & 1)
          for (int i = p.in_warp; i < count; i += 32) a.partial[partial + i] = 0.5 * s.back[place + i];
      }
    }
    if (chunk.next < 0) break;
    chunk = a.chunk[chunk.next];
  }
  if (!wanted) {
    __pipeline_commit();
    __pipeline_wait_prior(0); /* targets are on their way where no chunk was asked for */
    return;
  }
  const int held = lanes * R;
#pragma unroll
  for (int r = 0; r < R; r++) {
    double f = sum[r];
    for (int step = 16; step >= lanes; step >>= 1) f = exchange(f, step);
    if (p.in_warp < lanes) s.source[p.warp * held + p.lane + r * lanes] = f;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < chunk.target_count; i += THREADS) {
    double f = 0;
    for (int w = 0; w < WARPS; w++) f += s.source[w * held + i];
    a.out[chunk.target_begin + i] += 0.5 * f;
  }
}

template <bool MAY_BE_NEAR>
__global__ void __launch_bounds__(THREADS, BLOCKS) sum_both(const job a) {
  extern __shared__ __align__(16) char memory[];
  staged &s = *(staged *)memory;
  static_assert(WARPS * 32 * FMM_BOTH_MOST <= WIDTH * ROOM, "the warps' sums fit where sources were");
  const fmm_cuda_chunk first = a.chunk[blockIdx.x];
  switch (first.per_lane) {
    case 1: sum_tile<MAY_BE_NEAR, 1>(a, first, s); break;
    case 2: sum_tile<MAY_BE_NEAR, 2>(a, first, s); break;
    case 3: sum_tile<MAY_BE_NEAR, 3>(a, first, s); break;
    case 4: sum_tile<MAY_BE_NEAR, 4>(a, first, s); break;
    case 5: sum_tile<MAY_BE_NEAR, 5>(a, first, s); break;
    case 6: sum_tile<MAY_BE_NEAR, 6>(a, first, s); break;
    case 7: sum_tile<MAY_BE_NEAR, 7>(a, first, s); break;
    case 8: sum_tile<MAY_BE_NEAR, 8>(a, first, s); break;
    case 9: sum_tile<MAY_BE_NEAR, 9>(a, first, s); break;
    default: sum_tile<MAY_BE_NEAR, FMM_BOTH_MOST>(a, first, s);
  }
}

/* A block 32 points of a leaf that has many parts, some of them a warp, which are added in their order. Blocks: 32 points each. */
__global__ void __launch_bounds__(THREADS) join_many_parts(const fmm_cuda_joint *joint, const double *partial, double *out) {
  __shared__ double shared[WARPS][32];
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const fmm_cuda_joint j = *joint;
  const int64_t i = (int64_t)blockIdx.x * 32 + lane;
  double sum = 0;
  const double *from = partial + j.partial + i;
#pragma unroll 16
  for (int k = j.parts * warp / WARPS; k < j.parts * (warp + 1) / WARPS; k++) sum += i < j.target_count ? from[(int64_t)k * j.target_count] : 0;
  shared[warp][lane] = sum;
  __syncthreads();
  if (warp || i >= j.target_count) return;
  for (int w = 1; w < WARPS; w++) sum += shared[w][lane];
  out[j.target_begin + i] += sum;
}

/* A warp 32 points of a leaf: their parts in their order. Blocks: (leaves; which 32 points, and every MOST_PIECES-th 32 after those). */
__global__ void __launch_bounds__(THREADS) join_parts(const fmm_cuda_joint *joint, int64_t n, const double *partial, double *out) {
  const int64_t number = (int64_t)blockIdx.x * WARPS + (threadIdx.x >> 5);
  if (number >= n) return;
  const fmm_cuda_joint j = joint[number];
  for (int64_t i = (int64_t)blockIdx.y * 32 + (threadIdx.x & 31); i < j.target_count; i += (int64_t)gridDim.y * 32) {
    const double *from = partial + j.partial + i;
    double sum = 0;
#pragma unroll 8
    for (int k = 0; k < j.parts; k++) sum += from[(int64_t)k * j.target_count];
    out[j.target_begin + i] += sum;
  }
}
}

int fmm_cuda_both_serves(const fmm_gpu_plan *p) {
  return p->same_points && fmm_pair_both_on_gpu(p->info, p->gradient, p->columns, !fmm_pair_newton_on_gpu(p->tolerance)) && !p->sums[FMM_SUM_U].single;
}

cudaError_t fmm_cuda_both_prepare(void) {
  const cudaError_t error = cudaFuncSetAttribute(sum_both<false>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)sizeof(staged));
  return error == cudaSuccess ? cudaFuncSetAttribute(sum_both<true>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)sizeof(staged)) : error;
}

cudaError_t fmm_cuda_both_sum(const fmm_gpu_plan *p, int64_t row_begin, int64_t row_end, cudaStream_t stream) {
  const fmm_cuda_sums *s = &p->sums[FMM_SUM_U];
  if (row_begin >= row_end || s->n_tiles == 0) return cudaSuccess;
  job a = {s->d_chunk, s->d_mate, {p->d_source[0], p->d_source[1], p->d_source[2]}, p->d_density, p->d_near, s->d_partial, p->d_tiny, row_begin, row_end};
  return fmm_cuda_launch(s->near ? sum_both<true> : sum_both<false>, dim3((unsigned)s->n_tiles), THREADS, sizeof(staged), stream, p->carveout, a);
}

cudaError_t fmm_cuda_both_join(const fmm_gpu_plan *p, int64_t row_begin, int64_t row_end, cudaStream_t stream) {
  const fmm_cuda_sums *s = &p->sums[FMM_SUM_U];
  int64_t begin = s->row_joint[row_begin], n = s->row_joint[row_end] - begin;
  if (n <= 0) return cudaSuccess;
  const unsigned pieces = ((unsigned)s->most_joined + 31) / 32;
  if (s->direct) return fmm_cuda_launch(join_many_parts, dim3(pieces), THREADS, 0, stream, p->carveout, (const fmm_cuda_joint *)s->d_joint, (const double *)s->d_partial, p->d_near);
  return fmm_cuda_launch(join_parts, dim3((unsigned)((n + WARPS - 1) / WARPS), pieces < MOST_PIECES ? pieces : MOST_PIECES), THREADS, 0, stream, p->carveout, (const fmm_cuda_joint *)(s->d_joint + begin), n, (const double *)s->d_partial, p->d_near);
}
