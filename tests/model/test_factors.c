/* What gradients, other accuracies and learning make of the cost table (model/cost.c): factors of what was fitted, of all of it or of its sums alone. */
#include "cost_case.h"

static void gradients_take_their_measured_factor_but_for_launches(void **state) {
  fmm_machine m = recorded_machine("cpu-2-cores"); /* 3 us a region */
  fmm_counts c = counts();
  fmm_cost_table t;
  c.gradient = 1;
  fmm_cost_table_make(&m, &c, &fmm_info_laplace, &t);
  double plain = t.total[FMM_PHASE_ULIST][FMM_DEVICE_CPU][0].seconds, limit = t.total[FMM_PHASE_ULIST][FMM_DEVICE_CPU][0].limit_s;
  double v = t.total[FMM_PHASE_VLIST][FMM_DEVICE_CPU][0].seconds;
  for (int phase = 0; phase < FMM_N_PHASES; phase++) m.device[0].constant[phase][0].gradient = 1.5;
  fmm_cost_table_make(&m, &c, &fmm_info_laplace, &t);
  assert_near(t.total[FMM_PHASE_ULIST][FMM_DEVICE_CPU][0].seconds, 1.5 * (plain - 3e-6) + 3e-6, 1e-12);
  assert_true(t.total[FMM_PHASE_ULIST][FMM_DEVICE_CPU][0].limit_s == limit && t.total[FMM_PHASE_VLIST][FMM_DEVICE_CPU][0].seconds == v);
  c.gradient = 0;
  fmm_cost_table_make(&m, &c, &fmm_info_laplace, &t);
  assert_near(t.total[FMM_PHASE_ULIST][FMM_DEVICE_CPU][0].seconds, 1e9 / 12.8e9 + 3e-6, 1e-12);
}

/* A factor for each kind of sums, of what they take and not of the rest; what no tolerance tells, and what was not measured, is as in the fit. */
static void sums_of_other_accuracies_take_their_measured_factors(void **state) {
  const struct { double tolerance; int precision; double factor; } cases[] = {{0, 0, 1}, {0, 1, 1}, {1e-2, 0, 1}, {3e-4, 1, 0.8}, {1e-3, 1, 0.8}, {2e-4, 1, 1}, {1e-7, 0, 1}, {9e-8, 0, 1.2}, {1e-9, 0, 1.2}, {9e-10, 0, 1.4}, {1e-12, 0, 1.4}, {1e-12, 1, 1}};
  fmm_machine m = recorded_machine("cpu-2-cores"), plain = m;
  for (int phase = 0; phase < FMM_N_PHASES; phase++)
    for (int k = 0; k < 2; k++) m.device[0].constant[phase][k].coarse = 0.8, m.device[0].constant[phase][k].near = 1.2, m.device[0].constant[phase][k].full = 1.4;
  for (int overheads = 0; overheads < 2; overheads++) { /* entries and bytes: as in the fit */
    const double entry_s = overheads * 1e-5, byte_s = overheads * 1e-9, rest[FMM_N_PRECISIONS] = {1000 * entry_s + 1e6 * byte_s, 1000 * entry_s + 0.5e6 * byte_s};
    for (int k = 0; k < 2; k++) m.device[0].constant[FMM_PHASE_ULIST][k].entry_s = entry_s, m.device[0].constant[FMM_PHASE_ULIST][k].byte_s = byte_s;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
      const int precision = cases[i].precision;
      fmm_counts c = counts();
      fmm_cost_table t, u;
      c.tolerance = cases[i].tolerance;
      fmm_cost_table_make(&m, &c, &fmm_info_laplace, &t);
      fmm_cost_table_make(&plain, &c, &fmm_info_laplace, &u);
      const double with = t.total[FMM_PHASE_ULIST][FMM_DEVICE_CPU][precision].seconds, without = u.total[FMM_PHASE_ULIST][FMM_DEVICE_CPU][precision].seconds;
      assert_near(with - rest[precision] - 3e-6, cases[i].factor * (without - 3e-6), 1e-12);
    }
  }
}

