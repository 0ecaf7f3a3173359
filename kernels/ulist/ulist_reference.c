/* U list, plain C reference: entry by entry, target by target, double. */
#include "kernels/pair/pair_reference.h"
#include "kernels/phase.h"

static fmm_status run(fmm_state *state, int64_t row_begin, int64_t row_end) {
  const fmm_rows *u = &state->lists->u;
  const fmm_tree *tree = state->tree;
  const fmm_points *p = &tree->sources;
  for (int64_t row = row_begin; row < row_end; row++)
    for (int64_t e = u->offset[row]; e < u->offset[row + 1]; e++) {
      int64_t begin = tree->source_begin[u->entry[e]], first = tree->target_begin[u->row[row]];
      const double *normal[3] = {NULL};
      for (int k = 0; k < 3 && p->normal[0]; k++) normal[k] = p->normal[k] + begin;
      fmm_reference_points source = {tree->source_end[u->entry[e]] - begin, p->x + begin, p->y + begin, p->z + begin};
      fmm_reference_points target = {tree->target_end[u->row[row]] - first, tree->targets.x + first, tree->targets.y + first, tree->targets.z + first};
      fmm_reference_planes density = {(double *)state->density + begin, state->n_columns * p->n, p->n};
      fmm_reference_planes value = {state->potential + first, state->n_columns * tree->targets.n, tree->targets.n};
      fmm_reference_add(state->pair, state->params, state->n_columns, state->gradient, &source, normal, &density, &target, &value);
    }
  return FMM_OK;
}

const fmm_phase_impl fmm_ulist_reference = {.phase = FMM_PHASE_ULIST, .device = FMM_DEVICE_CPU, .name = "ulist_reference", .run = run};
