/* Whole keys in cells that are split below what words tell (deep_cells.h). */
#include "deep_cells.h"

#include "team_loop.h"

static uint64_t cell_of(const fmm_sorted_words *w, int64_t i) { return w->word[i] >> w->row_bits; }

/* First word of this cell or a later one; behind the last cell that there can be comes none. */
static int64_t first_of(const fmm_sorted_words *w, int64_t n, uint64_t cell) {
  const int too_large = cell > UINT64_MAX >> w->row_bits;
  return too_large ? n : fmm_keys_lower_bound(w->word, 0, n, cell << w->row_bits);
}

/* Whether word i, whose number is a multiple of `most`, is the first such of a run of more than `most` words: each has one. */
static int is_first_of_run(const fmm_sorted_words *w, int64_t n, int64_t most, int64_t i) {
  const uint64_t cell = cell_of(w, i);
  int64_t begin = i, end = i + 1;
  if (i >= most && cell_of(w, i - most) == cell) return 0;
  while (begin > 0 && cell_of(w, begin - 1) == cell) begin--;
  while (end < n && end - begin <= most && cell_of(w, end) == cell) end++;
  return end - begin > most;
}

/* Places looked at, every `most`-th word, in blocks: how many runs begin before each block's. */
enum { block_places = 1 << 12 };
typedef struct finding { const fmm_sorted_words *words; int64_t n, most, *before; uint64_t *cell; } finding;

/* The cells of a block's runs, to `cell` where that is not NULL; how many. */
static int64_t look_at_block(const finding *f, int64_t block, uint64_t *cell) {
  const int64_t first = block * block_places * f->most, last = first + block_places * f->most;
  int64_t runs = 0;
  for (int64_t i = first; i < last && i < f->n; i += f->most)
    if (is_first_of_run(f->words, f->n, f->most, i)) {
      if (cell) cell[runs] = cell_of(f->words, i);
      runs++;
    }
  return runs;
}

static void count_runs(void *context, int64_t begin, int64_t end) {
  const finding *f = context;
  for (int64_t block = begin; block < end; block++) f->before[block + 1] = look_at_block(f, block, NULL);
}

static void list_runs(void *context, int64_t begin, int64_t end) {
  const finding *f = context;
  for (int64_t block = begin; block < end; block++)
    if (f->before[block + 1] > f->before[block]) look_at_block(f, block, f->cell + f->before[block]);
}

fmm_status fmm_deep_cells_find(fmm_cell_list *list, const fmm_sorted_words *words, int64_t n, int64_t most, int threads) {
  const int64_t places = (n + most - 1) / most, blocks = (places + block_places - 1) / block_places;
  finding f = {words, n, most, NULL, NULL};
  fmm_status status;
  *list = (fmm_cell_list){0, NULL};
  FMM_CHECK(FMM_ALLOCATE_ZERO(&f.before, blocks + 1, "cells to split"));
  fmm_team_loop(blocks, 1, count_runs, &f, threads);
  for (int64_t block = 0; block < blocks; block++) f.before[block + 1] += f.before[block];
  if (!f.before[blocks]) goto done;
  FMM_CHECK(FMM_ALLOCATE(&f.cell, f.before[blocks], "cells to split"));
  fmm_team_loop(blocks, 1, list_runs, &f, threads);
  *list = (fmm_cell_list){f.before[blocks], f.cell};
done:
  FMM_FREE(&f.before);
  return status;
}

fmm_status fmm_deep_cells_join(fmm_cell_list *list, const fmm_cell_list *other) {
  uint64_t *both = NULL;
  int64_t n = 0;
  FMM_TRY(FMM_ALLOCATE(&both, list->n + other->n, "cells to split"));
  for (int64_t i = 0, k = 0; i < list->n || k < other->n; n++) {
    const uint64_t a = i < list->n ? list->cell[i] : UINT64_MAX, b = k < other->n ? other->cell[k] : UINT64_MAX;
    both[n] = a < b ? a : b;
    i += a <= b, k += b <= a;
  }
  FMM_FREE(&list->cell);
  *list = (fmm_cell_list){n, both};
  return FMM_OK;
}

static fmm_status place(fmm_deep_cells *deep, const fmm_cell_list *list, const fmm_sorted_words *words, int64_t n) {
  fmm_status status;
  *deep = (fmm_deep_cells){.n = list->n};
  FMM_CHECK(FMM_ALLOCATE(&deep->begin, list->n, "cells to split"));
  FMM_CHECK(FMM_ALLOCATE(&deep->end, list->n, "cells to split"));
  FMM_CHECK(FMM_ALLOCATE(&deep->first, list->n + 1, "cells to split"));
  for (int64_t k = 0; k < list->n; k++) {
    deep->begin[k] = first_of(words, n, list->cell[k]), deep->end[k] = first_of(words, n, list->cell[k] + 1);
    deep->first[k] = deep->n_points, deep->n_points += deep->end[k] - deep->begin[k];
  }
  deep->first[list->n] = deep->n_points;
done:
  if (status != FMM_OK) fmm_deep_cells_free(deep);
  return status;
}

typedef struct filling { fmm_deep_cells *deep; const fmm_sorted_words *words; const fmm_frame *frame; const double *rows; fmm_sort_item *scratch; int64_t cell; } filling;

