/* Makespans against sums and maxima written out by hand; the choice never takes what cannot run. */
#include "test.h"
#include "machines.h"

static const fmm_precision precision[FMM_N_PHASES] = {FMM_PRECISION_DOUBLE, FMM_PRECISION_DOUBLE, FMM_PRECISION_DOUBLE,
                                                      FMM_PRECISION_DOUBLE, FMM_PRECISION_DOUBLE, FMM_PRECISION_DOUBLE};
static const fmm_precision_sets in_double = {1, {{FMM_PRECISION_DOUBLE, FMM_PRECISION_DOUBLE, FMM_PRECISION_DOUBLE,
                                                  FMM_PRECISION_DOUBLE, FMM_PRECISION_DOUBLE, FMM_PRECISION_DOUBLE}}};
enum { UP, U, V, W, X, DOWN };
static const double cpu_s[FMM_N_PHASES] = {2, 40, 16, 3, 5, 7}, gpu_s[FMM_N_PHASES] = {1, 4, 8, 0.5, 0.75, 1.5};
/* Copies: densities 0.25 s, results 0.5 s, equivalents 1 s, checks 2 s; adding results 0.125 s. All are sums of powers of two: exact. */
enum { DENSITIES = 25, RESULTS = 50, EQUIVALENTS = 100, CHECKS = 200 };

static fmm_cost_table table(void) {
  fmm_cost_table t;
  memset(&t, 0, sizeof t);
  for (int p = 0; p < FMM_N_PHASES; p++)
    for (int k = 0; k < FMM_N_PRECISIONS; k++) {
      t.total[p][FMM_DEVICE_CPU][k] = (fmm_cost){.seconds = cpu_s[p], .feasible = 1};
      t.total[p][FMM_DEVICE_GPU][k] = (fmm_cost){.seconds = gpu_s[p], .feasible = 1};
    }
  t.density_bytes = DENSITIES, t.potential_bytes = RESULTS, t.up_equivalent_bytes = EQUIVALENTS, t.down_check_bytes = CHECKS;
  t.h2d_bytes_per_s = t.d2h_bytes_per_s = 100, t.driving_slowdown = 1, t.sum_s = 0.125;
  return t;
}

static fmm_makespan evaluate(const fmm_cost_table *t, fmm_schedule_kind kind) {
  fmm_assignment a;
  fmm_makespan m;
  fmm_schedule_find(kind)->assign(t, precision, &a);
  assert_int_equal(a.kind, kind);
  fmm_makespan_of(t, &a, &m);
  return m;
}

static void assert_makespan(fmm_makespan m, double expected) {
  if (!m.feasible || m.seconds != expected) fail_msg("%g (%s) is not %g", m.seconds, m.reason ? m.reason : "feasible", expected);
}

static void cpu_takes_the_sum_of_its_phases(void **state) {
  fmm_cost_table t = table();
  fmm_makespan m = evaluate(&t, FMM_SCHEDULE_CPU);
  assert_makespan(m, 2 + 40 + 16 + 3 + 5 + 7);
  assert_true(m.transfer_s == 0 && m.device_busy_s[FMM_DEVICE_CPU] == 73 && m.device_busy_s[FMM_DEVICE_GPU] == 0);
}

static void gpu_takes_its_phases_and_the_copies_of_densities_and_results(void **state) {
  fmm_cost_table t = table();
  fmm_makespan m = evaluate(&t, FMM_SCHEDULE_GPU); /* the results wait for U, the last: nothing to add on the host */
  assert_makespan(m, 0.25 + (1 + 4 + 8 + 0.5 + 0.75 + 1.5) + 0.5);
  assert_true(m.transfer_s == 0.75);
}

static void hybrid1_takes_the_longer_side_and_the_sum(void **state) {
  fmm_cost_table t = table();
  assert_makespan(evaluate(&t, FMM_SCHEDULE_HYBRID1), (2 + 16 + 3 + 5 + 7) + 0.125); /* U on the GPU, 0.25 + 4 + 0.5, is hidden */
  t.total[U][FMM_DEVICE_GPU][0].seconds = 64;
  assert_makespan(evaluate(&t, FMM_SCHEDULE_HYBRID1), 0.25 + 64 + 0.5 + 0.125); /* now the CPU's 33 are */
}

