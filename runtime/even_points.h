/* Points that fill a cube evenly, as those of simulated boxes do: where a search for their tree begins can be told beforehand, so that all rows are sorted once, for the root scale of the tree. */
#ifndef FMM_EVEN_POINTS_H
#define FMM_EVEN_POINTS_H
#include "points.h"

/* Whether they do, by 16,384 of them (or all, if they are fewer) over the 512 cells of the third level: whether chi squared a cell is below 1.3, which random even points have 1 +- 0.06 of. Groups of so many points that leaves matter, and
 * boxes of unequal edges, are above it. */
int fmm_points_are_even(int64_t n, const double *rows, const fmm_bounds *bounds, int threads);
/* Sorted keys of one point in each cell of a level: 8^level. */
void fmm_even_keys(int level, uint64_t *keys);
#endif
