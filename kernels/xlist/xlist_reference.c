/* X list, plain C reference: entry by entry, surface point by surface point, double. */
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

static fmm_status run(fmm_state *state, int64_t row_begin, int64_t row_end) {
  return fmm_reference_rows(state, &state->lists->x, row_begin, row_end, add_entry);
}

const fmm_phase_impl fmm_xlist_reference = {.phase = FMM_PHASE_XLIST, .device = FMM_DEVICE_CPU, .name = "xlist_reference", .run = run};
