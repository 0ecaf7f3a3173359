/* The fit of constants: recovers what made the samples, never goes negative, measures errors on held-out runs only. */
#include "test.h"
#include <math.h>
#include "model/model.h"

/* Deterministic noise in [-1, 1]. */
static double noise(int i) { return sin(12.9898 * i) * cos(78.233 * i); }

static void make(int n, fmm_sample *s, double value, double entry_s, double relative_noise) {
  for (int i = 0; i < n; i++) {
    double roofline = 1e-3 * pow(1.4, i % 13), entries = 1e3 * (1 + (i * 7) % 11);
    s[i] = (fmm_sample){.roofline_s = roofline, .entries = entries, .launches_s = 1e-5};
    s[i].seconds = (value * roofline + entry_s * entries + 1e-5) * (1 + relative_noise * noise(i));
  }
}

static void exact_samples_give_the_constants_back(void **state) {
  fmm_sample s[20];
  fmm_constant c;
  make(20, s, 1.7, 3e-7, 0);
  assert_ok(fmm_fit_constant(20, s, &c));
  assert_true(fabs(c.value / 1.7 - 1) < 1e-9 && fabs(c.entry_s / 3e-7 - 1) < 1e-9); /* rounding of well-conditioned 2 x 2 equations */
  assert_true(c.p90_error < 1e-9 && c.n_fit == 20 && c.n_held_out == 0);
}

/* Features that vary independently. */
static void make_four(int n, fmm_sample *s, double value, double entry_s, double byte_s, double launch_s) {
  for (int i = 0; i < n; i++) {
    s[i] = (fmm_sample){.roofline_s = 1e-3 * pow(1.4, i % 13), .entries = 1e3 * (1 + (i * 7) % 11), .bytes = 1e6 * (1 + (i * 5) % 7), .launches = 1 + i % 4, .launches_s = 1e-5};
    s[i].seconds = value * s[i].roofline_s + entry_s * s[i].entries + byte_s * s[i].bytes + launch_s * s[i].launches + 1e-5;
  }
}

static void all_four_constants_come_back_from_exact_samples(void **state) {
  fmm_sample s[30];
  fmm_constant c;
  make_four(30, s, 1.7, 3e-7, 2e-10, 5e-5);
  assert_ok(fmm_fit_constant(30, s, &c));
  assert_true(fabs(c.value / 1.7 - 1) < 1e-9 && fabs(c.entry_s / 3e-7 - 1) < 1e-9 && fabs(c.byte_s / 2e-10 - 1) < 1e-9 && fabs(c.launch_s / 5e-5 - 1) < 1e-9);
  assert_true(c.p90_error < 1e-9);
}

/* The same with two parts of the roofline and levels that cost by their unknowns. */
static void make_six(int n, fmm_sample *s, double other, double chain_s) {
  make_four(n, s, 1.7, 3e-7, 2e-10, 5e-5);
  for (int i = 0; i < n; i++) {
    s[i].other_s = s[i].roofline_s * (1 + i * 11 % 17) / 18, s[i].chain = s[i].launches * (50 + 40 * (i * 3 % 8));
    s[i].seconds += (other - 1.7) * s[i].other_s + chain_s * s[i].chain;
  }
}

static void all_six_constants_come_back_from_exact_samples(void **state) {
  fmm_sample s[40];
  fmm_constant c;
  make_six(40, s, 0.9, 4e-8);
  assert_ok(fmm_fit_constant(40, s, &c));
  assert_true(fabs(c.value / 1.7 - 1) < 1e-9 && fabs(c.other / 0.9 - 1) < 1e-9 && fabs(c.chain_s / 4e-8 - 1) < 1e-9);
  assert_true(fabs(c.entry_s / 3e-7 - 1) < 1e-9 && fabs(c.byte_s / 2e-10 - 1) < 1e-9 && fabs(c.launch_s / 5e-5 - 1) < 1e-9);
  assert_true(c.p90_error < 1e-9);
  c.value = c.other = 3; /* one for both is what a profile without the other says */
  fmm_constant alike = c;
  alike.other = 0;
  assert_true(fmm_fit_predict(&c, &s[3]) == fmm_fit_predict(&alike, &s[3]));
  make_four(30, s, 1.7, 3e-7, 2e-10, 5e-5);
  assert_ok(fmm_fit_constant(30, s, &c));
  assert_true(c.other == 0 && c.chain_s == 0);
}

