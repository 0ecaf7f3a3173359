/* Machine profiles: what is saved is loaded; what is damaged, foreign or newer is refused with the reason; where they are sought. */
#include "test.h"
#include <math.h>
#include <stdlib.h>
#include <unistd.h>
#include "model/machine.h"
#include "runtime/file.h"
#include "runtime/memory.h"

static char directory[64], file[96];

static int make_directory(void **state) {
  snprintf(directory, sizeof directory, "/tmp/fmm_profile_XXXXXX");
  if (!mkdtemp(directory)) return -1;
  snprintf(file, sizeof file, "%s/profile.json", directory);
  return 0;
}

static int remove_directory(void **state) {
  char command[128];
  snprintf(command, sizeof command, "rm -rf %s", directory);
  return system(command);
}

/* A machine in which no two fields are equal and no number is short. */
static fmm_machine odd_machine(void) {
  fmm_machine m;
  double next = 1.0 / 3;
  memset(&m, 0, sizeof m);
  m.schema = FMM_PROFILE_SCHEMA, m.created_unix_s = 1.7e9 / 7;
  strcpy(m.fingerprint, "0123456789abcdef"), strcpy(m.build, "0.1.0 avx512"), strcpy(m.effort, "standard"), strcpy(m.source, "caf\xc3\xa9 \"quoted\"\n");
  for (int d = 0; d < FMM_N_DEVICES; d++) {
    fmm_device_rates *r = &m.device[d];
    r->present = 1, r->units = 3 + d, r->memory_mb = 1000 + d, r->driving_slowdown = 1 + d / 3.0;
    strcpy(r->name, d ? "gpu" : "cpu");
    fmm_rate *rates[] = {&r->pair_flops_per_s[0], &r->pair_flops_per_s[1], &r->fma_flops_per_s[0], &r->fma_flops_per_s[1],
                         &r->memory_bytes_per_s, &r->launch_s, &r->h2d_bytes_per_s, &r->d2h_bytes_per_s, &r->staging_bytes_per_s, &r->evaluation_s,
                         &r->staging_s, &r->joint_s};
    for (int i = 0; i < 12; i++) rates[i]->value = next *= 3.7, rates[i]->spread = 1 / next;
    for (int phase = 0; phase < FMM_N_PHASES; phase++)
      for (int p = 0; p < FMM_N_PRECISIONS; p++)
        r->constant[phase][p] = (fmm_constant){1 + phase / 7.0 + p, 2 + phase / 3.0, 1e-9 * (phase + 1) / 3, 1e-12 * (p + 1), 1e-6 * (phase + p), 1e-8 / (phase + 3), 1 + p / 9.0, 0.7 + p / 11.0, 0.8 + p / 12.0, 1.1 + p / 13.0, 1.3 + p / 17.0, 0.1 / (p + 3), 0.2 / (p + 3), 10 * phase, p};
  }
  return m;
}

static fmm_machine load_copy(void) {
  fmm_machine m;
  assert_ok(fmm_profile_load(file, &m));
  memset(m.path, 0, sizeof m.path); /* all that differs */
  return m;
}

static void saved_profile_is_loaded_bit_for_bit(void **state) {
  fmm_machine m = odd_machine();
  assert_ok(fmm_profile_save(file, &m));
  fmm_machine back = load_copy();
  assert_memory_equal(&m, &back, sizeof m);
  assert_ok(fmm_profile_load(file, &back));
  assert_string_equal(back.path, file);
}

static void assert_refused(const char *reason) {
  fmm_machine m = {.schema = 77};
  assert_int_equal(fmm_profile_load(file, &m), FMM_ERR_PROFILE);
  if (!strstr(fmm_last_error(), reason)) fail_msg("'%s' does not say '%s'", fmm_last_error(), reason);
  assert_non_null(strstr(fmm_last_error(), "fmm-calibrate")); /* the way out */
  assert_int_equal(m.schema, 77);
}

