/* Which memory and which GPU: arrays that lie elsewhere than was said are refused and nothing is lost; on a node of several GPUs each serves as the first, with arrays of its own, also at once. Exit 77 without a GPU. */
#include "test.h"

#include "problem.h"
#include "runtime/gpu.h"

static void assert_refused(fmm_status status, const char *name, const char *word) {
  assert_int_equal(status, FMM_ERR_ARGUMENT);
  if (!strstr(fmm_last_error(), name) || !strstr(fmm_last_error(), word)) fail_msg("'%s' lacks '%s' or '%s'", fmm_last_error(), name, word);
}

/* How many there are, if they are of one kind: others may have other bits. */
static int count_alike(void) {
  fmm_gpu_info first, info;
  int n = 0;
  fmm_gpu_query(0, &first);
  for (info = first; info.present && !strcmp(info.name, first.name);) fmm_gpu_query(++n, &info);
  return n;
}

/* A GPU that reads all of the host's memory (pageableMemoryAccess) may take host arrays for device ones: then with the same bits. */
static void assert_refused_or_right(fmm_status status, const char *name, const double *potential, const double *right, size_t bytes) {
  if (status == FMM_OK) assert_memory_equal(potential, right, bytes);
  else assert_refused(status, name, "GPU");
}

static void arrays_in_other_memory_than_was_said_are_refused(void **context) {
  problem p;
  void *on_gpu;
  make(&p, "laplace", "ellipsoid", "unit", 10000, 1e-6, 1);
  const size_t bytes = sizeof(double) * (size_t)p.n;
  double *right = values_of(p.n), *d;
  assert_ok(fmm_gpu_allocate(0, &on_gpu, 3 * bytes));
  d = on_gpu;
  for (int i = 1; i < N_SCHEDULES; i++) {
    plan_for(&p, schedules[i]);
    execute(&p);
    memcpy(right, p.potential, bytes);
    assert_refused(fmm_plan_execute(p.plan, d, p.potential, p.gradient), "densities", "memory of GPU 0");
    assert_refused(fmm_plan_execute(p.plan, p.densities, d, p.gradient), "potential", "memory of GPU 0");
    assert_refused(fmm_plan_execute(p.plan, p.densities, p.potential, d), "gradient", "memory of GPU 0");
    assert_refused(fmm_plan_direct(p.plan, d, 10, NULL, p.exact, p.exact_gradient), "densities", "memory of GPU 0");
    assert_refused(fmm_plan_keep_tolerance(p.plan, p.densities, d, p.gradient, NULL, NULL), "potential", "memory of GPU 0");
    assert_refused(fmm_plan_set_points(p.plan, p.n, d, NULL, 0, NULL), "sources", "memory of GPU 0");
    assert_refused(fmm_plan_move_points(p.plan, p.n, p.points, NULL, p.n, d), "targets", "memory of GPU 0");
    execute(&p);
    assert_memory_equal(right, p.potential, bytes);
    p.options.densities_space = p.options.results_space = FMM_MEMORY_DEVICE;
    plan_for(&p, schedules[i]);
    p.options.densities_space = p.options.results_space = FMM_MEMORY_HOST;
    memset(p.potential, 0xff, bytes); /* NaN */
    assert_refused_or_right(fmm_plan_execute(p.plan, p.densities, p.potential, p.gradient), "densities", p.potential, right, bytes);
    memset(p.potential, 0xff, bytes);
    assert_ok(fmm_gpu_copy_now(0, d, p.densities, bytes, NULL)); /* the device still works */
    assert_refused_or_right(fmm_plan_execute(p.plan, d, p.potential, p.gradient), "potential", p.potential, right, bytes);
  }
  fmm_gpu_free(on_gpu);
  FMM_FREE(&right);
  release(&p);
}

