/* The forecast ties tuner, costs, schedules and memory together, consistently; memory by shapes written out here. */
#include "test.h"
#include "kernels/pair/pair_tiles.h"
#include "machines.h"
#include "sched/forecast.h"

static fmm_status estimate(void *context, int n_trees, const fmm_tree_options *choice, fmm_counts *counts) {
  double n = *(double *)context;
  for (int i = 0; i < n_trees; i++) {
    int depth = 0;
    while (depth < 8 && n > choice[i].leaf_size * exp2(3 * depth)) depth++;
    counts[i] = full_tree(n, depth, 6);
    counts[i].same_points = 1;
  }
  return FMM_OK;
}

static fmm_forecast forecast(const char *machine, double n, fmm_schedule_kind kind) {
  static fmm_machine m;
  m = recorded_machine(machine);
  fmm_forecast_case what = {.machine = &m, .pair = &fmm_info_laplace, .kind = kind, .estimate = estimate, .context = &n};
  fmm_forecast f;
  what.precisions.n = 1;
  for (int p = 0; p < FMM_N_PHASES; p++) what.precisions.set[0][p] = FMM_PRECISION_DOUBLE;
  assert_ok(fmm_forecast_make(&what, &f));
  return f;
}

static void the_chosen_schedule_is_the_best_of_the_list(void **state) {
  fmm_forecast f = forecast("xeon16-h200-8sm", 1e6, FMM_SCHEDULE_AUTO);
  assert_int_equal(f.n_schedules, 5);
  for (int i = 0; i < f.n_schedules; i++) {
    assert_true(f.schedule[i].makespan.seconds >= f.tuned.makespan.seconds);
    if (f.schedule[i].schedule->kind == f.tuned.assignment.kind) assert_true(f.schedule[i].makespan.seconds == f.tuned.makespan.seconds);
  }
}

static void a_named_schedule_tunes_the_tree_for_itself(void **state) {
  fmm_forecast any = forecast("xeon16-h200", 1e6, FMM_SCHEDULE_AUTO), cpu = forecast("xeon16-h200", 1e6, FMM_SCHEDULE_CPU);
  assert_int_equal(cpu.tuned.assignment.kind, FMM_SCHEDULE_CPU);
  assert_true(cpu.tuned.makespan.seconds > any.tuned.makespan.seconds);
}

static void fewer_threads_change_times_but_no_choice(void **state) {
  double n = 1e6;
  fmm_machine m = recorded_machine("cpu-2-cores");
  fmm_forecast_case what = {.machine = &m, .pair = &fmm_info_laplace, .precisions = {.n = 1}, .threads = 2, .estimate = estimate, .context = &n};
  fmm_forecast two, one;
  assert_ok(fmm_forecast_make(&what, &two));
  what.threads = 1;
  assert_ok(fmm_forecast_make(&what, &one));
  assert_true(one.tuned.leaf_size == two.tuned.leaf_size && one.tuned.root_scale == two.tuned.root_scale);
  assert_true(fabs(one.tuned.makespan.seconds / two.tuned.makespan.seconds - 2) < 0.01); /* regions of 3 us do not halve */
}

static void what_does_not_fit_on_the_gpu_runs_elsewhere_or_is_refused(void **state) {
  double n = 1e6;
  fmm_machine m = recorded_machine("xeon16-h200");
  fmm_forecast_case what = {.machine = &m, .pair = &fmm_info_laplace, .precisions = {.n = 1}, .threads = 16, .estimate = estimate, .context = &n};
  fmm_forecast f;
  assert_ok(fmm_forecast_make(&what, &f));
  assert_int_equal(f.tuned.assignment.kind, FMM_SCHEDULE_GPU);
  what.device_memory_bytes = f.memory.device_least / 2;
  assert_ok(fmm_forecast_make(&what, &f));
  assert_int_equal(f.tuned.assignment.kind, FMM_SCHEDULE_CPU);
  assert_true(f.memory.device == 0 && strstr(f.costs.total[FMM_PHASE_UP][FMM_DEVICE_GPU][0].reason, "memory"));
  what.kind = FMM_SCHEDULE_GPU;
  assert_int_equal(fmm_forecast_make(&what, &f), FMM_ERR_MEMORY);
}

