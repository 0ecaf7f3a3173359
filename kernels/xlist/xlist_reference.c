/* X list, plain C reference: entry by entry, surface point by surface point, double. */
#include <math.h>

#include "kernels/surface_reference.h"

static void add_entry(const fmm_state *state, int32_t box, int32_t leaf) {
  const fmm_tree *tree = state->tree;
  const fmm_operators *o = state->operators;
  const fmm_points *p = &tree->sources;
  int64_t begin = tree->source_begin[leaf];
  const double *normal[3] = {NULL};
  for (int k = 0; k < 3 && p->normal[0]; k++) normal[k] = p->normal[k] + begin;
  fmm_reference_points source = {tree->source_end[leaf] - begin, p->x + begin, p->y + begin, p->z + begin};
  fmm_reference_points target = fmm_reference_inner_surface(state, box);
  fmm_reference_planes density = {(double *)state->density + begin, state->n_columns * p->n, p->n};
  fmm_reference_planes value = {state->down_check + (int64_t)box * state->n_columns * o->n, o->n_surface, o->n};
  fmm_reference_add(state->pair, state->params, state->n_columns, 0, &source, normal, &density, &target, &value);
}

/* Harmonics inside that the leaf's sources make, H(y) / |y|^(2l+1), and these at the check points. */
static void add_entry_by_harmonics(const fmm_state *state, int32_t box, int32_t leaf) {
  const fmm_tree *tree = state->tree;
  const fmm_operators *o = state->operators;
  const fmm_harmonics *h = &o->harmonics;
  const fmm_harmonic_box frame = fmm_harmonic_box_of(tree, box, 1);
  for (int c = 0; c < state->n_columns; c++) {
    double local[FMM_MOST_HARMONICS] = {0}, harmonic[FMM_MOST_HARMONICS], y[3];
    for (int64_t i = tree->source_begin[leaf]; i < tree->source_end[leaf]; i++) {
      fmm_harmonic_place(&frame, tree->sources.x[i], tree->sources.y[i], tree->sources.z[i], y);
      const double r2 = y[0] * y[0] + y[1] * y[1] + y[2] * y[2];
      fmm_harmonics_at(h, y, harmonic);
      for (int m = 0, k = 0; m <= h->degree; m++)
        for (int l = m; l <= h->degree; l++, k++)
          for (int sine = 0; sine < 2; sine++) local[2 * k + sine] += state->density[c * tree->sources.n + i] * h->weight[k] * frame.per_side * harmonic[2 * k + sine] * pow(r2, -l - 0.5);
    }
    for (int i = 0; i < o->n_surface; i++) {
      fmm_reference_inner_harmonics(o, i, harmonic);
      for (int k = 0; k < 2 * h->n_pairs; k++) state->down_check[((int64_t)box * state->n_columns + c) * o->n + i] += local[k] * harmonic[k];
    }
  }
}

static fmm_status run(fmm_state *state, int64_t row_begin, int64_t row_end) {
  return fmm_reference_rows(state, &state->lists->x, row_begin, row_end, fmm_by_harmonics(state) ? add_entry_by_harmonics : add_entry);
}

const fmm_phase_impl fmm_xlist_reference = {.phase = FMM_PHASE_XLIST, .device = FMM_DEVICE_CPU, .name = "xlist_reference", .run = run};
