/* X list, plain C reference: entry by entry, surface point by surface point, double. */
#include "kernels/pair/pair_reference.h"
#include "kernels/phase.h"

enum { MAX_SURFACE = 6 * 19 * 19 + 2 }; /* order 20 */

static void add_entry(const fmm_state *state, int32_t box, int32_t leaf) {
  const fmm_tree *tree = state->tree;
  const fmm_operators *o = state->operators;
  const fmm_points *p = &tree->sources;
  static _Thread_local double x[MAX_SURFACE], y[MAX_SURFACE], z[MAX_SURFACE];
  double radius = FMM_INNER_RADIUS * fmm_half_width(tree, tree->level[box]);
  for (int i = 0; i < o->n_surface; i++) {
    x[i] = tree->center_x[box] + radius * o->surface[3 * i];
    y[i] = tree->center_y[box] + radius * o->surface[3 * i + 1];
    z[i] = tree->center_z[box] + radius * o->surface[3 * i + 2];
  }
  int64_t begin = tree->source_begin[leaf];
  const double *normal[3] = {NULL};
  for (int k = 0; k < 3 && p->normal[0]; k++) normal[k] = p->normal[k] + begin;
  fmm_reference_points source = {tree->source_end[leaf] - begin, p->x + begin, p->y + begin, p->z + begin}, target = {o->n_surface, x, y, z};
  fmm_reference_planes density = {(double *)state->density + begin, state->n_columns * p->n, p->n};
  fmm_reference_planes value = {state->down_check + (int64_t)box * state->n_columns * o->n, o->n_surface, o->n};
  fmm_reference_add(state->pair, state->params, state->n_columns, 0, &source, normal, &density, &target, &value);
}

static fmm_status run(fmm_state *state, int64_t row_begin, int64_t row_end) {
  const fmm_rows *x = &state->lists->x;
  if (state->operators->n_surface > MAX_SURFACE)
    return FMM_FAIL(FMM_ERR_INTERNAL, "the X list reference holds %d surface points, not %d", MAX_SURFACE, state->operators->n_surface);
  for (int64_t row = row_begin; row < row_end; row++)
    for (int64_t e = x->offset[row]; e < x->offset[row + 1]; e++) add_entry(state, x->row[row], x->entry[e]);
  return FMM_OK;
}

const fmm_phase_impl fmm_xlist_reference = {.phase = FMM_PHASE_XLIST, .device = FMM_DEVICE_CPU, .name = "xlist_reference", .run = run};
