/* Up on the GPU: P2M's check potentials of all leaves in one launch, their two products in two (P2M); then a level at a time, from the deepest,
 * M2M of all boxes with children (one product over eight segments, a missing child is zero) and the second factor.
 * Homogeneous kernels: coefficients are those of the unit box, so only a leaf's product carries the level's factor. */
#include "runtime/gpu/gpu_cuda.h"

/* Coefficients are in d_work[1]; out by the batch's boxes. */
static fmm_status second(fmm_gpu_plan *p, const fmm_cuda_batch *batch, const double *d_coefficients, const double *d_scale, cudaStream_t stream) {
  fmm_cuda_product m = fmm_cuda_product_of(p, batch);
  m.d_matrix = fmm_cuda_operators_at(p, batch->level)->d_up_second;
  m.d_in = d_coefficients;
  m.d_out = p->d_up_equivalent;
  m.d_out_index = p->d_column_box + batch->begin;
  m.d_out_scale = d_scale;
  CUDA_TRY(fmm_cuda_product_run(&m, stream));
  return FMM_OK;
}

static fmm_status leaves(fmm_gpu_plan *p, const fmm_cuda_batch *batch, cudaStream_t stream) {
  int64_t at = batch->begin * p->columns * p->n; /* leaf columns come first of all, in the order of P2M's slots */
  fmm_cuda_product m = fmm_cuda_product_of(p, batch);
  m.d_matrix = fmm_cuda_operators_at(p, batch->level)->d_up_first;
  m.d_in = p->d_work[0] + at;
  m.d_out = p->d_work[1] + at;
  CUDA_TRY(fmm_cuda_product_run(&m, stream));
  return second(p, batch, p->d_work[1] + at, p->d_degree_in, stream);
}

static fmm_status parents(fmm_gpu_plan *p, const fmm_cuda_batch *batch, cudaStream_t stream) {
  fmm_cuda_product m = fmm_cuda_product_of(p, batch);
  m.d_matrix = fmm_cuda_operators_at(p, batch->level)->d_m2m;
  m.n_segments = 8;
  m.d_in = p->d_up_equivalent;
  m.d_index = p->d_child + 8 * (batch->begin - p->n_leaf_columns);
  m.d_out = p->d_work[0];
  CUDA_TRY(fmm_cuda_product_run(&m, stream));
  return second(p, batch, p->d_work[0], NULL, stream);
}

fmm_status fmm_up_cuda(fmm_gpu_plan *p, cudaStream_t stream) {
  FMM_TRY(fmm_cuda_sum_run(p, FMM_SUM_P2M, 0, p->sums[FMM_SUM_P2M].n_rows, stream));
  for (int i = 0; i < p->n_leaf_batches; i++) FMM_TRY(leaves(p, &p->leaf_batch[i], stream));
  for (int i = 0; i < p->n_up_batches; i++) FMM_TRY(parents(p, &p->up_batch[i], stream));
  return FMM_OK;
}
