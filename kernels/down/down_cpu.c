/* Down on CPU cores: level by level from FMM_FIRST_FAR_LEVEL, a parent's check potentials (V, X and inherited) become coefficients, and those its
 * eight children's inherited check potentials (one n x n product for all), added in down_check; then every leaf's check potentials become
 * solid harmonics (kernels/harmonics.h), shell field included, or equivalent densities, in their place, and these potentials and gradients at its targets (L2P), to which, by pair sums, the shell fields are added
 * (kernels/shell_field.h). Boxes that are not leaves have no downward equivalent densities. Blocks of FMM_LANES boxes as in up. Reference: Ying, Biros, Zorin 2004, section 3.2. */
#include "kernels/level_blocks.h"
#include "kernels/pair/pair_sums.h"

static void split_parents(const fmm_level_worker *t, const fmm_level_operators *set, int level, const fmm_lane_block *lanes) {
  const fmm_state *state = t->state;
  const fmm_operators *o = state->operators;
  double *z = t->block[0], *natural = t->block[8], *regrouped = t->block[9], *coefficients = t->block[10];
  fmm_lanes_gather(t->k, lanes, o->n, state->n_columns, state->down_check, 1, natural);
  t->k->regroup(o, natural, regrouped);
  fmm_translate_square(t->k, o, set->down_first, regrouped, coefficients);
  fmm_translate_l2l(t->k, o, set, coefficients, z);
  for (int c = 0; c < 8; c++) {
    fmm_lane_block children;
    fmm_lanes_children(t, lanes, c, &children);
    t->k->spread(o, t->block[c], natural);
    fmm_lanes_scatter(t->k, &children, o->n, state->n_columns, natural, 1, state->down_check);
  }
}

/* In place in down_check. */
static void invert_leaves(const fmm_level_worker *t, const fmm_level_operators *set, int level, const fmm_lane_block *lanes) {
  fmm_invert_leaves(t, set->down_first, set->down_second, level, lanes, set->shell, t->state->down_check);
}

static void add_shells(const fmm_state *state, const fmm_level_worker *t, int32_t box, const double center[3], const fmm_pair_targets *targets) {
  const int nc = state->operators->parity.n_components, outputs = state->gradient ? 4 : 1;
  for (int c = 0; c < state->n_columns; c++)
    for (int k = 0; k < nc; k++) {
      fmm_pair_targets plane = *targets;
      plane.value += k * outputs * targets->value_stride + c * targets->column_stride;
      fmm_pair_sum_add_shell(&plane, center, state->operators->shell_decay2, t->w->shells[((int64_t)box * state->n_columns + c) * nc + k], state->gradient);
    }
}

static void sum_leaf(const fmm_level_worker *t, const fmm_pair_sum *sum, int32_t box) {
  const fmm_state *state = t->state;
  const fmm_tree *tree = state->tree;
  const fmm_operators *o = state->operators;
  int64_t first = tree->target_begin[box];
  fmm_pair_lattice surface = {.surface = &o->shape, .center = {tree->center_x[box], tree->center_y[box], tree->center_z[box]},
                              .radius = o->outer_radius * fmm_half_width(tree, tree->level[box]), .density = state->down_check + (int64_t)box * state->n_columns * o->n,
                              .component_stride = o->n_surface, .column_stride = o->n, .planes = t->planes};
  fmm_pair_targets targets = {.n = tree->target_end[box] - first, .x = tree->targets.x + first, .y = tree->targets.y + first, .z = tree->targets.z + first,
                              .value = state->potential + first, .value_stride = state->n_columns * tree->targets.n, .column_stride = tree->targets.n};
  fmm_pair_sum_from_lattices(sum, &targets, 1, &surface);
  if (fmm_operators_at(o, tree->level[box])->shell) add_shells(state, t, box, surface.center, &targets);
}

static fmm_harmonic_points points_of(const fmm_tree *tree, int32_t box) {
  const int64_t first = tree->target_begin[box];
  return (fmm_harmonic_points){.n = tree->target_end[box] - first, .at = {tree->targets.x + first, tree->targets.y + first, tree->targets.z + first}};
}

static double *values_of(const fmm_state *state, const fmm_lane_block *lanes, int l) {
  return state->potential + lanes->column[l] * state->tree->targets.n + state->tree->target_begin[lanes->box[l]];
}

