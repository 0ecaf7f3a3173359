/* The line that bench-cpu prints of a team (bench_cpu_report.h). */
#include "tools/bench_cpu_report.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "kernels/simd.h"
#include "tools/bench_options.h"

#ifdef __clang__
static const char *const compiler = __VERSION__;
#else
static const char *const compiler = "gcc " __VERSION__;
#endif

static json_t *number(double value) { return isfinite(value) ? json_real(value) : json_null(); }

typedef struct spread { double median, min, max; } spread;
static spread spread_of(int n, const double *values) {
  double sorted[FMM_BENCH_MOST_RUNS];
  memcpy(sorted, values, (size_t)n * sizeof *sorted);
  double median = fmm_bench_median(n, sorted);
  return (spread){median, sorted[0], sorted[n - 1]};
}
static json_t *spread_object(int n, const double *values) {
  spread s = spread_of(n, values);
  return json_pack("{s:o, s:o, s:o}", "median", number(s.median), "min", number(s.min), "max", number(s.max));
}

/* Evaluations that there are times of: the warm-up when none was timed. */
static int runs_of(const fmm_bench_team *team) { return team->runs ? team->runs : 1; }

/* V's multiply-adds a second, over the phase's whole time, transforms and what else included, and as a fraction of the profile's peak in V's precision:
 *   usual   8 flops for each true pair of boxes (`pairs`), frequency and pair of components: what a product of spectra box by box takes. Frequencies are
 *           those of the half that Hermitian symmetry leaves, which are the ones multiplied: (2p-1)^2 (p-1) + (2p-1) p
 *   done    what the products really do: 27 sums for the 64 pairs of two families of siblings, absent and adjacent children included; without the padding of vectors
 *           and without transforms (`flops` has these). */
static void add_vlist_rates(const fmm_bench_team *team, json_t *phase) {
  const fmm_setup *setup = team->plan->setup;
  const double seconds = spread_of(runs_of(team), team->phase_s[FMM_PHASE_VLIST]).median;
  const fmm_pair_info *pair = team->what->pair;
  const fmm_count_case what = {.pair = pair, .order = setup->counts.order, .n_columns = 1, .gradient = setup->counts.gradient};
  const fmm_work *work = &setup->counts.total[FMM_PHASE_VLIST];
  fmm_machine machine = team->plan->machine;
  fmm_machine_use_units(&machine, FMM_DEVICE_CPU, team->threads);
  fmm_vlist_work v = fmm_vlist_work_of(&what);
  double peak = machine.device[FMM_DEVICE_CPU].fma_flops_per_s[setup->state.precision[FMM_PHASE_VLIST] == FMM_PRECISION_SINGLE].value;
  double components = pair->equivalent_components, usual = 8 * work->pairs * v.frequencies * components * components, done = work->flops - work->other;
  json_object_set_new(phase, "frequencies", number(v.frequencies));
  json_object_set_new(phase, "peak_flops_per_s", number(peak));
  json_object_set_new(phase, "usual", json_pack("{s:f, s:o, s:o}", "flops", usual, "flops_per_s", number(usual / seconds), "of_peak", number(usual / seconds / peak)));
  json_object_set_new(phase, "done", json_pack("{s:f, s:o, s:o}", "flops", done, "flops_per_s", number(done / seconds), "of_peak", number(done / seconds / peak)));
}

static json_t *phases_object(const fmm_bench_team *team, const fmm_plan_info *info) {
  static const char *const precisions[] = {"auto", "double", "mixed", "single"};
  json_t *phases = json_object();
  for (int p = 0; p < FMM_N_PHASES; p++) {
    double seconds = spread_of(runs_of(team), team->phase_s[p]).median;
    const fmm_work *work = &team->plan->setup->counts.total[p];
    json_object_set_new(phases, fmm_phase_names[p], json_pack("{s:o, s:o, s:o, s:s, s:f, s:f, s:f}", "seconds", number(seconds), "predicted_s", number(info->phase_predicted_s[p]),
                                                              "limit_s", number(info->phase_limit_s[p]), "precision", precisions[info->precision[p]], "pairs", work->pairs,
                                                              "flops", work->flops, "bytes", work->bytes));
  }
  if (info->schedule == FMM_SCHEDULE_CPU && info->order) add_vlist_rates(team, json_object_get(phases, fmm_phase_names[FMM_PHASE_VLIST]));
  json_object_set_new(phases, "gather_scatter", json_pack("{s:o}", "seconds", number(spread_of(runs_of(team), team->around_s).median)));
  return phases;
}

static json_t *setup_object(const fmm_bench_team *team, const fmm_plan_info *info) {
  json_t *parts = json_pack("{s:f}", "seconds", info->setup_s);
  for (int p = 0; p < FMM_N_SETUP_PARTS; p++) json_object_set_new(parts, fmm_setup_part_names[p], number(team->plan->setup->part_s[p]));
  return parts;
}

/* Peaks are of the whole process: of all teams together. */
static json_t *memory_object(const fmm_bench_team *team, const fmm_plan_info *info) {
  struct rusage usage = {0};
  double n = (double)team->what->n, callers = n * (team->gradient ? 64 : 40); /* points, densities, results are the caller's */
  getrusage(RUSAGE_SELF, &usage);
  return json_pack("{s:I, s:f, s:f}", "process_peak", (json_int_t)usage.ru_maxrss * 1024, "plan_bytes_per_point", (double)info->host_bytes / n, "peak_bytes_per_point",
                   ((double)fmm_memory_peak() - callers) / n);
}

