/* Direct sums at chosen targets, the reference that errors are measured against: every pair in double, each value accumulated without
 * rounding loss worth naming (two-sum: Knuth, TAOCP 2, 4.2.2; the running error kept apart and added once, as in Neumaier, ZAMM 54 (1974) 39).
 * What remains is the rounding of one kernel evaluation a pair, about 4e-16 of sum |K s|. O(targets x sources); a target's sum is one
 * thread's, in source order, so the bits do not depend on the number of threads. */
#ifndef FMM_DIRECT_H
#define FMM_DIRECT_H
#include "kernels/pair/pair.h"

/* Sources as planes, the layout of fmm_points, in the units in which params are meant; no factor is applied to the results. */
typedef struct fmm_direct_case {
  const fmm_pair *pair;
  const double *params;
  int n_columns, gradient;
  int64_t n_sources;
  const double *x, *y, *z;      /* n_sources each */
  const double *const *normal;  /* 3 planes, or NULL */
  const double *density;        /* planes [component * n_columns + column] of density_stride values each */
  int64_t density_stride;       /* at least n_sources */
} fmm_direct_case;

/* Values a target: outputs * (gradient ? 4 : 1) * n_columns. */
int fmm_direct_width(const fmm_direct_case *what);

/* targets: n x 3 row-major. values: n x width, [(output * stride + k) * n_columns + column], k = 0 the potential, 1..3 its gradient.
 * magnitudes, NULL or the same shape: sum |K s|, whose ratio to the values says how much cancels. Allocates nothing, cannot fail. */
void fmm_direct_sums(const fmm_direct_case *what, int64_t n, const double *targets, int threads, double *values, double *magnitudes);

/* rows: `samples` distinct rows of 0 .. n-1, ascending, one drawn from each of `samples` equal parts by the seed; all n rows when
 * samples >= n. Returns how many (rows must have room for the smaller of the two). */
int64_t fmm_sample_rows(int64_t n, int64_t samples, uint64_t seed, int64_t *rows);
#endif