/* Arrays of the plan's GPU give the bits of host arrays; the first GPU's are refused. */
static void check_device_arrays(problem *p, int gpu, fmm_schedule_kind schedule, const double *right, const double *slopes) {
  const size_t bytes = sizeof(double) * (size_t)p->n;
  void *in, *out, *gradient, *elsewhere;
  assert_ok(fmm_gpu_allocate(gpu, &in, bytes));
  assert_ok(fmm_gpu_allocate(gpu, &out, bytes));
  assert_ok(fmm_gpu_allocate(gpu, &gradient, 3 * bytes));
  assert_ok(fmm_gpu_allocate(0, &elsewhere, bytes));
  p->options.densities_space = p->options.results_space = FMM_MEMORY_DEVICE;
  plan_for(p, schedule);
  p->options.densities_space = p->options.results_space = FMM_MEMORY_HOST;
  assert_ok(fmm_gpu_copy_now(gpu, in, p->densities, bytes, NULL));
  assert_refused(fmm_plan_execute(p->plan, elsewhere, out, gradient), "densities", "memory of GPU 0");
  assert_refused(fmm_plan_execute(p->plan, in, elsewhere, gradient), "potential", "memory of GPU 0");
  assert_ok(fmm_plan_execute(p->plan, in, out, gradient));
  assert_ok(fmm_gpu_copy_now(gpu, p->potential, out, bytes, NULL));
  assert_memory_equal(right, p->potential, bytes);
  assert_ok(fmm_gpu_copy_now(gpu, p->gradient, gradient, 3 * bytes, NULL));
  assert_memory_equal(slopes, p->gradient, 3 * bytes);
  fmm_gpu_free(in), fmm_gpu_free(out), fmm_gpu_free(gradient), fmm_gpu_free(elsewhere);
}

static void every_gpu_gives_the_bits_of_the_first(void **context) {
  const int n = count_alike();
  if (n < 2) skip();
  for (int single = 0; single < 2; single++)
    for (int i = 1; i < N_SCHEDULES; i++) {
      problem p;
      make(&p, "laplace", "ellipsoid", "signed", 30000, 1e-5, 1);
      const size_t bytes = sizeof(double) * (size_t)p.n;
      double *right = values_of(p.n), *slopes = values_of(3 * p.n);
      p.options.precision = single ? FMM_PRECISION_MIXED : FMM_PRECISION_DOUBLE;
      plan_for(&p, schedules[i]);
      execute(&p);
      memcpy(right, p.potential, bytes), memcpy(slopes, p.gradient, 3 * bytes);
      for (p.options.gpu_device = 1; p.options.gpu_device < n; p.options.gpu_device++) {
        for (int part = 0; part < 2; part++) {
          p.options.gpu_sms = part ? 8 : 0;
          plan_for(&p, schedules[i]);
          execute(&p);
          assert_memory_equal(right, p.potential, bytes);
          assert_memory_equal(slopes, p.gradient, 3 * bytes);
          assert_ok(fmm_plan_move_points(p.plan, p.n, p.points, NULL, 0, NULL));
          execute(&p);
          assert_memory_equal(right, p.potential, bytes);
          check_device_arrays(&p, p.options.gpu_device, schedules[i], right, slopes);
        }
      }
      FMM_FREE(&right);
      FMM_FREE(&slopes);
      release(&p);
    }
}

static void gpus_work_at_once(void **context) {
  enum { MOST = 8, RUNS = 5 };
  int n = count_alike();
  problem p[MOST];
  fmm_status status[MOST][RUNS];
  if (n < 2) skip();
  if (n > MOST) n = MOST;
  double *right = values_of(60000);
  for (int i = 0; i < n; i++) {
    make(&p[i], "laplace", "uniform", "signed", 60000, 1e-6, 0);
    p[i].options.threads = 1, p[i].options.gpu_device = i;
    plan_for(&p[i], FMM_SCHEDULE_GPU);
  }
  execute(&p[0]);
  memcpy(right, p[0].potential, sizeof(double) * 60000);
#pragma omp parallel for num_threads(n) schedule(static, 1)
  for (int i = 0; i < n; i++)
    for (int run = 0; run < RUNS; run++) status[i][run] = fmm_plan_execute(p[i].plan, p[i].densities, p[i].potential, NULL);
  for (int i = 0; i < n; i++) {
    for (int run = 0; run < RUNS; run++) assert_int_equal(status[i][run], FMM_OK);
    assert_memory_equal(right, p[i].potential, sizeof(double) * 60000);
    release(&p[i]);
  }
  FMM_FREE(&right);
}

int main(void) {
  fmm_gpu_info info;
  fmm_gpu_query(0, &info);
  if (!info.present) return fprintf(stderr, "skipped: %s\n", info.reason), FMM_TEST_SKIP;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(arrays_in_other_memory_than_was_said_are_refused),
      cmocka_unit_test(every_gpu_gives_the_bits_of_the_first),
      cmocka_unit_test(gpus_work_at_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
