/* How much more the nearest pairs of points give to gradients than where all neighbours keep their distances. An evaluation's relative error is that of its far field over the whole field, and
 * that is for gradients, which fall off with the square of the distance, mostly what the nearest neighbours give. The order is measured against neighbours on a lattice, of which none is
 * nearer than the spacing (kernels/far_field_error.c). Random points have nearer ones: there the same order errs by a third of that, on surfaces by a hundredth. */
#ifndef FMM_CROWDING_H
#define FMM_CROWDING_H
#include "point_samples.h"

/* The mean over points of the sum of 1 / r^4 over their neighbours (the mean square of a gradient of Laplace's or Stokes's interaction of independent densities), as a multiple of that in a
 * lattice of as many points a volume; 1 where too few points tell. A few pairs decide it, so that it grows with the number of points that are asked, for random points with its cube root: this is
 * what some 800 targets show. Random points in space 7 to 19, of any density, on surfaces hundreds; proteins 2 to 3.3. */
fmm_status fmm_points_crowding(const fmm_point_samples *samples, double *crowding);
#endif
