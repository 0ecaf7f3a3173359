/* U on the GPU for 1/r: the sums of two leaves onto one another made together, so that both share distance and root, which in double with one Newton step are nine of a pair's
 * ten operations. A block of 128 threads takes a tile, whose targets lie in shared memory with their densities; each group of lanes sums onto all of them, several a lane in
 * registers, and sources, staged in shared memory too, are dealt to the groups, four at a time. In double four blocks are on a multiprocessor of an H200: with targets in registers there would be three.
 * With derivatives a point has four values (in single alone, and in what that needs of double: in double nothing is gained).
 * Of targets that have many chunks of sources several tiles are made, so that none runs on when all others are done; those after the first write their sums onto the targets to parts too.
 * What a lane's targets give to a source is summed over the lanes of the group by shuffles, kept in shared memory until the chunk is done and then written to the place that this tile
 * has among the parts of the sources' leaf (runtime/gpu/gpu_both.cu), which another launch adds in their order (pair_join_cuda.cu).
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
       BEHIND = THREADS / 4 /* sources of no density behind the last: one a group, which has four lanes or more */ };
constexpr int ROOM = (int)FMM_BOTH_CHUNK + BEHIND;
constexpr unsigned ALL = 0xffffffffu;
static_assert(FMM_BOTH_MATES == 32, "one a lane");
/* Targets a lane, where each has so many values. */
template <int VALUES> constexpr int MOST = FMM_TILE_TARGETS_A_LANE(VALUES, 1);
/* On a multiprocessor, where its shared memory holds as many. */
template <typename Real, int VALUES> constexpr int BLOCKS = sizeof(Real) == sizeof(double) ? (VALUES > 1 ? 3 : 4) : (VALUES > 1 ? 5 : 6);

/* A block's shared memory. back: what the tile gives to each source; target: take_target. */
template <typename Real, int VALUES>
struct __align__(16) staged {
  Real source[WIDTH * ROOM], back[VALUES * ROOM], target[WIDTH * 32 * MOST<VALUES>];
};

struct job {
  const fmm_cuda_chunk *chunk;
  const int32_t *order; /* tile of each block, where these are of some */
  const fmm_cuda_mate *mate;
  const double *at[3], *density, *center[3], *scale;
  double *out;
  void *partial;
  const int *tiny; /* as in pair_cuda.cu */
  int64_t row_begin, row_end, n_targets;
};

struct place { int lanes, lane, group, groups, warp, in_warp; };
__device__ __forceinline__ place place_of(const fmm_cuda_chunk &chunk) {
  const int lanes = 1 << chunk.lanes_log2, thread = (int)threadIdx.x;
  return place{lanes, thread & (lanes - 1), thread >> chunk.lanes_log2, THREADS >> chunk.lanes_log2, thread >> 5, thread & 31};
}

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
__device__ __forceinline__ Real square_of(const Real (&d)[3]) { return fma(d[2], d[2], fma(d[1], d[1], d[0] * d[0])); }

