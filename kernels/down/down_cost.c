/* Work of the down phase: check-to-equivalent and L2L from level 2 to the leaves, L2P at leaves.
 *   box:  U^T of its check potentials, L2L of its parent (from level 3 on, U^T multiplied in), V S^-1: 3 products of n x n
 *   leaf: targets x n_surface kernel evaluations, with the gradient when asked
 * A level reads its operators once, check potentials and parents' densities once, writes its densities; leaves read and write targets.
 * Reference: Ying, Biros, Zorin 2004, section 3.2; layout of operators: kernels/operators.h. */
#include "runtime/counts.h"

static void add_leaf(double targets, const fmm_count_case *what, fmm_work *work) {
  double pairs = targets * fmm_surface_size(what->order);
  work->pairs += pairs;
  work->flops += pairs * fmm_pair_flops(what->pair, what->gradient, what->n_columns);
  work->bytes += targets * fmm_target_bytes(what);
}

fmm_status fmm_down_cost(const fmm_tree *tree, const fmm_lists *lists, const fmm_count_case *what, fmm_work level[FMM_MAX_LEVELS]) {
  fmm_box_work w = fmm_box_work_of(what);
  for (int l = FMM_FIRST_FAR_LEVEL; l < tree->n_levels; l++) {
    int has_parent = l > FMM_FIRST_FAR_LEVEL;
    for (int32_t box = tree->level_begin[l]; box < tree->level_begin[l + 1]; box++) {
      double targets = (double)(tree->target_end[box] - tree->target_begin[box]);
      if (targets == 0) continue;
      level[l].entries += 1;
      level[l].flops += w.down_flops + has_parent * w.down_parent_flops;
      level[l].bytes += 2 * w.box_bytes; /* check potentials in, densities out */
      if (tree->first_child[box] < 0) add_leaf(targets, what, &level[l]);
      else level[l].bytes += w.box_bytes; /* read by its children */
    }
    if (level[l].entries > 0) level[l].bytes += w.operator_bytes * (2 + 8 * has_parent);
  }
  return FMM_OK;
}
