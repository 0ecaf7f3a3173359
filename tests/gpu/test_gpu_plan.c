/* The named schedules through the public interface on a GPU: errors against direct sums within the tolerance and alike on every schedule, the same bits on
 * every execution, device arrays, a part of the device, plans in several threads, and an error at every CUDA call. Exit 77 without a GPU. */
#include "test.h"

#include <jansson.h>
#include <math.h>
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

static void arrays_on_the_device_give_the_same_bits(void **context) {
  problem p;
  make(&p, "laplace", "ellipsoid", "unit", 10000, 1e-6, 0);
  size_t bytes = sizeof(double) * (size_t)p.n;
  double *before = values_of(p.n);
  void *d_densities, *d_potential;
  assert_ok(fmm_gpu_allocate(&d_densities, bytes));
  assert_ok(fmm_gpu_allocate(&d_potential, bytes));
  assert_ok(fmm_gpu_copy_now(d_densities, p.densities, bytes, NULL));
  for (int i = 0; i < N_SCHEDULES; i++) {
    plan_for(&p, schedules[i]);
    execute(&p);
    memcpy(before, p.potential, bytes);
    p.options.densities_space = p.options.results_space = FMM_MEMORY_DEVICE;
    plan_for(&p, schedules[i]);
    assert_ok(fmm_plan_execute(p.plan, d_densities, d_potential, NULL));
    p.options.densities_space = p.options.results_space = FMM_MEMORY_HOST;
    assert_ok(fmm_gpu_copy_now(p.potential, d_potential, bytes, NULL));
    if (memcmp(before, p.potential, bytes)) fail_msg("schedule %d: device arrays give other bits", (int)schedules[i]);
  }
  fmm_gpu_free(d_densities);
  fmm_gpu_free(d_potential);
  FMM_FREE(&before);
  release(&p);
}

/* Densities or results or both in page-locked memory, which are copied without staging: the same bits on every schedule. Pageable ones are large enough to go and come in pieces. Locked memory that does not hold all of
 * an array is not used so, and a result that is not finite leaves the caller's array alone. */
static void page_locked_arrays_give_the_same_bits(void **context) {
  problem p;
  make(&p, "laplace", "ellipsoid", "unit", 150000, 1e-6, 1);
  size_t bytes = sizeof(double) * (size_t)p.n;
  double *before = values_of(4 * p.n), *const array[3] = {p.densities, p.potential, p.gradient};
  for (int i = 0; i < N_SCHEDULES; i++) {
    plan_for(&p, schedules[i]);
    execute(&p);
    memcpy(before, p.potential, bytes), memcpy(before + p.n, p.gradient, 3 * bytes);
    for (unsigned locked = 1; locked < 8; locked++) {
      for (int k = 0; k < 3; k++)
        if (locked >> k & 1) assert_ok(fmm_gpu_register(array[k], (k == 2 ? 3 : 1) * bytes));
      execute(&p);
      for (int k = 0; k < 3; k++)
        if (locked >> k & 1) fmm_gpu_unregister(array[k]);
      if (memcmp(before, p.potential, bytes) || memcmp(before + p.n, p.gradient, 3 * bytes)) fail_msg("schedule %d: locked arrays %x give other bits", (int)schedules[i], locked);
    }
  }
  plan_for(&p, FMM_SCHEDULE_GPU);
  execute(&p);
  memcpy(before + p.n, p.gradient, 3 * bytes);
  for (int k = 0; k < 3; k++) assert_ok(fmm_gpu_register(array[k], bytes / 2)); /* half of an array, or a sixth */
  execute(&p);
  assert_memory_equal(before + p.n, p.gradient, 3 * bytes);
  for (int k = 0; k < 3; k++) fmm_gpu_unregister(array[k]);
  for (int k = 0; k < 3; k++) assert_ok(fmm_gpu_register(array[k], (k == 2 ? 3 : 1) * bytes));
  for (int i = 0; i < p.n; i++) p.densities[i] = 1e308, p.potential[i] = 7;
  assert_int_equal(fmm_plan_execute(p.plan, p.densities, p.potential, p.gradient), FMM_ERR_INPUT);
  for (int i = 0; i < p.n; i++) assert_true(p.potential[i] == 7);
  for (int k = 0; k < 3; k++) fmm_gpu_unregister(array[k]);
  FMM_FREE(&before);
  release(&p);
}