static void every_truncation_is_refused(void **state) {
  fmm_machine m = odd_machine();
  char *text;
  size_t length;
  assert_ok(fmm_profile_save(file, &m));
  assert_ok(fmm_file_read_all(file, &text, &length));
  for (size_t cut = 0; cut < length; cut += 1 + cut / 40) {
    assert_ok(fmm_file_replace(file, text, cut));
    fmm_machine back;
    assert_int_equal(fmm_profile_load(file, &back), FMM_ERR_PROFILE);
  }
  FMM_FREE(&text);
}

/* A flip may turn a blank into another blank; whatever is accepted must be the same machine. */
static void every_flipped_byte_is_refused_or_changes_nothing(void **state) {
  fmm_machine m = odd_machine();
  char *text;
  size_t length;
  int refused = 0;
  assert_ok(fmm_profile_save(file, &m));
  assert_ok(fmm_file_read_all(file, &text, &length));
  for (size_t at = 0; at < length; at++) {
    char kept = text[at];
    text[at] ^= (char)(1u << at % 8);
    FILE *f = fopen(file, "wb"); /* not through the seam: a sync a byte would take minutes */
    assert_int_equal(fwrite(text, 1, length, f), length);
    fclose(f);
    fmm_machine back;
    fmm_status status = fmm_profile_load(file, &back);
    if (status == FMM_OK) {
      memset(back.path, 0, sizeof back.path);
      assert_memory_equal(&m, &back, sizeof m);
    } else {
      assert_int_equal(status, FMM_ERR_PROFILE);
      refused++;
    }
    text[at] = kept;
  }
  assert_true(refused > (int)length / 2);
  FMM_FREE(&text);
}

