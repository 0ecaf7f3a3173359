/* Keeping the tolerance where densities cancel: the order is chosen before they are known. Results are held against direct sums at a few targets, and where they err too much the plan is made
 * anew for a tolerance that is tighter by as much, which changes order and precision alike. */
#include <math.h>
#include <string.h>

#include "arithmetic.h"
#include "kernels/pair/pair_sums.h"
#include "plan.h"
#include "sampled_error.h"

/* A far field's errors are uneven within a box: of 216 cases (20,000 points of the standard distributions, three kernels, 3 to 9 digits) FEW targets told 0.3 to 2.1 of the true error, less than 0.7 of it in 22;
 * MANY 0.55 to 1.45, within a quarter in all but 8. So FEW serve only where MANY would be too much work, and only where the error is far from the tolerance; and where it is near to it, more than MANY tell, as long as these are not too much work. */
enum { FEW = 64, MANY = 512, MOST = 4096, FOR_REACH = 16, MOST_ROUNDS = 5 };
static const double pairs_at_first = 0x1p26, pairs_in_doubt = 0x1p28;
static const double clear = 0.4, doubtful = 0.6, kept = 0.9, reserve = 2;
static const double reach_margin = 8;  /* what rounding leaves was 4.5 to 6 times what fmm_sample_reach says (gradients inside a shell of charges of one sign) */
static const double tightest = 1e-14;  /* fmm_options_check */

static double larger_of(const fmm_sampled_error *e) { return isnan(e->potential) || isnan(e->gradient) ? NAN : fmax(e->potential, e->gradient); }

/* So many targets as the work allows, within limits. */
static int64_t as_many_as(const fmm_plan *plan, double pairs, int64_t least, int64_t most) {
  const double n = pairs / ((double)plan->setup->tree.sources.n + 1);
  return n < (double)least ? least : n > (double)most ? most : (int64_t)n;
}

static fmm_status measure(const fmm_plan *plan, const double *densities, const double *potential, const double *gradient, double *error) {
  const int64_t first = as_many_as(plan, pairs_at_first, FEW, MANY), last = as_many_as(plan, pairs_in_doubt, MANY, MOST), all = plan->setup->tree.targets.n_input;
  const double tolerance = plan->asked_tolerance;
  fmm_sampled_error e;
  FMM_TRY(fmm_sample_error(plan, densities, potential, gradient, first, &e));
  if (larger_of(&e) > clear * tolerance && first < MANY && first < all) FMM_TRY(fmm_sample_error(plan, densities, potential, gradient, MANY, &e));
  if (larger_of(&e) > doubtful * tolerance && larger_of(&e) < tolerance / doubtful && MANY < last && MANY < all) FMM_TRY(fmm_sample_error(plan, densities, potential, gradient, last, &e));
  *error = larger_of(&e);
  return FMM_OK;
}

/* What the error depends on: another tolerance may leave all of this as it is. */
typedef struct nature { int order, precision[FMM_N_PHASES]; fmm_pair_accuracy accuracy; } nature;

static nature nature_of(const fmm_plan *plan) {
  const fmm_setup *s = plan->setup;
  fmm_pair_sum sum;
  nature n;
  memset(&n, 0, sizeof n);
  fmm_pair_sum_prepare(&sum, plan->pair, s->params, s->state.n_columns, s->state.gradient, s->state.precision[FMM_PHASE_ULIST], fmm_tolerance_of_roots(&s->state));
  fmm_pair_sum_allow_coarse(&sum);
  n.order = s->info.order, n.accuracy = sum.accuracy;
  for (int phase = 0; phase < FMM_N_PHASES; phase++) n.precision[phase] = s->state.precision[phase];
  return n;
}

/* The highest order, or none, with sums that round as little as they can. */
static int is_most_exact(const fmm_plan *plan) {
  const nature n = nature_of(plan);
  int doubles = 0;
  for (int phase = 0; phase < FMM_N_PHASES; phase++) doubles += n.precision[phase] == FMM_PRECISION_DOUBLE;
  return (n.order == 0 || n.order == FMM_MAX_ORDER) && doubles == FMM_N_PHASES && n.accuracy == FMM_PAIR_FULL;
}

/* The error that another plan may have: what is asked or, if that is more, what rounding leaves; infinite where there is nothing left to choose. */
static fmm_status find_goal(const fmm_plan *plan, const double *densities, const double *potential, const double *gradient, double *goal) {
  const fmm_options *o = &plan->options;
  fmm_sampled_error reach;
  *goal = INFINITY;
  if (o->order || o->precision == FMM_PRECISION_MIXED || o->precision == FMM_PRECISION_SINGLE || o->tolerance <= tightest || is_most_exact(plan)) return FMM_OK;
  FMM_TRY(fmm_sample_reach(plan, densities, potential, gradient, FOR_REACH, &reach));
  *goal = fmax(plan->asked_tolerance, reach_margin * larger_of(&reach));
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

static fmm_status renew_for(fmm_plan *plan, double tightened) {
  const double before = plan->tightened, tolerance = plan->options.tolerance;
  plan->options.tolerance = fmax(plan->asked_tolerance / tightened, tightest);
  plan->tightened = plan->asked_tolerance / plan->options.tolerance;
  const fmm_status status = renew(plan);
  if (status != FMM_OK) plan->tightened = before, plan->options.tolerance = tolerance;
  return status;
}

/* Tighter by this factor, or by more until that makes a difference. */
static fmm_status tighten(fmm_plan *plan, double factor) {
  const double begin = fmm_now_s(), setup_s = plan->setup->info.setup_s, more = 4;
  const nature before = nature_of(plan);
  FMM_TRY(renew_for(plan, plan->tightened * factor));
  for (int i = 0; i < MOST_ROUNDS && plan->options.tolerance > tightest; i++) {
    const nature now = nature_of(plan);
    if (memcmp(&now, &before, sizeof now) || renew_for(plan, plan->tightened * more) != FMM_OK) break;
  }
  plan->setup->info.setup_s = setup_s + fmm_now_s() - begin;
  plan->rounds++;
  fmm_trace_clear(&plan->trace);
  fmm_plan_note_choice(plan);
  return FMM_OK;
}

fmm_status fmm_plan_keep_tolerance(fmm_plan *plan, const double *densities, const double *potential, const double *gradient, double *error, int *changed) {
  FMM_OWN_ARITHMETIC();
  double e, goal = INFINITY;
  FMM_TRY(fmm_call_check_plan(plan, "fmm_plan_keep_tolerance"));
  FMM_TRY(fmm_call_check_arrays(plan, plan->setup->tree.targets.n_input, densities, potential, gradient));
  FMM_TRY(fmm_call_check_spaces(plan, plan->setup->tree.targets.n_input, densities, potential, gradient, FMM_MEMORY_HOST, FMM_MEMORY_HOST));
  if (!(plan->setup->info.last_evaluation_s > 0)) return FMM_FAIL(FMM_ERR_ARGUMENT, "there are no results to hold against the tolerance yet; call fmm_plan_execute first");
  FMM_TRY(fmm_call_check_densities(plan, densities));
  FMM_TRY(measure(plan, densities, potential, gradient, &e));
  const int kept_it = !(e > kept * plan->asked_tolerance);
  if (kept_it) plan->rounds = 0;
  if (!kept_it && plan->rounds < MOST_ROUNDS) FMM_TRY(find_goal(plan, densities, potential, gradient, &goal));
  const int renews = e > kept * goal;
  if (renews) FMM_TRY(tighten(plan, reserve * e / goal));
  if (error) *error = e;
  if (changed) *changed = renews;
  return FMM_OK;
}
