/* bench-cpu as a process: what it says of the V and U lists, on a tree whose lists can be counted by hand: 8,192 uniform points in a cube of their own extent,
 * leaves of at most 40, are 8 x 8 x 8 leaves of 16 points on average. */
#include "command.h"
#include <jansson.h>
#include <math.h>

#define TREE "n=8192 root=1 leaf=40 order=4 tolerance=1e-4 samples=0 threads=1 "

static json_t *bench(const char *arguments) {
  json_error_t error;
  run_well(arguments);
  json_t *r = json_loads(out, 0, &error);
  if (!r || !json_is_object(r)) fail_msg("not one JSON object: line %d: %s", error.line, error.text);
  return r;
}

/* The number at keys, a path "phases.vlist.pairs". */
static double at(const json_t *object, const char *path) {
  char keys[128], *rest = keys;
  snprintf(keys, sizeof keys, "%s", path);
  for (char *key; (key = strsep(&rest, "."));) object = json_object_get(object, key);
  if (!json_is_number(object)) fail_msg("the report has no number %s", path);
  return json_number_value(object);
}

/* Numbers are printed with five digits: a product of two of them is off by 1e-4 at most. */
static void assert_near(double value, double expected) {
  if (!(fabs(value - expected) <= 1.1e-4 * fabs(expected))) fail_msg("%.10g, not %.10g", value, expected);
}

/* Pairs of the same boxes n an edge that are adjacent or one: 3 n - 2 an axis. A full level of n boxes an edge whose parents are m = n/2 has
 * (4 (3 m - 2))^3 pairs with adjacent parents, of which (3 n - 2)^3 are adjacent themselves. */
static double pairs_of_level(double n) { return pow(4 * (3 * n / 2 - 2), 3) - pow(3 * n - 2, 3); }
static double families_of_level(double n) { return pow(3 * n / 2 - 2, 3) - pow(n / 2, 3); }

static void flops_of_the_V_list_are_of_true_pairs_and_of_what_is_done(void **state) {
  json_t *r = bench(TREE "runs=3");
  double frequencies = 7 * 7 * 3 + 7 * 4; /* of a real lattice of 7 points an edge: kz = 1, 2, 3 whole, of kz = 0 those with kx of 0 .. 3 */
  double seconds = at(r, "phases.vlist.seconds"), peak = at(r, "phases.vlist.peak_flops_per_s");
  assert_int_equal((int)at(r, "leaves"), 512);
  assert_near(at(r, "points_per_leaf"), 16);
  assert_near(at(r, "phases.vlist.pairs"), pairs_of_level(4) + pairs_of_level(8));
  assert_near(at(r, "phases.vlist.frequencies"), frequencies);
  assert_near(at(r, "phases.vlist.usual.flops"), 8 * frequencies * (pairs_of_level(4) + pairs_of_level(8)));
  assert_near(at(r, "phases.vlist.done.flops"), 8 * 27 * frequencies * (families_of_level(4) + families_of_level(8)));
  assert_near(peak, 64e9); /* one core of the nominal machine in single: 2 GHz, 8 lanes, 2 multiply-adds a cycle */
  for (int k = 0; k < 2; k++) {
    json_t *count = json_object_get(json_object_get(json_object_get(r, "phases"), "vlist"), k ? "done" : "usual");
    assert_near(at(count, "flops_per_s") * seconds, at(count, "flops"));
    assert_near(at(count, "of_peak") * peak, at(count, "flops_per_s"));
  }
  assert_null(json_object_get(r, "pair_rates")); /* not asked for */
  json_decref(r);
}

static void a_phase_in_double_is_measured_by_the_peak_of_doubles(void **state) {
  json_t *r = bench(TREE "precision=double runs=1");
  assert_near(at(r, "phases.vlist.peak_flops_per_s"), 32e9);
  json_decref(r);
}

/* Three components: nine products a pair of boxes. */
static void components_count(void **state) {
  json_t *r = bench(TREE "kernel=stokes runs=1");
  assert_near(at(r, "phases.vlist.usual.flops"), 9 * 8 * at(r, "phases.vlist.frequencies") * at(r, "phases.vlist.pairs"));
  json_decref(r);
}

static void rates_of_the_U_list_are_compared_evaluation_by_evaluation(void **state) {
  json_t *r = bench(TREE "rates=16 runs=3"), *rates = json_object_get(r, "pair_rates");
  double middle = at(rates, "of_cache.median");
  assert_int_equal((int)at(rates, "leaf"), 16);
  assert_near(at(rates, "ulist") * at(r, "phases.ulist.seconds"), at(r, "phases.ulist.pairs")); /* an odd number of runs: one evaluation's */
  assert_true(at(rates, "of_cache.min") > 0 && at(rates, "of_cache.min") <= middle && middle <= at(rates, "of_cache.max"));
  assert_true(at(rates, "one_direction") > 0 && at(rates, "both_directions") > 0);
  assert_string_equal(json_string_value(json_object_get(rates, "taken")), "both_directions");
  json_decref(r);
  r = bench(TREE "rates=16 runs=0");
  assert_null(json_object_get(json_object_get(r, "pair_rates"), "of_cache")); /* no evaluation was timed between rates */
  json_decref(r);
}

static void leaves_that_leave_the_caches_are_refused(void **state) {
  run(TREE "rates=257 runs=1");
  assert_int_equal(exit_code, 2);
  assert_non_null(strstr(err, "257"));
  assert_non_null(strstr(err, "256"));
  assert_string_equal(out, "");
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(flops_of_the_V_list_are_of_true_pairs_and_of_what_is_done),
                                     cmocka_unit_test(a_phase_in_double_is_measured_by_the_peak_of_doubles),
                                     cmocka_unit_test(components_count),
                                     cmocka_unit_test(rates_of_the_U_list_are_compared_evaluation_by_evaluation),
                                     cmocka_unit_test(leaves_that_leave_the_caches_are_refused)};
  if (argc < 2 || !(command_path = realpath(argv[1], NULL))) return 2;
  return cmocka_run_group_tests(tests, enter_directory, leave_directory);
}
