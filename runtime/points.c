/* Sorting and merging of points, of one set or of two that share their boxes. In the usual case: keys (keys.c), one radix sort, one gather into planes. What is sorted are the keys' highest bits with row numbers below them in one word,
 * which is half of the bytes to move. Where boxes will be split below the cells that these bits tell, whole keys are made in those (deep_cells.c), or, if they hold much of the points, of all beside row numbers in the order of words, of which those in one cell are left to sort.
 * Only where a finest cell is overfull are its rows sorted further, by the bits of x, then y, then z (then the normal): equal ones are
 * coincident. That is again a radix sort, so coincidence of any part of the points costs linear time. */
#include "points.h"

#include <omp.h>
#include <string.h>

#include "deep_cells.h"
#include "past_caches.h"
#include "team_loop.h"

fmm_status fmm_points_check_counts(int64_t n_sources, int64_t n_targets) {
  const int64_t most = (int64_t)1 << 42;
  if (n_sources < 0 || n_targets < 0)
    return FMM_FAIL(FMM_ERR_ARGUMENT, "numbers of points cannot be negative: %lld sources, %lld targets", (long long)n_sources, (long long)n_targets);
  if (n_sources > most || n_targets > most)
    return FMM_FAIL(FMM_ERR_ARGUMENT, "no memory holds so many points: %lld sources, %lld targets; counts are of points, not of bytes", (long long)n_sources, (long long)n_targets);
  return FMM_OK;
}

fmm_status fmm_points_check_rows(int64_t n_sources, int64_t n_targets) {
  const int64_t most = UINT32_MAX;
  if (n_sources <= most && n_targets <= most) return FMM_OK;
  return FMM_FAIL(FMM_ERR_ARGUMENT, "%lld sources, %lld targets: a plan has at most %lld of either, as rows are counted by 32 bits; use several plans", (long long)n_sources, (long long)n_targets, (long long)most);
}

typedef struct sorting {
  const fmm_frame *frame;
  const double *rows, *normals;
  int64_t n, most_in_cell;
  int threads;
  uint64_t *words;   /* a key's highest bits above its row; NULL where there are items */
  int row_bits, dropped, borrowed; /* bits of a key that words have no room for */
  int later;         /* coordinates are left out */
  int is_deep;       /* whole keys of these are all that words lack */
  fmm_deep_cells deep;
  fmm_sort_item *items, *scratch;
  uint8_t *head;     /* NULL unless a cell is overfull: 1 where a unique point begins */
  int64_t *run;      /* begin, end of the overfull cells */
  int64_t n_runs;
} sorting;

static double scaled(const fmm_frame *f, const double *row, int axis) { return fmm_frame_scaled(f, row[axis], axis); }

enum { a_block = 256, past_caches = 1 << 18 /* points whose planes are written past them */ };

/* As many whole levels of a key as there is room for beside the highest row. */
static void make_words(void *context, int64_t begin, int64_t end) {
  const sorting *s = context;
  for (int64_t b = begin; b < end; b += a_block) {
    const int64_t n = end - b < a_block ? end - b : a_block;
    fmm_keys_of_rows(s->words + b, s->frame, n, s->rows + 3 * b, NULL);
    for (int64_t i = b; i < b + n; i++) s->words[i] = s->words[i] >> s->dropped << s->row_bits | (uint64_t)i;
  }
}

static uint64_t cell_of(const sorting *s, int64_t i) { return s->words[i] >> s->row_bits; }
static inline uint64_t row_at(const sorting *s, int64_t i, int in_words) { return in_words ? s->words[i] & (((uint64_t)1 << s->row_bits) - 1) : s->items[i].row; }

