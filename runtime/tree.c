/* Building the octree: options checked, points brought into a frame and sorted by key (points.c), then boxes (refine.c). */
#include "tree.h"

#include "points.h"
#include "refine.h"

typedef struct sets { const fmm_bounds *bounds; int64_t n_sources, n_targets; const double *sources, *normals, *targets; fmm_sorted_rows *sorted; } sets;

static fmm_status sort_sets(fmm_tree *t, const sets *s, fmm_sorted_words keys[2], int threads) {
  fmm_frame frame;
  fmm_frame_place(&frame, s->bounds, t->root_scale);
  t->scale = frame.scale, t->root_side = frame.side, t->coincident = frame.coincident;
  for (int a = 0; a < 3; a++) t->shift[a] = frame.shift[a], t->root_lo[a] = frame.lo[a];
  const fmm_input_points input[2] = {{s->n_sources, s->sources, s->normals}, {s->n_targets, s->targets, NULL}};
  fmm_points points[2] = {{0}};
  fmm_sorted_rows *given = s->sorted && s->sorted->n_sets && t->root_scale == s->sorted->root_scale ? s->sorted : NULL;
  if (s->sorted && !given) fmm_rows_free(s->sorted); /* which serves again */
  FMM_TRY(fmm_points_sort(2 - t->same_points, points, keys, &frame, input, t->leaf_size, given, threads));
  t->sources = points[0], t->targets = points[!t->same_points];
  return FMM_OK;
}

static fmm_status check_options(const fmm_tree_options *o, int64_t n_sources, int64_t n_targets, int threads) {
  if (o->leaf_size < 1) return FMM_FAIL(FMM_ERR_ARGUMENT, "leaf size is %d; it must be at least 1", o->leaf_size);
  if (!(o->root_scale >= 1 && o->root_scale <= 2)) return FMM_FAIL(FMM_ERR_ARGUMENT, "root scale is %g; it must be in [1, 2]", o->root_scale);
  if (n_sources < 0 || n_targets < 0)
    return FMM_FAIL(FMM_ERR_ARGUMENT, "%lld sources, %lld targets: counts cannot be negative", (long long)n_sources, (long long)n_targets);
  if (threads < 1) return FMM_FAIL(FMM_ERR_ARGUMENT, "%d threads; at least 1 is needed", threads);
  return FMM_OK;
}

fmm_status fmm_tree_build(fmm_tree *tree, int64_t n_sources, const double *sources, const double *normals, int64_t n_targets,
                          const double *targets, const fmm_tree_options *options, int threads) {
  fmm_bounds bounds;
  FMM_TRY(check_options(options, n_sources, n_targets, threads));
  FMM_TRY(fmm_bounds_of(&bounds, n_sources, sources, n_targets, targets, threads));
  return fmm_tree_build_within(tree, &bounds, n_sources, sources, normals, n_targets, targets, NULL, options, threads);
}

fmm_status fmm_tree_fill(fmm_tree *t, const double *sources, const double *targets, int threads) {
  fmm_frame frame = {.scale = t->scale};
  for (int a = 0; a < 3; a++) frame.shift[a] = t->shift[a];
  if (!t->sources.x) FMM_TRY(fmm_points_fill(&t->sources, &frame, sources, threads));
  if (t->same_points) return t->targets = t->sources, FMM_OK;
  return t->targets.x ? FMM_OK : fmm_points_fill(&t->targets, &frame, targets, threads);
}

/* Of what was left out what others look at all the same. */
static fmm_status look_at_rows(fmm_tree *t, const sets *s, int threads) {
  if (t->n_leaves == 1) return fmm_tree_fill(t, s->sources, s->targets, threads);
  if (!t->sources.x) t->filling = fmm_filling_of_rows(t, s->sources, threads);
  return FMM_OK;
}

fmm_status fmm_tree_build_within(fmm_tree *tree, const fmm_bounds *bounds, int64_t n_sources, const double *sources, const double *normals, int64_t n_targets,
                                 const double *targets, fmm_sorted_rows *sorted, const fmm_tree_options *options, int threads) {
  FMM_TRY(check_options(options, n_sources, n_targets, threads));
  const sets s = {bounds, n_sources, n_targets, sources, normals, targets, sorted};
  const int64_t most[2] = {options->leaf_size, options->leaf_size};
  fmm_tree made = {.leaf_size = options->leaf_size, .root_scale = options->root_scale, .same_points = !targets};
  fmm_sorted_words keys[2] = {{0}};
  fmm_status status = sort_sets(&made, &s, keys, threads);
  if (status == FMM_OK) status = fmm_tree_refine(&made, &keys[0], &keys[!made.same_points], most, threads);
  if (status == FMM_OK) status = look_at_rows(&made, &s, threads);
  for (int k = 0; k < 2; k++) fmm_words_free(&keys[k]);
  if (status == FMM_OK) *tree = made;
  else fmm_tree_free(&made);
  return status;
}
