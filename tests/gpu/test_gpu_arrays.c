/* Arrays of the caller's through the public interface on a GPU, wherever they lie: the same bits, values that are not finite refused by row, and an error at every CUDA
 * call. Exit 77 without a GPU. */
#include "test.h"

#include <dlfcn.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "problem.h"
#include "runtime/gpu.h"

static void arrays_on_the_device_give_the_same_bits(void **context) {
  problem p;
  make(&p, "laplace", "ellipsoid", "unit", 10000, 1e-6, 0);
  size_t bytes = sizeof(double) * (size_t)p.n;
  double *before = values_of(p.n);
  void *d_densities, *d_potential;
  assert_ok(fmm_gpu_allocate(0, &d_densities, bytes));
  assert_ok(fmm_gpu_allocate(0, &d_potential, bytes));
  assert_ok(fmm_gpu_copy_now(0, d_densities, p.densities, bytes, NULL));
  for (int i = 0; i < N_SCHEDULES; i++) {
    plan_for(&p, schedules[i]);
    execute(&p);
    memcpy(before, p.potential, bytes);
    p.options.densities_space = p.options.results_space = FMM_MEMORY_DEVICE;
    plan_for(&p, schedules[i]);
    assert_ok(fmm_plan_execute(p.plan, d_densities, d_potential, NULL));
    p.options.densities_space = p.options.results_space = FMM_MEMORY_HOST;
    assert_ok(fmm_gpu_copy_now(0, p.potential, d_potential, bytes, NULL));
    if (memcmp(before, p.potential, bytes)) fail_msg("schedule %d: device arrays give other bits", (int)schedules[i]);
  }
  fmm_gpu_free(d_densities);
  fmm_gpu_free(d_potential);
  FMM_FREE(&before);
  release(&p);
}

/* What a caller enqueues, by the driver itself, as the library has no streams to offer. */
typedef struct driver {
  void *library;
  int (*create)(void **stream, unsigned flags), (*destroy)(void *stream), (*synchronize)(void *stream), (*call)(void *stream, void (*function)(void *), void *context);
  int (*send)(void *to, const void *from, size_t bytes, void *stream), (*fetch)(void *to, const void *from, size_t bytes, void *stream);
} driver;

static void open_driver(driver *d) {
  assert_non_null(d->library = dlopen("libcuda.so.1", RTLD_NOW));
  *(void **)&d->create = dlsym(d->library, "cuStreamCreate"), *(void **)&d->destroy = dlsym(d->library, "cuStreamDestroy_v2");
  *(void **)&d->synchronize = dlsym(d->library, "cuStreamSynchronize"), *(void **)&d->call = dlsym(d->library, "cuLaunchHostFunc");
  *(void **)&d->send = dlsym(d->library, "cuMemcpyHtoDAsync_v2"), *(void **)&d->fetch = dlsym(d->library, "cuMemcpyDtoHAsync_v2");
  assert_true(d->create && d->destroy && d->synchronize && d->call && d->send && d->fetch);
}

static void wait_a_while(void *context) { usleep(100000); }

/* Densities that the stream has yet to write, and results that it has yet to read, when an evaluation is asked for. */
static void device_arrays_are_ordered_with_the_caller_s_stream(void **context) {
  problem p;
  driver d;
  void *own, *d_densities, *d_potential;
  make(&p, "laplace", "ellipsoid", "unit", 10000, 1e-6, 0);
  const size_t bytes = sizeof(double) * (size_t)p.n;
  double *before = values_of(p.n), *zeros = values_of(p.n), *read = values_of(p.n);
  assert_ok(fmm_gpu_allocate(0, &d_densities, bytes));
  assert_ok(fmm_gpu_allocate(0, &d_potential, bytes));
  assert_ok(fmm_gpu_register(p.densities, bytes));
  assert_ok(fmm_gpu_register(read, bytes));
  open_driver(&d);
  assert_int_equal(d.create(&own, 1 /* it does not wait for the default stream */), 0);
  for (int i = 0; i < N_SCHEDULES; i++) {
    plan_for(&p, schedules[i]);
    execute(&p);
    memcpy(before, p.potential, bytes);
    for (int by_default = 0; by_default < 2; by_default++) {
      void *stream = by_default ? NULL : own;
      p.options.densities_space = p.options.results_space = FMM_MEMORY_DEVICE, p.options.cuda_stream = stream;
      plan_for(&p, schedules[i]);
      assert_ok(fmm_gpu_copy_now(0, d_densities, zeros, bytes, NULL));
      assert_int_equal(d.call(stream, wait_a_while, NULL), 0);
      assert_int_equal(d.send(d_densities, p.densities, bytes, stream), 0);
      assert_ok(fmm_plan_execute(p.plan, d_densities, d_potential, NULL));
      assert_ok(fmm_gpu_copy_now(0, p.potential, d_potential, bytes, NULL));
      if (memcmp(before, p.potential, bytes)) fail_msg("schedule %d, %s stream: densities are read before they are written", (int)schedules[i], stream ? "own" : "default");
      p.options.densities_space = FMM_MEMORY_HOST;
      plan_for(&p, schedules[i]);
      assert_int_equal(d.call(stream, wait_a_while, NULL), 0);
      assert_int_equal(d.fetch(read, d_potential, bytes, stream), 0);
      assert_ok(fmm_plan_execute(p.plan, zeros, d_potential, NULL));
      assert_int_equal(d.synchronize(stream), 0);
      if (memcmp(before, read, bytes)) fail_msg("schedule %d, %s stream: results are written before the old ones are read", (int)schedules[i], stream ? "own" : "default");
      p.options.results_space = FMM_MEMORY_HOST, p.options.cuda_stream = NULL;
    }
  }
  fmm_gpu_unregister(p.densities);
  fmm_gpu_unregister(read);
  d.destroy(own);
  dlclose(d.library);
  fmm_gpu_free(d_densities);
  fmm_gpu_free(d_potential);
  FMM_FREE(&before);
  FMM_FREE(&zeros);
  FMM_FREE(&read);
  release(&p);
}