static void hybrid2_is_the_reverse(void **state) {
  fmm_cost_table t = table();
  assert_makespan(evaluate(&t, FMM_SCHEDULE_HYBRID2), 40 + 0.125);
  t.total[U][FMM_DEVICE_CPU][0].seconds = 1;
  assert_makespan(evaluate(&t, FMM_SCHEDULE_HYBRID2), 0.25 + (1 + 8 + 0.5 + 0.75 + 1.5) + 0.5 + 0.125);
}

/* CPU: up 0-2, V 2-18, check potentials on the GPU at 20. GPU: X 0.25-1, U 1-5, equivalents there at 3, W 5-5.5, down 20-21.5, results 22. */
static void hybrid3_waits_for_the_check_potentials(void **state) {
  fmm_cost_table t = table();
  fmm_makespan m = evaluate(&t, FMM_SCHEDULE_HYBRID3);
  assert_makespan(m, 2 + 16 + 2 + 1.5 + 0.5); /* the CPU made no results: nothing to add */
  assert_true(m.phase_start_s[X][FMM_DEVICE_GPU] == 0.25 && m.phase_end_s[U][FMM_DEVICE_GPU] == 5 && m.phase_start_s[W][FMM_DEVICE_GPU] == 5);
  assert_true(m.phase_start_s[DOWN][FMM_DEVICE_GPU] == 20 && isnan(m.phase_start_s[DOWN][FMM_DEVICE_CPU]));
  assert_true(m.transfer_s == 0.25 + 1 + 2 + 0.5 && m.device_busy_s[FMM_DEVICE_CPU] == 18);
}

static void driving_the_gpu_slows_the_cpu(void **state) {
  fmm_cost_table t = table();
  t.driving_slowdown = 1.5;
  assert_makespan(evaluate(&t, FMM_SCHEDULE_HYBRID1), 33 * 1.5 + 0.125);
  assert_makespan(evaluate(&t, FMM_SCHEDULE_CPU), 73); /* not driven: not slowed */
}

/* U three quarters on the GPU: CPU 2 + 16 + 5 + 7 + 3 + 10, GPU 0.25 + 3 + 0.5. V a half on the GPU besides: equivalents at 3 (2 + 1), its 4 s
 * after U ends at 3.25, half the check potentials back at 8.25; CPU: up, V's half to 10, X 15, down 22, W 25, U 35. */
static void fractions_divide_phases_and_their_copies(void **state) {
  fmm_cost_table t = table();
  fmm_assignment a;
  fmm_makespan m;
  fmm_schedule_find(FMM_SCHEDULE_CPU)->assign(&t, precision, &a);
  a.gpu_fraction[U] = 0.75;
  fmm_makespan_of(&t, &a, &m);
  assert_makespan(m, 2 + 16 + 5 + 7 + 3 + 10 + 0.125);
  a.gpu_fraction[V] = 0.5;
  fmm_makespan_of(&t, &a, &m);
  assert_makespan(m, 2 + 8 + 5 + 7 + 3 + 10 + 0.125);
  assert_true(m.phase_start_s[V][FMM_DEVICE_GPU] == 3.25 && m.phase_end_s[V][FMM_DEVICE_GPU] == 7.25);
  assert_true(m.transfer_s == 0.25 + 1 + 1 + 0.5);
  t.total[V][FMM_DEVICE_GPU][0].seconds = 40; /* its half ends at 23.25, back at 24.25; the CPU does W and U (to 28) before down */
  fmm_makespan_of(&t, &a, &m);
  assert_makespan(m, 2 + 8 + 5 + 3 + 10 + 7 + 0.125);
  assert_true(m.phase_start_s[DOWN][FMM_DEVICE_CPU] == 28);
}

static void the_frame_is_added_where_the_cpu_takes_part(void **state) {
  fmm_cost_table t = table();
  t.frame_s = 0.5;
  assert_makespan(evaluate(&t, FMM_SCHEDULE_CPU), 73.5);
  assert_makespan(evaluate(&t, FMM_SCHEDULE_HYBRID1), 33.125 + 0.5);
  assert_makespan(evaluate(&t, FMM_SCHEDULE_GPU), 0.25 + 15.75 + 0.5);
}

