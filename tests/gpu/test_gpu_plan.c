/* The named schedules through the public interface on a GPU: errors against direct sums within the tolerance and alike on every schedule, the same bits on
 * every execution, a part of the device, plans in several threads. Exit 77 without a GPU. */
#include "test.h"

#include <jansson.h>
#include <math.h>
#include <time.h>
#include <omp.h>
#include <stdlib.h>

#include "problem.h"
#include "runtime/gpu.h"

static double error_of(int64_t n, const double *exact, const double *value) {
  double error = 0, size = 0;
  for (int64_t i = 0; i < n; i++) error += (value[i] - exact[i]) * (value[i] - exact[i]), size += exact[i] * exact[i];
  return sqrt(error / size);
}

/* Whether all of the plan is in double: the model chooses that by the machine's rates, each schedule's for itself. */
static int is_double(const problem *p) {
  fmm_plan_info info = {.struct_size = sizeof info};
  int phases = 0;
  assert_ok(fmm_plan_get_info(p->plan, &info));
  for (int phase = 0; phase < FMM_N_PHASES; phase++) phases += info.precision[phase] == FMM_PRECISION_DOUBLE;
  return phases == FMM_N_PHASES;
}

/* Prints what fails and goes on, so that one run shows all; returns the number of failures. Those of one precision err alike. */
static int all_schedules_keep_the_tolerance(problem *p, const char *name) {
  double least[2] = {INFINITY, INFINITY}, most[2] = {0, 0};
  int failures = 0;
  for (int i = 0; i < N_SCHEDULES; i++) {
    plan_for(p, schedules[i]);
    if (i == 0) assert_ok(fmm_plan_direct(p->plan, p->densities, SAMPLES, NULL, p->exact, p->options.gradient ? p->exact_gradient : NULL));
    execute(p);
    double error = error_of(SAMPLES * p->outputs, p->exact, p->potential);
    if (!(error <= p->options.tolerance)) failures++, print_error("%s, schedule %d: error %.3e is above the tolerance %.0e\n", name, (int)schedules[i], error, p->options.tolerance);
    if (p->options.gradient) {
      double slope = error_of(3 * SAMPLES * p->outputs, p->exact_gradient, p->gradient);
      if (!(slope <= p->options.tolerance)) failures++, print_error("%s, schedule %d: gradient error %.3e is above the tolerance %.0e\n", name, (int)schedules[i], slope, p->options.tolerance);
    }
    const int kind = is_double(p);
    least[kind] = fmin(least[kind], error), most[kind] = fmax(most[kind], error);
  }
  for (int kind = 0; kind < 2; kind++)
    if (most[kind] - least[kind] > 0.1 * p->options.tolerance) failures++, print_error("%s: errors from %.3e to %.3e differ by more than a tenth of the tolerance\n", name, least[kind], most[kind]);
  return failures;
}

static void every_schedule_meets_3_6_and_9_digits_for_every_case(void **context) {
  static const char *const kernels[] = {"laplace", "stokes", "yukawa"}, *const distributions[] = {"uniform", "ellipsoid", "sphere", "plummer"};
  int failures = 0;
  for (int k = 0; k < 3; k++)
    for (int d = 0; d < 4; d++)
      for (int digits = 3; digits <= 9; digits += 3) {
        problem p;
        char name[128];
        snprintf(name, sizeof name, "%s %s %d digits", kernels[k], distributions[d], digits);
        make(&p, kernels[k], distributions[d], k == 1 ? "signed" : "unit", k == 1 ? 1500 : 3000, pow(10, -digits), 0);
        failures += all_schedules_keep_the_tolerance(&p, name);
        release(&p);
      }
  assert_int_equal(failures, 0);
}

static void gradients_on_every_schedule(void **context) {
  problem p;
  make(&p, "laplace", "ellipsoid", "unit", 8000, 1e-4, 1);
  p.options.order = 8; /* what the tolerance means for gradients is the plan's business, tested with it */
  assert_int_equal(all_schedules_keep_the_tolerance(&p, "laplace ellipsoid with gradient"), 0);
  release(&p);
}