/* Locked: the driver refuses to lock them once more. Not for a plan that may use no GPU. */
static void the_library_s_arrays_are_page_locked(void **context) {
  problem p;
  double *in = NULL, *out = NULL, *plain = NULL;
  make(&p, "laplace", "ellipsoid", "unit", 150000, 1e-6, 0);
  const size_t bytes = sizeof(double) * (size_t)p.n;
  for (int i = 0; i < N_SCHEDULES; i++) {
    const int locked = schedules[i] != FMM_SCHEDULE_CPU;
    plan_for(&p, schedules[i]);
    execute(&p);
    assert_ok(fmm_array_create(p.plan, p.n, &in));
    assert_ok(fmm_array_create(p.plan, p.n, &out));
    assert_int_equal(fmm_gpu_register(in, bytes) == FMM_OK, !locked);
    if (!locked) fmm_gpu_unregister(in);
    memcpy(in, p.densities, bytes);
    assert_ok(fmm_plan_execute(p.plan, in, out, NULL));
    assert_memory_equal(out, p.potential, bytes);
    fmm_array_destroy(&in);
    fmm_array_destroy(&out);
  }
  fmm_gpu_fail_at(1); /* what is not locked serves too, and no failure is left to be told */
  assert_ok(fmm_array_create(p.plan, p.n, &plain));
  fmm_gpu_fail_at(0);
  memcpy(plain, p.densities, bytes);
  assert_ok(fmm_plan_execute(p.plan, plain, p.potential, NULL));
  fmm_array_destroy(&plain);
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
  assert_ok(fmm_gpu_allocate(0, &d_densities, bytes));
  assert_ok(fmm_gpu_allocate(0, &d_potential, bytes));
  assert_ok(fmm_gpu_allocate(0, &d_gradient, 3 * bytes));
  memcpy(good, p.densities, bytes);
  for (int on_device = 0; on_device < 2; on_device++)
    for (int i = 0; i < N_SCHEDULES; i++)
      for (int fault = 0; fault < 3; fault++) { /* none; a density; every result */
        p.options.densities_space = p.options.results_space = on_device ? FMM_MEMORY_DEVICE : FMM_MEMORY_HOST;
        if (fault == 0) plan_for(&p, schedules[i]);
        for (int k = 0; k < N; k++) p.densities[k] = fault == 2 ? 1e308 : good[k], p.potential[k] = 7;
        for (int k = 0; k < 3 * N; k++) p.gradient[k] = 7;
        if (fault == 1) p.densities[BAD] = NAN, p.densities[BAD + 500] = INFINITY;
        double *densities = p.densities, *potential = p.potential, *gradient = p.gradient;
        if (on_device) {
          assert_ok(fmm_gpu_copy_now(0, d_densities, p.densities, bytes, NULL));
          assert_ok(fmm_gpu_copy_now(0, d_potential, p.potential, bytes, NULL));
          assert_ok(fmm_gpu_copy_now(0, d_gradient, p.gradient, 3 * bytes, NULL));
          densities = d_densities, potential = d_potential, gradient = d_gradient;
        }
        fmm_status status = fmm_plan_execute(p.plan, densities, potential, gradient);
        if (on_device) assert_ok(fmm_gpu_copy_now(0, p.potential, d_potential, bytes, NULL));
        if (on_device) assert_ok(fmm_gpu_copy_now(0, p.gradient, d_gradient, 3 * bytes, NULL));
        assert_int_equal(status, fault ? FMM_ERR_INPUT : FMM_OK);
        if (fault && !strstr(fmm_last_error(), fault == 1 ? "density row 1234 " : "target row ")) fail_msg("schedule %d: %s", (int)schedules[i], fmm_last_error());
        for (int k = 0; k < N; k++) assert_true(fault ? p.potential[k] == 7 : isfinite(p.potential[k]) && p.potential[k] != 7);
        for (int k = 0; k < 3 * N; k++) assert_true(fault ? p.gradient[k] == 7 : isfinite(p.gradient[k]) && p.gradient[k] != 7);
      }
  fmm_gpu_free(d_densities);
  fmm_gpu_free(d_potential);
  fmm_gpu_free(d_gradient);
  FMM_FREE(&good);
  release(&p);
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

/* Densities and results in pieces, an odd number of them, from and to the host or the device, by one thread, by more than there are cores, to an address that is odd in values: the bits of page-locked arrays, all there when
 * the call returns. */
static void large_arrays_wherever_they_lie_give_the_same_bits(void **context) {
  static const int n[2] = {2100003, 600001} /* results of more than 16 MB */, threads[2] = {1, 64};
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
    assert_ok(fmm_gpu_allocate(0, &d_densities, bytes));
    assert_ok(fmm_gpu_allocate(0, &d_potential, bytes));
    assert_ok(fmm_gpu_allocate(0, &d_gradient, 3 * bytes));
    assert_ok(fmm_gpu_copy_now(0, d_densities, p.densities, bytes, NULL));
    for (int space = 0; space < 4; space++) {
      const int from_device = space & 1, to_device = space >> 1;
      p.options.densities_space = from_device ? FMM_MEMORY_DEVICE : FMM_MEMORY_HOST, p.options.results_space = to_device ? FMM_MEMORY_DEVICE : FMM_MEMORY_HOST;
      plan_for(&p, FMM_SCHEDULE_GPU);
      for (int run = 0; run < 3; run++) {
        mark_results(&p);
        if (to_device) {
          assert_ok(fmm_gpu_copy_now(0, d_potential, p.potential, bytes, NULL));
          assert_ok(fmm_gpu_copy_now(0, d_gradient, p.gradient, 3 * bytes, NULL));
        }
        double *const slope = to_device ? d_gradient : p.gradient;
        assert_ok(fmm_plan_execute(p.plan, from_device ? d_densities : p.densities, to_device ? d_potential : p.potential, gradient ? slope : NULL));
        if (to_device) { /* what is written last first */
          assert_ok(fmm_gpu_copy_now(0, p.gradient, d_gradient, 3 * bytes, NULL));
          assert_ok(fmm_gpu_copy_now(0, p.potential, d_potential, bytes, NULL));
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
    double *odd = values_of(p.n + 1);
    mark_results(&p);
    assert_ok(fmm_plan_execute(p.plan, p.densities, odd + 1, gradient ? p.gradient : NULL));
    if (odd[0] != 0 || !is_same(right, odd + 1, p.n) || (gradient && !is_same(right + p.n, p.gradient, 3 * p.n))) fail_msg("%d points, an odd address: other bits", p.n);
    FMM_FREE(&odd);
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
  assert_ok(fmm_gpu_allocate(0, &d_densities, bytes));
  assert_ok(fmm_gpu_allocate(0, &d_potential, bytes));
  assert_ok(fmm_gpu_allocate(0, &d_gradient, 3 * bytes));
  assert_ok(fmm_gpu_copy_now(0, d_densities, p->densities, bytes, NULL));
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
    assert_ok(fmm_gpu_copy_now(0, p->potential, d_potential, bytes, NULL));
    assert_ok(fmm_gpu_copy_now(0, p->gradient, d_gradient, 3 * bytes, NULL));
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

/* Of one leaf: the frame's calls and those of U, its marks among them: four, in single too. The frame's are what a plan
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
    assert_int_equal(fmm_gpu_call_count() - first, FMM_GPU_FRAME_CALLS + 4);
    release(&p);
  }
}

int main(void) {
  fmm_gpu_info info;
  fmm_gpu_query(0, &info);
  if (!info.present) return fprintf(stderr, "skipped: %s\n", info.reason), FMM_TEST_SKIP;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(arrays_on_the_device_give_the_same_bits),
      cmocka_unit_test(device_arrays_are_ordered_with_the_caller_s_stream),
      cmocka_unit_test(the_library_s_arrays_are_page_locked), cmocka_unit_test(page_locked_arrays_give_the_same_bits),
      cmocka_unit_test(values_that_are_not_finite_are_refused_by_row),
      cmocka_unit_test(large_arrays_wherever_they_lie_give_the_same_bits),
      cmocka_unit_test(a_failing_cuda_call_is_reported_and_survived),
      cmocka_unit_test(a_failing_call_is_survived_with_large_arrays),
      cmocka_unit_test(an_evaluation_calls_the_driver_as_often_as_is_assumed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
