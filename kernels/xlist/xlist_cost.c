/* Work of the X list, P2L: every source of the row's coarser leaves with every point of the box's downward check surface, or with the harmonics inside the box, for which a row has a product.
 * On a GPU a row is a warp's, or four warps' (kernels/pair/pair_lattice_cuda.cu), and rows are few and unequal: the longest runs on when all others have ended.
 * Bytes: check potentials read and written once a row; an entry's sources once an entry.
 * Reference: Ying, Biros, Zorin 2004, section 3.2 (dual of W). */
#include "kernels/harmonics_cost.h"
#include "kernels/pair/pair_tiles.h"

static double sources_of(const fmm_tree *tree, const fmm_rows *x, int32_t row) {
  double sources = 0;
  for (int64_t e = x->offset[row]; e < x->offset[row + 1]; e++) sources += (double)(tree->source_end[x->entry[e]] - tree->source_begin[x->entry[e]]);
  return sources;
}

static fmm_status add(const fmm_tree *tree, const fmm_lists *lists, const fmm_count_case *what, int harmonics, fmm_work level[FMM_MAX_LEVELS]) {
  const fmm_point_form point = fmm_point_form_of(what, 0, harmonics);
  double box_bytes = 8 * fmm_count_unknowns(what) * what->n_columns, product = harmonics ? 2 * fmm_harmonic_entries(what) * what->n_columns : 0;
  for (int32_t r = 0; r < lists->x.n_rows; r++) {
    fmm_work *work = &level[tree->level[lists->x.row[r]]];
    const double sources = sources_of(tree, &lists->x, r), pairs = sources * point.with_a_point;
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

/* The most pairs of a warp: of a row that it has alone, or its part of one that several share. */
static void see_longest(const fmm_tree *tree, const fmm_lists *lists, fmm_work level[FMM_MAX_LEVELS], double with_a_point) {
  double all = 0, most = 0;
  int at = 0;
  for (int l = 0; l < FMM_MAX_LEVELS; l++) all += level[l].pairs;
  for (int32_t r = 0; r < lists->x.n_rows; r++) {
    const double row = sources_of(tree, &lists->x, r) * with_a_point, own = row * FMM_X_SHARES > all ? row / FMM_X_WARPS : row;
    if (own > most) most = own, at = tree->level[lists->x.row[r]];
  }
  level[at].longest = most;
}

fmm_status fmm_xlist_gpu_cost(const fmm_tree *tree, const fmm_lists *lists, const fmm_count_case *what, fmm_work level[FMM_MAX_LEVELS]) {
  FMM_TRY(add(tree, lists, what, 0, level));
  see_longest(tree, lists, level, fmm_point_form_of(what, 0, 0).with_a_point);
  return FMM_OK;
}
