/* Keeping the tolerance where densities cancel: the order is chosen before they are known. Results are held against direct sums at a few targets, and where they err too much the plan is made
 * anew for a tolerance that is tighter by as much, which changes order and precision alike. */
#include <math.h>

#include "plan.h"
#include "sampled_error.h"

/* A far field's errors are uneven within a box: of 216 cases (20,000 points of the standard distributions, three kernels, 3 to 9 digits) FEW targets told 0.14 to 2.8 of the true error, less than 0.7 of it in 33; MANY 0.6 to 2.3, within a quarter in
 * all but 4. So FEW serve only where MANY would be more than PAIRS, and only where the error is far from the tolerance. */
enum { FEW = 64, MANY = 512, PAIRS = 1 << 26, FOR_REACH = 16 };
static const double clear = 0.4, kept = 0.95, reserve = 2;
static const double tightest = 1e-14; /* fmm_options_check */

static double larger_of(const fmm_sampled_error *e) { return isnan(e->potential) || isnan(e->gradient) ? NAN : fmax(e->potential, e->gradient); }

static fmm_status measure(const fmm_plan *plan, const double *densities, const double *potential, const double *gradient, double *error) {
  fmm_sampled_error e;
  const int64_t affordable = PAIRS / (plan->setup->tree.sources.n + 1), first = affordable < FEW ? FEW : affordable < MANY ? affordable : MANY;
  FMM_TRY(fmm_sample_error(plan, densities, potential, gradient, first, &e));
  if (first < MANY && larger_of(&e) > clear * plan->asked_tolerance && plan->setup->tree.targets.n_input > first) FMM_TRY(fmm_sample_error(plan, densities, potential, gradient, MANY, &e));
  *error = larger_of(&e);
  return FMM_OK;
}

/* Whether another plan could err less. */
static fmm_status can_tighten(const fmm_plan *plan, const double *densities, const double *potential, const double *gradient, int *can) {
  const fmm_options *o = &plan->options;
  fmm_sampled_error reach;
  *can = 0;
  if (o->order || o->precision == FMM_PRECISION_MIXED || o->precision == FMM_PRECISION_SINGLE || o->tolerance <= tightest) return FMM_OK;
  FMM_TRY(fmm_sample_reach(plan, densities, potential, gradient, FOR_REACH, &reach));
  *can = reach.potential < plan->asked_tolerance && reach.gradient < plan->asked_tolerance;
  return FMM_OK;
}

/* The plan's points get a new set-up; the one before goes. A GPU that the new one did not get, for want of what the old one held, it may have when that is gone. */
static fmm_status renew(fmm_plan *plan) {
  fmm_setup *fresh = NULL;
  FMM_TRY(fmm_setup_recreate(&fresh, plan));
  const int degraded = fresh->no_gpu[0] && !plan->setup->no_gpu[0];
  fmm_setup_destroy(&plan->setup);
  plan->setup = fresh;
  if (!degraded || fmm_setup_recreate(&fresh, plan) != FMM_OK) return FMM_OK;
  fmm_setup_destroy(&plan->setup);
  plan->setup = fresh;
  return FMM_OK;
}

static fmm_status tighten(fmm_plan *plan, double error) {
  const double before = plan->tightened, begin = fmm_now_s(), setup_s = plan->setup->info.setup_s;
  plan->options.tolerance = fmax(plan->asked_tolerance / (before * reserve * error / plan->asked_tolerance), tightest);
  plan->tightened = plan->asked_tolerance / plan->options.tolerance;
  const fmm_status status = renew(plan);
  if (status != FMM_OK) return plan->tightened = before, plan->options.tolerance = plan->asked_tolerance / before, status;
  plan->setup->info.setup_s = setup_s + fmm_now_s() - begin;
  fmm_trace_clear(&plan->trace);
  fmm_plan_note_choice(plan);
  return FMM_OK;
}

fmm_status fmm_plan_keep_tolerance(fmm_plan *plan, const double *densities, const double *potential, const double *gradient, double *error, int *changed) {
  double e;
  int can = 0;
  FMM_TRY(fmm_call_check_plan(plan, "fmm_plan_keep_tolerance"));
  FMM_TRY(fmm_call_check_arrays(plan, plan->setup->tree.targets.n_input, densities, potential, gradient));
  if (!(plan->setup->info.last_evaluation_s > 0)) return FMM_FAIL(FMM_ERR_ARGUMENT, "there are no results to hold against the tolerance yet; call fmm_plan_execute first");
  FMM_TRY(fmm_call_check_densities(plan, densities));
  FMM_TRY(measure(plan, densities, potential, gradient, &e));
  if (e > kept * plan->asked_tolerance) FMM_TRY(can_tighten(plan, densities, potential, gradient, &can));
  if (can) FMM_TRY(tighten(plan, e));
  if (error) *error = e;
  if (changed) *changed = can;
  return FMM_OK;
}
