/* Pair sums on the GPU for one pair interaction (compiled once each; FMM_CUDA_PAIR names it): U, W, X and the point parts of up and down are
 * one kernel template over what the sources and the targets are. A block of 128 threads takes a tile (gpu_cuda.h): each group of lanes holds
 * all of the tile's targets in registers, several a lane; sources are staged in shared memory and dealt to the groups in turn; the groups'
 * sums are added in a fixed order at the end. Nothing is atomic and each value is written by one thread: bits depend on the tree alone.
 * Several density columns go together, as many as fit the registers, and share each pair's distance and root.
 * Where one side is a surface, coordinates are relative to the target box's centre: a surface far smaller than its place's coordinates would lose its shape in them.
 * In float they are so for all sums, densities are scaled by a power of two, and each staged chunk is added to double sums; tiles that are too tight for that
 * (pair_tight_cuda.cu) are done in double. */
#include <cuda_pipeline.h>

#include "kernels/held_cuda.h"
#include "kernels/pair/shell.h"
#include "runtime/gpu/gpu_cuda.h"

#define FMM_PAIR_INFO(name) static constexpr fmm_pair_info info_##name
#define FMM_PAIR_INFO_PASS
#include FMM_PAIR_HEADER
#undef FMM_PAIR_INFO_PASS
#undef FMM_PAIR_INFO
#define FMM_JOIN_(a, b) a##b
#define FMM_JOIN(a, b) FMM_JOIN_(a, b)
#define FMM_CUDA_MULTIPLE (FMM_JOIN(info_, FMM_CUDA_PAIR).inverse_distance ? 2 : 1)
#include "kernels/pair/environment_cuda.h"

