/* Lists from collectors: every candidate row is counted in parallel, rows without entries are dropped, then filled in parallel in place. What is
 * collected while counting is kept where there is room, so that most rows are collected once; that takes memory until the rows are made
 * (1,000,000 uniform points: the most that is held while a tree and its lists are made is 158 MB with leaves of 8, where the tree alone takes 83, and 43 and 41 with leaves of 64). */
#include "lists.h"

#include <string.h>

#include "jobs.h"
#include "lister.h"
#include "sort_network.h"
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

/* No two boxes of a row begin with the same source. Rows of a leaf among others of its size are nearly in order. */
static void sort_by_sources(const int64_t *begin, int32_t *e, int64_t n) {
  enum { few = 28, most = 128, box_bits = 31 /* below sources, which are counted by 32 */ };
  uint64_t key[most];
  if (n > few && (n > most || n > fmm_sort_network_most())) return heap_sort(begin, e, n);
  for (int64_t i = 0; i < n; i++) key[i] = (uint64_t)begin[e[i]] << box_bits | (uint32_t)e[i];
  if (n > few) fmm_sort_network(key, key, (int)n);
  else
    for (int64_t i = 1; i < n; i++) {
      const uint64_t item = key[i];
      int64_t j = i;
      for (; j > 0 && key[j - 1] > item; j--) key[j] = key[j - 1];
      key[j] = item;
    }
  for (int64_t i = 0; i < n; i++) e[i] = (int32_t)(key[i] & (((uint64_t)1 << box_bits) - 1));
}

/* A row in the making: its size, and where its entries are kept, or -1. */
typedef struct made_row { int64_t n, kept; } made_row;

/* A list in the making: the candidates' rows, then the rows of the list, `made` by then of those alone. */
typedef struct making_list {
  fmm_rows *rows;
  int has_direction, sorts_sources, room; /* room: entries a candidate that are kept while rows are counted */
  made_row *made;
  int32_t *kept;
  uint8_t *kept_direction;
} making_list;

/* One or two lists that are collected together. */
typedef struct making {
  const fmm_lister *lister;
  fmm_collect *collect;
  const int32_t *candidate; /* NULL: every box */
  int32_t n_candidates;
  int threads, n;
  making_list list[2];
} making;

/* One of them. */
typedef struct filling { const making *all; int which; } filling;

static fmm_status allocate_rows(const making *m, const making_list *l) {
  fmm_rows *rows = l->rows;
  rows->n_rows = 0, rows->n_entries = 0;
  for (int32_t i = 0; i < m->n_candidates; i++) rows->n_rows += l->made[i].n > 0, rows->n_entries += l->made[i].n;
  FMM_TRY(FMM_ALLOCATE(&rows->row, rows->n_rows, "rows of a list"));
  FMM_TRY(FMM_ALLOCATE(&rows->offset, (int64_t)rows->n_rows + 1, "rows of a list"));
  FMM_TRY(FMM_ALLOCATE(&rows->entry, rows->n_entries, "entries of a list"));
  if (l->has_direction) FMM_TRY(FMM_ALLOCATE(&rows->direction, rows->n_entries, "directions of a list"));
  int64_t offset = 0;
  int32_t row = 0;
  for (int32_t i = 0; i < m->n_candidates; i++)
    if (l->made[i].n) {
      l->made[row] = l->made[i];
      rows->row[row] = m->candidate ? m->candidate[i] : i, rows->offset[row++] = offset, offset += l->made[i].n;
    }
  rows->offset[row] = offset;
  return FMM_OK;
}

/* A piece has a list's room for each of its candidates, which its rows fill one after the other. */
static void count_entries(void *context, int64_t begin, int64_t end) {
  const making *m = context;
  int64_t at[2], last[2];
  for (int k = 0; k < m->n; k++) at[k] = begin * m->list[k].room, last[k] = end * m->list[k].room;
  for (int64_t i = begin; i < end; i++) {
    fmm_emitter e[2];
    for (int k = 0; k < m->n; k++) {
      const making_list *l = &m->list[k];
      e[k] = (fmm_emitter){l->kept + at[k], l->has_direction ? l->kept_direction + at[k] : NULL, last[k] - at[k], 0};
    }
    m->collect(m->lister, m->candidate ? m->candidate[i] : (int32_t)i, e);
    for (int k = 0; k < m->n; k++) {
      const int fits = e[k].n <= last[k] - at[k];
      m->list[k].made[i] = (made_row){e[k].n, fits ? at[k] : -1};
      if (fits) at[k] += e[k].n;
    }
  }
}

