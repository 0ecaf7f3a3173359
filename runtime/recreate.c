/* A set-up made anew from the points of the one that a plan has: scaling and shift are exact, so they come back exactly. */
#include "plan.h"
#include "team_loop.h"

typedef struct restoring { const fmm_points *points; const fmm_tree *tree; double *rows, *normals; } restoring;

static void restore_some(void *context, int64_t first, int64_t last) {
  const restoring *r = context;
  const fmm_points *p = r->points;
  for (int64_t i = first; i < last; i++) {
    const int64_t begin = p->first ? p->first[i] : i, end = p->first ? p->first[i + 1] : i + 1;
    const double scaled[3] = {p->x[i], p->y[i], p->z[i]};
    for (int64_t k = begin; k < end; k++) {
      const int64_t row = 3 * (int64_t)p->input_row[k];
      for (int axis = 0; axis < 3; axis++) r->rows[row + axis] = scaled[axis] / r->tree->scale + r->tree->shift[axis];
      for (int axis = 0; axis < 3 && r->normals; axis++) r->normals[row + axis] = p->normal[axis][i];
    }
  }
}

/* The caller's rows in their order, from the sorted unique points. */
static fmm_status restore(const fmm_points *p, const fmm_tree *tree, double **rows, double **normals, int threads) {
  FMM_TRY(FMM_ALLOCATE(rows, 3 * p->n_input, "the points of the new plan"));
  if (p->normal[0]) FMM_TRY(FMM_ALLOCATE(normals, 3 * p->n_input, "the normals of the new plan"));
  fmm_team_loop(p->n, FMM_PARALLEL_MINIMUM, restore_some, &(restoring){p, tree, *rows, *normals}, threads);
  return FMM_OK;
}

fmm_status fmm_setup_recreate(fmm_setup **fresh, const fmm_plan *plan) {
  double *sources = NULL, *normals = NULL, *targets = NULL, *unused = NULL;
  const fmm_tree *t = &plan->setup->tree;
  fmm_status status;
  FMM_TRY(fmm_setup_host_points(plan->setup));
  FMM_CHECK(restore(&t->sources, t, &sources, &normals, plan->threads));
  if (!t->same_points) FMM_CHECK(restore(&t->targets, t, &targets, &unused, plan->threads));
  fmm_point_rows points = {.n_sources = t->sources.n_input, .sources = sources, .normals = normals, .n_targets = t->same_points ? 0 : t->targets.n_input, .targets = targets};
  fmm_plan_bind(plan, points.n_sources, points.n_targets);
  status = fmm_plan_check_points(plan, &points);
  if (status == FMM_OK) status = fmm_setup_create(fresh, plan, &points);
  fmm_plan_points_end(&points);
  fmm_binding_end(plan->binding);
done:
  FMM_FREE(&sources);
  FMM_FREE(&normals);
  FMM_FREE(&targets);
  FMM_FREE(&unused);
  return status;
}
