/* What fmm-run makes of the densities it is given: their signs, how few outweigh the rest, what cancels, and points without any. What is chosen before there are results is tested without the check, which would mend it. */
#include "command.h"
#include <math.h>
#include "run_report.h"
#include "runtime/io/input.h"

/* Half of the charges in one place, or not: only spread ones are declared to be in phase, for which a lower order serves. */
static void charges_in_one_place_are_not_in_phase(void **state) {
  double order[2], error[2];
  for (int spread = 0; spread < 2; spread++) {
    FILE *file = fopen("spot.csv", "wb");
    assert_non_null(file);
    for (int i = 0; i < 12000; i++) {
      const int here = i % 2 && !spread;
      fprintf(file, "%.17g,%.17g,%.17g,1\n", here ? 0 : fmod(i * 0.7548776662466927, 1), here ? 0 : fmod(i * 0.5698402909980532, 1), here ? 0 : fmod(i * 0.4501942, 1));
    }
    assert_int_equal(fclose(file), 0);
    run_well("spot.csv --digits 9 --schedule cpu --verify 12000 --leaf-size 100 --json --no-check");
    json_t *r = report();
    order[spread] = number_at(r, "plan", "order"), error[spread] = number_at(r, "error", "relative_l2");
    json_decref(r);
  }
  remove("spot.csv");
  assert_true(order[0] > order[1] && error[0] <= 1e-9 && error[1] <= 1e-9);
}

/* Pairs of opposite charges, far away: each quantity is judged by what rounding leaves of it. */
static void densities_that_cancel_are_named_as_the_cause(void **state) {
  write_text("pair.csv", "0,0,0,1\n1e-9,0,0,-1\n");
  write_text("far.csv", "1,0.3,0.2\n0.7,0.8,0.1\n0.3,0.4,0.51\n");
  run_well("pair.csv --targets far.csv --digits 12 --gradient --verify 3 --json --no-check");
  json_t *r = report();
  if (number_at(r, "error", "gradient_relative_l2") <= 1e-12) skip(); /* rounded alike in both sums */
  json_decref(r);
  assert_non_null(strstr(err, "the densities cancel"));
  assert_non_null(strstr(err, "in the gradient"));
  assert_null(strstr(err, "above the tolerance"));
}

/* One charge among zeros, in the middle of all points, a corner of boxes: not densities of one sign whose fields add up. */
static void one_charge_among_zeros_keeps_the_tolerance(void **state) {
  enum { POINTS = 3000 };
  FILE *file = fopen("lone.csv", "wb");
  assert_non_null(file);
  fputs("x,y,z,density\n0,0,0,0\n1,1,1,0\n0.5,0.5,0.5,1\n", file);
  for (int i = 3; i < POINTS; i++) fprintf(file, "%.17g,%.17g,%.17g,0\n", fmod(i * 0.7548776662466927, 1), fmod(i * 0.5698402909980532, 1), fmod(i * 0.4501942, 1));
  assert_int_equal(fclose(file), 0);
  double order[2];
  for (int spread = 0; spread < 2; spread++) {
    run_well(spread ? "lone.csv --digits 9 --leaf-size 40 --verify 3000 --json --no-check --densities unit" : "lone.csv --digits 9 --leaf-size 40 --verify 3000 --json --no-check");
    json_t *r = report();
    order[spread] = number_at(r, "plan", "order");
    if (!(number_at(r, "error", "relative_l2") <= 1e-9)) fail_msg("error %g", number_at(r, "error", "relative_l2")); /* the tolerance */
    json_decref(r);
  }
  assert_true(order[0] > order[1]);
}

/* At random, for points as even as others' sequences are taken for a lattice's. */
static double hash(int i) { return fmod(fabs(sin(12.9898 * (i + 1)) * 43758.5453), 1); }

/* n points, every step'th with two densities of which one is zero at a time, the others without any. */
static void write_tracers(const char *path, int n, int step) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  for (int i = 0; i < n; i++)
    fprintf(file, "%.17g,%.17g,%.17g,%d,%d\n", hash(3 * i), hash(3 * i + 1), hash(3 * i + 2), i % step ? 0 : i % 2 ? 0 : 1, i % step ? 0 : i % 2 ? -1 : 0);
  assert_int_equal(fclose(file), 0);
}