namespace {
enum { THREADS = 128, SHARED_BYTES = 16384, MOST_STAGED = 1024 /* sources */, MOST_ORDER_OF_NEWTON = 8 };
enum { POINTS, SURFACES, OWN_SURFACE /* sources: of the target box itself */ };
constexpr fmm_pair_info info = FMM_JOIN(info_, FMM_CUDA_PAIR);
constexpr int COMPONENTS = info.components;

constexpr int values_of(int gradient) { return info.outputs * (gradient ? 4 : 1); }
/* Columns that go together where there are several. */
constexpr int together(int gradient) { return FMM_TILE_COLUMNS(values_of(gradient)); }
/* Values staged of a source: coordinates, densities, normal; even. */
constexpr int width_of(int columns) { return (3 + COMPONENTS * columns + (info.takes_normals ? 3 : 0) + 1) / 2 * 2; }
/* Targets a lane can hold without spilling: 3 coordinates and the sums each. */
constexpr int most_of(int values, bool points) { return FMM_TILE_TARGETS_A_LANE(values, points); }
/* Shared memory, in doubles, for sources and, after these, the warps' sums. */
constexpr int room_of(int values, bool points) { return THREADS * most_of(values, points) * values > SHARED_BYTES / 8 ? THREADS * most_of(values, points) * values : SHARED_BYTES / 8; }
/* Whether the double sums to which those in float are added lie behind that: where a target has several they would take most of the registers, and more blocks than fit are worth more. */
constexpr bool sums_aside(bool in_float, int values) { return in_float && values > 1 && values <= 8; }

struct job {
  const fmm_cuda_tile *tile;
  const int32_t *order;                          /* tile of each block; NULL: as they are */
  const fmm_cuda_range *range;
  const int32_t *box;
  const double *source[3], *normal[3], *density; /* points */
  const double *surface, *center[3], *half;      /* surfaces */
  const double *equivalent;
  double source_radius, target_radius;
  const double *target[3];
  double *out, *partial;
  int64_t n_sources, n_targets;
  const int *tiny;                      /* coordinates whose differences' squares the seed may flush */
  int n_surface, columns, add, precise; /* precise: tiles of this mark only; -1: all */
  const double *scale;                  /* of densities in float, and its inverse */
  const double *shell, *degree;         /* (L2P) the target box's shell fields, to be multiplied by this (kernels/shell_field.h) */
  double shell_decay2;
  double params[FMM_MAX_PARAMS];
};

/* Column c of the K from `column` on; those beyond the last repeat it. */
template <int K>
__device__ __forceinline__ int column_of(const job &a, int column, int c) { return K == 1 ? column : min(column + c, a.columns - 1); }

/* Columns [column, column + K) of one source; AS_IS: coordinates as they are, else relative to `center`. */
template <typename Real, int SOURCES, bool AS_IS, int K>
__device__ __forceinline__ void stage_source(const job &a, Real *to, const fmm_cuda_range &range, int box, int64_t i, int column, const double *center, double scale) {
  double at[3];
  if (SOURCES == POINTS) {
    int64_t j = range.begin + i;
    constexpr bool SAME = sizeof(Real) == sizeof(double); /* copied without waiting */
    for (int k = 0; k < 3; k++)
      if (AS_IS) __pipeline_memcpy_async(to + k, a.source[k] + j, sizeof(Real));
      else at[k] = a.source[k][j] - center[k];
#pragma unroll
    for (int k = 0; k < COMPONENTS; k++)
#pragma unroll
      for (int c = 0; c < K; c++) {
        const double *q = a.density + ((int64_t)k * a.columns + column_of<K>(a, column, c)) * a.n_sources + j;
        if (SAME) __pipeline_memcpy_async(to + 3 + k * K + c, q, sizeof(Real));
        else to[3 + k * K + c] = (Real)(scale * *q);
      }
    if (info.takes_normals)
      for (int k = 0; k < 3; k++)
        if (SAME) __pipeline_memcpy_async(to + 3 + COMPONENTS * K + k, a.normal[k] + j, sizeof(Real));
        else to[3 + COMPONENTS * K + k] = (Real)a.normal[k][j];
    if (AS_IS) return;
  } else {
    double radius = a.source_radius * a.half[box];
    for (int k = 0; k < 3; k++) at[k] = SOURCES == OWN_SURFACE ? radius * a.surface[3 * i + k] : a.center[k][box] - center[k] + radius * a.surface[3 * i + k];
#pragma unroll
    for (int c = 0; c < K; c++) {
      const double *q = a.equivalent + ((int64_t)box * a.columns + column_of<K>(a, column, c)) * COMPONENTS * a.n_surface + i;
#pragma unroll
      for (int k = 0; k < COMPONENTS; k++) to[3 + k * K + c] = (Real)(scale * q[k * a.n_surface]);
    }
  }
#pragma unroll
  for (int k = 0; k < 3; k++) to[k] = (Real)at[k];
}

/* A shell field's value (which 0) or derivative at one of the box's points. */
__device__ __forceinline__ double shell_at(const job &a, const fmm_cuda_tile &tile, int target, int64_t part, int which) {
  if (which && a.shell_decay2 == 0) return 0; /* a constant's */
  const double strength = a.shell[part] * a.degree[tile.box];
  double d[3], z = 0;
  if (a.shell_decay2 == 0 || strength == 0) return strength; /* none of boxes that the kernel dies away in, where the series do not hold */
  for (int k = 0; k < 3; k++) d[k] = a.target[k][tile.target_begin + target] - a.center[k][tile.box], z += d[k] * d[k];
  z *= a.shell_decay2;
  return which ? 2 * a.shell_decay2 * strength * fmm_shell_slope(z) * d[which - 1] : strength * fmm_shell_value(z);
}

/* One group's share of the staged sources onto its targets. */
template <class Acc, int GRADIENT, int K, int R, int GUARD>
__device__ __forceinline__ void add_pairs(const typename Acc::Real *staged, int filled, int group, int groups, const typename Acc::Real (*at)[3],
                                          const typename Acc::Real *params, typename Acc::Real (*sum)[values_of(GRADIENT) * K]) {
  typedef typename Acc::Real Real;
  constexpr int WIDTH = width_of(K);
  constexpr int MANY = sizeof(Real) < sizeof(double) ? 5 : 4;
  staged = fmm_held(staged);
#pragma unroll(R <= 2 ? 4 : R <= MANY ? 2 : 1)
  for (int j = group; j < filled; j += groups) {
    const Real *source = staged + j * WIDTH;
    Real s[WIDTH];
#pragma unroll
    for (int k = 0; k < WIDTH; k++) s[k] = source[k];
#pragma unroll
    for (int r = 0; r < R; r++)
      Acc::template pair<GUARD, GRADIENT, K>(at[r][0] - s[0], at[r][1] - s[1], at[r][2] - s[2], s + 3, s + 3 + COMPONENTS * K, params, sum[r]);
  }
}

template <class Acc, int GRADIENT, int SOURCES, int TARGETS, int K, int R>
__device__ __forceinline__ void sum_tile(const job &a, const fmm_cuda_tile &tile, double *shared, int column) {
  typedef typename Acc::Real Real;
  constexpr int VALUES = values_of(GRADIENT) * K, WIDTH = width_of(K);
  constexpr bool SPLIT = sizeof(Real) < sizeof(double), BETWEEN_POINTS = SOURCES == POINTS && TARGETS == POINTS, AS_IS = !SPLIT && BETWEEN_POINTS, ASIDE = sums_aside(SPLIT, VALUES), HELD = SPLIT && !ASIDE;
  constexpr int CHUNK = SHARED_BYTES / (int)(WIDTH * sizeof(Real)) < MOST_STAGED ? SHARED_BYTES / (int)(WIDTH * sizeof(Real)) : MOST_STAGED;
  Real *staged = (Real *)shared;
  const int lanes = 1 << tile.lanes_log2, lane = threadIdx.x & (lanes - 1), group = threadIdx.x >> tile.lanes_log2, groups = THREADS >> tile.lanes_log2;
  double center[3] = {0, 0, 0}, scale = SPLIT ? a.scale[0] : 1;
  for (int k = 0; k < 3 && !AS_IS; k++) center[k] = a.center[k][tile.box];
  Real params[FMM_MAX_PARAMS];
#pragma unroll
  for (int k = 0; k < info.n_params; k++) params[k] = (Real)a.params[k];

  Real at[R][3], sum[R][VALUES];
  double total[HELD ? R : 1][VALUES], *aside = shared + room_of(VALUES, BETWEEN_POINTS) + threadIdx.x; /* value v of target r: aside[(r * VALUES + v) * THREADS] */
#pragma unroll
  for (int r = 0; r < R; r++) {
    int i = min(lane + r * lanes, tile.target_count - 1);
    for (int k = 0; k < 3; k++) {
      at[r][k] = (Real)(TARGETS == POINTS ? a.target[k][tile.target_begin + i] - center[k]
                                          : a.target_radius * a.half[tile.box] * a.surface[3 * (tile.target_begin + i) + k]);
    }
#pragma unroll
    for (int v = 0; v < VALUES; v++) {
      sum[r][v] = 0;
      if (HELD) total[HELD ? r : 0][v] = 0;
      if (ASIDE) aside[(r * VALUES + v) * THREADS] = 0;
    }
  }

  int next = 0;
  int64_t done = 0;
  while (next < tile.range_count) { /* uniform over the block */
    int filled = 0, guard = 0;
    if (SOURCES != POINTS) { /* all are of one size: a thread finds its box by itself, so that loads of several boxes are under way */
      filled = (int)min((int64_t)CHUNK, (int64_t)(tile.range_count - next) * a.n_surface - done);
#pragma unroll(SOURCES == SURFACES ? 4 : 1)
      for (int i = threadIdx.x; i < filled; i += THREADS) {
        int at_point = (int)done + i, nth = at_point / a.n_surface;
        stage_source<Real, SOURCES, AS_IS, K>(a, staged + i * WIDTH, fmm_cuda_range{}, a.box[tile.range_begin + next + nth], at_point - nth * a.n_surface, column, center, scale);
      }
      done += filled;
      next += (int)done / a.n_surface, done = (int)done % a.n_surface;
    }
    while (SOURCES == POINTS && next < tile.range_count && filled < CHUNK) {
      fmm_cuda_range range = a.range[tile.range_begin + next];
      if (filled && range.guard != guard) break;
      guard = range.guard;
      int take = (int)min((int64_t)(CHUNK - filled), range.count - done);
#pragma unroll(AS_IS || COMPONENTS * K == 1 ? 4 : 1) /* more take more registers */
      for (int i = threadIdx.x; i < take; i += THREADS) stage_source<Real, SOURCES, AS_IS, K>(a, staged + (filled + i) * WIDTH, range, 0, done + i, column, center, scale);
      filled += take;
      done += take;
      if (done == range.count) next++, done = 0;
    }
    if (SOURCES == POINTS && !SPLIT) {
      __pipeline_commit();
      __pipeline_wait_prior(0);
    }
    __syncthreads();
    if (BETWEEN_POINTS && guard && !SPLIT && *a.tiny) add_pairs<Acc, GRADIENT, K, R, FMM_GUARDED>(staged, filled, group, groups, at, params, sum);
    else if (BETWEEN_POINTS && guard) add_pairs<Acc, GRADIENT, K, R, FMM_NONZERO>(staged, filled, group, groups, at, params, sum);
    else add_pairs<Acc, GRADIENT, K, R, FMM_OPEN>(staged, filled, group, groups, at, params, sum);
    if (SPLIT)
#pragma unroll
      for (int r = 0; r < R; r++)
#pragma unroll
        for (int v = 0; v < VALUES; v++) {
          if (HELD) total[HELD ? r : 0][v] += sum[r][v];
          if (ASIDE) aside[(r * VALUES + v) * THREADS] += sum[r][v];
          sum[r][v] = 0;
        }
    __syncthreads();
  }

  /* Sums over the groups of a warp by shuffles (lane differs by multiples of `lanes`), over the warps in order. */
  const int held = lanes * R, warp = threadIdx.x >> 5;
#pragma unroll
  for (int r = 0; r < R; r++)
#pragma unroll
    for (int v = 0; v < VALUES; v++) {
      double f = ASIDE ? aside[(r * VALUES + v) * THREADS] : HELD ? total[HELD ? r : 0][v] : (double)sum[r][v];
      for (int step = 16; step >= lanes; step >>= 1) f += __shfl_xor_sync(0xffffffffu, f, step);
      if ((threadIdx.x & 31) < lanes) shared[(warp * VALUES + v) * held + lane + r * lanes] = f;
    }
  __syncthreads();
  if (SPLIT) scale = a.scale[1];
  for (int i = threadIdx.x; i < tile.target_count * VALUES; i += THREADS) {
    int v = i / tile.target_count, t = i - v * tile.target_count, output = v / K, to_column = column + v % K;
    if (to_column >= a.columns) continue;
    double f = 0;
    for (int g = 0; g < THREADS / 32; g++) f += shared[(g * VALUES + v) * held + t];
    if (SPLIT) f *= scale;
    if (Acc::MULTIPLE == 2) f *= GRADIENT && output % 4 ? 0.125 : 0.5; /* of the root; derivatives have its cube */
    if (SOURCES == OWN_SURFACE && info.shell_field) f += shell_at(a, tile, t, ((int64_t)tile.box * a.columns + to_column) * info.outputs + output / (GRADIENT ? 4 : 1), GRADIENT ? output % 4 : 0);
    double *to = TARGETS == POINTS ? a.out + ((int64_t)output * a.columns + to_column) * a.n_targets + tile.target_begin + t
                                   : a.out + (((int64_t)tile.slot * a.columns + to_column) * (VALUES / K) + output) * a.n_surface + tile.target_begin + t;
    if (SOURCES == SURFACES && TARGETS == POINTS && tile.partial >= 0) a.partial[tile.partial + (int64_t)(output * a.columns + to_column) * tile.target_count + t] = f;
    else *to = a.add ? *to + f : f;
  }
}

template <class Acc, int GRADIENT, int SOURCES, int TARGETS, int K>
struct sums {
  static constexpr int VALUES = values_of(GRADIENT) * K, MOST = most_of(VALUES, SOURCES == POINTS && TARGETS == POINTS);
  static constexpr int DOUBLES = room_of(VALUES, SOURCES == POINTS && TARGETS == POINTS) + (sums_aside(sizeof(typename Acc::Real) < sizeof(double), VALUES) ? THREADS * MOST * VALUES : 0);
  static __device__ __forceinline__ void run(const job &a, int number, double *shared) {
    const fmm_cuda_tile tile = a.tile[number];
    if (a.precise >= 0 && tile.precise != a.precise) return;
#define CASE(r) \
  case r: if (r <= MOST) sum_tile<Acc, GRADIENT, SOURCES, TARGETS, K, (r <= MOST ? r : 1)>(a, tile, shared, blockIdx.y * K); break;
    switch (tile.per_lane) { CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8) CASE(9) CASE(10) }
#undef CASE
  }
};

