/* Morton keys, sorting and merging of one set of points. In the usual case: keys, one radix sort, one gather into planes.
 * Only where a finest cell is overfull are its rows sorted further, by the bits of x, then y, then z (then the normal): equal ones are
 * coincident. That is again a radix sort, so coincidence of any part of the points costs linear time. */
#include "points.h"

#include <string.h>

#include "team_loop.h"

fmm_status fmm_points_check_counts(int64_t n_sources, int64_t n_targets) {
  const int64_t most = (int64_t)1 << 42;
  if (n_sources < 0 || n_targets < 0)
    return FMM_FAIL(FMM_ERR_ARGUMENT, "numbers of points cannot be negative: %lld sources, %lld targets", (long long)n_sources, (long long)n_targets);
  if (n_sources > most || n_targets > most)
    return FMM_FAIL(FMM_ERR_ARGUMENT, "no memory holds so many points: %lld sources, %lld targets; counts are of points, not of bytes", (long long)n_sources, (long long)n_targets);
  return FMM_OK;
}

enum { table_bits = 11, table_size = 1 << table_bits }; /* two look-ups for the 21 bits of an axis */
#define SPREAD(v) (((v) & 1) | ((v) & 2) << 2 | ((v) & 4) << 4 | ((v) & 8) << 6 | ((v) & 16) << 8 | ((v) & 32) << 10 | ((v) & 64) << 12 | ((v) & 128) << 14 | ((v) & 256) << 16 | ((v) & 512) << 18 | ((v) & 1024) << 20)
#define SPREAD_8(v) SPREAD(v), SPREAD((v) + 1), SPREAD((v) + 2), SPREAD((v) + 3), SPREAD((v) + 4), SPREAD((v) + 5), SPREAD((v) + 6), SPREAD((v) + 7)
#define SPREAD_64(v) SPREAD_8(v), SPREAD_8((v) + 8), SPREAD_8((v) + 16), SPREAD_8((v) + 24), SPREAD_8((v) + 32), SPREAD_8((v) + 40), SPREAD_8((v) + 48), SPREAD_8((v) + 56)
#define SPREAD_512(v) SPREAD_64(v), SPREAD_64((v) + 64), SPREAD_64((v) + 128), SPREAD_64((v) + 192), SPREAD_64((v) + 256), SPREAD_64((v) + 320), SPREAD_64((v) + 384), SPREAD_64((v) + 448)
static const uint32_t spread[table_size] = {SPREAD_512(0u), SPREAD_512(512u), SPREAD_512(1024u), SPREAD_512(1536u)}; /* each bit three places from the next */

static uint64_t interleave(uint32_t i, uint32_t j, uint32_t k) { return spread[i] | (uint64_t)spread[j] << 1 | (uint64_t)spread[k] << 2; }

uint64_t fmm_key_of(uint32_t i, uint32_t j, uint32_t k) {
  const uint32_t low = table_size - 1;
  return interleave(i & low, j & low, k & low) | interleave(i >> table_bits, j >> table_bits, k >> table_bits) << 3 * table_bits;
}

uint64_t fmm_key_compact(uint64_t v) {
  v &= 0x1249249249249249;
  v = (v | v >> 2) & 0x10c30c30c30c30c3;
  v = (v | v >> 4) & 0x100f00f00f00f00f;
  v = (v | v >> 8) & 0x1f0000ff0000ff;
  v = (v | v >> 16) & 0x1f00000000ffff;
  return (v | v >> 32) & 0x1fffff;
}

typedef struct sorting {
  const fmm_frame *frame;
  const double *rows, *normals;
  int64_t n, most_in_cell;
  int threads;
  fmm_sort_item *items, *scratch;
  uint8_t *head;     /* NULL unless a cell is overfull: 1 where a unique point begins */
  int64_t *run;      /* begin, end of the overfull cells */
  int64_t n_runs;
} sorting;

static double scaled(const fmm_frame *f, const double *row, int axis) { return (row[axis] - f->shift[axis]) * f->scale + 0.0; /* no -0 */ }

static uint32_t cell(const fmm_frame *f, const double *row, int axis) {
  return fmm_key_cell(scaled(f, row, axis), f->lo[axis], f->cells_per_unit);
}

static inline uint64_t key_of_row(const fmm_frame *f, const double *row) { return f->coincident ? 0 : fmm_key_of(cell(f, row, 0), cell(f, row, 1), cell(f, row, 2)); }

/* Keys into items, of the rows that these name, or of all rows in turn. */
typedef struct keying { const fmm_frame *frame; const double *rows; fmm_sort_item *items; uint64_t *keys; } keying;