static void fill_rows(void *context, int64_t begin, int64_t end) {
  const filling *f = context;
  const making *m = f->all;
  const making_list *l = &m->list[f->which];
  const fmm_rows *rows = l->rows;
  for (int64_t i = begin; i < end; i++) {
    const int64_t at = rows->offset[i], n = l->made[i].n, kept = l->made[i].kept;
    fmm_emitter e[2] = {{.most = 0}, {.most = 0}}, *own = &e[f->which];
    *own = (fmm_emitter){rows->entry + at, l->has_direction ? rows->direction + at : NULL, n, 0};
    if (kept >= 0) {
      memcpy(own->entry, l->kept + kept, (size_t)n * sizeof *own->entry);
      if (own->direction) memcpy(own->direction, l->kept_direction + kept, (size_t)n);
    } else m->collect(m->lister, rows->row[i], e);
    if (l->sorts_sources) sort_by_sources(m->lister->tree->source_begin, own->entry, n);
  }
}

static fmm_status make_rows(void *context) {
  enum { least = 32 }; /* candidates that are worth a piece of their own */
  making *m = context;
  const int64_t n = m->n_candidates;
  const int threads = m->threads;
  fmm_status status = FMM_OK;
  for (int k = 0; k < m->n; k++) {
    making_list *l = &m->list[k];
    FMM_CHECK(FMM_ALLOCATE(&l->made, n, "sizes of rows"));
    FMM_CHECK(FMM_ALLOCATE(&l->kept, n * l->room, "entries of rows"));
    if (l->has_direction) FMM_CHECK(FMM_ALLOCATE(&l->kept_direction, n * l->room, "directions of rows"));
  }
  fmm_team_loop_uneven(n, least, count_entries, m, threads);
  for (int k = 0; k < m->n; k++) {
    FMM_CHECK(allocate_rows(m, &m->list[k]));
    fmm_team_loop_uneven(m->list[k].rows->n_rows, least, fill_rows, &(filling){m, k}, threads);
  }
done:
  for (int k = 0; k < m->n; k++) {
    FMM_FREE(&m->list[k].made);
    FMM_FREE(&m->list[k].kept);
    FMM_FREE(&m->list[k].kept_direction);
  }
  return status;
}

static fmm_status make_lists(fmm_lists *lists, const fmm_lister *l, fmm_lists_use use, int threads) {
  const fmm_tree *t = l->tree;
  making near = {l, fmm_collect_near, t->leaf, t->n_leaves, threads, 2, {{.rows = &lists->u, .sorts_sources = use == FMM_LISTS_TO_SUM, .room = 32}, {.rows = &lists->w, .room = 8}}},
         v = {l, fmm_collect_v, NULL, t->n_boxes, threads, 1, {{.rows = &lists->v, .has_direction = 1, .room = 4}}}, x = {l, fmm_collect_x, NULL, t->n_boxes, threads, 1, {{.rows = &lists->x, .room = 4}}};
  fmm_job jobs[] = {{.run = make_rows, .context = &near}, {.run = make_rows, .context = &v}, {.run = make_rows, .context = &x}};
  return fmm_jobs_run(jobs, sizeof jobs / sizeof *jobs, fmm_team_size());
}

typedef struct building { fmm_lists *lists; const fmm_tree *tree; int64_t direct_threshold; fmm_lists_use use; int threads; } building;

static fmm_status build(void *context) {
  const building *b = context;
  fmm_lister lister;
  fmm_lists made = {0};
  FMM_TRY(fmm_lister_make(&lister, b->tree, b->direct_threshold, b->threads));
  fmm_status status = make_lists(&made, &lister, b->use, b->threads);
  fmm_lister_free(&lister);
  if (status == FMM_OK) *b->lists = made;
  else fmm_lists_free(&made);
  return status;
}

fmm_status fmm_lists_build(fmm_lists *lists, const fmm_tree *tree, int64_t direct_threshold, fmm_lists_use use, int threads) {
  const int is_large = tree->n_boxes > FMM_PARALLEL_MINIMUM;
  building b = {lists, tree, direct_threshold, use, is_large || fmm_team_size() > 1 ? threads : 1}; /* small ones are not worth waking a team */
  return is_large ? fmm_job_run_alone(build, &b, threads) : build(&b);
}

int64_t fmm_lists_v_pairs(const fmm_lists *lists, const fmm_tree *t) {
  const fmm_rows *v = &lists->v;
  uint64_t far[27];
  int64_t pairs = 0;
  fmm_lists_far(far);
  for (int32_t r = 0; r < v->n_rows; r++) {
    const uint64_t targets = fmm_octant_bytes(fmm_children_with_points(t, v->row[r], t->target_begin, t->target_end));
    for (int64_t e = v->offset[r]; e < v->offset[r + 1]; e++)
      pairs += fmm_count_bits(fmm_far_pairs(far[v->direction[e]], targets, fmm_children_with_points(t, v->entry[e], t->source_begin, t->source_end)));
  }
  return pairs;
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
