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

/* Random points on the unit sphere, and targets about its centre: inside of the sources' bounding box, but far from all of them. */
static void make_shell(int m, double *targets) {
  assert_ok(fmm_generate_points("uniform", N, 3, points, 2));
  for (int i = 0; i < N; i++) {
    double *p = points + 3 * i, r = 0;
    for (int axis = 0; axis < 3; axis++) p[axis] = 2 * p[axis] - 1;
    r = sqrt(p[0] * p[0] + p[1] * p[1] + p[2] * p[2]);
    for (int axis = 0; axis < 3; axis++) p[axis] /= r;
  }
  assert_ok(fmm_generate_points("uniform", m, 4, targets, 2));
  for (int i = 0; i < 3 * m; i++) targets[i] = 0.3 * (targets[i] - 0.5);
}

static void a_kernel_that_dies_away_keeps_the_tolerance_in_a_hollow_of_its_sources(void **state) {
  enum { M = 500 };
  static double targets[3 * M];
  make_shell(M, targets);
  for (double lambda = 5; lambda <= 20; lambda *= 4) {
    fmm_options o = yukawa_of(lambda, 1e-6);
    const double e = error_of(&o, N, points, M, targets);
    if (!(e <= o.tolerance)) fail_msg("lambda %g: error %g", lambda, e);
  }
  for (double lambda = 80; lambda <= 160; lambda *= 2) { /* a few points are one leaf: what is left there leaves a float's range */
    fmm_options o = yukawa_of(lambda, 1e-4);
    o.density_sign = FMM_DENSITY_NONNEGATIVE, o.leaf_size = 1000;
    const double e = error_of(&o, 1000, points, M, targets);
    if (!(e <= o.tolerance)) fail_msg("1,000 sources, lambda %g: error %g", lambda, e);
  }
}

/* All charges of one sign: what they do to one another's fields at the centre nobody told. What is left of them depends on where the tree's boxes lie: with a root of 1.83 times the extent the plan for 5 digits errs by 6e-5,
 * with 1.54 by 7e-7, and fmm_plan_keep_tolerance has to see to it. */
static void gradients_inside_of_a_shell_keep_the_tolerance(void **state) {
  enum { M = 500 };
  static double targets[3 * M], densities[N], potential[M], gradient[3 * M], direct[M], direct_gradient[3 * M];
  static const double root[] = {0, 1, 1.54, 1.83};
  make_shell(M, targets);
  assert_ok(fmm_generate_densities("unit", N, 5, densities, 2));
  for (int digits = 3; digits <= 5; digits++)
    for (int k = 0; k < 4; k++) {
      fmm_options o = defaults(pow(10, -digits));
      fmm_plan *plan = NULL;
      int changed = 1, rounds = 0;
      double estimated;
      o.gradient = 1, o.density_sign = FMM_DENSITY_NONNEGATIVE, o.root_scale = root[k];
      assert_ok(fmm_plan_create(&plan, &o));
      assert_ok(fmm_plan_set_points(plan, N, points, NULL, M, targets));
      for (; changed; rounds++) {
        assert_ok(fmm_plan_execute(plan, densities, potential, gradient));
        assert_ok(fmm_plan_keep_tolerance(plan, densities, potential, gradient, &estimated, &changed));
      }
      assert_ok(fmm_plan_direct(plan, densities, M, NULL, direct, direct_gradient));
      const double e = relative_l2(3 * M, gradient, direct_gradient);
      if (!(e <= o.tolerance && rounds <= (root[k] == 1.54 ? 1 : 3))) fail_msg("%d digits, root %g: error %g of gradients after %d rounds", digits, root[k], e, rounds);
      fmm_plan_destroy(&plan);
    }
}

