/* U on the GPU for 1/r: the sums of two leaves onto one another made together, so that both share distance and root, which in double with one Newton step are nine of a pair's
 * ten operations. A block of 128 threads takes a tile, whose targets lie in shared memory with their densities; each group of lanes sums onto all of them, several a lane in
 * registers, and sources, staged in shared memory too, are dealt to the groups, four at a time. In double four blocks are on a multiprocessor of an H200: with targets in registers there would be three.
 * Of targets that have many chunks of sources several tiles are made, so that none runs on when all others are done; those after the first write their sums onto the targets to parts too.
 * What a lane's targets give to a source is summed over the lanes of the group by shuffles, kept in shared memory until the chunk is done and then written to the place that this tile
 * has among the parts of the sources' leaf (runtime/gpu/gpu_both.cu), which another launch adds in their order.
 * In float coordinates are relative to the tile's box, densities times a power of two, parts floats, and sums of a chunk are added in double. Where a tile is too tight for that
 * (pair_tight_cuda.cu) another launch makes all of it in double, or what its own leaf gives to it.
 * The leaf itself, and sources that have not the tile's leaf in their list (which lists of targets that are the sources have not), are summed onto the tile alone. A leaf that is the whole tree has tiles for
 * mates instead (runtime/gpu/gpu_direct.cu). Bits depend on the tree only: of rows in parts, tiles of other rows make
 * again what they give to the rows that are asked for. Roots in double are twice their value (root_cuda.h), and sums halved at the end. */
#include <cuda_pipeline.h>

#include "kernels/held_cuda.h"
#include "kernels/pair/root_cuda.h"
#include "runtime/gpu/gpu_cuda.h"