/* A block a tile. */
template <class Acc, int GRADIENT, int SOURCES, int TARGETS, int K>
__global__ void __launch_bounds__(THREADS) pair_sums(const job a) {
  __shared__ __align__(16) double shared[sums<Acc, GRADIENT, SOURCES, TARGETS, K>::DOUBLES];
  sums<Acc, GRADIENT, SOURCES, TARGETS, K>::run(a, a.order ? a.order[blockIdx.x] : (int)blockIdx.x, shared);
}

/* Blocks that stay and take tiles in turn, until there are none left. Which block sums a tile changes nothing in its sums. */
template <class Acc, int GRADIENT, int SOURCES, int TARGETS, int K>
__global__ void __launch_bounds__(THREADS) pair_sums_in_turn(const job a, unsigned *next, int tiles) {
  __shared__ __align__(16) double shared[sums<Acc, GRADIENT, SOURCES, TARGETS, K>::DOUBLES];
  __shared__ unsigned mine;
  for (;;) {
    __syncthreads();
    if (threadIdx.x == 0) mine = atomicInc(next, 0xffffffffu);
    __syncthreads();
    if (mine >= (unsigned)tiles) return;
    sums<Acc, GRADIENT, SOURCES, TARGETS, K>::run(a, (int)mine, shared);
  }
}

