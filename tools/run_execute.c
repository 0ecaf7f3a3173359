/* Profile, plan and timed executions of fmm-run. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calib/calibrate.h"
#include "run.h"
#include "runtime/memory.h"
#include "runtime/plan.h"

static void announce(void *context, const char *line) {
  if (!((const fmm_run *)context)->options.quiet) fmm_cli_say("%s", line);
}

/* auto takes what there is and says what is missing. */
static void say_what_is_missing(const fmm_run *run) {
  if (run->options.quiet || run->options.c.schedule != FMM_SCHEDULE_AUTO) return;
  const char *no_gpu = run->plan->machine.device[FMM_DEVICE_GPU].present ? run->plan->setup->no_gpu : run->plan->machine.no_gpu;
  if (*no_gpu) fmm_cli_say("no GPU is used: %s", no_gpu);
}

static fmm_status note_info(fmm_run *run) {
  run->info.struct_size = sizeof run->info;
  return fmm_plan_get_info(run->plan, &run->info);
}

fmm_status fmm_run_plan(fmm_run *run) {
  fmm_options options;
  FMM_TRY(fmm_case_to_options(&run->options.c, &options));
  options.n_columns = run->data.columns;
  options.density_sign = run->data.in_phase ? FMM_DENSITY_NONNEGATIVE : FMM_DENSITY_SIGNED;
  options.densities_spread = run->data.spread;
  FMM_TRY(fmm_profile_obtain(run->options.c.profile, (int)run->options.c.gpu_sms, announce, NULL, run, &run->machine));
  FMM_TRY(fmm_plan_create_with(&run->plan, &options, &run->machine)); /* in a file or not */
  FMM_TRY(fmm_plan_set_points(run->plan, run->data.n, run->data.points, NULL, run->data.targets ? run->data.n_targets : 0, run->data.targets));
  say_what_is_missing(run);
  FMM_TRY(note_info(run));
  if (!run->options.quiet) fmm_case_say_reach(&run->options.c, run->info.expected_error);
  return FMM_OK;
}

static fmm_status allocate_results(fmm_run *run) {
  int64_t values = run->data.n_targets * run->data.pair->outputs * run->data.columns;
  FMM_TRY(FMM_ALLOCATE(&run->potential, values, "potentials"));
  return run->options.c.gradient ? FMM_ALLOCATE(&run->gradient, 3 * values, "gradients") : FMM_OK;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Sorts times; the middle one, or the mean of the two in the middle. */
static double median(double *times, int64_t n) {
  qsort(times, (size_t)n, sizeof *times, by_value);
  return n % 2 ? times[n / 2] : (times[n / 2 - 1] + times[n / 2]) / 2;
}

static fmm_status execute_once(fmm_run *run) {
  FMM_TRY(fmm_plan_execute(run->plan, run->data.densities, run->potential, run->gradient));
  return note_info(run);
}

static fmm_status note_prediction(fmm_run *run) {
  FMM_TRY(note_info(run));
  run->predicted_s = run->info.predicted_s;
  memcpy(run->phase_predicted_s, run->info.phase_predicted_s, sizeof run->phase_predicted_s);
  return FMM_OK;
}

/* One round: whether the results keep the tolerance, else a plan that may. Where there is no memory for that one, the results stay what they are. */
static fmm_status check_once(fmm_run *run, int *changed) {
  fmm_run_check *c = &run->check;
  const double begin = fmm_now_s(), setup_s = run->info.setup_s, tolerance = fmm_case_tolerance(&run->options.c);
  double error = NAN;
  *changed = 0;
  fmm_status status = fmm_plan_keep_tolerance(run->plan, run->data.densities, run->potential, run->gradient, &error, changed);
  if (status == FMM_ERR_MEMORY) {
    c->error = NAN; /* what an earlier round told was of another plan */
    if (!run->options.quiet) fmm_cli_say("whether the tolerance of %.1e is kept was not seen, or not mended: %s", tolerance, fmm_last_error());
    return FMM_OK;
  }
  FMM_TRY(status);
  FMM_TRY(note_info(run));
  c->rounds++, c->error = error;
  c->seconds += fmm_now_s() - begin - (run->info.setup_s - setup_s);
  if (*changed && !run->options.quiet) fmm_cli_say("an error of %.1e was found where %.1e is asked, so the plan is made anew for %.1e", error, tolerance, tolerance / run->info.tightened);
  return FMM_OK;
}

static void say_what_is_left(const fmm_run *run) {
  const double tolerance = fmm_case_tolerance(&run->options.c);
  if (run->check.error > tolerance && !run->options.quiet)
    fmm_cli_say("an error of about %.1e is left where %.1e is asked: neither order nor precision helps further, or rounding alone leaves as much (--verify tells)", run->check.error, tolerance);
}

/* Results of these densities are there. An order or a lower precision of the caller's own stays, whatever it leads to. */
static fmm_status keep_tolerance(fmm_run *run) {
  const fmm_case_options *o = &run->options.c;
  int changed = 1;
  if (run->options.unchecked || o->order || (o->precision != FMM_PRECISION_AUTO && o->precision != FMM_PRECISION_DOUBLE)) return FMM_OK;
  while (changed) { /* a few times at most */
    FMM_TRY(check_once(run, &changed));
    if (!changed) break;
    FMM_TRY(note_prediction(run));
    FMM_TRY(execute_once(run));
  }
  say_what_is_left(run);
  return FMM_OK;
}

/* times: one row of `runs` for the whole, then one for each phase, then one for the clusters. The first execution, or the warm-up, is the one that is checked. */
static fmm_status execute_all(fmm_run *run, double *times) {
  int64_t n = run->options.repeat;
  FMM_TRY(execute_once(run));
  FMM_TRY(keep_tolerance(run));
  for (int64_t i = 0; i < n; i++) {
    if (n > 1) FMM_TRY(execute_once(run));
    times[i] = run->info.last_evaluation_s;
    for (int p = 0; p < FMM_N_PHASES; p++) times[(1 + p) * n + i] = run->info.phase_measured_s[p];
    times[(1 + FMM_N_PHASES) * n + i] = run->info.clusters_measured_s;
  }
  run->runs = n;
  run->median_s = median(times, n), run->min_s = times[0], run->max_s = times[n - 1];
  for (int p = 0; p < FMM_N_PHASES; p++) run->phase_s[p] = median(times + (1 + p) * n, n);
  run->clusters_s = median(times + (1 + FMM_N_PHASES) * n, n);
  return FMM_OK;
}

static fmm_status predict_and_execute(fmm_run *run, double *times) {
  FMM_TRY(note_prediction(run));
  return execute_all(run, times);
}

fmm_status fmm_run_execute(fmm_run *run) {
  double *times;
  int changed = 0;
  FMM_TRY(allocate_results(run));
  FMM_TRY(FMM_ALLOCATE(&times, run->options.repeat * (2 + FMM_N_PHASES), "times"));
  fmm_status status = predict_and_execute(run, times);
  if (status == FMM_OK && run->options.adapt) status = fmm_plan_adapt(run->plan, &changed);
  if (status == FMM_OK && changed) {
    if (!run->options.quiet) fmm_cli_say("adapted to the measured times: a new plan, which is reported");
    status = predict_and_execute(run, times);
  }
  FMM_FREE(&times);
  return status;
}