static void make_items_keys(void *context, int64_t begin, int64_t end) {
  const keying *k = context;
  const fmm_frame f = *k->frame;
  for (int64_t i = begin; i < end; i++) k->items[i].key = key_of_row(&f, k->rows + 3 * k->items[i].row);
}

static void make_keys(void *context, int64_t begin, int64_t end) {
  const keying *k = context;
  const fmm_frame f = *k->frame;
  for (int64_t i = begin; i < end; i++) k->keys[i] = key_of_row(&f, k->rows + 3 * i);
}

static fmm_status sort_rows(sorting *s) {
  FMM_TRY(FMM_ALLOCATE(&s->items, s->n, "keys to sort"));
  FMM_TRY(FMM_ALLOCATE(&s->scratch, s->n, "scratch of the sort"));
#pragma omp parallel for num_threads(s->threads) schedule(static) if (s->n > FMM_PARALLEL_MINIMUM)
  for (int64_t i = 0; i < s->n; i++) s->items[i].row = (uint64_t)i;
  return fmm_points_sort_items(s->items, s->scratch, s->frame, s->n, s->rows, s->threads);
}

static void free_sorting(sorting *s) {
  FMM_FREE(&s->items);
  FMM_FREE(&s->scratch);
  FMM_FREE(&s->head);
  FMM_FREE(&s->run);
}

/* Overfull cells of the sorted items; none is the usual case and costs one parallel scan. */
static fmm_status find_runs(sorting *s) {
  const int64_t q = s->most_in_cell;
  int64_t starts = 0;
#pragma omp parallel for num_threads(s->threads) reduction(+ : starts) if (s->n > FMM_PARALLEL_MINIMUM)
  for (int64_t i = 0; i < s->n - q; i++)
    starts += s->items[i].key == s->items[i + q].key && (i == 0 || s->items[i - 1].key != s->items[i].key);
  s->n_runs = starts;
  if (!starts) return FMM_OK;
  FMM_TRY(FMM_ALLOCATE(&s->run, 2 * starts, "overfull cells"));
  int64_t k = 0;
  for (int64_t i = 0, end; i < s->n; i = end) {
    for (end = i + 1; end < s->n && s->items[end].key == s->items[i].key;) end++;
    if (end - i > q) s->run[k++] = i, s->run[k++] = end;
  }
  return FMM_OK;
}