/* All columns in one launch: one at a time when there is one, else as many as go together. */
template <class Acc, int GRADIENT, int SOURCES, int TARGETS>
void launch_columns(const fmm_cuda_pair_job *j, const job &a) {
  constexpr int K = together(GRADIENT);
  dim3 blocks((unsigned)(j->tile_end - j->tile_begin), a.columns == 1 ? 1 : (a.columns + K - 1) / K);
  int carveout = j->plan->carveout;
  if (a.columns == 1) fmm_cuda_launch(pair_sums<Acc, GRADIENT, SOURCES, TARGETS, 1>, blocks, THREADS, 0, j->stream, carveout, a);
  else fmm_cuda_launch(pair_sums<Acc, GRADIENT, SOURCES, TARGETS, K>, blocks, THREADS, 0, j->stream, carveout, a);
}

template <class Acc>
void launch(const fmm_cuda_pair_job *j, const job &a, int gradient) {
  if (j->sum == FMM_SUM_U && gradient) launch_columns<Acc, 1, POINTS, POINTS>(j, a);
  else if (j->sum == FMM_SUM_U) launch_columns<Acc, 0, POINTS, POINTS>(j, a);
  else if (j->sum == FMM_SUM_P2M || j->sum == FMM_SUM_X) launch_columns<Acc, 0, POINTS, SURFACES>(j, a);
  else if (j->sum == FMM_SUM_L2P && gradient) launch_columns<Acc, 1, OWN_SURFACE, POINTS>(j, a);
  else if (j->sum == FMM_SUM_L2P) launch_columns<Acc, 0, OWN_SURFACE, POINTS>(j, a);
  else if (gradient) launch_columns<Acc, 1, SURFACES, POINTS>(j, a);
  else launch_columns<Acc, 0, SURFACES, POINTS>(j, a);
}