/* Nine of ten points in a millionth of the extent, off all planes of the tree: surfaces there are some 2^20 times smaller than their coordinates. */
static void surfaces_deep_in_the_tree_keep_their_shape(void **context) {
  static const struct {
    const char *kernel;
    int gradient;
    double tolerance;
  } cases[] = {{"laplace", 0, 1e-9}, {"laplace", 1, 1e-9}, {"yukawa", 0, 1e-9}, {"stokes", 0, 1e-8}};
  static const double at[3] = {0.412, 0.287, 0.719};
  int failures = 0;
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    problem p;
    char name[128];
    snprintf(name, sizeof name, "%s deep down, gradient %d", cases[c].kernel, cases[c].gradient);
    make(&p, cases[c].kernel, "uniform", "signed", 4000, cases[c].tolerance, cases[c].gradient);
    for (int i = 0; i < p.n; i++)
      for (int k = 0; k < 3 && i % 10; k++) p.points[3 * i + k] = at[k] + 1e-6 * (p.points[3 * i + k] - 0.5);
    failures += all_schedules_keep_the_tolerance(&p, name);
    release(&p);
  }
  assert_int_equal(failures, 0);
}

/* Points without density in a small part of the unit cube, whose gradients the far field alone makes (kernels/shell_field.h); Yukawa dies away in boxes of the coarse levels, nine digits have dense
 * operators. */
static void gradients_where_no_charge_is_near_keep_the_tolerance(void **context) {
  static const struct {
    const char *kernel;
    double lambda, side, tolerance;
  } cases[] = {{"laplace", 0, 1e-6, 1e-2}, {"laplace", 0, 1e-6, 1e-6}, {"laplace", 0, 1e-3, 1e-9}, {"stokes", 0, 1e-6, 1e-3}, {"yukawa", 1, 1e-3, 1e-2}, {"yukawa", 30, 1e-3, 1e-6}, {"yukawa", 1, 1e-3, 1e-9}};
  enum { MANY = 4000, CHARGES = 300 };
  int failures = 0;
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    problem p;
    char name[128];
    snprintf(name, sizeof name, "%s, no charge near, side %g", cases[c].kernel, cases[c].side);
    make(&p, cases[c].kernel, "uniform", "unit", MANY, cases[c].tolerance, 1);
    for (int i = 0; i < MANY - CHARGES; i++)
      for (int k = 0; k < 3; k++) p.points[3 * i + k] = 0.3 + cases[c].side * (p.points[3 * i + k] - 0.5);
    memset(p.densities, 0, (size_t)(p.components * (MANY - CHARGES)) * sizeof *p.densities);
    p.options.density_sign = FMM_DENSITY_SIGNED;
    if (cases[c].lambda > 0) p.options.params[0] = (fmm_param){"lambda", cases[c].lambda}, p.options.n_params = 1;
    failures += all_schedules_keep_the_tolerance(&p, name);
    release(&p);
  }
  assert_int_equal(failures, 0);
}

/* The nearest pair of all on a line outweighs all others, and its values must not let float serve where others' errors are seen: at targets that are not among it. */
static void sampled_targets_on_a_line_keep_the_tolerance(void **context) {
  enum { MANY = 20000 };
  for (int variant = 0; variant < 4; variant++) {
    problem p;
    make(&p, "laplace", "uniform", "signed", MANY, 1e-5, variant & 1);
    for (int i = 0; i < MANY; i++)
      for (int k = 1; k < 3; k++) p.points[3 * i + k] = (1 + k) * p.points[3 * i];
    for (int k = 0; k < 3; k++) p.points[3 * (MANY - 1) + k] = p.points[3 * (MANY - 2) + k] + (k == 0) * 1e-9;
    p.densities[MANY - 2] = p.densities[MANY - 1] = 1;
    p.options.precision = FMM_PRECISION_MIXED;
    p.options.leaf_size = variant & 2 ? MANY : 256;
    plan_for(&p, FMM_SCHEDULE_GPU);
    assert_ok(fmm_plan_direct(p.plan, p.densities, SAMPLES, NULL, p.exact, variant & 1 ? p.exact_gradient : NULL));
    execute(&p);
    const double error = error_of(SAMPLES, p.exact, p.potential), slope = variant & 1 ? error_of(3 * SAMPLES, p.exact_gradient, p.gradient) : 0;
    release(&p);
    if (!(error <= 1e-5 && slope <= 1e-5)) fail_msg("leaves of %d, error %g, of gradients %g", variant & 2 ? MANY : 256, error, slope);
  }
}

