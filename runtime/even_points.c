/* See even_points.h. */
#include "even_points.h"

#include "generate.h"
#include "team_loop.h"

enum { looked_at = 1 << 14, level = 3, n_cells = 1 << 3 * level };

typedef struct looking { int64_t n, m; const double *rows; fmm_frame frame; int64_t in_cell[n_cells]; } looking;

/* One row at random of each of m equal stretches. */
static uint64_t row_of(const looking *l, uint64_t draw, int64_t j) {
  const int64_t row = (int64_t)(((double)j + fmm_generate_fraction(draw, j)) * ((double)l->n / (double)l->m));
  return (uint64_t)(row < l->n ? row : l->n - 1);
}

static void count_cells(void *context, int64_t begin, int64_t end) {
  enum { some = 256 };
  looking *l = context;
  const uint64_t draw = fmm_generate_key(3);
  int64_t in_cell[n_cells] = {0};
  uint64_t row[some], key[some];
  for (int64_t b = begin; b < end; b += some) {
    const int64_t n = end - b < some ? end - b : some;
    for (int64_t i = 0; i < n; i++) {
      row[i] = row_of(l, draw, b + i);
      __builtin_prefetch(l->rows + 3 * row[i]);
    }
    fmm_keys_of_rows(key, &l->frame, n, l->rows, row);
    for (int64_t i = 0; i < n; i++) in_cell[key[i] >> 3 * (FMM_KEY_LEVEL - level)]++;
  }
  fmm_join_begin();
  for (int c = 0; c < n_cells; c++) l->in_cell[c] += in_cell[c];
  fmm_join_end();
}

int fmm_points_are_even(int64_t n, const double *rows, const fmm_bounds *bounds, int threads) {
  const double most = 1.3;
  looking l = {.n = n, .m = n < looked_at ? n : looked_at, .rows = rows};
  const double a_cell = (double)l.m / n_cells;
  double chi_squared = 0;
  fmm_frame_place(&l.frame, bounds, 1);
  if (!n || l.frame.coincident) return 0;
  fmm_team_loop(l.m, FMM_PARALLEL_MINIMUM, count_cells, &l, threads);
  for (int c = 0; c < n_cells; c++) chi_squared += ((double)l.in_cell[c] - a_cell) * ((double)l.in_cell[c] - a_cell) / a_cell;
  return chi_squared < most * n_cells;
}

void fmm_even_keys(int of_level, uint64_t *keys) {
  const int below = 3 * (FMM_KEY_LEVEL - of_level);
  for (uint64_t i = 0; i < (uint64_t)1 << 3 * of_level; i++) keys[i] = i << below | (below ? (uint64_t)7 << (below - 3) : 0);
}