static void intervals_surround_the_prediction_and_absent_devices_have_none(void **state) {
  fmm_forecast f = forecast("cpu-2-cores", 1e5, FMM_SCHEDULE_AUTO);
  double seconds, interval[2];
  fmm_forecast_phase(&f, FMM_PHASE_VLIST, FMM_DEVICE_CPU, &seconds, interval);
  assert_true(seconds > 0 && isnan(interval[0]) && isnan(interval[1])); /* a hand-written machine: no runs */
  f.costs.total[FMM_PHASE_VLIST][FMM_DEVICE_CPU][0].p90_error = 0.2;
  fmm_forecast_phase(&f, FMM_PHASE_VLIST, FMM_DEVICE_CPU, &seconds, interval);
  assert_true(fabs(0.2 - fabs(seconds / interval[0] - 1)) < 1e-12 && fabs(0.2 - fabs(seconds / interval[1] - 1)) < 1e-12); /* errors are relative to what is measured */
  f.costs.total[FMM_PHASE_VLIST][FMM_DEVICE_CPU][0].p90_error = 1.5;
  fmm_forecast_phase(&f, FMM_PHASE_VLIST, FMM_DEVICE_CPU, &seconds, interval);
  assert_true(fabs(interval[0] / seconds - 0.4) < 1e-12 && isinf(interval[1]));
  fmm_forecast_phase(&f, FMM_PHASE_VLIST, FMM_DEVICE_GPU, &seconds, interval);
  assert_true(isnan(seconds) && isnan(interval[0]) && isnan(interval[1]));
}

static const fmm_precision in_double[FMM_N_PHASES] = {FMM_PRECISION_DOUBLE, FMM_PRECISION_DOUBLE, FMM_PRECISION_DOUBLE,
                                                      FMM_PRECISION_DOUBLE, FMM_PRECISION_DOUBLE, FMM_PRECISION_DOUBLE};