job job_of(const fmm_cuda_pair_job *j) {
  const fmm_gpu_plan *p = j->plan;
  const fmm_cuda_sums *sums = &p->sums[j->sum];
  job a = {};
  a.tile = sums->d_tile + j->tile_begin;
  a.partial = sums->d_partial;
  a.order = j->tile_end - j->tile_begin == sums->n_tiles ? sums->d_order : NULL;
  a.range = sums->d_range;
  a.box = sums->d_box;
  for (int k = 0; k < 3; k++) a.source[k] = p->d_source[k], a.normal[k] = p->d_normal[k], a.center[k] = p->d_center[k], a.target[k] = p->d_target[k];
  a.density = p->d_density;
  a.surface = p->d_surface;
  a.half = p->d_half;
  a.n_sources = p->n_sources;
  a.n_targets = p->n_targets;
  a.n_surface = p->n_surface;
  a.columns = p->columns;
  a.scale = p->d_scale;
  a.precise = -1;
  a.tiny = p->d_tiny;
  memcpy(a.params, p->params, sizeof a.params);
  a.add = 1;
  switch (j->sum) {
    case FMM_SUM_P2M: a.target_radius = p->outer_radius, a.out = p->d_work[0], a.add = 0; break;
    case FMM_SUM_X: a.target_radius = FMM_INNER_RADIUS, a.out = p->d_down_check; break;
    case FMM_SUM_W: a.source_radius = FMM_INNER_RADIUS, a.equivalent = p->d_up_equivalent, a.out = p->d_near; break;
    case FMM_SUM_L2P:
      a.source_radius = p->outer_radius, a.equivalent = p->d_down_equivalent, a.out = p->d_far;
      a.shell = p->d_shell, a.degree = p->d_degree_out, a.shell_decay2 = p->shell_decay2;
      break;
    default: a.out = p->d_near;
  }
  return a;
}
}

