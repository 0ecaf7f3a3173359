/* Work of the U list: every target of a leaf with every source of the row's entries, self pairs included (they are evaluated and give zero).
 * Both directions of a pair of leaves count as two, also where a kernel evaluates them at once (model/cost.c prices that).
 * Bytes: every leaf's sources and targets once, as neighbours stay in cache between rows (Morton order).
 * Reference: Choi et al. 2014, eq. 2 (pairs) and the 11 flops of a Laplace pair in eq. 6. */
#include "runtime/counts.h"

fmm_status fmm_ulist_cost(const fmm_tree *tree, const fmm_lists *lists, const fmm_count_case *what, fmm_work level[FMM_MAX_LEVELS]) {
  double pair_flops = fmm_pair_flops(what->pair, what->gradient, what->n_columns);
  for (int32_t r = 0; r < lists->u.n_rows; r++) {
    int32_t box = lists->u.row[r];
    fmm_work *work = &level[tree->level[box]];
    double sources = 0, targets = (double)(tree->target_end[box] - tree->target_begin[box]);
    for (int64_t e = lists->u.offset[r]; e < lists->u.offset[r + 1]; e++) {
      int32_t s = lists->u.entry[e];
      sources += (double)(tree->source_end[s] - tree->source_begin[s]);
    }
    work->pairs += sources * targets;
    work->flops += sources * targets * pair_flops;
    work->entries += (double)(lists->u.offset[r + 1] - lists->u.offset[r]);
    work->bytes += targets * fmm_target_bytes(what) + (double)(tree->source_end[box] - tree->source_begin[box]) * fmm_source_bytes(what);
  }
  return FMM_OK;
}
