/* Down on the GPU: a level at a time from level 2, the parents' coefficients onto the children's check potentials (L2L: columns are
 * sorted by octant in tiles of 64, each tile with its matrix) and those to coefficients; then all leaves' equivalents in one product and their
 * potentials at the points in one launch (L2P). Coefficients are those of the unit box (homogeneous kernels). */
#include "runtime/gpu/gpu_cuda.h"

static fmm_status level(fmm_gpu_plan *p, const fmm_cuda_batch *batch, cudaStream_t stream) {
  const int32_t *d_box = p->d_column_box + batch->begin;
  int64_t first = batch->begin - p->down_batch[0].begin;
  fmm_cuda_product m = fmm_cuda_product_of(p, batch);
  if (batch != &p->down_batch[0]) { /* the first level's parents have no far field */
    m.d_matrix = fmm_cuda_operators_at(p, batch->level - 1)->d_l2l;
    m.d_tile_matrix = p->d_tile_octant + first / FMM_GPU_TILE_BOXES;
    m.d_in = p->d_coefficient;
    m.d_index = p->d_parent + first;
    m.d_out = p->d_down_check;
    m.d_out_index = d_box;
    m.d_out_scale = p->d_degree_parent;
    m.add = 1;
    CUDA_TRY(fmm_cuda_product_run(&m, stream));
  }
  m = fmm_cuda_product_of(p, batch);
  m.d_matrix = fmm_cuda_operators_at(p, batch->level)->d_down_first;
  m.d_in = p->d_down_check;
  m.d_index = d_box;
  m.d_out = p->d_coefficient;
  m.d_out_index = d_box;
  m.d_out_scale = p->d_degree_in;
  CUDA_TRY(fmm_cuda_product_run(&m, stream));
  return FMM_OK;
}

static fmm_status leaves(fmm_gpu_plan *p, const fmm_cuda_batch *batch, cudaStream_t stream) {
  fmm_cuda_product m = fmm_cuda_product_of(p, batch);
  m.d_matrix = fmm_cuda_operators_at(p, batch->level)->d_down_second;
  m.d_in = p->d_coefficient;
  m.d_index = m.d_out_index = p->d_column_box + batch->begin;
  m.d_out = p->d_down_equivalent;
  CUDA_TRY(fmm_cuda_product_run(&m, stream));
  return FMM_OK;
}

fmm_status fmm_down_cuda(fmm_gpu_plan *p, cudaStream_t stream) {
  for (int i = 0; i < p->n_down_batches; i++) FMM_TRY(level(p, &p->down_batch[i], stream));
  for (int i = 0; i < p->n_target_leaf_batches; i++) FMM_TRY(leaves(p, &p->target_leaf_batch[i], stream));
  return fmm_cuda_sum_run(p, FMM_SUM_L2P, 0, p->sums[FMM_SUM_L2P].n_rows, stream);
}