static void many_points_without_density_are_targets_alone(void **state) {
  fmm_input parted, whole;
  json_t *r;
  write_tracers("tracers.csv", 3000, 3);
  run_well("tracers.csv --json --no-check");
  r = report();
  assert_true(number_at(r, "case", "sources") == 3000); /* a third have some */
  json_decref(r);
  write_tracers("tracers.csv", 3000, 5);
  run_well("tracers.csv --json --no-check --verify 3000 --output parted.npy");
  r = report();
  assert_true(number_at(r, "case", "points") == 3000 && number_at(r, "case", "sources") == 600 && number_at(r, "case", "targets") == 3000);
  assert_true(number_at(r, "error", "relative_l2") <= 1e-6 && number_at(r, "error", "samples") == 3000);
  json_decref(r);
  write_text("nothing.csv", "0,0,0,0,0\n");
  run_well("tracers.csv --targets nothing.csv --json --no-check"); /* targets of the caller's own stay what they are */
  r = report();
  assert_true(number_at(r, "case", "sources") == 3000 && number_at(r, "case", "targets") == 1);
  json_decref(r);
  run_well("nothing.csv --json --no-check");
  json_decref(report());
  run_well("tracers.csv --targets tracers.csv --digits 12 --output whole.npy -q");
  assert_ok(fmm_input_read_densities("parted.npy", 3000, &parted)); /* rows are the points', in their order */
  assert_ok(fmm_input_read_densities("whole.npy", 3000, &whole));
  double error = 0, size = 0;
  assert_true(parted.k == 2 && whole.k == 2);
  for (int i = 0; i < 6000; i++) error += pow(parted.densities[i] - whole.densities[i], 2), size += pow(whole.densities[i], 2);
  assert_true(sqrt(error) <= 1e-6 * sqrt(size));
  fmm_input_free(&parted);
  fmm_input_free(&whole);
}

static void points_of_a_lattice_stay_sources(void **state) {
  enum { EDGE = 16 };
  FILE *file = fopen("lattice.csv", "wb");
  assert_non_null(file);
  for (int i = 0; i < EDGE * EDGE * EDGE; i++) { /* rods of charges, which are no lattice by themselves */
    const int x = i % EDGE, y = i / EDGE % EDGE, z = i / EDGE / EDGE;
    fprintf(file, "%d,%d,%d,%d\n", x, y, z, x % 4 || y % 2 ? 0 : z % 2 ? 1 : -1);
  }
  assert_int_equal(fclose(file), 0);
  run_well("lattice.csv --json --no-check --digits 3 --verify 5000");
  json_t *r = report();
  assert_true(number_at(r, "case", "sources") == EDGE * EDGE * EDGE && number_at(r, "error", "relative_l2") <= 1e-3);
  json_decref(r);
}

/* 5,999 points a side away from the only charge, 40 lengths: as sources without density they erred by 6e5 and 2.3e-6. */
static void yukawa_at_points_far_from_all_density_keeps_the_tolerance(void **state) {
  FILE *file = fopen("far.csv", "wb");
  assert_non_null(file);
  for (int i = 0; i < 6000; i++)
    fprintf(file, "%.17g,%.17g,%.17g,%d\n", hash(3 * i) + (i ? 2 : 0), hash(3 * i + 1), hash(3 * i + 2), !i);
  assert_int_equal(fclose(file), 0);
  for (int digits = 2; digits <= 6; digits += 4) {
    char line[256];
    snprintf(line, sizeof line, "far.csv --kernel yukawa --param lambda=40 --gradient --digits %d --verify 6000 --json --no-check", digits);
    run_well(line);
    json_t *r = report();
    const double p = number_at(r, "error", "relative_l2"), g = number_at(r, "error", "gradient_relative_l2");
    if (!(p <= pow(10, -digits) && g <= pow(10, -digits))) fail_msg("%d digits: errors %g and %g", digits, p, g);
    json_decref(r);
  }
}

