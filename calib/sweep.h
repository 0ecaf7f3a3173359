/* The sweep: real evaluations over distribution, N, q, p and precision, each giving the measured seconds of its phases beside what the model
 * says of the same tree with all constants 1. Combinations are visited in an order of which every prefix is well spread, so that a time budget
 * may end the sweep anywhere. Every third combination is held out from the fit, and every
 * fourth is evaluated with gradients, and with sums of other accuracies, too, for factors of a phase. Reference: Choi et al. 2014, section 4.3. */
#ifndef FMM_SWEEP_H
#define FMM_SWEEP_H
#include "model/model.h"

typedef enum fmm_effort { FMM_EFFORT_QUICK, FMM_EFFORT_STANDARD, FMM_EFFORT_THOROUGH, FMM_N_EFFORTS } fmm_effort;
const char *fmm_effort_name(fmm_effort effort);
fmm_status fmm_effort_find(const char *name, fmm_effort *effort); /* FMM_ERR_ARGUMENT with the names that there are */

/* Told what is going on and which part is done, 0..1. Returning nonzero stops: FMM_ERR_INTERRUPTED. */
typedef int fmm_progress(void *context, const char *what, double fraction);

/* What is evaluated of a combination: what constants are fitted to, and of some combinations what factors are (fmm_constant): results with gradients, sums less and more exact. */
typedef enum fmm_sweep_kind { FMM_SWEEP_USUAL, FMM_SWEEP_GRADIENT, FMM_SWEEP_COARSE, FMM_SWEEP_COARSE_GRADIENT, FMM_SWEEP_NEAR, FMM_SWEEP_FULL, FMM_N_SWEEP_KINDS } fmm_sweep_kind;

/* One phase of one evaluation: features of the model and the median of the repeats. */
typedef struct fmm_sweep_sample {
  int run;                 /* number of the evaluation: two a combination, double then single, and six more where factors are measured */
  fmm_phase phase;
  fmm_device device;
  int precision;           /* index */
  fmm_sweep_kind kind;
  fmm_work work;           /* exact counts of the phase */
  fmm_sample sample;
} fmm_sweep_sample;
typedef struct fmm_samples { int n, n_runs, room; fmm_sweep_sample *sample; } fmm_samples;

/* One combination: what fmm_sweep_case gives for position i of a grid of `*total` combinations. */
typedef struct fmm_sweep_case { const char *distribution; int64_t n_points; int leaf_size, order; int held_out, factors; /* whether these are measured */ } fmm_sweep_case;
fmm_sweep_case fmm_sweep_case_at(fmm_device device, fmm_effort effort, int threads, int position, int *total);

/* Runs combinations with every phase on `device` until budget_s is spent (at least three, so that one is held out). `rates` gives the model its
 * rates; its constants are ignored. samples: grows; release with fmm_samples_free, also after a failure. */
fmm_status fmm_sweep(const fmm_machine *rates, fmm_device device, fmm_effort effort, int threads, double budget_s, fmm_progress *progress,
                     void *context, fmm_samples *samples);
fmm_status fmm_samples_add(fmm_samples *samples, const fmm_sweep_sample *sample);
void fmm_samples_free(fmm_samples *samples);

/* Constants of one device from its samples, with their errors on held-out runs. A phase and precision without usable samples gets value 0, "not
 * measured", which the model prices carefully. */
fmm_status fmm_fit_samples(const fmm_samples *samples, fmm_device device, fmm_device_rates *rates);
#endif
