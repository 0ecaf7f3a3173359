/* Leaves downward on the GPU in one launch, for the kernel 1/r where both halves have kernels of their own: check potentials of sixteen leaves go by parity blocks to equivalent densities (the inversion of
 * kernels/parity_cuda.cu), from which the potentials, and gradients, at the leaves' points are summed (L2P; kernels/pair/from_surface_cuda.h) while these are in shared memory: they are neither written nor read. Lanes follow
 * one another through the points of all sixteen, warps taking the next 32 as they become free. */
#include "kernels/leaves_cuda.h"
#include "kernels/pair/from_surface_cuda.h"

namespace {
constexpr unsigned ALL_LANES = 0xffffffffu;

struct points_job {
  const fmm_cuda_tile *tile;
  const double *point[3], *center[3], *half, *degree; /* degree: by which shell fields are multiplied, by box */
  double radius, *out;
  int64_t value_stride; /* from a point's potential to its derivatives */
};
/* A leaf's surface and points; end: points up to its last one. */
struct leaf { double center[3], radius, shell; int64_t begin; int end; };

template <int P, int G>
__device__ __forceinline__ void sum_points(const points_job &a, const leaf *leaves, const double *natural, int points) {
  constexpr int POINTS = 6 * (P - 1) * (P - 1) + 2;
  __shared__ unsigned next; /* 32 points */
  const int lane = threadIdx.x & 31;
  if (threadIdx.x == 0) next = 0;
  __syncthreads();
#pragma unroll 1
  for (;;) {
    unsigned turn = 0;
    if (lane == 0) turn = atomicInc(&next, 0xffffffffu);
    const int at = 32 * (int)__shfl_sync(ALL_LANES, turn, 0) + lane;
    if (at - lane >= points) return;
    int row = 0;
#pragma unroll
    for (int step = BOXES / 2; step; step >>= 1)
      if (leaves[row + step - 1].end <= at) row += step;
    const leaf &of = leaves[row];
    if (at >= points) continue;
    const int64_t target = of.begin + at - (row ? leaves[row - 1].end : 0);
    double from[3][1], sum[1][values_of_point(G)] = {};
#pragma unroll
    for (int k = 0; k < 3; k++) from[k][0] = a.point[k][target] - of.center[k] + of.radius;
    add_surface<G, P, 1>(natural + row * POINTS, from, 2.0 / (P - 1) * of.radius, sum);
#pragma unroll
    for (int v = 0; v < values_of_point(G); v++) a.out[v * a.value_stride + target] = scaled_sum(sum[0][v], v) + (v ? 0 : of.shell);
  }
}

template <int P, int G>
__global__ void __launch_bounds__(THREADS, P <= 6 ? 3 : 2) leaves(const fmm_cuda_parity p, const points_job a) {
  constexpr int K = block_of_order(P);
  extern __shared__ __align__(16) double x[];
  __shared__ leaf of[BOXES];
  __shared__ double scale[BOXES];
  double *natural = x + BOXES * pitch_of(K);
  const task_of_all<K> mine;
  fmm_cuda_await_earlier();
  const pair w = pair_of(p);
  bring_both<K>(p, w, x, natural, -1);
  if (threadIdx.x < 32) {
    const int row = threadIdx.x & (BOXES - 1);
    leaf own = {};
    int points = 0;
    double factor = 0;
    if (at_of(row) < p.n_boxes) {
      const fmm_cuda_tile tile = a.tile[at_of(row)];
      own = leaf{{a.center[0][tile.box], a.center[1][tile.box], a.center[2][tile.box]}, a.radius * a.half[tile.box], a.degree[tile.box], tile.target_begin, 0};
      points = tile.target_count;
      factor = scale_of(p, tile.box);
    }
#pragma unroll
    for (int step = 1; step < BOXES; step *= 2) {
      const int before = __shfl_up_sync(ALL_LANES, points, step);
      if ((int)threadIdx.x >= step) points += before;
    }
    own.end = points;
    if (threadIdx.x < BOXES) of[row] = own, scale[row] = factor;
  }
  __pipeline_wait_prior(0);
  __syncthreads();
  regroup<K>(p, x, natural, -1);
  __syncthreads();
  square(mine, p.d_first, x);
  square(mine, p.d_second, x);
  __syncthreads();
  if (threadIdx.x < BOXES) of[threadIdx.x].shell *= __dmul_rn(scale[threadIdx.x], x[threadIdx.x * pitch_of(K) + p.shell_place[0]]);
  spread<K>(p, x, natural, scale);
  __syncthreads();
  sum_points<P, G>(a, of, natural, of[BOXES - 1].end);
}

template <int P>
cudaError_t run(const fmm_cuda_parity *p, const points_job &a, int gradient, cudaStream_t stream) {
  return fmm_cuda_launch_when(p->early, gradient ? leaves<P, 1> : leaves<P, 0>, dim3((unsigned)((p->n_boxes + BOXES - 1) / BOXES)), THREADS, with_natural(block_of_order(P)), stream, p->carveout, *p, a);
}
template <int P>
cudaError_t allow(int gradient) { return cudaFuncSetAttribute(gradient ? leaves<P, 1> : leaves<P, 0>, cudaFuncAttributeMaxDynamicSharedMemorySize, with_natural(block_of_order(P))); }
}

/* Points are dealt to all multiprocessors by L2P alone, and by sixteen leaves here, of which there have to be several times as many as are summed at once. */
int fmm_cuda_down_leaves_serve(const fmm_gpu_plan *p) {
  return leaves_can(p, FMM_SUM_L2P, p->target_leaf_batch, p->n_target_leaf_batches, (int64_t)FMM_LEAVES_A_MULTIPROCESSOR * p->sms);
}

cudaError_t fmm_cuda_down_leaves_prepare(int order, int gradient) {
#define ALLOW(p) allow<p>(gradient)
  FMM_FOR_LEAVES_ORDER(order, ALLOW, order == 7 ? ALLOW(7) : order == 8 ? ALLOW(8) : cudaSuccess)
}

cudaError_t fmm_cuda_down_leaves_run(const fmm_gpu_plan *plan, const fmm_cuda_parity *p, cudaStream_t stream) {
  points_job a = {plan->sums[FMM_SUM_L2P].d_tile, {plan->d_target[0], plan->d_target[1], plan->d_target[2]}, {plan->d_center[0], plan->d_center[1], plan->d_center[2]}, plan->d_half, plan->d_degree_out,
                  plan->outer_radius, plan->d_far, plan->n_targets};
#define RUN(o) run<o>(p, a, plan->gradient, stream)
  FMM_FOR_LEAVES_ORDER(plan->order, RUN, plan->order == 7 ? RUN(7) : plan->order == 8 ? RUN(8) : cudaErrorInvalidValue)
}