namespace {
enum { WARPS = 4, THREADS = 32 * WARPS, WIDTH = 4 /* values staged of a point: coordinates and density */,
       BEHIND = THREADS / 4 /* sources of no density behind the last: one a group, which has four lanes or more */,
       MOST_PIECES = 65535 /* blocks of a grid in y */ };
constexpr int ROOM = (int)FMM_BOTH_CHUNK + BEHIND;
constexpr unsigned ALL = 0xffffffffu;
static_assert(FMM_BOTH_MATES == 32, "one a lane");
/* On a multiprocessor, where its shared memory holds as many. */
template <typename Real> constexpr int BLOCKS = sizeof(Real) == sizeof(double) ? 4 : 6;

/* A block's shared memory. back: what the tile gives to each source; target: take_target. */
template <typename Real>
struct __align__(16) staged {
  Real source[WIDTH * ROOM], back[ROOM], target[WIDTH * 32 * FMM_BOTH_MOST];
};

struct job {
  const fmm_cuda_chunk *chunk;
  const int32_t *order; /* tile of each block, where these are of some */
  const fmm_cuda_mate *mate;
  const double *at[3], *density, *center[3], *scale;
  double *out;
  void *partial;
  const int *tiny; /* as in pair_cuda.cu */
  int64_t row_begin, row_end;
};

struct place { int lanes, lane, group, groups, warp, in_warp; };

/* Twice the root; 0 for 0. tiny: also for squares that the seed flushes. */
template <bool TINY>
__device__ __forceinline__ float guarded_root(float r2) { return r2 >= 1.2e-38f ? fmm_rsqrt_float(r2) : 0.0f; } /* the instruction takes less for 0 */
template <bool TINY>
__device__ __forceinline__ double guarded_root(double r2) {
  double y = fmm_rsqrt_newton_twice(r2, fmm_rsqrt_seed_or_zero(r2));
  if (TINY && r2 < 2.3e-308) y = r2 > 0 ? 2 * rsqrt(r2) : 0;
  return y;
}

template <typename Real>
__device__ __forceinline__ Real square_of(const Real (&at)[3], Real x, Real y, Real z) {
  Real dx = at[0] - x, dy = at[1] - y, dz = at[2] - z;
  return fma(dz, dz, fma(dy, dy, dx * dx));
}

/* Where the lane's first target is, and its r-th: coordinates, and density. Lanes' values of 16 bytes lie side by side: of a double x and y of 32 targets, then z and density. */
template <typename Real> constexpr int HALF = 16 / sizeof(Real); /* values of 16 bytes */
template <typename Real> __device__ __forceinline__ Real *target_at(Real *target, int lane, int r) { return target + WIDTH * 32 * r + HALF<Real> * lane; }
__device__ __forceinline__ double take_target(const double *target, int r, double (&at)[3]) {
  const double2 xy = *(const double2 *)(target + WIDTH * 32 * r), zq = *(const double2 *)(target + WIDTH * 32 * r + 64);
  at[0] = xy.x, at[1] = xy.y, at[2] = zq.x;
  return zq.y;
}
__device__ __forceinline__ float take_target(const float *target, int r, float (&at)[3]) {
  const float4 all = *(const float4 *)(target + WIDTH * 32 * r);
  at[0] = all.x, at[1] = all.y, at[2] = all.z;
  return all.w;
}

/* N sources, `next` values apart, onto the lane's targets. */
template <bool TINY, int N, int R, typename Real>
__device__ __forceinline__ void add_alone_of(const Real *source, int next, const Real *target, Real (&sum)[R]) {
  Real s[N][WIDTH], at[3];
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
template <bool TINY, int R, typename Real>
__device__ __forceinline__ void add_alone(const Real *source, const Real *target, int alone, const place &p, Real (&sum)[R]) {
  constexpr int N = TINY ? 1 : 3;
  const int next = WIDTH * p.groups;
  source = fmm_held(source), target = fmm_held(target_at(target, p.lane, 0));
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
template <guard G>
__device__ __forceinline__ float root_of(float r2) { return G == APART ? fmm_rsqrt_float(r2) : guarded_root<false>(r2); }

/* N sources at once and the lane's targets; given[n]: what these give to source n. */
template <guard G, int N, int R, typename Real>
__device__ __forceinline__ void add_mates_of(const Real *const (&source)[N], const Real *target, Real (&sum)[R], Real (&given)[N]) {
  Real s[N][WIDTH], at[3];
#pragma unroll
  for (int n = 0; n < N; n++) fmm_take(source[n], s[n]), given[n] = 0;
#pragma unroll
  for (int r = 0; r < R; r++) {
    const Real density = take_target(target, r, at);
#pragma unroll
    for (int n = 0; n < N; n++) {
      const Real root = root_of<G>(square_of(at, s[n][0], s[n][1], s[n][2]));
      sum[r] = fma(s[n][3], root, sum[r]);
      given[n] = fma(density, root, given[n]);
    }
  }
}

template <typename Real> __device__ __forceinline__ Real exchange(Real v, int step) { return v + __shfl_xor_sync(ALL, v, step); }

/* Sums over lanes that differ in bits below `half`, a power of two to 16: without a loop, whose branches cost as much as the exchanges. */
template <typename Real>
__device__ __forceinline__ Real sum_below(Real v, int half) {
  if (half == 2) return exchange(v, 1);
  if (half == 4) return exchange(exchange(v, 2), 1);
  if (half == 1) return v;
  if (half == 8) return exchange(exchange(exchange(v, 4), 2), 1);
  return exchange(exchange(exchange(exchange(v, 8), 4), 2), 1);
}

/* Of two sums over lanes those that differ in `half` too: the upper lanes go on with the second. */
template <typename Real>
__device__ __forceinline__ Real halve(Real first, Real second, bool upper, int half) {
  return (upper ? second : first) + __shfl_xor_sync(ALL, upper ? first : second, half);
}

/* Sources [alone, filled): all groups go as often, as their lanes are of the same warps; behind the last there are some without a density. Four at a time, whose sums are
 * exchanged such that each quarter of a group goes on with one of them. */
template <guard G, int R, typename Real>
__device__ __forceinline__ void add_mates(const Real *source, Real *back, const Real *target, int alone, int filled, const place &p, Real (&sum)[R]) {
  source = fmm_held(source), back = fmm_held(back), target = fmm_held(target_at(target, p.lane, 0));
  int first = alone + p.group;
  const int half = p.lanes >> 1, quarter = p.lanes >> 2, end = filled + p.group; /* first - p.group is the same for all */
  const bool upper = p.lane & half, second = p.lane & quarter, keeps = (p.lane & (quarter - 1)) == 0;
  Real *own = back + ((upper ? 2 : 0) + (second ? 1 : 0)) * p.groups;
#pragma unroll 1
  for (; first + 3 * p.groups < end; first += 4 * p.groups) {
    Real given[4];
    const Real *s = source + WIDTH * first;
    const int next = WIDTH * p.groups;
    add_mates_of<G, 4, R>({s, s + next, s + 2 * next, s + 3 * next}, target, sum, given);
    const Real mine = sum_below(halve(halve(given[0], given[2], upper, half), halve(given[1], given[3], upper, half), second, quarter), quarter);
    if (keeps) own[first] = mine;
  }
#pragma unroll 1
  for (; first < end; first += p.groups) {
    Real given[1];
    add_mates_of<G, 1, R>({source + WIDTH * first}, target, sum, given);
    const Real all = sum_below(exchange(given[0], half), half);
    if (p.lane == 0) back[first] = all;
  }
}

/* In float coordinates are relative to the tile's box and densities times a power of two. */
struct frame { double center[3], scale; };
template <typename Real>
__device__ __forceinline__ frame frame_of(const job &a, int box) {
  if constexpr (sizeof(Real) == sizeof(double)) return frame{};
  else return frame{{a.center[0][box], a.center[1][box], a.center[2][box]}, a.scale[0]};
}

/* A point's coordinates and density to where its values are, in double without waiting for them. dense 0: none. */
__device__ __forceinline__ void stage(const job &a, int64_t j, int dense, const frame &, double *xy, double *zq) {
  __pipeline_memcpy_async(xy, a.at[0] + j, sizeof(double));
  __pipeline_memcpy_async(xy + 1, a.at[1] + j, sizeof(double));
  __pipeline_memcpy_async(zq, a.at[2] + j, sizeof(double));
  if (dense) __pipeline_memcpy_async(zq + 1, a.density + j, sizeof(double));
  else zq[1] = 0;
}
__device__ __forceinline__ void stage(const job &a, int64_t j, int dense, const frame &f, float *to, float *) {
  const double x = a.at[0][j] - f.center[0], y = a.at[1][j] - f.center[1], z = a.at[2][j] - f.center[2], q = a.density[j];
  *(float4 *)to = make_float4((float)x, (float)y, (float)z, dense ? (float)(f.scale * q) : 0.0f);
}

/* The tile's targets, those behind the last without a density. */
template <typename Real>
__device__ __forceinline__ void stage_targets(const job &a, const fmm_cuda_chunk &chunk, Real *target) {
  const frame f = frame_of<Real>(a, chunk.box);
  const int lanes = 1 << chunk.lanes_log2;
  for (int i = threadIdx.x; i < lanes * chunk.per_lane; i += THREADS) {
    Real *to = target_at(target, i & (lanes - 1), i >> chunk.lanes_log2);
    stage(a, chunk.target_begin + min(i, chunk.target_count - 1), i < chunk.target_count, f, to, to + 64);
  }
}

/* A chunk's sources; `mate`: each lane's. */
template <typename Real>
__device__ __forceinline__ void stage_sources(const job &a, const fmm_cuda_chunk &chunk, const fmm_cuda_mate &mate, const place &p, Real *source) {
  const frame f = frame_of<Real>(a, chunk.box);
  for (int n = p.warp; n < chunk.mates; n += WARPS) {
    const int64_t begin = __shfl_sync(ALL, mate.begin, n);
    const int count = __shfl_sync(ALL, mate.count, n), place = __shfl_sync(ALL, mate.place, n);
    for (int i = p.in_warp; i < count; i += 32) {
      Real *to = source + WIDTH * (place + i);
      stage(a, begin + i, 1, f, to, to + 2);
    }
  }
  if (p.warp == 0) { /* where the last one is: nothing but the tile's own leaf, which comes first, lies where a target does */
    static_assert(BEHIND == 32, "one a lane");
    const int64_t last = __shfl_sync(ALL, mate.begin, chunk.mates - 1) + __shfl_sync(ALL, (int)mate.count, chunk.mates - 1) - 1;
    Real *to = source + WIDTH * (chunk.filled + p.in_warp);
    stage(a, last, 0, f, to, to + 2);
  }
}

/* The groups' sums are added in a fixed order, those of a warp by shuffles (lanes differ by multiples of `lanes`), in double. unit: of parts; more: where they go there are some of an earlier chunk. */
template <typename Part, typename Real, int R>
__device__ __forceinline__ void add_groups(const job &a, const fmm_cuda_chunk &chunk, const place &p, const Real (&sum)[R], Real unit, bool more, double *room) {
  const int held = p.lanes * R;
#pragma unroll
  for (int r = 0; r < R; r++) {
    double f = sum[r];
    for (int step = 16; step >= p.lanes; step >>= 1) f = exchange(f, step);
    if (p.in_warp < p.lanes) room[p.warp * held + p.lane + r * p.lanes] = f;
  }
  __syncthreads();
  const double back = sizeof(Real) < sizeof(double) ? a.scale[1] : 0.5; /* of roots of twice their value */
  for (int i = threadIdx.x; i < chunk.target_count; i += THREADS) {
    double f = 0;
    for (int w = 0; w < WARPS; w++) f += room[w * held + i];
    if (chunk.own < 0) a.out[chunk.target_begin + i] += back * f;
    else {
      Part *part = (Part *)a.partial + chunk.own + i;
      *part = (Part)(unit * f + (more ? *part : 0));
    }
  }
}

template <typename Real, typename Part, bool MAY_BE_NEAR, int R>
__device__ __forceinline__ void sum_tile(const job &a, fmm_cuda_chunk chunk, staged<Real> &s) {
  constexpr bool IN_FLOAT = sizeof(Real) < sizeof(double);
  const int lanes = 1 << chunk.lanes_log2;
  const place p = {lanes, (int)threadIdx.x & (lanes - 1), (int)threadIdx.x >> chunk.lanes_log2, THREADS >> chunk.lanes_log2, (int)threadIdx.x >> 5, (int)threadIdx.x & 31};
  const bool wanted = chunk.row >= a.row_begin && chunk.row < a.row_end, tiny = !IN_FLOAT && *a.tiny, skips_alone = IN_FLOAT && chunk.precise == FMM_BOTH_ALONE_PRECISE;
  const Real unit = IN_FLOAT ? 1 : 0.5 * (sizeof(Part) < sizeof(Real) ? a.scale[0] : 1); /* of parts: those in float are of scaled densities */
  Real sum[R] = {};
  stage_targets(a, chunk, s.target);
  for (bool more = false;; more = true) {
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
      else if (!skips_alone) add_alone<false, R>(s.source, s.target, chunk.alone, p, sum);
      if (!MAY_BE_NEAR) add_mates<APART, R>(s.source, s.back, s.target, chunk.alone, chunk.filled, p, sum);
      else if (tiny) add_mates<NEAR_AND_TINY, R>(s.source, s.back, s.target, chunk.alone, chunk.filled, p, sum);
      else add_mates<NEAR, R>(s.source, s.back, s.target, chunk.alone, chunk.filled, p, sum);
      __syncthreads();
      for (int n = p.warp; n < chunk.mates; n += WARPS) {
        const int64_t partial = __shfl_sync(ALL, mate.partial, n);
        const int count = __shfl_sync(ALL, mate.count, n), place = __shfl_sync(ALL, mate.place, n);
        if (all_asked >> n & 1)
          for (int i = p.in_warp; i < count; i += 32) ((Part *)a.partial)[partial + i] = (Part)(unit * s.back[place + i]);
      }
    }
    if constexpr (IN_FLOAT)
      if (wanted) add_groups<Part>(a, chunk, p, sum, unit, more, (double *)s.source); /* each chunk's */
    if (chunk.next < 0) break;
    if constexpr (IN_FLOAT) {
#pragma unroll
      for (int r = 0; r < R; r++) sum[r] = 0;
      __syncthreads();
    }
    chunk = a.chunk[chunk.next];
  }
  if constexpr (!IN_FLOAT) {
    if (!wanted) {
      __pipeline_commit();
      __pipeline_wait_prior(0); /* targets are on their way where no chunk was asked for */
      return;
    }
    add_groups<Part>(a, chunk, p, sum, unit, false, (double *)s.source);
  }
}

template <typename Real, typename Part, bool MAY_BE_NEAR>
__device__ __forceinline__ void sum_number(const job &a, int number, staged<Real> &s) {
  static_assert(sizeof(double) * WARPS * 32 * FMM_BOTH_MOST <= sizeof s.source, "the warps' sums fit where sources were");
  const fmm_cuda_chunk first = a.chunk[number];
  if (sizeof(Real) < sizeof(double) && first.precise == FMM_BOTH_ALL_PRECISE) return;
  switch (first.per_lane) {
    case 1: sum_tile<Real, Part, MAY_BE_NEAR, 1>(a, first, s); break;
    case 2: sum_tile<Real, Part, MAY_BE_NEAR, 2>(a, first, s); break;
    case 3: sum_tile<Real, Part, MAY_BE_NEAR, 3>(a, first, s); break;
    case 4: sum_tile<Real, Part, MAY_BE_NEAR, 4>(a, first, s); break;
    case 5: sum_tile<Real, Part, MAY_BE_NEAR, 5>(a, first, s); break;
    case 6: sum_tile<Real, Part, MAY_BE_NEAR, 6>(a, first, s); break;
    case 7: sum_tile<Real, Part, MAY_BE_NEAR, 7>(a, first, s); break;
    case 8: sum_tile<Real, Part, MAY_BE_NEAR, 8>(a, first, s); break;
    case 9: sum_tile<Real, Part, MAY_BE_NEAR, 9>(a, first, s); break;
    default: sum_tile<Real, Part, MAY_BE_NEAR, FMM_BOTH_MOST>(a, first, s);
  }
}

/* A block a tile. */
template <typename Real, typename Part, bool MAY_BE_NEAR>
__global__ void __launch_bounds__(THREADS, BLOCKS<Real>) sum_both(const job a) {
  extern __shared__ __align__(16) char memory[];
  sum_number<Real, Part, MAY_BE_NEAR>(a, sizeof(Part) < sizeof(Real) ? a.order[blockIdx.x] : (int)blockIdx.x, *(staged<Real> *)memory);
}

/* A block a tile, onto which its own leaf is summed in double, where float has left that out. Threads: a target each, and groups of them that take sources in turn where targets are few. */
__global__ void __launch_bounds__(THREADS) sum_alone_in_double(const job a) {
  __shared__ double part[THREADS];
  const int number = a.order[blockIdx.x];
  const fmm_cuda_chunk first = a.chunk[number];
  if (first.own >= 0 || first.row < a.row_begin || first.row >= a.row_end) return;
  int together = THREADS;
  while (together / 2 >= first.target_count) together /= 2;
  const int group = (int)threadIdx.x / together, groups = THREADS / together, own = (int)threadIdx.x % together;
  for (int i = own; i - own < first.target_count; i += together) { /* all threads alike */
    const int64_t target = first.target_begin + min(i, first.target_count - 1);
    const double at[3] = {a.at[0][target], a.at[1][target], a.at[2][target]};
    double sum = 0;
    for (int c = number; c >= 0; c = a.chunk[c].next)
      for (int n = 0; n < a.chunk[c].mates; n++) {
        const fmm_cuda_mate mate = a.mate[a.chunk[c].mate_begin + n];
        if (mate.partial >= 0) break;
#pragma unroll 4
        for (int64_t j = mate.begin + group; j < mate.begin + mate.count; j += groups) sum = fma(a.density[j], guarded_root<true>(square_of(at, a.at[0][j], a.at[1][j], a.at[2][j])), sum);
      }
    part[threadIdx.x] = sum;
    __syncthreads();
    if (group == 0 && i < first.target_count) {
      for (int g = 1; g < groups; g++) sum += part[g * together + own];
      a.out[target] += 0.5 * sum;
    }
    __syncthreads();
  }
}

/* What takes parts back to the densities' unit. */
__device__ __forceinline__ double unit_of(const double *, const double *) { return 1; }
__device__ __forceinline__ double unit_of(const float *, const double *scale) { return scale[1]; }

/* A block 32 points of a leaf that has many parts, some of them a warp, which are added in their order. Blocks: 32 points each. */
template <typename Part>
__global__ void __launch_bounds__(THREADS) join_many_parts(const fmm_cuda_joint *joint, const Part *partial, const double *scale, double *out) {
  __shared__ double shared[WARPS][32];
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const fmm_cuda_joint j = *joint;
  const int64_t i = (int64_t)blockIdx.x * 32 + lane;
  double sum = 0;
  const Part *from = partial + j.partial + i;
#pragma unroll 16
  for (int k = j.parts * warp / WARPS; k < j.parts * (warp + 1) / WARPS; k++) sum += i < j.target_count ? from[(int64_t)k * j.target_count] : 0;
  shared[warp][lane] = sum;
  __syncthreads();
  if (warp || i >= j.target_count) return;
  for (int w = 1; w < WARPS; w++) sum += shared[w][lane];
  out[j.target_begin + i] += unit_of(partial, scale) * sum;
}

/* A warp 32 points of a leaf: their parts in their order. Blocks: (leaves; which 32 points, and every MOST_PIECES-th 32 after those). */
template <typename Part>
__global__ void __launch_bounds__(THREADS) join_parts(const fmm_cuda_joint *joint, int64_t n, const Part *partial, const double *scale, double *out) {
  const int64_t number = (int64_t)blockIdx.x * WARPS + (threadIdx.x >> 5);
  if (number >= n) return;
  const fmm_cuda_joint j = joint[number];
  for (int64_t i = (int64_t)blockIdx.y * 32 + (threadIdx.x & 31); i < j.target_count; i += (int64_t)gridDim.y * 32) {
    const Part *from = partial + j.partial + i;
    double sum = 0;
#pragma unroll 8
    for (int k = 0; k < j.parts; k++) sum += from[(int64_t)k * j.target_count];
    out[j.target_begin + i] += unit_of(partial, scale) * sum;
  }
}

template <typename Part>
cudaError_t join(const fmm_gpu_plan *p, int64_t begin, int64_t n, cudaStream_t stream) {
  const fmm_cuda_sums *s = &p->sums[FMM_SUM_U];
  const unsigned pieces = ((unsigned)s->most_joined + 31) / 32;
  const Part *partial = (const Part *)s->d_partial;
  const double *scale = p->d_scale;
  if (s->direct) return fmm_cuda_launch(join_many_parts<Part>, dim3(pieces), THREADS, 0, stream, p->carveout, (const fmm_cuda_joint *)s->d_joint, partial, scale, p->d_near);
  return fmm_cuda_launch(join_parts<Part>, dim3((unsigned)((n + WARPS - 1) / WARPS), pieces < MOST_PIECES ? pieces : MOST_PIECES), THREADS, 0, stream, p->carveout, (const fmm_cuda_joint *)(s->d_joint + begin), n, partial, scale, p->d_near);
}

/* Brings a kernel to the device, and lets it have the shared memory that it needs. */
template <typename Real, typename Part>
cudaError_t prepare(int near) {
  return cudaFuncSetAttribute(near ? sum_both<Real, Part, true> : sum_both<Real, Part, false>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)sizeof(staged<Real>));
}

template <typename Real, typename Part>
cudaError_t sum(const fmm_gpu_plan *p, const job &a, int64_t tiles, cudaStream_t stream) {
  return fmm_cuda_launch(p->sums[FMM_SUM_U].near ? sum_both<Real, Part, true> : sum_both<Real, Part, false>, dim3((unsigned)tiles), THREADS, sizeof(staged<Real>), stream, p->carveout, a);
}

job job_of(const fmm_gpu_plan *p, int64_t row_begin, int64_t row_end) {
  const fmm_cuda_sums *s = &p->sums[FMM_SUM_U];
  return job{s->d_chunk, NULL, s->d_mate, {p->d_source[0], p->d_source[1], p->d_source[2]}, p->d_density, {p->d_center[0], p->d_center[1], p->d_center[2]}, p->d_scale, p->d_near, s->d_partial, p->d_tiny,
             row_begin, row_end};
}
}

