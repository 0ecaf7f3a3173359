/* The order chosen for a tolerance, held against whole evaluations of standard cases: accurate enough for all, not more than two orders too many
 * for the hardest. Double precision, so that the order alone decides. */
#include "test.h"

#include "far_scene.h"
#include "kernels/known_errors.h"

static void evaluate(const char *distribution, const char *pair, fmm_density_sign sign, int gradient, int order, double error[2]) {
  far_scene s;
  static const fmm_phase_impl *const all[] = {&fmm_up_cpu, &fmm_vlist_cpu, &fmm_xlist_cpu, &fmm_down_cpu, &fmm_wlist_cpu, &fmm_ulist_cpu};
  assert_ok(far_scene_create(&s, &(far_scene_options){.distribution = distribution, .densities = sign == FMM_DENSITY_SIGNED ? "signed" : "unit", .pair = pair,
                                                      .n = 4000, .leaf_size = 40, .order = order, .columns = 1, .gradient = gradient, .threads = 2, .tolerance = 1e-14}));
  for (int i = 0; i < 6; i++) assert_ok(far_scene_run(&s, all[i]));
  assert_ok(far_scene_error(&s, 500, error));
  far_scene_free(&s);
}

static int chosen(const char *name, double tolerance, int sign, int gradient) {
  const fmm_pair *pair = NULL;
  double params[FMM_MAX_PARAMS];
  int order = 0;
  double expected;
  assert_ok(fmm_pair_find(name, &pair));
  assert_ok(fmm_pair_resolve_params(pair->info, 0, NULL, params));
  assert_ok(fmm_order_for_tolerance(pair, params, tolerance, sign, gradient, 1, 2, &order, &expected));
  return order;
}

static void hold(const char *distribution, const char *pair, int digits, fmm_density_sign sign, int gradient) {
  double tolerance = pow(10, -digits), error[2];
  int order = chosen(pair, tolerance, sign, gradient);
  evaluate(distribution, pair, sign, gradient, order, error);
  if (!(error[0] <= tolerance && error[1] <= tolerance))
    fail_msg("%s %s, 1e-%d, sign %d, gradient %d: order %d gives %g and %g", pair, distribution, digits, sign, gradient, order, error[0], error[1]);
}

static void laplace_keeps_every_tolerance(void **state) {
  static const char *const distributions[] = {"uniform", "ellipsoid", "sphere", "plummer"};
  for (int digits = 2; digits <= 11; digits++) /* each distribution and kind comes in turn; 12 digits: test of its own */
    for (int kind = digits / 2 % 2; kind < 4; kind += 2) hold(distributions[(digits + kind) % 4], "laplace", digits, kind & 1 ? FMM_DENSITY_NONNEGATIVE : FMM_DENSITY_SIGNED, kind >> 1);
}

static void twelve_digits_of_cancelling_densities_are_reached(void **state) { hold("uniform", "laplace", 12, FMM_DENSITY_SIGNED, 0); }

static void other_pairs_keep_the_tolerance(void **state) {
  for (int digits = 2; digits <= 6; digits += 2) {
    hold("uniform", "stokes", digits, FMM_DENSITY_SIGNED, digits == 4);
    hold("plummer", "yukawa", digits, FMM_DENSITY_SIGNED, digits == 4);
    hold("uniform", "yukawa", digits, FMM_DENSITY_NONNEGATIVE, digits == 2);
  }
}

static void two_orders_fewer_are_not_enough_for_the_hardest_case(void **state) {
  for (int digits = 3; digits <= 9; digits += 2) {
    double tolerance = pow(10, -digits), error[2];
    int order = chosen("laplace", tolerance, FMM_DENSITY_SIGNED, 0);
    evaluate("plummer", "laplace", FMM_DENSITY_SIGNED, 0, order - 2, error);
    if (!(error[0] > tolerance)) fail_msg("1e-%d: order %d chosen, %d gives %g", digits, order, order - 2, error[0]);
  }
}

static void a_tolerance_out_of_reach_is_told_by_the_expected_error(void **state) {
  const fmm_pair *pair = NULL;
  const double params[FMM_MAX_PARAMS] = {0};
  int order;
  double expected;
  assert_ok(fmm_pair_find("laplace", &pair));
  assert_ok(fmm_order_for_tolerance(pair, params, 1e-30, FMM_DENSITY_NONNEGATIVE, 0, 1, 2, &order, &expected));
  assert_true(expected > 1e-30 && expected < 1e-10 && order > 10 && order <= FMM_MAX_ORDER);
  assert_ok(fmm_order_for_tolerance(pair, params, 1e-5, FMM_DENSITY_NONNEGATIVE, 0, 1, 2, &order, &expected));
  assert_true(expected > 0 && expected <= 1e-5);
}

/* The memory of the process is passed by: these parameters were not asked before. */
static void the_order_and_its_error_do_not_depend_on_the_number_of_threads(void **state) {
  const fmm_pair *pair = NULL;
  double params[FMM_MAX_PARAMS] = {3.25}, errors[2][FMM_DENSITY_KINDS][2] = {0};
  assert_ok(fmm_pair_find("yukawa", &pair));
  for (int t = 0; t < 2; t++) assert_ok(fmm_far_field_errors(pair, params, 7, 0.5, FMM_DENSITY_SALT, t ? 5 : 1, errors[t]));
  assert_memory_equal(errors[0], errors[1], sizeof errors[0]);
  for (int kind = 0; kind < FMM_DENSITY_KINDS; kind++)
    for (int gradient = 0; gradient < 2; gradient++) assert_true(kind == FMM_DENSITY_NONNEGATIVE ? errors[0][kind][gradient] == 0 : errors[0][kind][gradient] > 0 && errors[0][kind][gradient] < 1e-3);
}

