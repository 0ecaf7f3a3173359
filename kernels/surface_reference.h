/* What the plain C references of the W and X lists share: a box's inner surface, points by definition, and the walk over rows and entries. */
#ifndef FMM_SURFACE_REFERENCE_H
#define FMM_SURFACE_REFERENCE_H
#include "kernels/pair/pair_reference.h"
#include "kernels/phase.h"

/* Upward equivalent or downward check surface of a box; the points stay valid until the next call in this thread. */
static inline fmm_reference_points fmm_reference_inner_surface(const fmm_state *state, int32_t box) {
  static _Thread_local double x[FMM_MOST_SURFACE_POINTS], y[FMM_MOST_SURFACE_POINTS], z[FMM_MOST_SURFACE_POINTS];
  const fmm_tree *tree = state->tree;
  const fmm_operators *o = state->operators;
  double radius = FMM_INNER_RADIUS * fmm_half_width(tree, tree->level[box]);
  for (int i = 0; i < o->n_surface; i++) {
    x[i] = tree->center_x[box] + radius * o->surface[3 * i];
    y[i] = tree->center_y[box] + radius * o->surface[3 * i + 1];
    z[i] = tree->center_z[box] + radius * o->surface[3 * i + 2];
  }
  return (fmm_reference_points){o->n_surface, x, y, z};
}

static inline fmm_status fmm_reference_rows(const fmm_state *state, const fmm_rows *rows, int64_t begin, int64_t end,
                                            void (*add_entry)(const fmm_state *state, int32_t row_box, int32_t entry_box)) {
  for (int64_t row = begin; row < end; row++)
    for (int64_t e = rows->offset[row]; e < rows->offset[row + 1]; e++) add_entry(state, rows->row[row], rows->entry[e]);
  return FMM_OK;
}
/* All harmonics at point i of a box's inner surface. */
static inline void fmm_reference_inner_harmonics(const fmm_operators *o, int i, double value[FMM_MOST_HARMONICS]) {
  double at[3];
  for (int a = 0; a < 3; a++) at[a] = FMM_INNER_RADIUS / 2 * o->surface[3 * i + a];
  fmm_harmonics_at(&o->harmonics, at, value);
}
#endif