/* Densities of 25 bytes are staged before they are copied, results of 50 where the GPU alone makes and delivers them. */
static void staging_and_the_drivers_calls_are_added_where_the_gpu_takes_part(void **state) {
  fmm_cost_table t = table();
  t.staging_s_per_byte = 0.25, t.evaluation_s = 2, t.joint_s = 3;
  assert_makespan(evaluate(&t, FMM_SCHEDULE_CPU), 73);
  assert_makespan(evaluate(&t, FMM_SCHEDULE_GPU), 25 * 0.25 + 0.25 + 15.75 + 0.5 + 50 * 0.25 + 2);
  assert_makespan(evaluate(&t, FMM_SCHEDULE_HYBRID1), 33.125 + 3); /* U on the GPU is hidden, however late it begins */
  t.staging_s = 1, t.team_bytes = 30; /* the team wakes for 50 bytes, not for 25 */
  assert_makespan(evaluate(&t, FMM_SCHEDULE_GPU), 25 * 0.25 + 0.25 + 15.75 + 0.5 + 50 * 0.25 + 1 + 2);
}

static void impossible_fractions_are_refused(void **state) {
  fmm_cost_table t = table();
  fmm_assignment a;
  fmm_makespan m;
  for (int i = 0; i < 3; i++) {
    fmm_schedule_find(FMM_SCHEDULE_CPU)->assign(&t, precision, &a);
    a.gpu_fraction[i == 0 ? DOWN : U] = i == 0 ? 0.5 : i == 1 ? 1.5 : NAN;
    fmm_makespan_of(&t, &a, &m);
    assert_false(m.feasible);
    assert_non_null(m.reason);
  }
}

static void phases_without_work_move_nothing(void **state) {
  fmm_cost_table t = table();
  for (int p = 0; p < FMM_N_PHASES; p++)
    if (p != U) t.total[p][0][0].seconds = t.total[p][1][0].seconds = 0;
  assert_makespan(evaluate(&t, FMM_SCHEDULE_HYBRID1), 0.25 + 4 + 0.5);
  assert_makespan(evaluate(&t, FMM_SCHEDULE_HYBRID2), 40);
  t.total[U][0][0].seconds = t.total[U][1][0].seconds = 0;
  for (int i = 0; fmm_schedules[i]; i++) assert_makespan(evaluate(&t, fmm_schedules[i]->kind), 0);
}

static void a_schedule_that_cannot_run_is_never_chosen(void **state) {
  fmm_machine m = recorded_machine("cpu-2-cores");
  fmm_counts c = full_tree(1e5, 3, 6);
  fmm_cost_table t;
  fmm_assignment a = {0};
  fmm_makespan makespan = {.seconds = -1};
  fmm_cost_table_make(&m, &c, &fmm_info_laplace, &t);
  for (int kind = FMM_SCHEDULE_GPU; kind <= FMM_SCHEDULE_HYBRID3; kind++) {
    assert_int_equal(fmm_schedule_choose(&t, &in_double, (fmm_schedule_kind)kind, &a, &makespan), FMM_ERR_DEVICE);
    assert_non_null(strstr(fmm_last_error(), fmm_schedule_name((fmm_schedule_kind)kind)));
    assert_non_null(strstr(fmm_last_error(), "no usable GPU"));
    assert_true(makespan.seconds == -1);
  }
  assert_ok(fmm_schedule_choose(&t, &in_double, FMM_SCHEDULE_AUTO, &a, &makespan));
  assert_int_equal(a.kind, FMM_SCHEDULE_CPU);
  fmm_cost_table_forbid(&t, FMM_DEVICE_CPU, "for the test");
  assert_int_equal(fmm_schedule_choose(&t, &in_double, FMM_SCHEDULE_AUTO, &a, &makespan), FMM_ERR_DEVICE);
}

static void equals_go_to_the_first_of_the_registry(void **state) {
  fmm_cost_table t = table();
  fmm_assignment a;
  fmm_makespan m;
  for (int p = 0; p < FMM_N_PHASES; p++) t.total[p][0][0].seconds = t.total[p][1][0].seconds = 0;
  assert_ok(fmm_schedule_choose(&t, &in_double, FMM_SCHEDULE_AUTO, &a, &m));
  assert_int_equal(a.kind, fmm_schedules[0]->kind);
  assert_int_equal(fmm_schedule_choose(&t, &in_double, (fmm_schedule_kind)99, &a, &m), FMM_ERR_ARGUMENT);
}

