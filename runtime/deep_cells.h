/* Cells that sorted words tell and whose boxes are split further, as more points are in one than a leaf may have: the words of a million points tell 14 levels of 21. Of these cells alone whole keys are made and sorted, where
 * they hold few of the points; else those of all points are (points.c). */
#ifndef FMM_DEEP_CELLS_H
#define FMM_DEEP_CELLS_H
#include "points.h"

/* Cells by their words without rows, rising. */
typedef struct fmm_cell_list { int64_t n; uint64_t *cell; } fmm_cell_list;
/* Those with more than `most` of n words; mostly none. Release .cell with FMM_FREE. */
fmm_status fmm_deep_cells_find(fmm_cell_list *list, const fmm_sorted_words *words, int64_t n, int64_t most, int threads);
/* With another's, as the boxes of two sets are the same; on success *list has both. */
fmm_status fmm_deep_cells_join(fmm_cell_list *list, const fmm_cell_list *other);

/* What of one set is in such cells, cell after cell. */
typedef struct fmm_deep_cells {
  int64_t n, n_points;
  int64_t *begin, *end; /* n: of each cell's words */
  int64_t *first;       /* n + 1: of its items */
  fmm_sort_item *items; /* n_points: whole keys and rows, sorted */
} fmm_deep_cells;
enum { FMM_DEEP_PART = 4 }; /* of the points, that such cells may hold: a quarter */
/* With their items, where they hold no more of the n points than that: *made is 0 where they do, and nothing is left then, nor after a failure. */
fmm_status fmm_deep_cells_make(fmm_deep_cells *deep, const fmm_cell_list *list, const fmm_sorted_words *words, int64_t n, const fmm_frame *frame, const double *rows, int threads, int *made);
/* Puts the words' rows in the items' order. */
void fmm_deep_cells_put_rows(const fmm_deep_cells *deep, const fmm_sorted_words *words, int threads);
/* Whether more than `most` of them share a finest cell. */
int fmm_deep_cells_are_overfull(const fmm_deep_cells *deep, int64_t most);
/* Words become whole keys, those of other cells without the levels that they have not told. */
void fmm_deep_cells_widen(const fmm_deep_cells *deep, fmm_sorted_words *words, int64_t n, int threads);
void fmm_deep_cells_free(fmm_deep_cells *deep);
#endif
