/* Times the GPU's phases on a standard case, alone and together, and checks the sum against direct sums: what the speed goals are measured with.
 * bench-gpu KEY=VALUE ...: file (points and densities) or dist, n, order, leaf, root, digits, gradient, kernel, columns, precision (double|mixed|single), densities, samples, runs, sms, threads;
 * pinned (1: host to host also from and to page-locked arrays); setups (how often the device's plan is made, the first time with kernels that are not there yet; of the last
 * one its parts are told); runs=0: nothing is evaluated;
 * most_ms, most_error: what device time and error must not exceed (else the exit code is 1).
 * Device time is from the first phase's start to the last one's end by CUDA events; host time is host to host around begin .. finish. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/column_units.h"
#include "runtime/direct.h"
#include "runtime/generate.h"
#include "runtime/gpu.h"
#include "runtime/io/input.h"
#include "runtime/plan.h"
#include "tools/bench_options.h"

enum { MAX_RUNS = 64 };
static const char *const phase_names[FMM_N_PHASES] = {"up", "ulist", "vlist", "wlist", "xlist", "down"};
static const fmm_phase order_of_run[FMM_N_PHASES] = {FMM_PHASE_UP, FMM_PHASE_ULIST, FMM_PHASE_XLIST, FMM_PHASE_VLIST, FMM_PHASE_DOWN, FMM_PHASE_WLIST};

typedef struct bench {
  const char *dist, *kernel, *densities, *precision, *file;
  int64_t n;
  int order, leaf, gradient, columns, samples, runs, sms, threads, rates, pinned, setups;
  double root, tolerance, most_ms, most_error, device_ms, error;
  fmm_tree tree;
  fmm_lists lists;
  fmm_operators *operators;
  const fmm_pair *pair;
  double params[FMM_MAX_PARAMS];
  fmm_state state;
  fmm_gpu_plan *plan;
  double *input, *planes, *results, *gradients;
} bench;

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
static void read_options(bench *b, int argc, char **argv) {
  b->file = fmm_bench_value(argc, argv, "file", NULL);
  b->most_ms = atof(fmm_bench_value(argc, argv, "most_ms", "inf"));
  b->most_error = atof(fmm_bench_value(argc, argv, "most_error", "inf"));
  b->dist = fmm_bench_value(argc, argv, "dist", "uniform");
  b->kernel = fmm_bench_value(argc, argv, "kernel", "laplace");
  b->densities = fmm_bench_value(argc, argv, "densities", "unit");
  b->precision = fmm_bench_value(argc, argv, "precision", "double");
  b->n = atoll(fmm_bench_value(argc, argv, "n", "100000"));
  b->order = atoi(fmm_bench_value(argc, argv, "order", "6"));
  b->leaf = atoi(fmm_bench_value(argc, argv, "leaf", "128"));
  b->gradient = atoi(fmm_bench_value(argc, argv, "gradient", "0"));
  b->columns = atoi(fmm_bench_value(argc, argv, "columns", "1"));
  b->samples = atoi(fmm_bench_value(argc, argv, "samples", "1000"));
  b->runs = atoi(fmm_bench_value(argc, argv, "runs", "5"));
  b->sms = atoi(fmm_bench_value(argc, argv, "sms", "0"));
  b->threads = atoi(fmm_bench_value(argc, argv, "threads", "16"));
  b->rates = atoi(fmm_bench_value(argc, argv, "rates", "0"));
  b->pinned = atoi(fmm_bench_value(argc, argv, "pinned", "0"));
  b->root = atof(fmm_bench_value(argc, argv, "root", "1"));
  b->tolerance = pow(10, -atof(fmm_bench_value(argc, argv, "digits", "6")));
  b->setups = atoi(fmm_bench_value(argc, argv, "setups", "1"));
}

/* Points in *points; densities too where the file has them. */
static fmm_status make_points(bench *b, double **points, double **densities) {
  fmm_input input = {0};
  if (!b->file) {
    FMM_TRY(FMM_ALLOCATE(points, 3 * b->n, "points"));
    return fmm_generate_points(b->dist, b->n, 1, *points, b->threads);
  }
  FMM_TRY(fmm_input_read(b->file, &input));
  b->n = input.n;
  *points = input.points;
  *densities = input.k == 1 && b->columns == 1 ? input.densities : NULL;
  return FMM_OK;
}

