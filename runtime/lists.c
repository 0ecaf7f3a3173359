/* Lists from collectors: every candidate row is counted in parallel, rows without entries are dropped, then filled in parallel in place. What is
 * collected while counting is kept where there is room, so that most rows are collected once; that takes memory until the rows are made
 * (1,000,000 uniform points: the most that is held while a tree and its lists are made is 158 MB with leaves of 8, 131 MB without; with leaves of 64 the sort of the points
 * holds the most, 68 MB either way). */
#include "lists.h"

#include <string.h>

#include "lister.h"
#include "team_loop.h"

/* In-place heap sort of a row's boxes by their first source: no memory, and no input makes it quadratic. */
static void heap_sort(const int64_t *begin, int32_t *e, int64_t n) {
  for (int64_t heap = n / 2, size = n; size > 1;) {
    int32_t item;
    if (heap > 0) item = e[--heap];
    else item = e[--size], e[size] = e[0];
    int64_t at = heap;
    for (int64_t child; (child = 2 * at + 1) < size; at = child) {
      if (child + 1 < size && begin[e[child + 1]] > begin[e[child]]) child++;
      if (begin[e[child]] <= begin[item]) break;
      e[at] = e[child];
    }
    e[at] = item;
  }
}

static void sort_by_sources(const int64_t *begin, int32_t *e, int64_t n) {
  enum { few = 48 };
  int64_t key[few];
  if (n > few) return heap_sort(begin, e, n);
  for (int64_t i = 0; i < n; i++) {
    int32_t item = e[i];
    int64_t j = i, k = begin[item];
    for (; j > 0 && key[j - 1] > k; j--) key[j] = key[j - 1], e[j] = e[j - 1];
    key[j] = k, e[j] = item;
  }
}

/* What one list is made of. */
typedef struct recipe {
  fmm_collect *collect;
  const int32_t *candidate; /* NULL: every box */
  int32_t n_candidates;
  int has_direction, sorts_sources, kept /* (without directions only) entries a candidate that there is room for while rows are counted; 0: rows are collected twice */;
} recipe;

/* A row in the making: its size, and where its entries are kept, or -1. */
typedef struct made_row { int64_t n, kept; } made_row;

/* A list in the making: the candidates' rows, then the rows of the list, `made` by then of those alone. */
typedef struct making { const fmm_lister *lister; const recipe *recipe; made_row *made; int32_t *kept; fmm_rows *rows; } making;

static fmm_status allocate_rows(const making *m) {
  const recipe *r = m->recipe;
  fmm_rows *rows = m->rows;
  rows->n_rows = 0, rows->n_entries = 0;
  for (int32_t i = 0; i < r->n_candidates; i++) rows->n_rows += m->made[i].n > 0, rows->n_entries += m->made[i].n;
  FMM_TRY(FMM_ALLOCATE(&rows->row, rows->n_rows, "rows of a list"));
  FMM_TRY(FMM_ALLOCATE(&rows->offset, (int64_t)rows->n_rows + 1, "rows of a list"));
  FMM_TRY(FMM_ALLOCATE(&rows->entry, rows->n_entries, "entries of a list"));
  if (r->has_direction) FMM_TRY(FMM_ALLOCATE(&rows->direction, rows->n_entries, "directions of a list"));
  int64_t offset = 0;
  int32_t row = 0;
  for (int32_t i = 0; i < r->n_candidates; i++)
    if (m->made[i].n) {
      m->made[row] = m->made[i];
      rows->row[row] = r->candidate ? r->candidate[i] : i, rows->offset[row++] = offset, offset += m->made[i].n;
    }
  rows->offset[row] = offset;
  return FMM_OK;
}

/* A piece has room for `kept` entries a candidate, which its rows fill one after the other. */
static void count_entries(void *context, int64_t begin, int64_t end) {
  const making *m = context;
  const recipe *r = m->recipe;
  int64_t at = begin * r->kept, room = end * r->kept;
  for (int64_t i = begin; i < end; i++) {
    fmm_emitter e = {m->kept + at, NULL, room - at, 0};
    r->collect(m->lister, r->candidate ? r->candidate[i] : (int32_t)i, &e);
    m->made[i] = (made_row){e.n, e.n <= room - at ? at : -1};
    if (m->made[i].kept >= 0) at += e.n;
  }
}

static void fill_rows(void *context, int64_t begin, int64_t end) {
  const making *m = context;
  const fmm_rows *rows = m->rows;
  for (int64_t i = begin; i < end; i++) {
    const int64_t at = rows->offset[i], n = m->made[i].n, kept = m->made[i].kept;
    fmm_emitter e = {rows->entry + at, m->recipe->has_direction ? rows->direction + at : NULL, n, 0};
    if (kept >= 0) memcpy(e.entry, m->kept + kept, (size_t)n * sizeof *e.entry);
    else m->recipe->collect(m->lister, rows->row[i], &e);
    if (m->recipe->sorts_sources) sort_by_sources(m->lister->tree->source_begin, e.entry, n);
  }
}

