/* The order in which the GPU's V products take rows: in windows of 256, each grouped by the directions in which its rows have neighbours, so that eight rows
 * in succession, which are one product a direction, have the same ones where possible (on surfaces a box has some 8 of 26), and also the four groups of a warp. Shared by the device plan's
 * tables and by the work count, which must know how many products there are. */
#ifndef FMM_VLIST_WINDOWS_H
#define FMM_VLIST_WINDOWS_H
#include "runtime/lists.h"

enum { FMM_V_WINDOW = 256, FMM_V_TOGETHER = 8 /* rows of one product */, FMM_V_A_WARP = 32 /* windows hold a multiple */, FMM_V_COLOUR_BIT = 15, FMM_V_DIRECTION_BIT = 16 };

/* Colour of a box as on a chessboard: two boxes of one level that differ in it have neighbours that differ, whatever the direction. In double children of boxes of colour 1 stand in the
 * spectra with the halves z = 0 and z = 1 exchanged, in single boxes of colour 1 have odd slots, so that what is read for two rows of different colour lies in different banks of the first cache. */
static inline int fmm_vlist_colour(const fmm_tree *tree, int32_t box) { return __builtin_popcount(tree->octant[box]) & 1; }

/* Rows [begin, end), at most a window, in order: key[n] = mask of row n's directions << FMM_V_DIRECTION_BIT | its colour << FMM_V_COLOUR_BIT | the row's place after `begin`.
 * In a group the colours take turns as far as there are both; rows of equal masks and colours stay in their order. */
void fmm_vlist_order_window(const fmm_tree *tree, const fmm_rows *v, int64_t begin, int64_t end, uint64_t key[FMM_V_WINDOW]);
/* End of the rows from `begin` on that share one set of operators: all, or those of begin's level. */
int64_t fmm_vlist_operators_end(const fmm_tree *tree, const fmm_rows *v, int64_t begin, int same_operators);
#endif