/* What was visible after tree and lists, and when its parts ran; parts of one name as from the first's beginning to the last's end. */
static void show_parts(const bench *b) {
  const fmm_gpu_part *part;
  const int n = fmm_gpu_plan_parts(b->plan, &part);
  printf("  parts of the last, ms:");
  for (int i = 0; i < n; i++) {
    double end = part[i].end_s;
    if (i && !strcmp(part[i].name, part[i - 1].name)) continue;
    for (int k = i + 1; k < n && !strcmp(part[i].name, part[k].name); k++) end = fmax(end, part[k].end_s);
    printf("%s %s %.1f-%.1f", i ? "," : "", part[i].name, 1e3 * part[i].begin_s, 1e3 * end);
  }
  printf("\n");
}

/* The device's plan, once more. */
static fmm_status make_plan(bench *b, const fmm_gpu_request *request, double *seconds) {
  if (b->plan) fmm_gpu_plan_destroy(&b->plan);
  const double before = now_s();
  FMM_TRY(fmm_gpu_plan_create(&b->plan, request));
  *seconds = now_s() - before;
  return FMM_OK;
}

static fmm_status set_up(bench *b) {
  double *points = NULL, *given = NULL;
  FMM_TRY(fmm_pair_find(b->kernel, &b->pair));
  FMM_TRY(fmm_pair_resolve_params(b->pair->info, 0, NULL, b->params));
  FMM_TRY(make_points(b, &points, &given));
  printf("%s n=%lld kernel=%s order=%d leaf=%d root=%.3f gradient=%d columns=%d %s densities=%s\n", b->file ? b->file : b->dist, (long long)b->n, b->kernel, b->order, b->leaf,
         b->root, b->gradient, b->columns, b->precision, given ? "the file's" : b->densities);
  double generated = now_s();
  fmm_tree_options options = {.leaf_size = b->leaf, .root_scale = b->root};
  FMM_TRY(fmm_tree_build(&b->tree, b->n, points, NULL, 0, NULL, &options, b->threads));
  FMM_FREE(&points);
  double tree = now_s();
  FMM_TRY(fmm_lists_build(&b->lists, &b->tree, fmm_surface_size(b->order), FMM_LISTS_TO_SUM, b->threads));
  double lists = now_s();
  for (int i = 0; i < b->pair->info->n_params; i++) b->params[i] *= pow(b->tree.scale, b->pair->info->params[i].length_power);
  FMM_TRY(fmm_operators_create(&b->operators, b->pair, b->params, b->order, 0.5 * b->tree.root_side, b->tree.n_levels, b->threads));
  double operators = now_s();
  int components = b->pair->info->components, outputs = b->pair->info->outputs;
  FMM_TRY(FMM_ALLOCATE(&b->input, b->n * components * b->columns, "densities"));
  FMM_TRY(FMM_ALLOCATE(&b->planes, b->n * components * b->columns, "densities"));
  FMM_TRY(FMM_ALLOCATE(&b->results, b->n * outputs * (b->gradient ? 4 : 1) * b->columns, "results"));
  FMM_TRY(FMM_ALLOCATE(&b->gradients, b->n * outputs * 3 * b->columns, "results"));
  if (given) memcpy(b->input, given, sizeof(double) * (size_t)b->n);
  else FMM_TRY(fmm_generate_densities(b->densities, b->n * components * b->columns, 2, b->input, b->threads));
  FMM_FREE(&given);
  fmm_gather_densities(&b->tree.sources, components * b->columns, b->input, b->planes, 0, NULL, b->threads);
  b->state = (fmm_state){.tree = &b->tree, .lists = &b->lists, .pair = b->pair, .params = b->params, .operators = b->operators, .n_columns = b->columns,
                         .gradient = b->gradient, .threads = b->threads, .tolerance = b->tolerance};
  const char *const names[] = {"double", "mixed", "single"};
  const fmm_precision kinds[] = {FMM_PRECISION_DOUBLE, FMM_PRECISION_MIXED, FMM_PRECISION_SINGLE};
  int kind = 0;
  while (kind < 3 && strcmp(names[kind], b->precision)) kind++;
  if (kind == 3) return FMM_FAIL(FMM_ERR_ARGUMENT, "precision %s is not one of double, mixed, single", b->precision);
  const fmm_options plan_options = {.tolerance = b->tolerance, .gradient = b->gradient, .precision = kinds[kind], .densities_spread = 1}; /* as a plan does, of densities that many points share */
  fmm_precision_sets sets;
  fmm_choose_precisions(&plan_options, b->pair->info, 0, 1, &sets);
  memcpy(b->state.precision, sets.set[0], sizeof b->state.precision);
  fmm_gpu_request request = {.state = &b->state, .phases = (1u << FMM_N_PHASES) - 1, .threads = b->threads, .sms = b->sms};
  double gpu[MAX_RUNS] = {0};
  int setups = b->setups < 1 ? 1 : b->setups < MAX_RUNS ? b->setups : MAX_RUNS;
  for (int i = 0; i < setups; i++) FMM_TRY(make_plan(b, &request, &gpu[i]));
  printf("set-up: tree %.3f lists %.3f operators %.3f gpu %.3f s; device %.0f MB, %d SMs; boxes %d leaves %d levels %d\n", tree - generated, lists - tree,
         operators - lists, gpu[0], (double)fmm_gpu_plan_device_bytes(b->plan) / 1e6, fmm_gpu_plan_sms(b->plan), b->tree.n_boxes, b->tree.n_leaves, b->tree.n_levels);
  printf("  visible after tree and lists: operators %.1f ms, then the device's plan", 1e3 * (operators - lists));
  for (int i = 0; i < setups; i++) printf(" %.1f", 1e3 * gpu[i]);
  printf(" ms\n");
  show_parts(b);
  return FMM_OK;
}

