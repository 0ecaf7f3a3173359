/* The targets at which results are held against direct sums (sampled_error.h). Few targets may have all of the field, or all of the error, so that they are drawn by where either is to be expected, and weigh the less. */
#ifndef FMM_ERROR_SAMPLES_H
#define FMM_ERROR_SAMPLES_H
#include "plan.h"

/* What is held against direct sums, in the layout of fmm_plan_execute: gradient NULL where there is none. */
typedef struct fmm_error_results { const double *densities, *potential, *gradient; } fmm_error_results;

/* All results of one column in units of the largest of them, so that squares neither overflow nor vanish; squares NaN where a result is not finite. */
typedef struct fmm_results_size { double unit, squares; } fmm_results_size;

/* Targets, as rows of the caller's and as sorted coordinates; owned. */
typedef struct fmm_error_samples {
  int64_t n, *row;
  double *x, *y, *z; /* planes of one allocation */
  double *weight;    /* a sum over all targets is about the sum over these of values times weights */
  double *density;   /* sorted planes of all sources */
  fmm_results_size *sizes; /* of the potentials' columns, then of the gradients' */
} fmm_error_samples;

/* `most` targets, or all if there are no more; the same ones each time and whatever the number of threads. Release with fmm_error_samples_free, also after a failure. */
fmm_status fmm_error_samples_pick(const fmm_plan *plan, const fmm_error_results *results, int64_t most, fmm_error_samples *samples);
void fmm_error_samples_free(fmm_error_samples *samples);
#endif