static fmm_status sort_words(sorting *s) {
  uint64_t *scratch = NULL;
  fmm_status status;
  FMM_CHECK(FMM_ALLOCATE(&s->words, s->n, "keys to sort"));
  FMM_CHECK(FMM_ALLOCATE(&scratch, s->n, "scratch of the sort"));
  fmm_team_loop(s->n, FMM_PARALLEL_MINIMUM, make_words, s, s->threads);
  FMM_CHECK(fmm_sort_keys(s->words, scratch, s->n, s->threads));
done:
  FMM_FREE(&scratch);
  return status;
}

void fmm_words_shape(int n_sets, const int64_t *n, int *row_bits, int *dropped) {
  *row_bits = 1;
  for (int k = 0; k < n_sets; k++)
    if (n[k] > (int64_t)1 << *row_bits) *row_bits = 64 - __builtin_clzll((uint64_t)n[k] - 1);
  *dropped = 3 * FMM_KEY_LEVEL - (64 - *row_bits) / 3 * 3;
}

static void choose_bits(int n_sets, sorting *sets) {
  const int64_t n[2] = {sets[0].n, n_sets > 1 ? sets[1].n : 0};
  int row_bits, dropped;
  fmm_words_shape(n_sets, n, &row_bits, &dropped);
  for (int k = 0; k < n_sets; k++) sets[k].row_bits = row_bits, sets[k].dropped = dropped;
}

/* Each word's whole key and row, in the order of words. */
static void make_items_of_words(void *context, int64_t begin, int64_t end) {
  const sorting *s = context;
  uint64_t key[a_block], row[a_block];
  for (int64_t b = begin; b < end; b += a_block) {
    const int64_t n = end - b < a_block ? end - b : a_block;
    for (int64_t i = 0; i < n; i++) row[i] = row_at(s, b + i, 1);
    fmm_keys_of_rows(key, s->frame, n, s->rows, row);
    for (int64_t i = 0; i < n; i++) s->items[b + i] = (fmm_sort_item){key[i], row[i]};
  }
}

/* To before which item those of the same cell go. */
static int64_t cell_end(const sorting *s, int64_t i) {
  const uint64_t cell = cell_of(s, i);
  while (++i < s->n && cell_of(s, i) == cell) {}
  return i;
}

/* Cells that begin in a piece, but for those that are worth a team. */
static void sort_cells(void *context, int64_t begin, int64_t end) {
  const sorting *s = context;
  while (begin > 0 && begin < end && cell_of(s, begin) == cell_of(s, begin - 1)) begin++;
  for (int64_t i = begin, next; i < end; i = next) {
    next = cell_end(s, i);
    if (next - i > 1 && next - i < FMM_SORT_TEAM_LEAST) fmm_sort_items_serial(s->items + i, s->scratch + i, next - i);
  }
}

/* These: each has two of the places that are looked at. */
static fmm_status sort_large_cells(sorting *s) {
  enum { step = FMM_SORT_TEAM_LEAST / 2 };
  for (int64_t i = 0, next; i + step < s->n; i = next) {
    next = i + step;
    if (cell_of(s, i) != cell_of(s, next)) continue;
    int64_t begin = i;
    while (begin > 0 && cell_of(s, begin - 1) == cell_of(s, i)) begin--;
    next = cell_end(s, i);
    if (next - begin >= FMM_SORT_TEAM_LEAST) FMM_TRY(fmm_sort_items(s->items + begin, s->scratch + begin, next - begin, s->threads));
  }
  return FMM_OK;
}

static fmm_sorted_words words_of(const sorting *s) { return (fmm_sorted_words){s->words, s->row_bits, s->dropped, s->borrowed}; }

static void free_words(sorting *s) {
  fmm_sorted_words words = words_of(s);
  fmm_words_free(&words);
  s->words = NULL, s->borrowed = 0;
}

/* Items from sorted words, which are in their order but for what is in one cell. */
static fmm_status sort_items_of_words(sorting *s) {
  FMM_TRY(FMM_ALLOCATE(&s->items, s->n, "keys to sort"));
  FMM_TRY(FMM_ALLOCATE(&s->scratch, s->n, "scratch of the sort"));
  fmm_team_loop(s->n, FMM_PARALLEL_MINIMUM, make_items_of_words, s, s->threads);
  fmm_team_loop_uneven(s->n, FMM_PARALLEL_MINIMUM, sort_cells, s, s->threads);
  FMM_TRY(sort_large_cells(s));
  free_words(s);
  return FMM_OK;
}