static void few_samples_fit_few_constants(void **state) {
  fmm_sample s[30];
  make_six(30, s, 0.9, 4e-8);
  const int samples[] = {2, 5, 8, 12, 16, 20}, most[] = {1, 2, 3, 4, 4, 6};
  for (int i = 0; i < 6; i++) {
    fmm_constant c;
    assert_ok(fmm_fit_constant(samples[i], s, &c));
    double least = INFINITY; /* below it no constant of the roofline is */
    for (int k = 0; k < samples[i]; k++) least = fmin(least, 0.5 * (s[k].seconds - s[k].launches_s) / s[k].roofline_s);
    assert_true(1 + (c.other > 0) + (c.entry_s > 0) + (c.byte_s > 0) + (c.launch_s > 0) + (c.chain_s > 0) <= most[i]);
    assert_true(c.value >= least * (1 - 1e-9) && (c.other == 0 || c.other >= least * (1 - 1e-9)));
    assert_true(samples[i] > 8 || c.other == 0);
  }
}

/* Two runs most of which is the other part, of one true constant: what is foretold where that part is small must not be all of the rest. */
static void few_samples_have_one_constant_for_both_parts(void **state) {
  fmm_sample s[12];
  fmm_constant c;
  for (int i = 0; i < 12; i++) s[i] = (fmm_sample){.roofline_s = 1e-3 * (i + 1), .other_s = 0.9e-3 * (i + 1), .entries = 100 * (1 + i * 7 % 5), .seconds = 1.5e-3 * (i + 1)};
  for (int n = 1; n <= 8; n++) {
    assert_ok(fmm_fit_constant(n, s, &c));
    const fmm_sample little = {.roofline_s = 1e-3, .other_s = 1e-4};
    assert_true(fabs(fmm_fit_predict(&c, &little) / 1.5e-3 - 1) < 1e-9);
  }
  for (int i = 0; i < 12; i++) s[i].other_s = s[i].roofline_s * (1 - 1e-16 * (i % 3)); /* nothing else but rounding */
  assert_ok(fmm_fit_constant(12, s, &c));
  assert_true(fabs(c.value / 1.5 - 1) < 1e-9 && c.other == 0);
}

/* A narrow sweep: all times go with bytes, none with the work, which is from a third to a tenth of them. More work must still cost time: of the nearest
 * run at least half is the roofline's (fit.c). */
static void work_is_not_free_where_a_sweep_does_not_show_its_cost(void **state) {
  fmm_sample s[20];
  fmm_constant c;
  for (int i = 0; i < 20; i++) {
    s[i] = (fmm_sample){.bytes = 1e6 * (1 + i), .entries = 1e3 * (1 + (i * 7) % 11), .launches_s = 1e-6};
    s[i].seconds = 1e-9 * s[i].bytes + 1e-6, s[i].roofline_s = 1e-9 * s[i].bytes / (i % 2 ? 10 : 3);
  }
  assert_ok(fmm_fit_constant(20, s, &c));
  assert_true(c.value >= 1.5 * (1 - 1e-9)); /* half of 3 */
  fmm_sample large = {.roofline_s = 1, .bytes = 1e6};
  assert_true(fmm_fit_predict(&c, &large) > 1.5);
}

static void an_overhead_that_would_be_negative_is_zero(void **state) {
  fmm_sample s[20];
  fmm_constant c;
  make(20, s, 2, 0, 0);
  for (int i = 0; i < 20; i++) s[i].seconds -= 1e-8 * s[i].entries;
  assert_ok(fmm_fit_constant(20, s, &c));
  assert_true(c.entry_s == 0 && c.value > 0 && c.value < 2);
}

