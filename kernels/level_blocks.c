/* Levels in blocks of lanes (level_blocks.h). The cut into blocks depends on the tree alone, never on the threads. */
#include "kernels/level_blocks.h"

#include <omp.h>

#include "kernels/shell_field.h"

static size_t block_doubles(const fmm_state *state) { return (size_t)state->operators->n * FMM_LANES; }
static int has_slopes(const fmm_state *state, fmm_phase phase) { return phase == FMM_PHASE_DOWN && state->gradient; }
static size_t shell_doubles(const fmm_state *state) { return (size_t)state->tree->n_boxes * (size_t)(state->n_columns * state->operators->parity.n_components); }

fmm_status fmm_level_blocks_reserve(fmm_state *state, fmm_phase phase, const int64_t *begin, const int64_t *end) {
  fmm_level_blocks *w = NULL;
  fmm_status status = FMM_OK;
  size_t threads = (size_t)state->threads;
  FMM_TRY(FMM_ALLOCATE_ZERO(&w, 1, "workspace of the levels"));
  state->workspace[phase] = w;
  w->begin = begin, w->end = end;
  FMM_CHECK(fmm_level_items_create(&w->items, state->tree, begin, end));
  FMM_CHECK(FMM_ALLOCATE(&w->blocks, threads * FMM_BLOCKS_A_THREAD * block_doubles(state), "blocks of boxes"));
  if (fmm_by_harmonics(state)) FMM_CHECK(FMM_ALLOCATE_ZERO(&w->harmonics, threads * fmm_harmonic_doubles(state, has_slopes(state, phase)), "harmonics of leaves"));
  else FMM_CHECK(FMM_ALLOCATE(&w->planes, threads * 3 * (size_t)state->operators->n_surface, "surfaces of leaves"));
  if (phase == FMM_PHASE_DOWN && !fmm_by_harmonics(state)) FMM_CHECK(FMM_ALLOCATE(&w->shells, shell_doubles(state), "shell fields of leaves"));
done:
  if (status != FMM_OK) fmm_level_blocks_release(state, phase);
  return status;
}

void fmm_level_blocks_release(fmm_state *state, fmm_phase phase) {
  fmm_level_blocks *w = state->workspace[phase];
  if (!w) return;
  fmm_level_items_free(&w->items);
  FMM_FREE(&w->blocks);
  FMM_FREE(&w->planes);
  FMM_FREE(&w->harmonics);
  FMM_FREE(&w->shells);
  FMM_FREE(&state->workspace[phase]);
}

size_t fmm_level_blocks_bytes(const fmm_state *state, fmm_phase phase) {
  const size_t leaves = fmm_by_harmonics(state) ? fmm_harmonic_doubles(state, has_slopes(state, phase)) : 3 * (size_t)state->operators->n_surface;
  const size_t shells = phase == FMM_PHASE_DOWN && !fmm_by_harmonics(state) ? shell_doubles(state) : 0;
  return sizeof(fmm_level_blocks) + (size_t)state->tree->n_boxes * sizeof(int32_t) + ((size_t)state->threads * (FMM_BLOCKS_A_THREAD * block_doubles(state) + leaves) + shells) * sizeof(double);
}

fmm_level_worker fmm_level_worker_of(const fmm_state *state, fmm_phase phase) {
  size_t thread = (size_t)omp_get_thread_num();
  fmm_level_worker t = {.state = state, .w = state->workspace[phase], .k = fmm_translate_find()};
  for (size_t i = 0; i < FMM_BLOCKS_A_THREAD; i++) t.block[i] = t.w->blocks + (thread * FMM_BLOCKS_A_THREAD + i) * block_doubles(state);
  if (t.w->planes) t.planes = t.w->planes + thread * 3 * (size_t)state->operators->n_surface;
  if (t.w->harmonics) t.harmonics = fmm_harmonic_lanes_at(state, has_slopes(state, phase), t.w->harmonics + thread * fmm_harmonic_doubles(state, has_slopes(state, phase)));
  return t;
}

