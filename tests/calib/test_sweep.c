/* The sweep's order of combinations and the fit of its samples: known constants come back, errors are those of the held-out runs. */
#include "test.h"
#include <math.h>
#include "calib/sweep.h"
#include "runtime/memory.h"

static void every_prefix_of_the_sweep_is_well_spread(void **state) {
  for (fmm_effort effort = FMM_EFFORT_QUICK; effort < FMM_N_EFFORTS; effort++) {
    int total, orders[32] = {0}, all_orders[32] = {0}, held_out = 0, of[3] = {0};
    fmm_sweep_case_at(FMM_DEVICE_CPU, effort, 2, 0, &total);
    assert_true(total >= 54);
    for (int i = 0; i < 18; i++) {
      fmm_sweep_case c = fmm_sweep_case_at(FMM_DEVICE_CPU, effort, 2, i, &total);
      assert_in_range(c.order, 3, 12);
      orders[c.order]++;
      held_out += c.held_out;
      of[!strcmp(c.distribution, "ellipsoid") ? 0 : !strcmp(c.distribution, "uniform") ? 1 : 2]++;
    }
    for (int i = 0; i < total; i++) all_orders[fmm_sweep_case_at(FMM_DEVICE_CPU, effort, 2, i, &total).order]++;
    for (int p = 0; p < 32; p++) assert_true(orders[p] >= (all_orders[p] > 0));
    assert_int_equal(held_out, 6);
    for (int d = 0; d < 3; d++) assert_in_range(of[d], 4, 8);
    assert_int_equal(fmm_sweep_case_at(FMM_DEVICE_CPU, effort, 2, 0, &total).held_out, 0);
  }
}

static void the_sweep_visits_every_combination_once(void **state) {
  int total;
  fmm_sweep_case_at(FMM_DEVICE_CPU, FMM_EFFORT_STANDARD, 2, 0, &total);
  for (int i = 0; i < total; i++)
    for (int j = 0; j < i; j++) {
      fmm_sweep_case a = fmm_sweep_case_at(FMM_DEVICE_CPU, FMM_EFFORT_STANDARD, 2, i, &total), b = fmm_sweep_case_at(FMM_DEVICE_CPU, FMM_EFFORT_STANDARD, 2, j, &total);
      assert_false(a.n_points == b.n_points && a.leaf_size == b.leaf_size && a.order == b.order && !strcmp(a.distribution, b.distribution));
    }
}

static void held_out_runs_meet_every_value_of_every_axis_and_so_do_the_others(void **state) {
  for (fmm_effort effort = FMM_EFFORT_QUICK; effort < FMM_N_EFFORTS; effort++) {
    int total, order[2][32] = {{0}}, leaf[2][1024] = {{0}}, uniform[2] = {0};
    fmm_sweep_case_at(FMM_DEVICE_CPU, effort, 2, 0, &total);
    for (int i = 0; i < total; i++) {
      fmm_sweep_case c = fmm_sweep_case_at(FMM_DEVICE_CPU, effort, 2, i, &total);
      order[c.held_out][c.order]++, leaf[c.held_out][c.leaf_size]++, uniform[c.held_out] += c.distribution[0] == 'u';
    }
    for (int i = 0; i < total; i++) {
      fmm_sweep_case c = fmm_sweep_case_at(FMM_DEVICE_CPU, effort, 2, i, &total);
      for (int held_out = 0; held_out < 2; held_out++) assert_true(order[held_out][c.order] && leaf[held_out][c.leaf_size] && uniform[held_out]);
    }
  }
}

/* Else what a distribution or an order makes of a factor would be taken for what gradients do. */
static void factors_are_measured_of_every_order_of_every_distribution(void **state) {
  for (int device = 0; device < FMM_N_DEVICES; device++)
    for (fmm_effort effort = FMM_EFFORT_QUICK; effort < FMM_N_EFFORTS; effort++) {
      int total, all[3][32] = {{0}}, of[3][32] = {{0}}, n = 0;
      fmm_sweep_case_at((fmm_device)device, effort, 2, 0, &total);
      for (int i = 0; i < total; i++) {
        const fmm_sweep_case c = fmm_sweep_case_at((fmm_device)device, effort, 2, i, &total);
        const int d = !strcmp(c.distribution, "ellipsoid") ? 0 : !strcmp(c.distribution, "uniform") ? 1 : 2;
        all[d][c.order]++, of[d][c.order] += c.factors, n += c.factors;
      }
      assert_in_range(n, total / 4 - 1, total / 4 + 1);
      for (int d = 0; d < 3; d++)
        for (int p = 0; p < 32; p++) assert_true(of[d][p] >= (all[d][p] > 0));
    }
}

