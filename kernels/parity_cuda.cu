/* Up and down's products on the GPU for pair interactions with parity (kernels/operators.h): in the regrouped basis, in which check-to-equivalent maps are eight blocks of about n/8 unknowns and all
 * eight translations of a parent cost one n x n product. Three kernels, each with sixteen columns (box and density column) a thread block in shared memory and a warp for each parity block chi:
 *   invert: leaves; natural check potentials, regrouped, through both factors of the map, spread to natural equivalent densities. Downward the strengths of shell fields (kernels/shell_field.h) go with
 *           them, each in the first place behind its block's unknowns, where the first factor has a row for it and the second hands it on.
 *   merge:  parents upward; their children's regrouped densities, transformed over the children on the way to shared memory some blocks psi at a time, through M2M and the second factor.
 *   split:  parents downward; check potentials through the first factor and L2L, transformed over the children in registers.
 * Where columns are few, a thread block has one parity block, its warps that block's rows, and what is natural is spread by a launch of its own for several levels (spread_kept).
 * Between levels values stay regrouped ([box][column][8 block], chi * block on for block chi): upward the equivalent densities, downward what children inherit. Both are an eighth of what regrouping
 * natural values gives, so the matrices of merge and split hold a factor of 8, which is exact.
 * Blocks of all chi are padded with zeros to one length, one of those that the kernels are compiled for, so that all loads of a product are under way at once: what these kernels wait for is memory, far
 * more than the tensor cores. Natural values come to shared memory and go from there in whole lines, two boxes a warp; there all threads regroup them, one orbit of mirror images at a time.
 * Matrices lie in the order of fragments (fmm_cuda_parity_place), boxes being the sixteen rows of the tensor cores' instruction and a matrix's rows its eight columns: lane t of four has entries 2 t,
 * 2 t + 1, 8 + 2 t and 9 + 2 t of sixteen, which the instruction counts t, 4 + t, 8 + t, 12 + t: the same sums.
 * Where a device has too little shared memory, and for larger blocks, kernels/product_cuda.cu does it with dense matrices. */
#include "kernels/parity_product_cuda.h"