static void executions_repeat_bit_by_bit(void **context) {
  problem p;
  make(&p, "laplace", "plummer", "signed", 20000, 1e-6, 0);
  double *before = values_of(p.n);
  for (int i = 1; i < N_SCHEDULES; i++) {
    plan_for(&p, schedules[i]);
    execute(&p);
    memcpy(before, p.potential, sizeof(double) * (size_t)p.n);
    for (int run = 0; run < 3; run++) {
      execute(&p);
      if (memcmp(before, p.potential, sizeof(double) * (size_t)p.n)) fail_msg("schedule %d: run %d has other bits", (int)schedules[i], run);
    }
  }
  FMM_FREE(&before);
  release(&p);
}

/* On every schedule as a new plan, whose memory has served no other, computes them. */
static void moved_points_give_the_bits_of_a_new_plan(void **state) {
  problem p;
  make(&p, "laplace", "plummer", "signed", 20000, 1e-6, 1);
  double *moved = values_of(3 * p.n), *potential = values_of(p.n), *gradient = values_of(3 * p.n), *const original = p.points;
  for (int i = 0; i < 3 * p.n; i++) moved[i] = original[i] + 1e-3 * sin(100.0 * original[i]);
  for (int i = 0; i < N_SCHEDULES; i++) {
    plan_for(&p, schedules[i]);
    execute(&p);
    assert_ok(fmm_plan_move_points(p.plan, p.n, moved, NULL, 0, NULL));
    execute(&p);
    memcpy(potential, p.potential, sizeof(double) * (size_t)p.n);
    memcpy(gradient, p.gradient, 3 * sizeof(double) * (size_t)p.n);
    p.points = moved;
    plan_for(&p, schedules[i]);
    p.points = original;
    execute(&p);
    if (memcmp(potential, p.potential, sizeof(double) * (size_t)p.n) || memcmp(gradient, p.gradient, 3 * sizeof(double) * (size_t)p.n)) fail_msg("schedule %d: moved points have other bits", (int)schedules[i]);
  }
  FMM_FREE(&moved);
  FMM_FREE(&potential);
  FMM_FREE(&gradient);
  release(&p);
}

/* Page-locked memory of the points before serves where it is large enough, and not far too large. */
static void more_and_fewer_points_give_the_bits_of_a_new_plan(void **state) {
  static const int64_t numbers[] = {20000, 13000, 30000, 29000, 7000, 30000};
  const fmm_schedule_kind kinds[] = {FMM_SCHEDULE_GPU, FMM_SCHEDULE_HYBRID1};
  problem p;
  make(&p, "laplace", "plummer", "signed", 30000, 1e-6, 0);
  double *potential = values_of(p.n);
  p.options.leaf_size = 100, p.options.root_scale = 1.25;
  for (int i = 0; i < 2; i++) {
    fmm_plan *moving = NULL, *fresh;
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
      p.n = numbers[k];
      plan_for(&p, kinds[i]);
      execute(&p);
      memcpy(potential, p.potential, sizeof(double) * (size_t)p.n);
      fresh = p.plan;
      if (k == 0) assert_ok(fmm_plan_create(&moving, &p.options));
      assert_ok(k == 0 ? fmm_plan_set_points(moving, p.n, p.points, NULL, 0, NULL) : fmm_plan_move_points(moving, p.n, p.points, NULL, 0, NULL));
      p.plan = moving;
      execute(&p);
      p.plan = fresh;
      if (memcmp(potential, p.potential, sizeof(double) * (size_t)p.n)) fail_msg("schedule %d: moved to %lld points, other bits than those of a new plan", (int)kinds[i], (long long)p.n);
    }
    fmm_plan_destroy(&moving);
  }
  p.n = 30000;
  FMM_FREE(&potential);
  release(&p);
}

