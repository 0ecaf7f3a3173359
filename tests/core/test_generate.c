/* The standard cases: shapes and moments of the four distributions against their known values, the same bits for any number of threads
 * and in any pieces, and golden values that any machine must reproduce. */
#include "test.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/generate.h"

enum { N = 200000 };
static double points[3 * N];

static double norm(const double p[3]) { return sqrt(p[0] * p[0] + p[1] * p[1] + p[2] * p[2]); }

/* Mean of the samples is within five standard errors of what it must be (deviation: of one sample). */
static void check_mean(double sum, double mean, double deviation) { assert_true(fabs(sum / N - mean) < 5 * deviation / sqrt(N)); }

static void uniform_points_fill_the_unit_cube(void **state) {
  double sum[3] = {0}, product = 0;
  assert_ok(fmm_generate_points("uniform", N, 1, points, 2));
  for (int i = 0; i < N; i++) {
    for (int a = 0; a < 3; a++) {
      assert_true(points[3 * i + a] >= 0 && points[3 * i + a] < 1);
      sum[a] += points[3 * i + a];
    }
    product += (points[3 * i] - 0.5) * (points[3 * i + 1] - 0.5);
  }
  for (int a = 0; a < 3; a++) check_mean(sum[a], 0.5, sqrt(1.0 / 12));
  check_mean(product, 0, 1.0 / 12);
}

static void sphere_points_are_uniform_on_the_unit_sphere(void **state) {
  double z = 0, z2 = 0, xy = 0;
  assert_ok(fmm_generate_points("sphere", N, 1, points, 2));
  for (int i = 0; i < N; i++) {
    const double *p = points + 3 * i;
    assert_true(fabs(norm(p) - 1) < 1e-15); /* a few roundings */
    z += p[2], z2 += p[2] * p[2], xy += p[0] * p[1];
  }
  check_mean(z, 0, sqrt(1.0 / 3));
  check_mean(z2, 1.0 / 3, sqrt(1.0 / 5 - 1.0 / 9)); /* Archimedes: z is uniform */
  check_mean(xy, 0, sqrt(1.0 / 15));
}

static void ellipsoid_points_have_uniform_angles_on_1_1_4(void **state) {
  double theta = 0, quadrant = 0;
  assert_ok(fmm_generate_points("ellipsoid", N, 1, points, 2));
  for (int i = 0; i < N; i++) {
    const double *p = points + 3 * i;
    assert_true(fabs(p[0] * p[0] + p[1] * p[1] + p[2] * p[2] / 16 - 1) < 2e-15);
    theta += acos(fmax(-1, fmin(1, p[2] / 4)));
    quadrant += p[0] > 0 && p[1] > 0;
  }
  check_mean(theta, acos(-1) / 2, acos(-1) / sqrt(12));
  check_mean(quadrant, 0.25, sqrt(3.0 / 16));
}

static void plummer_points_enclose_plummers_mass(void **state) {
  double within_half = 0, within_one = 0, upper = 0;
  assert_ok(fmm_generate_points("plummer", N, 1, points, 2));
  for (int i = 0; i < N; i++) {
    double r = norm(points + 3 * i);
    assert_true(r <= 38.8);
    within_half += r < 0.5, within_one += r < 1, upper += points[3 * i + 2] > 0;
  }
  double half = pow(0.2, 1.5) / 0.999, one = pow(0.5, 1.5) / 0.999; /* r^3 / (1 + r^2)^(3/2) of the kept mass */
  check_mean(within_half, half, sqrt(half * (1 - half)));
  check_mean(within_one, one, sqrt(one * (1 - one)));
  check_mean(upper, 0.5, 0.5);
}