static void more_threads_get_more_points(void **state) {
  int total;
  fmm_sweep_case small = fmm_sweep_case_at(FMM_DEVICE_CPU, FMM_EFFORT_QUICK, 2, 5, &total), large = fmm_sweep_case_at(FMM_DEVICE_CPU, FMM_EFFORT_QUICK, 16, 5, &total);
  assert_true(large.n_points == 4 * small.n_points);
  assert_int_equal(large.order, small.order);
}

/* Noise in [-1, 1] from a fixed recurrence. */
static double noise(int i) {
  double x = 0.6180339887498949 * (i + 1);
  return 2 * (x - floor(x)) - 1;
}

/* Samples of every phase and precision with known constants, relative noise `level`; held-out ones are `bias` times slower. */
static void make_samples(fmm_samples *samples, double level, double bias) {
  for (int run = 0; run < 60; run++)
    for (int phase = 0; phase < FMM_N_PHASES; phase++)
      for (int k = 0; k < FMM_N_PRECISIONS; k++) {
        fmm_sweep_sample s = {.run = run, .phase = (fmm_phase)phase, .device = FMM_DEVICE_CPU, .precision = k};
        s.sample.roofline_s = 1e-3 * (1 + run % 7);
        s.sample.entries = 100 * (1 + run % 5);
        s.sample.launches_s = 1e-5;
        s.sample.held_out = run % 3 == 2;
        s.sample.seconds = (1.5 + phase + 10 * k) * s.sample.roofline_s + 2e-6 * s.sample.entries + s.sample.launches_s;
        s.sample.seconds *= (1 + level * noise(run)) * (s.sample.held_out ? bias : 1);
        assert_ok(fmm_samples_add(samples, &s));
      }
}

static void fit_recovers_known_constants_from_noisy_samples(void **state) {
  fmm_samples samples = {0};
  fmm_device_rates rates = {0};
  make_samples(&samples, 0.02, 1);
  assert_ok(fmm_fit_samples(&samples, FMM_DEVICE_CPU, &rates));
  for (int phase = 0; phase < FMM_N_PHASES; phase++)
    for (int k = 0; k < FMM_N_PRECISIONS; k++) {
      fmm_constant c = rates.constant[phase][k];
      /* 2 % noise over 40 runs; 3 % covers its worst correlation with the features */
      if (fabs(c.value / (1.5 + phase + 10 * k) - 1) > 0.03) fail_msg("phase %d precision %d: %g", phase, k, c.value);
      assert_int_equal(c.n_fit, 40);
      assert_int_equal(c.n_held_out, 20);
      assert_true(c.median_error > 0 && c.median_error < 0.03 && c.p90_error >= c.median_error && c.p90_error < 0.05);
    }
  fmm_samples_free(&samples);
}

static void held_out_errors_are_those_of_held_out_runs(void **state) {
  fmm_samples samples = {0};
  fmm_device_rates rates = {0};
  make_samples(&samples, 0, 1.25); /* a fit without noise is exact; held-out runs take 1.25 times as long: |1 / 1.25 - 1| = 0.2 */
  assert_ok(fmm_fit_samples(&samples, FMM_DEVICE_CPU, &rates));
  for (int phase = 0; phase < FMM_N_PHASES; phase++) {
    assert_true(fabs(rates.constant[phase][0].value - (1.5 + phase)) < 1e-9);
    assert_true(fabs(rates.constant[phase][0].median_error - 0.2) < 1e-9);
    assert_true(fabs(rates.constant[phase][0].p90_error - 0.2) < 1e-9);
  }
  fmm_samples_free(&samples);
}

static void a_phase_without_samples_is_marked_not_measured(void **state) {
  fmm_samples samples = {0};
  fmm_device_rates rates = {0};
  fmm_sweep_sample s = {.phase = FMM_PHASE_ULIST, .sample = {.roofline_s = 1, .seconds = 2}};
  assert_ok(fmm_samples_add(&samples, &s));
  rates.constant[FMM_PHASE_WLIST][0].value = 7;
  assert_ok(fmm_fit_samples(&samples, FMM_DEVICE_CPU, &rates));
  assert_true(fabs(rates.constant[FMM_PHASE_ULIST][0].value - 2) < 1e-12);
  assert_true(rates.constant[FMM_PHASE_WLIST][0].value == 0 && rates.constant[FMM_PHASE_ULIST][1].value == 0);
  fmm_samples_free(&samples);
  assert_ok(fmm_fit_samples(&samples, FMM_DEVICE_GPU, &rates));
}

