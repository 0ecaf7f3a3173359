/* Times one standard case on CPU cores and prints one JSON object a line: what the CPU's speed goals are measured with.
 * bench-cpu KEY=VALUE ...: dist, n, densities, seed, digits or tolerance, gradient, kernel, order, leaf, root, precision (auto|double|mixed|single),
 * schedule, threads, runs, samples (error against direct sums there), profile. Zero or auto: the library chooses.
 *   write=FILE  puts the case there, for programs to compare with: int64 n, samples; points n x 3, densities n, int64 rows[samples], then at those
 *               rows the exact potential sum q/r and its gradient (samples x 3); doubles, this machine's byte order
 *   read=FILE   takes the case from there, direct sums included
 *   rates=LEAF  adds the rates of U's kernels with leaves of so many points in cache (bench_pair_rates.h). As rates grow with leaves, take what is nearest to
 *               the tree's own, points_per_leaf. They are timed before and after every timed evaluation too, by as many threads: of_cache is the evaluation's
 *               rate of U over the mean of those two, which a machine whose speed changes within seconds hardly moves.
 *   serve=1     after the warm-up prints the line and then executes once for every line of standard input, printing its seconds: two programs
 *               are raced by asking them in turns. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "kernels/simd.h"
#include "runtime/direct.h"
#include "runtime/file.h"
#include "runtime/generate.h"
#include "runtime/plan.h"
#include "tools/bench_options.h"
#include "tools/bench_pair_rates.h"

enum { MAX_RUNS = 101 };
#ifdef __clang__
static const char *const compiler = __VERSION__;
#else
static const char *const compiler = "gcc " __VERSION__;
#endif

typedef struct bench {
  const char *dist, *densities, *read, *write;
  int64_t n, samples;
  int runs, serve, rates;
  fmm_options options;
  const fmm_pair_info *pair;
  double *points, *density, *potential, *gradient;
  int64_t *rows;
  double *exact, *exact_gradient; /* at rows: samples, samples x 3 */
  fmm_plan *plan;
  double total_s[MAX_RUNS], phase_s[FMM_N_PHASES][MAX_RUNS], around_s[MAX_RUNS]; /* around: gathering, checking and scattering */
  double u_rate[MAX_RUNS], of_cache[MAX_RUNS]; /* of the U list, interactions a second, and over that of its kernels in cache */
} bench;

static double number_of(int argc, char **argv, const char *key, double otherwise) {
  const char *text = fmm_bench_value(argc, argv, key, NULL);
  return text ? atof(text) : otherwise;
}
/* Index of the key's value among names, the first of which is the default. */
static int choice_of(int argc, char **argv, const char *key, const char *const *names) {
  const char *text = fmm_bench_value(argc, argv, key, names[0]);
  for (int i = 0; names[i]; i++)
    if (!strcmp(text, names[i])) return i;
  fprintf(stderr, "bench-cpu: %s=%s is not known; %s is taken\n", key, text, names[0]);
  return 0;
}

