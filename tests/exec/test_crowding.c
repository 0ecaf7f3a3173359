/* How much random points crowd, told from lattices and molecules: by it the order of gradients is chosen. */
#include "test.h"

#include <math.h>

#include "runtime/crowding.h"
#include "runtime/generate.h"
#include "runtime/memory.h"

enum { MOST = 30000 };

static double *points;

static int set_up(void **state) { return FMM_ALLOCATE(&points, 3 * MOST, "points") != FMM_OK; }

static int tear_down(void **state) {
  FMM_FREE(&points);
  return 0;
}

static double crowding_of(int64_t n, int threads) {
  fmm_point_samples samples;
  double crowding = NAN;
  fmm_point_samples_take(&samples, n, points, threads);
  assert_ok(fmm_points_crowding(&samples, &crowding));
  return crowding;
}

static void random_points_crowd_whatever_their_density_and_scale(void **state) {
  static const char *const distributions[] = {"uniform", "plummer", "ellipsoid", "sphere"};
  for (int d = 0; d < 4; d++)
    for (int seed = 1; seed <= 4; seed++)
      for (int n = 3000; n <= MOST; n *= 10) {
        const double scale = seed == 2 ? 1e-150 : seed == 3 ? 1e150 : 1;
        assert_ok(fmm_generate_points(distributions[d], n, (uint64_t)seed, points, 1));
        for (int i = 0; i < 3 * n; i++) points[i] *= scale;
        const double crowding = crowding_of(n, 2);
        if (!(d < 2 ? crowding > 6 && crowding < 40 : crowding > 100)) fail_msg("%d points, %s, seed %d: %g", n, distributions[d], seed, crowding);
      }
}

/* A cube of edge^3 sites, moved by up to this part of the spacing. */
static int fill_lattice(int edge, double moved) {
  const int n = edge * edge * edge;
  assert_ok(fmm_generate_points("uniform", n, 3, points, 1));
  for (int i = 0; i < n; i++) {
    const int at[3] = {i % edge, i / edge % edge, i / edge / edge};
    for (int a = 0; a < 3; a++) points[3 * i + a] = at[a] + 2 * moved * (points[3 * i + a] - 0.5);
  }
  return n;
}

static void lattices_do_not(void **state) {
  static const double moved[] = {0, 0.01, 0.2, 0.3};
  for (int edge = 10; edge <= 30; edge += 10)
    for (int m = 0; m < 4; m++) {
      const double crowding = crowding_of(fill_lattice(edge, moved[m]), 2);
      if (!(crowding > 0.5 && crowding < 3)) fail_msg("%d^3 moved by %g: %g", edge, moved[m], crowding);
    }
}

/* Of 20,000 sites of a lattice one has a second point beside it, at a millionth of the spacing: whether it is among the samples or not, it is one of few. */
static void a_few_close_pairs_do_not_count(void **state) {
  const int n = fill_lattice(27, 0.2);
  for (int i = 0; i < 10; i++)
    for (int a = 0; a < 3; a++) points[3 * (n + i) + a] = points[3 * (1900 * i) + a] + 1e-6;
  const double crowding = crowding_of(n + 10, 2);
  if (!(crowding < 3)) fail_msg("%g", crowding);
}

/* Sums over neighbours of which many, or all, are in one place, and too few points to tell. */
static void points_in_one_place_and_few_points_are_no_crowd(void **state) {
  assert_ok(fmm_generate_points("uniform", MOST, 1, points, 1));
  for (int i = 0; i < 3 * MOST; i++) points[i] = i < 3 * MOST / 2 ? 0.25 : points[i];
  assert_true(isfinite(crowding_of(MOST, 2)) && crowding_of(MOST, 2) >= 1);
  for (int i = 0; i < 3 * MOST; i++) points[i] = 0.25;
  assert_true(crowding_of(MOST, 2) == 1);
  assert_ok(fmm_generate_points("uniform", MOST, 1, points, 1));
  assert_true(crowding_of(0, 2) == 1 && crowding_of(6, 2) == 1 && crowding_of(90, 2) == 1);
}

static void it_does_not_depend_on_the_number_of_threads(void **state) {
  assert_ok(fmm_generate_points("plummer", MOST, 5, points, 1));
  const double crowding = crowding_of(MOST, 1);
  for (int threads = 2; threads <= 8; threads++) assert_true(crowding_of(MOST, threads) == crowding);
}

static void without_memory_it_fails(void **state) {
  double crowding;
  fmm_point_samples samples;
  assert_ok(fmm_generate_points("uniform", MOST, 1, points, 1));
  fmm_point_samples_take(&samples, MOST, points, 2);
  fmm_memory_fail_at(1);
  assert_int_equal(fmm_points_crowding(&samples, &crowding), FMM_ERR_MEMORY);
  fmm_memory_fail_at(0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(random_points_crowd_whatever_their_density_and_scale), cmocka_unit_test(lattices_do_not),
                                     cmocka_unit_test(a_few_close_pairs_do_not_count), cmocka_unit_test(points_in_one_place_and_few_points_are_no_crowd),
                                     cmocka_unit_test(it_does_not_depend_on_the_number_of_threads), cmocka_unit_test(without_memory_it_fails)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