FMM_ASKS void ask_for_leaf(const fmm_state *state, const fmm_lane_block *lanes, int l, int n_outputs) {
  if (l >= lanes->n_lanes) return;
  const fmm_harmonic_points p = points_of(state->tree, lanes->box[l]);
  fmm_ask_for_points(&p);
  for (int o = 0; o < n_outputs; o++) fmm_ask_for(values_of(state, lanes, l) + o * state->n_columns * state->tree->targets.n, p.n);
}

/* Leaves' check potentials to solid harmonics, and these to potentials and gradients at their targets. */
static void give_values(const fmm_level_worker *t, const fmm_level_operators *set, int level, const fmm_lane_block *lanes) {
  const fmm_state *state = t->state;
  const fmm_tree *tree = state->tree;
  const fmm_operators *o = state->operators;
  const fmm_harmonics *h = &o->harmonics;
  const fmm_harmonic_kernels *k = fmm_phase_harmonics(state, FMM_PHASE_DOWN);
  double *natural = t->block[8], *regrouped = t->block[9], *coefficients = t->block[10];
  const double half_width = fmm_half_width(tree, level);
  const int n_outputs = state->gradient ? FMM_HARMONIC_OUTPUTS : 1;
  ask_for_leaf(state, lanes, 0, n_outputs);
  fmm_lanes_gather(t->k, lanes, o->n, state->n_columns, state->down_check, 1, natural); /* divided by the scale, which what comes of it is multiplied with */
  t->k->regroup(o, natural, regrouped);
  const int whole = fmm_moments_are_whole(o->order);
  if (!whole) fmm_translate_square(t->k, o, set->down_first, regrouped, coefficients);
  fmm_translate_blocks(t->k, set->down_moments, o->parity.begin, h->begin, whole ? regrouped : coefficients, t->harmonics.terms);
  if (state->gradient) t->k->slopes(h, 0.5 / half_width, t->harmonics.terms, t->harmonics.terms + (int64_t)h->n_terms * FMM_LANES);
  double *of_leaf[FMM_LANES] = {NULL}, *room = t->harmonics.values + FMM_LANES * t->harmonics.stride;
  for (int l = 0; l < lanes->n_lanes; l++) of_leaf[l] = t->harmonics.values + l * t->harmonics.stride;
  t->k->take(t->harmonics.stride, h->row[state->gradient != 0], t->harmonics.terms, 0, of_leaf);
  for (int l = 0; l < lanes->n_lanes; l++) {
    const fmm_harmonic_points points = points_of(tree, lanes->box[l]);
    const fmm_harmonic_box frame = fmm_harmonic_box_of(tree, lanes->box[l], 0);
    ask_for_leaf(state, lanes, l + 1, n_outputs);
    k->values(h, &frame, &points, n_outputs, of_leaf[l], room, values_of(state, lanes, l), state->n_columns * tree->targets.n);
  }
}

static fmm_status run(fmm_state *state, int64_t begin, int64_t end) {
  int n_levels = state->tree->n_levels;
  fmm_pair_sum sum;
  fmm_pair_sum_prepare(&sum, state->pair, state->params, state->n_columns, state->gradient, fmm_surface_precision(state, FMM_PHASE_DOWN),
                       fmm_surface_tolerance(state));
  fmm_pair_sum_allow_near(&sum, state->tolerance);
#pragma omp parallel num_threads(state->threads)
  {
    fmm_level_worker t = fmm_level_worker_of(state, FMM_PHASE_DOWN);
    const fmm_level_items *items = &t.w->items;
    for (int l = FMM_FIRST_FAR_LEVEL; l < n_levels; l++) fmm_for_level_parents(&t, l, split_parents);
    if (fmm_by_harmonics(state)) fmm_for_leaves(&t, give_values);
    else {
      fmm_for_leaves(&t, invert_leaves);
#pragma omp for schedule(dynamic, 4)
      for (int64_t i = items->leaf_begin[0]; i < items->leaf_begin[FMM_MAX_LEVELS]; i++) sum_leaf(&t, &sum, items->box[i]);
    }
  }
  return FMM_OK;
}

static fmm_status reserve(fmm_state *state) {
  return fmm_level_blocks_reserve(state, FMM_PHASE_DOWN, state->tree->target_begin, state->tree->target_end);
}

static size_t bytes(const fmm_state *state) { return fmm_level_blocks_bytes(state, FMM_PHASE_DOWN); }

static void release(fmm_state *state) { fmm_level_blocks_release(state, FMM_PHASE_DOWN); }

const fmm_phase_impl fmm_down_cpu = {.phase = FMM_PHASE_DOWN, .device = FMM_DEVICE_CPU, .name = "down_cpu", .reserve = reserve, .release = release,
                                     .bytes = bytes, .run = run};
