/* Up, plain C reference: box by box with the operators applied to one vector at a time, pair sums by definition, double. */
#include <string.h>

#include "kernels/operators_parts.h"
#include "kernels/pair/pair_reference.h"
#include "kernels/phase.h"

typedef struct vectors { double *check, *coefficients, *scratch, *x, *y, *z, *terms, *harmonics; } vectors;

static double *equivalent_of(const fmm_state *state, int32_t box, int column) {
  return state->up_equivalent + ((int64_t)box * state->n_columns + column) * state->operators->n;
}

/* Moments of a leaf's densities, by the definition of the harmonics, and their equivalent densities. */
static void p2m_by_harmonics(const fmm_state *state, int32_t box, const vectors *v) {
  const fmm_tree *tree = state->tree;
  const fmm_operators *o = state->operators;
  const fmm_harmonics *h = &o->harmonics;
  const fmm_harmonic_box frame = fmm_harmonic_box_of(tree, box, 0);
  for (int c = 0; c < state->n_columns; c++) {
    memset(v->terms, 0, (size_t)h->n_terms * sizeof *v->terms);
    for (int64_t i = tree->source_begin[box]; i < tree->source_end[box]; i++) {
      double at[3];
      fmm_harmonic_place(&frame, tree->sources.x[i], tree->sources.y[i], tree->sources.z[i], at);
      fmm_harmonics_at(h, at, v->harmonics);
      for (int k = 0; k < 2 * h->n_pairs; k++)
        if (h->place[k] >= 0) v->terms[h->place[k]] += state->density[c * tree->sources.n + i] * v->harmonics[k];
    }
    const fmm_level_operators *set = fmm_operators_at(o, tree->level[box]);
    fmm_apply_up_moments(o, set, v->terms, equivalent_of(state, box, c), v->scratch);
  }
}

static void p2m(const fmm_state *state, int32_t box, const vectors *v) {
  const fmm_tree *tree = state->tree;
  const fmm_operators *o = state->operators;
  double h = fmm_half_width(tree, tree->level[box]), scale = fmm_operators_scale(o, h);
  int64_t first = tree->source_begin[box];
  for (int i = 0; i < o->n_surface; i++) {
    v->x[i] = tree->center_x[box] + o->outer_radius * h * o->surface[3 * i];
    v->y[i] = tree->center_y[box] + o->outer_radius * h * o->surface[3 * i + 1];
    v->z[i] = tree->center_z[box] + o->outer_radius * h * o->surface[3 * i + 2];
  }
  const double *normal[3];
  for (int a = 0; a < 3; a++) normal[a] = tree->sources.normal[a] ? tree->sources.normal[a] + first : NULL;
  fmm_reference_points source = {tree->source_end[box] - first, tree->sources.x + first, tree->sources.y + first, tree->sources.z + first};
  fmm_reference_points target = {o->n_surface, v->x, v->y, v->z};
  for (int c = 0; c < state->n_columns; c++) {
    fmm_reference_planes density = {(double *)state->density + c * tree->sources.n + first, state->n_columns * tree->sources.n, 0};
    fmm_reference_planes value = {v->check, o->n_surface, 0};
    memset(v->check, 0, (size_t)o->n * sizeof *v->check);
    fmm_reference_add(state->pair, state->params, 1, 0, &source, normal, &density, &target, &value);
    for (int i = 0; i < o->n; i++) v->check[i] /= scale;
    const fmm_level_operators *set = fmm_operators_at(o, tree->level[box]);
    fmm_apply_first(o, set->up_first, 1, v->check, v->coefficients, v->scratch);
    fmm_apply_second(o, set->up_second, 1, v->coefficients, equivalent_of(state, box, c), v->scratch);
  }
}

static void m2m(const fmm_state *state, int32_t box, const vectors *v) {
  const fmm_tree *tree = state->tree;
  const fmm_operators *o = state->operators;
  const fmm_level_operators *set = fmm_operators_at(o, tree->level[box]);
  for (int c = 0; c < state->n_columns; c++) {
    memset(v->coefficients, 0, (size_t)o->n * sizeof *v->coefficients);
    for (int32_t child = tree->first_child[box]; child < tree->first_child[box] + tree->n_children[box]; child++)
      if (tree->source_end[child] > tree->source_begin[child])
        fmm_apply_m2m(o, set, tree->octant[child], equivalent_of(state, child, c), v->coefficients, v->scratch);
    fmm_apply_second(o, set->up_second, 1, v->coefficients, equivalent_of(state, box, c), v->scratch);
  }
}

static fmm_status run(fmm_state *state, int64_t begin, int64_t end) {
  const fmm_tree *tree = state->tree;
  int n = state->operators->n, ns = state->operators->n_surface;
  double *work = NULL;
  const fmm_harmonics *h = &state->operators->harmonics;
  FMM_TRY(FMM_ALLOCATE(&work, 4 * n + 3 * ns + h->n_terms + 2 * h->n_pairs, "up reference vectors"));
  vectors v = {work, work + n, work + 2 * n, work + 4 * n, work + 4 * n + ns, work + 4 * n + 2 * ns, work + 4 * n + 3 * ns, work + 4 * n + 3 * ns + h->n_terms};
  memset(state->up_equivalent, 0, (size_t)tree->n_boxes * (size_t)state->n_columns * (size_t)n * sizeof *state->up_equivalent);
  for (int l = tree->n_levels - 1; l >= FMM_FIRST_FAR_LEVEL; l--)
    for (int32_t box = tree->level_begin[l]; box < tree->level_begin[l + 1]; box++) {
      if (tree->source_end[box] == tree->source_begin[box]) continue;
      if (tree->first_child[box] < 0 && fmm_by_harmonics(state)) p2m_by_harmonics(state, box, &v);
      else if (tree->first_child[box] < 0) p2m(state, box, &v);
      else m2m(state, box, &v);
    }
  FMM_FREE(&work);
  return FMM_OK;
}

const fmm_phase_impl fmm_up_reference = {.phase = FMM_PHASE_UP, .device = FMM_DEVICE_CPU, .name = "up_reference", .run = run};
