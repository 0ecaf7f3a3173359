/* Running the sweep (sweep.h). */
#include "calib/sweep.h"

#include <stdio.h>
#include <string.h>

#include "calib/bench.h"
#include "calib/gpu.h"
#include "runtime/generate.h"
#include "runtime/plan.h"

enum { FEWEST_CASES = 3, REPEATS = 7, REPEATS_OF_FACTORS = 3 /* which are medians over combinations */, SEED = 1 };

/* Pairs of the default accuracy in double, single where single serves, or others. */
static double tolerance_of(fmm_precision precision, fmm_sweep_kind kind) {
  static const double others[FMM_N_SWEEP_KINDS] = {[FMM_SWEEP_COARSE] = 1e-3, [FMM_SWEEP_COARSE_GRADIENT] = 1e-3, [FMM_SWEEP_NEAR] = 1e-9, [FMM_SWEEP_FULL] = 1e-12};
  return others[kind] > 0 ? others[kind] : precision == FMM_PRECISION_DOUBLE ? 1e-6 : 1e-4;
}

static fmm_options options_of(const fmm_sweep_case *c, const fmm_machine *rates, fmm_device device, int threads, fmm_precision precision, fmm_sweep_kind kind) {
  fmm_options o;
  fmm_options_init(&o);
  o.order = c->order;
  o.gradient = kind == FMM_SWEEP_GRADIENT || kind == FMM_SWEEP_COARSE_GRADIENT;
  o.leaf_size = c->leaf_size;
  o.root_scale = 1;
  o.precision = precision;
  o.tolerance = tolerance_of(precision, kind);
  o.density_sign = FMM_DENSITY_NONNEGATIVE;
  o.schedule = device == FMM_DEVICE_GPU ? FMM_SCHEDULE_GPU : FMM_SCHEDULE_CPU;
  o.gpu_sms = rates->device[FMM_DEVICE_GPU].units; /* all of them, or the part that is calibrated */
  o.threads = threads;
  o.oversubscribe = 1;
  return o;
}

/* What the model sees of one phase of a plan. */
static fmm_sweep_sample features(const fmm_plan *plan, fmm_phase phase, fmm_sweep_kind kind) {
  const fmm_setup *s = plan->setup;
  fmm_sweep_sample f = {.phase = phase, .device = s->info.device[phase], .precision = fmm_precision_index(s->state.precision[phase]), .kind = kind};
  f.work = s->counts.total[fmm_work_on(&s->counts, phase, f.device, f.precision)];
  const fmm_roofline roofline = fmm_phase_roofline(&plan->machine, f.device, plan->pair->info, &s->counts, phase, f.precision);
  f.sample.roofline_s = roofline.seconds, f.sample.other_s = roofline.other_s;
  f.sample.entries = f.work.entries;
  f.sample.bytes = f.work.bytes / (f.precision + 1);
  f.sample.launches = fmm_phase_launches(&s->counts, phase);
  f.sample.chain = f.sample.launches * fmm_phase_unknowns(&s->counts, plan->pair->info, phase);
  f.sample.launches_s = f.sample.launches * plan->machine.device[f.device].launch_s.value;
  return f;
}

/* What a combination is evaluated from and into; results: the potentials, then the gradients. */
typedef struct arrays { double *points, *densities, *results; } arrays;

/* On the GPU phases are timed one after the other, not as a normal execution overlaps them. */
static fmm_status execute_once(fmm_plan *plan, const arrays *a, double seconds[FMM_N_PHASES]) {
  if (plan->setup->gpu) return fmm_gpu_phases_apart(plan->setup, a->densities, a->results, seconds);
  FMM_TRY(fmm_plan_execute(plan, a->densities, a->results, plan->setup->counts.gradient ? a->results + plan->setup->counts.n_targets : NULL));
  memcpy(seconds, plan->setup->info.phase_measured_s, sizeof plan->setup->info.phase_measured_s);
  return FMM_OK;
}

/* Seconds of every phase, seconds[phase][run]: one execution to warm up, then at most `repeats`, and at least one, until patience_s are spent; a warm-up that took several times as long has to do. */
static fmm_status execute(fmm_plan *plan, const arrays *a, int repeats, double patience_s, double seconds[FMM_N_PHASES][REPEATS], int *n) {
  const double several = 4;
  double start = fmm_now_s(), once[FMM_N_PHASES];
  *n = 0;
  for (int run = 0; run <= repeats; run++) {
    FMM_TRY(execute_once(plan, a, once));
    double spent = fmm_now_s() - start;
    if (run == 0 && spent < several * patience_s) continue;
    for (int phase = 0; phase < FMM_N_PHASES; phase++) seconds[phase][*n] = once[phase];
    ++*n;
    if (spent >= patience_s) break;
  }
  return FMM_OK;
}

