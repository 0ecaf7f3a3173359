/* Arrays for densities and results from the library: zeros, aligned, the same bits as others, refused with a reason; on machines without a GPU, where nothing is locked. */
#include "test.h"

#include <stdint.h>

#include "plan_error.h"
#include "runtime/memory.h"
#include "runtime/plan.h"

enum { N = 3000 };
static double points[3 * N], density[N], potential[N];

static fmm_plan *plan_of(fmm_schedule_kind schedule) {
  fmm_options o = defaults(1e-5);
  fmm_plan *plan = NULL;
  o.schedule = schedule;
  assert_ok(fmm_plan_create(&plan, &o));
  return plan;
}

static void arrays_are_aligned_zeros_and_outlive_the_plan(void **state) {
  const size_t before = fmm_memory_now();
  fmm_plan *plan = plan_of(FMM_SCHEDULE_CPU);
  double *array[3] = {NULL};
  const int64_t n[3] = {0, 1, 1000000};
  for (int k = 0; k < 3; k++) assert_ok(fmm_array_create(plan, n[k], &array[k]));
  fmm_plan_destroy(&plan);
  for (int k = 0; k < 3; k++) {
    assert_int_equal((uintptr_t)array[k] % 64, 0);
    for (int64_t i = 0; i < n[k]; i++) assert_true(array[k][i] == 0);
    if (n[k]) array[k][n[k] - 1] = 1;
    fmm_array_destroy(&array[k]);
    assert_null(array[k]);
    fmm_array_destroy(&array[k]); /* nothing */
  }
  fmm_array_destroy(NULL);
  assert_int_equal(fmm_memory_now(), before);
}

static void results_in_them_are_those_of_other_arrays(void **state) {
  const fmm_schedule_kind kinds[] = {FMM_SCHEDULE_CPU, FMM_SCHEDULE_AUTO};
  for (int k = 0; k < 2; k++) {
    fmm_plan *plan = plan_of(kinds[k]);
    double *in = NULL, *out = NULL;
    assert_ok(fmm_plan_set_points(plan, N, points, NULL, 0, NULL));
    assert_ok(fmm_plan_execute(plan, density, potential, NULL));
    assert_ok(fmm_array_create(plan, N, &in));
    assert_ok(fmm_array_create(plan, N, &out));
    memcpy(in, density, sizeof density);
    assert_ok(fmm_plan_execute(plan, in, out, NULL));
    assert_memory_equal(potential, out, sizeof potential);
    fmm_array_destroy(&in);
    fmm_array_destroy(&out);
    fmm_plan_destroy(&plan);
  }
}

static void impossible_arrays_are_refused_and_leave_the_pointer(void **state) {
  fmm_plan *plan = plan_of(FMM_SCHEDULE_CPU);
  double *array = potential;
  assert_int_equal(fmm_array_create(NULL, 5, &array), FMM_ERR_ARGUMENT);
  assert_int_equal(fmm_array_create(plan, 5, NULL), FMM_ERR_ARGUMENT);
  assert_int_equal(fmm_array_create(plan, -7, &array), FMM_ERR_ARGUMENT);
  assert_non_null(strstr(fmm_last_error(), "-7"));
  assert_int_equal(fmm_array_create(plan, INT64_MAX, &array), FMM_ERR_ARGUMENT);
  assert_int_equal(fmm_array_create(plan, (int64_t)1 << 60, &array), FMM_ERR_MEMORY);
  fmm_memory_fail_at(1);
  assert_int_equal(fmm_array_create(plan, 5, &array), FMM_ERR_MEMORY);
  fmm_memory_fail_at(0);
  assert_ptr_equal(array, potential);
  fmm_plan_destroy(&plan);
}

int main(void) {
  assert_ok(fmm_generate_points("ellipsoid", N, 3, points, 2));
  assert_ok(fmm_generate_densities("signed", N, 5, density, 2));
  const struct CMUnitTest tests[] = {cmocka_unit_test(arrays_are_aligned_zeros_and_outlive_the_plan), cmocka_unit_test(results_in_them_are_those_of_other_arrays),
                                     cmocka_unit_test(impossible_arrays_are_refused_and_leave_the_pointer)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