namespace {
enum { ROOM = 112 << 10 /* bytes of shared memory of which a multiprocessor has two */ };

/* Blocks psi of the children that merge has in shared memory at once, and their bytes; natural values take their place in the end. */
constexpr int stage_bytes(int k, int blocks) { return BLOCKS * BOXES * pitch_of(k, blocks) * (int)sizeof(double); }
constexpr int staged(int k) {
  int blocks = BLOCKS;
  while (blocks > 1 && bytes_of(k) + stage_bytes(k, blocks) > ROOM) blocks /= 2;
  return blocks;
}
constexpr int merge_bytes(int k) { return bytes_of(k) + stage_bytes(k, staged(k)); }

template <int K, int SHARE, int ORDER>
__global__ void __launch_bounds__(THREADS, K <= 24 ? 3 : blocks_a_multiprocessor(K)) invert(const fmm_cuda_parity p) {
  extern __shared__ __align__(16) double x[];
  double *natural = x + BOXES * pitch_of(K);
  const task<K, SHARE> mine;
  const int only = SHARE == 1 ? -1 : mine.chi;
  fmm_cuda_await_earlier();
  const pair w = pair_of(p);
  bring_both<K>(p, w, x, natural, only);
  __pipeline_wait_prior(0);
  __syncthreads();
  regroup<K>(p, x, natural, only);
  __syncthreads();
  square<ORDER>(mine, p.d_first, x);
  square<ORDER>(mine, p.d_second, x);
  if (SHARE == BLOCKS) return keep_block<K>(p, x, mine.chi);
  __syncthreads();
  keep_and_spread<K>(p, w, x, natural);
}

__device__ __forceinline__ eight children_of(const fmm_cuda_parity &p, int box, int row) {
  return box < 0 ? eight{{-1, -1, -1, -1, -1, -1, -1, -1}} : load_eight(p.d_child + 8 * slot_of(p, row));
}

/* Entries i and i + 1 of a box's eight children, by octant. */
template <int K>
__device__ __forceinline__ void load_children(const fmm_cuda_parity &p, const eight &child, int part, int i, double (&v)[8], double (&u)[8]) {
#pragma unroll
  for (int o = 0; o < 8; o++) {
    const double2 value = child.v[o] < 0 ? make_double2(0, 0) : __ldcs((const double2 *)(p.d_kept + place_of(p, column{child.v[o], part}, BLOCKS * K) + i));
    v[o] = value.x, u[o] = value.y;
  }
}

/* All blocks chi from the transforms over the children, some blocks psi of them in shared memory at a time: z, [transform][box][STAGED K]. */
template <int K, int ORDER>
__device__ __forceinline__ void merge_all(const fmm_cuda_parity &p, const pair &w, const task_of_all<K> &mine, double *z, double (&sum)[tiles_of(K)][4]) {
  constexpr int STAGED = staged(K), LENGTH = STAGED * K, PITCH = pitch_of(K, STAGED), TILES = tiles_of(K);
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const eight child[2] = {children_of(p, w.c[0].box, warp), children_of(p, w.c[1].box, warp + BLOCKS)};
  const double *rows = block_of<K>(p.d_move, mine.chi * BLOCKS);
  const int own = own_tiles<ORDER, K>(mine.chi); /* not constants here: code for each would leave fewer registers */
#pragma unroll 1
  for (int first = 0; first < BLOCKS; first += STAGED) {
    if (first) __syncthreads();
#pragma unroll
    for (int s = 0; s < 2; s++)
#pragma unroll 2
      for (int i = 2 * lane; i < LENGTH; i += 64) {
        double v[8], u[8];
        load_children<K>(p, child[s], w.c[s].part, first * K + i, v, u);
        butterflies(v), butterflies(u);
#pragma unroll
        for (int o = 0; o < 8; o++) *(double2 *)(z + (o * BOXES + warp + BLOCKS * s) * PITCH + i) = make_double2(v[o], u[o]);
      }
    __syncthreads();
#pragma unroll 1
    for (int psi = first; psi < first + STAGED; psi++)
      multiply<TILES, 1, K>(sum, z + (mine.chi ^ psi) * BOXES * PITCH + (psi - first) * K, PITCH, block_of<K>(rows, psi), 0, ORDER == 0 || psi == 0, ORDER ? own : TILES);
  }
}

/* Block chi alone: of block psi it needs transform chi ^ psi only, which has the place of psi in x. */
template <int K>
__device__ __forceinline__ void merge_one(const fmm_cuda_parity &p, const pair &w, const task_of_one<K> &mine, double *x, double (&sum)[task_of_one<K>::OWN][4]) {
  constexpr int PITCH = pitch_of(K);
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const eight child[2] = {children_of(p, w.c[0].box, warp), children_of(p, w.c[1].box, warp + BLOCKS)};
#pragma unroll 2
  for (int at = 2 * lane; at < 2 * BLOCKS * K; at += 64) {
    const int second = at >= BLOCKS * K, i = second ? at - BLOCKS * K : at, transform = mine.chi ^ i / K;
    double v[8], u[8];
    load_children<K>(p, second ? child[1] : child[0], second ? w.c[1].part : w.c[0].part, i, v, u);
    butterflies(v), butterflies(u); /* all of them, for the same bits as merge_all's */
    double2 wanted = make_double2(v[0], u[0]);
#pragma unroll
    for (int o = 1; o < 8; o++)
      if (transform == o) wanted = make_double2(v[o], u[o]);
    *(double2 *)(x + (warp + BLOCKS * second) * PITCH + i) = wanted;
  }
  __syncthreads();
#pragma unroll 2
  for (int psi = 0; psi < BLOCKS; psi++)
    multiply<task_of_one<K>::OWN, BLOCKS, K>(sum, x + psi * K, PITCH, block_of<K>(p.d_move, mine.chi * BLOCKS + psi), mine.part);
  __syncthreads();
}

template <int K, int SHARE, int ORDER>
__global__ void __launch_bounds__(THREADS, blocks_a_multiprocessor(K)) merge(const fmm_cuda_parity p) {
  extern __shared__ __align__(16) double x[];
  double *z = x + BOXES * pitch_of(K);
  const task<K, SHARE> mine;
  double sum[decltype(mine)::OWN][4] = {};
  fmm_cuda_await_earlier();
  const pair w = pair_of(p);
  if constexpr (SHARE == 1) merge_all<K, ORDER>(p, w, mine, z, sum);
  else merge_one<K>(p, w, mine, x, sum);
  put(mine, sum, x);
  mine.sync();
  square(mine, p.d_second, x);
  if (SHARE == BLOCKS) return keep_block<K>(p, x, mine.chi);
  __syncthreads();
  keep_and_spread<K>(p, w, x, z);
}

template <int K, int SHARE, int ORDER>
__global__ void __launch_bounds__(THREADS, blocks_a_multiprocessor(K)) split(const fmm_cuda_parity p) {
  constexpr int ALL = BLOCKS * K, TILES = tiles_of(K), PITCH = pitch_of(K);
  extern __shared__ __align__(16) double x[];
  double *natural = x + BOXES * PITCH;
  const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
  const task<K, SHARE> mine;
  const task_of_all<K> all; /* of the first factor, as all are needed for the sums */
  fmm_cuda_await_earlier();
  const pair w = pair_of(p);
  bring_both<K>(p, w, x, natural, -1);
  __pipeline_wait_prior(0);
  __syncthreads();
  regroup<K>(p, x, natural, -1);
  __syncthreads();
  square<ORDER>(all, p.d_first, x);
  __syncthreads();
  const column c[2] = {column_of(p, g), column_of(p, g + 8)};
  const eight child[2] = {children_of(p, c[0].box, g), children_of(p, c[1].box, g + 8)};
  const int own = own_tiles<ORDER, K>(mine.chi); /* others become zeros */
#pragma unroll 1
  for (int m = mine.part; m < TILES; m += SHARE) {
    double sum[8][1][4] = {};
    if (ORDER == 0 || m < own)
#pragma unroll
      for (int o = 0; o < 8; o++)
        multiply<1, 1, K>(sum[o], x + (mine.chi ^ o) * K, PITCH, block_of<K>(p.d_move, mine.chi * BLOCKS + (mine.chi ^ o)), m, ORDER == 0 || o == mine.chi);
    if (8 * m + 2 * t >= K) continue;
#pragma unroll
    for (int s = 0; s < 2; s++) {
      double v[8], u[8];
#pragma unroll
      for (int o = 0; o < 8; o++) v[o] = sum[o][0][2 * s], u[o] = sum[o][0][2 * s + 1];
      butterflies(v), butterflies(u);
#pragma unroll
      for (int o = 0; o < 8; o++)
        if (child[s].v[o] >= 0) /* eight times what was read, and not read before the next level: the first to leave the caches */
          __stcs((double2 *)(p.d_kept + place_of(p, column{child[s].v[o], c[s].part}, ALL) + mine.chi * K + 8 * m + 2 * t), make_double2(v[o], u[o]));
    }
  }
}

template <int K>
__global__ void __launch_bounds__(THREADS, blocks_a_multiprocessor(K)) spread_kept(const fmm_cuda_parity p) {
  extern __shared__ __align__(16) double x[];
  double *natural = x + BOXES * pitch_of(K);
  fmm_cuda_await_earlier();
  const pair w = pair_of(p);
  bring_regrouped<K>(p, w, p.d_kept, x, -1);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  publish_shells<K>(p, w, x, true);
  spread<K>(p, x, natural, NULL);
  __syncthreads();
  publish(p, w, natural);
}

/* The odd order whose kernels pass over what pads blocks; where thread blocks share columns, nothing is gained by it. */
constexpr int order_that_passes(int k, int share) { return share > 1 ? 0 : k == 20 ? 5 : k == 40 ? 7 : 0; }

typedef void step_kernel(const fmm_cuda_parity);
template <int K, int SHARE, int ORDER>
step_kernel *kernel_of(fmm_cuda_parity_step step) {
  step_kernel *const kernel[] = {invert<K, SHARE, ORDER>, merge<K, SHARE, ORDER>, split<K, SHARE, ORDER>, spread_kept<K>};
  return kernel[step];
}
template <int K, int SHARE>
int bytes_of_step(fmm_cuda_parity_step step) { return step != FMM_PARITY_MERGE ? with_natural(K) : SHARE == 1 ? merge_bytes(K) : bytes_of(K); }

template <int K, int SHARE>
cudaError_t run_step(fmm_cuda_parity_step step, const fmm_cuda_parity *p, cudaStream_t stream) {
  constexpr int ORDER = order_that_passes(K, SHARE);
  const int64_t n = p->n_boxes * p->columns;
  const dim3 blocks((unsigned)((n + BOXES - 1) / BOXES), step == FMM_PARITY_SPREAD ? 1 : SHARE);
  return fmm_cuda_launch_when(p->early, ORDER && p->odd_order == ORDER ? kernel_of<K, SHARE, ORDER>(step) : kernel_of<K, SHARE, 0>(step), blocks, THREADS, bytes_of_step<K, SHARE>(step), stream, p->carveout, *p);
}

template <int K>
cudaError_t run_either(fmm_cuda_parity_step step, const fmm_cuda_parity *p, cudaStream_t stream) {
  return fmm_cuda_parity_is_shared(p) ? run_step<K, BLOCKS>(step, p, stream) : run_step<K, 1>(step, p, stream);
}

template <int K, int SHARE, int ORDER>
cudaError_t allow(void) {
  cudaError_t error = cudaSuccess;
  for (int step = 0; step < FMM_PARITY_N_STEPS && error == cudaSuccess; step++)
    error = cudaFuncSetAttribute(kernel_of<K, SHARE, ORDER>((fmm_cuda_parity_step)step), cudaFuncAttributeMaxDynamicSharedMemorySize, bytes_of_step<K, SHARE>((fmm_cuda_parity_step)step));
  return error;
}
template <int K>
cudaError_t allow_both(void) {
  cudaError_t error = allow<K, 1, 0>();
  if (error == cudaSuccess) error = allow<K, 1, order_that_passes(K, 1)>();
  return error == cudaSuccess ? allow<K, BLOCKS, 0>() : error;
}
}

