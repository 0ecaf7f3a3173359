/* Down on the GPU: a level at a time from level 2, from the parents' check potentials to what their children inherit of them (L2L); then all leaves' equivalents in one launch and their
 * potentials at the points in another (L2P). By parity blocks (kernels/parity_cuda.cu) that is one launch a level; else two batched products (kernels/product_cuda.cu): the parents' coefficients onto the
 * children's check potentials (columns are sorted by octant in tiles of 64, each tile with its matrix) and those to coefficients, of the unit box (homogeneous kernels). */
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
  CUDA_TRY(fmm_cuda_shells(p, fmm_cuda_operators_at(p, batch->level), m.d_index, batch->end - batch->begin, stream));
  return FMM_OK;
}

static fmm_status blocks(fmm_gpu_plan *p, const fmm_cuda_batch *batch, int parents, cudaStream_t stream) {
  const fmm_cuda_operators *o = fmm_cuda_operators_at(p, batch->level);
  fmm_cuda_parity m = fmm_cuda_parity_of(p, batch);
  m.d_first = o->d_down_first, m.d_second = o->d_down_second, m.d_move = o->d_l2l;
  m.d_in = p->d_down_check;
  m.d_inherited = p->d_kept;
  const int shared = fmm_cuda_parity_is_shared(&m);
  if (parents) m.d_child = p->d_child + 8 * (p->n_up_columns + batch->begin - p->down_batch[0].begin), m.d_kept = p->d_kept;
  else m.d_out = p->d_down_equivalent, m.d_scale = p->d_degree_in, m.d_kept = shared ? p->d_kept : NULL, m.d_shell = p->d_shell; /* nobody inherits of leaves */
  if (!parents && fmm_cuda_down_leaves_serve(p)) CUDA_TRY(fmm_cuda_down_leaves_run(p, o, &m, stream));
  else CUDA_TRY(fmm_cuda_parity_run(parents ? FMM_PARITY_SPLIT : FMM_PARITY_INVERT, &m, stream));
  if (parents || !shared) return FMM_OK;
  CUDA_TRY(fmm_cuda_parity_run(FMM_PARITY_SPREAD, &m, stream));
  return FMM_OK;
}

/* Parents of the first level have no far field to hand on. */
static fmm_status all_blocks(fmm_gpu_plan *p, cudaStream_t stream) {
  const int64_t a_box = (int64_t)p->columns * FMM_MIRRORS * p->block;
  CUDA_TRY(cudaMemsetAsync(p->d_kept + p->first_far[0] * a_box, 0, (size_t)((p->first_far[1] - p->first_far[0]) * a_box) * sizeof(double), stream));
  for (int i = 0; i < p->n_down_batches; i++) FMM_TRY(blocks(p, &p->down_batch[i], 1, stream));
  for (int i = 0; i < p->n_target_leaf_batches; i++) FMM_TRY(blocks(p, &p->target_leaf_batch[i], 0, stream));
  return FMM_OK;
}

static fmm_status all_dense(fmm_gpu_plan *p, cudaStream_t stream) {
  for (int i = 0; i < p->n_down_batches; i++) FMM_TRY(level(p, &p->down_batch[i], stream));
  for (int i = 0; i < p->n_target_leaf_batches; i++) FMM_TRY(leaves(p, &p->target_leaf_batch[i], stream));
  return FMM_OK;
}

fmm_status fmm_down_cuda(fmm_gpu_plan *p, cudaStream_t stream) {
  FMM_TRY(p->block ? all_blocks(p, stream) : all_dense(p, stream));
  return fmm_cuda_down_leaves_serve(p) ? FMM_OK : fmm_cuda_sum_run(p, FMM_SUM_L2P, 0, p->sums[FMM_SUM_L2P].n_rows, stream);
}
