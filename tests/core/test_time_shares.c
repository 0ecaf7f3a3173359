/* Shares of works that ran beside one another on one device. */
#include <math.h>

#include "runtime/time_shares.h"
#include "tests/random.h"
#include "tests/test.h"

static void near(double value, double wanted) {
  if (!(fabs(value - wanted) <= 1e-12 * fmax(1, fabs(wanted)))) fail_msg("%.17g where it should be %.17g", value, wanted);
}

static void what_runs_alone_has_all_of_its_time(void **context) {
  const fmm_under_way work[] = {{1, 3, 7}, {3, 4, 0}, {0, 0, 5}, {9, 8, 1}};
  double share[4];
  fmm_time_shares(4, work, share);
  near(share[0], 2), near(share[1], 1), near(share[2], 0), near(share[3], 0);
}

/* As up waits behind U: both end at about the same time, and what follows overlaps the rest of U, but takes three times what is foretold when U is done. */
static void what_overlaps_is_shared_as_foretold(void **context) {
  const fmm_under_way work[] = {{0, 4, 1}, {0, 5, 3}, {4, 8, 1}};
  double share[3];
  fmm_time_shares(3, work, share);
  near(share[0], 1.25), near(share[1], 3.75), near(share[2], 3);
}

/* A long work beside short ones, one after the other, of which each has what is foretold while it can: shared out moment by moment by what is foretold for the whole of each, the first would have a tenth of its second. */
static void what_is_long_gives_way_to_what_is_short(void **context) {
  const fmm_under_way work[] = {{0, 12, 9}, {0, 1, 1}, {1, 2, 1}, {2, 12, 1}}, hurried[] = {{0, 12, 9}, {0, 1, 2}, {1, 2, 1}};
  double share[4];
  fmm_time_shares(4, work, share);
  for (int i = 0; i < 4; i++) near(share[i], work[i].foretold);
  fmm_time_shares(3, hurried, share);
  near(share[0], 10), near(share[1], 1), near(share[2], 1);
}

static void without_a_forecast_shares_are_equal(void **context) {
  const fmm_under_way some[] = {{0, 2, 0}, {0, 2, 5}, {1, 2, NAN}}, infinite[] = {{0, 1, INFINITY}, {0, 1, 2}}, nothing[] = {{0, 1, 1e-310}, {0, 1, 1e-310}};
  double share[3];
  fmm_time_shares(3, some, share);
  near(share[0], 0.5 + 1.0 / 3), near(share[1], 0.5 + 1.0 / 3), near(share[2], 1.0 / 3);
  fmm_time_shares(2, infinite, share);
  near(share[0], 0.5), near(share[1], 0.5);
  fmm_time_shares(2, nothing, share);
  near(share[0], 0.5), near(share[1], 0.5);
}

/* How long anything is under way, by looking at each of the moments of a fine grid. */
static double covered(int n, const fmm_under_way *work, int end) {
  double sum = 0;
  for (int at = 0; at < end; at++) {
    int any = 0;
    for (int i = 0; i < n; i++) any |= work[i].begin <= at && work[i].end > at;
    sum += any;
  }
  return sum;
}

/* Where only works of a set are under way. */
static double covered_by(int n, const fmm_under_way *work, int end, int works) {
  double sum = 0;
  for (int at = 0; at < end; at++) {
    int there = 0;
    for (int i = 0; i < n; i++) there |= (work[i].begin <= at && work[i].end > at) << i;
    sum += there && !(there & ~works);
  }
  return sum;
}

/* By looking at all sets: each has what it has alone, and the largest share for what is foretold is that of the set that has most alone. */
static void shares_are_as_near_to_what_is_foretold_as_can_be(void **context) {
  enum { N = 5, END = 20 };
  seed = 2;
  for (int round = 0; round < 2000; round++) {
    fmm_under_way work[N];
    double share[N], largest = 0, forced = 0;
    for (int i = 0; i < N; i++) work[i] = (fmm_under_way){floor(END * uniform()), floor(END * uniform()), 0.1 + 5 * uniform()};
    fmm_time_shares(N, work, share);
    for (int i = 0; i < N; i++) largest = fmax(largest, share[i] / work[i].foretold);
    for (int works = 1; works < 1 << N; works++) {
      double has = 0, foretold = 0;
      const double alone = covered_by(N, work, END, works);
      for (int i = 0; i < N; i++)
        if (works & 1 << i) has += share[i], foretold += work[i].foretold;
      assert_true(has >= alone - 1e-12 * END);
      forced = fmax(forced, alone / foretold);
    }
    near(largest, forced);
  }
}

static void shares_add_up_to_the_time_in_which_anything_runs(void **context) {
  enum { N = 6, END = 20 };
  seed = 1;
  for (int round = 0; round < 2000; round++) {
    fmm_under_way work[N];
    double share[N], sum = 0;
    for (int i = 0; i < N; i++) work[i] = (fmm_under_way){floor(END * uniform()), floor(END * uniform()), floor(4 * uniform())};
    fmm_time_shares(N, work, share);
    for (int i = 0; i < N; i++) {
      assert_true(share[i] >= 0 && share[i] <= fmax(0, work[i].end - work[i].begin) + 1e-12);
      sum += share[i];
    }
    near(sum, covered(N, work, END));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_runs_alone_has_all_of_its_time), cmocka_unit_test(what_overlaps_is_shared_as_foretold), cmocka_unit_test(what_is_long_gives_way_to_what_is_short),
                                     cmocka_unit_test(shares_are_as_near_to_what_is_foretold_as_can_be), cmocka_unit_test(without_a_forecast_shares_are_equal),
                                     cmocka_unit_test(shares_add_up_to_the_time_in_which_anything_runs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
