/* Learning from measured times, only when asked: each phase's constant (model/model.h says which else) is multiplied by measured over predicted of the latest execution,
 * the tree is tuned again with them, and if another leaf size, root scale or assignment is predicted faster the plan is made anew from its own points. */
#include <math.h>
#include <string.h>

#include "arithmetic.h"
#include "plan.h"

static void refit(fmm_machine *machine, const fmm_setup *s) {
  for (int phase = 0; phase < FMM_N_PHASES; phase++) {
    const fmm_plan_info *i = &s->info;
    if (!(i->phase_predicted_s[phase] > 0) || !(i->phase_measured_s[phase] > 0)) continue;
    fmm_cost_learn(machine, &s->counts, (fmm_phase)phase, i->device[phase], fmm_precision_index(i->precision[phase]), i->phase_measured_s[phase] / i->phase_predicted_s[phase]);
  }
}

fmm_status fmm_plan_adapt(fmm_plan *plan, int *changed) {
  FMM_OWN_ARITHMETIC();
  if (!plan) return FMM_FAIL(FMM_ERR_ARGUMENT, "fmm_plan_adapt: plan is NULL");
  fmm_setup *old = plan->setup, *fresh = NULL;
  if (!old) return FMM_FAIL(FMM_ERR_ARGUMENT, "fmm_plan_adapt: this plan has no points; call fmm_plan_set_points first");
  if (!(old->info.last_evaluation_s > 0)) return FMM_FAIL(FMM_ERR_ARGUMENT, "there is nothing to learn from yet; call fmm_plan_execute first");
  fmm_machine before = plan->machine;
  refit(&plan->machine, old);
  fmm_status status = fmm_setup_recreate(&fresh, plan);
  if (status != FMM_OK) return plan->machine = before, status;
  const int degraded = fresh->no_gpu[0] && !old->no_gpu[0]; /* for want of what the old one holds */
  int differs = !degraded && strcmp(fresh->info.plan_id, old->info.plan_id) != 0;
  fresh->info.setup_s = old->info.setup_s;
  if (!differs) old->foretold_s = degraded ? NAN : fresh->foretold_s, old->kept_choice = 0; /* by the constants of now; chosen, as it would be anew */
  fmm_setup_destroy(differs ? &plan->setup : &fresh);
  if (differs) plan->setup = fresh;
  fmm_plan_note_choice(plan);
  if (changed) *changed = differs;
  return FMM_OK;
}