static fmm_status read_options(bench *b, int argc, char **argv) {
  static const char *const precisions[] = {"auto", "double", "mixed", "single", NULL};
  static const char *const schedules[] = {"cpu", "auto", NULL};
  fmm_options *o = &b->options;
  FMM_TRY(fmm_options_init(o));
  b->dist = fmm_bench_value(argc, argv, "dist", "uniform");
  b->densities = fmm_bench_value(argc, argv, "densities", "signed");
  b->read = fmm_bench_value(argc, argv, "read", NULL);
  b->write = fmm_bench_value(argc, argv, "write", NULL);
  b->n = (int64_t)number_of(argc, argv, "n", 100000);
  b->samples = (int64_t)number_of(argc, argv, "samples", 1000);
  b->runs = (int)fmin(number_of(argc, argv, "runs", 5), MAX_RUNS);
  b->serve = number_of(argc, argv, "serve", 0) != 0;
  b->rates = (int)number_of(argc, argv, "rates", 0);
  o->kernel = fmm_bench_value(argc, argv, "kernel", "laplace");
  o->tolerance = number_of(argc, argv, "tolerance", pow(10, -number_of(argc, argv, "digits", 6)));
  o->gradient = number_of(argc, argv, "gradient", 0) != 0;
  o->order = (int)number_of(argc, argv, "order", 0);
  o->leaf_size = (int)number_of(argc, argv, "leaf", 0);
  o->root_scale = number_of(argc, argv, "root", 0);
  o->precision = (fmm_precision)choice_of(argc, argv, "precision", precisions);
  o->schedule = choice_of(argc, argv, "schedule", schedules) ? FMM_SCHEDULE_AUTO : FMM_SCHEDULE_CPU;
  o->threads = (int)number_of(argc, argv, "threads", 0);
  o->profile_path = fmm_bench_value(argc, argv, "profile", NULL);
  o->scale = 1; /* plain sums, as in the case file */
  FMM_TRY(fmm_pair_info_find(o->kernel, &b->pair));
  if (b->rates && o->schedule != FMM_SCHEDULE_CPU) return FMM_FAIL(FMM_ERR_ARGUMENT, "rates=%d are of CPU cores and of U there: leave out schedule=auto or rates=", b->rates);
  if ((b->read || b->write) && b->pair->components > 1)
    return FMM_FAIL(FMM_ERR_ARGUMENT, "%s holds one density a point and kernel %s takes %d: leave out read= and write=, or take a kernel of one component", b->read ? b->read : b->write, o->kernel, b->pair->components);
  return FMM_OK;
}

/* ---- the case: made, or from a file ---- */

static fmm_status make_case(bench *b, uint64_t seed) {
  FMM_TRY(FMM_ALLOCATE(&b->points, 3 * b->n, "points"));
  FMM_TRY(FMM_ALLOCATE(&b->density, b->n * b->pair->components, "densities"));
  FMM_TRY(fmm_generate_points(b->dist, b->n, seed, b->points, 1));
  return fmm_generate_densities(b->densities, b->n * b->pair->components, seed + 1, b->density, 1);
}

static fmm_status allocate_samples(bench *b) {
  FMM_TRY(FMM_ALLOCATE(&b->rows, b->samples, "samples"));
  FMM_TRY(FMM_ALLOCATE(&b->exact, b->samples, "direct sums"));
  return FMM_ALLOCATE(&b->exact_gradient, 3 * b->samples, "direct sums");
}

/* The file's parts after its head, in order. */
enum { N_PARTS = 5 };
typedef struct part { void *data; size_t bytes; } part;
static void list_parts(const bench *b, part parts[N_PARTS]) {
  size_t n = (size_t)b->n, samples = (size_t)b->samples;
  parts[0] = (part){b->points, 24 * n}, parts[1] = (part){b->density, 8 * n};
  parts[2] = (part){b->rows, 8 * samples}, parts[3] = (part){b->exact, 8 * samples}, parts[4] = (part){b->exact_gradient, 24 * samples};
}

static fmm_status write_case(const bench *b) {
  int64_t head[2] = {b->n, b->samples};
  part parts[N_PARTS];
  fmm_replacement file;
  list_parts(b, parts);
  FMM_TRY(fmm_replace_begin(&file, b->write));
  fmm_status status = fmm_replace_write(&file, head, sizeof head);
  for (int i = 0; i < N_PARTS && status == FMM_OK; i++) status = fmm_replace_write(&file, parts[i].data, parts[i].bytes);
  if (status == FMM_OK) status = fmm_replace_commit(&file);
  fmm_replace_abandon(&file);
  return status;
}

static fmm_status read_part(fmm_reader *file, part p) {
  size_t got;
  FMM_TRY(fmm_reader_read(file, p.data, p.bytes, &got));
  return got == p.bytes ? FMM_OK : FMM_FAIL(FMM_ERR_INPUT, "%s is shorter than its case", file->path);
}