/* A density or a result that is not finite, on every schedule, from and to the host or the device: its row is named, the results stay as they were, and
 * the next execution works. */
static void values_that_are_not_finite_are_refused_by_row(void **context) {
  enum { N = 3000, BAD = 1234 };
  problem p;
  make(&p, "laplace", "ellipsoid", "unit", N, 1e-3, 1);
  void *d_densities, *d_potential, *d_gradient;
  double *good = values_of(N);
  size_t bytes = sizeof(double) * N;
  assert_ok(fmm_gpu_allocate(&d_densities, bytes));
  assert_ok(fmm_gpu_allocate(&d_potential, bytes));
  assert_ok(fmm_gpu_allocate(&d_gradient, 3 * bytes));
  memcpy(good, p.densities, bytes);
  for (int on_device = 0; on_device < 2; on_device++)
    for (int i = 0; i < N_SCHEDULES; i++)
      for (int fault = 0; fault < 3; fault++) { /* none; a density; every result */
        p.options.densities_space = p.options.results_space = on_device ? FMM_MEMORY_DEVICE : FMM_MEMORY_HOST;
        if (fault == 0) plan_for(&p, schedules[i]);
        for (int k = 0; k < N; k++) p.densities[k] = fault == 2 ? 1e308 : good[k], p.potential[k] = p.gradient[k] = 7;
        if (fault == 1) p.densities[BAD] = NAN, p.densities[BAD + 500] = INFINITY;
        double *densities = p.densities, *potential = p.potential, *gradient = p.gradient;
        if (on_device) {
          assert_ok(fmm_gpu_copy_now(d_densities, p.densities, bytes, NULL));
          assert_ok(fmm_gpu_copy_now(d_potential, p.potential, bytes, NULL));
          densities = d_densities, potential = d_potential, gradient = d_gradient;
        }
        fmm_status status = fmm_plan_execute(p.plan, densities, potential, gradient);
        if (on_device) assert_ok(fmm_gpu_copy_now(p.potential, d_potential, bytes, NULL));
        assert_int_equal(status, fault ? FMM_ERR_INPUT : FMM_OK);
        if (fault && !strstr(fmm_last_error(), fault == 1 ? "density row 1234 " : "target row ")) fail_msg("schedule %d: %s", (int)schedules[i], fmm_last_error());
        for (int k = 0; k < N; k++) assert_true(fault ? p.potential[k] == 7 : isfinite(p.potential[k]) && p.potential[k] != 7);
      }
  fmm_gpu_free(d_densities);
  fmm_gpu_free(d_potential);
  fmm_gpu_free(d_gradient);
  FMM_FREE(&good);
  release(&p);
}

/* Columns in one pass against each column alone: the same sums in another order, its rounding amplified by the check-to-equivalent inverses: a tenth of the
 * tolerance at most. */