/* On CPU cores the tolerance tells the accuracy of U's sums alone, on a GPU of all but V's; gradients' factor comes before the one that both have. */
static void factors_are_measured_where_sums_have_accuracies(void **state) {
  fmm_samples samples = {0};
  fmm_device_rates rates[FMM_N_DEVICES] = {0};
  for (int device = 0; device < FMM_N_DEVICES; device++)
    for (int phase = 0; phase < FMM_N_PHASES; phase++)
      for (int kind = 0; kind < FMM_N_SWEEP_KINDS; kind++)
        for (int run = 0; run < 12; run++) {
          static const double gradient[FMM_N_SWEEP_KINDS] = {1, 1.5, 1, 1.5, 1, 1}, sums[FMM_N_SWEEP_KINDS] = {1, 1, 0.6, 0.8, 1.1, 1.2};
          fmm_sweep_sample s = {.run = run, .phase = (fmm_phase)phase, .device = (fmm_device)device, .precision = 1, .kind = (fmm_sweep_kind)kind};
          s.sample = (fmm_sample){.roofline_s = 1e-2 * (1 + run), .entries = 1e3 * (1 + run * 7 % 5)};
          s.sample.seconds = gradient[kind] * (2 * sums[kind] * s.sample.roofline_s + 1e-6 * s.sample.entries);
          assert_ok(fmm_samples_add(&samples, &s));
        }
  for (int device = 0; device < FMM_N_DEVICES; device++) {
    assert_ok(fmm_fit_samples(&samples, (fmm_device)device, &rates[device]));
    for (int phase = 0; phase < FMM_N_PHASES; phase++) {
      const fmm_constant *c = &rates[device].constant[phase][1];
      const int results = fmm_phase_makes_results[phase], accuracies = phase == FMM_PHASE_ULIST || (device == FMM_DEVICE_GPU && phase != FMM_PHASE_VLIST);
      assert_true(fabs(c->gradient - (results ? 1.5 : 0)) < 1e-6 && fabs(c->coarse - (accuracies ? 0.6 : 0)) < 1e-6 && fabs(c->coarse_gradient - (results && accuracies ? 0.8 : 0)) < 1e-6);
      assert_true(fabs(c->near - (accuracies ? 1.1 : 0)) < 1e-6 && fabs(c->full - (accuracies ? 1.2 : 0)) < 1e-6);
    }
  }
  fmm_samples_free(&samples);
}

static void efforts_have_names_and_unknown_ones_are_refused(void **state) {
  fmm_effort effort;
  assert_ok(fmm_effort_find("thorough", &effort));
  assert_int_equal(effort, FMM_EFFORT_THOROUGH);
  assert_string_equal(fmm_effort_name(FMM_EFFORT_QUICK), "quick");
  assert_int_equal(fmm_effort_find("fast", &effort), FMM_ERR_ARGUMENT);
  assert_non_null(strstr(fmm_last_error(), "'fast'"));
}

static void samples_without_memory_fail_cleanly(void **state) {
  fmm_samples samples = {0};
  fmm_device_rates rates = {0};
  size_t before = fmm_memory_now();
  make_samples(&samples, 0, 1);
  for (int nth = 1; nth <= 3; nth++) {
    fmm_memory_fail_at(nth);
    assert_int_equal(fmm_fit_samples(&samples, FMM_DEVICE_CPU, &rates), FMM_ERR_MEMORY);
  }
  fmm_memory_fail_at(0);
  fmm_samples_free(&samples);
  assert_int_equal(fmm_memory_now(), before);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_prefix_of_the_sweep_is_well_spread),
                                     cmocka_unit_test(the_sweep_visits_every_combination_once), cmocka_unit_test(factors_are_measured_where_sums_have_accuracies), cmocka_unit_test(factors_are_measured_of_every_order_of_every_distribution),
                                     cmocka_unit_test(held_out_runs_meet_every_value_of_every_axis_and_so_do_the_others),
                                     cmocka_unit_test(more_threads_get_more_points),
                                     cmocka_unit_test(fit_recovers_known_constants_from_noisy_samples),
                                     cmocka_unit_test(held_out_errors_are_those_of_held_out_runs),
                                     cmocka_unit_test(a_phase_without_samples_is_marked_not_measured),
                                     cmocka_unit_test(efforts_have_names_and_unknown_ones_are_refused),
                                     cmocka_unit_test(samples_without_memory_fail_cleanly)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
