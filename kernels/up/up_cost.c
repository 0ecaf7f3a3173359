/* Work of the up phase: P2M at leaves, M2M from children, from the finest level to level 2 (coarser equivalents are in no list).
 *   leaf:   sources x n_surface kernel evaluations, then both factors of check-to-equivalent
 *   parent: the eight M2M together (absent children included), then the second factor
 * A level reads its operators once, its sources and its children's densities once, and writes its own densities.
 * Reference: Ying, Biros, Zorin 2004, section 3.2; operators and their parity blocks: kernels/operators.h. */
#include "runtime/counts.h"

static int has_sources(const fmm_tree *tree, int32_t box) { return tree->source_end[box] > tree->source_begin[box]; }

static void add_leaf(const fmm_tree *tree, int32_t box, const fmm_count_case *what, const fmm_box_work *w, fmm_work *work) {
  double sources = (double)(tree->source_end[box] - tree->source_begin[box]);
  double pairs = sources * fmm_surface_size(what->order);
  work->pairs += pairs;
  work->flops += pairs * fmm_pair_flops(what->pair, 0, what->n_columns) + w->leaf_flops;
  work->bytes += sources * fmm_source_bytes(what);
}

static void add_parent(const fmm_tree *tree, int32_t box, const fmm_box_work *w, fmm_work *work) {
  for (int32_t c = tree->first_child[box]; c < tree->first_child[box] + tree->n_children[box]; c++)
    if (has_sources(tree, c)) work->bytes += w->box_bytes;
  work->flops += w->parent_flops;
}

fmm_status fmm_up_cost(const fmm_tree *tree, const fmm_lists *lists, const fmm_count_case *what, fmm_work level[FMM_MAX_LEVELS]) {
  fmm_box_work w = fmm_box_work_of(what);
  for (int l = FMM_FIRST_FAR_LEVEL; l < tree->n_levels; l++) {
    int any_leaf = 0, any_parent = 0;
    for (int32_t box = tree->level_begin[l]; box < tree->level_begin[l + 1]; box++) {
      if (!has_sources(tree, box)) continue;
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