static void take_words(sorting *s, fmm_sorted_words *given) {
  s->words = given->word, s->row_bits = given->row_bits, s->dropped = given->dropped, s->borrowed = given->borrowed;
  given->word = NULL;
}

/* Whole keys in these cells, where they hold a part of the points and none of their finest ones is overfull. */
static fmm_status deepen(sorting *s, const fmm_cell_list *cells) {
  const fmm_sorted_words words = words_of(s);
  int made;
  FMM_TRY(fmm_deep_cells_make(&s->deep, cells, &words, s->n, s->frame, s->rows, s->threads, &made));
  s->is_deep = made && !fmm_deep_cells_are_overfull(&s->deep, s->most_in_cell);
  if (s->is_deep) fmm_deep_cells_put_rows(&s->deep, &words, s->threads);
  else fmm_deep_cells_free(&s->deep); /* which serves again */
  return FMM_OK;
}

/* Each has more points of some set than a cell may. */
static int are_too_many(int64_t n_cells, int64_t most_in_cell, int64_t n) { return n_cells * most_in_cell > n / FMM_DEEP_PART; }

/* Where cells of either set have more points than a leaf may: whole keys in these; given up at once where it is plain that the larger set, too, has too many points in such. serve: whether there is none. */
static fmm_status deepen_all(int n_sets, sorting *sets, int *serve) {
  fmm_cell_list cells[2] = {{0}, {0}};
  int64_t larger = 0, most = 0;
  fmm_status status;
  *serve = 0;
  for (int k = 0; k < n_sets; k++) {
    const fmm_sorted_words words = words_of(&sets[k]);
    FMM_CHECK(fmm_deep_cells_find(&cells[k], &words, sets[k].n, sets[k].most_in_cell, sets[k].threads));
    larger = sets[k].n > larger ? sets[k].n : larger, most = cells[k].n > most ? cells[k].n : most;
  }
  *serve = !most;
  if (*serve || are_too_many(most, sets[0].most_in_cell, larger)) goto done;
  if (n_sets > 1) FMM_CHECK(fmm_deep_cells_join(&cells[0], &cells[1]));
  for (int k = 0; k < n_sets; k++) FMM_CHECK(deepen(&sets[k], &cells[0]));
done:
  for (int k = 0; k < 2; k++) FMM_FREE(&cells[k].cell);
  return status;
}

/* serve: whether words do, in all sets. */
static fmm_status sort_all(int n_sets, sorting *sets, fmm_sorted_rows *given, int *serve) {
  if (given) {
    for (int k = 0; k < n_sets; k++) take_words(&sets[k], &given->set[k]);
  } else {
    choose_bits(n_sets, sets);
    for (int k = 0; k < n_sets; k++) FMM_TRY(sort_words(&sets[k]));
  }
  return deepen_all(n_sets, sets, serve);
}

