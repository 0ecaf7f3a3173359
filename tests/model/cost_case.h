/* Shared by the tests of the cost table: counts of which each number is told, and nearness. */
#ifndef FMM_TEST_COST_CASE_H
#define FMM_TEST_COST_CASE_H
#include "recorded_machine.h"
#include <math.h>
#include "model/model.h"

extern const fmm_pair_info fmm_info_laplace, fmm_info_stokes;

static inline void assert_near(double value, double expected, double relative) {
  if (!(fabs(value - expected) <= relative * fabs(expected))) fail_msg("%.17g is not %.17g within %g", value, expected, relative);
}

/* U compute-bound, V memory-bound on level 4; up on levels 2 and 3. */
static inline fmm_counts counts(void) {
  fmm_counts c = {.order = 6, .n_columns = 1, .n_surface = 152, .n_levels = 5, .n_sources = 1000, .n_targets = 2000, .n_boxes = 300};
  c.level[FMM_PHASE_ULIST][4] = (fmm_work){.pairs = 1e9, .flops = 11e9, .bytes = 1e6, .entries = 1000};
  c.level[FMM_WORK_ULIST_GPU][4] = c.level[FMM_PHASE_ULIST][4];
  c.level[FMM_WORK_ULIST_GPU_BOTH][4] = (fmm_work){.pairs = 0.55e9, .flops = 6e9, .bytes = 2e6, .entries = 600};
  c.level[FMM_PHASE_VLIST][4] = (fmm_work){.pairs = 500, .flops = 1e6, .bytes = 4e9, .entries = 100};
  c.level[FMM_WORK_VLIST_GPU][4] = (fmm_work){.flops = 9e12, .bytes = 4e9, .entries = 30};
  c.level[FMM_PHASE_UP][2] = (fmm_work){.pairs = 0, .flops = 3.2e9, .other = 3.2e9, .bytes = 10, .entries = 10};
  c.level[FMM_PHASE_UP][3] = (fmm_work){.pairs = 1e8, .flops = 11e8 + 1.6e9, .other = 1.6e9, .bytes = 10, .entries = 20};
  fmm_counts_add_up(&c);
  return c;
}
#endif