static fmm_status read_parts(bench *b, fmm_reader *file) {
  int64_t head[2];
  part parts[N_PARTS];
  FMM_TRY(read_part(file, (part){head, sizeof head}));
  if (head[0] < 1 || head[1] < 1) return FMM_FAIL(FMM_ERR_INPUT, "%s holds no case", b->read);
  b->n = head[0], b->samples = head[1];
  FMM_TRY(FMM_ALLOCATE(&b->points, 3 * b->n, "points"));
  FMM_TRY(FMM_ALLOCATE(&b->density, b->n, "densities"));
  FMM_TRY(allocate_samples(b));
  list_parts(b, parts);
  for (int i = 0; i < N_PARTS; i++) FMM_TRY(read_part(file, parts[i]));
  return FMM_OK;
}

static fmm_status read_case(bench *b) {
  fmm_reader file;
  FMM_TRY(fmm_reader_open(&file, b->read));
  fmm_status status = read_parts(b, &file);
  fmm_reader_close(&file);
  return status;
}

/* Direct sums of potential and gradient at sampled rows. */
static fmm_status sum_directly(bench *b) {
  const fmm_pair *pair;
  double *planes = NULL, *targets = NULL, *values = NULL;
  fmm_status status;
  if (b->samples > b->n) b->samples = b->n;
  FMM_TRY(fmm_pair_find("laplace", &pair));
  FMM_TRY(allocate_samples(b));
  fmm_sample_rows(b->n, b->samples, 3, b->rows);
  FMM_CHECK(FMM_ALLOCATE(&planes, 3 * b->n, "planes of the points"));
  FMM_CHECK(FMM_ALLOCATE(&targets, 3 * b->samples, "samples"));
  FMM_CHECK(FMM_ALLOCATE(&values, 4 * b->samples, "direct sums"));
  for (int64_t i = 0; i < 3 * b->n; i++) planes[i % 3 * b->n + i / 3] = b->points[i];
  for (int64_t i = 0; i < b->samples; i++) memcpy(targets + 3 * i, b->points + 3 * b->rows[i], 3 * sizeof *targets);
  fmm_direct_case what = {.pair = pair, .n_columns = 1, .gradient = 1, .n_sources = b->n, .x = planes, .y = planes + b->n, .z = planes + 2 * b->n,
                          .density = b->density, .density_stride = b->n};
  fmm_direct_sums(&what, b->samples, targets, 2, values, NULL);
  for (int64_t i = 0; i < b->samples; i++) {
    b->exact[i] = values[4 * i];
    memcpy(b->exact_gradient + 3 * i, values + 4 * i + 1, 3 * sizeof *values);
  }
done:
  FMM_FREE(&planes);
  FMM_FREE(&targets);
  FMM_FREE(&values);
  return status;
}

static fmm_status obtain_case(bench *b, uint64_t seed) {
  if (b->read) return read_case(b);
  FMM_TRY(make_case(b, seed));
  if (b->samples > 0 && !strcmp(b->options.kernel, "laplace")) FMM_TRY(sum_directly(b));
  else b->samples = 0;
  return b->write ? write_case(b) : FMM_OK;
}

/* ---- measuring ---- */

static fmm_status execute_once(bench *b, int run) {
  fmm_plan_info info = {.struct_size = sizeof info};
  FMM_TRY(fmm_plan_execute(b->plan, b->density, b->potential, b->gradient));
  FMM_TRY(fmm_plan_get_info(b->plan, &info));
  b->total_s[run] = b->around_s[run] = info.last_evaluation_s;
  for (int p = 0; p < FMM_N_PHASES; p++) b->phase_s[p][run] = info.phase_measured_s[p], b->around_s[run] -= info.phase_measured_s[p];
  return FMM_OK;
}

/* As the U list prepares its sums. */
static fmm_pair_sum u_sum(const bench *b) {
  const fmm_state *state = &b->plan->setup->state;
  fmm_pair_sum sum;
  fmm_pair_sum_prepare(&sum, state->pair, state->params, 1, state->gradient, state->precision[FMM_PHASE_ULIST], state->tolerance);
  fmm_pair_sum_allow_coarse(&sum);
  return sum;
}

