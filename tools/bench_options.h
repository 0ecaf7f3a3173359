/* What the benchmarks share: options as KEY=VALUE arguments, medians. They time the inside of the library and are not installed; the commands' option
 * tables are cli.h. A key that is not asked for is ignored; of a key given twice the first counts. */
#ifndef FMM_BENCH_OPTIONS_H
#define FMM_BENCH_OPTIONS_H
#include <stdlib.h>
#include <string.h>

/* The text after KEY=, or `otherwise`. */
static inline const char *fmm_bench_value(int argc, char **argv, const char *key, const char *otherwise) {
  size_t length = strlen(key);
  for (int i = 1; i < argc; i++)
    if (!strncmp(argv[i], key, length) && argv[i][length] == '=') return argv[i] + length + 1;
  return otherwise;
}

static inline int fmm_bench_ascending(const void *a, const void *b) { return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b); }
/* Sorts v. */
static inline double fmm_bench_median(int n, double *v) {
  qsort(v, (size_t)n, sizeof *v, fmm_bench_ascending);
  return n % 2 ? v[n / 2] : 0.5 * (v[n / 2 - 1] + v[n / 2]);
}
#endif
