/* Frequency 0 of the V phase, in double whatever the others are in: the mean of a box's check potentials over the lattice. Potentials are nearly the same all over a box, so that it is by far the largest of
 * all; in float its rounding would be most of the phase's error, and gradients, which do not have it, would drown in it. It is one of p (2p-1)^2 or so, and real.
 * Layout: means [group][component*columns + column][lane], as of the spectra (vlist_kernels.h). */
#ifndef FMM_VLIST_MEANS_H
#define FMM_VLIST_MEANS_H
#include "kernels/vlist/vlist_kernels.h"

/* Of a neighbour's children (source octant) onto a parent's (target octant), of one pair of components. */
typedef struct fmm_vlist_mean_matrices { double of[FMM_DIRECTIONS][8][8]; } fmm_vlist_mean_matrices;
void fmm_vlist_mean_matrices_fill(const fmm_operators *operators, const fmm_level_operators *set, int out, int in, fmm_vlist_mean_matrices *m);

/* The sum of n values of each lane's box (NULL: 0), times factor. */
void fmm_vlist_mean_sources(int n, const double *const box[FMM_VLIST_LANES], double factor, double mean[FMM_VLIST_LANES]);

/* Of one slab: the V list's rows, the slabs with their places, which slab, and how many doubles lie between two groups' means. */
typedef struct fmm_vlist_mean_product {
  const fmm_rows *rows;
  const fmm_vlist_slabs *slabs;
  const fmm_vlist_slab *slab;
  int64_t pitch;
} fmm_vlist_mean_product;
/* A row's means of one output component and column become (add: 0) or get added (1) what its sources' means of an input component make there. source, target: those of group 0. */
void fmm_vlist_mean_multiply(const fmm_vlist_mean_product *p, const fmm_vlist_mean_matrices *m, int64_t row, const double *source, double *target, int add);
#endif