/* 32,768 leaves of 32 points, order 6: 152 surface points, 196 solid harmonics, lattice of 11. */
static void memory_is_the_sum_of_the_arrays(void **state) {
  static const double nowhere[FMM_N_PHASES], everywhere[FMM_N_PHASES] = {1, 1, 1, 1, 1, 1};
  fmm_counts c = full_tree(1048576, 5, 6);
  fmm_footprint f;
  c.same_points = 1;
  fmm_footprint_of(&c, &fmm_info_laplace, 2, in_double, nowhere, &f);
  double n = 1048576, boxes = 1 + 8 + 64 + 512 + 4096 + 32768, square = 8 * 152.0 * 152;
  assert_true(f.points == n * 28 && f.planes == n * 16);
  assert_true(f.expansions == 2 * boxes * 152 * 8);
  assert_true(fabs(f.operators / (2 * (square * 2 / 8 + square + 2 * 8 * 152.0 * 196 / 8) + 64 * 16 * 11 * 11 * 6) - 1) < 1e-12);
  assert_true(f.device == 0 && f.host > f.points + f.planes + f.expansions + f.operators);
  double on_cpu = f.workspace;
  fmm_footprint_of(&c, &fmm_info_laplace, 2, in_double, everywhere, &f);
  assert_true(on_cpu > 0 && f.workspace == 0 && f.expansions == 0); /* the CPU has no part */
  double matrix = 8 * 8 * 24 * 20, parents = boxes - 32768, entries = c.total[FMM_PHASE_ULIST].entries; /* eight parity blocks of 19 unknowns, padded to 20, rows to 24 */
  double u_parts = 0.5 * (entries - 32768) * (8 * 32 + 24); /* of each pair of leaves a value a point of one of them */
  double others = n * 32 + n * 40 + boxes * 56 + entries * 20 + parents * (32 + 32 + 27 * 4 + 4) /* V: children of source and target, lines, row */;
  double rest = others + boxes * (3 * 152 + 8 * 20) * 8 + 20 * matrix + 16 * 343 * 6 * 121; /* what leaves have between their sums and products is not in memory */
  assert_true(fabs(f.device / (u_parts + rest + 2 * 16 * 8 * 6 * 121 * parents) - 1) < 1e-12);
  assert_true(fabs(f.device_least / (rest + 2 * 16 * 8 * 1 * 121 * parents + 8 * 8 * 152 * parents) - 1) < 1e-12); /* and sums between slabs */
  fmm_counts higher = full_tree(1048576, 5, 7); /* 218 surface points, lattice of 13, parity blocks of 40 */
  fmm_footprint g;
  higher.same_points = 1;
  fmm_footprint_of(&higher, &fmm_info_laplace, 2, in_double, everywhere, &g);
  rest = others + boxes * (3 * 218 + 8 * 40) * 8 + 20 * 8.0 * 8 * 40 * 40 + 16 * 343 * 7 * 169;
  assert_true(fabs(g.device / (u_parts + rest + 2 * 16 * 8 * 7 * 169 * parents) - 1) < 1e-12);
  fmm_precision u_in_single[FMM_N_PHASES];
  memcpy(u_in_single, in_double, sizeof u_in_single);
  u_in_single[FMM_PHASE_ULIST] = FMM_PRECISION_SINGLE;
  fmm_footprint_of(&higher, &fmm_info_laplace, 2, u_in_single, everywhere, &g);
  u_parts = 0.5 * (entries - 32768) * (4 * 32 + 24);
  assert_true(fabs(g.device / (u_parts + rest + 2 * 16 * 8 * 7 * 169 * parents) - 1) < 1e-12);
  const double by_moments = g.device; /* in either precision */
  u_in_single[FMM_PHASE_UP] = FMM_PRECISION_MIXED;
  fmm_footprint_of(&higher, &fmm_info_laplace, 2, u_in_single, everywhere, &g);
  assert_true(g.device == by_moments);
  u_in_single[FMM_PHASE_UP] = FMM_PRECISION_DOUBLE;
  higher.n_sources = FMM_MOMENTS_MANY; /* in as many leaves as go by moments, and one less: check potentials are in memory */
  fmm_footprint_of(&higher, &fmm_info_laplace, 2, u_in_single, everywhere, &g);
  const double many = g.device;
  higher.n_sources--;
  fmm_footprint_of(&higher, &fmm_info_laplace, 2, u_in_single, everywhere, &g);
  assert_true(fabs(g.device - many - 32768 * 218 * 8.0) < 200);
  higher.n_sources = (int64_t)n;
  double one_way, units = 8 * n + 4 * 32768; /* L2P: a record for two targets */
  higher.same_points = 0;                    /* U is summed one way then, and sums and products beside it are apart */
  fmm_footprint_of(&higher, &fmm_info_laplace, 2, in_double, everywhere, &g);
  one_way = g.device;
  fmm_footprint_of(&higher, &fmm_info_laplace, 2, u_in_single, everywhere, &g);
  assert_true(fabs((g.device - one_way) / (units + boxes * (218 + 1 /* shell fields */) * 8 + 32768 * 218 * 8.0 /* check potentials */) - 1) < 1e-9);
  higher.same_points = 1;
  static const double far_alone[FMM_N_PHASES] = {1, 0, 1, 1, 1, 1};
  double in_float;
  fmm_footprint_of(&higher, &fmm_info_laplace, 2, u_in_single, far_alone, &g);
  in_float = g.device;
  fmm_footprint_of(&higher, &fmm_info_laplace, 2, in_double, far_alone, &g);
  assert_true(g.device == in_float); /* U is not beside them */
  higher.n_targets = FMM_LEAVES_MANY; /* in as many leaves as go in one launch with their products, and one less */
  fmm_footprint_of(&higher, &fmm_info_laplace, 2, in_double, far_alone, &g);
  const double filled = g.device;
  higher.n_targets--;
  fmm_footprint_of(&higher, &fmm_info_laplace, 2, in_double, far_alone, &g);
  assert_true(fabs(g.device - filled - boxes * (218 + 1) * 8 - 8 * FMM_LEAVES_MANY - 4 * 32768) < 200);
  c.same_points = 0;
  assert_true(f.set_up > 24 * 0.5 * (entries - 32768) && f.set_up < 2000 * 32768.0); /* pairs' records and less than 2 KB a leaf */
  double arrays = f.host - f.workspace - f.set_up;
  fmm_footprint_of(&c, &fmm_info_laplace, 2, in_double, everywhere, &f);
  assert_true(fabs(f.host - f.workspace - f.set_up - arrays - n * 28) < 1); /* bytes */
}

/* 8,192 points in one leaf: 256 tiles, of which each sums 129, 127 of them in both directions. */
static void one_leaf_has_what_its_tiles_give_to_one_another(void **state) {
  static const double u_on_gpu[FMM_N_PHASES] = {[FMM_PHASE_ULIST] = 1};
  const fmm_precision u_in_single[FMM_N_PHASES] = {[FMM_PHASE_ULIST] = FMM_PRECISION_SINGLE};
  fmm_counts c = full_tree(8192, 0, 6);
  fmm_footprint f, single, one_way;
  c.same_points = 1, c.both_on_gpu[0] = c.both_on_gpu[1] = 1;
  fmm_footprint_of(&c, &fmm_info_laplace, 2, in_double, u_on_gpu, &f);
  fmm_footprint_of(&c, &fmm_info_laplace, 2, u_in_single, u_on_gpu, &single);
  c.both_on_gpu[0] = c.both_on_gpu[1] = 0;
  fmm_footprint_of(&c, &fmm_info_laplace, 2, in_double, u_on_gpu, &one_way);
  assert_true(f.device == one_way.device + 8.0 * 127 * 8192 + 24 * 256 * 129 && f.set_up == one_way.set_up + 24 * 256 * 129);
  assert_true(f.device - single.device == 4.0 * 127 * 8192 && single.set_up == f.set_up); /* parts of four bytes */
  c.gradient = 1; /* of four values, in single alone; the results are as many whichever way they are summed */
  fmm_footprint_of(&c, &fmm_info_laplace, 2, u_in_single, u_on_gpu, &one_way);
  c.both_on_gpu[1] = 1;
  fmm_footprint_of(&c, &fmm_info_laplace, 2, u_in_single, u_on_gpu, &single);
  assert_true(single.device == one_way.device + 16.0 * 127 * 8192 + 24 * 256 * 129);
}