/* The saved text with its first `from` replaced by `to` (same length or not), optionally sealed again. */
static void edit(const char *from, const char *to) {
  char *text, *at;
  size_t length;
  assert_ok(fmm_file_read_all(file, &text, &length));
  assert_non_null(at = strstr(text, from));
  FILE *f = fopen(file, "wb");
  fprintf(f, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
  fclose(f);
  FMM_FREE(&text);
}

static void fresh(void) {
  fmm_machine m = odd_machine();
  assert_ok(fmm_profile_save(file, &m));
}

static void newer_older_and_absent_schema_are_refused(void **state) {
  fresh(), edit("\"schema\": 12", "\"schema\": 13"), assert_refused("newer");
  fresh(), edit("\"schema\": 12", "\"schema\": 11"), assert_refused("schema 11 is older"), assert_refused("run fmm-calibrate");
  fresh(), edit("\"schema\"", "\"scheme\""), assert_refused("no schema number");
  FILE *f = fopen(file, "w");
  fputs("[1, 2]", f), fclose(f);
  assert_refused("no JSON object");
  remove(file), assert_refused("cannot be opened");
}

static void edited_profile_is_refused_until_sealed(void **state) {
  fresh(), edit("standard", "thorough"), assert_refused("damaged or edited");
  assert_ok(fmm_profile_seal(file));
  assert_string_equal(load_copy().effort, "thorough");
  edit("\"checksum\"", "\"checksun\""), assert_refused("no checksum");
}

static void assert_not_sealable(const char *reason) {
  assert_int_equal(fmm_profile_seal(file), FMM_ERR_PROFILE);
  if (!strstr(fmm_last_error(), reason)) fail_msg("'%s' does not say '%s'", fmm_last_error(), reason);
}

static void seal_refuses_what_no_machine_has(void **state) {
  fresh(), edit("\"present\": true", "\"present\": 1"), assert_not_sealable("present must be true or false");
  fresh(), edit("\"units\": 3", "\"units\": 0"), assert_not_sealable("0 units");
  fresh(), edit("\"units\": 3", "\"units\": 3.5"), assert_not_sealable("whole number");
  fresh(), edit("\"units\": 3", "\"units\": 3, \"unit\": 3"), assert_not_sealable("devices.cpu.unit is no key");
  fresh(), edit("\"n_fit\": ", "\"n_runs\": 1, \"n_fit\": "), assert_not_sealable("devices.cpu.constants.up.double.n_runs is no key");
  fresh(), edit("\"schema\": ", "\"comment\": \"\", \"schema\": "), assert_not_sealable("comment is no key");
  fresh(), edit("\"gpu\": ", "\"gqu\": "), assert_not_sealable("devices.gpu must be an object");
  fresh(), edit("\"cpu\": {", "\"cpu\": 1, \"cqu\": {"), assert_not_sealable("devices.cpu must be an object");
  fresh(), edit("\"spread\": ", "\"spread\": \"\", \"was\": "), assert_not_sealable(".spread must be a number");
  fresh(), edit("\"name\": \"cpu\"", "\"name\": \"cpu\", \"name\": \"twice\""), assert_not_sealable("duplicate");
  fresh(), edit("\"spread\": ", "\"spread\": -"), assert_not_sealable("positive and finite");
  fresh(), edit("\"driving_slowdown\": 1.3", "\"driving_slowdown\": 0.3"), assert_not_sealable("driving_slowdown");
  fresh(), edit("\"effort\": \"standard\"", "\"effort\": \"none\""), assert_not_sealable("effort is 'none'");
  fresh(), edit("\"created_unix_s\": ", "\"created_unix_s\": -"), assert_not_sealable("created_unix_s is -");
  fresh(), edit("\"n_fit\": 0", "\"n_fit\": -1"), assert_not_sealable("n_fit of the constants of up is -1; it must be 0 .. 2.14748e+09");
  fresh(), edit("\"chain_s\": ", "\"chain_s\": -"), assert_not_sealable("chain_s of the constants of up is -3.33333e-09; it must be 0 .. 1");
}

static void save_refuses_values_that_are_not_finite(void **state) {
  fmm_machine m = odd_machine();
  remove(file);
  m.device[FMM_DEVICE_GPU].h2d_bytes_per_s.value = NAN;
  assert_int_equal(fmm_profile_save(file, &m), FMM_ERR_PROFILE);
  assert_int_equal(access(file, F_OK), -1);
  m = odd_machine(), m.device[FMM_DEVICE_CPU].present = 0;
  assert_int_equal(fmm_profile_save(file, &m), FMM_ERR_PROFILE);
}

static void failed_write_keeps_the_old_profile(void **state) {
  fmm_machine m = odd_machine(), changed = m;
  assert_ok(fmm_profile_save(file, &m));
  strcpy(changed.effort, "quick");
  for (int nth = 1; nth < 40; nth++) {
    fmm_file_fail_at(nth, 28 /* ENOSPC */);
    fmm_status status = fmm_profile_save(file, &changed);
    fmm_file_fail_at(0, 0);
    if (status == FMM_OK) break;
    assert_int_equal(status, FMM_ERR_FILE);
    const char *effort = load_copy().effort; /* after the rename the new file is whole */
    assert_true(!strcmp(effort, "standard") || !strcmp(effort, "quick"));
  }
  assert_string_equal(load_copy().effort, "quick");
}

static void foreign_profile_is_refused(void **state) {
  fmm_machine m = odd_machine();
  assert_ok(fmm_profile_check_native(&m, "0123456789abcdef"));
  assert_int_equal(fmm_profile_check_native(&m, "fedcba9876543210"), FMM_ERR_PROFILE);
  assert_non_null(strstr(fmm_last_error(), "fedcba9876543210"));
}

static void profiles_are_sought_by_option_environment_user_system(void **state) {
  char path[512] = "untouched", expected[512], part[512];
  int found = -1;
  setenv("XDG_STATE_HOME", directory, 1);
  unsetenv("FMM_PROFILE");
  assert_ok(fmm_profile_find(NULL, "no-such-machine", 0, path, &found));
  assert_int_equal(found, 0);
  assert_ok(fmm_profile_user_path("abc", 0, expected));
  assert_non_null(strstr(expected, "/hybridfmm/abc.json"));
  fmm_machine m = odd_machine();
  assert_int_equal(fmm_profile_save(expected, &m), FMM_ERR_FILE); /* no directory yet, and none is made unasked */
  assert_ok(fmm_file_make_parents(expected));
  assert_ok(fmm_profile_save(expected, &m));
  assert_ok(fmm_profile_find(NULL, "abc", 0, path, &found));
  assert_true(found);
  assert_string_equal(path, expected);
  assert_ok(fmm_profile_find(NULL, "abc", 8, path, &found)); /* a part of the GPU without a profile of its own */
  assert_true(found);
  assert_string_equal(path, expected);
  assert_ok(fmm_profile_user_path("abc", 8, part));
  assert_non_null(strstr(part, "/hybridfmm/abc-8.json"));
  assert_ok(fmm_profile_save(part, &m));
  assert_ok(fmm_profile_find(NULL, "abc", 8, path, &found));
  assert_string_equal(path, part);
  assert_ok(fmm_profile_find(NULL, "abc", 16, path, &found));
  assert_string_equal(path, expected);
  assert_ok(fmm_profile_find(NULL, "abc", 0, path, &found));
  assert_string_equal(path, expected);
  setenv("FMM_PROFILE", "/nonexistent.json", 1);
  assert_int_equal(fmm_profile_find(NULL, "abc", 0, path, &found), FMM_ERR_PROFILE);
  setenv("FMM_PROFILE", file, 1), fresh();
  assert_ok(fmm_profile_find(NULL, "abc", 0, path, &found));
  assert_string_equal(path, file);
  assert_ok(fmm_profile_find(expected, "abc", 0, path, &found));
  assert_string_equal(path, expected);
  unsetenv("FMM_PROFILE");
  setenv("XDG_STATE_HOME", "relative", 1), setenv("HOME", "/home/somebody", 1);
  assert_ok(fmm_profile_user_path("abc", 0, path));
  assert_string_equal(path, "/home/somebody/.local/state/hybridfmm/abc.json");
  unsetenv("HOME");
  assert_int_equal(fmm_profile_user_path("abc", 0, path), FMM_ERR_PROFILE);
}

static void nominal_machine_is_valid_and_has_no_gpu(void **state) {
  fmm_machine m;
  fmm_machine_nominal(7, &m);
  assert_ok(fmm_machine_check(&m));
  assert_int_equal(m.device[FMM_DEVICE_CPU].units, 7);
  assert_false(m.device[FMM_DEVICE_GPU].present);
  assert_ok(fmm_profile_save(file, &m));
}

static void nominal_constants_of_a_gpu_are_valid(void **state) {
  fmm_machine m = odd_machine(), whole = m;
  whole.device[FMM_DEVICE_GPU].units = 132, m.device[FMM_DEVICE_GPU].units = 33;
  fmm_machine_nominal_gpu_constants(&whole.device[FMM_DEVICE_GPU]);
  fmm_machine_nominal_gpu_constants(&m.device[FMM_DEVICE_GPU]);
  assert_ok(fmm_machine_check(&m));
  for (int phase = 0; phase < FMM_N_PHASES; phase++)
    for (int p = 0; p < FMM_N_PRECISIONS; p++) { /* a quarter of the multiprocessors take four times as long for entries, as long for levels */
      const fmm_constant *all = &whole.device[FMM_DEVICE_GPU].constant[phase][p], *some = &m.device[FMM_DEVICE_GPU].constant[phase][p];
      assert_true(some->value > 0 && some->value == all->value && some->other == all->other && some->launch_s == all->launch_s && some->chain_s == all->chain_s);
      assert_true(fabs(some->entry_s - 4 * all->entry_s) <= 1e-12 * some->entry_s);
    }
}

static void a_part_of_a_device_has_its_share_of_the_rates(void **state) {
  fmm_machine m = odd_machine(), all = m;
  fmm_machine_use_units(&m, FMM_DEVICE_GPU, 2);
  assert_int_equal(m.device[FMM_DEVICE_GPU].units, 2);
  assert_string_equal(m.fingerprint, odd_machine().fingerprint);
  assert_true(m.device[FMM_DEVICE_GPU].fma_flops_per_s[0].value == odd_machine().device[FMM_DEVICE_GPU].fma_flops_per_s[0].value * 0.5);
  const fmm_constant *half = &m.device[FMM_DEVICE_GPU].constant[1][0], *whole = &all.device[FMM_DEVICE_GPU].constant[1][0];
  assert_true(half->entry_s == 2 * whole->entry_s && half->byte_s == 2 * whole->byte_s && half->value == whole->value && half->launch_s == whole->launch_s);
}

static void recorded_machines_load(void **state) {
  const char *names[] = {"cpu-2-cores", "xeon16-h200", "xeon16-h200-8sm"};
  for (int i = 0; i < 3; i++) {
    char path[512];
    fmm_machine m;
    snprintf(path, sizeof path, "%s/%s.json", FMM_TEST_MACHINES, names[i]);
    assert_ok(fmm_profile_load(file, &m));
    assert_true(m.source[0] != 0); /* every recorded machine says where its numbers come from */
  }
}

/* Every "key": of a recorded machine stands in backticks in the reference page. */
static void every_key_is_in_the_reference(void **state) {
  char *machine, *page;
  size_t length;
  int keys = 0;
  assert_ok(fmm_file_read_all(FMM_TEST_MACHINES "/xeon16-h200.json", &machine, &length));
  assert_ok(fmm_file_read_all(FMM_TEST_MACHINES "/../../docs/reference-profile.md", &page, &length));
  for (char *begin = strchr(machine, '"'), *end; begin; begin = strchr(end + 1, '"')) {
    char key[64];
    assert_non_null(end = strchr(begin + 1, '"'));
    if (end[1] != ':') continue;
    snprintf(key, sizeof key, "`%.*s`", (int)(end - begin - 1), begin + 1);
    if (!strstr(page, key)) fail_msg("%s is not in docs/reference-profile.md", key);
    keys++;
  }
  assert_true(keys > 100);
  FMM_FREE(&machine);
  FMM_FREE(&page);
}

static void failing_memory_is_not_a_damaged_profile(void **state) {
  const size_t held = fmm_memory_now();
  fmm_machine m;
  fresh();
  const int64_t before = fmm_memory_count();
  assert_ok(fmm_profile_load(file, &m));
  const int64_t calls = fmm_memory_count() - before;
  assert_true(calls >= 2); /* the text, and room for what jansson makes of it */
  for (int64_t n = 1; n <= calls; n++) {
    fmm_memory_fail_at(n);
    const fmm_status status = fmm_profile_load(file, &m);
    if (status != FMM_ERR_MEMORY) fail_msg("allocation %lld of %lld: %s, %s", (long long)n, (long long)calls, fmm_status_name(status), fmm_last_error());
    assert_int_equal(fmm_memory_now(), held);
  }
  fmm_memory_fail_at(0);
  assert_ok(fmm_profile_load(file, &m));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(saved_profile_is_loaded_bit_for_bit),
                                     cmocka_unit_test(every_truncation_is_refused),
                                     cmocka_unit_test(every_flipped_byte_is_refused_or_changes_nothing),
                                     cmocka_unit_test(newer_older_and_absent_schema_are_refused),
                                     cmocka_unit_test(edited_profile_is_refused_until_sealed),
                                     cmocka_unit_test(seal_refuses_what_no_machine_has),
                                     cmocka_unit_test(save_refuses_values_that_are_not_finite),
                                     cmocka_unit_test(failed_write_keeps_the_old_profile),
                                     cmocka_unit_test(foreign_profile_is_refused),
                                     cmocka_unit_test(profiles_are_sought_by_option_environment_user_system),
                                     cmocka_unit_test(nominal_machine_is_valid_and_has_no_gpu),
                                     cmocka_unit_test(nominal_constants_of_a_gpu_are_valid),
                                     cmocka_unit_test(a_part_of_a_device_has_its_share_of_the_rates),
                                     cmocka_unit_test(recorded_machines_load),
                                     cmocka_unit_test(every_key_is_in_the_reference),
                                     cmocka_unit_test(failing_memory_is_not_a_damaged_profile)};
  return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
