/* The order in which rows of a list are begun: those that are much of the whole first, so that no thread is left alone with one at the end. What a row adds to is its own,
 * so the order changes no bits. */
#ifndef FMM_ROW_ORDER_H
#define FMM_ROW_ORDER_H
#include "runtime/lists.h"

typedef double fmm_row_work(const fmm_tree *tree, const fmm_rows *rows, int32_t row);

/* *order: n_rows rows, of the caller (FMM_FREE). Those of more than a 256th of all work come first, the heaviest of them at the front; the others follow as they are. */
fmm_status fmm_row_order_make(const fmm_tree *tree, const fmm_rows *rows, fmm_row_work *work, int32_t **order);
#endif
