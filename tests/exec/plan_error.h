/* Errors of plans against direct sums, for tests with points of their own. */
#ifndef FMM_TEST_PLAN_ERROR_H
#define FMM_TEST_PLAN_ERROR_H
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/generate.h"

static inline fmm_options defaults(double tolerance) {
  fmm_options o;
  assert_ok(fmm_options_init(&o));
  o.tolerance = tolerance;
  return o;
}

static inline double relative_l2(int64_t n, const double *a, const double *b) {
  double e = 0, f = 0, largest = 0; /* scaled: values of 1e+-150 must not overflow when squared */
  for (int64_t i = 0; i < n; i++) largest = fmax(largest, fabs(b[i]));
  if (largest == 0) largest = 1;
  for (int64_t i = 0; i < n; i++) {
    if (!isfinite(a[i])) return INFINITY;
    e += (a[i] - b[i]) / largest * ((a[i] - b[i]) / largest), f += b[i] / largest * (b[i] / largest);
  }
  return f > 0 ? sqrt(e / f) : sqrt(e);
}

/* Error of potential and, where the options want it, gradient at up to 1,000 rows; densities seeded. */
static inline double error_of(const fmm_options *o, int64_t n, const double *points, int64_t m, const double *targets) {
  fmm_plan *plan = NULL;
  int64_t n_targets = targets ? m : n, rows = n_targets < 1000 ? n_targets : 1000;
  double *density = malloc((size_t)(n + 1) * 8), *p = malloc((size_t)(n_targets + 1) * 8), *g = malloc((size_t)(n_targets + 1) * 24);
  double *pd = malloc((size_t)(rows + 1) * 8), *gd = malloc((size_t)(rows + 1) * 24);
  int64_t *row = malloc((size_t)(rows + 1) * 8);
  assert_ok(fmm_generate_densities("signed", n, 5, density, 2));
  assert_ok(fmm_plan_create(&plan, o));
  assert_ok(fmm_plan_set_points(plan, n, points, NULL, m, targets));
  assert_ok(fmm_plan_execute(plan, density, p, o->gradient ? g : NULL));
  for (int64_t i = 0; i < rows; i++) row[i] = i * (n_targets / (rows ? rows : 1));
  assert_ok(fmm_plan_direct(plan, density, rows, row, pd, o->gradient ? gd : NULL));
  for (int64_t i = 0; i < rows; i++) {
    p[i] = p[row[i]];
    if (o->gradient) memmove(g + 3 * i, g + 3 * row[i], 24);
  }
  double error = relative_l2(rows, p, pd);
  if (o->gradient) error = fmax(error, relative_l2(3 * rows, g, gd));
  fmm_plan_destroy(&plan);
  free(density), free(p), free(g), free(pd), free(gd), free(row);
  return error;
}

static inline double worst_error(const fmm_options *options, int64_t n, const double *points, int64_t m, const double *targets) {
  fmm_options o = *options;
  o.gradient = 1;
  return error_of(&o, n, points, m, targets);
}
#endif
