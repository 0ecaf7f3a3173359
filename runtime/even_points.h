/* Points that fill a cube evenly, as those of simulated boxes do: where a search for their tree begins can be told beforehand, so that all rows are sorted once, for the root scale of the tree. */
#ifndef FMM_EVEN_POINTS_H
#define FMM_EVEN_POINTS_H
#include "points.h"

/* *are_even: whether they do, by how unlike the numbers of some of them, picked at random, are over the cells of a level: their variance over their mean, about 1 for points at random and less for regular ones. 4,096 of them tell most others by the 512 cells of level 3,
 * then 65,536 by levels 3 (below 1.35) to 7 (below 1.1, which points at random are far from): so groups of g of n points are told from g = 1 + n / 600,000 on, lattices of balls, lines or planes of up to 16 an edge by a level finer than theirs (not shells that touch one another, nor finer lattices), and boxes of unequal edges by cells that are empty. */
fmm_status fmm_points_look_even(int64_t n, const double *rows, const fmm_bounds *bounds, int threads, int *are_even);
/* Sorted keys of one point in each cell of a level: 8^level. */
void fmm_even_keys(int level, uint64_t *keys);
#endif