static void noise_moves_the_constants_little_and_shows_in_the_errors(void **state) {
  fmm_sample s[40];
  fmm_constant c;
  make(40, s, 1.3, 2e-7, 0.1);
  for (int i = 0; i < 40; i += 3) s[i].held_out = 1;
  assert_ok(fmm_fit_constant(40, s, &c));
  assert_int_equal(c.n_held_out, 14);
  assert_int_equal(c.n_fit, 26);
  assert_true(fabs(c.value / 1.3 - 1) < 0.1); /* no worse than the noise of one sample */
  assert_true(c.median_error > 0 && c.median_error < 0.1 && c.p90_error >= c.median_error && c.p90_error < 0.25);
}

static void held_out_runs_do_not_enter_the_fit(void **state) {
  fmm_sample s[21];
  fmm_constant c;
  make(20, s, 1.7, 3e-7, 0);
  s[20] = s[0], s[20].held_out = 1, s[20].seconds *= 2; /* predicted at half its time */
  assert_ok(fmm_fit_constant(21, s, &c));
  assert_true(fabs(c.value / 1.7 - 1) < 1e-9);
  assert_true(fabs(c.median_error - 0.5) < 1e-9 && fabs(c.p90_error - 0.5) < 1e-9);
}

static void one_sample_fits_the_value_alone(void **state) {
  fmm_sample s = {.roofline_s = 2, .entries = 5, .launches_s = 1, .seconds = 4};
  fmm_constant c;
  assert_ok(fmm_fit_constant(1, &s, &c));
  assert_true(fabs(c.value - 1.5) < 1e-15 && c.entry_s == 0);
}

static void collinear_features_do_not_blow_up(void **state) {
  fmm_sample s[10];
  fmm_constant c;
  for (int i = 0; i < 10; i++) s[i] = (fmm_sample){.roofline_s = 1e-3 * (i + 1), .entries = 1e5 * (i + 1), .seconds = 3e-3 * (i + 1)};
  assert_ok(fmm_fit_constant(10, s, &c));
  for (int i = 0; i < 10; i++) assert_true(fabs(fmm_fit_predict(&c, &s[i]) / s[i].seconds - 1) < 1e-9);
}

/* As on a busy machine: launches measured at a hundred times their cost must not leave nothing for the work. */
static void launches_measured_too_long_leave_the_constants_of_longer_runs(void **state) {
  fmm_sample s[20];
  fmm_constant c;
  make(20, s, 1.7, 0, 0);
  for (int i = 0; i < 20; i++) s[i].launches_s = 3e-3; /* the shortest take 1.7 ms, the longest 97 */
  assert_ok(fmm_fit_constant(20, s, &c));
  assert_true(c.value > 1.2 && c.value < 2 && c.n_fit < 20 && c.n_fit > 5);
  for (int i = 0; i < 20; i++) s[i].launches_s = 1;
  assert_ok(fmm_fit_constant(20, s, &c));
  assert_true(c.value > 0.8 && c.value < 1); /* half of every run */
  assert_int_equal(c.n_fit, 20);
}

static void nothing_to_fit_is_an_error(void **state) {
  fmm_sample s[2] = {{.roofline_s = 0, .seconds = 1}, {.roofline_s = 1, .seconds = NAN}};
  fmm_constant c = {.value = 42};
  assert_int_equal(fmm_fit_constant(2, s, &c), FMM_ERR_ARGUMENT);
  assert_int_equal(fmm_fit_constant(0, NULL, &c), FMM_ERR_ARGUMENT);
  assert_true(c.value == 42);
}

