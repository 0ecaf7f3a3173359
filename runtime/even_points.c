/* See even_points.h. */
#include "even_points.h"

#include <math.h>

#include "generate.h"
#include "team_loop.h"

enum { first_look = 1 << 12, second_look = 1 << 16, coarsest = 3, finest = 7 };

typedef struct looking { int64_t n; const double *rows; fmm_frame frame; uint64_t *key; } looking;

/* Any rows, as those that follow one another may be of one group; some are taken twice, which adds m / n to the dispersion of m picked. */
static void make_keys(void *context, int64_t begin, int64_t end) {
  enum { some = 256 };
  const looking *l = context;
  const uint64_t draw = fmm_generate_key(3);
  uint64_t row[some];
  for (int64_t b = begin; b < end; b += some) {
    const int64_t n = end - b < some ? end - b : some;
    for (int64_t i = 0; i < n; i++) {
      row[i] = (uint64_t)(fmm_generate_fraction(draw, b + i) * (double)l->n);
      __builtin_prefetch(l->rows + 3 * row[i]);
    }
    fmm_keys_of_rows(l->key + b, &l->frame, n, l->rows, row);
  }
}

/* Variance over mean of the numbers of m sorted keys in all cells of a level. */
static double dispersion(int64_t m, const uint64_t *key, int level) {
  const int shift = 3 * (FMM_KEY_LEVEL - level);
  double squares = 0;
  for (int64_t i = 0, end; i < m; i = end) {
    for (end = i + 1; end < m && key[end] >> shift == key[i] >> shift;) end++;
    squares += (double)(end - i) * (double)(end - i);
  }
  return squares / (double)m - (double)m / ldexp(1, 3 * level);
}

static fmm_status look_at(looking *l, int64_t m, int to_level, int threads, int *are_even) {
  uint64_t *scratch = NULL;
  fmm_status status;
  FMM_CHECK(FMM_ALLOCATE(&l->key, m, "keys of some points"));
  FMM_CHECK(FMM_ALLOCATE(&scratch, m, "scratch of the sort"));
  fmm_team_loop(m, FMM_PARALLEL_MINIMUM, make_keys, l, threads);
  FMM_CHECK(fmm_sort_keys(l->key, scratch, m, threads));
  *are_even = 1;
  for (int level = coarsest; level <= to_level && *are_even; level++) *are_even = dispersion(m, l->key, level) - (double)m / (double)l->n < (level == coarsest ? 1.35 : 1.1);
done:
  FMM_FREE(&scratch);
  FMM_FREE(&l->key);
  return status;
}

fmm_status fmm_points_look_even(int64_t n, const double *rows, const fmm_bounds *bounds, int threads, int *are_even) {
  looking l = {.n = n, .rows = rows};
  *are_even = 0;
  fmm_frame_place(&l.frame, bounds, 1);
  if (!n || l.frame.coincident) return FMM_OK;
  FMM_TRY(look_at(&l, first_look, coarsest, threads, are_even));
  return *are_even ? look_at(&l, second_look, finest, threads, are_even) : FMM_OK;
}

void fmm_even_keys(int level, uint64_t *keys) {
  const int below = 3 * (FMM_KEY_LEVEL - level);
  for (uint64_t i = 0; i < (uint64_t)1 << 3 * level; i++) keys[i] = i << below | (below ? (uint64_t)7 << (below - 3) : 0);
}
