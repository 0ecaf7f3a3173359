/* Work of the X list, P2L: every source of the row's coarser leaves with every point of the box's downward check surface.
 * Bytes: check potentials read and written once a row; an entry's sources once an entry.
 * Reference: Ying, Biros, Zorin 2004, section 3.2 (dual of W). */
#include "runtime/counts.h"

fmm_status fmm_xlist_cost(const fmm_tree *tree, const fmm_lists *lists, const fmm_count_case *what, fmm_work level[FMM_MAX_LEVELS]) {
  double pair_flops = fmm_pair_flops(what->pair, 0, what->n_columns);
  double box_bytes = 8 * fmm_count_unknowns(what) * what->n_columns;
  for (int32_t r = 0; r < lists->x.n_rows; r++) {
    fmm_work *work = &level[tree->level[lists->x.row[r]]];
    double sources = 0;
    for (int64_t e = lists->x.offset[r]; e < lists->x.offset[r + 1]; e++) {
      int32_t s = lists->x.entry[e];
      sources += (double)(tree->source_end[s] - tree->source_begin[s]);
    }
    double pairs = sources * fmm_surface_size(what->order);
    work->pairs += pairs;
    work->flops += pairs * pair_flops;
    work->entries += (double)(lists->x.offset[r + 1] - lists->x.offset[r]);
    work->bytes += sources * fmm_source_bytes(what) + 2 * box_bytes;
  }
  return FMM_OK;
}
