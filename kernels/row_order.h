/* The order in which rows of a list are begun: those that are much of the whole first, so that no thread is left alone with one at the end. What a row adds to is its own,
 * so the order changes no bits. Lists that are begun so (W, X) have this, and surfaces for each thread, as their workspace. */
#ifndef FMM_ROW_ORDER_H
#define FMM_ROW_ORDER_H
#include "kernels/phase.h"

/* Of a row, in any unit. */
typedef double fmm_row_work(const fmm_tree *tree, const fmm_rows *rows, int32_t row);

/* planes: [thread][thread_doubles], at first zero; order: of the list's rows, those of more than a 256th of all work first, the heaviest of them at the front; the others follow as they are. */
typedef struct fmm_row_workspace { double *planes; int32_t *order, n_heavy; } fmm_row_workspace;

/* Pieces of the order where rows fill lanes together: the two heaviest a thread alone, of the others as many together as there are lanes, but so few that every thread gets four pieces. */
typedef struct fmm_row_pieces { int32_t n, n_rows, alone, width; } fmm_row_pieces;
fmm_row_pieces fmm_row_pieces_of(const fmm_row_workspace *own, const fmm_rows *rows, int threads);
/* Places [begin, end) of the order. */
void fmm_row_piece(const fmm_row_pieces *pieces, int32_t piece, int32_t *begin, int32_t *end);
/* Becomes state->workspace[phase]; nothing is left after a failure. */
fmm_status fmm_row_workspace_reserve(fmm_state *state, fmm_phase phase, const fmm_rows *rows, fmm_row_work *work, size_t thread_doubles);
void fmm_row_workspace_release(fmm_state *state, fmm_phase phase);
size_t fmm_row_workspace_bytes(const fmm_state *state, const fmm_rows *rows, size_t thread_doubles);
#endif
