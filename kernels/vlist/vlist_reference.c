/* V list, plain C reference: every M2L as a dense sum over the two surfaces, pair of boxes by pair of boxes, double. */
#include <string.h>

#include "kernels/phase.h"

/* check of target box += K(target's surface, source's surface) equivalent of source box, all columns. */
static void m2l(const fmm_state *state, int32_t target, int32_t source) {
  const fmm_tree *tree = state->tree;
  const fmm_operators *o = state->operators;
  int ns = o->n_surface, nc = state->pair->info->equivalent_components;
  double r = FMM_INNER_RADIUS * fmm_half_width(tree, tree->level[target]), block[9];
  for (int i = 0; i < ns; i++)
    for (int j = 0; j < ns; j++) {
      const double *si = o->surface + 3 * i, *sj = o->surface + 3 * j;
      double at[3] = {tree->center_x[target] + r * si[0], tree->center_y[target] + r * si[1], tree->center_z[target] + r * si[2]};
      double from[3] = {tree->center_x[source] + r * sj[0], tree->center_y[source] + r * sj[1], tree->center_z[source] + r * sj[2]};
      state->pair->matrix(at, from, state->params, block);
      for (int c = 0; c < state->n_columns; c++) {
        double *check = state->down_check + ((int64_t)target * state->n_columns + c) * o->n;
        const double *equivalent = state->up_equivalent + ((int64_t)source * state->n_columns + c) * o->n;
        for (int k = 0; k < nc; k++)
          for (int l = 0; l < nc; l++) check[k * ns + i] += block[k * nc + l] * equivalent[l * ns + j];
      }
    }
}

static int adjacent(const fmm_tree *tree, int32_t a, int32_t b) {
  double reach = 2.5 * fmm_half_width(tree, tree->level[a]); /* centres of adjacent boxes are at most 2 half-widths apart an axis */
  double dx = tree->center_x[a] - tree->center_x[b], dy = tree->center_y[a] - tree->center_y[b], dz = tree->center_z[a] - tree->center_z[b];
  return dx < reach && dx > -reach && dy < reach && dy > -reach && dz < reach && dz > -reach;
}

static void run_row(const fmm_state *state, int64_t row) {
  const fmm_tree *tree = state->tree;
  const fmm_rows *v = &state->lists->v;
  int32_t p = v->row[row];
  for (int64_t e = v->offset[row]; e < v->offset[row + 1]; e++) {
    int32_t q = v->entry[e];
    for (int32_t t = tree->first_child[p]; t < tree->first_child[p] + tree->n_children[p]; t++)
      for (int32_t s = tree->first_child[q]; s < tree->first_child[q] + tree->n_children[q]; s++)
        if (tree->target_end[t] > tree->target_begin[t] && tree->source_end[s] > tree->source_begin[s] && !adjacent(tree, t, s)) m2l(state, t, s);
  }
}

static fmm_status run(fmm_state *state, int64_t row_begin, int64_t row_end) {
  const fmm_tree *tree = state->tree;
  size_t box_values = (size_t)state->n_columns * (size_t)state->operators->n;
  if (row_begin == 0) memset(state->down_check, 0, (size_t)tree->n_boxes * box_values * sizeof *state->down_check);
  for (int64_t row = row_begin; row < row_end; row++) run_row(state, row);
  return FMM_OK;
}

const fmm_phase_impl fmm_vlist_reference = {.phase = FMM_PHASE_VLIST, .device = FMM_DEVICE_CPU, .name = "vlist_reference", .run = run};