/* Powers of two change no digit, on any device, in single precision too. */
static void densities_of_any_size_give_the_same_digits(void **context) {
  static const int exponents[] = {-200, -130, 125, 200};
  problem p;
  make(&p, "laplace", "plummer", "signed", 20000, 1e-6, 0);
  double *before = values_of(p.n);
  p.options.precision = FMM_PRECISION_MIXED;
  for (int i = 1; i < N_SCHEDULES; i++) {
    plan_for(&p, schedules[i]);
    execute(&p);
    memcpy(before, p.potential, sizeof(double) * (size_t)p.n);
    for (size_t k = 0; k < sizeof exponents / sizeof *exponents; k++) {
      for (int j = 0; j < p.n; j++) p.densities[j] = ldexp(p.densities[j], exponents[k]);
      execute(&p);
      for (int j = 0; j < p.n; j++)
        if (p.potential[j] != ldexp(before[j], exponents[k])) fail_msg("schedule %d, densities times 2^%d: row %d is %g for %g", (int)schedules[i], exponents[k], j, p.potential[j], ldexp(before[j], exponents[k]));
      for (int j = 0; j < p.n; j++) p.densities[j] = ldexp(p.densities[j], -exponents[k]);
    }
  }
  FMM_FREE(&before);
  release(&p);
}

/* Columns in one pass against each column alone: the same sums in another order, its rounding amplified by the check-to-equivalent inverses: a tenth of the
 * tolerance at most. */
static void columns_in_one_pass_match_single_ones(void **context) {
  enum { COLUMNS = 5 };
  static const int exponents[COLUMNS] = {0, 140, -3, -140, 1}; /* each column as if it were alone: what a float does not hold, too */
  static const char *const kernels[] = {"laplace", "stokes", "yukawa"};
  for (int k = 0; k < 3; k++)
    for (int gradient = 0; gradient < 2; gradient++) {
      problem p;
      make(&p, kernels[k], "ellipsoid", "signed", 2000, 1e-6, gradient);
      int width = p.components;
      int64_t rows = p.n * p.outputs;
      double *all = values_of(p.n * width * COLUMNS), *potential = values_of(rows * COLUMNS), *slope = values_of(3 * rows * COLUMNS);
      assert_ok(fmm_generate_densities("signed", p.n * width * COLUMNS, 9, all, 1));
      for (int64_t i = 0; i < p.n * width * COLUMNS; i++) all[i] = ldexp(all[i], exponents[i % COLUMNS]);
      p.options.n_columns = COLUMNS;
      p.options.precision = gradient ? FMM_PRECISION_DOUBLE : FMM_PRECISION_MIXED; /* the model may choose one for columns and another for one of them */
      plan_for(&p, FMM_SCHEDULE_GPU);
      assert_ok(fmm_plan_execute(p.plan, all, potential, gradient ? slope : NULL));
      p.options.n_columns = 1;
      plan_for(&p, FMM_SCHEDULE_GPU);
      for (int c = 0; c < COLUMNS; c++) {
        double error = 0, size = 0;
        for (int64_t i = 0; i < p.n * width; i++) p.densities[i] = all[i * COLUMNS + c];
        execute(&p);
        for (int64_t i = 0; i < rows; i++) error += pow(potential[i * COLUMNS + c] - p.potential[i], 2), size += pow(p.potential[i], 2);
        for (int64_t i = 0; gradient && i < 3 * rows; i++) error += pow(slope[i * COLUMNS + c] - p.gradient[i], 2), size += pow(p.gradient[i], 2);
        if (!(error <= 1e-14 * size)) fail_msg("%s, gradient %d, column %d: %.3e apart", kernels[k], gradient, c, sqrt(error / size));
      }
      FMM_FREE(&all);
      FMM_FREE(&potential);
      FMM_FREE(&slope);
      release(&p);
    }
}

typedef struct interval { double begin, end; } interval;

/* The events of a trace on a track by that name whose names are among these. */
static int events_of(const json_t *trace, const char *track, const char *names, interval *found, int most) {
  const json_t *events = json_object_get(trace, "traceEvents"), *event;
  size_t index;
  int n = 0, tid = -1;
  json_array_foreach(events, index, event) {
    if (!strcmp(json_string_value(json_object_get(event, "ph")), "M") && !strcmp(json_string_value(json_object_get(json_object_get(event, "args"), "name")), track))
      tid = (int)json_integer_value(json_object_get(event, "tid"));
  }
  json_array_foreach(events, index, event) {
    if (strcmp(json_string_value(json_object_get(event, "ph")), "X") || (int)json_integer_value(json_object_get(event, "tid")) != tid) continue;
    if (!strstr(names, json_string_value(json_object_get(event, "name")))) continue;
    double begin = json_number_value(json_object_get(event, "ts"));
    assert_true(n < most);
    found[n++] = (interval){begin, begin + json_number_value(json_object_get(event, "dur"))};
  }
  return n;
}

