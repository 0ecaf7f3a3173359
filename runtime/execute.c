/* One evaluation: gather the densities and run the phases by the plan's assignment (dispatch.c), add the clusters, scatter the results. The
 * caller's arrays are written only when all that is computed has succeeded. Allocates nothing. */
#include <string.h>

#include "arithmetic.h"
#include "column_units.h"
#include "plan.h"

/* Results on the host, in the caller's order, if all of them are finite. */
static fmm_status scatter(const fmm_plan *plan, double *potential, double *gradient) {
  const fmm_setup *s = plan->setup;
  const fmm_points *targets = &s->tree.targets;
  if (s->column_exponent) fmm_scale_columns(s->potential, s->n_result_planes, targets->n, s->state.n_columns, s->column_exponent, 1, plan->threads);
  const int values = s->state.pair->info->outputs * s->state.n_columns;
  const fmm_delivery deliveries[] = {{values, s->potential_plane, s->factor, potential}, {3 * values, s->gradient_plane, s->gradient_factor, gradient}};
  const int64_t bad = fmm_scatter_results(targets, gradient ? 2 : 1, deliveries, plan->threads);
  if (bad < 0) return FMM_OK;
  return FMM_FAIL(FMM_ERR_INPUT, "the result at target row %lld (from 0) is beyond double precision; use smaller densities, or coordinates in another unit",
                  (long long)targets->input_row[targets->first ? targets->first[bad] : bad]);
}

/* The caller's device arrays where the CPU takes part: densities are copied to the host first, results back at the end. */
static fmm_status from_device(fmm_plan *plan, fmm_call *call) {
  fmm_setup *s = plan->setup;
  if (!s->host_density) return FMM_OK;
  size_t bytes = sizeof(double) * (size_t)s->tree.sources.n_input * (size_t)s->n_density_planes;
  FMM_TRY(fmm_gpu_copy_now(plan->options.gpu_device, s->host_density, call->densities, bytes, plan->options.cuda_stream));
  call->densities = s->host_density;
  call->densities_space = FMM_MEMORY_HOST;
  return FMM_OK;
}

static fmm_status deliver(fmm_plan *plan, const fmm_call *call) {
  fmm_setup *s = plan->setup;
  if (call->results_space == FMM_MEMORY_HOST) return scatter(plan, call->potential, call->gradient);
  size_t bytes = sizeof(double) * (size_t)s->tree.targets.n_input * (size_t)(s->state.pair->info->outputs * s->state.n_columns);
  FMM_TRY(scatter(plan, s->host_potential, call->gradient ? s->host_gradient : NULL));
  FMM_TRY(fmm_gpu_copy_now(plan->options.gpu_device, call->potential, s->host_potential, bytes, plan->options.cuda_stream));
  return call->gradient ? fmm_gpu_copy_now(plan->options.gpu_device, call->gradient, s->host_gradient, 3 * bytes, plan->options.cuda_stream) : FMM_OK;
}

static fmm_status evaluate(fmm_plan *plan, fmm_call *call) {
  fmm_setup *s = plan->setup;
  FMM_TRY(from_device(plan, call));
  fmm_status status = fmm_dispatch(s, call, &plan->trace);
  if (status == FMM_ERR_INPUT && call->densities_space == FMM_MEMORY_HOST) FMM_TRY(fmm_call_check_densities(plan, call->densities)); /* with the value at fault */
  FMM_TRY(status);
  if (call->delivered) return FMM_OK;
  double t = fmm_now_s();
  if (s->n_nested) {
    FMM_TRY(fmm_nested_add(s));
    const double end = fmm_now_s();
    fmm_trace_add(&plan->trace, "cpu", "clusters", t, end);
    s->info.clusters_measured_s = end - t;
    t = end;
  }
  FMM_TRY(deliver(plan, call));
  fmm_trace_add(&plan->trace, "cpu", "scatter results", t, fmm_now_s());
  return FMM_OK;
}

fmm_status fmm_plan_execute(fmm_plan *plan, const double *densities, double *potential, double *gradient) {
  FMM_OWN_ARITHMETIC();
  FMM_TRY(fmm_call_check_plan(plan, "fmm_plan_execute"));
  FMM_TRY(fmm_call_check_arrays(plan, plan->setup->tree.targets.n_input, densities, potential, gradient));
  FMM_TRY(fmm_call_check_spaces(plan, plan->setup->tree.targets.n_input, densities, potential, gradient, plan->options.densities_space, plan->options.results_space));
  fmm_call call = {densities, potential, gradient, plan->options.densities_space, plan->options.results_space, 0};
  double begin = fmm_now_s();
  fmm_trace_clear(&plan->trace);
  if (fmm_dispatch_uses(plan->setup, FMM_DEVICE_CPU) || plan->setup->n_nested) fmm_plan_bind(plan, plan->setup->tree.sources.n, plan->setup->tree.targets.n);
  fmm_status status = evaluate(plan, &call);
  fmm_binding_end(plan->binding);
  FMM_TRY(status);
  plan->setup->info.last_evaluation_s = fmm_now_s() - begin;
  return FMM_OK;
}
