/* Down, plain C reference: box by box with the operators applied to one vector at a time, pair sums by definition, double. */
#include <string.h>

#include "kernels/operators_parts.h"
#include "kernels/pair/pair_reference.h"
#include "kernels/phase.h"
#include "kernels/shell_field.h"

typedef struct vectors { double *coefficients, *scratch, *x, *y, *z, *terms, *harmonics; } vectors;

static int64_t place_of(const fmm_state *state, int32_t box, int column) { return ((int64_t)box * state->n_columns + column) * state->operators->n; }

static void l2l(const fmm_state *state, int32_t box, const vectors *v) {
  const fmm_tree *tree = state->tree;
  const fmm_operators *o = state->operators;
  const fmm_level_operators *set = fmm_operators_at(o, tree->level[box]);
  for (int c = 0; c < state->n_columns; c++) {
    fmm_apply_first(o, set->down_first, 1, state->down_check + place_of(state, box, c), v->coefficients, v->scratch);
    for (int32_t child = tree->first_child[box]; child < tree->first_child[box] + tree->n_children[box]; child++)
      if (tree->target_end[child] > tree->target_begin[child])
        fmm_apply_l2l(o, set, tree->octant[child], v->coefficients, state->down_check + place_of(state, child, c), v->scratch);
  }
}

/* The shell fields of one column of a leaf, from its coefficients. */
static void add_shells(const fmm_state *state, int32_t box, int column, const double *coefficients) {
  const fmm_tree *tree = state->tree;
  const int64_t first = tree->target_begin[box], n = tree->targets.n, of_output = (state->gradient ? 4 : 1) * state->n_columns * n;
  const double center[3] = {tree->center_x[box], tree->center_y[box], tree->center_z[box]};
  double parts[4];
  fmm_shell_parts(state->operators, fmm_operators_at(state->operators, tree->level[box]), coefficients, parts);
  for (int k = 0; k < state->operators->parity.n_components; k++)
    fmm_shell_add(state->operators->shell_decay2, center, parts[k], state->gradient, tree->target_end[box] - first, tree->targets.x + first, tree->targets.y + first, tree->targets.z + first,
                  state->potential + k * of_output + column * n + first, state->n_columns * n);
}

/* Solid harmonics from a leaf's check potentials, their values at its points, and their differences along the axes. */
static void l2p_by_harmonics(const fmm_state *state, int32_t box, const vectors *v) {
  const fmm_tree *tree = state->tree;
  const fmm_operators *o = state->operators;
  const fmm_harmonics *h = &o->harmonics;
  const fmm_harmonic_box frame = fmm_harmonic_box_of(tree, box, 0);
  const int64_t plane = state->n_columns * tree->targets.n;
  for (int c = 0; c < state->n_columns; c++) {
    const fmm_level_operators *set = fmm_operators_at(o, tree->level[box]);
    fmm_apply_down_moments(o, set, state->down_check + place_of(state, box, c), v->terms, v->scratch);
    for (int64_t i = tree->target_begin[box]; i < tree->target_end[box]; i++) {
      double at[3];
      fmm_harmonic_place(&frame, tree->targets.x[i], tree->targets.y[i], tree->targets.z[i], at);
      double *value = state->potential + c * tree->targets.n + i;
      fmm_harmonics_at(h, at, v->harmonics);
      for (int k = 0; k < 2 * h->n_pairs; k++)
        if (h->place[k] >= 0) value[0] += v->terms[h->place[k]] * v->harmonics[k];
      for (int axis = 0; axis < 3 && state->gradient; axis++)
        for (int s = 0; s < h->n_slopes; s++) {
          const fmm_harmonic_slope *slope = &h->slope[s];
          if (slope->axis != axis) continue;
          for (int k = 0; k < 2 * h->n_pairs; k++)
            if (h->place[k] == slope->to) value[(axis + 1) * plane] += slope->factor * frame.per_side * v->terms[slope->from] * v->harmonics[k];
        }
    }
  }
}

static void l2p(const fmm_state *state, int32_t box, const vectors *v) {
  const fmm_tree *tree = state->tree;
  const fmm_operators *o = state->operators;
  const fmm_level_operators *set = fmm_operators_at(o, tree->level[box]);
  double h = fmm_half_width(tree, tree->level[box]), scale = fmm_operators_scale(o, h);
  int64_t first = tree->target_begin[box];
  for (int i = 0; i < o->n_surface; i++) {
    v->x[i] = tree->center_x[box] + o->outer_radius * h * o->surface[3 * i];
    v->y[i] = tree->center_y[box] + o->outer_radius * h * o->surface[3 * i + 1];
    v->z[i] = tree->center_z[box] + o->outer_radius * h * o->surface[3 * i + 2];
  }
  for (int c = 0; c < state->n_columns; c++) {
    double *equivalent = state->down_check + place_of(state, box, c); /* in the place of the check potentials */
    fmm_apply_first(o, set->down_first, 1, equivalent, v->coefficients, v->scratch);
    add_shells(state, box, c, v->coefficients);
    fmm_apply_second(o, set->down_second, 1, v->coefficients, equivalent, v->scratch);
    for (int i = 0; i < o->n; i++) equivalent[i] /= scale;
  }
  const double *normal[3] = {NULL};
  fmm_reference_points source = {o->n_surface, v->x, v->y, v->z};
  fmm_reference_points target = {tree->target_end[box] - first, tree->targets.x + first, tree->targets.y + first, tree->targets.z + first};
  fmm_reference_planes density = {state->down_check + place_of(state, box, 0), o->n_surface, o->n};
  fmm_reference_planes value = {state->potential + first, state->n_columns * tree->targets.n, tree->targets.n};
  fmm_reference_add(state->pair, state->params, state->n_columns, state->gradient, &source, normal, &density, &target, &value);
}

static fmm_status run(fmm_state *state, int64_t begin, int64_t end) {
  const fmm_tree *tree = state->tree;
  int n = state->operators->n, ns = state->operators->n_surface;
  double *work = NULL;
  const fmm_harmonics *h = &state->operators->harmonics;
  FMM_TRY(FMM_ALLOCATE(&work, 3 * n + 3 * ns + h->n_terms + 2 * h->n_pairs, "down reference vectors"));
  vectors v = {work, work + n, work + 3 * n, work + 3 * n + ns, work + 3 * n + 2 * ns, work + 3 * n + 3 * ns, work + 3 * n + 3 * ns + h->n_terms};
  for (int l = FMM_FIRST_FAR_LEVEL; l < tree->n_levels; l++)
    for (int32_t box = tree->level_begin[l]; box < tree->level_begin[l + 1]; box++) {
      if (tree->target_end[box] == tree->target_begin[box]) continue;
      if (tree->first_child[box] < 0 && fmm_by_harmonics(state)) l2p_by_harmonics(state, box, &v);
      else if (tree->first_child[box] < 0) l2p(state, box, &v);
      else l2l(state, box, &v);
    }
  FMM_FREE(&work);
  return FMM_OK;
}

const fmm_phase_impl fmm_down_reference = {.phase = FMM_PHASE_DOWN, .device = FMM_DEVICE_CPU, .name = "down_reference", .run = run};
