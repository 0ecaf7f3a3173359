/* Points that differ, but by less than the square of double precision can hold beside the extent of all: their pair's value would be lost, and with it
 * most of a result where one coordinate lies far out by mistake (a mark for a missing value, say). */
#ifndef FMM_NEAR_POINTS_H
#define FMM_NEAR_POINTS_H
#include "tree.h"

/* FMM_ERR_INPUT names a source and a target (of one set: two of its rows) that are not at one place, but nearer than about 1e-153 of the extent. targets NULL: the sources. A look at the bounds where no
 * coordinate is that small, but not zero. */
fmm_status fmm_near_points_check(const fmm_bounds *bounds, int64_t n_sources, const double *sources, int64_t n_targets, const double *targets);
#endif
