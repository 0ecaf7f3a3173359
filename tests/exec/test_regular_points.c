/* Lattices told from random points: what the order of charges of both signs is chosen by. */
#include "test.h"

#include <math.h>

#include "runtime/generate.h"
#include "runtime/memory.h"
#include "runtime/regular_points.h"

enum { MOST = 30000, MANY = 60 * 60 * 60 /* of which some bound the neighbours twice */ };

static double *points;

static int set_up(void **state) { return FMM_ALLOCATE(&points, 3 * MANY, "points") != FMM_OK; }

static int tear_down(void **state) {
  FMM_FREE(&points);
  return 0;
}

/* A cube of edge^3 sites, moved by up to this part of the spacing; returns how many. */
static int fill_lattice(int edge, double moved, double spacing) {
  int n = edge * edge * edge;
  assert_ok(fmm_generate_points("uniform", n, 3, points, 1));
  for (int i = 0; i < n; i++) {
    const int at[3] = {i % edge, i / edge % edge, i / edge / edge};
    for (int a = 0; a < 3; a++) points[3 * i + a] = spacing * (at[a] + 2 * moved * (points[3 * i + a] - 0.5));
  }
  return n;
}

static void lattices_moved_by_up_to_a_fifth_are_regular(void **state) {
  static const double moved[] = {0, 0.01, 0.1, 0.2};
  for (int edge = 10; edge <= 30; edge += 10)
    for (int m = 0; m < 4; m++) {
      int n = fill_lattice(edge, moved[m], 1e-3);
      if (fmm_points_regularity(n, points, 2) != FMM_POINTS_ON_LATTICE) fail_msg("%d^3 moved by %g: taken for irregular", edge, moved[m]);
    }
}

/* 400 sets, none of which may be taken for one: of 1,600 of 30,000 points each none was, with half of the samples three. The sets are always the same. */
static void random_points_are_not(void **state) {
  static const char *const distributions[] = {"uniform", "ellipsoid", "sphere", "plummer"};
  for (int d = 0; d < 4; d++)
    for (int seed = 1; seed <= 100; seed++) {
      assert_ok(fmm_generate_points(distributions[d], 4000, seed, points, 1));
      if (fmm_points_regularity(4000, points, 2)) fail_msg("%s, seed %d: taken for regular", distributions[d], seed);
    }
}

/* A line, a circle, a helix, and fibres here and there, and a circle with two points in each place; random points of a line are not. */
static void even_steps_along_curves_are_told(void **state) {
  enum { A_FIBRE = 100 };
  const double pi = acos(-1);
  for (int n = 1000; n <= MOST; n *= 30)
    for (int kind = 0; kind < 6; kind++) {
      assert_ok(fmm_generate_points("uniform", n, 7, points, 1));
      for (int i = 0; i < n; i++) {
        const double x = (double)i / n, random = points[3 * i], *fibre = points + 3 * (i / A_FIBRE * A_FIBRE);
        const double twice = 2 * pi * (i / 2 * 2) / n, at[6][3] = {{x, 0.3 * x, 0.1 * x}, {cos(2 * pi * x), sin(2 * pi * x), 0}, {cos(60 * x), sin(60 * x), 6 * x},
                                 {fibre[0], fibre[1], fibre[2] + 1e-4 * (1 + i % A_FIBRE)}, {cos(twice), sin(twice), 0}, {random, 0.3 * random, 0.1 * random}};
        if (kind != 3 || i % A_FIBRE) memcpy(points + 3 * i, at[kind], sizeof at[kind]);
      }
      if ((fmm_points_regularity(n, points, 2) == FMM_POINTS_ON_CURVES) != (kind < 5)) fail_msg("curve %d of %d points", kind, n);
    }
}

static void the_answer_does_not_depend_on_threads_or_units(void **state) {
  static const double spacings[] = {1e-306, 1e-200, 1e-100, 1, 1e100, 1e200, 1e306};
  for (int s = 0; s < 7; s++)
    for (int threads = 1; threads <= 5; threads += 2) {
      int n = fill_lattice(20, 0.2, spacings[s]);
      assert_int_equal(fmm_points_regularity(n, points, threads), FMM_POINTS_ON_LATTICE);
    }
}

static void many_points_are_told_as_few_are(void **state) {
  static const double moved[] = {0, 0.2};
  for (int m = 0; m < 2; m++) {
    const int n = fill_lattice(60, moved[m], 1e-3);
    for (int threads = 1; threads <= 3; threads += 2) assert_int_equal(fmm_points_regularity(n, points, threads), FMM_POINTS_ON_LATTICE);
  }
  for (int i = 0; i < MANY; i++) points[3 * i] = cos(1e-4 * i), points[3 * i + 1] = sin(1e-4 * i), points[3 * i + 2] = 1e-6 * i;
  assert_int_equal(fmm_points_regularity(MANY, points, 2), FMM_POINTS_ON_CURVES);
  static const char *const distributions[] = {"uniform", "ellipsoid", "sphere", "plummer"};
  for (int d = 0; d < 4; d++)
    for (int seed = 1; seed <= 10; seed++) {
      assert_ok(fmm_generate_points(distributions[d], MANY, seed, points, 2));
      if (fmm_points_regularity(MANY, points, 2)) fail_msg("%s, seed %d: taken for regular", distributions[d], seed);
    }
}

static void few_coincident_or_far_points_are_not_regular(void **state) {
  for (int i = 0; i < 3 * MOST; i++) points[i] = 1;
  assert_int_equal(fmm_points_regularity(MOST, points, 2), FMM_POINTS_IRREGULAR);
  assert_int_equal(fmm_points_regularity(0, points, 2), FMM_POINTS_IRREGULAR);
  for (int i = 0; i < 3 * 100; i++) points[i] = 1e200 * i; /* a line; squares would overflow */
  assert_int_equal(fmm_points_regularity(6, points, 2), FMM_POINTS_IRREGULAR);
  assert_int_equal(fmm_points_regularity(100, points, 2), FMM_POINTS_ON_CURVES);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(lattices_moved_by_up_to_a_fifth_are_regular), cmocka_unit_test(random_points_are_not), cmocka_unit_test(even_steps_along_curves_are_told),
                                     cmocka_unit_test(the_answer_does_not_depend_on_threads_or_units), cmocka_unit_test(many_points_are_told_as_few_are), cmocka_unit_test(few_coincident_or_far_points_are_not_regular)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
