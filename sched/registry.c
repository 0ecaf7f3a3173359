/* The named schedules, registered from the generated list, and the choice among them and the sets of precisions: the feasible one with the smallest
 * makespan, the first of the registry, in the first set, among equals. */
#include "sched/sched.h"

#include <string.h>

#include "sched/fmm_schedule_list.h"

#define DECLARE(name) extern const fmm_schedule fmm_schedule_##name;
FMM_SCHEDULE_LIST(DECLARE)
#define ENTRY(name) &fmm_schedule_##name,
const fmm_schedule *const fmm_schedules[] = {FMM_SCHEDULE_LIST(ENTRY) NULL};

const fmm_schedule *fmm_schedule_find(fmm_schedule_kind kind) {
  for (int i = 0; fmm_schedules[i]; i++)
    if (fmm_schedules[i]->kind == kind) return fmm_schedules[i];
  return NULL;
}

const char *fmm_schedule_name(fmm_schedule_kind kind) {
  const fmm_schedule *schedule = fmm_schedule_find(kind);
  return schedule ? schedule->name : kind == FMM_SCHEDULE_AUTO ? "auto" : "unknown";
}

static fmm_schedule_outcome evaluate(const fmm_cost_table *costs, const fmm_schedule *schedule, const fmm_precision precision[FMM_N_PHASES]) {
  fmm_schedule_outcome o = {.schedule = schedule};
  schedule->assign(costs, precision, &o.assignment);
  fmm_makespan_of(costs, &o.assignment, &o.makespan);
  return o;
}

int fmm_schedule_evaluate_all(const fmm_cost_table *costs, const fmm_precision_sets *precisions, fmm_schedule_outcome outcome[FMM_MAX_SCHEDULES]) {
  int n = 0;
  for (; fmm_schedules[n] && n < FMM_MAX_SCHEDULES; n++) {
    outcome[n] = evaluate(costs, fmm_schedules[n], precisions->set[0]);
    for (int k = 1; k < precisions->n; k++) {
      fmm_schedule_outcome other = evaluate(costs, fmm_schedules[n], precisions->set[k]);
      if (other.makespan.feasible && other.makespan.seconds < outcome[n].makespan.seconds) outcome[n] = other;
    }
  }
  return n;
}

fmm_status fmm_schedule_choose(const fmm_cost_table *costs, const fmm_precision_sets *precisions, fmm_schedule_kind kind, fmm_assignment *assignment,
                               fmm_makespan *makespan) {
  fmm_schedule_outcome outcome[FMM_MAX_SCHEDULES];
  const fmm_schedule_outcome *best = NULL, *named = NULL;
  int n = fmm_schedule_evaluate_all(costs, precisions, outcome);
  for (int i = 0; i < n; i++) {
    const fmm_schedule_outcome *o = &outcome[i];
    if (kind != FMM_SCHEDULE_AUTO && o->schedule->kind != kind) continue;
    named = o;
    if (o->makespan.feasible && (!best || o->makespan.seconds < best->makespan.seconds)) best = o;
  }
  if (!named) return FMM_FAIL(FMM_ERR_ARGUMENT, "no schedule has number %d; see fmm_schedule_kind", (int)kind);
  if (!best)
    return FMM_FAIL(FMM_ERR_DEVICE, "schedule %s cannot run: %s; choose auto or cpu", fmm_schedule_name(kind),
                    named->makespan.reason ? named->makespan.reason : "no device can");
  *assignment = best->assignment;
  *makespan = best->makespan;
  return FMM_OK;
}