/* Newton's 1.3e-12 serves where the tolerance is well above it; onto and from surfaces up to the order whose inverses amplify it by less than the tolerance
 * leaves (kernels/phase.h). */
extern "C" cudaError_t FMM_JOIN(fmm_cuda_pair_, FMM_CUDA_PAIR)(const fmm_cuda_pair_job *j) {
  if (j->tile_end <= j->tile_begin) return cudaSuccess;
  const fmm_gpu_plan *p = j->plan;
  const fmm_cuda_sums *sums = &p->sums[j->sum];
  job a = job_of(j);
  int gradient = p->gradient && j->sum != FMM_SUM_P2M && j->sum != FMM_SUM_X;
  if ((!sums->single || sums->n_precise) && j->tight_stream) {
    fmm_cuda_pair_job in_double = *j;
    job precise = a;
    in_double.stream = j->tight_stream;
    if (sums->single) precise.precise = 1;
    if (sums->single && sums->d_precise && j->tile_end - j->tile_begin == sums->n_tiles) precise.order = sums->d_precise, in_double.tile_end = sums->n_precise; /* a block for each, not for all tiles */
    if (fmm_pair_newton_on_gpu(p->tolerance) && (j->sum == FMM_SUM_U || p->order <= MOST_ORDER_OF_NEWTON)) launch<newton>(&in_double, precise, gradient);
    else launch<third>(&in_double, precise, gradient);
  }
  if (sums->n_precise) a.precise = 0;
  if (sums->single && j->takers)
    fmm_cuda_launch(pair_sums_in_turn<single, 0, POINTS, POINTS, 1>, dim3((unsigned)j->takers), THREADS, 0, j->stream, p->carveout, a, p->d_next_tile, (int)(j->tile_end - j->tile_begin));
  else if (sums->single) launch<single>(j, a, gradient);
  return cudaGetLastError();
}

/* Most targets a lane can hold of these columns. */
extern "C" int FMM_JOIN(fmm_cuda_most_, FMM_CUDA_PAIR)(int gradient, int points, int columns) {
  return most_of(values_of(gradient) * (columns == 1 ? 1 : together(gradient)), points);
}