/* With gradients sums at 3 digits have a factor of their own, of what they take beside the gradients' factor, and where that was not measured the one without. */
static void sums_at_three_digits_with_gradients_have_their_own_factor(void **state) {
  fmm_machine m = recorded_machine("cpu-2-cores");
  fmm_constant *u = &m.device[0].constant[FMM_PHASE_ULIST][1];
  fmm_counts c = counts();
  fmm_cost_table t;
  const struct { double tolerance, measured; int gradient; } cases[] = {{1e-4, 0, 1}, {1e-3, 0, 1}, {1e-3, 0.8, 1}, {1e-3, 1.2, 1}, {1e-3, 0.8, 0}};
  const double alone = 1e9 / 25.2e9, entries = 1000 * 1e-5; /* without gradients */
  double seconds[5];
  u->entry_s = 1e-5, u->gradient = 1.5, u->coarse = 0.5;
  for (int i = 0; i < 5; i++) {
    c.tolerance = cases[i].tolerance, c.gradient = cases[i].gradient, u->coarse_gradient = cases[i].measured;
    fmm_cost_table_make(&m, &c, &fmm_info_laplace, &t);
    seconds[i] = t.total[FMM_PHASE_ULIST][FMM_DEVICE_CPU][1].seconds - 3e-6;
  }
  const double sums = seconds[0] - 1.5 * entries;
  assert_near(seconds[1], 0.5 * sums + 1.5 * entries, 1e-12);
  assert_near(seconds[2], 0.8 * sums + 1.5 * entries, 1e-12);
  assert_near(seconds[3], 1.2 * sums + 1.5 * entries, 1e-12);
  assert_near(seconds[4], 0.5 * alone + entries, 1e-12);
}

/* Roots of other accuracies in double take as many seconds more, or less, with gradients as without, whatever these take else. */
static void more_exact_sums_cost_as_much_more_with_gradients(void **state) {
  fmm_machine m = recorded_machine("cpu-2-cores");
  fmm_constant *u = &m.device[0].constant[FMM_PHASE_ULIST][0];
  fmm_counts c = counts();
  fmm_cost_table t;
  double seconds[2][3];
  u->gradient = 1.5, u->near = 0.9, u->full = 1.4;
  for (int gradient = 0; gradient < 2; gradient++)
    for (int i = 0; i < 3; i++) {
      static const double tolerance[] = {1e-6, 1e-9, 1e-12};
      c.gradient = gradient, c.tolerance = tolerance[i];
      fmm_cost_table_make(&m, &c, &fmm_info_laplace, &t);
      seconds[gradient][i] = t.total[FMM_PHASE_ULIST][FMM_DEVICE_CPU][0].seconds - 3e-6;
    }
  assert_near(seconds[0][1], 0.9 * seconds[0][0], 1e-12);
  assert_true(seconds[1][0] > 1.5 * seconds[0][0]);
  for (int i = 1; i < 3; i++) assert_near(seconds[1][i] - seconds[1][0], seconds[0][i] - seconds[0][0], 1e-9);
}

/* What a phase took against what was foretold scales all that its constants make of it, entries and bytes too. */
static void learning_takes_one_step_where_entries_and_bytes_cost(void **state) {
  fmm_machine m = recorded_machine("cpu-2-cores");
  fmm_counts c = counts();
  fmm_cost_table t, u;
  m.device[0].constant[FMM_PHASE_VLIST][1] = (fmm_constant){.value = 2, .entry_s = 1e-4, .byte_s = 1e-11, .launch_s = 2e-3, .chain_s = 1e-5};
  fmm_cost_table_make(&m, &c, &fmm_info_laplace, &t);
  fmm_cost_learn(&m, &c, FMM_PHASE_VLIST, FMM_DEVICE_CPU, 1, 1.3);
  fmm_cost_table_make(&m, &c, &fmm_info_laplace, &u);
  assert_near(u.total[FMM_PHASE_VLIST][FMM_DEVICE_CPU][1].seconds - 3e-6, 1.3 * (t.total[FMM_PHASE_VLIST][FMM_DEVICE_CPU][1].seconds - 3e-6), 1e-12);
  assert_true(u.total[FMM_PHASE_VLIST][FMM_DEVICE_CPU][0].seconds == t.total[FMM_PHASE_VLIST][FMM_DEVICE_CPU][0].seconds);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(gradients_take_their_measured_factor_but_for_launches),
                                     cmocka_unit_test(sums_of_other_accuracies_take_their_measured_factors),
                                     cmocka_unit_test(sums_at_three_digits_with_gradients_have_their_own_factor),
                                     cmocka_unit_test(more_exact_sums_cost_as_much_more_with_gradients),
                                     cmocka_unit_test(learning_takes_one_step_where_entries_and_bytes_cost)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