static void densities_are_of_their_kind(void **state) {
  double sum = 0;
  assert_ok(fmm_generate_densities("unit", N, 3, points, 2));
  for (int i = 0; i < N; i++) assert_true(points[i] >= 0 && points[i] < 1), sum += points[i];
  check_mean(sum, 0.5, sqrt(1.0 / 12));
  sum = 0;
  assert_ok(fmm_generate_densities("signed", N, 3, points, 2));
  for (int i = 0; i < N; i++) assert_true(points[i] >= -0.5 && points[i] < 0.5), sum += points[i];
  check_mean(sum, 0, sqrt(1.0 / 12));
  assert_ok(fmm_generate_densities("ones", N, 3, points, 2));
  for (int i = 0; i < N; i++) assert_true(points[i] == 1);
}

static void threads_and_pieces_do_not_matter_but_the_seed_does(void **state) {
  double *more = malloc(sizeof points);
  for (int k = 0; fmm_distribution_names[k]; k++) {
    assert_ok(fmm_generate_points(fmm_distribution_names[k], 1000, 7, points, 1));
    assert_ok(fmm_generate_points(fmm_distribution_names[k], 1000, 7, more, 7));
    assert_memory_equal(points, more, 24000);
    assert_ok(fmm_generate_point_range(fmm_distribution_names[k], 400, 600, 7, more, 2));
    assert_memory_equal(points + 1200, more, 14400);
    assert_ok(fmm_generate_points(fmm_distribution_names[k], 1000, 8, more, 1));
    for (int i = 0; i < 1000; i++) assert_true(points[3 * i] != more[3 * i]);
  }
  free(more);
}

static void golden_values_are_reproduced_bit_for_bit(void **state) {
  static const struct { const char *name; double p[3]; } golden[] = {
      {"uniform", {0x1.f9603f6b9117p-3, 0x1.cd02cb59088e8p-3, 0x1.9a40e158cff28p-4}},
      {"ellipsoid", {0x1.be9f8a2b197a6p-4, 0x1.61f73af4db322p-1, 0x1.6db2da521db02p+1}},
      {"sphere", {0x1.131ea6bcfe317p-3, 0x1.b415e6049eee4p-1, -0x1.034fe04a37748p-1}},
      {"plummer", {0x1.2069e4b6a9391p-4, 0x1.c9284b4a3dc22p-2, -0x1.0fd7937e808acp-2}}};
  for (int k = 0; k < 4; k++) {
    double p[3];
    assert_ok(fmm_generate_point_range(golden[k].name, 123456789, 1, 42, p, 1));
    if (memcmp(p, golden[k].p, sizeof p)) fail_msg("%s: %a, %a, %a", golden[k].name, p[0], p[1], p[2]);
  }
  double density;
  assert_ok(fmm_generate_densities("signed", 1, 42, &density, 1));
  if (density != -0x1.dd6f66a940aa8p-2) fail_msg("density %a", density);
}

static void unknown_names_are_refused_with_the_known_ones(void **state) {
  assert_int_equal(fmm_generate_points("cube", 1, 1, points, 1), FMM_ERR_ARGUMENT);
  assert_non_null(strstr(fmm_last_error(), "'cube'"));
  assert_non_null(strstr(fmm_last_error(), "plummer"));
  assert_int_equal(fmm_generate_densities("zeros", 1, 1, points, 1), FMM_ERR_ARGUMENT);
  assert_non_null(strstr(fmm_last_error(), "signed"));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(uniform_points_fill_the_unit_cube),
                                     cmocka_unit_test(sphere_points_are_uniform_on_the_unit_sphere),
                                     cmocka_unit_test(ellipsoid_points_have_uniform_angles_on_1_1_4),
                                     cmocka_unit_test(plummer_points_enclose_plummers_mass),
                                     cmocka_unit_test(densities_are_of_their_kind),
                                     cmocka_unit_test(threads_and_pieces_do_not_matter_but_the_seed_does),
                                     cmocka_unit_test(golden_values_are_reproduced_bit_for_bit),
                                     cmocka_unit_test(unknown_names_are_refused_with_the_known_ones)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