/* Of U's kernels in cache, by the evaluation's threads, bound as there. */
static fmm_status time_kernels(const bench *b, int both, double seconds, fmm_pair_rate *rate) {
  fmm_pair_sum sum = u_sum(b);
  fmm_plan_bind(b->plan, b->n, b->n);
  fmm_status status = fmm_bench_pair_rate(&sum, both, b->rates, b->plan->threads, seconds, rate);
  fmm_binding_end(b->plan->binding);
  return status;
}

/* An evaluation between two timings of the kernels that its U list takes. */
static fmm_status execute_between_rates(bench *b, int run) {
  const double seconds = 0.004; /* long against waking threads, short against an evaluation */
  fmm_pair_sum sum = u_sum(b);
  fmm_pair_rate before, after;
  int both = fmm_pair_sum_prefers_both(&sum);
  FMM_TRY(time_kernels(b, both, seconds, &before));
  FMM_TRY(execute_once(b, run));
  FMM_TRY(time_kernels(b, both, seconds, &after));
  b->u_rate[run] = b->plan->setup->counts.total[FMM_PHASE_ULIST].pairs / b->phase_s[FMM_PHASE_ULIST][run];
  b->of_cache[run] = b->u_rate[run] / (0.5 * (before.middle + after.middle));
  return FMM_OK;
}

static fmm_status measure(bench *b) {
  FMM_TRY(FMM_ALLOCATE(&b->potential, b->n * b->pair->outputs, "potentials"));
  if (b->options.gradient) FMM_TRY(FMM_ALLOCATE(&b->gradient, 3 * b->n * b->pair->outputs, "gradients"));
  FMM_TRY(fmm_plan_create(&b->plan, &b->options));
  FMM_TRY(fmm_plan_set_points(b->plan, b->n, b->points, NULL, 0, NULL));
  FMM_TRY(execute_once(b, 0)); /* the warm-up; the only one when no runs are asked */
  for (int run = 0; run < b->runs && !b->serve; run++) FMM_TRY(b->rates ? execute_between_rates(b, run) : execute_once(b, run));
  return FMM_OK;
}

static double relative_error(int64_t n, const int64_t *rows, int width, const double *computed, const double *exact) {
  double error = 0, size = 0;
  for (int64_t i = 0; i < n; i++)
    for (int k = 0; k < width; k++) {
      double e = exact[i * width + k], d = computed[rows[i] * width + k] - e;
      error += d * d, size += e * e;
    }
  return sqrt(error / size);
}

/* ---- the report ---- */

static json_t *number(double value) { return isfinite(value) ? json_real(value) : json_null(); }

/* V's multiply-adds a second, over the phase's whole time, transforms and what else included, and as a fraction of the profile's peak in V's precision:
 *   usual   8 flops for each true pair of boxes (`pairs`), frequency and pair of components: what a product of spectra box by box takes. Frequencies are
 *           those of the half that Hermitian symmetry leaves, which are the ones multiplied: (2p-1)^2 (p-1) + (2p-1) p
 *   done    what the products really do: 27 sums for the 64 pairs of two families of siblings, absent and adjacent children included; without the padding of vectors
 *           and without transforms (`flops` has these). */
static void add_vlist_rates(const bench *b, double seconds, json_t *phase) {
  const fmm_setup *setup = b->plan->setup;
  const fmm_count_case what = {.pair = b->pair, .order = setup->counts.order, .n_columns = 1, .gradient = b->options.gradient};
  const fmm_work *work = &setup->counts.total[FMM_PHASE_VLIST];
  fmm_machine machine = b->plan->machine;
  fmm_machine_use_units(&machine, FMM_DEVICE_CPU, b->plan->threads);
  fmm_vlist_work v = fmm_vlist_work_of(&what);
  double peak = machine.device[FMM_DEVICE_CPU].fma_flops_per_s[setup->state.precision[FMM_PHASE_VLIST] == FMM_PRECISION_SINGLE].value;
  double components = b->pair->equivalent_components, usual = 8 * work->pairs * v.frequencies * components * components, done = work->entries * v.block_flops;
  json_object_set_new(phase, "frequencies", number(v.frequencies));
  json_object_set_new(phase, "peak_flops_per_s", number(peak));
  json_object_set_new(phase, "usual", json_pack("{s:f, s:o, s:o}", "flops", usual, "flops_per_s", number(usual / seconds), "of_peak", number(usual / seconds / peak)));
  json_object_set_new(phase, "done", json_pack("{s:f, s:o, s:o}", "flops", done, "flops_per_s", number(done / seconds), "of_peak", number(done / seconds / peak)));
}

