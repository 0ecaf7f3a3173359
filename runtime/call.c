/* What the arrays of a call must be, of an execution and of direct sums: refused alike, with the value and the way out. */
#include <math.h>

#include "gpu.h"
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

static fmm_status check_space(const fmm_plan *plan, const char *name, const double *array, int64_t doubles, fmm_memory_space space) {
  const int on_gpu = plan->options.densities_space == FMM_MEMORY_DEVICE || plan->options.results_space == FMM_MEMORY_DEVICE;
  if (!on_gpu && !fmm_plan_may_use_gpu(plan)) return FMM_OK; /* to ask would start the driver */
  return fmm_gpu_check_array(plan->options.gpu_device, name, array, sizeof *array * (size_t)doubles, space);
}

fmm_status fmm_call_check_host(const fmm_plan *plan, const char *name, const double *array, int64_t doubles) { return check_space(plan, name, array, doubles, FMM_MEMORY_HOST); }

fmm_status fmm_call_check_spaces(const fmm_plan *plan, int64_t n_rows, const double *densities, const double *potential, const double *gradient, fmm_memory_space densities_space, fmm_memory_space results_space) {
  const fmm_setup *s = plan->setup;
  const int64_t values = n_rows * plan->pair->info->outputs * s->state.n_columns;
  FMM_TRY(check_space(plan, "densities", densities, s->tree.sources.n_input * s->n_density_planes, densities_space));
  FMM_TRY(check_space(plan, "potential", potential, values, results_space));
  return check_space(plan, "gradient", gradient, 3 * values, results_space);
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
