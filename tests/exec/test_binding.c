/* Binding of threads: one to a core while a plan works, all masks as before afterwards, the same bits with and without. */
#include <omp.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hybridfmm/fmm.h"
#include "runtime/binding.h"
#include "runtime/cores.h"
#include "runtime/generate.h"
#include "test.h"

enum { N = 10000, MOST = 256 };
static double points[3 * N], density[N];

static void read_masks(int threads, cpu_set_t *masks) {
  memset(masks, 0, (size_t)threads * sizeof *masks);
#pragma omp parallel num_threads(threads)
  sched_getaffinity(0, sizeof *masks, &masks[omp_get_thread_num()]);
}

static int team_size(void) {
  int allowed = fmm_cores_allowed();
  return allowed < MOST ? allowed : MOST;
}

static int can_bind; /* this machine lets a team be bound */

static int bound(fmm_binding *b) {
  if (!fmm_binding_refusal(b)) return can_bind = 1;
  print_message("not bound here: %s\n", fmm_binding_refusal(b));
  return 0;
}

static void each_thread_has_a_core_of_its_own_while_bound_and_its_mask_back_afterwards(void **state) {
  static cpu_set_t before[MOST], during[MOST], after[MOST];
  fmm_binding *b = NULL;
  int threads = team_size();
  assert_ok(fmm_binding_create(&b, threads));
  read_masks(threads, before);
  fmm_binding_begin(b, 1);
  if (bound(b)) {
    read_masks(threads, during);
    for (int i = 0; i < threads; i++) {
      cpu_set_t common;
      CPU_AND(&common, &during[i], &before[i]);
      assert_true(CPU_EQUAL(&common, &during[i]) && CPU_COUNT(&during[i]) >= 1 && CPU_COUNT(&during[i]) < CPU_COUNT(&before[i]));
      for (int k = 0; k < i; k++) {
        CPU_AND(&common, &during[i], &during[k]);
        assert_int_equal(CPU_COUNT(&common), 0);
      }
    }
  }
  fmm_binding_end(b);
  read_masks(threads, after);
  assert_memory_equal(before, after, (size_t)threads * sizeof *before);
  fmm_binding_destroy(&b);
}

static void the_calling_thread_stays_unbound_when_it_may_start_others(void **state) {
  cpu_set_t before, during;
  fmm_binding *b = NULL;
  assert_ok(fmm_binding_create(&b, team_size()));
  sched_getaffinity(0, sizeof before, &before);
  fmm_binding_begin(b, 0);
  sched_getaffinity(0, sizeof during, &during);
  fmm_binding_end(b);
  assert_true(CPU_EQUAL(&before, &during));
  fmm_binding_destroy(&b);
}

static void nothing_is_bound_when_that_would_take_something_from_others(void **state) {
  fmm_binding *one = NULL, *two = NULL, *many = NULL;
  int threads = team_size();
  assert_ok(fmm_binding_create(&one, threads));
  assert_ok(fmm_binding_create(&two, threads));
  assert_ok(fmm_binding_create(&many, 3 * threads)); /* more threads than cores */
  fmm_binding_begin(one, 1);
  if (bound(one)) {
    fmm_binding_begin(two, 1); /* at the same time */
    assert_non_null(fmm_binding_refusal(two));
    fmm_binding_end(two);
  }
  fmm_binding_end(one);
  fmm_binding_begin(many, 1);
  assert_non_null(fmm_binding_refusal(many));
  fmm_binding_end(many);
#pragma omp parallel num_threads(2)
#pragma omp single
  {
    fmm_binding_begin(one, 1);
    if (omp_in_parallel()) assert_non_null(fmm_binding_refusal(one));
    fmm_binding_end(one);
  }
#pragma omp parallel num_threads(1)
  {
    fmm_binding_begin(one, 1);
    assert_non_null(fmm_binding_refusal(one));
    if (can_bind) assert_string_equal(fmm_binding_refusal(one), "the call comes from a parallel region");
    fmm_binding_end(one);
  }
  omp_set_dynamic(1);
  fmm_binding_begin(one, 1);
  assert_non_null(fmm_binding_refusal(one));
  if (can_bind) assert_string_equal(fmm_binding_refusal(one), "OpenMP may change the number of threads (OMP_DYNAMIC)");
  fmm_binding_end(one);
  omp_set_dynamic(0);
  assert_int_equal(setenv("OMP_PLACES", "cores", 1), 0);
  fmm_binding_begin(one, 1);
  assert_non_null(fmm_binding_refusal(one));
  fmm_binding_end(one);
  unsetenv("OMP_PLACES");
  fmm_binding_begin(one, 1); /* a refusal leaves nothing behind */
  bound(one);
  fmm_binding_end(one);
  fmm_binding_destroy(&one);
  fmm_binding_destroy(&two);
  fmm_binding_destroy(&many);
}

