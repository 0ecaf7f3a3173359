/* Values of any size: densities that a float does not hold, alone and in columns side by side; kernels with a length that is far shorter than the extent, or than the distance between
 * points. */
#include "test.h"

#include "plan_error.h"
#include "runtime/plan.h"

enum { N = 20000 };
static double points[3 * N];

static void make_points(void) { assert_ok(fmm_generate_points("uniform", N, 1, points, 2)); }

static fmm_options yukawa_of(double lambda, double tolerance) {
  fmm_options o = defaults(tolerance);
  o.kernel = "yukawa", o.leaf_size = 60, o.n_params = 1, o.params[0] = (fmm_param){"lambda", lambda};
  return o;
}

/* One point far away makes boxes of the length in K as fine as they come: orders were measured on coarser ones, where nothing is left of K (error 6e-2). */
static void a_kernel_with_a_length_far_shorter_than_the_extent_keeps_the_tolerance(void **state) {
  make_points();
  points[0] = 1e5, points[1] = 5e4, points[2] = 0;
  for (int lambda = 8; lambda <= 30; lambda += 22) {
    fmm_options o = yukawa_of(lambda, 1e-5);
    const double e = error_of(&o, N, points, 0, NULL);
    if (!(e <= o.tolerance)) fail_msg("lambda %d: error %g", lambda, e);
  }
}

/* Coarse boxes see subnormal values, whose inverses were infinite; and single precision rounds e^-x by x roundings. */
static void a_kernel_that_dies_away_between_points_keeps_the_tolerance(void **state) {
  make_points();
  for (double lambda = 2000; lambda <= 54000; lambda *= 3) {
    fmm_options o = yukawa_of(lambda, 1e-6);
    double e = error_of(&o, N, points, 0, NULL);
    if (!(e <= o.tolerance)) fail_msg("lambda %g: error %g", lambda, e);
  }
}

/* Smaller results than errors nearer by would be: 2e-2 was the error at 20 lengths. Where no order is enough, that is told. */
static void a_kernel_that_dies_away_keeps_the_tolerance_at_targets_apart(void **state) {
  enum { M = 8000 };
  static double targets[3 * M];
  make_points();
  assert_ok(fmm_generate_points("uniform", M, 2, targets, 2));
  for (int i = 0; i < M; i++) targets[3 * i] += 2;
  for (double lambda = 5; lambda <= 20; lambda *= 2) {
    fmm_options o = yukawa_of(lambda, 1e-6);
    const double e = error_of(&o, N, points, M, targets);
    if (!(e <= o.tolerance)) fail_msg("lambda %g: error %g", lambda, e);
  }
  fmm_options o = yukawa_of(100, 1e-6);
  fmm_plan *plan = NULL;
  assert_ok(fmm_plan_create(&plan, &o));
  assert_ok(fmm_plan_set_points(plan, N, points, NULL, M, targets));
  assert_true(plan->setup->info.expected_error > o.tolerance);
  fmm_plan_destroy(&plan);
}

static void densities_of_any_size_give_the_same_digits(void **state) {
  enum { M = 20000 };
  static const int exponents[] = {-900, -200, -130, 125, 130, 900};
  double *x = malloc(3 * M * 8), *density = malloc(M * 8), *first = malloc(M * 8), *p = malloc(M * 8);
  fmm_options o = defaults(1e-6);
  fmm_plan *plan = NULL;
  o.leaf_size = 60, o.precision = FMM_PRECISION_MIXED;
  assert_ok(fmm_generate_points("plummer", M, 3, x, 2));
  assert_ok(fmm_generate_densities("signed", M, 5, density, 2));
  assert_ok(fmm_plan_create(&plan, &o));
  assert_ok(fmm_plan_set_points(plan, M, x, NULL, 0, NULL));
  assert_int_equal(plan->setup->info.precision[FMM_PHASE_VLIST], FMM_PRECISION_SINGLE);
  assert_ok(fmm_plan_execute(plan, density, first, NULL));
  for (size_t k = 0; k < sizeof exponents / sizeof *exponents; k++) {
    for (int i = 0; i < M; i++) density[i] = ldexp(density[i], exponents[k]);
    assert_ok(fmm_plan_execute(plan, density, p, NULL));
    for (int i = 0; i < M; i++)
      if (p[i] != ldexp(first[i], exponents[k])) fail_msg("densities times 2^%d: row %d is %g for %g", exponents[k], i, p[i], ldexp(first[i], exponents[k]));
    for (int i = 0; i < M; i++) density[i] = ldexp(density[i], -exponents[k]);
  }
  fmm_plan_destroy(&plan);
  free(x), free(density), free(first), free(p);
}

/* Each column as if it were alone: masses in kilograms beside charges in coulombs. */
static void columns_of_any_size_keep_their_digits(void **state) {
  enum { COLUMNS = 3 };
  static const int exponents[COLUMNS] = {-170, 0, 133};
  double *density = malloc(N * COLUMNS * 8), *one = malloc(N * 8), *p = malloc(N * COLUMNS * 8), *alone = malloc(N * 8);
  fmm_options o = defaults(1e-6);
  fmm_plan *all = NULL, *single = NULL;
  make_points();
  o.leaf_size = 60, o.precision = FMM_PRECISION_MIXED;
  assert_ok(fmm_generate_densities("signed", N * COLUMNS, 5, density, 2));
  for (int i = 0; i < N * COLUMNS; i++) density[i] = ldexp(density[i], exponents[i % COLUMNS]);
  assert_ok(fmm_plan_create(&single, &o));
  assert_ok(fmm_plan_set_points(single, N, points, NULL, 0, NULL));
  o.n_columns = COLUMNS;
  assert_ok(fmm_plan_create(&all, &o));
  assert_ok(fmm_plan_set_points(all, N, points, NULL, 0, NULL));
  assert_ok(fmm_plan_execute(all, density, p, NULL));
  for (int c = 0; c < COLUMNS; c++) {
    for (int i = 0; i < N; i++) one[i] = density[i * COLUMNS + c];
    assert_ok(fmm_plan_execute(single, one, alone, NULL));
    for (int i = 0; i < N; i++) one[i] = p[i * COLUMNS + c];
    assert_true(relative_l2(N, one, alone) <= 1e-6);
  }
  fmm_plan_destroy(&all), fmm_plan_destroy(&single);
  free(density), free(one), free(p), free(alone);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_kernel_with_a_length_far_shorter_than_the_extent_keeps_the_tolerance), cmocka_unit_test(a_kernel_that_dies_away_between_points_keeps_the_tolerance),
      cmocka_unit_test(a_kernel_that_dies_away_keeps_the_tolerance_at_targets_apart), cmocka_unit_test(densities_of_any_size_give_the_same_digits), cmocka_unit_test(columns_of_any_size_keep_their_digits)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