/* What a set makes slow on one device another set makes fast there: the set is chosen with the schedule. */
static void of_two_sets_of_precisions_each_schedule_takes_the_faster(void **state) {
  fmm_precision_sets two = in_double;
  fmm_cost_table t = table();
  fmm_assignment a;
  fmm_makespan m;
  two.n = 2;
  for (int p = 0; p < FMM_N_PHASES; p++) two.set[1][p] = FMM_PRECISION_MIXED;
  assert_ok(fmm_schedule_choose(&t, &two, FMM_SCHEDULE_GPU, &a, &m));
  assert_int_equal(a.precision[U], FMM_PRECISION_DOUBLE); /* equals: the first set */
  t.total[U][FMM_DEVICE_CPU][0].seconds += 8, t.total[U][FMM_DEVICE_GPU][1].seconds += 8;
  fmm_schedule_outcome outcome[FMM_MAX_SCHEDULES];
  int n = fmm_schedule_evaluate_all(&t, &two, outcome), on_gpu = 0;
  for (int i = 0; i < n; i++) {
    int gpu = outcome[i].assignment.gpu_fraction[U] > 0;
    assert_int_equal(outcome[i].assignment.precision[U], gpu ? FMM_PRECISION_DOUBLE : FMM_PRECISION_MIXED);
    on_gpu += gpu;
  }
  assert_true(on_gpu > 0 && on_gpu < n);
  t.total[U][FMM_DEVICE_GPU][0].feasible = 0;
  assert_ok(fmm_schedule_choose(&t, &two, FMM_SCHEDULE_GPU, &a, &m));
  assert_int_equal(a.precision[U], FMM_PRECISION_MIXED);
}

static fmm_schedule_kind best_on(const char *machine, double n, int depth, fmm_makespan *m) {
  fmm_machine rates = recorded_machine(machine);
  fmm_counts c = full_tree(n, depth, 6);
  fmm_cost_table t;
  fmm_assignment a;
  fmm_cost_table_make(&rates, &c, &fmm_info_laplace, &t);
  assert_ok(fmm_schedule_choose(&t, &in_double, FMM_SCHEDULE_AUTO, &a, m));
  return a.kind;
}

/* 4,194,304 uniform points, 32,768 leaves of 128: 13.6e9 pairs at 1,170 Gpair/s are 12 ms on the whole GPU; its CPU alone
 * would need longer for V. On 8 of its 132 multiprocessors the pairs take 192 ms, which hide all the CPU does. */
static void the_whole_h200_runs_all_and_a_part_of_8_shares(void **state) {
  fmm_makespan m;
  double edge = 3 * 32 - 2, pairs = edge * edge * edge * 128 * 128;
  assert_int_equal(best_on("xeon16-h200", 4194304, 5, &m), FMM_SCHEDULE_GPU);
  assert_true(m.seconds > pairs / 1170e9 && m.seconds < 2 * pairs / 1170e9);
  assert_int_equal(best_on("xeon16-h200-8sm", 4194304, 5, &m), FMM_SCHEDULE_HYBRID1);
  double pair_s = pairs / (1170e9 * 8 / 132), copies = 8 * 4194304 / 55e9, sum = 3 * 8 * 4194304 / 142e9;
  double boxes = (8 * 32768 - 1) / 7.0, frame = (8 * 8 * 4194304 + 8 * 152 * boxes) / 142e9; /* eight numbers a point, a surface a box */
  double staging = 8 * 4194304 / 47e9, calls = 6e-5;
  assert_true(fabs(m.seconds - (staging + pair_s + 2 * copies + sum + calls + frame)) < 20e-6); /* launches: 2.9 us each */
  assert_int_equal(best_on("cpu-2-cores", 4194304, 5, &m), FMM_SCHEDULE_CPU);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(cpu_takes_the_sum_of_its_phases),
                                     cmocka_unit_test(gpu_takes_its_phases_and_the_copies_of_densities_and_results),
                                     cmocka_unit_test(hybrid1_takes_the_longer_side_and_the_sum),
                                     cmocka_unit_test(hybrid2_is_the_reverse),
                                     cmocka_unit_test(hybrid3_waits_for_the_check_potentials),
                                     cmocka_unit_test(driving_the_gpu_slows_the_cpu),
                                     cmocka_unit_test(fractions_divide_phases_and_their_copies),
                                     cmocka_unit_test(the_frame_is_added_where_the_cpu_takes_part),
                                     cmocka_unit_test(staging_and_the_drivers_calls_are_added_where_the_gpu_takes_part),
                                     cmocka_unit_test(impossible_fractions_are_refused),
                                     cmocka_unit_test(phases_without_work_move_nothing),
                                     cmocka_unit_test(a_schedule_that_cannot_run_is_never_chosen),
                                     cmocka_unit_test(equals_go_to_the_first_of_the_registry),
                                     cmocka_unit_test(of_two_sets_of_precisions_each_schedule_takes_the_faster),
                                     cmocka_unit_test(the_whole_h200_runs_all_and_a_part_of_8_shares)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