static void free_sorting(sorting *s) {
  free_words(s);
  FMM_FREE(&s->items);
  FMM_FREE(&s->scratch);
  FMM_FREE(&s->head);
  FMM_FREE(&s->run);
  fmm_deep_cells_free(&s->deep);
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
  if (s->words) return FMM_OK; /* no finest cell is overfull */
  FMM_TRY(find_runs(s));
  if (!s->n_runs) return FMM_OK;
  FMM_TRY(FMM_ALLOCATE(&s->head, s->n, "heads of unique points"));
  memset(s->head, 1, (size_t)s->n);
  for (int64_t k = 0; k < s->n_runs; k++)
    if (s->run[2 * k + 1] - s->run[2 * k] >= FMM_SORT_TEAM_LEAST) FMM_TRY(group_run(s, s->run[2 * k], s->run[2 * k + 1], s->threads));
#pragma omp parallel for num_threads(s->threads) schedule(dynamic, 16) if (s->n > FMM_PARALLEL_MINIMUM)
  for (int64_t k = 0; k < s->n_runs; k++)
    if (s->run[2 * k + 1] - s->run[2 * k] < FMM_SORT_TEAM_LEAST) (void)group_run(s, s->run[2 * k], s->run[2 * k + 1], 1); /* serial: cannot fail */
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

enum { LINE = FMM_LINE_BYTES / sizeof(double), AT_ONCE = FMM_LINE_BYTES / sizeof(uint32_t) };

/* Where a point's row is found: with its key, or, once these are gone, in the points themselves. */
typedef enum origin { IN_ITEMS, IN_WORDS, IN_POINTS } origin;

/* A point's coordinates, and the row that it is. */
typedef struct gathering { sorting s; fmm_frame f; fmm_points p; int64_t end; } gathering;
static inline __attribute__((always_inline)) uint64_t row_from(const gathering *l, int64_t i, origin from) { return from == IN_POINTS ? l->p.input_row[i] : row_at(&l->s, i, from == IN_WORDS); }

static inline __attribute__((always_inline)) void take_row(const gathering *l, int64_t i, origin from, double *x, double *y, double *z, uint32_t *row) {
  enum { ahead = 128 }; /* rows lie anywhere in memory, one in four over two lines; farther than a core looks by itself */
  const double *later = l->s.rows + 3 * row_from(l, i + ahead < l->end ? i + ahead : i, from);
  *row = (uint32_t)row_from(l, i, from);
  const double *r = l->s.rows + 3 * (size_t)*row;
  __builtin_prefetch(later), __builtin_prefetch(later + 2);
  *x = fmm_frame_scaled(&l->f, r[0], 0), *y = fmm_frame_scaled(&l->f, r[1], 1), *z = fmm_frame_scaled(&l->f, r[2], 2);
}

/* By lines of the planes. */
static inline __attribute__((always_inline)) void fill_lines(const gathering *l, int64_t begin, int64_t end, origin from) {
  _Alignas(FMM_LINE_BYTES) double x[AT_ONCE], y[AT_ONCE], z[AT_ONCE];
  _Alignas(FMM_LINE_BYTES) uint32_t row[AT_ONCE];
  for (int64_t i = begin; i < end; i += AT_ONCE) {
    for (int k = 0; k < AT_ONCE; k++) take_row(l, i + k, from, &x[k], &y[k], &z[k], &row[k]);
    for (int k = 0; k < AT_ONCE; k += LINE) fmm_write_line(l->p.x + i + k, x + k), fmm_write_line(l->p.y + i + k, y + k), fmm_write_line(l->p.z + i + k, z + k);
    if (from != IN_POINTS) fmm_write_line(l->p.input_row + i, row);
  }
  fmm_lines_written();
}

/* The usual case, in which every row is a point. What does not change is held by itself: stores of coordinates might else be to it. */
static inline __attribute__((always_inline)) void fill_rows(const sorting *s, const fmm_points *p, int64_t begin, int64_t end, origin from) {
  const gathering l = {*s, *s->frame, *p, end};
  double *x = p->x, *y = p->y, *z = p->z;
  uint32_t *row = p->input_row;
  int64_t first = (begin + AT_ONCE - 1) / AT_ONCE * AT_ONCE, last = end / AT_ONCE * AT_ONCE;
  if (p->n < past_caches || first > last) first = last = end;
  for (int64_t i = begin; i < first; i++) take_row(&l, i, from, x + i, y + i, z + i, row + i);
  fill_lines(&l, first, last, from);
  for (int64_t i = last; i < end; i++) take_row(&l, i, from, x + i, y + i, z + i, row + i);
}

static void fill_piece(const sorting *s, fmm_points *p, int64_t begin, int64_t end) {
  if (s->words) fill_rows(s, p, begin, end, IN_WORDS);
  else fill_rows(s, p, begin, end, IN_ITEMS);
}

/* Where rows are merged. */
static void fill_merged(const sorting *s, fmm_points *p, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; i++) {
    const fmm_sort_item item = s->items[p->first[i]];
    const double *r = s->rows + 3 * item.row;
    p->x[i] = scaled(s->frame, r, 0), p->y[i] = scaled(s->frame, r, 1), p->z[i] = scaled(s->frame, r, 2);
  }
}

