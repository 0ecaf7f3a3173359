/* Profiles as tables, and doubts about them: everything of a recorded machine is there, with its unit; small buffers are not overrun. */
#include "recorded_machine.h"
#include "calib/report.h"
#include "calib/trust.h"

static fmm_machine sample(void) {
  fmm_machine m = {.schema = FMM_PROFILE_SCHEMA, .fingerprint = "0123456789abcdef", .build = "0.1.0 avx2", .effort = "quick", .created_unix_s = 86400};
  fmm_device_rates *d = &m.device[FMM_DEVICE_CPU];
  d->present = 1, d->units = 2, d->memory_mb = 2048;
  strcpy(d->name, "Example CPU");
  for (int k = 0; k < FMM_N_PRECISIONS; k++) {
    d->pair_flops_per_s[k] = (fmm_rate){12.5e9 * (k + 1), 0.07};
    d->fma_flops_per_s[k] = (fmm_rate){1.5e12, 0};
  }
  d->memory_bytes_per_s = (fmm_rate){33e9, 0.5};
  d->launch_s = (fmm_rate){1.5e-6, 1};
  d->constant[FMM_PHASE_ULIST][0] = (fmm_constant){.value = 1.25, .other = 0.75, .entry_s = 30e-9, .byte_s = 1e-9, .launch_s = 2e-6, .chain_s = 9e-9, .gradient = 1.75, .near = 1.08, .full = 1.16, .median_error = 0.031, .p90_error = 0.082, .n_fit = 11, .n_held_out = 5};
  d->constant[FMM_PHASE_UP][0] = (fmm_constant){.value = 2};
  return m;
}

static void assert_has(const char *text, const char *part) {
  if (!strstr(text, part)) fail_msg("'%s' is not in:\n%s", part, text);
}

static void rates_constants_and_errors_are_printed_with_units(void **state) {
  fmm_machine m = sample();
  char text[8192];
  assert_true(fmm_machine_text(&m, text, sizeof text) == strlen(text));
  const char *const parts[] = {"0123456789abcdef", "quick, 1970-01-02 00:00 UTC", "Example CPU, 2 cores, 2.0 GiB", "12.5 Gflop/s", "25 Gflop/s", "1.5 Tflop/s", "33 GB/s",
                               "1.5 us", "50 %", "ulist  double         1.25    0.75         30.0     1024.0         2.0           9.0      1.75       1.08, 1.16   median  3.1 %, 90th   8.2 %     11         5",
                               "not fitted", "not measured"};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) assert_has(text, parts[i]);
  assert_null(strstr(text, "GPU:"));
}

static void a_recorded_machine_with_a_gpu_shows_both_devices(void **state) {
  fmm_machine m;
  char text[8192];
  assert_ok(fmm_profile_load(FMM_TEST_MACHINES "/xeon16-h200.json", &m));
  fmm_machine_text(&m, text, sizeof text);
  const char *const parts[] = {"CPU: ", "GPU: ", "multiprocessors", "bus, host to device", "Tflop/s", "TB/s"};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) assert_has(text, parts[i]);
}

static void a_small_buffer_is_ended_and_not_overrun(void **state) {
  fmm_machine m = sample();
  char text[64];
  memset(text, 'x', sizeof text);
  size_t full = fmm_machine_text(&m, text, 32);
  assert_true(full > 1000);
  assert_int_equal(strlen(text), 31);
  assert_int_equal(text[32], 'x');
  assert_true(fmm_machine_text(&m, NULL, 0) == full);
}

static void a_phase_that_errs_by_more_than_half_is_named(void **state) {
  fmm_machine m = sample();
  fmm_constant *u = &m.device[FMM_DEVICE_CPU].constant[FMM_PHASE_ULIST][0], *w = &m.device[FMM_DEVICE_CPU].constant[FMM_PHASE_WLIST][1];
  char line[512] = "";
  assert_false(fmm_machine_doubt(&m, line, sizeof line)); /* 3.1 % of five runs */
  *w = (fmm_constant){.value = 1, .median_error = 7, .n_fit = 2, .n_held_out = 1};
  assert_false(fmm_machine_doubt(&m, line, sizeof line)); /* one run alone */
  u->median_error = 12.5;
  assert_true(fmm_machine_doubt(&m, line, sizeof line));
  assert_has(line, "ulist in double on the CPU are off by 1250 %");
  assert_has(line, "run fmm-calibrate again");
  u->n_held_out = 1, u->median_error = 0.031; /* no phase had more than one */
  assert_true(fmm_machine_doubt(&m, line, sizeof line));
  assert_has(line, "wlist in single on the CPU are off by 700 %");
}

/* As when other work begins in the few runs of one kind: what is foretold of it would keep plans from what is fast. */
static void a_factor_beyond_what_sums_take_is_named(void **state) {
  fmm_machine m = sample();
  fmm_constant *x = &m.device[FMM_DEVICE_CPU].constant[FMM_PHASE_XLIST][1];
  char line[512] = "";
  x->coarse = 3.9, x->gradient = 0.26;
  assert_false(fmm_machine_doubt(&m, line, sizeof line));
  x->coarse = 52.4;
  assert_true(fmm_machine_doubt(&m, line, sizeof line));
  assert_has(line, "xlist in single on the CPU took 52.4 times as long at 3 digits");
  x->coarse = 0, x->gradient = 0.1;
  assert_true(fmm_machine_doubt(&m, line, sizeof line));
  assert_has(line, "took 0.1 times as long with gradients as without");
}

static void recorded_machines_are_not_doubted(void **state) {
  static const char *const names[] = {"cpu-2-cores", "h200-8-of-132", "xeon16-h200", "xeon16-h200-8sm"};
  for (int i = 0; i < 4; i++) {
    const fmm_machine m = recorded_machine(names[i]);
    char line[512];
    if (fmm_machine_doubt(&m, line, sizeof line)) fail_msg("%s: %s", names[i], line);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rates_constants_and_errors_are_printed_with_units),
                                     cmocka_unit_test(a_recorded_machine_with_a_gpu_shows_both_devices),
                                     cmocka_unit_test(a_phase_that_errs_by_more_than_half_is_named), cmocka_unit_test(a_factor_beyond_what_sums_take_is_named), cmocka_unit_test(recorded_machines_are_not_doubted),
                                     cmocka_unit_test(a_small_buffer_is_ended_and_not_overrun)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
