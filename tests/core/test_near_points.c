/* Points that differ by less than double precision can square beside the extent are refused, and nothing else is: neither equal points, nor planes whose points lie off them by next to nothing, nor clusters as small as
 * double precision still holds. */
#include "test.h"

#include <math.h>

#include "runtime/memory.h"
#include "runtime/near_points.h"
#include "runtime/points.h"

static fmm_status check(int64_t n, const double *sources, int64_t n_targets, const double *targets) {
  fmm_bounds bounds;
  assert_ok(fmm_bounds_of(&bounds, n, sources, n_targets, targets, 1));
  return fmm_near_points_check(&bounds, n, sources, n_targets, targets);
}

static void the_least_coordinate_but_zero_is_found(void **state) {
  double rows[3 * 50];
  fmm_bounds b;
  for (int where = 0; where < 150; where++) {
    for (int i = 0; i < 150; i++) rows[i] = i % 7 ? 1 + i : 0;
    rows[where] = where % 2 ? -0.25 : 0.25;
    assert_ok(fmm_bounds_of(&b, 25, rows, 25, rows + 75, 1));
    assert_true(b.least == 0.25);
  }
  for (int i = 0; i < 150; i++) rows[i] = 0;
  assert_ok(fmm_bounds_of(&b, 50, rows, 0, NULL, 1));
  assert_true(b.least == INFINITY);
}

/* What one coordinate far out makes of points a unit apart. */
static void points_beside_one_far_out_are_refused(void **state) {
  double rows[3 * 101];
  for (int i = 0; i < 300; i++) rows[i] = fmod(i * 0.6180339887498949, 1);
  rows[300] = rows[301] = rows[302] = 0.5;
  for (int exponent = 100; exponent <= 308; exponent++) {
    rows[300] = pow(10, exponent);
    const fmm_status status = check(101, rows, 0, NULL);
    if ((status == FMM_OK) != (exponent <= 151) && exponent != 152 && exponent != 153 && exponent != 154) fail_msg("1e%d: %s", exponent, fmm_status_name(status));
    if (status == FMM_OK) continue;
    assert_int_equal(status, FMM_ERR_INPUT);
    assert_non_null(strstr(fmm_last_error(), "source row"));
    assert_non_null(strstr(fmm_last_error(), "far out"));
  }
}

/* Two points somewhere, by themselves, on each side of cuts too. */
static void pairs_are_refused_wherever_they_are(void **state) {
  const double near[] = {1e-155, 1e-160, 1e-200, 1e-300, 4.9e-324}, apart[] = {2e-153, 1e-150, 1e-140, 1e-100, 1e-20};
  for (int axes = 1; axes < 8; axes++)
    for (int i = 0; i < 5; i++)
      for (int side = -2; side <= 2; side++) {
        double rows[9] = {0, 0, 0, 0, 0, 0, 1, 1, 1}, at = side * 1.5e-153;
        for (int k = 0; k < 3; k++)
          if (axes >> k & 1) rows[k] = at - near[i] / 2, rows[3 + k] = at + near[i] / 2;
        const int differ = rows[0] != rows[3] || rows[1] != rows[4] || rows[2] != rows[5];
        assert_int_equal(check(3, rows, 0, NULL), differ ? FMM_ERR_INPUT : FMM_OK);
        for (int k = 0; k < 3; k++)
          if (axes >> k & 1) rows[k] = at, rows[3 + k] = at + apart[i];
        assert_ok(check(3, rows, 0, NULL));
      }
}

static void what_is_at_one_place_or_far_enough_is_taken(void **state) {
  double plane[3 * 400], same[] = {1e-200, 0, 0, 1e-200, 0, 0, 1, 1, 1};
  for (int i = 0; i < 400; i++) plane[3 * i] = i % 20, plane[3 * i + 1] = i / 20, plane[3 * i + 2] = (i % 3 - 1) * 1e-300;
  assert_ok(check(400, plane, 0, NULL));
  assert_ok(check(3, same, 0, NULL));
  for (int i = 0; i < 400; i++)
    for (int k = 0; k < 3; k++) plane[3 * i + k] *= 1e-140; /* spacing 1e-140, but for heights that vanish */
  for (int i = 0; i < 400; i++) plane[3 * i + 2] = 0;
  plane[0] = 1;
  assert_ok(check(400, plane, 0, NULL));
}

/* With targets of their own sources may be as near to one another as they like. */
static void only_sources_and_targets_have_to_be_apart(void **state) {
  const double sources[] = {0, 0, 0, 1e-200, 0, 0, 1, 1, 1}, elsewhere[] = {0.5, 0.5, 0.5}, there[] = {0, 0, 0}, other[] = {0, 1e-200, 0, 0.5, 0.5, 0.5};
  assert_int_equal(check(3, sources, 0, NULL), FMM_ERR_INPUT);
  assert_ok(check(3, sources, 1, elsewhere));
  assert_int_equal(check(3, sources, 1, there), FMM_ERR_INPUT);
  assert_non_null(strstr(fmm_last_error(), "source row 1 and target row 0"));
  assert_int_equal(check(1, there, 2, other), FMM_ERR_INPUT);
  assert_non_null(strstr(fmm_last_error(), "source row 0 and target row 0"));
  assert_ok(check(1, there, 1, there));
}

static void memory_that_fails_is_reported(void **state) {
  const double rows[] = {1e-200, 0, 0, 1, 1, 1};
  const size_t held = fmm_memory_now();
  fmm_memory_fail_at(1);
  assert_int_equal(check(2, rows, 0, NULL), FMM_ERR_MEMORY);
  fmm_memory_fail_at(0);
  assert_int_equal(fmm_memory_now(), held);
  assert_ok(check(2, rows, 0, NULL));
  assert_int_equal(fmm_memory_now(), held);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_least_coordinate_but_zero_is_found), cmocka_unit_test(points_beside_one_far_out_are_refused), cmocka_unit_test(pairs_are_refused_wherever_they_are),
                                     cmocka_unit_test(what_is_at_one_place_or_far_enough_is_taken), cmocka_unit_test(only_sources_and_targets_have_to_be_apart), cmocka_unit_test(memory_that_fails_is_reported)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