/* Of the cell at hand. */
static void fill_piece(void *context, int64_t begin, int64_t end) {
  enum { some = 256 };
  const filling *f = context;
  const uint64_t row_mask = ((uint64_t)1 << f->words->row_bits) - 1, *word = f->words->word + f->deep->begin[f->cell];
  fmm_sort_item *items = f->deep->items + f->deep->first[f->cell];
  uint64_t key[some], row[some];
  for (int64_t b = begin; b < end; b += some) {
    const int64_t n = end - b < some ? end - b : some;
    for (int64_t i = 0; i < n; i++) row[i] = word[b + i] & row_mask;
    fmm_keys_of_rows(key, f->frame, n, f->rows, row);
    for (int64_t i = 0; i < n; i++) items[b + i] = (fmm_sort_item){key[i], row[i]};
  }
}

static int64_t points_in(const fmm_deep_cells *deep, int64_t k) { return deep->end[k] - deep->begin[k]; }

static void sort_small_cells(void *context, int64_t begin, int64_t end) {
  filling f = *(const filling *)context;
  for (f.cell = begin; f.cell < end; f.cell++) {
    const int64_t n = points_in(f.deep, f.cell), first = f.deep->first[f.cell];
    if (n >= FMM_SORT_TEAM_LEAST) continue;
    fill_piece(&f, 0, n);
    fmm_sort_items_serial(f.deep->items + first, f.scratch + first, n);
  }
}

static fmm_status sort(fmm_deep_cells *deep, const fmm_sorted_words *words, const fmm_frame *frame, const double *rows, int threads) {
  filling f = {deep, words, frame, rows, NULL, 0};
  fmm_status status;
  FMM_CHECK(FMM_ALLOCATE(&deep->items, deep->n_points, "keys of cells to split"));
  FMM_CHECK(FMM_ALLOCATE(&f.scratch, deep->n_points, "scratch of the sort"));
  fmm_team_loop_uneven(deep->n, 1, sort_small_cells, &f, threads);
  for (f.cell = 0; f.cell < deep->n; f.cell++) {
    const int64_t n = points_in(deep, f.cell), first = deep->first[f.cell];
    if (n < FMM_SORT_TEAM_LEAST) continue;
    fmm_team_loop(n, FMM_PARALLEL_MINIMUM, fill_piece, &f, threads);
    FMM_CHECK(fmm_sort_items(deep->items + first, f.scratch + first, n, threads));
  }
done:
  FMM_FREE(&f.scratch);
  return status;
}

fmm_status fmm_deep_cells_make(fmm_deep_cells *deep, const fmm_cell_list *list, const fmm_sorted_words *words, int64_t n, const fmm_frame *frame, const double *rows, int threads, int *made) {
  fmm_status status = FMM_OK;
  *made = 0;
  FMM_TRY(place(deep, list, words, n));
  const int are_few = deep->n_points <= n / FMM_DEEP_PART;
  if (are_few) status = sort(deep, words, frame, rows, threads);
  *made = are_few && status == FMM_OK;
  if (!*made) fmm_deep_cells_free(deep);
  return status;
}

/* Items of all cells, of which a piece may begin within one. */
typedef struct putting { const fmm_deep_cells *deep; const fmm_sorted_words *words; } putting;
static void put_piece(void *context, int64_t begin, int64_t end) {
  const putting *p = context;
  const int row_bits = p->words->row_bits;
  int64_t low = 0, high = p->deep->n; /* the last cell that begins at `begin` or before it */
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    if (p->deep->first[middle] <= begin) low = middle;
    else high = middle;
  }
  for (int64_t k = low, i = begin; i < end; k++) {
    uint64_t *word = p->words->word + p->deep->begin[k] - p->deep->first[k];
    for (; i < end && i < p->deep->first[k + 1]; i++) word[i] = word[i] >> row_bits << row_bits | p->deep->items[i].row;
  }
}

void fmm_deep_cells_put_rows(const fmm_deep_cells *deep, const fmm_sorted_words *words, int threads) {
  fmm_team_loop(deep->n_points, FMM_PARALLEL_MINIMUM, put_piece, &(putting){deep, words}, threads);
}

int fmm_deep_cells_are_overfull(const fmm_deep_cells *deep, int64_t most) {
  for (int64_t i = most; i < deep->n_points; i++)
    if (deep->items[i].key == deep->items[i - most].key) return 1;
  return 0;
}

static void widen_piece(void *context, int64_t begin, int64_t end) {
  const fmm_sorted_words *w = context;
  for (int64_t i = begin; i < end; i++) w->word[i] = w->word[i] >> w->row_bits << w->dropped;
}

void fmm_deep_cells_widen(const fmm_deep_cells *deep, fmm_sorted_words *words, int64_t n, int threads) {
  fmm_team_loop(n, FMM_PARALLEL_MINIMUM, widen_piece, words, threads);
  for (int64_t k = 0; k < deep->n; k++)
    for (int64_t i = deep->begin[k]; i < deep->end[k]; i++) words->word[i] = deep->items[deep->first[k] + i - deep->begin[k]].key;
  words->row_bits = words->dropped = 0;
}

void fmm_deep_cells_free(fmm_deep_cells *deep) {
  FMM_FREE(&deep->begin);
  FMM_FREE(&deep->end);
  FMM_FREE(&deep->first);
  FMM_FREE(&deep->items);
  *deep = (fmm_deep_cells){0};
}
