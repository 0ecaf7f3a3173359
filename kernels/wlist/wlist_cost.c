/* Work of the W list, M2P: every target of a leaf with every surface point of the row's finer boxes.
 * Bytes: the leaf's targets once a row; an entry's densities once an entry (a box is in the lists of few leaves).
 * Reference: Ying, Biros, Zorin 2004, section 3.2. */
#include "runtime/counts.h"

fmm_status fmm_wlist_cost(const fmm_tree *tree, const fmm_lists *lists, const fmm_count_case *what, fmm_work level[FMM_MAX_LEVELS]) {
  double pair_flops = fmm_pair_flops(what->pair, what->gradient, what->n_columns);
  double box_bytes = 8 * fmm_count_unknowns(what) * what->n_columns;
  for (int32_t r = 0; r < lists->w.n_rows; r++) {
    int32_t box = lists->w.row[r];
    fmm_work *work = &level[tree->level[box]];
    double entries = (double)(lists->w.offset[r + 1] - lists->w.offset[r]);
    double targets = (double)(tree->target_end[box] - tree->target_begin[box]);
    double pairs = entries * targets * fmm_surface_size(what->order);
    work->pairs += pairs;
    work->flops += pairs * pair_flops;
    work->entries += entries;
    work->bytes += targets * fmm_target_bytes(what) + entries * box_bytes;
  }
  return FMM_OK;
}
