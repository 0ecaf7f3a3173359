/* The operators applied to one vector in plain C: the references of the phases' blocked products, and the chain of order.c. */
#include <string.h>

#include "kernels/operators_parts.h"

/* y += factor * rows of the panels times x, a panel at a time, as they lie in memory. */
static void multiply(const fmm_panels *panels, int column_begin, int n_columns, double factor, const double *x, double *y) {
  for (int begin = 0; begin < panels->rows; begin += FMM_PANEL_ROWS) {
    const double *a = panels->data + (int64_t)begin * panels->columns + (int64_t)column_begin * FMM_PANEL_ROWS;
    int rows = panels->rows - begin < FMM_PANEL_ROWS ? panels->rows - begin : FMM_PANEL_ROWS;
    double sum[FMM_PANEL_ROWS] = {0};
    for (int j = 0; j < n_columns; j++)
      for (int r = 0; r < FMM_PANEL_ROWS; r++) sum[r] += a[(int64_t)j * FMM_PANEL_ROWS + r] * x[j];
    for (int r = 0; r < rows; r++) y[begin + r] += factor * sum[r];
  }
}

static void multiply_blocks(const fmm_operators *o, const fmm_panels *panels, const double *x, double *y) {
  memset(y, 0, (size_t)o->n * sizeof *y);
  for (int chi = 0; chi < o->parity.n_blocks; chi++)
    multiply(&panels[chi], 0, panels[chi].columns, 1, x + o->parity.begin[chi], y + o->parity.begin[chi]);
}

void fmm_apply_first(const fmm_operators *o, const fmm_panels first[8], const double *natural, double *coefficients, double *scratch) {
  fmm_regroup(o, natural, scratch);
  multiply_blocks(o, first, scratch, coefficients);
}

void fmm_apply_second(const fmm_operators *o, const fmm_panels second[8], const double *coefficients, double *natural, double *scratch) {
  multiply_blocks(o, second, coefficients, scratch);
  fmm_spread(o, scratch, natural);
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

void fmm_apply_l2l(const fmm_operators *o, const fmm_level_operators *set, int octant, const double *coefficients, double *child_check, double *scratch) {
  const fmm_parity_map *map = &o->parity;
  double *spread = scratch + o->n;
  memset(scratch, 0, (size_t)o->n * sizeof *scratch);
  if (map->n_blocks == 1) multiply(&set->l2l[octant], 0, o->n, 1, coefficients, scratch);
  for (int row = 0; row < map->n_blocks && map->n_blocks > 1; row++)
    for (int column = 0; column < FMM_MIRRORS; column++)
      multiply(&set->l2l[row], map->begin[column], map->begin[column + 1] - map->begin[column], fmm_mirror_sign(row ^ column, octant),
               coefficients + map->begin[column], scratch + map->begin[row]);
  fmm_spread(o, scratch, spread);
  for (int i = 0; i < o->n; i++) child_check[i] += spread[i];
}
