/* The error of a plan's results, estimated by direct sums at a few of its targets (error_samples.h): fast ones, by the pair sums of the U list in full double precision, in blocks whose totals are
 * added with compensation. Where the plan sums the same pairs in double too, their rounding is the same and is not seen. fmm_plan_direct (direct.h) is slower and makes no rounding error of its own worth naming. */
#ifndef FMM_SAMPLED_ERROR_H
#define FMM_SAMPLED_ERROR_H
#include "plan.h"

/* Relative L2 errors over all targets, of several columns the worst; gradient 0 where there is none. NaN where sums are beyond
 * double precision. */
typedef struct fmm_sampled_error { int64_t samples; double potential, gradient; } fmm_sampled_error;

/* The results of these densities, all in host memory, at so many targets (all if there are no more), the same ones each time and whatever the number of threads. What errors are relative to is taken from all results. */
fmm_status fmm_sample_error(const fmm_plan *plan, const double *densities, const double *potential, const double *gradient, int64_t samples, fmm_sampled_error *error);

/* What rounding of one double-precision evaluation a pair may leave of potential and gradient, 2^-52 ||sum |K s||| / ||f||, at so many targets. */
fmm_status fmm_sample_reach(const fmm_plan *plan, const double *densities, const double *potential, const double *gradient, int64_t samples, fmm_sampled_error *reach);
#endif