/* How long U on the GPU and the CPU's phases ran at once in the plan's latest execution, and the shorter of both. */
static void measure_overlap(const problem *p, double *together, double *shorter, double *u_s) {
  enum { MOST = 16 };
  const char *path = "test_gpu_plan_trace.json";
  interval cpu[MOST], u;
  assert_ok(fmm_plan_write_trace(p->plan, path));
  json_t *trace = json_load_file(path, 0, NULL);
  assert_non_null(trace);
  assert_int_equal(events_of(trace, "gpu near", "ulist", &u, 1), 1);
  int n = events_of(trace, "cpu", "up vlist wlist xlist down", cpu, MOST);
  assert_true(n >= 3);
  *together = *shorter = 0, *u_s = u.end - u.begin;
  for (int i = 0; i < n; i++) *shorter += cpu[i].end - cpu[i].begin, *together += fmax(0, fmin(u.end, cpu[i].end) - fmax(u.begin, cpu[i].begin));
  *shorter = fmin(*shorter, *u_s);
  json_decref(trace);
  remove(path);
}

/* Whoever else has the host's cores delays its phases, which can only shorten the time that both work: two of some executions have to show it, over which a busy host may become quiet. */
static void in_hybrid1_both_devices_work_at_once(void **context) {
  problem p;
  make(&p, "laplace", "uniform", "unit", 200000, 1e-6, 0);
  p.options.gpu_sms = 8;
  for (int leaf = 60; leaf <= 480; leaf *= 8) { /* little and much for the GPU */
    double together = 0, shorter = 1, u_s = 0;
    int shown = 0, runs = 0;
    p.options.leaf_size = leaf;
    plan_for(&p, FMM_SCHEDULE_HYBRID1);
    for (execute(&p); runs < 30 && shown < 2; shown += together >= 0.8 * shorter, runs++) nanosleep(&(struct timespec){.tv_nsec = runs < 5 ? 0 : 20000000}, NULL), execute(&p), measure_overlap(&p, &together, &shorter, &u_s);
    print_message("leaf size %d: U on the GPU %.0f us, together with the CPU's phases %.0f us, execution %d\n", leaf, u_s, together, runs);
    if (shown < 2) fail_msg("leaf size %d: both work during %.0f us of %.0f", leaf, together, shorter);
  }
  release(&p);
}

/* Phases of two streams wait for one another on the device: what is measured of them shares out the time in which any runs, and learning from it leaves a forecast that is no further off. */
static void times_of_phases_add_up(void **context) {
  for (int single = 0; single < 2; single++)
    for (int n = 20000; n <= 1000000; n *= 50) {
      problem p;
      fmm_plan_info info = {.struct_size = sizeof info};
      double phases = 0;
      make(&p, "laplace", "uniform", "unit", n, 1e-6, 0);
      p.options.leaf_size = 128, p.options.precision = single ? FMM_PRECISION_MIXED : FMM_PRECISION_DOUBLE;
      plan_for(&p, FMM_SCHEDULE_GPU);
      for (int run = 0; run < 3; run++) execute(&p);
      assert_ok(fmm_plan_get_info(p.plan, &info));
      for (int phase = 0; phase < FMM_N_PHASES; phase++) phases += info.phase_measured_s[phase];
      print_message("%d points, %s: phases %.0f us of %.0f, up %.0f (foretold %.0f), U %.0f (%.0f)\n", n, single ? "mixed" : "double", 1e6 * phases, 1e6 * info.last_evaluation_s, 1e6 * info.phase_measured_s[FMM_PHASE_UP],
                    1e6 * info.phase_predicted_s[FMM_PHASE_UP], 1e6 * info.phase_measured_s[FMM_PHASE_ULIST], 1e6 * info.phase_predicted_s[FMM_PHASE_ULIST]);
      assert_true(info.phase_measured_s[FMM_PHASE_UP] > 0 && info.phase_measured_s[FMM_PHASE_ULIST] > 0 && info.phase_measured_s[FMM_PHASE_VLIST] > 0 && info.phase_measured_s[FMM_PHASE_DOWN] > 0);
      assert_true(phases <= info.last_evaluation_s);
      const double took = info.last_evaluation_s, before = fabs(log(info.predicted_s / took));
      assert_ok(fmm_plan_adapt(p.plan, NULL));
      assert_ok(fmm_plan_get_info(p.plan, &info));
      if (!(fabs(log(info.predicted_s / took)) <= before + log(1.5))) fail_msg("%g s foretold after learning from %g s", info.predicted_s, took);
      release(&p);
    }
}

