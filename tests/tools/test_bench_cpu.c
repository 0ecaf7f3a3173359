/* bench-cpu as a process: what it says of the V and U lists and of teams in turns, on a tree whose lists can be counted by hand: 8,192 uniform points in a cube of their own extent,
 * leaves of at most 40, are 8 x 8 x 8 leaves of 16 points on average. */
#include "command.h"
#include <jansson.h>
#include <math.h>

#define TREE_OF_ANY_TEAM "n=8192 root=1 leaf=40 order=4 tolerance=1e-4 samples=0 "
#define TREE TREE_OF_ANY_TEAM "threads=1 "

static json_t *parse(const char *text) {
  json_error_t error;
  json_t *r = json_loads(text, 0, &error);
  if (!r || !json_is_object(r)) fail_msg("not one JSON object: line %d: %s", error.line, error.text);
  return r;
}

static json_t *bench(const char *arguments) {
  run_well(arguments);
  return parse(out);
}

/* The number at keys, a path "phases.vlist.pairs". */
static double at(const json_t *object, const char *path) {
  char keys[128], *rest = keys;
  snprintf(keys, sizeof keys, "%s", path);
  for (char *key; (key = strsep(&rest, "."));) object = json_object_get(object, key);
  if (!json_is_number(object)) fail_msg("the report has no number %s", path);
  return json_number_value(object);
}

/* Numbers are printed with five digits: three of them together are off by 1.5e-4 at most. */
static void assert_near(double value, double expected) {
  if (!(fabs(value - expected) <= 1.6e-4 * fabs(expected))) fail_msg("%.10g, not %.10g", value, expected);
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
  assert_string_equal(json_string_value(json_object_get(r, "profile")), getenv("FMM_PROFILE"));
  assert_near(peak, 80e9); /* one core of the nominal machine in single: 2.5 GHz, 8 lanes, 2 multiply-adds a cycle */
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
  assert_near(at(r, "phases.vlist.peak_flops_per_s"), 40e9);
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

static void assert_spread(const json_t *object) {
  assert_true(at(object, "min") > 0 && at(object, "min") <= at(object, "median") && at(object, "median") <= at(object, "max"));
}

/* Both lines of two teams: of two threads where there are as many. */
static void bench_two_teams(const char *arguments, int *threads, json_t *line[2]) {
  char words[256];
  *threads = fmm_cores_allowed() > 1 ? 2 : 1;
  snprintf(words, sizeof words, TREE_OF_ANY_TEAM "threads=1,%d %s", *threads, arguments);
  run_well(words);
  char *second = strchr(out, '\n');
  assert_non_null(second);
  *second++ = 0;
  line[0] = parse(out), line[1] = parse(second);
}

/* In a line after that of the evaluations, in which they change nothing. */
static void set_ups_of_moved_points_are_timed(void **state) {
  char *rest;
  run_well(TREE "runs=1 moves=3");
  for (int line = 0; line < 2; line++) {
    char *begin = line ? rest : out, *end = strchr(begin, '\n');
    assert_non_null(end);
    *end = 0, rest = end + 1;
    json_t *r = parse(begin);
    if (!line) assert_int_equal((int)at(r, "leaves"), 512);
    else {
      assert_int_equal((int)at(r, "moves"), 3);
      assert_true(at(r, "moved_s.min") > 0 && at(r, "moved_s.min") <= at(r, "moved_s.median") && at(r, "moved_s.median") <= at(r, "moved_s.max"));
      assert_true(at(r, "set_s.min") > 0 && at(r, "set_s.min") <= at(r, "set_s.median") && at(r, "set_s.median") <= at(r, "set_s.max"));
    }
    json_decref(r);
  }
  assert_true(*rest == 0);
}

static void several_teams_in_turns_have_a_line_each_and_efficiencies(void **state) {
  static const char *const with_times[] = {"whole", "up", "ulist", "vlist", "down", "kernels_in_cache"};
  int threads;
  json_t *line[2], *efficiency;
  bench_two_teams("rates=16 runs=3", &threads, line);
  assert_int_equal((int)at(line[0], "threads"), 1);
  assert_int_equal((int)at(line[1], "threads"), threads);
  assert_true(json_equal(json_object_get(line[0], "plan_id"), json_object_get(line[1], "plan_id")));
  assert_null(json_object_get(line[0], "efficiency")); /* it is the base */
  efficiency = json_object_get(line[1], "efficiency");
  assert_int_equal((int)at(efficiency, "threads_of_base"), 1);
  for (size_t i = 0; i < sizeof with_times / sizeof *with_times; i++) assert_spread(json_object_get(efficiency, with_times[i]));
  assert_null(json_object_get(efficiency, "wlist")); /* this tree has no such pairs */
  json_decref(line[0]), json_decref(line[1]);
}

static void the_efficiency_of_a_turn_is_the_ratio_of_its_times(void **state) {
  int threads;
  json_t *line[2];
  bench_two_teams("rates=16 runs=1", &threads, line);
  const json_t *efficiency = json_object_get(line[1], "efficiency");
  assert_near(at(efficiency, "whole.median") * threads * at(line[1], "evaluation_s.median"), at(line[0], "evaluation_s.median"));
  assert_near(at(efficiency, "vlist.median") * threads * at(line[1], "phases.vlist.seconds"), at(line[0], "phases.vlist.seconds"));
  assert_near(at(efficiency, "kernels_in_cache.median") * threads * at(line[0], "pair_rates.around"), at(line[1], "pair_rates.around"));
  json_decref(line[0]), json_decref(line[1]);
}

static void a_list_of_threads_is_read_whole_or_refused(void **state) {
  static const char *const lists[] = {"1,", ",1", "1,,1", "1;1", "1,x", "-1", "", "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1"};
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
    char words[256];
    snprintf(words, sizeof words, TREE_OF_ANY_TEAM "runs=1 'threads=%s'", lists[i]);
    run(words);
    assert_int_equal(exit_code, 2);
    assert_non_null(strstr(err, "threads="));
  }
  run(TREE_OF_ANY_TEAM "threads=1,1 serve=1");
  assert_int_equal(exit_code, 2);
  assert_non_null(strstr(err, "serve"));
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
                                     cmocka_unit_test(set_ups_of_moved_points_are_timed),
                                     cmocka_unit_test(several_teams_in_turns_have_a_line_each_and_efficiencies),
                                     cmocka_unit_test(the_efficiency_of_a_turn_is_the_ratio_of_its_times),
                                     cmocka_unit_test(a_list_of_threads_is_read_whole_or_refused),
                                     cmocka_unit_test(leaves_that_leave_the_caches_are_refused)};
  if (argc < 2 || !(command_path = realpath(argv[1], NULL))) return 2;
  return cmocka_run_group_tests(tests, enter_directory, leave_directory);
}
