/* One evaluation: check and gather the densities, run the phases by the plan's assignment, add the clusters, scatter the results. The
 * caller's arrays are written only when everything has succeeded. Allocates nothing. */
#include <math.h>
#include <string.h>

#include "plan.h"

/* First row with a density that is not finite, or -1. Rows are cut evenly; the smallest row wins, whatever the threads. */
static int64_t first_bad_row(int64_t n_rows, int width, const double *values, int threads) {
  int64_t bad = n_rows;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(min : bad)
  for (int64_t row = 0; row < n_rows; row++)
    for (int k = 0; k < width; k++)
      if (!isfinite(values[row * width + k]) && row < bad) bad = row;
  return bad < n_rows ? bad : -1;
}

static fmm_status check_densities(const fmm_plan *plan, const double *densities) {
  const fmm_setup *s = plan->setup;
  int width = s->n_density_planes, columns = plan->options.n_columns;
  int64_t row = first_bad_row(s->tree.sources.n_input, width, densities, plan->threads);
  if (row < 0) return FMM_OK;
  int k = 0;
  while (isfinite(densities[row * width + k])) k++;
  return FMM_FAIL(FMM_ERR_INPUT, "density row %lld (from 0), component %d, column %d is %g; every density must be finite", (long long)row, k / columns,
                  k % columns, densities[row * width + k]);
}

static fmm_status check_call(const fmm_plan *plan, const double *densities, const double *potential, const double *gradient) {
  if (!plan) return FMM_FAIL(FMM_ERR_ARGUMENT, "fmm_plan_execute: plan is NULL");
  if (!plan->setup) return FMM_FAIL(FMM_ERR_ARGUMENT, "this plan has no points yet; call fmm_plan_set_points first");
  const fmm_tree *t = &plan->setup->tree;
  if (t->sources.n_input && !densities) return FMM_FAIL(FMM_ERR_ARGUMENT, "densities is NULL, but the plan has %lld sources", (long long)t->sources.n_input);
  if (t->targets.n_input && !potential) return FMM_FAIL(FMM_ERR_ARGUMENT, "potential is NULL, but the plan has %lld targets", (long long)t->targets.n_input);
  if (gradient && !plan->options.gradient) return FMM_FAIL(FMM_ERR_ARGUMENT, "gradient is given, but the plan was made without; set options.gradient before fmm_plan_create");
  if (!gradient && plan->options.gradient && t->targets.n_input)
    return FMM_FAIL(FMM_ERR_ARGUMENT, "gradient is NULL, but the plan was made for potential and gradient");
  return FMM_OK;
}

static void scatter(const fmm_setup *s, double *potential, double *gradient, int threads) {
  int values = s->state.pair->info->outputs * s->state.n_columns;
  fmm_scatter_planes(&s->tree.targets, values, s->potential_plane, s->factor, potential, threads);
  if (gradient) fmm_scatter_planes(&s->tree.targets, 3 * values, s->gradient_plane, s->gradient_factor, gradient, threads);
}

fmm_status fmm_plan_execute(fmm_plan *plan, const double *densities, double *potential, double *gradient) {
  FMM_TRY(check_call(plan, densities, potential, gradient));
  FMM_TRY(check_densities(plan, densities));
  fmm_setup *s = plan->setup;
  double begin = fmm_now_s();
  fmm_trace_clear(&plan->trace);
  fmm_gather_densities(&s->tree.sources, s->n_density_planes, densities, s->density, plan->threads);
  fmm_trace_add(&plan->trace, "cpu", "gather densities", begin, fmm_now_s());
  FMM_TRY(fmm_dispatch(s, &plan->trace));
  if (s->n_nested) {
    double t = fmm_now_s();
    FMM_TRY(fmm_nested_add(s));
    fmm_trace_add(&plan->trace, "cpu", "clusters", t, fmm_now_s());
  }
  double t = fmm_now_s();
  scatter(s, potential, gradient, plan->threads);
  double end = fmm_now_s();
  fmm_trace_add(&plan->trace, "cpu", "scatter results", t, end);
  s->info.last_evaluation_s = end - begin;
  return FMM_OK;
}
