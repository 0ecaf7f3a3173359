/* Arrays first touched by the team that uses them (team_array.h). */
#include "team_array.h"

#include "tree.h"

static void zero(double *values, size_t n_planes, size_t n, int threads) {
#pragma omp parallel num_threads(threads) if (n > FMM_PARALLEL_MINIMUM)
  for (size_t plane = 0; plane < n_planes; plane++) {
#pragma omp for schedule(static) nowait
    for (size_t i = 0; i < n; i++) values[plane * n + i] = 0;
  }
}

fmm_status fmm_team_allocate(double **values, size_t n_planes, size_t n, int threads, const char *what) {
  size_t total;
  if (__builtin_mul_overflow(n_planes, n, &total)) return FMM_FAIL(FMM_ERR_MEMORY, "%s: %zu x %zu values are more than can be addressed; use fewer points", what, n_planes, n);
  FMM_TRY(FMM_ALLOCATE(values, total, what));
  zero(*values, n_planes, n, threads);
  return FMM_OK;
}