static void threads_that_the_caller_has_placed_stay_where_they_are(void **state) {
  static cpu_set_t given[MOST], before[MOST], after[MOST];
  int threads = team_size();
  fmm_binding *b = NULL;
  if (threads < 2) skip();
  read_masks(threads, given);
#pragma omp parallel num_threads(threads)
  if (omp_get_thread_num() == 1) { /* one of the team, to the first of its cores */
    cpu_set_t first;
    int core = 0;
    while (!CPU_ISSET(core, &given[1])) core++;
    CPU_ZERO(&first);
    CPU_SET(core, &first);
    sched_setaffinity(0, sizeof first, &first);
  }
  read_masks(threads, before);
  assert_ok(fmm_binding_create(&b, threads));
  fmm_binding_begin(b, 1);
  assert_non_null(fmm_binding_refusal(b));
  read_masks(threads, after);
  assert_memory_equal(before, after, (size_t)threads * sizeof *before);
  fmm_binding_end(b);
  fmm_binding_destroy(&b);
#pragma omp parallel num_threads(threads)
  sched_setaffinity(0, sizeof(cpu_set_t), &given[omp_get_thread_num()]);
}

static fmm_status evaluate(int bind, double *potential, const double *other) {
  fmm_options o;
  fmm_plan *plan = NULL;
  assert_ok(fmm_options_init(&o));
  o.bind_threads = bind, o.leaf_size = 60, o.root_scale = 1, o.schedule = FMM_SCHEDULE_CPU;
  o.threads = team_size();
  assert_ok(fmm_plan_create(&plan, &o));
  assert_ok(fmm_plan_set_points(plan, N, points, NULL, 0, NULL));
  fmm_status status = fmm_plan_execute(plan, other ? other : density, potential, NULL);
  char text[8192];
  assert_ok(fmm_plan_explain(plan, text, sizeof text, NULL));
  assert_true((strstr(text, "bound one to a core") != NULL) == (bind && can_bind));
  fmm_plan_destroy(&plan);
  return status;
}

static void a_plan_gives_the_same_bits_and_leaves_all_masks_as_they_were_even_on_failure(void **state) {
  static cpu_set_t before[MOST], after[MOST];
  static double with[N], without[N], bad[N];
  int threads = team_size();
  read_masks(threads, before);
  assert_ok(evaluate(1, with, NULL));
  read_masks(threads, after);
  assert_memory_equal(before, after, (size_t)threads * sizeof *before);
  assert_ok(evaluate(0, without, NULL));
  assert_memory_equal(with, without, sizeof with);
  bad[N - 1] = -1.0 / 0.0;
  assert_int_equal(evaluate(1, with, bad), FMM_ERR_INPUT);
  read_masks(threads, after);
  assert_memory_equal(before, after, (size_t)threads * sizeof *before);
}

static void read_ids(pid_t *ids, int threads) {
#pragma omp parallel num_threads(threads)
  ids[omp_get_thread_num()] = (pid_t)syscall(SYS_gettid);
}

/* A region of fewer threads would end the others, and those made anew inherit the mask of the one that makes them, which is bound to one core. */
static void no_thread_of_the_team_is_replaced_while_a_plan_works(void **state) {
  enum { THREADS = 5 };
  static double potential[N], gradient[3 * N];
  pid_t before[THREADS], after[THREADS];
  assert_ok(fmm_generate_points("ellipsoid", N, 1, points, 1));
  assert_ok(fmm_generate_densities("signed", N, 1, density, 1));
  static const char *const kernels[] = {"laplace", "stokes", "yukawa"};
  for (int k = 0; k < 3; k++) {
    fmm_options o;
    fmm_plan *plan = NULL;
    assert_ok(fmm_options_init(&o));
    o.kernel = kernels[k], o.threads = THREADS, o.oversubscribe = 1, o.gradient = k != 1, o.tolerance = 2.3e-4, o.schedule = FMM_SCHEDULE_CPU; /* an order not sought before */
    assert_ok(fmm_plan_create(&plan, &o));
    read_ids(before, THREADS);
    assert_ok(fmm_plan_set_points(plan, k == 1 ? N / 3 : N, points, NULL, 0, NULL));
    read_ids(after, THREADS);
    assert_memory_equal(before, after, sizeof before);
    assert_ok(fmm_plan_execute(plan, density, potential, o.gradient ? gradient : NULL));
    read_ids(after, THREADS);
    assert_memory_equal(before, after, sizeof before);
    fmm_plan_destroy(&plan);
  }
}

int main(void) {
  assert_ok(fmm_generate_points("ellipsoid", N, 1, points, 1));
  assert_ok(fmm_generate_densities("signed", N, 1, density, 1));
  unsetenv("OMP_PROC_BIND"), unsetenv("OMP_PLACES"); /* read by the OpenMP runtime before; here only what the library looks at */
  const struct CMUnitTest tests[] = {cmocka_unit_test(no_thread_of_the_team_is_replaced_while_a_plan_works), cmocka_unit_test(each_thread_has_a_core_of_its_own_while_bound_and_its_mask_back_afterwards),
                                     cmocka_unit_test(the_calling_thread_stays_unbound_when_it_may_start_others),
                                     cmocka_unit_test(nothing_is_bound_when_that_would_take_something_from_others),
                                     cmocka_unit_test(threads_that_the_caller_has_placed_stay_where_they_are),
                                     cmocka_unit_test(a_plan_gives_the_same_bits_and_leaves_all_masks_as_they_were_even_on_failure)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
