/* The operators applied to vectors in plain C: the references of the phases' blocked products, and the chain of order.c. */
#include <string.h>

#include "kernels/operators_parts.h"

/* y += factor * rows of the panels times x, of several vectors, a panel at a time, as they lie in memory. */
static inline void multiply_several(const int n_vectors, int64_t stride, const fmm_panels *panels, int column_begin, int n_columns, double factor, const double *x, double *y) {
  for (int begin = 0; begin < panels->rows; begin += FMM_PANEL_ROWS) {
    const double *a = panels->data + (int64_t)begin * panels->columns + (int64_t)column_begin * FMM_PANEL_ROWS;
    int rows = panels->rows - begin < FMM_PANEL_ROWS ? panels->rows - begin : FMM_PANEL_ROWS;
    double sum[FMM_MOST_VECTORS][FMM_PANEL_ROWS] = {{0}};
    for (int j = 0; j < n_columns; j++)
      for (int v = 0; v < n_vectors; v++)
        for (int r = 0; r < FMM_PANEL_ROWS; r++) sum[v][r] += a[(int64_t)j * FMM_PANEL_ROWS + r] * x[v * stride + j];
    for (int v = 0; v < n_vectors; v++)
      for (int r = 0; r < rows; r++) y[v * stride + begin + r] += factor * sum[v][r];
  }
}

static void multiply(const fmm_panels *panels, int column_begin, int n_columns, double factor, const double *x, double *y) {
  multiply_several(1, 0, panels, column_begin, n_columns, factor, x, y);
}

static void multiply_blocks(const fmm_operators *o, const fmm_panels *panels, int n_vectors, const double *x, double *y) {
  memset(y, 0, (size_t)n_vectors * (size_t)o->n * sizeof *y);
  for (int chi = 0; chi < o->parity.n_blocks; chi++) {
    const double *from = x + o->parity.begin[chi];
    double *to = y + o->parity.begin[chi];
    if (n_vectors == FMM_MOST_VECTORS) multiply_several(FMM_MOST_VECTORS, o->n, &panels[chi], 0, panels[chi].columns, 1, from, to);
    else
      for (int v = 0; v < n_vectors; v++) multiply(&panels[chi], 0, panels[chi].columns, 1, from + v * o->n, to + v * o->n);
  }
}

void fmm_apply_first(const fmm_operators *o, const fmm_panels first[8], int n_vectors, const double *natural, double *coefficients, double *scratch) {
  for (int v = 0; v < n_vectors; v++) fmm_regroup(o, natural + v * o->n, scratch + v * o->n);
  multiply_blocks(o, first, n_vectors, scratch, coefficients);
}

void fmm_apply_second(const fmm_operators *o, const fmm_panels second[8], int n_vectors, const double *coefficients, double *natural, double *scratch) {
  multiply_blocks(o, second, n_vectors, coefficients, scratch);
  for (int v = 0; v < n_vectors; v++) fmm_spread(o, scratch + v * o->n, natural + v * o->n);
}

/* Eight blocks of any shape, whose columns and rows begin at these places; of one vector. */
static void apply_blocks(const fmm_panels blocks[8], const int column_begin[FMM_MIRRORS + 1], const int row_begin[FMM_MIRRORS + 1], const double *in, double *out) {
  memset(out, 0, (size_t)row_begin[FMM_MIRRORS] * sizeof *out);
  for (int chi = 0; chi < FMM_MIRRORS; chi++) multiply(&blocks[chi], 0, blocks[chi].columns, 1, in + column_begin[chi], out + row_begin[chi]);
}

void fmm_apply_up_moments(const fmm_operators *o, const fmm_level_operators *set, const double *moments, double *natural, double *scratch) {
  apply_blocks(set->up_moments, o->harmonics.begin, o->parity.begin, moments, scratch);
  if (fmm_moments_are_whole(o->order)) fmm_spread(o, scratch, natural);
  else fmm_apply_second(o, set->up_second, 1, scratch, natural, scratch + o->n);
}

void fmm_apply_down_moments(const fmm_operators *o, const fmm_level_operators *set, const double *natural, double *harmonics, double *scratch) {
  if (fmm_moments_are_whole(o->order)) fmm_regroup(o, natural, scratch);
  else fmm_apply_first(o, set->down_first, 1, natural, scratch, scratch + o->n);
  apply_blocks(set->down_moments, o->parity.begin, o->harmonics.begin, scratch, harmonics);
}

void fmm_apply_m2m(const fmm_operators *o, const fmm_level_operators *set, int octant, const double *child, double *coefficients, double *scratch) {
  const fmm_parity_map *map = &o->parity;
  fmm_regroup(o, child, scratch);
  if (map->n_blocks == 1) {
    multiply(&set->m2m[octant], 0, o->n, 1, scratch, coefficients);
    return;
  }
  for (int row = 0; row < FMM_MIRRORS; row++)
    for (int column = 0; column < FMM_MIRRORS; column++)
      multiply(&set->m2m[row], map->begin[column], map->begin[column + 1] - map->begin[column], fmm_mirror_sign(row ^ column, octant),
               scratch + map->begin[column], coefficients + map->begin[row]);
}

static int is_zero(int n, const double *x) {
  for (int i = 0; i < n; i++)
    if (x[i] != 0) return 0;
  return 1;
}

void fmm_apply_l2l(const fmm_operators *o, const fmm_level_operators *set, int octant, const double *coefficients, double *child_check, double *scratch) {
  const fmm_parity_map *map = &o->parity;
  double *spread = scratch + o->n;
  memset(scratch, 0, (size_t)o->n * sizeof *scratch);
  if (map->n_blocks == 1) multiply(&set->l2l[octant], 0, o->n, 1, coefficients, scratch);
  for (int column = 0; column < FMM_MIRRORS && map->n_blocks > 1; column++) {
    const double *block = coefficients + map->begin[column];
    const int size = map->begin[column + 1] - map->begin[column];
    if (is_zero(size, block)) continue; /* most blocks of fields with symmetries */
    for (int row = 0; row < FMM_MIRRORS; row++) multiply(&set->l2l[row], map->begin[column], size, fmm_mirror_sign(row ^ column, octant), block, scratch + map->begin[row]);
  }
  fmm_spread(o, scratch, spread);
  for (int i = 0; i < o->n; i++) child_check[i] += spread[i];
}
