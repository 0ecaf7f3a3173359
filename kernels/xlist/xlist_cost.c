/* Work of the X list, P2L: every source of the row's coarser leaves with every point of the box's downward check surface, or with the harmonics inside the box, for which a row has a product.
 * Bytes: check potentials read and written once a row; an entry's sources once an entry.
 * Reference: Ying, Biros, Zorin 2004, section 3.2 (dual of W). */
#include "kernels/harmonics_cost.h"

static fmm_status add(const fmm_tree *tree, const fmm_lists *lists, const fmm_count_case *what, int harmonics, fmm_work level[FMM_MAX_LEVELS]) {
  const fmm_point_form point = fmm_point_form_of(what, 0, harmonics);
  double box_bytes = 8 * fmm_count_unknowns(what) * what->n_columns, product = harmonics ? 2 * fmm_harmonic_entries(what) * what->n_columns : 0;
  for (int32_t r = 0; r < lists->x.n_rows; r++) {
    fmm_work *work = &level[tree->level[lists->x.row[r]]];
    double sources = 0;
    for (int64_t e = lists->x.offset[r]; e < lists->x.offset[r + 1]; e++) {
      int32_t s = lists->x.entry[e];
      sources += (double)(tree->source_end[s] - tree->source_begin[s]);
    }
    double pairs = sources * point.with_a_point;
    work->pairs += pairs;
    work->flops += pairs * point.flops + product;
    work->other += product;
    work->entries += (double)(lists->x.offset[r + 1] - lists->x.offset[r]);
    work->bytes += sources * fmm_source_bytes(what) + 2 * box_bytes;
  }
  return FMM_OK;
}

fmm_status fmm_xlist_cost(const fmm_tree *tree, const fmm_lists *lists, const fmm_count_case *what, fmm_work level[FMM_MAX_LEVELS]) {
  return add(tree, lists, what, fmm_has_harmonics(what->pair), level);
}

fmm_status fmm_xlist_gpu_cost(const fmm_tree *tree, const fmm_lists *lists, const fmm_count_case *what, fmm_work level[FMM_MAX_LEVELS]) { return add(tree, lists, what, 0, level); }
