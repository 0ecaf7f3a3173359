/* Targets that are the sources once more, row by row: as if none were given. */
#include "test.h"

#include <string.h>

#include "plan_error.h"
#include "runtime/plan.h"

enum { N = 6000 };
static double points[3 * N], density[N];

/* By both ways to give points. */
static void plan_and_execute(const double *targets, fmm_plan_info *info, double *p) {
  fmm_options o = defaults(1e-6);
  fmm_plan *plan = NULL;
  assert_ok(fmm_plan_create(&plan, &o));
  assert_ok(fmm_plan_set_points(plan, N, points, NULL, targets ? N : 0, targets));
  assert_ok(fmm_plan_execute(plan, density, p, NULL));
  assert_ok(fmm_plan_move_points(plan, N, points, NULL, targets ? N : 0, targets));
  assert_ok(fmm_plan_get_info(plan, info));
  fmm_plan_destroy(&plan);
}

static void targets_that_are_the_sources_once_more_are_none(void **state) {
  static double copy[3 * N], p[N], q[N];
  fmm_plan_info info = {.struct_size = sizeof info}, other = info;
  memcpy(copy, points, sizeof copy);
  plan_and_execute(NULL, &info, p);
  for (int k = 0; k < 3; k++) {
    if (k == 2) copy[3 * 100] = -copy[3 * 100]; /* a zero */
    plan_and_execute(k ? copy : points, &other, q);
    assert_string_equal(other.plan_id, info.plan_id);
    assert_true(other.n_targets == N);
    assert_memory_equal(p, q, sizeof p);
  }
}

static void targets_that_differ_in_one_row_are_targets(void **state) {
  static double copy[3 * N], p[N], q[N];
  fmm_plan_info info = {.struct_size = sizeof info}, other = info;
  memcpy(copy, points, sizeof copy);
  copy[3 * N - 1] = 0.5;
  plan_and_execute(NULL, &info, p);
  plan_and_execute(copy, &other, q);
  assert_string_not_equal(other.plan_id, info.plan_id);
  assert_true(relative_l2(N - 1, q, p) <= 2e-6);
  assert_true(q[N - 1] != p[N - 1]);
}

int main(void) {
  assert_ok(fmm_generate_points("uniform", N, 3, points, 2));
  assert_ok(fmm_generate_densities("signed", N, 5, density, 2));
  points[3 * 100] = 0;
  const struct CMUnitTest tests[] = {cmocka_unit_test(targets_that_are_the_sources_once_more_are_none), cmocka_unit_test(targets_that_differ_in_one_row_are_targets)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
