/* W list, plain C reference: entry by entry, target by target, surface points by definition, double. */
#include <math.h>

#include "kernels/surface_reference.h"

static void add_entry(const fmm_state *state, int32_t leaf, int32_t box) {
  const fmm_tree *tree = state->tree;
  const fmm_operators *o = state->operators;
  int64_t first = tree->target_begin[leaf];
  const double *normal[3] = {NULL};
  fmm_reference_points source = fmm_reference_inner_surface(state, box);
  fmm_reference_points target = {tree->target_end[leaf] - first, tree->targets.x + first, tree->targets.y + first, tree->targets.z + first};
  fmm_reference_planes density = {state->up_equivalent + (int64_t)box * state->n_columns * o->n, o->n_surface, o->n};
  fmm_reference_planes value = {state->potential + first, state->n_columns * tree->targets.n, tree->targets.n};
  fmm_reference_add(state->pair, state->params, state->n_columns, state->gradient, &source, normal, &density, &target, &value);
}

/* By harmonics at each target, by definition: H(x) / |x|^(2l+1) and its gradient by the product rule. value: 2 n_pairs each of moments and harmonics, n_terms of slopes' rows. */
static void add_target(const fmm_harmonics *h, const double moment[], const double at[3], double per_side, double *harmonic, double *value, int64_t value_stride, int gradient) {
  const double r2 = at[0] * at[0] + at[1] * at[1] + at[2] * at[2];
  fmm_harmonics_at(h, at, harmonic);
  for (int m = 0, k = 0; m <= h->degree; m++)
    for (int l = m; l <= h->degree; l++, k++)
      for (int sine = 0; sine <= (m > 0); sine++) {
        const double power = h->weight[k] * moment[2 * k + sine] * per_side * pow(r2, -l - 0.5), own = power * harmonic[2 * k + sine];
        value[0] += own;
        for (int axis = 0; axis < 3 && gradient; axis++) value[(axis + 1) * value_stride] -= (2 * l + 1) * own * at[axis] / r2 * per_side;
        for (int s = 0; s < h->n_slopes && gradient; s++)
          if (h->slope[s].from == h->place[2 * k + sine])
            for (int i = 0; i < 2 * h->n_pairs; i++)
              if (h->place[i] == h->slope[s].to) value[(h->slope[s].axis + 1) * value_stride] += power * h->slope[s].factor * harmonic[i] * per_side;
      }
}

static void add_entry_by_harmonics(const fmm_state *state, int32_t leaf, int32_t box) {
  const fmm_tree *tree = state->tree;
  const fmm_operators *o = state->operators;
  const fmm_harmonics *h = &o->harmonics;
  const fmm_harmonic_box frame = fmm_harmonic_box_of(tree, box, 1);
  for (int c = 0; c < state->n_columns; c++) {
    const double *density = state->up_equivalent + ((int64_t)box * state->n_columns + c) * o->n;
    double moment[FMM_MOST_HARMONICS] = {0}, harmonic[FMM_MOST_HARMONICS], at[3];
    for (int i = 0; i < o->n_surface; i++) {
      fmm_reference_inner_harmonics(o, i, harmonic);
      for (int k = 0; k < 2 * h->n_pairs; k++) moment[k] += density[i] * harmonic[k];
    }
    for (int64_t i = tree->target_begin[leaf]; i < tree->target_end[leaf]; i++) {
      fmm_harmonic_place(&frame, tree->targets.x[i], tree->targets.y[i], tree->targets.z[i], at);
      add_target(h, moment, at, frame.per_side, harmonic, state->potential + c * tree->targets.n + i, state->n_columns * tree->targets.n, state->gradient);
    }
  }
}

static fmm_status run(fmm_state *state, int64_t row_begin, int64_t row_end) {
  return fmm_reference_rows(state, &state->lists->w, row_begin, row_end, fmm_by_harmonics(state) ? add_entry_by_harmonics : add_entry);
}

const fmm_phase_impl fmm_wlist_reference = {.phase = FMM_PHASE_WLIST, .device = FMM_DEVICE_CPU, .name = "wlist_reference", .run = run};
