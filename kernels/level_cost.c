/* The walk of level_cost.h: a leaf is points x n_surface kernel evaluations and both factors of check-to-equivalent, or points x harmonics and a product with these (where fmm_moments_are_whole is not so one of surfaces too, kernels/harmonics.h), a parent eight translations
 * together (absent children included) and one factor; a level reads its operators once. */
#include "kernels/level_cost.h"

#include "kernels/harmonics_cost.h"

/* Of leaves: sums of points, flops of products, bytes of their operators. */
typedef struct leaf_form { fmm_point_form point; double product_flops, operator_bytes; } leaf_form;

static leaf_form form_of(const fmm_count_case *what, const fmm_level_walk *walk, const fmm_box_work *w) {
  const fmm_point_form point = fmm_point_form_of(what, walk->gradient, walk->harmonics);
  const double n = fmm_count_unknowns(what), entries = fmm_harmonic_entries(what) + (fmm_moments_are_whole(what->order) ? 0 : n * n / FMM_MIRRORS);
  return walk->harmonics ? (leaf_form){point, 2 * entries * what->n_columns, sizeof(double) * entries} : (leaf_form){point, w->leaf_flops, w->leaf_operator_bytes};
}

static void add_leaf(int64_t points, const leaf_form *leaf, const fmm_level_walk *walk, const fmm_box_work *w, fmm_work *work) {
  double pairs = (double)points * leaf->point.with_a_point;
  work->pairs += pairs;
  work->flops += pairs * leaf->point.flops + leaf->product_flops;
  work->other += leaf->product_flops;
  work->bytes += (double)points * walk->point_bytes + walk->leaf_passes * w->box_bytes;
}

static void add_parent(const fmm_tree *tree, int32_t box, const fmm_level_walk *walk, const fmm_box_work *w, fmm_work *work) {
  for (int32_t c = tree->first_child[box]; c < tree->first_child[box] + tree->n_children[box]; c++)
    if (walk->end[c] > walk->begin[c]) work->bytes += walk->child_passes * w->box_bytes;
  work->flops += w->parent_flops, work->other += w->parent_flops;
}

void fmm_level_cost_add(const fmm_tree *tree, const fmm_count_case *what, const fmm_level_walk *walk, fmm_work level[FMM_MAX_LEVELS]) {
  fmm_box_work w = fmm_box_work_of(what);
  const leaf_form form = form_of(what, walk, &w);
  for (int l = FMM_FIRST_FAR_LEVEL; l < tree->n_levels; l++) {
    int any_leaf = 0, any_parent = 0;
    for (int32_t box = tree->level_begin[l]; box < tree->level_begin[l + 1]; box++) {
      if (walk->end[box] == walk->begin[box]) continue;
      int leaf = tree->first_child[box] < 0;
      if (leaf) add_leaf(walk->end[box] - walk->begin[box], &form, walk, &w, &level[l]);
      else add_parent(tree, box, walk, &w, &level[l]);
      any_leaf |= leaf, any_parent |= !leaf;
      level[l].entries += 1;
      level[l].bytes += w.box_bytes;
    }
    level[l].bytes += any_leaf * form.operator_bytes + any_parent * w.parent_operator_bytes;
  }
}
