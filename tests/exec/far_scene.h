/* A whole evaluation without a plan, for tests of phases: points of a standard case, tree, lists, operators and the state's arrays. */
#ifndef FMM_FAR_SCENE_H
#define FMM_FAR_SCENE_H
#include <math.h>
#include <string.h>
#include "kernels/phase.h"
#include "runtime/direct.h"
#include "runtime/generate.h"

typedef struct far_scene {
  fmm_tree tree;
  fmm_lists lists;
  fmm_operators *operators;
  fmm_state state;
  double params[FMM_MAX_PARAMS];
  double *density;
  int64_t n_potential, n_far; /* values of potential, and of each [box][column][n] array */
} far_scene;

typedef struct far_scene_options {
  const char *distribution, *densities, *pair;
  int64_t n, n_targets; /* n_targets 0: same points */
  int leaf_size, order, columns, gradient, threads;
  int64_t direct_threshold; /* of the lister: smaller W and X boxes go to U */
  double tolerance;
  int surfaces; /* leaves' points by surfaces, also of harmonic pairs */
} far_scene_options;

static inline fmm_status far_scene_points(far_scene *s, const far_scene_options *w) {
  double *points = NULL, *targets = NULL;
  fmm_tree_options options = {.leaf_size = w->leaf_size, .root_scale = 1.1};
  FMM_TRY(FMM_ALLOCATE(&points, 3 * w->n, "points"));
  FMM_TRY(FMM_ALLOCATE(&targets, 3 * w->n_targets, "targets"));
  FMM_TRY(fmm_generate_points(w->distribution, w->n, 1, points, 1));
  FMM_TRY(fmm_generate_points(w->distribution, w->n_targets, 2, targets, 1));
  FMM_TRY(fmm_tree_build(&s->tree, w->n, points, NULL, w->n_targets, w->n_targets ? targets : NULL, &options, w->threads));
  FMM_FREE(&points);
  FMM_FREE(&targets);
  return fmm_lists_build(&s->lists, &s->tree, w->direct_threshold, FMM_LISTS_TO_SUM, w->threads);
}

static inline fmm_status far_scene_create(far_scene *s, const far_scene_options *w) {
  const fmm_pair *pair;
  memset(s, 0, sizeof *s);
  FMM_TRY(far_scene_points(s, w));
  FMM_TRY(fmm_pair_find(w->pair, &pair));
  FMM_TRY(fmm_pair_resolve_params(pair->info, 0, NULL, s->params));
  FMM_TRY(fmm_operators_create(&s->operators, pair, s->params, w->order, s->tree.root_side / 2, s->tree.n_levels, w->threads));
  fmm_state *state = &s->state;
  *state = (fmm_state){.tree = &s->tree, .lists = &s->lists, .pair = pair, .params = s->params, .operators = s->operators, .n_columns = w->columns,
                       .gradient = w->gradient, .threads = w->threads, .tolerance = w->tolerance, .harmonics = !w->surfaces};
  for (int p = 0; p < FMM_N_PHASES; p++) state->precision[p] = FMM_PRECISION_DOUBLE;
  int64_t n_density = (int64_t)pair->info->components * w->columns * s->tree.sources.n;
  s->n_potential = (int64_t)pair->info->outputs * (w->gradient ? 4 : 1) * w->columns * s->tree.targets.n;
  s->n_far = (int64_t)s->tree.n_boxes * w->columns * s->operators->n;
  FMM_TRY(FMM_ALLOCATE(&s->density, n_density, "density"));
  FMM_TRY(fmm_generate_densities(w->densities, n_density, 3, s->density, 1));
  state->density = s->density;
  FMM_TRY(FMM_ALLOCATE_ZERO(&state->potential, s->n_potential, "potential"));
  FMM_TRY(FMM_ALLOCATE_ZERO(&state->up_equivalent, s->n_far, "upward densities"));
  return FMM_ALLOCATE_ZERO(&state->down_check, s->n_far, "downward checks");
}

static inline void far_scene_free(far_scene *s) {
  FMM_FREE(&s->density);
  FMM_FREE(&s->state.potential);
  FMM_FREE(&s->state.up_equivalent);
  FMM_FREE(&s->state.down_check);
  fmm_operators_destroy(&s->operators);
  fmm_lists_free(&s->lists);
  fmm_tree_free(&s->tree);
}

/* One phase over all its rows. */
static inline fmm_status far_scene_run(far_scene *s, const fmm_phase_impl *impl) {
  const fmm_rows *rows[FMM_N_PHASES] = {[FMM_PHASE_ULIST] = &s->lists.u, [FMM_PHASE_VLIST] = &s->lists.v, [FMM_PHASE_WLIST] = &s->lists.w,
                                        [FMM_PHASE_XLIST] = &s->lists.x};
  int64_t n = rows[impl->phase] ? rows[impl->phase]->n_rows : s->tree.n_boxes;
  if (impl->reserve) FMM_TRY(impl->reserve(&s->state));
  fmm_status status = impl->run(&s->state, 0, n);
  if (impl->release) impl->release(&s->state);
  return status;
}

/* Relative L2 error at about `samples` targets: [0] of potentials, [1] of gradients. */
static inline fmm_status far_scene_error(const far_scene *s, int64_t samples, double error[2]) {
  const fmm_points *sources = &s->tree.sources, *targets = &s->tree.targets;
  fmm_direct_case what = {s->state.pair, s->params, s->state.n_columns, s->state.gradient, sources->n, sources->x, sources->y, sources->z, NULL, s->density, sources->n};
  int width = fmm_direct_width(&what), stride = s->state.gradient ? 4 : 1;
  int64_t *rows = NULL;
  double *at = NULL, *values = NULL, sum[2][2] = {{0}};
  FMM_TRY(FMM_ALLOCATE(&rows, samples, "rows"));
  int64_t n = fmm_sample_rows(targets->n, samples, 1, rows);
  FMM_TRY(FMM_ALLOCATE(&at, 3 * n, "sampled targets"));
  FMM_TRY(FMM_ALLOCATE(&values, n * width, "sampled values"));
  for (int64_t i = 0; i < n; i++) at[3 * i] = targets->x[rows[i]], at[3 * i + 1] = targets->y[rows[i]], at[3 * i + 2] = targets->z[rows[i]];
  fmm_direct_sums(&what, n, at, 2, values, NULL);
  for (int64_t i = 0; i < n; i++)
    for (int v = 0; v < width; v++) {
      double expected = values[i * width + v], difference = s->state.potential[(int64_t)v * targets->n + rows[i]] - expected;
      int kind = v / s->state.n_columns % stride != 0;
      sum[kind][0] += difference * difference;
      sum[kind][1] += expected * expected;
    }
  for (int k = 0; k < 2; k++) error[k] = sum[k][1] > 0 ? sqrt(sum[k][0] / sum[k][1]) : 0;
  FMM_FREE(&rows);
  FMM_FREE(&at);
  FMM_FREE(&values);
  return FMM_OK;
}
#endif
