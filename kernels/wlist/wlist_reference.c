/* W list, plain C reference: entry by entry, target by target, surface points by definition, double. */
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

static fmm_status run(fmm_state *state, int64_t row_begin, int64_t row_end) {
  return fmm_reference_rows(state, &state->lists->w, row_begin, row_end, add_entry);
}

const fmm_phase_impl fmm_wlist_reference = {.phase = FMM_PHASE_WLIST, .device = FMM_DEVICE_CPU, .name = "wlist_reference", .run = run};