static void fill_input_rows(const sorting *s, fmm_points *p, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; i++) p->input_row[i] = (uint32_t)row_at(s, i, s->words != NULL);
}

static void fill_normals(const sorting *s, fmm_points *p, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; i++) {
    const double *normal = s->normals + 3 * row_at(s, p->first ? p->first[i] : i, s->words != NULL);
    for (int a = 0; a < 3; a++) p->normal[a][i] = normal[a];
  }
}

/* One of n even parts, as the team's static loops over points cut them (team_array.h). */
static void fill_part(const sorting *s, fmm_points *p, int64_t part, int64_t n) {
  const int64_t begin = p->n * part / n, end = p->n * (part + 1) / n;
  if (!p->x) fill_input_rows(s, p, begin, end);
  else if (p->first) fill_merged(s, p, begin, end), fill_input_rows(s, p, p->n_input * part / n, p->n_input * (part + 1) / n);
  else fill_piece(s, p, begin, end);
  if (s->normals) fill_normals(s, p, begin, end);
}

/* All or none. */
static fmm_status allocate_planes(fmm_points *p) {
  fmm_status status;
  FMM_CHECK(FMM_ALLOCATE(&p->x, p->n, "x of the points"));
  FMM_CHECK(FMM_ALLOCATE(&p->y, p->n, "y of the points"));
  FMM_CHECK(FMM_ALLOCATE(&p->z, p->n, "z of the points"));
  return FMM_OK;
done:
  fmm_points_drop(p);
  return status;
}

void fmm_points_drop(fmm_points *p) {
  FMM_FREE(&p->x);
  FMM_FREE(&p->y);
  FMM_FREE(&p->z);
}

static fmm_status fill_planes(sorting *s, fmm_points *p) {
  FMM_FREE(&s->scratch); /* which serves again */
  if (!s->later) FMM_TRY(allocate_planes(p));
  for (int a = 0; a < 3 && s->normals; a++) FMM_TRY(FMM_ALLOCATE(&p->normal[a], p->n, "normals"));
  FMM_TRY(FMM_ALLOCATE(&p->input_row, p->n_input, "input rows"));
#pragma omp parallel num_threads(s->threads) if (p->n_input > FMM_PARALLEL_MINIMUM)
  fill_part(s, p, omp_get_thread_num(), omp_get_num_threads());
  return FMM_OK;
}

fmm_status fmm_points_fill(fmm_points *p, const fmm_frame *frame, const double *rows, int threads) {
  const sorting s = {.frame = frame, .rows = rows, .n = p->n};
  FMM_TRY(allocate_planes(p));
#pragma omp parallel num_threads(threads) if (p->n > FMM_PARALLEL_MINIMUM)
  {
    const int part = omp_get_thread_num(), n = omp_get_num_threads();
    fill_rows(&s, p, p->n * part / n, p->n * (part + 1) / n, IN_POINTS);
  }
  return FMM_OK;
}

typedef struct copying { const sorting *s; const fmm_points *p; uint64_t *key; } copying;
static void copy_keys(void *context, int64_t begin, int64_t end) {
  const copying *c = context;
  for (int64_t i = begin; i < end; i++) c->key[i] = c->s->items[c->p->first ? c->p->first[i] : i].key;
}