/* The median run of every phase that has work becomes a sample, which is what a caller's evaluations take: what threads wait for one another is part of it, and the fastest of a few has less of it. */
static fmm_status measure(fmm_plan *plan, const arrays *a, double patience_s, const fmm_sweep_case *c, fmm_sweep_kind kind, fmm_samples *samples) {
  double seconds[FMM_N_PHASES][REPEATS];
  int n;
  FMM_TRY(execute(plan, a, kind == FMM_SWEEP_USUAL ? REPEATS : REPEATS_OF_FACTORS, patience_s, seconds, &n));
  for (int phase = 0; phase < FMM_N_PHASES; phase++) {
    fmm_sweep_sample s = features(plan, (fmm_phase)phase, kind);
    s.run = samples->n_runs;
    s.sample.seconds = fmm_median_rate(n, seconds[phase]).value;
    s.sample.held_out = c->held_out;
    if (s.sample.roofline_s > 0 && s.sample.seconds > 0) FMM_TRY(fmm_samples_add(samples, &s));
  }
  samples->n_runs++;
  return FMM_OK;
}

/* What a sweep runs with: machine, threads, patience with one plan's executions. */
typedef struct sweep { const fmm_machine *rates; fmm_device device; int threads; double patience_s; fmm_samples *samples; } sweep;

static fmm_status run_kind(const sweep *w, const fmm_sweep_case *c, fmm_precision precision, fmm_sweep_kind kind, const arrays *a) {
  const fmm_options options = options_of(c, w->rates, w->device, w->threads, precision, kind);
  fmm_plan *plan = NULL;
  fmm_status status = fmm_plan_create_with(&plan, &options, w->rates);
  if (status == FMM_OK) status = fmm_plan_set_points(plan, c->n_points, a->points, NULL, 0, NULL);
  if (status == FMM_OK) status = measure(plan, a, w->patience_s, c, kind, w->samples);
  fmm_plan_destroy(&plan);
  return status;
}

static fmm_status run_case(const sweep *w, const fmm_sweep_case *c) {
  static const struct { fmm_precision precision; fmm_sweep_kind kind; } runs[] = {
      {FMM_PRECISION_DOUBLE, FMM_SWEEP_USUAL}, {FMM_PRECISION_SINGLE, FMM_SWEEP_USUAL}, /* of every combination, then of those that measure factors */
      {FMM_PRECISION_DOUBLE, FMM_SWEEP_GRADIENT}, {FMM_PRECISION_SINGLE, FMM_SWEEP_GRADIENT}, {FMM_PRECISION_SINGLE, FMM_SWEEP_COARSE}, {FMM_PRECISION_SINGLE, FMM_SWEEP_COARSE_GRADIENT},
      {FMM_PRECISION_DOUBLE, FMM_SWEEP_NEAR}, {FMM_PRECISION_DOUBLE, FMM_SWEEP_FULL}};
  const int n_runs = c->factors ? sizeof runs / sizeof *runs : 2;
  arrays a = {0};
  fmm_status status;
  FMM_CHECK(FMM_ALLOCATE(&a.points, 3 * c->n_points, "the points of the sweep"));
  FMM_CHECK(FMM_ALLOCATE(&a.densities, c->n_points, "the densities of the sweep"));
  FMM_CHECK(FMM_ALLOCATE(&a.results, (c->factors ? 4 : 1) * c->n_points, "the results of the sweep"));
  FMM_CHECK(fmm_generate_points(c->distribution, c->n_points, SEED, a.points, w->threads));
  FMM_CHECK(fmm_generate_densities("unit", c->n_points, SEED, a.densities, w->threads));
  for (int i = 0; i < n_runs; i++) FMM_CHECK(run_kind(w, c, runs[i].precision, runs[i].kind, &a));
done:
  FMM_FREE(&a.points);
  FMM_FREE(&a.densities);
  FMM_FREE(&a.results);
  return status;
}

static fmm_status report(fmm_progress *progress, void *context, const fmm_sweep_case *c, double fraction) {
  char text[160];
  snprintf(text, sizeof text, "evaluating %s, %lld points, q %d, order %d", c->distribution, (long long)c->n_points, c->leaf_size, c->order);
  if (progress && progress(context, text, fraction)) return FMM_FAIL(FMM_ERR_INTERRUPTED, "calibration stopped while %s", text);
  return FMM_OK;
}

fmm_status fmm_sweep(const fmm_machine *rates, fmm_device device, fmm_effort effort, int threads, double budget_s, fmm_progress *progress,
                     void *context, fmm_samples *samples) {
  sweep w = {rates, device, threads, budget_s / 100, samples};
  double start = fmm_now_s(), longest = 0;
  int total = 1;
  for (int i = 0; i < total; i++) {
    double begin = fmm_now_s() - start;
    if (i >= FEWEST_CASES && begin + longest > budget_s) break; /* the next one may be as long as the longest so far */
    fmm_sweep_case c = fmm_sweep_case_at(device, effort, threads, i, &total);
    FMM_TRY(report(progress, context, &c, begin < budget_s ? begin / budget_s : 1));
    FMM_TRY(run_case(&w, &c));
    double taken = fmm_now_s() - start - begin;
    if (taken > longest) longest = taken;
  }
  return FMM_OK;
}
