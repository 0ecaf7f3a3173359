/* Leaves downward on the GPU in one launch, for the kernel 1/r where both halves have kernels of their own: check potentials of sixteen leaves go by parity blocks to the leaves' solid harmonics
 * (kernels/harmonics_cuda.h), shell fields included, of which potentials, and gradients, at the leaves' points are summed (L2P) while they are in shared memory: they are neither written nor read. In float where down is,
 * but for degree 0, which is the same all over a leaf. With gradients in double they go to equivalent densities (the inversion of kernels/parity_cuda.cu), and sums are from surfaces (kernels/pair/from_surface_cuda.h).
 * Lanes follow one another through the points of all sixteen (one or two of a leaf a lane), warps taking the next for 32 lanes as they become free. */
#include "kernels/harmonics_cuda.h"
#include "kernels/leaves_cuda.h"
#include "kernels/pair/from_surface_cuda.h"

namespace {
constexpr unsigned ALL_LANES = 0xffffffffu;

struct points_job {
  const fmm_cuda_tile *tile;
  const double *point[3], *center[3], *half, *degree; /* degree: by which shell fields beside surfaces are multiplied, by box */
  double radius, *out;
  int64_t value_stride;  /* from a point's potential to its derivatives */
  const double *moments; /* matrices of blocks, and the places of their rows */
  const int16_t *slots;
};
/* A leaf's place and points; end: lanes up to its last one. Of its potentials, constant is the same at all; what is summed is times unit. */
struct leaf { double center[3], half, constant, unit; int64_t begin; int end, count; };

/* By the first warp, when the tables are there, for lanes of so many points; scale: of equivalent densities. */
template <int POINTS>
__device__ __forceinline__ void find_leaves(const fmm_cuda_parity &p, const points_job &a, leaf *of, double *scale) {
  const int row = threadIdx.x & (BOXES - 1);
  leaf own = {};
  int lanes = 0;
  double factor = 0;
  if (at_of(row) < p.n_boxes) {
    const fmm_cuda_tile tile = a.tile[at_of(row)];
    own = leaf{{a.center[0][tile.box], a.center[1][tile.box], a.center[2][tile.box]}, a.half[tile.box], a.degree[tile.box], 1, tile.target_begin, 0, tile.target_count};
    lanes = (tile.target_count + POINTS - 1) / POINTS;
    factor = scale_of(p, tile.box);
  }
#pragma unroll
  for (int step = 1; step < BOXES; step *= 2) {
    const int before = __shfl_up_sync(ALL_LANES, lanes, step);
    if ((int)threadIdx.x >= step) lanes += before;
  }
  own.end = lanes;
  if (threadIdx.x < BOXES) of[row] = own, scale[row] = factor;
}

/* All points of the sixteen leaves: give(a leaf's row, it, which of its lanes). */
template <typename GIVE>
__device__ __forceinline__ void for_lanes(const leaf *leaves, const GIVE &give) {
  __shared__ unsigned next; /* 32 lanes */
  const int lane = threadIdx.x & 31, lanes = leaves[BOXES - 1].end;
  if (threadIdx.x == 0) next = 0;
  __syncthreads();
#pragma unroll 1
  for (;;) {
    unsigned turn = 0;
    if (lane == 0) turn = atomicInc(&next, 0xffffffffu);
    const int at = 32 * (int)__shfl_sync(ALL_LANES, turn, 0) + lane;
    if (at - lane >= lanes) return;
    int row = 0;
#pragma unroll
    for (int step = BOXES / 2; step; step >>= 1)
      if (leaves[row + step - 1].end <= at) row += step;
    if (at >= lanes) continue;
    const leaf &of = leaves[row];
    give(row, of, at - (row ? leaves[row - 1].end : 0));
  }
}

/* A point's values. */
template <int P>
struct from_surface {
  const points_job &a;
  const double *natural;
  __device__ __forceinline__ void operator()(int row, const leaf &of, int point) const {
    const int64_t target = of.begin + point;
    constexpr int POINTS = 6 * (P - 1) * (P - 1) + 2;
    const double radius = a.radius * of.half;
    double from[3][1], sum[1][values_of_point(1)] = {};
#pragma unroll
    for (int k = 0; k < 3; k++) from[k][0] = a.point[k][target] - of.center[k] + radius;
    add_surface<1, P, 1>(natural + row * POINTS, from, 2.0 / (P - 1) * radius, sum);
#pragma unroll
    for (int v = 0; v < values_of_point(1); v++) a.out[v * a.value_stride + target] = scaled_sum(sum[0][v], v) + (v ? 0 : of.constant);
  }
};

/* Values of a lane's points, of which a leaf's last lane may lack some. */
template <int P, int G, typename F>
struct from_harmonics {
  static constexpr int L = degree_of(P), N = points_of_lane(G);
  const points_job &a;
  const F *coefficients;
  __device__ __forceinline__ void operator()(int row, const leaf &of, int lane) const {
    const double per_side = 0.5 / of.half;
    const F *own = coefficients + row * coefficients_of(L);
    const int64_t target = of.begin + N * lane;
    const int there = of.count - N * lane;
    F at[3][N];
#pragma unroll
    for (int k = 0; k < 3; k++)
#pragma unroll
      for (int i = 0; i < N; i++) at[k][i] = i < there ? (F)((a.point[k][target + i] - of.center[k]) * per_side) : 0;
    if constexpr (G) {
      static_assert(N == 1, "gradients are of one point");
      F value[4];
      gradient_of_harmonics<L>(own, at[0][0], at[1][0], at[2][0], value);
      a.out[target] = fma((double)value[0], of.unit, of.constant);
#pragma unroll
      for (int v = 1; v < 4; v++) a.out[v * a.value_stride + target] = (double)value[v] * (of.unit * per_side);
    } else {
      F value[N];
      sums_of_harmonics<L, N, F>(own, at, value);
#pragma unroll
      for (int i = 0; i < N; i++)
        if (i < there) a.out[target + i] = fma((double)value[i], of.unit, of.constant);
    }
  }
};

/* Check potentials, with what is inherited, regrouped, in x. */
template <int K, int POINTS>
__device__ __forceinline__ void bring_checks(const fmm_cuda_parity &p, const points_job &a, double *x, double *natural, leaf *of, double *scale) {
  fmm_cuda_await_earlier();
  const pair w = pair_of(p);
  bring_both<K>(p, w, x, natural, -1);
  if (threadIdx.x < 32) find_leaves<POINTS>(p, a, of, scale);
  __pipeline_wait_prior(0);
  __syncthreads();
  regroup<K>(p, x, natural, -1);
  __syncthreads();
}

/* Behind x: natural values, then coefficients in double. */
template <int P>
constexpr int all_bytes() {
  constexpr int K = block_of_order(P), natural = with_natural(K), coefficients = bytes_of(K) + BOXES * coefficients_of(degree_of(P)) * (int)sizeof(double);
  return natural > coefficients ? natural : coefficients;
}

/* A leaf's coefficients in float, by a warp: times a power of two that takes the largest to about 1, and without degree 0. */
template <int L>
__device__ __forceinline__ void to_floats(const double *from, float *to, leaf &of) {
  constexpr int N = coefficients_of(L);
  const int lane = threadIdx.x & 31;
  double most = 0;
  for (int i = lane; i < N; i += 32)
    if (i) most = fmax(most, fabs(from[i]));
#pragma unroll
  for (int step = 16; step; step >>= 1) most = fmax(most, __shfl_xor_sync(ALL_LANES, most, step));
  const int power = most > 0 ? max(min(ilogb(most), 1000), -1000) : 0;
  const double factor = ldexp(1.0, -power);
  for (int i = lane; i < N; i += 32) to[i] = i ? (float)(from[i] * factor) : 0;
  if (lane == 0) of.constant = from[0], of.unit = ldexp(1.0, power);
}

template <int P, int G, typename F>
__global__ void __launch_bounds__(THREADS, P <= 6 ? 3 : 2) by_harmonics(const fmm_cuda_parity p, const points_job a) {
  constexpr int K = block_of_order(P), L = degree_of(P), N = coefficients_of(L);
  extern __shared__ __align__(16) double x[];
  __shared__ leaf of[BOXES];
  __shared__ double scale[BOXES];
  double *coefficients = x + BOXES * pitch_of(K); /* where natural values were */
  bring_checks<K, points_of_lane(G)>(p, a, x, coefficients, of, scale);
  to_harmonics<L, K>(x, a.moments, a.slots, coefficients);
  for (int i = threadIdx.x; i < BOXES * (L + 1); i += THREADS) coefficients[i / (L + 1) * N + 2 * (i % (L + 1)) + 1] = 0; /* sines of order 0 */
  __syncthreads();
  if constexpr (sizeof(F) == sizeof(float)) {
    float *floats = (float *)x; /* which nobody needs any more */
    for (int row = threadIdx.x >> 5; row < BOXES; row += BLOCKS) to_floats<L>(coefficients + row * N, floats + row * N, of[row]);
    for_lanes(of, from_harmonics<P, G, float>{a, floats}); /* when all are there */
  } else {
    if (threadIdx.x < BOXES) of[threadIdx.x].constant = 0;
    for_lanes(of, from_harmonics<P, G, double>{a, coefficients});
  }
}

template <int P>
__global__ void __launch_bounds__(THREADS, P <= 6 ? 3 : 2) by_surfaces(const fmm_cuda_parity p, const points_job a) {
  constexpr int K = block_of_order(P);
  extern __shared__ __align__(16) double x[];
  __shared__ leaf of[BOXES];
  __shared__ double scale[BOXES];
  double *natural = x + BOXES * pitch_of(K);
  bring_checks<K, 1>(p, a, x, natural, of, scale);
  square(task_of_all<K>(), p.d_first, x);
  square(task_of_all<K>(), p.d_second, x);
  __syncthreads();
  if (threadIdx.x < BOXES) of[threadIdx.x].constant *= __dmul_rn(scale[threadIdx.x], x[threadIdx.x * pitch_of(K) + p.shell_place[0]]); /* the shell field */
  spread<K>(p, x, natural, scale);
  __syncthreads();
  for_lanes(of, from_surface<P>{a, natural});
}

typedef void kernel(const fmm_cuda_parity, const points_job);
template <int P>
kernel *kernel_of(int gradient, int single) {
  static_assert(BOXES * coefficients_of(degree_of(P)) * sizeof(float) <= bytes_of(block_of_order(P)), "floats lie where regrouped values were");
  return gradient ? (single ? by_harmonics<P, 1, float> : by_surfaces<P>) : single ? by_harmonics<P, 0, float> : by_harmonics<P, 0, double>;
}
template <int P>
cudaError_t run(const fmm_cuda_parity *p, const points_job &a, int gradient, int single, cudaStream_t stream) {
  return fmm_cuda_launch_when(p->early, kernel_of<P>(gradient, single), dim3((unsigned)((p->n_boxes + BOXES - 1) / BOXES)), THREADS, all_bytes<P>(), stream, p->carveout, *p, a);
}
template <int P>
cudaError_t allow(int gradient, int single) { return cudaFuncSetAttribute(kernel_of<P>(gradient, single), cudaFuncAttributeMaxDynamicSharedMemorySize, all_bytes<P>()); }

int is_single(const fmm_gpu_plan *p) { return p->precision[FMM_PHASE_DOWN] != FMM_PRECISION_DOUBLE; }

}