static json_t *case_object(const fmm_bench_case *c, const fmm_options *o) {
  return json_pack("{s:s, s:I, s:s, s:s, s:f, s:b}", "points", c->read ? c->read : c->dist, "n", (json_int_t)c->n, "densities", c->read ? "of the file" : c->densities, "kernel",
                   o->kernel, "tolerance", o->tolerance, "gradient", o->gradient);
}

static fmm_status add_rates(const fmm_bench_team *team, json_t *line) {
  const double seconds = 0.05;
  fmm_pair_sum sum = fmm_bench_team_sum(team);
  fmm_pair_rate one, both = {0};
  FMM_TRY(fmm_bench_team_time_kernels(team, 0, seconds, &one));
  if (fmm_pair_sum_can_add_both(&sum)) FMM_TRY(fmm_bench_team_time_kernels(team, 1, seconds, &both));
  json_t *rates = json_pack("{s:i, s:f, s:f, s:s}", "leaf", team->rates, "one_direction", one.best, "both_directions", both.best,
                            "taken", fmm_pair_sum_prefers_both(&sum) ? "both_directions" : "one_direction");
  if (team->runs) {
    json_object_set_new(rates, "around", number(spread_of(team->runs, team->cache_rate).median));
    json_object_set_new(rates, "ulist", number(spread_of(team->runs, team->u_rate).median));
    json_object_set_new(rates, "of_cache", spread_object(team->runs, team->of_cache));
  }
  json_object_set_new(line, "pair_rates", rates);
  return FMM_OK;
}

/* Of a turn: how much faster than the base, of as much as there are more threads. slow, fast: seconds of base and team, or rates of team and base. */
static json_t *efficiencies(const fmm_bench_team *team, const fmm_bench_team *base, const double *slow, const double *fast) {
  double of_turn[FMM_BENCH_MOST_RUNS];
  for (int run = 0; run < team->runs; run++) of_turn[run] = slow[run] / fast[run] * base->threads / team->threads;
  return spread_object(team->runs, of_turn);
}

static json_t *efficiency_object(const fmm_bench_team *team, const fmm_bench_team *base) {
  json_t *object = json_pack("{s:i, s:o}", "threads_of_base", base->threads, "whole", efficiencies(team, base, base->total_s, team->total_s));
  for (int p = 0; p < FMM_N_PHASES; p++)
    if (team->plan->setup->counts.total[p].pairs > 0) json_object_set_new(object, fmm_phase_names[p], efficiencies(team, base, base->phase_s[p], team->phase_s[p]));
  if (team->rates) json_object_set_new(object, "kernels_in_cache", efficiencies(team, base, team->cache_rate, base->cache_rate));
  return object;
}

static void add_errors(const fmm_bench_team *team, json_t *line) {
  const fmm_bench_case *c = team->what;
  if (!c->samples) return;
  json_object_set_new(line, "error", number(fmm_bench_relative_error(c->samples, c->rows, 1, team->potential, c->exact)));
  if (team->gradient) json_object_set_new(line, "gradient_error", number(fmm_bench_relative_error(c->samples, c->rows, 3, team->gradient, c->exact_gradient)));
}

static fmm_status print(const json_t *line) {
  char *text = json_dumps(line, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(5));
  if (!text) return FMM_FAIL(FMM_ERR_MEMORY, "no memory for the report");
  puts(text);
  free(text);
  return fflush(stdout) ? FMM_FAIL(FMM_ERR_FILE, "standard output cannot be written") : FMM_OK;
}

fmm_status fmm_bench_report(const fmm_bench_team *team, const fmm_bench_team *base, const fmm_options *options) {
  fmm_plan_info info = {.struct_size = sizeof info};
  FMM_TRY(fmm_plan_get_info(team->plan, &info));
  json_t *line = json_pack("{s:o, s:i, s:i, s:f, s:i, s:I, s:i, s:s}", "case", case_object(team->what, options), "order", info.order, "leaf", info.leaf_size, "root",
                           info.root_scale, "threads", info.threads, "leaves", (json_int_t)info.n_leaves, "levels", info.n_levels, "plan_id", info.plan_id);
  json_object_set_new(line, "points_per_leaf", number((double)team->what->n / (double)info.n_leaves));
  json_object_set_new(line, "compiler", json_string(compiler));
  json_object_set_new(line, "simd", json_string(fmm_simd_name(fmm_simd_level())));
  json_object_set_new(line, "profile", json_string(info.profile_path)); /* "": predictions and peaks are nominal */
  add_errors(team, line);
  spread total = spread_of(runs_of(team), team->total_s);
  json_object_set_new(line, "evaluation_s", json_pack("{s:f, s:f, s:f, s:i}", "median", total.median, "min", total.min, "max", total.max, "runs", team->runs));
  json_object_set_new(line, "predicted_s", number(info.predicted_s));
  json_object_set_new(line, "phases", phases_object(team, &info));
  json_object_set_new(line, "setup_s", setup_object(team, &info));
  json_object_set_new(line, "memory", memory_object(team, &info));
  if (base && team->runs) json_object_set_new(line, "efficiency", efficiency_object(team, base));
  fmm_status status = team->rates ? add_rates(team, line) : FMM_OK;
  if (status == FMM_OK) status = print(line);
  json_decref(line);
  return status;
}

fmm_status fmm_bench_report_moves(const fmm_bench_team *team) {
  fmm_plan_info info = {.struct_size = sizeof info};
  FMM_TRY(fmm_plan_get_info(team->plan, &info));
  json_t *line = json_pack("{s:i, s:i, s:i, s:f, s:o, s:o}", "threads", info.threads, "moves", team->moves, "leaf", info.leaf_size, "root", info.root_scale, "moved_s",
                           spread_object(team->moves, team->moved_s), "set_s", spread_object(team->moves, team->set_s));
  fmm_status status = print(line);
  json_decref(line);
  return status;
}
