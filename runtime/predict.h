/* Predicting a case on a machine: order and precision as a plan would choose them, then the forecast over estimated counts. */
#ifndef FMM_PREDICT_H
#define FMM_PREDICT_H
#include "sched/forecast.h"

/* What is evaluated: a standard distribution by name (no points are made), or points (targets NULL: the sources). */
typedef struct fmm_predict_points {
  const char *distribution; /* NULL: the arrays below */
  int64_t n_sources, n_targets;
  const double *sources, *targets;
} fmm_predict_points;

typedef struct fmm_predicted {
  int order, threads;      /* order 0: no far field */
  double expected_error;   /* of the order; NaN: none was searched */
  fmm_machine machine;      /* with options->gpu_sms applied */
  fmm_forecast forecast;
} fmm_predicted;

/* options: checked (fmm_options_copy). threads: of the CPU team, 0: every core of the machine. */
fmm_status fmm_predict_case(const fmm_options *options, const fmm_machine *machine, const fmm_predict_points *points, int threads, fmm_predicted *predicted);
#endif