/* Where columns are few, eight thread blocks share the work of sixteen columns: what one multiprocessor reads of the matrices takes longer than all else. */
int fmm_cuda_parity_is_shared(const fmm_cuda_parity *p) { return (p->n_boxes * p->columns + BOXES - 1) / BOXES * BLOCKS <= 4 * p->sms; }

/* Each of those of fmm_gpu_parity_block. */
#define FOR_BLOCK(block, call, otherwise) \
  switch (block) {                        \
    case 4: return call(4);               \
    case 8: return call(8);               \
    case 20: return call(20);             \
    case 24: return call(24);             \
    case 40: return call(40);             \
    case 60: return call(60);             \
    case 64: return call(64);             \
    case 92: return call(92);             \
    case 112: return call(112);           \
    default: return otherwise;            \
  }

int fmm_cuda_parity_bytes(int block) {
#define BYTES(k) ((merge_bytes(k) > with_natural(k) ? merge_bytes(k) : with_natural(k)) + SCALES)
  FOR_BLOCK(block, BYTES, INT32_MAX)
}

cudaError_t fmm_cuda_parity_prepare(int block, int *early) {
  cudaFuncAttributes attributes;
  *early = cudaFuncGetAttributes(&attributes, invert<4, 1, 0>) == cudaSuccess && attributes.ptxVersion >= 90 && attributes.binaryVersion >= 90;
#define ALLOW(k) allow_both<k>()
  FOR_BLOCK(block, ALLOW, cudaErrorInvalidValue)
}

cudaError_t fmm_cuda_parity_run(fmm_cuda_parity_step step, const fmm_cuda_parity *p, cudaStream_t stream) {
  if (p->n_boxes <= 0) return cudaSuccess;
#define RUN(k) run_either<k>(step, p, stream)
  FOR_BLOCK(p->block, RUN, cudaErrorInvalidValue)
}