static fmm_status make_rows(const fmm_lister *l, const recipe *r, fmm_rows *rows, int threads) {
  enum { least = 128 }; /* candidates that are worth a piece of their own */
  making m = {l, r, NULL, NULL, rows};
  fmm_status status;
  FMM_CHECK(FMM_ALLOCATE(&m.made, r->n_candidates, "sizes of rows"));
  FMM_CHECK(FMM_ALLOCATE(&m.kept, (int64_t)r->n_candidates * r->kept, "entries of rows"));
  fmm_team_loop_uneven(r->n_candidates, least, count_entries, &m, threads);
  FMM_CHECK(allocate_rows(&m));
  fmm_team_loop_uneven(rows->n_rows, least, fill_rows, &m, threads);
done:
  FMM_FREE(&m.made);
  FMM_FREE(&m.kept);
  return status;
}

typedef struct v_counting { const fmm_lister *lister; const fmm_rows *v; int64_t pairs; } v_counting;

static void count_v_pairs(void *context, int64_t begin, int64_t end) {
  v_counting *c = context;
  const fmm_lister *l = c->lister;
  const fmm_rows *v = c->v;
  int64_t pairs = 0;
  for (int64_t i = begin; i < end; i++)
    for (int64_t j = v->offset[i]; j < v->offset[i + 1]; j++)
      for (int t = 0; t < 8; t++)
        if (l->children[v->row[i]].targets >> t & 1)
          pairs += fmm_count_bits(l->far[v->direction[j]][t] & (unsigned)l->children[v->entry[j]].sources);
  fmm_join_begin();
  c->pairs += pairs;
  fmm_join_end();
}

static fmm_status make_lists(fmm_lists *lists, const fmm_lister *l, fmm_lists_use use, int threads) {
  const fmm_tree *t = l->tree;
  const recipe u = {fmm_collect_u, t->leaf, t->n_leaves, 0, use == FMM_LISTS_TO_SUM, 32}, v = {fmm_collect_v, NULL, t->n_boxes, 1, 0, 0},
               w = {fmm_collect_w, t->leaf, t->n_leaves, 0, 0, 8}, x = {fmm_collect_x, NULL, t->n_boxes, 0, 0, 4};
  FMM_TRY(make_rows(l, &u, &lists->u, threads));
  FMM_TRY(make_rows(l, &v, &lists->v, threads));
  FMM_TRY(make_rows(l, &w, &lists->w, threads));
  FMM_TRY(make_rows(l, &x, &lists->x, threads));
  v_counting c = {l, &lists->v, 0};
  fmm_team_loop(lists->v.n_rows, FMM_PARALLEL_MINIMUM, count_v_pairs, &c, threads);
  lists->v_pairs = c.pairs;
  return FMM_OK;
}

fmm_status fmm_lists_build(fmm_lists *lists, const fmm_tree *tree, int64_t direct_threshold, fmm_lists_use use, int threads) {
  fmm_lister lister;
  fmm_lists made = {0};
  FMM_TRY(fmm_lister_make(&lister, tree, direct_threshold, threads));
  fmm_status status = make_lists(&made, &lister, use, threads);
  fmm_lister_free(&lister);
  if (status == FMM_OK) *lists = made;
  else fmm_lists_free(&made);
  return status;
}

static void free_rows(fmm_rows *r) {
  FMM_FREE(&r->row);
  FMM_FREE(&r->offset);
  FMM_FREE(&r->entry);
  FMM_FREE(&r->direction);
}

void fmm_lists_free(fmm_lists *lists) {
  free_rows(&lists->u);
  free_rows(&lists->v);
  free_rows(&lists->w);
  free_rows(&lists->x);
  *lists = (fmm_lists){0};
}

static size_t rows_bytes(const fmm_rows *r) {
  return fmm_memory_bytes(r->row) + fmm_memory_bytes(r->offset) + fmm_memory_bytes(r->entry) + fmm_memory_bytes(r->direction);
}

size_t fmm_lists_bytes(const fmm_lists *lists) { return rows_bytes(&lists->u) + rows_bytes(&lists->v) + rows_bytes(&lists->w) + rows_bytes(&lists->x); }

int64_t fmm_lists_find(const fmm_rows *u, const fmm_tree *tree, int32_t row, int32_t box) {
  int64_t low = u->offset[row], high = u->offset[row + 1], end = high, first = tree->source_begin[box];
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (tree->source_begin[u->entry[middle]] < first) low = middle + 1;
    else high = middle;
  }
  for (; low < end && tree->source_begin[u->entry[low]] == first; low++)
    if (u->entry[low] == box) return low;
  return -1;
}