/* What a point of this density gives to another that is d away from it: value, and derivatives by the root's cube. */
template <typename Real>
__device__ __forceinline__ void add_to(Real (&sum)[1], Real density, Real root, Real, const Real (&)[3]) { sum[0] = fma(density, root, sum[0]); }
template <typename Real>
__device__ __forceinline__ void add_to(Real (&sum)[4], Real density, Real root, Real cube, const Real (&d)[3]) {
  const Real g = -density * cube;
  sum[0] = fma(density, root, sum[0]);
#pragma unroll
  for (int k = 0; k < 3; k++) sum[k + 1] = fma(g, d[k], sum[k + 1]);
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
template <bool TINY, int N, int R, int VALUES, typename Real>
__device__ __forceinline__ void add_alone_of(const Real *source, int next, const Real *target, Real (&sum)[R][VALUES]) {
  Real s[N][WIDTH], at[3];
#pragma unroll
  for (int n = 0; n < N; n++) fmm_take(source + n * next, s[n]);
#pragma unroll
  for (int r = 0; r < R; r++) {
    take_target(target, r, at);
#pragma unroll
    for (int n = 0; n < N; n++) {
      const Real d[3] = {at[0] - s[n][0], at[1] - s[n][1], at[2] - s[n][2]}, root = guarded_root<TINY>(square_of(d));
      add_to(sum[r], s[n][3], root, root * root * root, d);
    }
  }
}

/* Sources [0, alone), some at a time, so that a target is read once for all of them. */
template <bool TINY, int R, int VALUES, typename Real>
__device__ __forceinline__ void add_alone(const Real *source, const Real *target, int alone, const place &p, Real (&sum)[R][VALUES]) {
  constexpr int N = TINY ? 1 : VALUES > 1 ? 2 : 3;
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
template <guard G, int N, int R, int VALUES, typename Real>
__device__ __forceinline__ void add_mates_of(const Real *const (&source)[N], const Real *target, Real (&sum)[R][VALUES], Real (&given)[N][VALUES]) {
  Real s[N][WIDTH], at[3];
#pragma unroll
  for (int n = 0; n < N; n++) {
    fmm_take(source[n], s[n]);
#pragma unroll
    for (int v = 0; v < VALUES; v++) given[n][v] = 0;
  }
#pragma unroll
  for (int r = 0; r < R; r++) {
    const Real density = take_target(target, r, at);
#pragma unroll
    for (int n = 0; n < N; n++) {
      const Real d[3] = {at[0] - s[n][0], at[1] - s[n][1], at[2] - s[n][2]}, root = root_of<G>(square_of(d)), cube = root * root * root;
      add_to(sum[r], s[n][3], root, cube, d);
      add_to(given[n], density, root, -cube, d); /* as far away in the opposite direction */
    }
  }
}

template <typename Real> __device__ __forceinline__ Real exchange(Real v, int step) { return v + __shfl_xor_sync(ALL, v, step); }

/* Of two sums over lanes those that differ in `half` too: the upper lanes go on with the second. */
template <typename Real>
__device__ __forceinline__ Real halve(Real first, Real second, bool upper, int half) {
  return (upper ? second : first) + __shfl_xor_sync(ALL, upper ? first : second, half);
}

/* Sums over lanes that differ in bits below `step`, a power of two to 8: without a loop, whose branches cost as much as the exchanges. */
template <typename Real>
__device__ __forceinline__ Real sum_below(Real v, int step) {
  if (step == 2) return exchange(v, 1);
  if (step == 4) return exchange(exchange(v, 2), 1);
  if (step == 1) return v;
  return exchange(exchange(exchange(v, 4), 2), 1);
}

/* To where the first of these lanes writes them, if it does. Of four values each lane goes on with two, then one. */
template <typename Real>
__device__ __forceinline__ void keep_below(const Real (&sum)[1], int lane, int step, bool writes, Real *to) {
  const Real v = sum_below(sum[0], step);
  if (writes && (lane & (step - 1)) == 0) *to = v;
}
template <typename Real>
__device__ __forceinline__ void keep_below(const Real (&sum)[4], int lane, int step, bool writes, Real *to) {
  const int half = step >> 1, quarter = step >> 2;
  const bool upper = lane & half, second = lane & quarter;
  if (step == 1) {
    for (int v = 0; v < 4 && writes; v++) to[v] = sum[v];
    return;
  }
  const Real a = halve(sum[0], sum[2], upper, half), b = halve(sum[1], sum[3], upper, half);
  to += upper ? 2 : 0;
  if (step == 2) {
    if (writes) to[0] = a, to[1] = b;
    return;
  }
  const Real v = sum_below(halve(a, b, second, quarter), quarter);
  if (writes && (lane & (quarter - 1)) == 0) to[second] = v;
}

/* Sources [alone, filled), four at a time that lie one after the other: all groups go as often, as their lanes are of the same warps; behind the last there are some without a density. Each quarter of a
 * group's lanes takes another of the four first, so that what quarters exchange are the same of their sums and none has to be chosen: each goes on with the one that is its first. */
template <guard G, int R, int VALUES, typename Real>
__device__ __forceinline__ void add_mates(const Real *source, Real *back, const Real *target, int alone, int filled, const place &p, Real (&sum)[R][VALUES]) {
  source = fmm_held(source), back = fmm_held(back), target = fmm_held(target_at(target, p.lane, 0));
  const int half = p.lanes >> 1, quarter = p.lanes >> 2, mine = (p.lane & half ? 2 : 0) + (p.lane & quarter ? 1 : 0);
  int done = alone;
#pragma unroll 1
  for (; done + 3 * p.groups < filled; done += 4 * p.groups) {
    const int at = done + 4 * p.group;
    Real given[4][VALUES], kept[VALUES];
    add_mates_of<G, 4, R>({source + WIDTH * (at + mine), source + WIDTH * (at + (mine ^ 1)), source + WIDTH * (at + (mine ^ 2)), source + WIDTH * (at + (mine ^ 3))}, target, sum, given);
#pragma unroll
    for (int v = 0; v < VALUES; v++) {
      const Real own = given[0][v] + __shfl_xor_sync(ALL, given[2][v], half), other = given[1][v] + __shfl_xor_sync(ALL, given[3][v], half);
      kept[v] = own + __shfl_xor_sync(ALL, other, quarter);
    }
    keep_below(kept, p.lane, quarter, true, back + VALUES * (at + mine));
  }
#pragma unroll 1
  for (; done < filled; done += p.groups) {
    Real given[1][VALUES];
    add_mates_of<G, 1, R>({source + WIDTH * (done + p.group)}, target, sum, given);
#pragma unroll
    for (int v = 0; v < VALUES; v++) given[0][v] = exchange(exchange(given[0][v], half), quarter);
    keep_below(given[0], p.lane, quarter, mine == 0, back + VALUES * (done + p.group));
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

/* Of roots of twice their value, whose cubes derivatives have. */
__device__ __forceinline__ double root_unit(int value) { return value ? 0.125 : 0.5; }

/* Of parts: those in float are of scaled densities. */
template <typename Part, typename Real>
__device__ __forceinline__ double part_unit(const job &a, int value) {
  return sizeof(Real) < sizeof(double) ? 1 : root_unit(value) * (sizeof(Part) < sizeof(Real) ? a.scale[0] : 1);
}

/* The groups' sums are added in a fixed order, those of a warp by shuffles (lanes differ by multiples of `lanes`), in double. more: where they go among parts there are some of an earlier chunk. */
template <typename Part, typename Real, int R, int VALUES>
__device__ __forceinline__ void add_groups(const job &a, const fmm_cuda_chunk &chunk, const place &p, const Real (&sum)[R][VALUES], bool more, double *room) {
  constexpr bool IN_FLOAT = sizeof(Real) < sizeof(double);
  const int held = p.lanes * R;
#pragma unroll
  for (int r = 0; r < R; r++)
#pragma unroll
    for (int v = 0; v < VALUES; v++) {
      double f = sum[r][v];
      for (int step = 16; step >= p.lanes; step >>= 1) f = exchange(f, step);
      if (p.in_warp < p.lanes) room[(p.warp * VALUES + v) * held + p.lane + r * p.lanes] = f;
    }
  __syncthreads();
  for (int i = threadIdx.x; i < VALUES * chunk.target_count; i += THREADS) {
    const int v = VALUES > 1 ? i / chunk.target_count : 0, t = i - v * chunk.target_count;
    double f = 0;
    for (int w = 0; w < WARPS; w++) f += room[(w * VALUES + v) * held + t];
    if (chunk.own < 0) a.out[v * a.n_targets + chunk.target_begin + t] += (IN_FLOAT ? a.scale[1] : root_unit(v)) * f;
    else {
      Part *part = (Part *)a.partial + VALUES * (chunk.own + t) + v;
      *part = (Part)(part_unit<Part, Real>(a, v) * f + (more ? *part : 0));
    }
  }
}

/* What the tile gives to its mates that are asked for. */
template <typename Part, int VALUES, typename Real>
__device__ __forceinline__ void write_parts(const job &a, const fmm_cuda_chunk &chunk, const fmm_cuda_mate &mate, unsigned asked, const place &p, const Real *back) {
  const Real unit = (Real)part_unit<Part, Real>(a, p.in_warp % VALUES);
  for (int n = p.warp; n < chunk.mates; n += WARPS) {
    const int64_t partial = __shfl_sync(ALL, mate.partial, n);
    const int count = __shfl_sync(ALL, mate.count, n), place = __shfl_sync(ALL, mate.place, n);
    if (asked >> n & 1)
      for (int i = p.in_warp; i < VALUES * count; i += 32) ((Part *)a.partial)[VALUES * partial + i] = (Part)(unit * back[VALUES * place + i]);
  }
}

template <typename Real, typename Part, bool MAY_BE_NEAR, int VALUES, int R>
__device__ __forceinline__ void sum_tile(const job &a, fmm_cuda_chunk chunk, staged<Real, VALUES> &s) {
  constexpr bool IN_FLOAT = sizeof(Real) < sizeof(double);
  const place p = place_of(chunk);
  const bool wanted = chunk.row >= a.row_begin && chunk.row < a.row_end, tiny = !IN_FLOAT && *a.tiny, skips_alone = IN_FLOAT && chunk.precise == FMM_BOTH_ALONE_PRECISE;
  Real sum[R][VALUES] = {};
  stage_targets(a, chunk, s.target);
  for (bool more = false;; more = true) {
    fmm_cuda_mate mate = {};
    if (p.in_warp < chunk.mates) mate = a.mate[chunk.mate_begin + p.in_warp];
    const unsigned asked = __ballot_sync(ALL, p.in_warp < chunk.mates && mate.partial >= 0 && mate.row >= a.row_begin && mate.row < a.row_end);
    if (wanted || asked) { /* all warps alike */
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
      write_parts<Part, VALUES>(a, chunk, mate, asked, p, s.back);
    }
    if constexpr (IN_FLOAT)
      if (wanted) {
        if (VALUES > 1) __syncthreads(); /* warps' sums need that room too */
        add_groups<Part>(a, chunk, p, sum, more, (double *)s.source); /* each chunk's */
      }
    if (chunk.next < 0) break;
    if constexpr (IN_FLOAT) {
#pragma unroll
      for (int r = 0; r < R; r++)
#pragma unroll
        for (int v = 0; v < VALUES; v++) sum[r][v] = 0;
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
    add_groups<Part>(a, chunk, p, sum, false, (double *)s.source);
  }
}

/* RUN(r) for so many targets a lane, r a constant; in functions of VALUES. */
#define FMM_CASE_TARGETS(r, RUN)                \
  case r:                                       \
    if constexpr (r <= MOST<VALUES>) RUN(r);    \
    break;
#define FMM_SWITCH_TARGETS(per_lane, RUN)                                                                                                                                                    \
  switch (per_lane) {                                                                                                                                                                        \
    FMM_CASE_TARGETS(1, RUN) FMM_CASE_TARGETS(2, RUN) FMM_CASE_TARGETS(3, RUN) FMM_CASE_TARGETS(4, RUN) FMM_CASE_TARGETS(5, RUN) FMM_CASE_TARGETS(6, RUN) FMM_CASE_TARGETS(7, RUN)           \
    FMM_CASE_TARGETS(8, RUN) FMM_CASE_TARGETS(9, RUN) FMM_CASE_TARGETS(10, RUN)                                                                                                              \
  }

template <typename Real, typename Part, bool MAY_BE_NEAR, int VALUES>
__device__ __forceinline__ void sum_number(const job &a, int number, staged<Real, VALUES> &s) {
  static_assert(sizeof(double) * WARPS * 32 * MOST<VALUES> * VALUES <= sizeof s.source + (VALUES > 1 ? sizeof s.back : 0), "the warps' sums fit where sources were");
  const fmm_cuda_chunk first = a.chunk[number];
  if (sizeof(Real) < sizeof(double) && first.precise == FMM_BOTH_ALL_PRECISE) return;
#define RUN(r) sum_tile<Real, Part, MAY_BE_NEAR, VALUES, r>(a, first, s)
  FMM_SWITCH_TARGETS(first.per_lane, RUN)
#undef RUN
}

/* A block a tile. */
template <typename Real, typename Part, bool MAY_BE_NEAR, int VALUES>
__global__ void __launch_bounds__(THREADS, BLOCKS<Real, VALUES>) sum_both(const job a) {
  extern __shared__ __align__(16) char memory[];
  sum_number<Real, Part, MAY_BE_NEAR, VALUES>(a, sizeof(Part) < sizeof(Real) ? a.order[blockIdx.x] : (int)blockIdx.x, *(staged<Real, VALUES> *)memory);
}

/* Sources that are summed onto the tile alone, in double. */
template <int VALUES, int R>
__device__ __forceinline__ void sum_alone(const job &a, fmm_cuda_chunk chunk, staged<double, VALUES> &s) {
  const place p = place_of(chunk);
  double sum[R][VALUES] = {};
  stage_targets(a, chunk, s.target);
  for (;;) {
    fmm_cuda_mate mate = {};
    if (p.in_warp < chunk.mates) mate = a.mate[chunk.mate_begin + p.in_warp];
    chunk.mates = __popc(__ballot_sync(ALL, p.in_warp < chunk.mates && mate.partial < 0)), chunk.filled = chunk.alone; /* they come first */
    if (chunk.mates == 0) break; /* all warps alike */
    stage_sources(a, chunk, mate, p, s.source);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    if (*a.tiny) add_alone<true, R>(s.source, s.target, chunk.alone, p, sum);
    else add_alone<false, R>(s.source, s.target, chunk.alone, p, sum);
    __syncthreads();
    if (chunk.next < 0) break;
    chunk = a.chunk[chunk.next];
  }
  __pipeline_commit();
  __pipeline_wait_prior(0); /* targets are on their way where there were none */
  add_groups<double>(a, chunk, p, sum, false, (double *)s.source);
}

/* A block a tile, onto which its own leaf is summed in double, where float has left that out. */
template <int VALUES>
__global__ void __launch_bounds__(THREADS, BLOCKS<double, VALUES>) sum_alone_in_double(const job a) {
  extern __shared__ __align__(16) char memory[];
  const fmm_cuda_chunk first = a.chunk[a.order[blockIdx.x]];
  if (first.own >= 0 || first.row < a.row_begin || first.row >= a.row_end) return;
#define RUN(r) sum_alone<VALUES, r>(a, first, *(staged<double, VALUES> *)memory)
  FMM_SWITCH_TARGETS(first.per_lane, RUN)
#undef RUN
}

/* Brings a kernel to the device, and lets it have the shared memory that it needs. */
template <typename Real, typename Part, int VALUES>
cudaError_t prepare(int near) {
  return cudaFuncSetAttribute(near ? sum_both<Real, Part, true, VALUES> : sum_both<Real, Part, false, VALUES>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)sizeof(staged<Real, VALUES>));
}
template <typename Real, typename Part>
cudaError_t prepare(const fmm_gpu_plan *p, int near) { return p->gradient ? prepare<Real, Part, 4>(near) : prepare<Real, Part, 1>(near); }

template <typename Real, typename Part, int VALUES>
cudaError_t sum(const fmm_gpu_plan *p, const job &a, int64_t tiles, cudaStream_t stream) {
  return fmm_cuda_launch(p->sums[FMM_SUM_U].near ? sum_both<Real, Part, true, VALUES> : sum_both<Real, Part, false, VALUES>, dim3((unsigned)tiles), THREADS, sizeof(staged<Real, VALUES>), stream, p->carveout, a);
}
template <typename Real, typename Part>
cudaError_t sum(const fmm_gpu_plan *p, const job &a, int64_t tiles, cudaStream_t stream) { return p->gradient ? sum<Real, Part, 4>(p, a, tiles, stream) : sum<Real, Part, 1>(p, a, tiles, stream); }

int alone_bytes(const fmm_gpu_plan *p) { return (int)(p->gradient ? sizeof(staged<double, 4>) : sizeof(staged<double, 1>)); }

job job_of(const fmm_gpu_plan *p, int64_t row_begin, int64_t row_end) {
  const fmm_cuda_sums *s = &p->sums[FMM_SUM_U];
  return job{s->d_chunk, NULL, s->d_mate, {p->d_source[0], p->d_source[1], p->d_source[2]}, p->d_density, {p->d_center[0], p->d_center[1], p->d_center[2]}, p->d_scale, p->d_near, s->d_partial, p->d_tiny,
             row_begin, row_end, p->n_targets};
}
}

int fmm_cuda_both_bytes(int gradient, int single) {
  if (gradient) return single ? (int)sizeof(staged<double, 4>) : 0; /* of tiles that are too tight for float; in double gradients are summed one way */
  return (int)sizeof(staged<double, 1>);
}

int fmm_cuda_both_serves(const fmm_gpu_plan *p) {
  return p->both_fits && p->same_points && fmm_pair_both_on_gpu(p->info, p->gradient, p->columns, !fmm_pair_newton_on_gpu(p->tolerance), p->sums[FMM_SUM_U].single);
}

cudaError_t fmm_cuda_both_prepare(const fmm_gpu_plan *p) {
  const int single = p->sums[FMM_SUM_U].single, one_leaf = p->n_boxes == 1;
  const cudaError_t error = single ? prepare<float, float>(p, 0) : prepare<double, double>(p, 0);
  if (error != cudaSuccess || !one_leaf) return error;
  return single ? prepare<float, float>(p, 1) : prepare<double, double>(p, 1);
}

cudaError_t fmm_cuda_both_prepare_tight(const fmm_gpu_plan *p) {
  const cudaError_t error = prepare<double, float>(p, p->sums[FMM_SUM_U].near);
  if (error != cudaSuccess) return error;
  return cudaFuncSetAttribute(p->gradient ? sum_alone_in_double<4> : sum_alone_in_double<1>, cudaFuncAttributeMaxDynamicSharedMemorySize, alone_bytes(p));
}

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
  return fmm_cuda_launch(p->gradient ? sum_alone_in_double<4> : sum_alone_in_double<1>, dim3((unsigned)s->n_alone_precise), THREADS, (size_t)alone_bytes(p), stream, p->carveout, a);
}