static int64_t rows_of(const bench *b, fmm_phase phase) {
  const fmm_rows *rows[FMM_N_PHASES] = {NULL, &b->lists.u, &b->lists.v, &b->lists.w, &b->lists.x, NULL};
  return rows[phase] ? rows[phase]->n_rows : b->tree.n_boxes;
}

static double u_pairs(const bench *b) {
  double pairs = 0;
  for (int32_t r = 0; r < b->lists.u.n_rows; r++) {
    int32_t box = b->lists.u.row[r];
    double sources = 0;
    for (int64_t i = b->lists.u.offset[r]; i < b->lists.u.offset[r + 1]; i++)
      sources += (double)(b->tree.source_end[b->lists.u.entry[i]] - b->tree.source_begin[b->lists.u.entry[i]]);
    pairs += sources * (double)(b->tree.target_end[box] - b->tree.target_begin[box]);
  }
  return pairs;
}

static fmm_status time_alone(bench *b) {
  double total = 0, v[MAX_RUNS], start, end;
  for (int i = 0; i < FMM_N_PHASES; i++) {
    fmm_phase phase = order_of_run[i];
    for (int run = 0; run < b->runs + 1; run++) {
      FMM_TRY(fmm_gpu_begin(b->plan, b->input, FMM_MEMORY_HOST));
      FMM_TRY(fmm_gpu_run(b->plan, phase, 0, rows_of(b, phase)));
      FMM_TRY(fmm_gpu_finish(b->plan));
      FMM_TRY(fmm_gpu_phase_span(b->plan, phase, &start, &end));
      if (run) v[run - 1] = end - start;
    }
    double t = fmm_bench_median(b->runs, v);
    total += t;
    printf("  %-6s %8.3f ms", phase_names[phase], 1e3 * t);
    if (phase == FMM_PHASE_ULIST) printf("  %.1f Gpair at %.0f Gpair/s", 1e-9 * u_pairs(b), 1e-9 * u_pairs(b) / t);
    if (phase == FMM_PHASE_VLIST) {
      const int64_t pairs = fmm_lists_v_pairs(&b->lists, &b->tree);
      printf("  %lld pairs, %.2f TFLOP/s", (long long)pairs,
             1e-12 * 8 * (double)pairs * b->operators->n_frequencies * pow(b->pair->info->equivalent_components, 2) * b->columns / t);
    }
    printf("\n");
  }
  printf("  sum    %8.3f ms\n", 1e3 * total);
  return FMM_OK;
}

