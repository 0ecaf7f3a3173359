/* Leaf size and root scale: what the options name, else what points that moved keep, else the pair with the smallest predicted makespan on estimated counts. */
#include "count_case.h"
#include "estimate.h"
#include "plan.h"
#include "points.h"

typedef struct estimate_context { fmm_estimate *estimate; fmm_count_case what; } estimate_context;

static fmm_status estimate_counts(void *context, int n, const fmm_tree_options *choice, fmm_counts *counts) {
  estimate_context *c = context;
  return fmm_estimate_counts(c->estimate, n, choice, &c->what, counts);
}

fmm_status fmm_choose_tree(const fmm_plan *plan, int order, const fmm_precision_sets *precisions, const fmm_point_rows *p, fmm_sorted_rows *sorted, fmm_tree_options *choice, int *kept) {
  const fmm_options *o = &plan->options;
  *choice = (fmm_tree_options){o->leaf_size, o->root_scale}, *kept = 0;
  if (o->leaf_size && o->root_scale > 0) return FMM_OK;
  *kept = plan->keeps && order == plan->chosen.order;
  if (*kept) return *choice = plan->chosen.tree, FMM_OK;
  estimate_context context = {.what = fmm_count_case_of(o, plan->pair->info, &plan->machine, order)};
  context.what.no_gpu |= o->schedule == FMM_SCHEDULE_CPU; /* the plan itself counts them, for what it tells of other schedules */
  FMM_TRY(fmm_estimate_create_within(&context.estimate, &p->bounds, p->n_sources, p->sources, p->n_targets, p->targets, plan->threads));
  fmm_tune_effort effort = {fmm_estimate_seconds(context.estimate, plan->machine.device[FMM_DEVICE_CPU].units), o->executions, NULL};
  fmm_tuned best;
  fmm_counts even[FMM_EVEN_TREES];
  int is_even = 0;
  fmm_status status = o->leaf_size || o->root_scale > 0 ? FMM_OK : fmm_estimate_even(context.estimate, &context.what, even, &is_even);
  if (is_even) effort.even = even;
  if (status == FMM_OK) status = fmm_tune(&plan->machine, plan->pair->info, precisions, o->schedule, o->leaf_size, o->root_scale, fmm_estimate_dimension(context.estimate), &effort, estimate_counts, &context, &best);
  fmm_estimate_take_sorted(context.estimate, sorted);
  fmm_estimate_destroy(&context.estimate);
  if (status == FMM_OK) *choice = (fmm_tree_options){best.leaf_size, best.root_scale};
  return status;
}
