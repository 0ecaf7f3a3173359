/* Leaves upward on the GPU in one launch, for the kernel 1/r where both halves have kernels of their own: the check potentials of sixteen leaves (P2M; kernels/pair/onto_surface_cuda.h) are summed in shared
 * memory, a leaf a warp as warps become free, and go by parity blocks to equivalent densities there (kernels/parity_cuda.cu's inversion). Check potentials are neither written nor read, and while one thread
 * block waits for memory another one of its multiprocessor sums. */
#include "kernels/leaves_cuda.h"
#include "kernels/pair/onto_surface_cuda.h"

namespace {
/* Bytes of check potentials, behind which sources lie, and when these are done regrouped values. */
template <int P>
constexpr int check_bytes() { return BOXES * lattice<P>::POINTS * (int)sizeof(double); }
template <int P>
constexpr int all_bytes() {
  constexpr int sources = BLOCKS * 32 * lattice<P>::PITCH * (int)sizeof(double), regrouped = bytes_of(block_of_order(P));
  return check_bytes<P>() + (sources > regrouped ? sources : regrouped);
}

/* Where leaves and their points lie, looked up for all at once. */
struct leaf { place at; int64_t begin; int count; };

template <int P>
__device__ __forceinline__ void sum_leaves(const fmm_cuda_parity &p, const onto_job &a, double *check, double *sources) {
  typedef lattice<P> S;
  __shared__ leaf all[BOXES];
  __shared__ unsigned next; /* leaf */
  const runs<P> own(a);
  if (threadIdx.x == 0) next = 0;
  if (threadIdx.x < BOXES) {
    all[threadIdx.x].count = -1;
    if (at_of(threadIdx.x) < p.n_boxes) {
      const fmm_cuda_tile tile = a.tile[at_of(threadIdx.x)];
      const fmm_cuda_range range = a.range[tile.range_begin];
      all[threadIdx.x] = leaf{place_of_box<P>(a, tile.box), range.begin, range.count};
    }
  }
  __syncthreads();
#pragma unroll 1
  for (;;) {
    const int lane = threadIdx.x & 31;
    unsigned turn = 0;
    if (lane == 0) turn = atomicInc(&next, 0xffffffffu);
    const int row = (int)__shfl_sync(ALL_LANES, turn, 0);
    if (row >= BOXES) return;
    const leaf of = all[row];
    onto<P> to = {};
    if (of.count >= 0) sum_range(a, of.at, own, of.begin, of.count, sources, to);
    if (of.count >= 0) put_sums(a, of.at.steps, to, check + row * S::POINTS);
    else
      for (int i = lane; i < S::POINTS; i += 32) check[row * S::POINTS + i] = 0;
  }
}

template <int P>
__global__ void __launch_bounds__(THREADS, 3) leaves(const fmm_cuda_parity p, const onto_job a) {
  constexpr int K = block_of_order(P);
  extern __shared__ __align__(16) double check[];
  double *x = check + check_bytes<P>() / sizeof(double);
  const task_of_all<K> mine;
  fmm_cuda_await_earlier();
  sum_leaves<P>(p, a, check, x + (threadIdx.x >> 5) * 32 * lattice<P>::PITCH);
  __syncthreads();
  regroup<K>(p, x, check, -1);
  __syncthreads();
  square<odd_order_of(P)>(mine, p.d_first, x);
  square<odd_order_of(P)>(mine, p.d_second, x);
  __syncthreads();
  keep_and_spread<K>(p, pair_of(p), x, check);
}

template <int P>
cudaError_t run(const fmm_cuda_parity *p, const onto_job &a, cudaStream_t stream) {
  return fmm_cuda_launch_when(p->early, leaves<P>, dim3((unsigned)((p->n_boxes + BOXES - 1) / BOXES)), THREADS, all_bytes<P>(), stream, p->carveout, *p, a);
}
template <int P>
cudaError_t allow() { return cudaFuncSetAttribute(leaves<P>, cudaFuncAttributeMaxDynamicSharedMemorySize, all_bytes<P>()); }
}

int fmm_cuda_up_leaves_bytes(int order) {
#define BYTES(p) all_bytes<p>()
  FMM_FOR_LEAVES_ORDER(order, BYTES, INT32_MAX)
}

int fmm_cuda_up_leaves_serve(const fmm_gpu_plan *p) {
  return p->order <= FMM_LEAVES_MOST_ORDER && p->up_leaves_fit && p->sums[FMM_SUM_P2M].lattice && !p->sums[FMM_SUM_P2M].shared_rows && leaves_can(p, p->leaf_batch, p->n_leaf_batches, 0);
}

cudaError_t fmm_cuda_up_leaves_prepare(int order) {
#define ALLOW(p) allow<p>()
  FMM_FOR_LEAVES_ORDER(order, ALLOW, cudaSuccess)
}

cudaError_t fmm_cuda_up_leaves_run(const fmm_gpu_plan *plan, const fmm_cuda_parity *p, cudaStream_t stream) {
  const onto_job a = onto_job_of(plan, FMM_SUM_P2M);
#define RUN(o) run<o>(p, a, stream)
  FMM_FOR_LEAVES_ORDER(plan->order, RUN, cudaErrorInvalidValue)
}