/* Word w of a row as an integer in the order of its value: 0..2 scaled coordinates, 3..5 the normal. */
static uint64_t ordered_word(const sorting *s, uint64_t row, int w) {
  double v = w < 3 ? scaled(s->frame, s->rows + 3 * row, w) : s->normals[3 * row + (uint64_t)w - 3] + 0.0;
  uint64_t bits;
  memcpy(&bits, &v, sizeof bits);
  return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

/* Sorts the rows of one overfull cell by their words, marks where unique points begin, and puts the cell's key back. */
static fmm_status group_run(sorting *s, int64_t begin, int64_t end, int threads) {
  const uint64_t key = s->items[begin].key;
  memset(s->head + begin + 1, 0, (size_t)(end - begin - 1));
  for (int w = 0; w < (s->normals ? 6 : 3); w++)
    for (int64_t g = begin, h; g < end; g = h) { /* groups of equal earlier words */
      for (h = g + 1; h < end && !s->head[h];) h++;
      if (h - g == 1) continue;
      for (int64_t i = g; i < h; i++) s->items[i].key = ordered_word(s, s->items[i].row, w);
      if (threads > 1) FMM_TRY(fmm_sort_items(s->items + g, s->scratch + g, h - g, threads));
      else fmm_sort_items_serial(s->items + g, s->scratch + g, h - g);
      for (int64_t i = g + 1; i < h; i++) s->head[i] = s->items[i].key != s->items[i - 1].key;
    }
  for (int64_t i = begin; i < end; i++) s->items[i].key = key;
  return FMM_OK;
}

static fmm_status group_coincident(sorting *s) {
  enum { team_run = 1 << 15 };
  FMM_TRY(find_runs(s));
  if (!s->n_runs) return FMM_OK;
  FMM_TRY(FMM_ALLOCATE(&s->head, s->n, "heads of unique points"));
  memset(s->head, 1, (size_t)s->n);
  for (int64_t k = 0; k < s->n_runs; k++)
    if (s->run[2 * k + 1] - s->run[2 * k] >= team_run) FMM_TRY(group_run(s, s->run[2 * k], s->run[2 * k + 1], s->threads));
#pragma omp parallel for num_threads(s->threads) schedule(dynamic, 16) if (s->n > FMM_PARALLEL_MINIMUM)
  for (int64_t k = 0; k < s->n_runs; k++)
    if (s->run[2 * k + 1] - s->run[2 * k] < team_run) (void)group_run(s, s->run[2 * k], s->run[2 * k + 1], 1); /* serial: cannot fail */
  return FMM_OK;
}

/* first[] of the unique points, when any were merged. */
static fmm_status mark_unique(sorting *s, fmm_points *p) {
  p->n = p->n_input = s->n;
  if (!s->head) return FMM_OK;
  int64_t unique = 0;
  for (int64_t i = 0; i < s->n; i++) unique += s->head[i];
  if (unique == s->n) return FMM_OK;
  FMM_TRY(FMM_ALLOCATE(&p->first, unique + 1, "first rows of merged points"));
  p->n = unique;
  for (int64_t i = 0, k = 0; i < s->n; i++)
    if (s->head[i]) p->first[k++] = i;
  p->first[unique] = s->n;
  return FMM_OK;
}

static fmm_status fill_planes(sorting *s, fmm_points *p, uint64_t **keys) {
  enum { ahead = 16 }; /* rows lie anywhere in memory */
  FMM_TRY(FMM_ALLOCATE(&p->x, p->n, "x of the points"));
  FMM_TRY(FMM_ALLOCATE(&p->y, p->n, "y of the points"));
  FMM_TRY(FMM_ALLOCATE(&p->z, p->n, "z of the points"));
  for (int a = 0; a < 3 && s->normals; a++) FMM_TRY(FMM_ALLOCATE(&p->normal[a], p->n, "normals"));
  FMM_TRY(FMM_ALLOCATE(&p->input_row, p->n_input, "input rows"));
  FMM_TRY(FMM_ALLOCATE(keys, p->n, "Morton keys"));
#pragma omp parallel num_threads(s->threads) if (p->n_input > FMM_PARALLEL_MINIMUM)
  {
#pragma omp for nowait
    for (int64_t i = 0; i < p->n_input; i++) p->input_row[i] = (int64_t)s->items[i].row;
#pragma omp for
    for (int64_t i = 0; i < p->n; i++) {
      fmm_sort_item item = s->items[p->first ? p->first[i] : i];
      if (!p->first && i + ahead < p->n) __builtin_prefetch(s->rows + 3 * s->items[i + ahead].row);
      const double *r = s->rows + 3 * item.row;
      p->x[i] = scaled(s->frame, r, 0), p->y[i] = scaled(s->frame, r, 1), p->z[i] = scaled(s->frame, r, 2);
      (*keys)[i] = item.key;
      for (int a = 0; a < 3 && s->normals; a++) p->normal[a][i] = s->normals[3 * item.row + (uint64_t)a];
    }
  }
  return FMM_OK;
}

fmm_status fmm_points_sort(fmm_points *points, uint64_t **keys, const fmm_frame *frame, int64_t n, const double *rows, const double *normals,
                           int64_t most_in_cell, int threads) {
  sorting s = {.frame = frame, .rows = rows, .normals = normals, .n = n, .most_in_cell = most_in_cell, .threads = threads};
  fmm_points made = {0};
  fmm_status status;
  *keys = NULL;
  FMM_CHECK(sort_rows(&s));
  FMM_CHECK(group_coincident(&s));
  FMM_CHECK(mark_unique(&s, &made));
  FMM_CHECK(fill_planes(&s, &made, keys));
  *points = made;
done:
  if (status != FMM_OK) {
    fmm_points_free(&made);
    FMM_FREE(keys);
  }
  free_sorting(&s);
  return status;
}

fmm_status fmm_points_sort_items(fmm_sort_item *items, fmm_sort_item *scratch, const fmm_frame *frame, int64_t n, const double *rows, int threads) {
  keying k = {.frame = frame, .rows = rows, .items = items};
  fmm_team_loop(n, FMM_PARALLEL_MINIMUM, make_items_keys, &k, threads);
  return fmm_sort_items(items, scratch, n, threads);
}

fmm_status fmm_points_sort_keys(uint64_t *keys, uint64_t *scratch, const fmm_frame *frame, int64_t n, const double *rows, int threads) {
  keying k = {.frame = frame, .rows = rows, .keys = keys};
  fmm_team_loop(n, FMM_PARALLEL_MINIMUM, make_keys, &k, threads);
  return fmm_sort_keys(keys, scratch, n, threads);
}

void fmm_points_free(fmm_points *p) {
  FMM_FREE(&p->x);
  FMM_FREE(&p->y);
  FMM_FREE(&p->z);
  for (int a = 0; a < 3; a++) FMM_FREE(&p->normal[a]);
  FMM_FREE(&p->input_row);
  FMM_FREE(&p->first);
  *p = (fmm_points){0};
}
