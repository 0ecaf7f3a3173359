/* Up on CPU cores: P2M at leaves (sources' moments with solid harmonics, kernels/harmonics.h, or their potentials on the upward check surface by the pair-sum engine, then to equivalent densities), then M2M level by
 * level from the finest. Boxes go through the translations in blocks of FMM_LANES (kernels/translate.h); a parent's eight children cost one
 * n x n product. Boxes without sources, and levels above FMM_FIRST_FAR_LEVEL, keep zeros. Translations are double in every precision; the
 * pair sums follow the phase's. Reference: Ying, Biros, Zorin 2004, section 3.2. */
#include <string.h>

#include "kernels/level_blocks.h"
#include "kernels/pair/pair_sums.h"

/* Check potentials of a leaf's sources, left in the leaf's place of up_equivalent. */
static void sum_leaf(const fmm_state *state, const fmm_pair_sum *sum, int32_t box, double *planes) {
  const fmm_tree *tree = state->tree;
  const fmm_operators *o = state->operators;
  int64_t first = tree->source_begin[box];
  double *check = state->up_equivalent + (int64_t)box * state->n_columns * o->n;
  memset(check, 0, (size_t)state->n_columns * (size_t)o->n * sizeof *check);
  fmm_pair_lattice surface = {.surface = &o->shape, .center = {tree->center_x[box], tree->center_y[box], tree->center_z[box]},
                              .radius = o->outer_radius * fmm_half_width(tree, tree->level[box]), .planes = planes};
  fmm_pair_sources sources = {.n = tree->source_end[box] - first, .x = tree->sources.x + first, .y = tree->sources.y + first, .z = tree->sources.z + first,
                              .density = state->density + first, .component_stride = state->n_columns * tree->sources.n, .column_stride = tree->sources.n};
  for (int a = 0; a < 3; a++) sources.normal[a] = tree->sources.normal[a] ? tree->sources.normal[a] + first : NULL;
  fmm_pair_sum_onto_lattice(sum, &surface, check, o->n_surface, o->n, 1, &sources);
}

static fmm_harmonic_points points_of(const fmm_state *state, int32_t box, int column) {
  const fmm_tree *tree = state->tree;
  const int64_t first = tree->source_begin[box];
  return (fmm_harmonic_points){.n = tree->source_end[box] - first, .at = {tree->sources.x + first, tree->sources.y + first, tree->sources.z + first},
                               .density = state->density + column * tree->sources.n + first};
}

/* Leaves' moments to equivalent densities. */
static void take_moments(const fmm_level_worker *t, const fmm_level_operators *set, int level, const fmm_lane_block *lanes) {
  const fmm_state *state = t->state;
  const fmm_operators *o = state->operators;
  const fmm_harmonics *h = &o->harmonics;
  const fmm_harmonic_kernels *k = fmm_phase_harmonics(state, FMM_PHASE_UP);
  double *natural = t->block[8], *regrouped = t->block[9], *coefficients = t->block[10];
  const double *moments[FMM_LANES] = {NULL};
  for (int l = 0; l < lanes->n_lanes; l++) {
    const fmm_harmonic_points points = points_of(state, lanes->box[l], lanes->column[l]);
    const fmm_harmonic_box box = fmm_harmonic_box_of(state->tree, lanes->box[l], 0);
    double *to = t->harmonics.values + l * t->harmonics.stride;
    if (l + 1 < lanes->n_lanes) {
      const fmm_harmonic_points next = points_of(state, lanes->box[l + 1], lanes->column[l + 1]);
      fmm_ask_for_points(&next);
    }
    memset(to, 0, (size_t)(2 * h->n_pairs) * sizeof *to);
    k->moments(h, &box, 1, &points, to);
    moments[l] = to;
  }
  t->k->put(2 * h->n_pairs, h->row[0], moments, 1, t->harmonics.terms);
  const int whole = fmm_moments_are_whole(o->order);
  fmm_translate_blocks(t->k, set->up_moments, h->begin, o->parity.begin, t->harmonics.terms, whole ? regrouped : coefficients);
  if (!whole) fmm_translate_square(t->k, o, set->up_second, coefficients, regrouped);
  t->k->spread(o, regrouped, natural);
  fmm_lanes_scatter(t->k, lanes, o->n, state->n_columns, natural, 0, state->up_equivalent);
}

/* In place in up_equivalent. */
static void invert_leaves(const fmm_level_worker *t, const fmm_level_operators *set, int level, const fmm_lane_block *lanes) {
  fmm_invert_leaves(t, set->up_first, set->up_second, level, lanes, NULL, t->state->up_equivalent);
}

static void merge_children(const fmm_level_worker *t, const fmm_level_operators *set, int level, const fmm_lane_block *lanes) {
  const fmm_state *state = t->state;
  const fmm_operators *o = state->operators;
  double *z = t->block[0], *natural = t->block[8], *regrouped = t->block[9], *coefficients = t->block[10];
  for (int c = 0; c < 8; c++) {
    fmm_lane_block children;
    fmm_lanes_children(t, lanes, c, &children);
    fmm_lanes_gather(t->k, &children, o->n, state->n_columns, state->up_equivalent, 1, natural);
    t->k->regroup(o, natural, t->block[c]);
  }
  fmm_translate_m2m(t->k, o, set, z, coefficients);
  fmm_translate_square(t->k, o, set->up_second, coefficients, regrouped);
  t->k->spread(o, regrouped, natural);
  fmm_lanes_scatter(t->k, lanes, o->n, state->n_columns, natural, 0, state->up_equivalent);
}

static fmm_status run(fmm_state *state, int64_t begin, int64_t end) {
  fmm_pair_sum sum;
  fmm_pair_sum_prepare(&sum, state->pair, state->params, state->n_columns, 0, fmm_surface_precision(state, FMM_PHASE_UP),
                       fmm_surface_tolerance(state));
  fmm_pair_sum_allow_near(&sum, state->tolerance);
#pragma omp parallel num_threads(state->threads)
  {
    fmm_level_worker t = fmm_level_worker_of(state, FMM_PHASE_UP);
    const fmm_level_items *items = &t.w->items;
    if (fmm_by_harmonics(state)) fmm_for_leaves(&t, take_moments);
    else {
#pragma omp for schedule(dynamic, 4)
      for (int64_t i = items->leaf_begin[0]; i < items->leaf_begin[FMM_MAX_LEVELS]; i++) sum_leaf(state, &sum, items->box[i], t.planes);
      fmm_for_leaves(&t, invert_leaves);
    }
    for (int l = state->tree->n_levels - 1; l >= FMM_FIRST_FAR_LEVEL; l--) fmm_for_level_parents(&t, l, merge_children);
  }
  return FMM_OK;
}

static fmm_status reserve(fmm_state *state) {
  return fmm_level_blocks_reserve(state, FMM_PHASE_UP, state->tree->source_begin, state->tree->source_end);
}

static size_t bytes(const fmm_state *state) { return fmm_level_blocks_bytes(state, FMM_PHASE_UP); }

static void release(fmm_state *state) { fmm_level_blocks_release(state, FMM_PHASE_UP); }

const fmm_phase_impl fmm_up_cpu = {.phase = FMM_PHASE_UP, .device = FMM_DEVICE_CPU, .name = "up_cpu", .reserve = reserve, .release = release,
                                   .bytes = bytes, .run = run};