int fmm_cuda_both_serves(const fmm_gpu_plan *p) {
  return p->same_points && fmm_pair_both_on_gpu(p->info, p->gradient, p->columns, !fmm_pair_newton_on_gpu(p->tolerance));
}

cudaError_t fmm_cuda_both_prepare(const fmm_gpu_plan *p) {
  const int single = p->sums[FMM_SUM_U].single, one_leaf = p->n_boxes == 1;
  const cudaError_t error = single ? prepare<float, float>(0) : prepare<double, double>(0);
  if (error != cudaSuccess || !one_leaf) return error;
  return single ? prepare<float, float>(1) : prepare<double, double>(1);
}

cudaError_t fmm_cuda_both_prepare_tight(const fmm_gpu_plan *p) { return prepare<double, float>(p->sums[FMM_SUM_U].near); }

cudaError_t fmm_cuda_both_sum(const fmm_gpu_plan *p, int64_t row_begin, int64_t row_end, cudaStream_t stream, cudaStream_t tight_stream) {
  const fmm_cuda_sums *s = &p->sums[FMM_SUM_U];
  job a = job_of(p, row_begin, row_end);
  if (row_begin >= row_end || s->n_tiles == 0) return cudaSuccess;
  if (!s->single) return sum<double, double>(p, a, s->n_tiles, stream);
  a.order = s->d_precise;
  cudaError_t error = s->n_precise ? sum<double, float>(p, a, s->n_precise, tight_stream) : cudaSuccess;
  if (error != cudaSuccess) return error;
  if ((error = sum<float, float>(p, a, s->n_tiles, stream)) != cudaSuccess || s->n_alone_precise == 0) return error;
  a.order = s->d_precise + s->n_precise;
  return fmm_cuda_launch(sum_alone_in_double, dim3((unsigned)s->n_alone_precise), THREADS, 0, stream, p->carveout, a);
}

cudaError_t fmm_cuda_both_join(const fmm_gpu_plan *p, int64_t row_begin, int64_t row_end, cudaStream_t stream) {
  const fmm_cuda_sums *s = &p->sums[FMM_SUM_U];
  const int64_t begin = s->row_joint[row_begin], n = s->row_joint[row_end] - begin;
  if (n <= 0) return cudaSuccess;
  return s->single ? join<float>(p, begin, n, stream) : join<double>(p, begin, n, stream);
}
