/* Points that move: the steps of a simulation, whose points are alike. What is chosen by estimates of many trees is kept while it serves, and the memory of the points before is used again. */
#include <math.h>

#include "arithmetic.h"
#include "plan.h"
#include "points.h"

enum { KEPT = 16 /* bytes a point, at most, of free memory */ };
static const double about_as_long = 1.1; /* what is foretold a point against what was when the choice was made, either way */

static double foretold_a_point(const fmm_setup *s) {
  const int64_t points = s->tree.sources.n_input + s->tree.targets.n_input;
  return points ? s->foretold_s / (double)points : NAN;
}

void fmm_plan_note_choice(fmm_plan *plan) {
  const fmm_setup *s = plan->setup;
  plan->chosen = (fmm_choice){{s->tree.leaf_size, s->tree.root_scale}, s->counts.order, s->tree.sources.n_input, s->tree.targets.n_input, foretold_a_point(s)};
}

/* Within half as many again. */
static int are_about_as_many(int64_t a, int64_t b) { return 2 * a <= 3 * b && 2 * b <= 3 * a; }

/* Whether so many points are to keep what was chosen. It has to be for about as many, and the points before have to take about as long as those that it was chosen for: of others, also of such as are
 * cheaper, nobody knows how much better they could be served. A tree of one leaf has nothing to keep. */
static int choice_serves(const fmm_plan *plan, int64_t n_sources, int64_t n_targets) {
  const double ratio = foretold_a_point(plan->setup) / plan->chosen.point_s; /* NaN serves for nothing */
  return plan->setup->tree.n_leaves > 1 && ratio <= about_as_long && ratio >= 1 / about_as_long && are_about_as_many(n_sources, plan->chosen.n_sources) &&
         are_about_as_many(n_targets, plan->chosen.n_targets);
}

/* What one move needed beside the memory of the points before serves the next: else its steps would touch new memory each time. */
static void keep_memory(fmm_plan *plan) {
  const fmm_tree *t = &plan->setup->tree;
  fmm_memory_keep(&plan->kept_memory, plan->options.host_memory_cap ? 0 : KEPT * (size_t)(t->sources.n_input + (t->same_points ? 0 : t->targets.n_input)));
}

/* What is refused is refused before anything is given up. */
static fmm_status move(fmm_plan *plan, fmm_point_rows *points, double begin) {
  plan->keeps = plan->setup && choice_serves(plan, points->n_sources, points->targets ? points->n_targets : points->n_sources);
  const fmm_status checked = fmm_plan_check_points(plan, points);
  if (checked != FMM_OK || !plan->setup) plan->keeps = 0;
  FMM_TRY(checked);
  if (!plan->setup) return fmm_plan_replace_points(plan, points, begin);
  fmm_memory_hold(plan->threads);
  plan->spare = plan->setup->pool, plan->setup->pool = (fmm_operator_pool){NULL};
  if (plan->setup->gpu) fmm_gpu_plan_give(plan->setup->gpu, &points->spare);
  points->spare.stage.exact = plan->options.host_memory_cap > 0;
  fmm_setup_destroy(&plan->setup);
  fmm_trace_clear(&plan->trace);
  const fmm_status status = fmm_plan_replace_points(plan, points, begin);
  fmm_operator_pool_destroy(&plan->spare);
  if (status == FMM_OK) keep_memory(plan);
  else fmm_memory_keep(&plan->kept_memory, 0);
  fmm_memory_release();
  plan->keeps = 0;
  return status;
}

fmm_status fmm_plan_move_points(fmm_plan *plan, int64_t n_sources, const double *sources, const double *normals, int64_t n_targets,
                                const double *targets) {
  FMM_OWN_ARITHMETIC();
  const double begin = fmm_now_s();
  fmm_point_rows points = {.n_sources = n_sources, .sources = sources, .normals = normals, .n_targets = n_targets, .targets = targets};
  if (!plan) return FMM_FAIL(FMM_ERR_ARGUMENT, "fmm_plan_move_points: plan is NULL");
  FMM_TRY(fmm_points_check_counts(n_sources, n_targets));
  fmm_plan_bind(plan, n_sources, n_targets);
  const fmm_status status = move(plan, &points, begin);
  fmm_plan_points_end(&points);
  fmm_binding_end(plan->binding);
  return status;
}
