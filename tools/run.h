/* What fmm-run does, in steps: load the case, obtain the machine's profile, plan, execute, verify, report. Each fills its part of fmm_run. */
#ifndef FMM_RUN_H
#define FMM_RUN_H
#include "model/machine.h"
#include "run_case.h"

typedef struct fmm_run_options {
  fmm_case_options c; /* first: the shared tables fill it */
  int64_t repeat, verify; /* verify 0: not asked */
  const char *output, *trace;
  int explain, adapt, json, quiet, verbose, unchecked;
} fmm_run_options;

/* Relative errors against direct sums at sampled targets; of several density columns the worst. */
typedef struct fmm_run_error {
  int64_t samples;
  double relative_l2, gradient_relative_l2; /* gradient NaN when not asked */
  double max_relative;                      /* max |e| / max |f| of the potential */
  /* What rounding of one double-precision evaluation a pair leaves, 2^-52 ||sum |K s||| / ||f||; NaN where the errors are within the tolerance. */
  double reachable, gradient_reachable;
} fmm_run_error;

/* What was found when results were held against the tolerance (fmm_plan_keep_tolerance). */
typedef struct fmm_run_check {
  int rounds;    /* 0: not checked */
  double error;  /* of the results that are reported, as the last of them tells; NaN: not known */
  double seconds; /* of all, without new plans and executions */
} fmm_run_check;

typedef struct fmm_run {
  fmm_run_options options;
  fmm_case data;
  fmm_machine machine;     /* profile used; path "" when it is not kept in a file */
  fmm_plan *plan;
  double *potential, *gradient;
  double predicted_s, phase_predicted_s[FMM_N_PHASES]; /* fixed before the first execution */
  int64_t runs;
  double median_s, min_s, max_s, phase_s[FMM_N_PHASES], clusters_s; /* phases, clusters: medians */
  fmm_plan_info info;      /* after the last execution */
  fmm_run_check check;
  fmm_run_error error;
} fmm_run;

fmm_status fmm_run_plan(fmm_run *run);    /* run_execute.c: profile, plan, points */
fmm_status fmm_run_execute(fmm_run *run); /* run_execute.c: warm-up and timed executions */
fmm_status fmm_run_verify(fmm_run *run);  /* run_verify.c */
fmm_status fmm_run_report(const fmm_run *run);      /* run_report.c: text on standard output */
fmm_status fmm_run_report_json(const fmm_run *run); /* run_json.c: one object on standard output */
fmm_status fmm_run_explanation(const fmm_run *run, char **text); /* run_report.c: owned by the caller */
#endif