/* The words themselves, else the items' keys. */
static fmm_status take_keys(sorting *s, const fmm_points *p, fmm_sorted_words *keys) {
  if (s->words) {
    *keys = words_of(s);
    s->words = NULL;
    if (s->is_deep) fmm_deep_cells_widen(&s->deep, keys, s->n, s->threads);
    return FMM_OK;
  }
  FMM_TRY(FMM_ALLOCATE(&keys->word, p->n, "Morton keys"));
  fmm_team_loop(p->n, FMM_PARALLEL_MINIMUM, copy_keys, &(copying){s, p, keys->word}, s->threads);
  return FMM_OK;
}

static fmm_status sort_set(sorting *s, int words_serve_all, fmm_points *points, fmm_sorted_words *keys) {
  if (!words_serve_all && !s->is_deep) FMM_TRY(sort_items_of_words(s));
  FMM_TRY(group_coincident(s));
  FMM_TRY(mark_unique(s, points));
  s->later = s->later && s->words && !s->normals; /* else there are several rows a point, or whatever is rare */
  FMM_TRY(fill_planes(s, points));
  FMM_TRY(take_keys(s, points, keys));
  free_sorting(s); /* which serves again */
  return FMM_OK;
}

fmm_status fmm_points_sort(int n_sets, fmm_points *points, fmm_sorted_words *keys, const fmm_frame *frame, const fmm_input_points *input, int64_t most_in_cell, fmm_sorted_rows *given, int threads) {
  sorting sets[2] = {{0}};
  fmm_points made[2] = {{0}};
  for (int k = 0; k < n_sets; k++) {
    sets[k] = (sorting){.frame = frame, .rows = input[k].rows, .normals = input[k].normals, .n = input[k].n, .most_in_cell = most_in_cell, .threads = threads, .later = given && given->later};
    keys[k] = (fmm_sorted_words){NULL, 0, 0, 0};
  }
  int serve;
  fmm_status status = sort_all(n_sets, sets, given, &serve);
  for (int k = 0; k < n_sets && status == FMM_OK; k++) status = sort_set(&sets[k], serve, &made[k], &keys[k]);
  for (int k = 0; k < n_sets; k++) {
    free_sorting(&sets[k]);
    if (status == FMM_OK) points[k] = made[k];
    else {
      fmm_points_free(&made[k]);
      fmm_words_free(&keys[k]);
    }
  }
  return status;
}

fmm_status fmm_rows_sort(fmm_sorted_rows *sorted, const fmm_bounds *bounds, double root_scale, int n_sets, const fmm_input_points *input, int threads) {
  fmm_frame frame;
  sorting sets[2] = {{0}};
  fmm_status status = FMM_OK;
  fmm_frame_place(&frame, bounds, root_scale);
  for (int k = 0; k < n_sets; k++) sets[k] = (sorting){.frame = &frame, .rows = input[k].rows, .n = input[k].n, .threads = threads};
  choose_bits(n_sets, sets);
  *sorted = (fmm_sorted_rows){.n_sets = n_sets, .root_scale = root_scale};
  for (int k = 0; k < n_sets && status == FMM_OK; k++) {
    status = sort_words(&sets[k]);
    sorted->n[k] = sets[k].n, sorted->set[k] = words_of(&sets[k]);
  }
  if (status != FMM_OK) fmm_rows_free(sorted);
  return status;
}

void fmm_words_free(fmm_sorted_words *words) {
  if (!words->borrowed) FMM_FREE(&words->word);
  words->word = NULL;
}

void fmm_rows_free(fmm_sorted_rows *sorted) {
  for (int k = 0; k < 2; k++) fmm_words_free(&sorted->set[k]);
  *sorted = (fmm_sorted_rows){0};
}

void fmm_points_free(fmm_points *p) {
  fmm_points_drop(p);
  for (int a = 0; a < 3; a++) FMM_FREE(&p->normal[a]);
  FMM_FREE(&p->input_row);
  FMM_FREE(&p->first);
  *p = (fmm_points){0};
}