static void points_on_lattices_take_no_lower_order(void **state) {
  for (int digits = 2; digits <= 7; digits++)
    for (int gradient = 0; gradient < 2; gradient++)
      assert_true(chosen("laplace", pow(10, -digits), FMM_DENSITY_SALT, gradient) >= chosen("laplace", pow(10, -digits), FMM_DENSITY_SIGNED, gradient));
}

static void no_order_within_the_tolerance_is_below_the_bound(void **state) {
  static const char *const names[] = {"laplace", "stokes", "yukawa"};
  for (int digits = 1; digits <= 7; digits++)
    for (int k = 0; k < 3; k++) {
      const fmm_pair *pair = NULL;
      double params[FMM_MAX_PARAMS];
      int bound;
      assert_ok(fmm_pair_find(names[k], &pair));
      assert_ok(fmm_pair_resolve_params(pair->info, 0, NULL, params));
      assert_ok(fmm_order_bound(pair, params, pow(10, -digits), FMM_DENSITY_SIGNED, k == 0, 1, 2, &bound));
      assert_true(bound >= FMM_MIN_ORDER && bound <= chosen(names[k], pow(10, -digits), FMM_DENSITY_SIGNED, k == 0));
    }
}

/* The larger of potential's and gradient's at all levels that boxes may have, of which an order's search measures some. */
static double largest_error(const fmm_pair *pair, const double params[FMM_MAX_PARAMS], int order) {
  double largest = 0;
  for (int level = 2; level <= 20; level += 3) {
    double errors[FMM_DENSITY_KINDS][2];
    assert_ok(fmm_far_field_errors(pair, params, order, ldexp(1, -level), FMM_DENSITY_SIGNED, 2, errors));
    for (int gradient = 0; gradient < 2; gradient++) largest = fmax(largest, fmax(errors[FMM_DENSITY_SIGNED][gradient], errors[FMM_DENSITY_ALONE][gradient] / 2));
  }
  return largest;
}

static void an_order_serves_the_levels_that_its_search_left_out_and_one_less_does_not(void **state) {
  const fmm_pair *pair = NULL;
  assert_ok(fmm_pair_find("yukawa", &pair));
  for (int k = 0; k < 4; k++) {
    const double tolerance = 1e-4, params[FMM_MAX_PARAMS] = {pow(12, k - 1)}; /* lengths from beyond the extent to those of middle levels */
    int order;
    double expected;
    assert_ok(fmm_order_for_tolerance(pair, params, tolerance, FMM_DENSITY_SIGNED, 1, 1, 2, &order, &expected));
    const double own = largest_error(pair, params, order);
    assert_true(expected <= tolerance && own <= 1.01 * expected && own >= expected);
    assert_true(largest_error(pair, params, order - 1) > tolerance);
  }
}

/* As the search has it, known or measured. */
static double error_of(const fmm_pair *pair, const double params[FMM_MAX_PARAMS], int order, int gradient) {
  double errors[FMM_DENSITY_KINDS][2], largest = 0;
  if (!fmm_known_errors(pair->info, order, errors)) assert_ok(fmm_far_field_errors(pair, params, order, 1, FMM_DENSITY_SIGNED, 2, errors));
  for (int k = 0; k <= gradient; k++) largest = fmax(largest, fmax(errors[FMM_DENSITY_SIGNED][k], errors[FMM_DENSITY_ALONE][k] / 2));
  return largest;
}

/* Whether the search begins below the answer, at it or above it. */
static void the_order_below_is_not_within_the_tolerance(void **state) {
  static const char *const names[] = {"laplace", "stokes"};
  for (int k = 0; k < 2; k++)
    for (int gradient = 0; gradient < 2; gradient++)
      for (double digits = 1.5; digits < (k ? 7 : 10.5); digits += 0.7) {
        const fmm_pair *pair = NULL;
        const double tolerance = pow(10, -digits), params[FMM_MAX_PARAMS] = {1};
        int order;
        double expected;
        assert_ok(fmm_pair_find(names[k], &pair));
        assert_ok(fmm_order_for_tolerance(pair, params, tolerance, FMM_DENSITY_SIGNED, gradient, 1, 2, &order, &expected));
        assert_true(expected <= tolerance && expected == error_of(pair, params, order, gradient));
        assert_true(order == FMM_MIN_ORDER || error_of(pair, params, order - 1, gradient) > tolerance);
      }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(laplace_keeps_every_tolerance), cmocka_unit_test(twelve_digits_of_cancelling_densities_are_reached),
                                     cmocka_unit_test(other_pairs_keep_the_tolerance), cmocka_unit_test(two_orders_fewer_are_not_enough_for_the_hardest_case),
                                     cmocka_unit_test(a_tolerance_out_of_reach_is_told_by_the_expected_error),
                                     cmocka_unit_test(the_order_and_its_error_do_not_depend_on_the_number_of_threads),
                                     cmocka_unit_test(the_order_below_is_not_within_the_tolerance), cmocka_unit_test(no_order_within_the_tolerance_is_below_the_bound), cmocka_unit_test(points_on_lattices_take_no_lower_order),
                                     cmocka_unit_test(an_order_serves_the_levels_that_its_search_left_out_and_one_less_does_not)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
