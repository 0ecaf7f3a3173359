/* What the leaves of kernels/up/up_moments_cuda.cu and kernels/down/down_leaves_cuda.cu have in common: points' part and products by parity blocks in one launch, for the kernel 1/r. */
#ifndef FMM_LEAVES_CUDA_H
#define FMM_LEAVES_CUDA_H
#include "kernels/parity_product_cuda.h"

namespace {
/* Unknowns of a parity block of one component (fmm_gpu_parity_block). */
constexpr int block_of_order(int order) { return order <= 4 ? 8 : order <= 6 ? 20 : 40; }

/* Whether the plan's batches can go so, but for the order: not where U runs beside them and they would fill the multiprocessors, nor where leaves are fewer than `least`, or so few that several thread
 * blocks share their products. */
inline int leaves_can(const fmm_gpu_plan *p, const fmm_cuda_batch *batch, int n_batches, int64_t least) {
  if (p->block != block_of_order(p->order) || p->overlaps || n_batches != 1) return 0;
  const fmm_cuda_parity m = fmm_cuda_parity_of(p, batch);
  return m.n_boxes >= least && !fmm_cuda_parity_is_shared(&m);
}
}

/* The orders that have leaves by solid harmonics: FMM_LATTICE_LEAST_ORDER to FMM_LATTICE_MOST_ORDER. */
#define FMM_FOR_HARMONIC_ORDER(order, call, otherwise) \
  switch (order) {                                     \
    case 3: return call(3);                            \
    case 4: return call(4);                            \
    case 5: return call(5);                            \
    case 6: return call(6);                            \
    case 7: return call(7);                            \
    case 8: return call(8);                            \
    default: return otherwise;                         \
  }
#endif
