/* Work of the down phase: L2L from level 2 to the leaves, L2P at leaves.
 *   parent: the first factor of check-to-equivalent, then the eight L2L together (absent children included)
 *   leaf:   both factors, then targets x n_surface kernel evaluations, with the gradient when asked
 * A level reads its operators and its check potentials once, adds to its children's, writes its leaves' densities; leaves read and write targets.
 * Reference: Ying, Biros, Zorin 2004, section 3.2; operators and their parity blocks: kernels/operators.h. */
#include "runtime/counts.h"

static int has_targets(const fmm_tree *tree, int32_t box) { return tree->target_end[box] > tree->target_begin[box]; }

static void add_leaf(const fmm_tree *tree, int32_t box, const fmm_count_case *what, const fmm_box_work *w, fmm_work *work) {
  double targets = (double)(tree->target_end[box] - tree->target_begin[box]);
  double pairs = targets * fmm_surface_size(what->order);
  work->pairs += pairs;
  work->flops += pairs * fmm_pair_flops(what->pair, what->gradient, what->n_columns) + w->leaf_flops;
  work->bytes += targets * fmm_target_bytes(what) + w->box_bytes;
}

static void add_parent(const fmm_tree *tree, int32_t box, const fmm_box_work *w, fmm_work *work) {
  for (int32_t c = tree->first_child[box]; c < tree->first_child[box] + tree->n_children[box]; c++)
    if (has_targets(tree, c)) work->bytes += 2 * w->box_bytes;
  work->flops += w->parent_flops;
}

fmm_status fmm_down_cost(const fmm_tree *tree, const fmm_lists *lists, const fmm_count_case *what, fmm_work level[FMM_MAX_LEVELS]) {
  fmm_box_work w = fmm_box_work_of(what);
  for (int l = FMM_FIRST_FAR_LEVEL; l < tree->n_levels; l++) {
    int any_leaf = 0, any_parent = 0;
    for (int32_t box = tree->level_begin[l]; box < tree->level_begin[l + 1]; box++) {
      if (!has_targets(tree, box)) continue;
      int leaf = tree->first_child[box] < 0;
      if (leaf) add_leaf(tree, box, what, &w, &level[l]);
      else add_parent(tree, box, &w, &level[l]);
      any_leaf |= leaf, any_parent |= !leaf;
      level[l].entries += 1;
      level[l].bytes += w.box_bytes;
    }
    level[l].bytes += any_leaf * w.leaf_operator_bytes + any_parent * w.parent_operator_bytes;
  }
  return FMM_OK;
}
