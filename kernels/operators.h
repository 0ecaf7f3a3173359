/* The precomputed translation operators of the kernel-independent FMM for one (pair interaction, parameters, order).
 *
 * Surfaces are cubes' surfaces with p points an edge (6(p-1)^2+2 in all). Upward equivalent: 1.05 half-widths, upward check: 2.95;
 * downward check: 1.05, downward equivalent: 2.95. Index of an unknown: component * n_surface + surface point.
 * Check-to-equivalent maps are pseudo-inverses by SVD, kept as two factors (first = U^T, second = V S^-1, small singular values cut);
 * M2M and L2L have the first factor multiplied in: U^T K, so a parent needs one `second` for all children.
 * Homogeneous kernels have one set for a box of half-width 1, scaled by level; others a set a level.
 * Reference: Ying, Biros, Zorin 2004, sections 3.1-3.3; two factors: Malhotra & Biros, Commun. Comput. Phys. 18 (2015) 808. */
#ifndef FMM_OPERATORS_H
#define FMM_OPERATORS_H
#include "kernels/pair/pair.h"
#include "runtime/memory.h"

#define FMM_INNER_RADIUS 1.05 /* upward equivalent and downward check surfaces, in half-widths */
#define FMM_OUTER_RADIUS 2.95 /* upward check and downward equivalent surfaces */

/* Operators of one level; row-major double; n = equivalent_components * n_surface. */
typedef struct fmm_level_operators {
  double half_width;        /* scaled half-width they are made for (1 for homogeneous kernels) */
  double *up_first;         /* n x n : U^T of the upward check-to-equivalent map; rows beyond the cut-off are zero */
  double *up_second;        /* n x n : V S^-1 */
  double *m2m[8];           /* n x n each: U^T_parent K(parent check, child equivalent), by octant of the child */
  double *down_first;       /* as above for the downward map (check 1.05 -> equivalent 2.95) */
  double *down_second;
  double *l2l[8];           /* n x n each: U^T_child K(child check, parent equivalent), by octant of the child: gives the child's first-factor values */
  /* M2L in Fourier space on the grid of 2p points an edge: transforms of the kernel by offset d = source box - target box in box units,
   * complex: m2l[frequency][component out][component in][(dx+3)*49 + (dy+3)*7 + (dz+3)][re,im]; zero where the boxes are adjacent
   * (all |d| <= 1). The inverse transform's 1/grid^3 is multiplied in. An 8x8 matrix of siblings is gathered from these 343 at use:
   * source octant s of parent Q, target octant t of parent P: d = 2 (Q - P) + s - t. */
  double *m2l;
} fmm_level_operators;

typedef struct fmm_operators {
  const fmm_pair *pair;
  double params[FMM_MAX_PARAMS];
  int order, n_surface, n; /* n = equivalent_components * n_surface */
  int grid, n_frequencies; /* 2p; grid*grid*(p+1) */
  double *surface;         /* n_surface x 3, on the cube [-1,1]^3 */
  int32_t *grid_index;     /* n_surface: index of each surface point in the grid^3 array (x slowest) */
  int n_levels;            /* sets held: 1 when homogeneous */
  fmm_level_operators level[FMM_MAX_LEVELS];
  double measured_error[2];/* relative error of the far field of one box through the whole chain: [FMM_DENSITY_SIGNED], [..NONNEGATIVE] */
} fmm_operators;

/* Makes the operators. root_half_width (scaled) and n_levels matter only to kernels without a degree. */
fmm_status fmm_operators_create(fmm_operators **operators, const fmm_pair *pair, const double params[FMM_MAX_PARAMS], int order,
                                double root_half_width, int n_levels, int threads);
void fmm_operators_destroy(fmm_operators **operators);
size_t fmm_operators_bytes(const fmm_operators *operators);

/* The set of a level, and the factors that a homogeneous kernel's level needs: potentials of boxes of half-width h are
 * h^degree times those of half-width 1. */
static inline const fmm_level_operators *fmm_operators_at(const fmm_operators *o, int level) { return &o->level[o->n_levels == 1 ? 0 : level]; }

/* Smallest order whose measured error for this kind of densities is within tolerance, from 2 to 20. */
fmm_status fmm_order_for_tolerance(const fmm_pair *pair, const double params[FMM_MAX_PARAMS], double tolerance, fmm_density_sign sign,
                                   double root_half_width, int *order);
#endif
