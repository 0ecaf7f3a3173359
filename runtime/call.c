/* What the arrays of a call must be, of an execution and of direct sums: refused alike, with the value and the way out. */
#include <math.h>

#include "plan.h"

fmm_status fmm_call_check_plan(const fmm_plan *plan, const char *function) {
  if (!plan) return FMM_FAIL(FMM_ERR_ARGUMENT, "%s: plan is NULL", function);
  if (!plan->setup) return FMM_FAIL(FMM_ERR_ARGUMENT, "%s: this plan has no points; call fmm_plan_set_points first", function);
  return FMM_OK;
}

fmm_status fmm_call_check_arrays(const fmm_plan *plan, int64_t n_rows, const double *densities, const double *potential, const double *gradient) {
  int64_t n_sources = plan->setup->tree.sources.n_input;
  if (n_sources && !densities) return FMM_FAIL(FMM_ERR_ARGUMENT, "densities is NULL, but the plan has %lld sources", (long long)n_sources);
  if (n_rows && !potential) return FMM_FAIL(FMM_ERR_ARGUMENT, "potential is NULL, but there are results at %lld targets", (long long)n_rows);
  if (gradient && !plan->options.gradient) return FMM_FAIL(FMM_ERR_ARGUMENT, "gradient is given, but the plan was made without; set options.gradient before fmm_plan_create");
  if (!gradient && plan->options.gradient && n_rows) return FMM_FAIL(FMM_ERR_ARGUMENT, "gradient is NULL, but the plan was made for potential and gradient");
  return FMM_OK;
}

/* First row with a density that is not finite, or -1. Rows are cut evenly; the smallest row wins, whatever the threads. */
static int64_t first_bad_row(int64_t n_rows, int width, const double *values, int threads) {
  int64_t bad = n_rows;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(min : bad)
  for (int64_t row = 0; row < n_rows; row++)
    for (int k = 0; k < width; k++)
      if (!isfinite(values[row * width + k]) && row < bad) bad = row;
  return bad < n_rows ? bad : -1;
}

fmm_status fmm_call_check_densities(const fmm_plan *plan, const double *densities) {
  const fmm_setup *s = plan->setup;
  int width = s->n_density_planes, columns = plan->options.n_columns;
  int64_t row = first_bad_row(s->tree.sources.n_input, width, densities, plan->threads);
  if (row < 0) return FMM_OK;
  int k = 0;
  while (isfinite(densities[row * width + k])) k++;
  return FMM_FAIL(FMM_ERR_INPUT, "density row %lld (from 0), component %d, column %d is %g; every density must be finite", (long long)row, k / columns,
                  k % columns, densities[row * width + k]);
}