static void columns_in_one_pass_match_single_ones(void **context) {
  enum { COLUMNS = 5 };
  static const char *const kernels[] = {"laplace", "stokes", "yukawa"};
  for (int k = 0; k < 3; k++)
    for (int gradient = 0; gradient < 2; gradient++) {
      problem p;
      make(&p, kernels[k], "ellipsoid", "signed", 2000, 1e-6, gradient);
      int width = p.components;
      int64_t rows = p.n * p.outputs;
      double *all = values_of(p.n * width * COLUMNS), *potential = values_of(rows * COLUMNS), *slope = values_of(3 * rows * COLUMNS);
      assert_ok(fmm_generate_densities("signed", p.n * width * COLUMNS, 9, all, 1));
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

static void in_hybrid1_both_devices_work_at_once(void **context) {
  enum { MOST = 16 };
  const char *path = "test_gpu_plan_trace.json";
  problem p;
  make(&p, "laplace", "uniform", "unit", 200000, 1e-6, 0);
  p.options.gpu_sms = 8;
  for (int leaf = 60; leaf <= 480; leaf *= 8) { /* little and much for the GPU */
    interval cpu[MOST], u;
    double together = 0, shorter = 0;
    p.options.leaf_size = leaf;
    plan_for(&p, FMM_SCHEDULE_HYBRID1);
    execute(&p);
    execute(&p);
    assert_ok(fmm_plan_write_trace(p.plan, path));
    json_t *trace = json_load_file(path, 0, NULL);
    assert_non_null(trace);
    assert_int_equal(events_of(trace, "gpu near", "ulist", &u, 1), 1);
    int n = events_of(trace, "cpu", "up vlist wlist xlist down", cpu, MOST);
    assert_true(n >= 3);
    for (int i = 0; i < n; i++) shorter += cpu[i].end - cpu[i].begin, together += fmax(0, fmin(u.end, cpu[i].end) - fmax(u.begin, cpu[i].begin));
    shorter = fmin(shorter, u.end - u.begin);
    print_message("leaf size %d: U on the GPU %.0f us, together with the CPU's phases %.0f us\n", leaf, u.end - u.begin, together);
    if (!(together >= 0.8 * shorter)) fail_msg("leaf size %d: both work during %.0f us of %.0f", leaf, together, shorter);
    json_decref(trace);
    remove(path);
  }
  release(&p);
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

/* Arrays of results together, filled with what no result is. */
static void mark_results(const problem *p) {
  memset(p->potential, 0xa5, sizeof(double) * (size_t)p->n);
  memset(p->gradient, 0xa5, sizeof(double) * (size_t)(3 * p->n));
}
static int is_marked(const double *values, int64_t n) {
  const unsigned char *byte = (const unsigned char *)values;
  for (size_t i = 0; i < sizeof(double) * (size_t)n; i++)
    if (byte[i] != 0xa5) return 0;
  return 1;
}
static int is_same(const double *a, const double *b, int64_t n) { return !memcmp(a, b, sizeof(double) * (size_t)n); }
static int results_are(const problem *p, const double *right) { return is_same(right, p->potential, p->n) && is_same(right + p->n, p->gradient, 3 * p->n); }

/* Densities and results in pieces, an odd number of them, from and to the host or the device, by one thread, by more than there are cores: the bits of page-locked arrays, all there when
 * the call returns. */
static void large_arrays_wherever_they_lie_give_the_same_bits(void **context) {
  static const int n[2] = {1000003, 300001}, threads[2] = {1, 64};
  for (int gradient = 0; gradient < 2; gradient++) {
    problem p;
    void *d_densities, *d_potential, *d_gradient;
    const size_t bytes = sizeof(double) * (size_t)n[gradient];
    double *right = values_of(4 * (int64_t)n[gradient]);
    make(&p, "laplace", "uniform", "signed", n[gradient], 1e-3, gradient);
    p.options.order = 4, p.options.leaf_size = 128, p.options.root_scale = 1, p.options.precision = FMM_PRECISION_DOUBLE;
    plan_for(&p, FMM_SCHEDULE_GPU);
    assert_ok(fmm_gpu_register(p.densities, bytes));
    assert_ok(fmm_gpu_register(p.potential, bytes));
    assert_ok(fmm_gpu_register(p.gradient, 3 * bytes));
    execute(&p);
    fmm_gpu_unregister(p.densities), fmm_gpu_unregister(p.potential), fmm_gpu_unregister(p.gradient);
    memcpy(right, p.potential, bytes), memcpy(right + p.n, p.gradient, 3 * bytes);
    assert_ok(fmm_gpu_allocate(&d_densities, bytes));
    assert_ok(fmm_gpu_allocate(&d_potential, bytes));
    assert_ok(fmm_gpu_allocate(&d_gradient, 3 * bytes));
    assert_ok(fmm_gpu_copy_now(d_densities, p.densities, bytes, NULL));
    for (int space = 0; space < 4; space++) {
      const int from_device = space & 1, to_device = space >> 1;
      p.options.densities_space = from_device ? FMM_MEMORY_DEVICE : FMM_MEMORY_HOST, p.options.results_space = to_device ? FMM_MEMORY_DEVICE : FMM_MEMORY_HOST;
      plan_for(&p, FMM_SCHEDULE_GPU);
      for (int run = 0; run < 3; run++) {
        mark_results(&p);
        if (to_device) {
          assert_ok(fmm_gpu_copy_now(d_potential, p.potential, bytes, NULL));
          assert_ok(fmm_gpu_copy_now(d_gradient, p.gradient, 3 * bytes, NULL));
        }
        double *const slope = to_device ? d_gradient : p.gradient;
        assert_ok(fmm_plan_execute(p.plan, from_device ? d_densities : p.densities, to_device ? d_potential : p.potential, gradient ? slope : NULL));
        if (to_device) { /* what is written last first */
          assert_ok(fmm_gpu_copy_now(p.gradient, d_gradient, 3 * bytes, NULL));
          assert_ok(fmm_gpu_copy_now(p.potential, d_potential, bytes, NULL));
        }
        if (!is_same(right, p.potential, p.n) || (gradient && !is_same(right + p.n, p.gradient, 3 * p.n)))
          fail_msg("%d points, densities %d, results %d on the device: other bits", p.n, from_device, to_device);
      }
    }
    p.options.densities_space = p.options.results_space = FMM_MEMORY_HOST;
    for (int k = 0; k < 2; k++) {
      p.options.threads = threads[k], p.options.oversubscribe = 1;
      plan_for(&p, FMM_SCHEDULE_GPU);
      mark_results(&p);
      execute(&p);
      if (!is_same(right, p.potential, p.n) || (gradient && !is_same(right + p.n, p.gradient, 3 * p.n))) fail_msg("%d points, %d threads: other bits", p.n, threads[k]);
    }
    fmm_gpu_free(d_densities);
    fmm_gpu_free(d_potential);
    fmm_gpu_free(d_gradient);
    FMM_FREE(&right);
    release(&p);
  }
}

/* An error at every CUDA call of an execution, one after another: its code; results as they were, but for the one wait while the device writes page-locked
 * arrays, which are whole then (locked: 0 none, 1 all, 2 the potentials); nothing of them is still being written; and the next execution is right. */
static void fail_every_call(problem *p, const double *right, int locked, const char *name) {
  int64_t first = fmm_gpu_call_count();
  mark_results(p);
  assert_ok(fmm_plan_execute(p->plan, p->densities, p->potential, p->gradient));
  int64_t calls = fmm_gpu_call_count() - first;
  if (!results_are(p, right)) fail_msg("%s: other bits", name);
  assert_true(calls > 10);
  for (int64_t nth = 1; nth <= calls; nth++) {
    mark_results(p);
    fmm_gpu_fail_at(nth);
    assert_int_equal(fmm_plan_execute(p->plan, p->densities, p->potential, p->gradient), FMM_ERR_DEVICE);
    fmm_gpu_fail_at(0);
    int untouched = is_marked(p->potential, p->n) && is_marked(p->gradient, 3 * p->n), whole = is_same(right, p->potential, p->n) && (locked == 2 || is_same(right + p->n, p->gradient, 3 * p->n));
    if (!untouched && !(locked && nth == calls && whole)) fail_msg("%s: call %d of %d failed and the results were touched", name, (int)nth, (int)calls);
    mark_results(p);
    assert_ok(fmm_plan_execute(p->plan, p->densities, p->potential, p->gradient));
    if (!results_are(p, right)) fail_msg("%s: wrong after call %d of %d failed", name, (int)nth, (int)calls);
  }
}

/* The same with arrays on the device, where what is left after a failure is not looked at. */
static void fail_every_call_on_device(problem *p, fmm_schedule_kind schedule, const double *right) {
  void *d_densities, *d_potential, *d_gradient;
  size_t bytes = sizeof(double) * (size_t)p->n;
  assert_ok(fmm_gpu_allocate(&d_densities, bytes));
  assert_ok(fmm_gpu_allocate(&d_potential, bytes));
  assert_ok(fmm_gpu_allocate(&d_gradient, 3 * bytes));
  assert_ok(fmm_gpu_copy_now(d_densities, p->densities, bytes, NULL));
  p->options.densities_space = p->options.results_space = FMM_MEMORY_DEVICE;
  plan_for(p, schedule);
  int64_t first = fmm_gpu_call_count();
  assert_ok(fmm_plan_execute(p->plan, d_densities, d_potential, d_gradient));
  int64_t calls = fmm_gpu_call_count() - first;
  for (int64_t nth = 1; nth <= calls; nth++) {
    fmm_gpu_fail_at(nth);
    assert_int_equal(fmm_plan_execute(p->plan, d_densities, d_potential, d_gradient), FMM_ERR_DEVICE);
    fmm_gpu_fail_at(0);
    assert_ok(fmm_plan_execute(p->plan, d_densities, d_potential, d_gradient));
    assert_ok(fmm_gpu_copy_now(p->potential, d_potential, bytes, NULL));
    assert_ok(fmm_gpu_copy_now(p->gradient, d_gradient, 3 * bytes, NULL));
    if (!results_are(p, right)) fail_msg("arrays on the device, schedule %d: wrong after call %d of %d failed", (int)schedule, (int)nth, (int)calls);
  }
  p->options.densities_space = p->options.results_space = FMM_MEMORY_HOST;
  fmm_gpu_free(d_densities);
  fmm_gpu_free(d_potential);
  fmm_gpu_free(d_gradient);
}

/* Of set_points: the right code, nothing leaked, and the next try works. */
static void fail_calls_of_set_points(problem *p) {
  fmm_plan_destroy(&p->plan);
  size_t held = fmm_memory_now();
  for (int64_t nth = 1, failed = 1; failed; nth += 7) {
    assert_ok(fmm_plan_create(&p->plan, &p->options));
    fmm_gpu_fail_at(nth);
    fmm_status status = fmm_plan_set_points(p->plan, p->n, p->points, NULL, 0, NULL);
    fmm_gpu_fail_at(0);
    failed = status != FMM_OK;
    if (failed) assert_int_equal(status, FMM_ERR_DEVICE);
    fmm_plan_destroy(&p->plan);
    assert_int_equal(fmm_memory_now(), held);
  }
}

static void a_failing_cuda_call_is_reported_and_survived(void **context) {
  static const char *const names[] = {"pageable arrays", "page-locked arrays", "page-locked potentials"};
  problem p;
  make(&p, "laplace", "ellipsoid", "unit", 3000, 1e-3, 1);
  double *right = values_of(4 * p.n), *const array[3] = {p.densities, p.potential, p.gradient};
  size_t bytes = sizeof(double) * (size_t)p.n;
  for (int i = 1; i < N_SCHEDULES; i += 3) { /* gpu, hybrid3 */
    plan_for(&p, schedules[i]);
    execute(&p);
    memcpy(right, p.potential, bytes), memcpy(right + p.n, p.gradient, 3 * bytes);
    for (int locked = 0; locked < 3; locked++) {
      for (int k = 0; k < 3; k++)
        if (locked == 1 || (locked == 2 && k == 1)) assert_ok(fmm_gpu_register(array[k], (k == 2 ? 3 : 1) * bytes));
      fail_every_call(&p, right, schedules[i] == FMM_SCHEDULE_GPU ? locked : 0, names[locked]);
      for (int k = 0; k < 3; k++)
        if (locked == 1 || (locked == 2 && k == 1)) fmm_gpu_unregister(array[k]);
    }
    fail_every_call_on_device(&p, schedules[i], right);
    fail_calls_of_set_points(&p);
  }
  FMM_FREE(&right);
  release(&p);
}

/* The same where results come in pieces, and points are locked where they lie. Results that are not finite: none of them is touched. */
static void a_failing_call_is_survived_with_large_arrays(void **context) {
  problem p;
  make(&p, "laplace", "uniform", "unit", 200000, 1e-3, 1);
  double *right = values_of(4 * p.n);
  size_t bytes = sizeof(double) * (size_t)p.n;
  plan_for(&p, FMM_SCHEDULE_GPU);
  execute(&p);
  memcpy(right, p.potential, bytes), memcpy(right + p.n, p.gradient, 3 * bytes);
  fail_every_call(&p, right, 0, "pieces");
  mark_results(&p);
  for (int i = 0; i < p.n; i++) p.densities[i] *= 1e308;
  assert_int_equal(fmm_plan_execute(p.plan, p.densities, p.potential, p.gradient), FMM_ERR_INPUT);
  assert_true(is_marked(p.potential, p.n) && is_marked(p.gradient, 3 * p.n));
  for (int i = 0; i < p.n; i++) p.densities[i] /= 1e308;
  execute(&p);
  fail_calls_of_set_points(&p);
  FMM_FREE(&right);
  release(&p);
}

/* Of one leaf: the frame's calls and those of U, its marks among them: four in double, eight in single, where blocks take tiles in turn. The frame's are what a plan
 * assumes where nothing is calibrated. */
static void an_evaluation_calls_the_driver_as_often_as_is_assumed(void **context) {
  for (int mixed = 0; mixed < 2; mixed++) {
    problem p;
    make(&p, "laplace", "uniform", "unit", 1000, 1e-6, 0);
    p.options.leaf_size = p.n;
    p.options.precision = mixed ? FMM_PRECISION_MIXED : FMM_PRECISION_DOUBLE;
    plan_for(&p, FMM_SCHEDULE_GPU);
    execute(&p);
    int64_t first = fmm_gpu_call_count();
    execute(&p);
    assert_int_equal(fmm_gpu_call_count() - first, FMM_GPU_FRAME_CALLS + (mixed ? 8 : 4));
    release(&p);
  }
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

int main(void) {
  fmm_gpu_info info;
  fmm_gpu_query(0, &info);
  if (!info.present) return fprintf(stderr, "skipped: %s\n", info.reason), FMM_TEST_SKIP;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_schedule_meets_3_6_and_9_digits_for_every_case),
      cmocka_unit_test(gradients_on_every_schedule),
      cmocka_unit_test(executions_repeat_bit_by_bit),
      cmocka_unit_test(arrays_on_the_device_give_the_same_bits),
      cmocka_unit_test(page_locked_arrays_give_the_same_bits),
      cmocka_unit_test(values_that_are_not_finite_are_refused_by_row),
      cmocka_unit_test(columns_in_one_pass_match_single_ones),
      cmocka_unit_test(in_hybrid1_both_devices_work_at_once),
      cmocka_unit_test(a_part_of_the_device_gives_the_same_bits),
      cmocka_unit_test(plans_run_in_several_threads_at_once),
      cmocka_unit_test(large_arrays_wherever_they_lie_give_the_same_bits), cmocka_unit_test(a_failing_cuda_call_is_reported_and_survived), cmocka_unit_test(a_failing_call_is_survived_with_large_arrays),
      cmocka_unit_test(an_evaluation_calls_the_driver_as_often_as_is_assumed),
      cmocka_unit_test(too_small_a_cap_is_an_error_or_another_schedule),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
