/* What fmm-predict does, in steps: take the case (points only from files), obtain a machine, predict, report. Each fills its part. */
#ifndef FMM_TOOLS_PREDICT_H
#define FMM_TOOLS_PREDICT_H
#include <math.h>

#include "run_case.h"
#include "runtime/predict.h"

typedef struct fmm_predict_options {
  fmm_case_options c; /* first: the shared tables fill it */
  const char *machine, *plot;
  int json, quiet, verbose;
} fmm_predict_options;

typedef struct fmm_prediction_run {
  fmm_predict_options options;
  fmm_case data;                /* of a file; only n, n_targets, columns and pair of a generated case */
  fmm_options plan;             /* as a plan would get them */
  fmm_machine machine;
  int threads;                  /* 0: every core of another machine */
  fmm_predicted predicted;
} fmm_prediction_run;

/* The machine's, of the host; NaN when the profile does not know it. */
static inline double fmm_predict_host_memory(const fmm_prediction_run *run) {
  int mb = run->machine.device[FMM_DEVICE_CPU].memory_mb;
  return mb > 0 ? mb * 1048576.0 : NAN;
}

fmm_status fmm_predict_take_case(fmm_prediction_run *run); /* predict_case.c */
fmm_status fmm_predict_report(const fmm_prediction_run *run);      /* predict_report.c: text on standard output */
fmm_status fmm_predict_report_json(const fmm_prediction_run *run); /* predict_json.c: one object on standard output */
fmm_status fmm_predict_plot(const fmm_prediction_run *run, const char *path); /* predict_plot.c: SVG, whole or not at all */
#endif
