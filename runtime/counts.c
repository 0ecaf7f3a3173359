/* Work counts of an actual tree: calls the cost formula of every phase (kernels/PHASE/PHASE_cost.c) and adds up its levels.
 * The formulas stand beside the kernels they price, as the planner's costs do in FFTW. */
#include "counts.h"

#include <string.h>

fmm_phase_cost *const fmm_phase_costs[FMM_N_PHASES] = {
    [FMM_PHASE_UP] = fmm_up_cost,       [FMM_PHASE_ULIST] = fmm_ulist_cost, [FMM_PHASE_VLIST] = fmm_vlist_cost,
    [FMM_PHASE_WLIST] = fmm_wlist_cost, [FMM_PHASE_XLIST] = fmm_xlist_cost, [FMM_PHASE_DOWN] = fmm_down_cost};

const char *const fmm_phase_names[FMM_N_PHASES] = {"up", "ulist", "vlist", "wlist", "xlist", "down"};

void fmm_counts_add_up(fmm_counts *counts) {
  for (int phase = 0; phase < FMM_N_PHASES; phase++) {
    fmm_work total = {0};
    for (int level = 0; level < FMM_MAX_LEVELS; level++) {
      const fmm_work *w = &counts->level[phase][level];
      total.pairs += w->pairs;
      total.flops += w->flops;
      total.bytes += w->bytes;
      total.entries += w->entries;
    }
    counts->total[phase] = total;
  }
}

fmm_status fmm_count_work(const fmm_tree *tree, const fmm_lists *lists, const fmm_count_case *what, fmm_counts *counts) {
  fmm_counts c = {.order = what->order,
                  .n_columns = what->n_columns,
                  .gradient = what->gradient,
                  .n_surface = fmm_surface_size(what->order),
                  .n_levels = tree->n_levels,
                  .n_sources = tree->sources.n,
                  .n_targets = tree->targets.n,
                  .n_leaves = tree->n_leaves,
                  .n_boxes = tree->n_boxes,
                  .v_pairs = lists->v_pairs};
  for (int phase = 0; phase < FMM_N_PHASES; phase++) FMM_TRY(fmm_phase_costs[phase](tree, lists, what, c.level[phase]));
  fmm_counts_add_up(&c);
  *counts = c;
  return FMM_OK;
}

fmm_box_work fmm_box_work_of(const fmm_count_case *what) {
  double n = fmm_count_unknowns(what), columns = what->n_columns;
  double product = 2 * n * n * columns; /* one n x n operator on every column */
  return (fmm_box_work){.up_leaf_flops = product,   /* U^T of the check potentials; V S^-1 is up_box */
                        .up_child_flops = product,  /* M2M of one child, U^T multiplied in */
                        .up_box_flops = product,    /* V S^-1 */
                        .down_flops = 2 * product,  /* U^T of the check potentials, V S^-1 */
                        .down_parent_flops = product, /* L2L of the parent, U^T multiplied in */
                        .box_bytes = 8 * n * columns,
                        .operator_bytes = 8 * n * n};
}
