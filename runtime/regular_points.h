/* Whether points are as evenly spaced as those of a lattice: charges of both signs can then cancel far more than in random places, and the order is chosen for it
 * (kernels/order.c). Told by the distance to the nearest neighbour over that to the sixth, at sampled points: a ratio of their volumes that is the same for random points
 * of any density, (1/6)^(1/3) and a little less, 0.50, where their density varies or they lie on surfaces less; 0.65 to 1 on cubic lattices moved by a fifth of the spacing or less, 0.45 in
 * proteins, whose bonds are short. */
#ifndef FMM_REGULAR_POINTS_H
#define FMM_REGULAR_POINTS_H
#include <stdint.h>

/* n x 3 points, row-major. The answer does not depend on the number of threads. */
int fmm_points_are_regular(int64_t n, const double *points, int threads);
#endif