static void a_part_of_the_device_gives_the_same_bits(void **context) {
  problem p;
  make(&p, "laplace", "uniform", "unit", 20000, 1e-6, 0);
  double *before = values_of(p.n);
  plan_for(&p, FMM_SCHEDULE_GPU);
  execute(&p);
  memcpy(before, p.potential, sizeof(double) * (size_t)p.n);
  p.options.gpu_sms = 8;
  plan_for(&p, FMM_SCHEDULE_GPU);
  execute(&p);
  fmm_plan_info info = {.struct_size = sizeof info};
  assert_ok(fmm_plan_get_info(p.plan, &info));
  assert_true(info.gpu_sms >= 8 && info.gpu_sms < 32);
  assert_memory_equal(before, p.potential, sizeof(double) * (size_t)p.n);
  FMM_FREE(&before);
  release(&p);
}

static void plans_run_in_several_threads_at_once(void **context) {
  enum { THREADS = 4 };
  problem p[THREADS];
  fmm_status status[THREADS];
  for (int i = 0; i < THREADS; i++) {
    make(&p[i], "laplace", i % 2 ? "uniform" : "ellipsoid", "unit", 5000, 1e-6, 0);
    p[i].options.threads = 1;
    plan_for(&p[i], schedules[1 + i]);
    assert_ok(fmm_plan_direct(p[i].plan, p[i].densities, SAMPLES, NULL, p[i].exact, NULL));
  }
#pragma omp parallel for num_threads(THREADS) schedule(static, 1)
  for (int i = 0; i < THREADS; i++)
    for (int run = 0; run < 5; run++) status[i] = fmm_plan_execute(p[i].plan, p[i].densities, p[i].potential, NULL);
  for (int i = 0; i < THREADS; i++) {
    assert_int_equal(status[i], FMM_OK);
    assert_true(error_of(SAMPLES, p[i].exact, p[i].potential) <= 1e-6);
    release(&p[i]);
  }
}

/* What a kernel may use of a multiprocessor's memory is the kernel's, not the plan's: of order 12 the transforms take less than of order 11, by the same kernels. */
static void a_plan_leaves_older_ones_of_other_orders_as_they_were(void **context) {
  static const int orders[] = {11, 12, 8, 11, 13, 9};
  enum { N = sizeof orders / sizeof *orders };
  problem p[N];
  double *before = values_of(3000);
  for (int i = 0; i < N; i++) {
    make(&p[i], "laplace", "uniform", "unit", 3000, 1e-6, 0);
    p[i].options.order = orders[i];
    p[i].options.precision = FMM_PRECISION_DOUBLE;
    plan_for(&p[i], FMM_SCHEDULE_GPU);
    execute(&p[i]);
    for (int k = 0; k < i; k++) {
      memcpy(before, p[k].potential, sizeof(double) * (size_t)p[k].n);
      execute(&p[k]);
      if (memcmp(before, p[k].potential, sizeof(double) * (size_t)p[k].n)) fail_msg("order %d gives other bits once there is a plan of order %d", orders[k], orders[i]);
    }
  }
  for (int i = 0; i < N; i++) release(&p[i]);
  FMM_FREE(&before);
}

static void too_small_a_cap_is_an_error_or_another_schedule(void **context) {
  problem p;
  make(&p, "laplace", "uniform", "unit", 5000, 1e-3, 0);
  p.options.device_memory_cap = 1000;
  p.options.schedule = FMM_SCHEDULE_GPU;
  assert_ok(fmm_plan_create(&p.plan, &p.options));
  assert_int_equal(fmm_plan_set_points(p.plan, p.n, p.points, NULL, 0, NULL), FMM_ERR_MEMORY);
  plan_for(&p, FMM_SCHEDULE_AUTO);
  execute(&p);
  fmm_plan_info info = {.struct_size = sizeof info};
  assert_ok(fmm_plan_get_info(p.plan, &info));
  assert_int_equal(info.schedule, FMM_SCHEDULE_CPU);
  release(&p);
}