/* Mates and halos are there only where the CPU sums pairs in both directions: Laplace, but not Stokes with gradient. */
static void only_pairs_summed_in_both_directions_have_halos(void **state) {
  static const double far_on_gpu[FMM_N_PHASES] = {1, 0, 1, 1, 1, 1};
  fmm_counts c = full_tree(1048576, 5, 6);
  fmm_footprint f;
  c.same_points = 1;
  fmm_footprint_of(&c, &fmm_info_laplace, 2, in_double, far_on_gpu, &f);
  assert_true(f.workspace > 8 * c.total[FMM_PHASE_ULIST].entries);
  c.gradient = 1;
  fmm_footprint_of(&c, &fmm_info_stokes, 2, in_double, far_on_gpu, &f);
  assert_true(f.workspace == 0);
}

/* Pairs take their parts by the tiles that leaves are cut into, which grow with their points; none where a third-order step is taken, or entries are too many. */
static void parts_of_pairs_grow_with_the_leaves_and_follow_the_tolerance(void **state) {
  static const double u_on_gpu[FMM_N_PHASES] = {[FMM_PHASE_ULIST] = 1};
  const fmm_precision u_in_single[FMM_N_PHASES] = {[FMM_PHASE_ULIST] = FMM_PRECISION_SINGLE};
  double before = 0;
  for (int points = 270; points <= 400; points += 2) {
    fmm_counts c = full_tree((int64_t)points * 32768, 5, 6);
    fmm_footprint one_way, f;
    c.same_points = c.third_order = 1;
    fmm_footprint_of(&c, &fmm_info_laplace, 2, in_double, u_on_gpu, &one_way);
    c.third_order = 0;
    fmm_footprint_of(&c, &fmm_info_laplace, 2, in_double, u_on_gpu, &f);
    double pairs = 0.5 * (c.total[FMM_PHASE_ULIST].entries - 32768), tiles = (f.device - one_way.device) / (pairs * (8.0 * points + 24));
    fmm_footprint single;
    fmm_footprint_of(&c, &fmm_info_laplace, 2, u_in_single, u_on_gpu, &single);
    assert_true(fabs((f.device - single.device) / (4.0 * points * pairs * tiles) - 1) < 1e-9);
    assert_true(tiles >= 1 && tiles < 4 && f.device_least == one_way.device_least && f.set_up > one_way.set_up);
    if (before > 0) assert_true(fabs(tiles - before) < 0.2); /* no steps */
    before = tiles;
    c.total[FMM_PHASE_ULIST].entries = 3e9;
    fmm_footprint_of(&c, &fmm_info_laplace, 2, in_double, u_on_gpu, &f);
    c.third_order = 1;
    fmm_footprint_of(&c, &fmm_info_laplace, 2, in_double, u_on_gpu, &one_way);
    assert_true(f.device == one_way.device);
  }
  assert_true(before > 1.5);
}

static void a_tree_without_far_field_has_no_expansions(void **state) {
  static const double nowhere[FMM_N_PHASES];
  fmm_counts c = full_tree(100, 0, 6);
  fmm_footprint f;
  fmm_footprint_of(&c, &fmm_info_laplace, 2, in_double, nowhere, &f);
  assert_true(f.expansions == 0 && f.operators == 0 && f.workspace == 0 && f.host > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_chosen_schedule_is_the_best_of_the_list),
                                     cmocka_unit_test(parts_of_pairs_grow_with_the_leaves_and_follow_the_tolerance),
                                     cmocka_unit_test(a_named_schedule_tunes_the_tree_for_itself),
                                     cmocka_unit_test(fewer_threads_change_times_but_no_choice),
                                     cmocka_unit_test(what_does_not_fit_on_the_gpu_runs_elsewhere_or_is_refused),
                                     cmocka_unit_test(intervals_surround_the_prediction_and_absent_devices_have_none),
                                     cmocka_unit_test(memory_is_the_sum_of_the_arrays),
                                     cmocka_unit_test(one_leaf_has_what_its_tiles_give_to_one_another),
                                     cmocka_unit_test(only_pairs_summed_in_both_directions_have_halos),
                                     cmocka_unit_test(a_tree_without_far_field_has_no_expansions)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