static json_t *phases_object(bench *b, const fmm_plan_info *info, int runs) {
  static const char *const precisions[] = {"auto", "double", "mixed", "single"};
  json_t *phases = json_object();
  for (int p = 0; p < FMM_N_PHASES; p++) {
    double seconds = fmm_bench_median(runs, b->phase_s[p]);
    const fmm_work *work = &b->plan->setup->counts.total[p];
    json_object_set_new(phases, fmm_phase_names[p], json_pack("{s:o, s:o, s:o, s:s, s:f, s:f, s:f}", "seconds", number(seconds), "predicted_s", number(info->phase_predicted_s[p]),
                                                              "limit_s", number(info->phase_limit_s[p]), "precision", precisions[info->precision[p]], "pairs", work->pairs,
                                                              "flops", work->flops, "bytes", work->bytes));
  }
  if (info->schedule == FMM_SCHEDULE_CPU && info->order) add_vlist_rates(b, fmm_bench_median(runs, b->phase_s[FMM_PHASE_VLIST]), json_object_get(phases, fmm_phase_names[FMM_PHASE_VLIST]));
  json_object_set_new(phases, "gather_scatter", json_pack("{s:o}", "seconds", number(fmm_bench_median(runs, b->around_s))));
  return phases;
}

static json_t *setup_object(const bench *b, const fmm_plan_info *info) {
  json_t *parts = json_pack("{s:f}", "seconds", info->setup_s);
  for (int p = 0; p < FMM_N_SETUP_PARTS; p++) json_object_set_new(parts, fmm_setup_part_names[p], number(b->plan->setup->part_s[p]));
  return parts;
}

static json_t *memory_object(const bench *b, const fmm_plan_info *info) {
  struct rusage usage = {0};
  getrusage(RUSAGE_SELF, &usage);
  double callers = (double)b->n * (b->options.gradient ? 64 : 40); /* points, densities, results are the caller's */
  return json_pack("{s:I, s:f, s:f}", "process_peak", (json_int_t)usage.ru_maxrss * 1024, "plan_bytes_per_point", (double)info->host_bytes / (double)b->n,
                   "peak_bytes_per_point", ((double)fmm_memory_peak() - callers) / (double)b->n);
}

static json_t *case_object(const bench *b) {
  const fmm_options *o = &b->options;
  return json_pack("{s:s, s:I, s:s, s:s, s:f, s:b}", "points", b->read ? b->read : b->dist, "n", (json_int_t)b->n, "densities", b->read ? "of the file" : b->densities, "kernel",
                   o->kernel, "tolerance", o->tolerance, "gradient", o->gradient);
}

/* Sorts values. */
static json_t *spread_object(int runs, double *values) {
  double middle = fmm_bench_median(runs, values);
  return json_pack("{s:o, s:o, s:o}", "median", number(middle), "min", number(values[0]), "max", number(values[runs - 1]));
}

