/* Down on CPU cores: level by level from FMM_FIRST_FAR_LEVEL, a parent's check potentials (V, X and inherited) become coefficients, and those its
 * eight children's inherited check potentials (one n x n product for all), added in down_check; then every leaf's check potentials become
 * equivalent densities, and these potentials and gradients at its targets (L2P, pair sums). Boxes that are not leaves have no downward
 * equivalent densities. Blocks of FMM_LANES boxes as in up. Reference: Ying, Biros, Zorin 2004, section 3.2. */
#include <omp.h>
#include <string.h>

#include "kernels/level_items.h"
#include "kernels/pair/pair_sums.h"
#include "kernels/phase.h"

enum { BLOCKS = 8 + 3 };
typedef struct workspace {
  fmm_level_items items;
  double *blocks;          /* [thread][BLOCKS][n][FMM_LANES] */
  double *planes;          /* [thread][3 n_surface] */
} workspace;

static size_t block_doubles(const fmm_state *state) { return (size_t)state->operators->n * FMM_LANES; }

static void children_of(const fmm_tree *tree, const fmm_lane_block *parents, int octant, fmm_lane_block *children) {
  *children = *parents;
  for (int l = 0; l < parents->n_lanes; l++) {
    children->box[l] = -1;
    int32_t first = tree->first_child[parents->box[l]];
    for (int32_t c = first; c < first + tree->n_children[parents->box[l]]; c++)
      if (tree->octant[c] == octant && tree->target_end[c] > tree->target_begin[c]) children->box[l] = c;
  }
}

static void split_parents(const fmm_state *state, const fmm_translate_kernels *k, int level, const fmm_lane_block *lanes, double *work) {
  const fmm_operators *o = state->operators;
  const fmm_level_operators *set = fmm_operators_at(o, level);
  size_t size = block_doubles(state);
  double *z = work, *natural = work + 8 * size, *regrouped = natural + size, *coefficients = regrouped + size;
  fmm_lanes_gather(lanes, o->n, state->n_columns, state->down_check, 1, natural);
  k->regroup(o, natural, regrouped);
  fmm_translate_square(k, o, set->down_first, regrouped, coefficients);
  fmm_translate_l2l(k, o, set, coefficients, z);
  for (int c = 0; c < 8; c++) {
    fmm_lane_block children;
    children_of(state->tree, lanes, c, &children);
    k->spread(o, z + (size_t)c * size, natural);
    fmm_lanes_scatter(&children, o->n, state->n_columns, natural, 1, 1, state->down_check);
  }
}

static void invert_leaves(const fmm_state *state, const fmm_translate_kernels *k, int level, const fmm_lane_block *lanes, double *work) {
  const fmm_operators *o = state->operators;
  const fmm_level_operators *set = fmm_operators_at(o, level);
  size_t size = block_doubles(state);
  double *natural = work, *regrouped = work + size, *coefficients = work + 2 * size;
  double factor = 1 / fmm_operators_scale(o, fmm_half_width(state->tree, level));
  fmm_lanes_gather(lanes, o->n, state->n_columns, state->down_check, factor, natural);
  k->regroup(o, natural, regrouped);
  fmm_translate_square(k, o, set->down_first, regrouped, coefficients);
  fmm_translate_square(k, o, set->down_second, coefficients, regrouped);
  k->spread(o, regrouped, natural);
  fmm_lanes_scatter(lanes, o->n, state->n_columns, natural, 1, 0, state->down_equivalent);
}

static void sum_leaf(const fmm_state *state, const fmm_pair_sum *sum, int32_t box, double *planes) {
  const fmm_tree *tree = state->tree;
  const fmm_operators *o = state->operators;
  const double center[3] = {tree->center_x[box], tree->center_y[box], tree->center_z[box]};
  int ns = o->n_surface;
  int64_t first = tree->target_begin[box];
  fmm_surface_planes(ns, o->surface, center, o->outer_radius * fmm_half_width(tree, tree->level[box]), planes, planes + ns, planes + 2 * ns);
  fmm_pair_targets targets = {.n = tree->target_end[box] - first, .x = tree->targets.x + first, .y = tree->targets.y + first, .z = tree->targets.z + first,
                              .value = state->potential + first, .value_stride = state->n_columns * tree->targets.n, .column_stride = tree->targets.n};
  fmm_pair_sources sources = {.n = ns, .x = planes, .y = planes + ns, .z = planes + 2 * ns,
                              .density = state->down_equivalent + (int64_t)box * state->n_columns * o->n, .component_stride = ns, .column_stride = o->n};
  fmm_pair_sum_add(sum, &targets, 1, &sources);
}