/* Charges sin(t)^(l+1) cos(l f) on a x 2a latitudes and longitudes of the unit sphere, of which next to nothing is left. */
static void write_harmonic(const char *path, int a, int l) {
  const double pi = acos(-1);
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  for (int i = 0; i < a; i++)
    for (int j = 0; j < 2 * a; j++) {
      const double t = (i + 0.5) * pi / a, f = j * pi / a;
      fprintf(file, "%.17g,%.17g,%.17g,%.17g\n", sin(t) * cos(f), sin(t) * sin(f), cos(t), pow(sin(t), l + 1) * cos(l * f));
    }
  assert_int_equal(fclose(file), 0);
}

/* Forces along the normals times sin t on such a grid: the capillary forces of a drop. */
static void write_drop(const char *path, int a) {
  const double pi = acos(-1);
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  for (int i = 0; i < a; i++)
    for (int j = 0; j < 2 * a; j++) {
      const double t = (i + 0.5) * pi / a, f = j * pi / a, x = sin(t) * cos(f), y = sin(t) * sin(f), z = cos(t);
      fprintf(file, "%.17g,%.17g,%.17g,%.17g,%.17g,%.17g\n", x, y, z, x * sin(t), y * sin(t), z * sin(t));
    }
  assert_int_equal(fclose(file), 0);
}

/* Without a look at the results these err by 1.0, 1.9e-3 and 1.0e-5 (direct sums in single precision), 3.9e-6 and 4.0e-2. */
static void what_cancels_more_than_was_expected_is_planned_anew(void **state) {
  static const struct { const char *line; double tolerance; } cases[] = {
      {"few.csv --digits 1 --verify 2000 --json", 1e-1}, {"few.csv --digits 3 --verify 2000 --json", 1e-3}, {"few.csv --digits 6 --verify 2000 --json", 1e-6},
      {"many.csv --digits 6 --verify 3000 --json --repeat 2", 1e-6}, {"drop.csv --kernel stokes --digits 2 --verify 3000 --json", 1e-2}};
  write_harmonic("few.csv", 31, 16);
  write_harmonic("many.csv", 100, 60);
  write_drop("drop.csv", 180);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char line[128];
    run_well(cases[i].line);
    json_t *r = report();
    const double e = number_at(r, "error", "relative_l2"), estimated = number_at(r, "check", "estimated_error");
    if (!(e <= cases[i].tolerance)) fail_msg("%s: error %g", cases[i].line, e);
    assert_true(number_at(r, "check", "tightened") > 1 && number_at(r, "check", "rounds") > 1);
    assert_true(estimated < 2 * e && e < 2 * estimated);
    assert_non_null(strstr(err, "the plan is made anew"));
    json_decref(r);
    snprintf(line, sizeof line, "%s --no-check", cases[i].line);
    run_well(line);
    r = report();
    assert_true(number_at(r, "error", "relative_l2") > cases[i].tolerance && !json_object_get(r, "check"));
    json_decref(r);
  }
  run_well("few.csv --digits 3 --precision mixed --json"); /* what is named stays */
  json_t *r = report();
  assert_null(json_object_get(r, "check"));
  json_decref(r);
}

int main(int argc, char **argv) {
  if (argc != 2) return fprintf(stderr, "usage: test_run_densities FMM-RUN\n"), 1;
  command_path = realpath(argv[1], NULL);
  if (!command_path) return perror(argv[1]), 1;
  const struct CMUnitTest tests[] = {cmocka_unit_test(charges_in_one_place_are_not_in_phase), cmocka_unit_test(densities_that_cancel_are_named_as_the_cause),
                                     cmocka_unit_test(one_charge_among_zeros_keeps_the_tolerance), cmocka_unit_test(many_points_without_density_are_targets_alone),
                                     cmocka_unit_test(points_of_a_lattice_stay_sources), cmocka_unit_test(what_cancels_more_than_was_expected_is_planned_anew),
                                     cmocka_unit_test(yukawa_at_points_far_from_all_density_keeps_the_tolerance)};
  return cmocka_run_group_tests(tests, enter_directory, leave_directory);
}
