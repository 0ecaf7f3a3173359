/* Work of the W list, M2P: every target of a leaf with every surface point of the row's finer boxes, or with their harmonics, for which each entry has a product.
 * Bytes: the leaf's targets once a row; an entry's densities once an entry (a box is in the lists of few leaves).
 * Reference: Ying, Biros, Zorin 2004, section 3.2. */
#include "kernels/harmonics_cost.h"

static fmm_status add(const fmm_tree *tree, const fmm_lists *lists, const fmm_count_case *what, int harmonics, fmm_work level[FMM_MAX_LEVELS]) {
  const fmm_point_form point = fmm_point_form_of(what, what->gradient, harmonics);
  double box_bytes = 8 * fmm_count_unknowns(what) * what->n_columns, product = harmonics ? 2 * fmm_harmonic_entries(what) * what->n_columns : 0;
  for (int32_t r = 0; r < lists->w.n_rows; r++) {
    int32_t box = lists->w.row[r];
    fmm_work *work = &level[tree->level[box]];
    double entries = (double)(lists->w.offset[r + 1] - lists->w.offset[r]);
    double targets = (double)(tree->target_end[box] - tree->target_begin[box]);
    double pairs = entries * targets * point.with_a_point;
    work->pairs += pairs;
    work->flops += pairs * point.flops + entries * product;
    work->other += entries * product;
    work->entries += entries;
    work->bytes += targets * fmm_target_bytes(what) + entries * box_bytes;
  }
  return FMM_OK;
}

fmm_status fmm_wlist_cost(const fmm_tree *tree, const fmm_lists *lists, const fmm_count_case *what, fmm_work level[FMM_MAX_LEVELS]) {
  return add(tree, lists, what, fmm_has_harmonics(what->pair), level);
}

fmm_status fmm_wlist_gpu_cost(const fmm_tree *tree, const fmm_lists *lists, const fmm_count_case *what, fmm_work level[FMM_MAX_LEVELS]) { return add(tree, lists, what, 0, level); }
