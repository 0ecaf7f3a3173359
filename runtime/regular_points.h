/* Whether points are as evenly spaced as those of a lattice: charges of both signs can then cancel far more than in random places, and the order is chosen for it
 * (kernels/order.c). Told by the distance to the nearest neighbour over that to the sixth, at sampled points: a ratio of their volumes that is the same for random points
 * of any density, (1/6)^(1/3) and a little less, 0.50, where their density varies or they lie on surfaces less; 0.65 to 1 on cubic lattices moved by a fifth of the spacing or less, 0.45 in
 * proteins, whose bonds are short.
 * Along a curve with even steps the six are at one, one, two, two, three and three of them, to a fifth or so: there the gradients of charges of one sign cancel too, between neighbours before
 * and behind (20,000 points of a line or a circle with gradient, Laplace and Stokes: up to 62 times the tolerance with sums in single precision, 4 times in double). */
#ifndef FMM_REGULAR_POINTS_H
#define FMM_REGULAR_POINTS_H
#include <stdint.h>

typedef enum fmm_regularity { FMM_POINTS_IRREGULAR, FMM_POINTS_ON_LATTICE, FMM_POINTS_ON_CURVES } fmm_regularity;
/* n x 3 points, row-major. The answer does not depend on the number of threads. */
fmm_regularity fmm_points_regularity(int64_t n, const double *points, int threads);
#endif