typedef void block_step(const fmm_state *state, const fmm_translate_kernels *k, int level, const fmm_lane_block *lanes, double *work);

/* All blocks of a level's items; called by every thread of the team, ends with a barrier. */
static void for_level(const fmm_state *state, const fmm_translate_kernels *k, int level, const int32_t *item, int64_t n_items, block_step *step, double *work) {
  int64_t n_blocks = fmm_n_lane_blocks(n_items, state->n_columns);
#pragma omp for schedule(dynamic, 1)
  for (int64_t b = 0; b < n_blocks; b++) {
    fmm_lane_block lanes;
    fmm_lane_block_of(&lanes, item, n_items, state->n_columns, b);
    step(state, k, level, &lanes, work);
  }
}

static fmm_status run(fmm_state *state, int64_t begin, int64_t end) {
  const workspace *w = state->workspace[FMM_PHASE_DOWN];
  const fmm_level_items *items = &w->items;
  const fmm_translate_kernels *k = fmm_translate_find();
  int n_levels = state->tree->n_levels;
  fmm_pair_sum sum;
  fmm_pair_sum_prepare(&sum, state->pair, state->params, state->n_columns, state->gradient, fmm_surface_precision(state, FMM_PHASE_DOWN),
                       fmm_surface_tolerance(state));
#pragma omp parallel num_threads(state->threads)
  {
    double *work = w->blocks + (size_t)omp_get_thread_num() * BLOCKS * block_doubles(state);
    double *planes = w->planes + (size_t)omp_get_thread_num() * 3 * (size_t)state->operators->n_surface;
    for (int l = FMM_FIRST_FAR_LEVEL; l < n_levels; l++)
      for_level(state, k, l, items->box + items->parent_begin[l], items->parent_begin[l + 1] - items->parent_begin[l], split_parents, work);
    for (int l = FMM_FIRST_FAR_LEVEL; l < n_levels; l++)
      for_level(state, k, l, items->box + items->leaf_begin[l], items->leaf_begin[l + 1] - items->leaf_begin[l], invert_leaves, work);
#pragma omp for schedule(dynamic, 4)
    for (int64_t i = items->leaf_begin[0]; i < items->leaf_begin[FMM_MAX_LEVELS]; i++) sum_leaf(state, &sum, items->box[i], planes);
  }
  return FMM_OK;
}

static void release(fmm_state *state) {
  workspace *w = state->workspace[FMM_PHASE_DOWN];
  if (!w) return;
  fmm_level_items_free(&w->items);
  FMM_FREE(&w->blocks);
  FMM_FREE(&w->planes);
  FMM_FREE(&state->workspace[FMM_PHASE_DOWN]);
}

static fmm_status reserve(fmm_state *state) {
  workspace *w = NULL;
  fmm_status status = FMM_OK;
  size_t threads = (size_t)state->threads;
  FMM_TRY(FMM_ALLOCATE_ZERO(&w, 1, "down workspace"));
  state->workspace[FMM_PHASE_DOWN] = w;
  FMM_CHECK(fmm_level_items_create(&w->items, state->tree, state->tree->target_begin, state->tree->target_end));
  FMM_CHECK(FMM_ALLOCATE(&w->blocks, threads * BLOCKS * block_doubles(state), "down blocks"));
  FMM_CHECK(FMM_ALLOCATE(&w->planes, threads * 3 * (size_t)state->operators->n_surface, "down surfaces"));
done:
  if (status != FMM_OK) release(state);
  return status;
}

static size_t bytes(const fmm_state *state) {
  return sizeof(workspace) + (size_t)state->tree->n_boxes * sizeof(int32_t) +
         (size_t)state->threads * (BLOCKS * block_doubles(state) + 3 * (size_t)state->operators->n_surface) * sizeof(double);
}

const fmm_phase_impl fmm_down_cpu = {.phase = FMM_PHASE_DOWN, .device = FMM_DEVICE_CPU, .name = "down_cpu", .reserve = reserve, .release = release,
                                     .bytes = bytes, .run = run};
