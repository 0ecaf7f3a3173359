/* The pair-sum engine, instruction-set independent part: cuts targets into blocks, columns into chunks. */
#include "kernels/pair/pair_sums.h"

enum { MAX_COMPONENTS = 4, MAX_VALUES = 12 };

void fmm_pair_sum_prepare(fmm_pair_sum *sum, const fmm_pair *pair, const double *params, int n_columns, int gradient, fmm_precision precision,
                          double tolerance) {
  int single = precision == FMM_PRECISION_SINGLE || precision == FMM_PRECISION_MIXED;
  *sum = (fmm_pair_sum){.pair = pair, .params = params, .n_columns = n_columns, .gradient = gradient != 0, .tolerance = tolerance,
                        .accuracy = single ? FMM_PAIR_SINGLE : tolerance >= 1e-6 ? FMM_PAIR_REDUCED : FMM_PAIR_FULL};
}

/* One column, the plain C reference target by target. */
static void add_reference(const fmm_pair_sum *sum, const fmm_pair_targets *t, const fmm_pair_sources *s, int column) {
  const double *density[MAX_COMPONENTS];
  int components = sum->pair->info->components, values = sum->pair->info->outputs * (sum->gradient ? 4 : 1);
  for (int k = 0; k < components; k++) density[k] = s->density + k * s->component_stride + column * s->column_stride;
  for (int64_t i = 0; i < t->n; i++) {
    double f[MAX_VALUES] = {0};
    sum->pair->reference((const double[3]){t->x[i], t->y[i], t->z[i]}, s->n, s->x, s->y, s->z, s->normal, density, sum->params, 1, sum->gradient, f);
    for (int v = 0; v < values; v++) t->value[v * t->value_stride + column * t->column_stride + i] += f[v];
  }
}

void fmm_pair_sum_add(const fmm_pair_sum *sum, const fmm_pair_targets *targets, int64_t n_ranges, const fmm_pair_sources *ranges) {
  for (int64_t r = 0; r < n_ranges; r++)
    for (int c = 0; c < sum->n_columns; c++) add_reference(sum, targets, &ranges[r], c);
}

void fmm_surface_planes(int n, const double *surface, const double center[3], double radius, double *x, double *y, double *z) {
  for (int i = 0; i < n; i++) {
    x[i] = center[0] + radius * surface[3 * i];
    y[i] = center[1] + radius * surface[3 * i + 1];
    z[i] = center[2] + radius * surface[3 * i + 2];
  }
}