static fmm_status add_rates(bench *b, int runs, json_t *line) {
  const double seconds = 0.05;
  fmm_pair_sum sum = u_sum(b);
  fmm_pair_rate one, both = {0};
  FMM_TRY(time_kernels(b, 0, seconds, &one));
  if (fmm_pair_sum_can_add_both(&sum)) FMM_TRY(time_kernels(b, 1, seconds, &both));
  json_t *rates = json_pack("{s:i, s:f, s:f, s:s}", "leaf", b->rates, "one_direction", one.best, "both_directions", both.best, "taken", fmm_pair_sum_prefers_both(&sum) ? "both_directions" : "one_direction");
  if (b->runs > 0 && !b->serve) {
    json_object_set_new(rates, "ulist", number(fmm_bench_median(runs, b->u_rate)));
    json_object_set_new(rates, "of_cache", spread_object(runs, b->of_cache));
  }
  json_object_set_new(line, "pair_rates", rates);
  return FMM_OK;
}

static fmm_status report(bench *b) {
  fmm_plan_info info = {.struct_size = sizeof info};
  int runs = b->runs > 0 && !b->serve ? b->runs : 1;
  FMM_TRY(fmm_plan_get_info(b->plan, &info));
  json_t *line = json_pack("{s:o, s:i, s:i, s:f, s:i, s:I, s:i, s:s}", "case", case_object(b), "order", info.order, "leaf", info.leaf_size, "root", info.root_scale, "threads",
                           info.threads, "leaves", (json_int_t)info.n_leaves, "levels", info.n_levels, "plan_id", info.plan_id);
  json_object_set_new(line, "points_per_leaf", number((double)b->n / (double)info.n_leaves));
  json_object_set_new(line, "compiler", json_string(compiler));
  json_object_set_new(line, "simd", json_string(fmm_simd_name(fmm_simd_level())));
  if (b->samples) json_object_set_new(line, "error", number(relative_error(b->samples, b->rows, 1, b->potential, b->exact)));
  if (b->samples && b->gradient) json_object_set_new(line, "gradient_error", number(relative_error(b->samples, b->rows, 3, b->gradient, b->exact_gradient)));
  double middle = fmm_bench_median(runs, b->total_s);
  json_object_set_new(line, "evaluation_s", json_pack("{s:f, s:f, s:f, s:i}", "median", middle, "min", b->total_s[0], "max", b->total_s[runs - 1], "runs", b->serve ? 1 : b->runs));
  json_object_set_new(line, "predicted_s", number(info.predicted_s));
  json_object_set_new(line, "phases", phases_object(b, &info, runs));
  json_object_set_new(line, "setup_s", setup_object(b, &info));
  json_object_set_new(line, "memory", memory_object(b, &info));
  fmm_status status = b->rates ? add_rates(b, runs, line) : FMM_OK;
  char *text = json_dumps(line, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(5));
  json_decref(line);
  if (status != FMM_OK) free(text);
  if (status != FMM_OK) return status;
  if (!text) return FMM_FAIL(FMM_ERR_MEMORY, "no memory for the report");
  puts(text);
  free(text);
  return fflush(stdout) ? FMM_FAIL(FMM_ERR_FILE, "standard output cannot be written") : FMM_OK;
}

static fmm_status serve(bench *b) {
  char line[64];
  while (fgets(line, sizeof line, stdin)) {
    FMM_TRY(execute_once(b, 0));
    printf("%.6f\n", b->total_s[0]);
    fflush(stdout);
  }
  return FMM_OK;
}

int main(int argc, char **argv) {
  static bench b;
  fmm_status status = read_options(&b, argc, argv);
  if (status == FMM_OK) status = obtain_case(&b, (uint64_t)number_of(argc, argv, "seed", 1));
  if (status == FMM_OK) status = measure(&b);
  if (status == FMM_OK) status = report(&b);
  if (status == FMM_OK && b.serve) status = serve(&b);
  if (status != FMM_OK) fprintf(stderr, "bench-cpu: %s: %s (%s)\n", fmm_status_name(status), fmm_last_error(), fmm_last_error_where());
  fmm_plan_destroy(&b.plan);
  double **arrays[] = {&b.points, &b.density, &b.potential, &b.gradient, &b.exact, &b.exact_gradient};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) FMM_FREE(arrays[i]);
  FMM_FREE(&b.rows);
  return status == FMM_OK ? 0 : fmm_status_exit_code(status);
}
