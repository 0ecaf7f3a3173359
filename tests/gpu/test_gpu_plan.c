/* The named schedules through the public interface on a GPU: errors against direct sums within the tolerance and alike on every schedule, the same bits on
 * every execution, device arrays, a part of the device, plans in several threads, and an error at every CUDA call. Exit 77 without a GPU. */
#include "test.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>

#include "runtime/generate.h"
#include "runtime/gpu.h"
#include "runtime/memory.h"

enum { SAMPLES = 500 };
static const fmm_schedule_kind schedules[] = {FMM_SCHEDULE_CPU, FMM_SCHEDULE_GPU, FMM_SCHEDULE_HYBRID1, FMM_SCHEDULE_HYBRID2, FMM_SCHEDULE_HYBRID3};
enum { N_SCHEDULES = sizeof schedules / sizeof *schedules };

typedef struct problem {
  int n, outputs, components;
  double *points, *densities, *potential, *gradient, *exact, *exact_gradient;
  fmm_options options;
  fmm_plan *plan;
} problem;

static double *values_of(int64_t n) {
  double *values;
  assert_ok(FMM_ALLOCATE_ZERO(&values, n, "test values"));
  return values;
}

static void make(problem *p, const char *kernel, const char *distribution, const char *densities, int n, double tolerance, int gradient) {
  *p = (problem){.n = n, .components = strcmp(kernel, "stokes") ? 1 : 3};
  p->outputs = p->components;
  p->points = values_of(3 * n);
  p->densities = values_of(n * p->components);
  p->potential = values_of(n * p->outputs);
  p->gradient = values_of(3 * n * p->outputs);
  p->exact = values_of(SAMPLES * p->outputs);
  p->exact_gradient = values_of(3 * SAMPLES * p->outputs);
  assert_ok(fmm_generate_points(distribution, n, 5, p->points, 1));
  assert_ok(fmm_generate_densities(densities, n * p->components, 6, p->densities, 1));
  assert_ok(fmm_options_init(&p->options));
  p->options.kernel = kernel;
  p->options.tolerance = tolerance;
  p->options.gradient = gradient;
  p->options.leaf_size = 60;
  p->options.root_scale = 1;
  p->options.density_sign = strcmp(densities, "unit") ? FMM_DENSITY_SIGNED : FMM_DENSITY_NONNEGATIVE;
}

static void release(problem *p) {
  fmm_plan_destroy(&p->plan);
  FMM_FREE(&p->points);
  FMM_FREE(&p->densities);
  FMM_FREE(&p->potential);
  FMM_FREE(&p->gradient);
  FMM_FREE(&p->exact);
  FMM_FREE(&p->exact_gradient);
}

static void plan_for(problem *p, fmm_schedule_kind schedule) {
  fmm_plan_destroy(&p->plan);
  p->options.schedule = schedule;
  assert_ok(fmm_plan_create(&p->plan, &p->options));
  assert_ok(fmm_plan_set_points(p->plan, p->n, p->points, NULL, 0, NULL));
}

static void execute(problem *p) {
  memset(p->potential, 0xff, sizeof(double) * (size_t)(p->n * p->outputs)); /* NaN */
  assert_ok(fmm_plan_execute(p->plan, p->densities, p->potential, p->options.gradient ? p->gradient : NULL));
}

static double error_of(int64_t n, const double *exact, const double *value) {
  double error = 0, size = 0;
  for (int64_t i = 0; i < n; i++) error += (value[i] - exact[i]) * (value[i] - exact[i]), size += exact[i] * exact[i];
  return sqrt(error / size);
}

/* Prints what fails and goes on, so that one run shows all; returns the number of failures. */
static int all_schedules_keep_the_tolerance(problem *p, const char *name) {
  double least = INFINITY, most = 0;
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
    least = fmin(least, error), most = fmax(most, error);
  }
  if (!(most - least <= 0.1 * p->options.tolerance)) failures++, print_error("%s: errors from %.3e to %.3e differ by more than a tenth of the tolerance\n", name, least, most);
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

/* An error at every CUDA call of set_points and execute, one after another: the right code, nothing leaked, and the next try works. */
static void a_failing_cuda_call_is_reported_and_survived(void **context) {
  problem p;
  make(&p, "laplace", "ellipsoid", "unit", 3000, 1e-3, 0);
  for (int i = 1; i < N_SCHEDULES; i += 3) { /* gpu, hybrid3 */
    plan_for(&p, schedules[i]);
    execute(&p);
    int64_t first = fmm_gpu_call_count();
    execute(&p);
    int64_t calls = fmm_gpu_call_count() - first;
    assert_true(calls > 10);
    for (int64_t nth = 1; nth <= calls; nth++) {
      fmm_gpu_fail_at(nth);
      assert_int_equal(fmm_plan_execute(p.plan, p.densities, p.potential, NULL), FMM_ERR_DEVICE);
      fmm_gpu_fail_at(0);
      execute(&p);
    }
    fmm_plan_destroy(&p.plan);
    size_t held = fmm_memory_now();
    for (int64_t nth = 1, failed = 1; failed; nth += 7) {
      assert_ok(fmm_plan_create(&p.plan, &p.options));
      fmm_gpu_fail_at(nth);
      fmm_status status = fmm_plan_set_points(p.plan, p.n, p.points, NULL, 0, NULL);
      fmm_gpu_fail_at(0);
      failed = status != FMM_OK;
      if (failed) assert_int_equal(status, FMM_ERR_DEVICE);
      fmm_plan_destroy(&p.plan);
      assert_int_equal(fmm_memory_now(), held);
    }
  }
  release(&p);
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
      cmocka_unit_test(a_part_of_the_device_gives_the_same_bits),
      cmocka_unit_test(plans_run_in_several_threads_at_once),
      cmocka_unit_test(a_failing_cuda_call_is_reported_and_survived),
      cmocka_unit_test(too_small_a_cap_is_an_error_or_another_schedule),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