/* Points are dealt to all multiprocessors by L2P alone, and by sixteen leaves here, of which there have to be several times as many as are summed at once. How many are enough is of the tree alone, so that a
 * part of the device makes the same bits as all of it. */
int fmm_cuda_down_leaves_serve(const fmm_gpu_plan *p) {
  return p->down_leaves_fit && p->sums[FMM_SUM_L2P].lattice && leaves_can(p, p->target_leaf_batch, p->n_target_leaf_batches, FMM_LEAVES_MANY);
}

int fmm_cuda_down_leaves_bytes(int order) {
#define BYTES(p) all_bytes<p>()
  FMM_FOR_HARMONIC_ORDER(order, BYTES, INT32_MAX)
}

int fmm_cuda_down_moments_rows(int order) {
#define ROWS(p) 8 * term_tiles_of(degree_of(p))
  FMM_FOR_HARMONIC_ORDER(order, ROWS, 0)
}

cudaError_t fmm_cuda_down_leaves_prepare(const fmm_gpu_plan *p) {
#define ALLOW(o) allow<o>(p->gradient, is_single(p))
  FMM_FOR_HARMONIC_ORDER(p->order, ALLOW, cudaSuccess)
}

cudaError_t fmm_cuda_down_leaves_run(const fmm_gpu_plan *plan, const fmm_cuda_operators *o, const fmm_cuda_parity *p, cudaStream_t stream) {
  const points_job a = {plan->sums[FMM_SUM_L2P].d_tile, {plan->d_target[0], plan->d_target[1], plan->d_target[2]}, {plan->d_center[0], plan->d_center[1], plan->d_center[2]}, plan->d_half, plan->d_degree_out,
                        plan->outer_radius, plan->d_far, plan->n_targets, o->d_down_moments, plan->d_harmonic_slot};
#define RUN(o) run<o>(p, a, plan->gradient, is_single(plan), stream)
  FMM_FOR_HARMONIC_ORDER(plan->order, RUN, cudaErrorInvalidValue)
}