/* Twenty levels down a box is as wide as 1e9 times the last place of its coordinates. */
static void points_in_a_millionth_of_the_extent_keep_the_tolerance(void **state) {
  make_points();
  for (int i = 0; i < 3 * N; i++) points[i] = 0.37123 + 2e-5 * points[i];
  for (int axis = 0; axis < 3; axis++) points[axis] = 0, points[3 + axis] = 1;
  for (int digits = 8; digits <= 9; digits++) { /* orders 10 and 11 amplify most: 1.5e-7 and 8e-9 */
    fmm_options o = defaults(pow(10, -digits));
    o.leaf_size = 40;
    const double e = error_of(&o, N, points, 0, NULL);
    if (!(e <= o.tolerance)) fail_msg("%d digits: error %g", digits, e);
  }
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

/* 343 places, 100 points in each: neighbours in the same place give nothing, and the next are lengths away (1.7e-5 was the error at 10, 5e2 at 40). Where no order is enough, that is told. */
static void a_kernel_that_dies_away_keeps_the_tolerance_between_places_of_many(void **state) {
  enum { EDGE = 7, EACH = 100, PLACED = EDGE * EDGE * EDGE * EACH };
  static double placed[3 * PLACED];
  for (int i = 0; i < PLACED; i++) {
    const int place = i % (EDGE * EDGE * EDGE), at[3] = {place % EDGE, place / EDGE % EDGE, place / EDGE / EDGE};
    for (int k = 0; k < 3; k++) placed[3 * i + k] = (double)at[k] / EDGE;
  }
  fmm_options o = yukawa_of(10 * EDGE, 1e-6);
  o.leaf_size = 0;
  const double e = error_of(&o, PLACED, placed, 0, NULL);
  if (!(e <= o.tolerance)) fail_msg("10 lengths: error %g", e);
  fmm_plan *plan = NULL;
  o.params[0].value = 40 * EDGE;
  assert_ok(fmm_plan_create(&plan, &o));
  assert_ok(fmm_plan_set_points(plan, PLACED, placed, NULL, 0, NULL));
  assert_true(plan->setup->info.expected_error > o.tolerance);
  fmm_plan_destroy(&plan);
}

/* A lattice in leaves of few points, whose next points are lengths away and maybe not in the leaves beside (potentials erred by 0.014 at 14 lengths, by 1e16 times themselves at 110). Where no order is enough, that is told. */
static void a_kernel_that_dies_away_keeps_the_tolerance_on_lattices_in_small_leaves(void **state) {
  enum { EDGE = 17, PLACED = 4747 };
  static double placed[3 * PLACED];
  for (int i = 0; i < PLACED; i++) placed[3 * i] = i % EDGE, placed[3 * i + 1] = i / EDGE % EDGE, placed[3 * i + 2] = i / EDGE / EDGE;
  fmm_options o = yukawa_of(14, 1.5e-3);
  for (int lengths = 14; lengths <= 28; lengths *= 2) {
    o.params[0].value = lengths, o.leaf_size = 3, o.gradient = 1;
    const double e = error_of(&o, PLACED, placed, 0, NULL);
    if (!(e <= o.tolerance)) fail_msg("%d lengths: error %g", lengths, e);
  }
  fmm_plan *plan = NULL;
  o.params[0].value = 110;
  assert_ok(fmm_plan_create(&plan, &o));
  assert_ok(fmm_plan_set_points(plan, PLACED, placed, NULL, 0, NULL));
  assert_true(plan->setup->info.expected_error > o.tolerance);
  fmm_plan_destroy(&plan);
}

/* In double, whatever the precision of the sums: float holds nothing of 1e21 Pa s (a gradient's error was 0.26), and results are those of 1 divided by it, to a rounding. */
static void viscosity_divides_results_and_does_nothing_else(void **state) {
  static const double viscosities[] = {1e-90, 1e-40, 1e21, 1e40, 1e90};
  double *density = malloc(3 * N * 8), *p[2] = {malloc(3 * N * 8), malloc(3 * N * 8)}, *g[2] = {malloc(9 * N * 8), malloc(9 * N * 8)};
  fmm_options o = defaults(1e-4);
  char id[17] = "";
  make_points();
  assert_ok(fmm_generate_densities("signed", 3 * N, 5, density, 2));
  o.kernel = "stokes", o.gradient = 1, o.n_params = 1, o.precision = FMM_PRECISION_MIXED;
  for (int v = -1; v < (int)(sizeof viscosities / sizeof *viscosities); v++) {
    const double viscosity = v < 0 ? 1 : viscosities[v];
    fmm_plan *plan = NULL;
    o.params[0] = (fmm_param){"viscosity", viscosity};
    assert_ok(fmm_plan_create(&plan, &o));
    assert_ok(fmm_plan_set_points(plan, N, points, NULL, 0, NULL));
    assert_ok(fmm_plan_execute(plan, density, p[v >= 0], g[v >= 0]));
    if (v < 0) memcpy(id, plan->setup->info.plan_id, sizeof id);
    else assert_string_not_equal(id, plan->setup->info.plan_id);
    fmm_plan_destroy(&plan);
    for (int i = 0; v >= 0 && i < 3 * N; i++) assert_true(fabs(p[1][i] * viscosity - p[0][i]) <= 4e-16 * fabs(p[0][i]));
    for (int i = 0; v >= 0 && i < 9 * N; i++) assert_true(fabs(g[1][i] * viscosity - g[0][i]) <= 4e-16 * fabs(g[0][i]));
  }
  free(density), free(p[0]), free(p[1]), free(g[0]), free(g[1]);
}

enum { LINE, CIRCLE, PAIRED_CIRCLE /* two points in each place */ };

static double error_along_curve(int curve, const char *kernel, int64_t n, double tolerance) {
  const double pi = acos(-1);
  const int width = strcmp(kernel, "stokes") ? 1 : 3;
  const size_t rows = (size_t)n * (size_t)width * 8, some = 1000 * (size_t)width * 8;
  double *at = malloc((size_t)n * 24), *density = malloc(rows), *g = malloc(3 * rows), *p = malloc(rows), *pd = malloc(some), *gd = malloc(3 * some);
  int64_t row[1000];
  fmm_options o = defaults(tolerance);
  fmm_plan *plan = NULL;
  for (int i = 0; i < 1000; i++) row[i] = (int64_t)i * n / 1000;
  for (int64_t i = 0; i < n; i++) {
    const double x = (double)(curve == PAIRED_CIRCLE ? i / 2 * 2 : i) / (double)n, place[2][3] = {{x, 0.3 * x, 0.1 * x}, {cos(2 * pi * x), sin(2 * pi * x), 0}};
    memcpy(at + 3 * i, place[curve != LINE], sizeof place[0]);
    for (int k = 0; k < width; k++) density[width * i + k] = (1 + 0.5 * sin(7 * x + 1)) * (k == 1 ? 0.1 : k == 2 ? 1 : 0.3);
  }
  o.kernel = kernel, o.gradient = 1;
  assert_ok(fmm_plan_create(&plan, &o));
  assert_ok(fmm_plan_set_points(plan, n, at, NULL, 0, NULL));
  assert_ok(fmm_plan_execute(plan, density, p, g));
  assert_ok(fmm_plan_direct(plan, density, 1000, row, pd, gd));
  fmm_plan_destroy(&plan);
  for (int i = 0; i < 1000; i++) memmove(g + 3 * width * i, g + 3 * width * row[i], 24 * (size_t)width);
  const double e = relative_l2(3000 * width, g, gd);
  free(at), free(density), free(g), free(p), free(pd), free(gd);
  return e;
}

/* Even steps along a line and around a circle: neighbours before and behind cancel in gradients, also of one sign, the more the nearer they are. */
static void gradients_along_even_curves_keep_the_tolerance(void **state) {
  static const char *const kernels[] = {"laplace", "stokes"};
  for (int curve = LINE; curve <= PAIRED_CIRCLE; curve++)
    for (int k = 0; k < 2; k++)
      for (double tolerance = 1e-3; tolerance > 5e-7; tolerance /= 10) {
        const double e = error_along_curve(curve, kernels[k], N, tolerance);
        if (!(e <= tolerance)) fail_msg("curve %d, %s: gradient error %g, tolerance %g", curve, kernels[k], e, tolerance);
      }
  for (double tolerance = 1e-3; tolerance > 5e-5; tolerance /= 10) assert_true(error_along_curve(CIRCLE, "laplace", 100000, tolerance) <= tolerance);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_kernel_with_a_length_far_shorter_than_the_extent_keeps_the_tolerance), cmocka_unit_test(a_kernel_that_dies_away_between_points_keeps_the_tolerance),
      cmocka_unit_test(a_kernel_that_dies_away_keeps_the_tolerance_at_targets_apart), cmocka_unit_test(a_kernel_that_dies_away_keeps_the_tolerance_in_a_hollow_of_its_sources),
      cmocka_unit_test(gradients_inside_of_a_shell_keep_the_tolerance), cmocka_unit_test(points_in_a_millionth_of_the_extent_keep_the_tolerance), cmocka_unit_test(densities_of_any_size_give_the_same_digits), cmocka_unit_test(columns_of_any_size_keep_their_digits),
      cmocka_unit_test(a_kernel_that_dies_away_keeps_the_tolerance_between_places_of_many),
      cmocka_unit_test(a_kernel_that_dies_away_keeps_the_tolerance_on_lattices_in_small_leaves), cmocka_unit_test(viscosity_divides_results_and_does_nothing_else), cmocka_unit_test(gradients_along_even_curves_keep_the_tolerance)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
