/* See column_units.h. */
#include <math.h>
#include <string.h>

#include "column_units.h"
#include "team_loop.h"

typedef struct planes { double *values; int64_t n; int n_columns, n_planes, sign; int *exponent; } planes;

/* Four at once; what is no number is passed over. */
static double largest_of(const double *values, int64_t n) {
  enum { FOUR = 4 };
  double most[FOUR] = {0};
  int64_t i = 0;
  for (; i + FOUR <= n; i += FOUR)
    for (int k = 0; k < FOUR; k++) {
      const double f = fabs(values[i + k]);
      most[k] = f > most[k] ? f : most[k];
    }
  for (; i < n; i++) most[0] = fmax(most[0], fabs(values[i]));
  return fmax(fmax(most[0], most[1]), fmax(most[2], most[3]));
}

static void find_exponents(void *context, int64_t begin, int64_t end) {
  const planes *p = context;
  for (int64_t column = begin; column < end; column++) {
    double largest = 0;
    for (int64_t k = column; k < p->n_planes; k += p->n_columns) largest = fmax(largest, largest_of(p->values + k * p->n, p->n));
    p->exponent[column] = fmm_column_exponent(largest);
  }
}

static void scale(void *context, int64_t begin, int64_t end) {
  const planes *p = context;
  for (int64_t k = begin; k < end; k++) {
    const double factor = ldexp(1, p->sign * p->exponent[k % p->n_columns]);
    for (int64_t i = 0; i < p->n; i++) p->values[k * p->n + i] *= factor;
  }
}

void fmm_column_exponents(const double *values, int n_planes, int64_t n, int n_columns, int *exponent, int threads) {
  fmm_team_loop(n_columns, 1, find_exponents, &(planes){(double *)(uintptr_t)values, n, n_columns, n_planes, 0, exponent}, threads);
}

void fmm_scale_columns(double *values, int n_planes, int64_t n, int n_columns, const int *exponent, int sign, int threads) {
  fmm_team_loop(n_planes, 1, scale, &(planes){values, n, n_columns, n_planes, sign, (int *)(uintptr_t)exponent}, threads);
}