static fmm_status time_together(bench *b, const char *arrays) {
  double device[MAX_RUNS], host[MAX_RUNS];
  for (int run = 0; run < b->runs + 1; run++) {
    double start = now_s(), first = INFINITY, last = 0, begin, end;
    FMM_TRY(fmm_gpu_begin(b->plan, b->input, FMM_MEMORY_HOST));
    for (int i = 0; i < FMM_N_PHASES; i++) FMM_TRY(fmm_gpu_run(b->plan, order_of_run[i], 0, rows_of(b, order_of_run[i])));
    FMM_TRY(fmm_gpu_results(b->plan, 1, 1, b->results, b->gradient ? b->gradients : NULL, FMM_MEMORY_HOST));
    FMM_TRY(fmm_gpu_finish(b->plan));
    double took = now_s() - start;
    for (int i = 0; i < FMM_N_PHASES; i++) {
      FMM_TRY(fmm_gpu_phase_span(b->plan, (fmm_phase)i, &begin, &end));
      first = fmin(first, begin), last = fmax(last, end);
    }
    if (run) device[run - 1] = last - first, host[run - 1] = took;
    double there, back;
    FMM_TRY(fmm_gpu_copy_span(b->plan, FMM_GPU_COPY_DENSITIES, &begin, &there));
    FMM_TRY(fmm_gpu_copy_span(b->plan, FMM_GPU_COPY_RESULTS, &back, &end));
    if (run == b->runs)
      printf("  last run: densities there after %.3f ms, phases from %.3f to %.3f, results on their way from %.3f to %.3f, all done after %.3f\n", 1e3 * there, 1e3 * first, 1e3 * last,
             1e3 * back, 1e3 * end, 1e3 * took);
  }
  b->device_ms = 1e3 * fmm_bench_median(b->runs, device);
  printf("  together%s: device %.3f ms, host to host %.3f ms (median of %d)\n", arrays, b->device_ms, 1e3 * fmm_bench_median(b->runs, host), b->runs);
  return FMM_OK;
}

/* The same once more with the caller's arrays locked in memory. */
static fmm_status time_pinned(bench *b) {
  double *const array[3] = {b->input, b->results, b->gradients}, device_ms = b->device_ms;
  for (int i = 0; i < 3; i++) FMM_TRY(fmm_gpu_register(array[i], fmm_memory_bytes(array[i])));
  FMM_TRY(time_together(b, " (page-locked arrays)"));
  for (int i = 0; i < 3; i++) fmm_gpu_unregister(array[i]);
  b->device_ms = device_ms;
  return FMM_OK;
}

