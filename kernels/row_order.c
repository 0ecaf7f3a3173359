/* See row_order.h. */
#include "kernels/row_order.h"

#include <stdlib.h>

enum { PARTS = 256 };

typedef struct heavy { double work; int32_t row; } heavy;

static int by_falling_work(const void *a, const void *b) {
  const heavy *x = a, *y = b;
  return x->work != y->work ? (x->work < y->work ? 1 : -1) : (x->row > y->row) - (x->row < y->row);
}

static fmm_status make_order(const fmm_tree *tree, const fmm_rows *rows, fmm_row_work *work, int32_t **order, int32_t *n_heavy) {
  heavy first[PARTS]; /* fewer than so many have more than such a part */
  int n_first = 0;
  double total = 0;
  FMM_TRY(FMM_ALLOCATE(order, rows->n_rows, "order of a list's rows"));
  for (int32_t row = 0; row < rows->n_rows; row++) total += work(tree, rows, row);
  int32_t n = rows->n_rows;
  for (int32_t row = rows->n_rows - 1; row >= 0; row--) { /* the others from the back on */
    const double w = work(tree, rows, row);
    if (w * PARTS > total && n_first < PARTS) first[n_first++] = (heavy){w, row};
    else (*order)[--n] = row;
  }
  qsort(first, (size_t)n_first, sizeof *first, by_falling_work);
  for (int32_t k = 0; k < n_first; k++) (*order)[k] = first[k].row;
  *n_heavy = n_first;
  return FMM_OK;
}

static int32_t lesser(int32_t a, int32_t b) { return a < b ? a : b; }

fmm_row_pieces fmm_row_pieces_of(const fmm_row_workspace *own, const fmm_rows *rows, int threads) {
  fmm_row_pieces p = {.n_rows = rows->n_rows, .alone = lesser(own->n_heavy, 2 * threads)};
  const int32_t others = p.n_rows - p.alone, most = others / (4 * threads);
  p.width = most < 1 ? 1 : lesser(most, FMM_LANES);
  p.n = p.alone + (others + p.width - 1) / p.width;
  return p;
}

void fmm_row_piece(const fmm_row_pieces *pieces, int32_t piece, int32_t *begin, int32_t *end) {
  const int32_t together = piece - pieces->alone;
  *begin = together < 0 ? piece : pieces->alone + together * pieces->width;
  *end = together < 0 ? piece + 1 : lesser(*begin + pieces->width, pieces->n_rows);
}

fmm_status fmm_row_workspace_reserve(fmm_state *state, fmm_phase phase, const fmm_rows *rows, fmm_row_work *work, size_t thread_doubles) {
  fmm_row_workspace *own = NULL;
  fmm_status status;
  FMM_TRY(FMM_ALLOCATE_ZERO(&own, 1, "workspace of a list's rows"));
  state->workspace[phase] = own;
  FMM_CHECK(FMM_ALLOCATE_ZERO(&own->planes, thread_doubles * (size_t)state->threads, "surfaces of a list's boxes"));
  FMM_CHECK(make_order(state->tree, rows, work, &own->order, &own->n_heavy));
done:
  if (status != FMM_OK) fmm_row_workspace_release(state, phase);
  return status;
}

void fmm_row_workspace_release(fmm_state *state, fmm_phase phase) {
  fmm_row_workspace *own = state->workspace[phase];
  if (!own) return;
  FMM_FREE(&own->planes);
  FMM_FREE(&own->order);
  FMM_FREE(&state->workspace[phase]);
}

size_t fmm_row_workspace_bytes(const fmm_state *state, const fmm_rows *rows, size_t thread_doubles) {
  return sizeof(fmm_row_workspace) + thread_doubles * (size_t)state->threads * sizeof(double) + (size_t)rows->n_rows * sizeof(int32_t);
}