static void the_cap_on_host_memory_counts_what_the_gpu_s_plan_holds_there(void **context) {
  problem p;
  fmm_plan_info info = {.struct_size = sizeof info};
  make(&p, "laplace", "uniform", "unit", 5000, 1e-3, 0);
  plan_for(&p, FMM_SCHEDULE_GPU);
  assert_ok(fmm_plan_get_info(p.plan, &info));
  p.options.host_memory_cap = info.host_bytes;
  plan_for(&p, FMM_SCHEDULE_GPU);
  fmm_plan_destroy(&p.plan);
  p.options.host_memory_cap = info.host_bytes - 1;
  assert_ok(fmm_plan_create(&p.plan, &p.options));
  assert_int_equal(fmm_plan_set_points(p.plan, p.n, p.points, NULL, 0, NULL), FMM_ERR_MEMORY);
  release(&p);
}

/* A drop's surface forces, which cancel: every schedule errs by some four times the tolerance, is told so, and keeps it with the plan that follows. */
static void every_schedule_gets_another_plan_where_densities_cancel(void **context) {
  enum { LATITUDES = 180 };
  problem p;
  make(&p, "stokes", "uniform", "signed", 2 * LATITUDES * LATITUDES, 1e-2, 0);
  for (int i = 0; i < p.n; i++) {
    const double pi = acos(-1), t = (i / (2 * LATITUDES) + 0.5) * pi / LATITUDES, f = i % (2 * LATITUDES) * pi / LATITUDES, x[3] = {sin(t) * cos(f), sin(t) * sin(f), cos(t)};
    for (int k = 0; k < 3; k++) p.points[3 * i + k] = x[k], p.densities[3 * i + k] = x[k] * sin(t);
  }
  for (int i = 0; i < N_SCHEDULES; i++) {
    fmm_plan_info info = {.struct_size = sizeof info};
    double estimate = 0;
    int changed = 0, rounds = 0;
    plan_for(&p, schedules[i]);
    if (i == 0) assert_ok(fmm_plan_direct(p.plan, p.densities, SAMPLES, NULL, p.exact, NULL));
    execute(&p);
    do {
      assert_ok(fmm_plan_keep_tolerance(p.plan, p.densities, p.potential, NULL, &estimate, &changed));
      if (rounds == 0) assert_true(changed && estimate > 2e-2);
      if (changed) execute(&p);
    } while (changed && ++rounds < 5);
    assert_ok(fmm_plan_get_info(p.plan, &info));
    assert_true(info.schedule == schedules[i] && info.tightened > 1 && estimate <= 1e-2);
    assert_true(error_of(SAMPLES * p.outputs, p.exact, p.potential) <= 1e-2);
  }
  release(&p);
}

int main(void) {
  fmm_gpu_info info;
  fmm_gpu_query(0, &info);
  if (!info.present) return fprintf(stderr, "skipped: %s\n", info.reason), FMM_TEST_SKIP;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_schedule_meets_3_6_and_9_digits_for_every_case),
      cmocka_unit_test(gradients_on_every_schedule),
      cmocka_unit_test(surfaces_deep_in_the_tree_keep_their_shape),
      cmocka_unit_test(gradients_where_no_charge_is_near_keep_the_tolerance),
      cmocka_unit_test(every_schedule_gets_another_plan_where_densities_cancel),
      cmocka_unit_test(sampled_targets_on_a_line_keep_the_tolerance),
      cmocka_unit_test(executions_repeat_bit_by_bit),
      cmocka_unit_test(moved_points_give_the_bits_of_a_new_plan),
      cmocka_unit_test(more_and_fewer_points_give_the_bits_of_a_new_plan),
      cmocka_unit_test(columns_in_one_pass_match_single_ones),
      cmocka_unit_test(densities_of_any_size_give_the_same_digits),
      cmocka_unit_test(in_hybrid1_both_devices_work_at_once),
      cmocka_unit_test(times_of_phases_add_up),
      cmocka_unit_test(a_part_of_the_device_gives_the_same_bits),
      cmocka_unit_test(plans_run_in_several_threads_at_once),
      cmocka_unit_test(a_plan_leaves_older_ones_of_other_orders_as_they_were),
      cmocka_unit_test(too_small_a_cap_is_an_error_or_another_schedule),
      cmocka_unit_test(the_cap_on_host_memory_counts_what_the_gpu_s_plan_holds_there),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