/* Relative L2 error of potential and gradient at sampled targets. */
static fmm_status check(bench *b) {
  int outputs = b->pair->info->outputs, values = outputs * (b->gradient ? 4 : 1);
  int64_t n = b->tree.targets.n, *rows = NULL;
  double *fetched = NULL, *at = NULL, *exact = NULL;
  FMM_TRY(FMM_ALLOCATE(&fetched, n * values * b->columns, "potentials"));
  FMM_TRY(FMM_ALLOCATE(&rows, b->samples, "samples"));
  int64_t samples = fmm_sample_rows(n, b->samples, 3, rows);
  FMM_TRY(FMM_ALLOCATE(&at, 3 * samples, "samples"));
  FMM_TRY(FMM_ALLOCATE(&exact, samples * values * b->columns, "samples"));
  FMM_TRY(fmm_gpu_begin(b->plan, b->input, FMM_MEMORY_HOST));
  for (int i = 0; i < FMM_N_PHASES; i++) FMM_TRY(fmm_gpu_run(b->plan, order_of_run[i], 0, rows_of(b, order_of_run[i])));
  FMM_TRY(fmm_gpu_fetch(b->plan, FMM_GPU_POTENTIAL, fetched));
  FMM_TRY(fmm_gpu_finish(b->plan));
  if (fmm_scales_columns(b->columns, b->state.precision)) { /* what is fetched is in the columns' units */
    int *exponent = NULL;
    FMM_TRY(FMM_ALLOCATE(&exponent, b->columns, "units of columns"));
    fmm_column_exponents(b->planes, b->pair->info->components * b->columns, b->tree.sources.n, b->columns, exponent, b->threads);
    fmm_scale_columns(fetched, values * b->columns, n, b->columns, exponent, 1, b->threads);
    FMM_FREE(&exponent);
  }
  for (int64_t i = 0; i < samples; i++) at[3 * i] = b->tree.targets.x[rows[i]], at[3 * i + 1] = b->tree.targets.y[rows[i]], at[3 * i + 2] = b->tree.targets.z[rows[i]];
  fmm_direct_case what = {.pair = b->pair, .params = b->params, .n_columns = b->columns, .gradient = b->gradient, .n_sources = b->tree.sources.n,
                          .x = b->tree.sources.x, .y = b->tree.sources.y, .z = b->tree.sources.z, .density = b->planes, .density_stride = b->tree.sources.n};
  fmm_direct_sums(&what, samples, at, b->threads, exact, NULL);
  double error[2] = {0}, size[2] = {0};
  for (int64_t i = 0; i < samples; i++)
    for (int k = 0; k < values * b->columns; k++) {
      double e = exact[i * values * b->columns + k], d = fetched[(int64_t)k * n + rows[i]] - e;
      int which = b->gradient && k / b->columns % 4 > 0;
      error[which] += d * d, size[which] += e * e;
    }
  b->error = sqrt(error[0] / size[0]);
  printf("  error %.3e", b->error);
  if (b->gradient) printf(" gradient %.3e", sqrt(error[1] / size[1]));
  printf(" (relative L2, %lld samples)\n", (long long)samples);
  FMM_FREE(&fetched);
  FMM_FREE(&rows);
  FMM_FREE(&at);
  FMM_FREE(&exact);
  return FMM_OK;
}

static void show_rates(int sms) {
  static const char *const name[FMM_GPU_N_RATES] = {"fma double", "fma single", "pair double", "pair single", "memory", "h2d", "d2h", "launch"};
  for (int i = 0; i < FMM_GPU_N_RATES; i++) {
    double value = 0;
    if (fmm_gpu_measure(0, sms, (fmm_gpu_rate)i, &value) == FMM_OK) printf("rate %-12s %.4g\n", name[i], value);
    else printf("rate %-12s %s\n", name[i], fmm_last_error());
  }
}

int main(int argc, char **argv) {
  bench b = {0};
  read_options(&b, argc, argv);
  if (b.runs < 0 || b.runs > MAX_RUNS) return fprintf(stderr, "bench-gpu: runs is %d, but has to be from 0 to %d\n", b.runs, MAX_RUNS), 2;
  fmm_gpu_info info;
  fmm_gpu_query(0, &info);
  if (!info.present) return fprintf(stderr, "bench-gpu: %s\n", info.reason), 77;
  if (b.rates) show_rates(b.sms);
  fmm_status status = set_up(&b);
  if (b.runs == 0) b.samples = 0;
  if (status == FMM_OK && b.runs) status = time_together(&b, "");
  if (status == FMM_OK && b.runs && b.pinned) status = time_pinned(&b);
  if (status == FMM_OK && b.runs) status = time_alone(&b);
  if (status == FMM_OK && b.samples > 0) status = check(&b);
  if (status != FMM_OK) fprintf(stderr, "bench-gpu: %s: %s (%s)\n", fmm_status_name(status), fmm_last_error(), fmm_last_error_where());
  fflush(stdout);
  if (b.plan) fmm_gpu_plan_destroy(&b.plan);
  if (status == FMM_OK && (isfinite(b.most_ms) || isfinite(b.most_error))) {
    int met = b.device_ms <= b.most_ms && b.error <= b.most_error;
    printf("  asked: at most %.1f ms and an error of %.1e: %s\n", b.most_ms, b.most_error, met ? "met" : "NOT met");
    if (!met) return 1;
  }
  return status == FMM_OK ? 0 : fmm_status_exit_code(status);
}
