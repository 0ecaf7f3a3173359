/* W list, plain C reference: entry by entry, target by target, surface points by definition, double. */
#include "kernels/pair/pair_reference.h"
#include "kernels/phase.h"

enum { MAX_SURFACE = 6 * 19 * 19 + 2 }; /* order 20 */

static void add_entry(const fmm_state *state, int32_t leaf, int32_t box) {
  const fmm_tree *tree = state->tree;
  const fmm_operators *o = state->operators;
  static _Thread_local double x[MAX_SURFACE], y[MAX_SURFACE], z[MAX_SURFACE];
  double radius = FMM_INNER_RADIUS * fmm_half_width(tree, tree->level[box]);
  for (int i = 0; i < o->n_surface; i++) {
    x[i] = tree->center_x[box] + radius * o->surface[3 * i];
    y[i] = tree->center_y[box] + radius * o->surface[3 * i + 1];
    z[i] = tree->center_z[box] + radius * o->surface[3 * i + 2];
  }
  int64_t first = tree->target_begin[leaf];
  const double *normal[3] = {NULL};
  fmm_reference_points source = {o->n_surface, x, y, z};
  fmm_reference_points target = {tree->target_end[leaf] - first, tree->targets.x + first, tree->targets.y + first, tree->targets.z + first};
  fmm_reference_planes density = {state->up_equivalent + (int64_t)box * state->n_columns * o->n, o->n_surface, o->n};
  fmm_reference_planes value = {state->potential + first, state->n_columns * tree->targets.n, tree->targets.n};
  fmm_reference_add(state->pair, state->params, state->n_columns, state->gradient, &source, normal, &density, &target, &value);
}

static fmm_status run(fmm_state *state, int64_t row_begin, int64_t row_end) {
  const fmm_rows *w = &state->lists->w;
  if (state->operators->n_surface > MAX_SURFACE)
    return FMM_FAIL(FMM_ERR_INTERNAL, "the W list reference holds %d surface points, not %d", MAX_SURFACE, state->operators->n_surface);
  for (int64_t row = row_begin; row < row_end; row++)
    for (int64_t e = w->offset[row]; e < w->offset[row + 1]; e++) add_entry(state, w->row[row], w->entry[e]);
  return FMM_OK;
}

const fmm_phase_impl fmm_wlist_reference = {.phase = FMM_PHASE_WLIST, .device = FMM_DEVICE_CPU, .name = "wlist_reference", .run = run};
