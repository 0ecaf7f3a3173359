/* The case that bench-cpu times: points and densities, made or read from a file, and direct sums at some of the points to measure errors with.
 * The file, for programs to compare with: int64 n, samples; points n x 3, densities n, int64 rows[samples], then at those rows the exact potential
 * sum q/r and its gradient (samples x 3); doubles, this machine's byte order. */
#ifndef FMM_BENCH_CPU_CASE_H
#define FMM_BENCH_CPU_CASE_H
#include "kernels/pair/pair_info.h"

typedef struct fmm_bench_case {
  const char *dist, *densities, *read, *write; /* read, write: files, or NULL */
  int64_t n, samples;                          /* samples: 0 where there are no direct sums */
  const fmm_pair_info *pair;
  double *points, *density;                    /* n x 3, n x components */
  int64_t *rows;                               /* samples: points with direct sums */
  double *exact, *exact_gradient;              /* at rows: samples, samples x 3 */
} fmm_bench_case;

/* Fills in the arrays, which fmm_bench_case_free frees whatever came of it, and of a file n and samples. */
fmm_status fmm_bench_case_obtain(fmm_bench_case *c, uint64_t seed);
void fmm_bench_case_free(fmm_bench_case *c);
/* In the L2 norm, of what is computed at these rows, `width` numbers a row. */
double fmm_bench_relative_error(int64_t n, const int64_t *rows, int width, const double *computed, const double *exact);
#endif
