/* Work of up and down in the form of the GPU (kernels/product_cuda.cu): pairs and bytes as on the CPU, but every operator dense, without parity blocks:
 *   up:   two products a leaf, eight translations and one product a box with children
 *   down: a translation and a product a box, children of one octant together and their number rounded up to the 64 of a tile; one more a leaf. The first
 *         level has no translation. */
#include "kernels/level_cost.h"

/* Multiply-adds of one dense operator, twice. */
static double product_flops(const fmm_count_case *what) {
  double n = fmm_count_unknowns(what);
  return 2 * n * n * what->n_columns;
}

static void set_flops(const fmm_count_case *what, int gradient, double products, fmm_work *work) {
  work->other = products * product_flops(what);
  work->flops = work->pairs * fmm_pair_flops(what->pair, gradient, what->n_columns) + work->other;
}

fmm_status fmm_up_gpu_cost(const fmm_tree *tree, const fmm_lists *lists, const fmm_count_case *what, fmm_work level[FMM_MAX_LEVELS]) {
  FMM_TRY(fmm_up_cost(tree, lists, what, level));
  for (int l = FMM_FIRST_FAR_LEVEL; l < tree->n_levels; l++) {
    double products = 0;
    for (int32_t box = tree->level_begin[l]; box < tree->level_begin[l + 1]; box++)
      if (tree->source_end[box] > tree->source_begin[box]) products += tree->first_child[box] < 0 ? 2 : 9;
    set_flops(what, 0, products, &level[l]);
  }
  return FMM_OK;
}

fmm_status fmm_down_gpu_cost(const fmm_tree *tree, const fmm_lists *lists, const fmm_count_case *what, fmm_work level[FMM_MAX_LEVELS]) {
  FMM_TRY(fmm_down_cost(tree, lists, what, level));
  for (int l = FMM_FIRST_FAR_LEVEL; l < tree->n_levels; l++) {
    int64_t in_octant[8] = {0}, columns = 0, leaves = 0;
    for (int32_t box = tree->level_begin[l]; box < tree->level_begin[l + 1]; box++) {
      if (tree->target_end[box] == tree->target_begin[box]) continue;
      in_octant[tree->octant[box]]++;
      leaves += tree->first_child[box] < 0;
    }
    for (int o = 0; o < 8; o++) columns += (in_octant[o] + FMM_GPU_TILE_BOXES - 1) / FMM_GPU_TILE_BOXES * FMM_GPU_TILE_BOXES;
    set_flops(what, what->gradient, (double)((l > FMM_FIRST_FAR_LEVEL ? 2 : 1) * columns + leaves), &level[l]);
  }
  return FMM_OK;
}