/* Of runs that take 9, 1.1 and three times 1.5 of what is foretold without launches. */
static void a_factor_is_the_median_beside_launches(void **state) {
  const fmm_constant fitted = {.value = 2, .entry_s = 1e-6, .launch_s = 1e-4};
  fmm_sample s[5];
  fmm_constant c = fitted;
  for (int i = 0; i < 5; i++) {
    double factor = i == 0 ? 9 : i == 1 ? 1.1 : 1.5;
    s[i] = (fmm_sample){.roofline_s = 1e-3 * (i + 1), .entries = 1000, .launches = 3, .launches_s = 2e-4, .held_out = i == 2};
    s[i].seconds = factor * (2 * s[i].roofline_s + 1e-3) + 5e-4;
  }
  double measured;
  assert_ok(fmm_fit_factor(5, s, &c, FMM_FACTOR_OF_ALL, 1, &measured));
  assert_true(fabs(measured - 1.5) < 1e-12 && !memcmp(&c, &fitted, sizeof c));
  for (int i = 0; i < 5; i++) s[i].launches_s = 1; /* says nothing of the rest */
  assert_ok(fmm_fit_factor(5, s, &c, FMM_FACTOR_OF_ALL, 1, &measured));
  assert_true(measured == 0);
  measured = 1;
  assert_ok(fmm_fit_factor(0, NULL, &c, FMM_FACTOR_OF_ALL, 1, &measured));
  assert_true(measured == 0);
}

/* Sums that take 0.6 of their time, in runs of which they are a tenth to nearly all: those where they are less than half tell nothing. */
static void a_factor_of_sums_leaves_the_rest_as_it_is(void **state) {
  const fmm_constant c = {.value = 2, .other = 3, .entry_s = 1e-6, .byte_s = 1e-10, .launch_s = 1e-4};
  fmm_sample s[20];
  double measured;
  for (int i = 0; i < 20; i++) {
    const double sums = 1e-3 * (1 + i), other = 2e-3;
    s[i] = (fmm_sample){.roofline_s = sums + other, .other_s = other, .entries = 3e3, .bytes = 1e7, .launches = 5, .launches_s = 1e-5};
    s[i].seconds = fmm_fit_predict(&c, &s[i]) - 0.4 * 2 * sums;
    if (2 * sums < 0.5 * (fmm_fit_predict(&c, &s[i]) - 5e-4 - 1e-5)) s[i].seconds *= 3; /* as other work might have it: not looked at */
  }
  assert_ok(fmm_fit_factor(20, s, &c, FMM_FACTOR_OF_SUMS, 1, &measured));
  assert_true(fabs(measured - 0.6) < 1e-12);
  fmm_sample with_gradients[20];
  for (int i = 0; i < 20; i++) {
    const double launches = s[i].launches_s + c.launch_s * s[i].launches;
    with_gradients[i] = s[i], with_gradients[i].seconds = 1.3 * (s[i].seconds - launches) + launches;
  }
  assert_ok(fmm_fit_factor(20, with_gradients, &c, FMM_FACTOR_OF_SUMS, 1.3, &measured));
  assert_true(fabs(measured - 0.6) < 1e-12);
  assert_ok(fmm_fit_factor(2, s, &c, FMM_FACTOR_OF_SUMS, 1, &measured)); /* 2 and 4 ms of 13 and 15 */
  assert_true(measured == 0);
  for (int i = 0; i < 20; i++) s[i].seconds = 1e-3; /* less than what the rest takes */
  assert_ok(fmm_fit_factor(20, s, &c, FMM_FACTOR_OF_SUMS, 1, &measured));
  assert_true(measured == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_factor_of_sums_leaves_the_rest_as_it_is), cmocka_unit_test(exact_samples_give_the_constants_back),
                                     cmocka_unit_test(all_four_constants_come_back_from_exact_samples), cmocka_unit_test(all_six_constants_come_back_from_exact_samples),
                                     cmocka_unit_test(few_samples_fit_few_constants), cmocka_unit_test(few_samples_have_one_constant_for_both_parts),
                                     cmocka_unit_test(work_is_not_free_where_a_sweep_does_not_show_its_cost), cmocka_unit_test(an_overhead_that_would_be_negative_is_zero),
                                     cmocka_unit_test(noise_moves_the_constants_little_and_shows_in_the_errors),
                                     cmocka_unit_test(held_out_runs_do_not_enter_the_fit),
                                     cmocka_unit_test(one_sample_fits_the_value_alone),
                                     cmocka_unit_test(collinear_features_do_not_blow_up),
                                     cmocka_unit_test(launches_measured_too_long_leave_the_constants_of_longer_runs),
                                     cmocka_unit_test(nothing_to_fit_is_an_error),
                                     cmocka_unit_test(a_factor_is_the_median_beside_launches)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