/* Without a barrier at its end. */
static void for_items(const fmm_level_worker *t, int level, const int64_t begin[], int width, fmm_block_step *step) {
  const int32_t *item = t->w->items.box + begin[level];
  int64_t n_items = begin[level + 1] - begin[level], n_blocks = fmm_n_lane_blocks(n_items, t->state->n_columns, width);
  const fmm_level_operators *set = fmm_operators_at(t->state->operators, level);
#pragma omp for schedule(dynamic, 1) nowait
  for (int64_t b = 0; b < n_blocks; b++) {
    fmm_lane_block lanes;
    fmm_lane_block_of(&lanes, item, n_items, t->state->n_columns, width, b);
    step(t, set, level, &lanes);
  }
}

/* Products take as long for one lane as for all, but a leaf's points do not: at least two blocks a thread. */
static int leaf_width(const fmm_level_worker *t) {
  const int64_t lanes = (t->w->items.leaf_begin[FMM_MAX_LEVELS] - t->w->items.leaf_begin[0]) * t->state->n_columns / (2 * t->state->threads);
  return fmm_by_harmonics(t->state) && lanes < FMM_LANES ? (int)(lanes > 1 ? lanes : 1) : FMM_LANES;
}

/* The finest levels first, which have most: threads that are done with one go on with the next. */
void fmm_for_leaves(const fmm_level_worker *t, fmm_block_step *step) {
  const int width = leaf_width(t);
  for (int level = t->state->tree->n_levels - 1; level >= FMM_FIRST_FAR_LEVEL; level--) for_items(t, level, t->w->items.leaf_begin, width, step);
#pragma omp barrier
}

void fmm_for_level_parents(const fmm_level_worker *t, int level, fmm_block_step *step) {
  for_items(t, level, t->w->items.parent_begin, FMM_LANES, step);
#pragma omp barrier
}

void fmm_lanes_children(const fmm_level_worker *t, const fmm_lane_block *parents, int octant, fmm_lane_block *children) {
  const fmm_tree *tree = t->state->tree;
  *children = *parents;
  for (int l = 0; l < parents->n_lanes; l++) {
    children->box[l] = -1;
    int32_t first = tree->first_child[parents->box[l]];
    for (int32_t c = first; c < first + tree->n_children[parents->box[l]]; c++)
      if (tree->octant[c] == octant && t->w->end[c] > t->w->begin[c]) children->box[l] = c;
  }
}

/* Strengths of the lanes' shell fields from their coefficients, which are of check potentials divided by scale. */
static void take_shells(const fmm_level_worker *t, const double *shells, double scale, const fmm_lane_block *lanes, const double *coefficients) {
  const fmm_operators *o = t->state->operators;
  const int nc = o->parity.n_components;
  for (int k = 0; k < nc; k++) {
    double sum[FMM_LANES] = {0};
    int begin, end;
    fmm_shell_range(o, k, &begin, &end);
    for (int i = begin; i < end; i++)
      for (int l = 0; l < FMM_LANES; l++) sum[l] += shells[k * o->n + i] * coefficients[(int64_t)i * FMM_LANES + l];
    for (int l = 0; l < lanes->n_lanes; l++) t->w->shells[((int64_t)lanes->box[l] * t->state->n_columns + lanes->column[l]) * nc + k] = scale * sum[l];
  }
}

void fmm_invert_leaves(const fmm_level_worker *t, const fmm_panels first[8], const fmm_panels second[8], int level, const fmm_lane_block *lanes,
                       const double *shells, double *array) {
  const fmm_operators *o = t->state->operators;
  double *natural = t->block[0], *regrouped = t->block[1], *coefficients = t->block[2], scale = fmm_operators_scale(o, fmm_half_width(t->state->tree, level));
  fmm_lanes_gather(t->k, lanes, o->n, t->state->n_columns, array, 1 / scale, natural);
  t->k->regroup(o, natural, regrouped);
  fmm_translate_square(t->k, o, first, regrouped, coefficients);
  if (shells) take_shells(t, shells, scale, lanes, coefficients);
  fmm_translate_square(t->k, o, second, coefficients, regrouped);
  t->k->spread(o, regrouped, natural);
  fmm_lanes_scatter(t->k, lanes, o->n, t->state->n_columns, natural, 0, array);
}
