/* Up on the GPU: P2M's check potentials of all leaves in one launch, then their equivalent densities (P2M); then a level at a time, from the deepest, those of all boxes with children (M2M).
 * By parity blocks (kernels/parity_cuda.cu) that is one launch for the leaves, with P2M where it can be (up_moments_cuda.cu), and one a level, else two batched products each (kernels/product_cuda.cu; M2M one over eight segments, a missing child is zero).
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

/* Natural densities of columns [begin, end), which were kept. */
static fmm_status spread(fmm_gpu_plan *p, int64_t begin, int64_t end, cudaStream_t stream) {
  const fmm_cuda_batch all = {begin, end, 0};
  fmm_cuda_parity m = fmm_cuda_parity_of(p, &all);
  m.d_out = p->d_up_equivalent, m.d_kept = p->d_kept;
  CUDA_TRY(fmm_cuda_parity_run(FMM_PARITY_SPREAD, &m, stream));
  return FMM_OK;
}

/* *from: where the columns begin that are kept but not yet natural; they end where this batch begins. */
static fmm_status blocks(fmm_gpu_plan *p, const fmm_cuda_batch *batch, int parents, int64_t *from, cudaStream_t stream) {
  const fmm_cuda_operators *o = fmm_cuda_operators_at(p, batch->level);
  fmm_cuda_parity m = fmm_cuda_parity_of(p, batch);
  m.d_first = o->d_up_first, m.d_second = o->d_up_second, m.d_move = o->d_m2m;
  m.d_out = p->d_up_equivalent;
  m.d_kept = p->d_kept;
  if (parents) m.d_child = p->d_child + 8 * (batch->begin - p->n_leaf_columns);
  else m.d_in = p->d_work[0] + batch->begin * p->columns * p->n, m.in_by_slot = 1, m.d_scale = p->d_degree_in; /* leaf columns come first of all, in the order of P2M's slots */
  if (!parents && fmm_cuda_up_moments_serve(p)) CUDA_TRY(fmm_cuda_up_moments_run(p, o, &m, stream));
  else CUDA_TRY(fmm_cuda_parity_run(parents ? FMM_PARITY_MERGE : FMM_PARITY_INVERT, &m, stream));
  if (fmm_cuda_parity_is_shared(&m)) return FMM_OK;
  FMM_TRY(spread(p, *from, batch->begin, stream));
  *from = batch->end;
  return FMM_OK;
}

static fmm_status all_blocks(fmm_gpu_plan *p, cudaStream_t stream) {
  int64_t from = 0;
  for (int i = 0; i < p->n_leaf_batches; i++) FMM_TRY(blocks(p, &p->leaf_batch[i], 0, &from, stream));
  for (int i = 0; i < p->n_up_batches; i++) FMM_TRY(blocks(p, &p->up_batch[i], 1, &from, stream));
  return spread(p, from, p->n_leaf_columns + p->n_up_columns, stream);
}

static fmm_status all_dense(fmm_gpu_plan *p, cudaStream_t stream) {
  for (int i = 0; i < p->n_leaf_batches; i++) FMM_TRY(leaves(p, &p->leaf_batch[i], stream));
  for (int i = 0; i < p->n_up_batches; i++) FMM_TRY(parents(p, &p->up_batch[i], stream));
  return FMM_OK;
}

fmm_status fmm_up_cuda(fmm_gpu_plan *p, cudaStream_t stream) {
  if (!fmm_cuda_up_moments_serve(p)) FMM_TRY(fmm_cuda_sum_run(p, FMM_SUM_P2M, 0, p->sums[FMM_SUM_P2M].n_rows, stream));
  return p->block ? all_blocks(p, stream) : all_dense(p, stream);
}
