/* Calibration from end to end, quick: a whole and valid profile, kept where it is sought, loaded the next time; stopped when asked; foreign and
 * damaged profiles refused. No times are judged. */
#include "test.h"
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>
#include "calib/calibrate.h"
#include "calib/trust.h"
#include "runtime/cores.h"
#include "runtime/identity.h"
#include "runtime/memory.h"

static char state_home[PATH_MAX], said[4096];

static int in_own_state_home(void **state) {
  char name[] = "fmm_state_XXXXXX";
  if (!mkdtemp(name) || !realpath(name, state_home)) return 1;
  setenv("XDG_STATE_HOME", state_home, 1);
  unsetenv("FMM_PROFILE");
  said[0] = 0;
  return 0;
}

static int remove_state_home(void **state) {
  char command[PATH_MAX + 16];
  snprintf(command, sizeof command, "rm -rf '%s'", state_home);
  return system(command);
}

static void hear(void *context, const char *line) { strncat(said, line, sizeof said - strlen(said) - 1); }

static void without_a_profile_the_machine_is_measured_once_and_kept(void **state) {
  fmm_machine first, second;
  char doubt[512];
  char fingerprint[FMM_FINGERPRINT_CHARS], path[512];
  size_t before = fmm_memory_now();
  fmm_fingerprint(fingerprint);
  assert_ok(fmm_profile_user_path(fingerprint, 0, path));
  assert_ok(fmm_profile_obtain(NULL, 0, hear, NULL, NULL, &first));
  assert_int_equal(fmm_memory_now(), before);
  assert_non_null(strstr(said, "no profile"));
  assert_ok(fmm_machine_check(&first));
  assert_string_equal(first.fingerprint, fingerprint);
  assert_string_equal(first.effort, "quick");
  assert_int_equal(first.device[FMM_DEVICE_CPU].units, fmm_cores_allowed());
  const fmm_device_rates *cpu = &first.device[FMM_DEVICE_CPU];
  assert_true(cpu->launch_s.value > 0 && cpu->staging_bytes_per_s.value > 0 && cpu->staging_bytes_per_s.value <= 4 * cpu->memory_bytes_per_s.value * (1 + 1e-12));
  assert_true(cpu->evaluation_s.value >= 0 && cpu->evaluation_s.value < 1);
  for (int k = 0; k < FMM_N_PRECISIONS; k++) {
    const fmm_constant *u = &first.device[FMM_DEVICE_CPU].constant[FMM_PHASE_ULIST][k];
    assert_true(u->value > 0 && u->n_fit >= 2 && u->n_held_out >= 1);
    assert_true(isfinite(u->median_error) && u->p90_error >= u->median_error);
  }

  if (fmm_machine_doubt(&first, doubt, sizeof doubt)) assert_non_null(strstr(said, doubt)); /* this machine is busy: kept all the same */
  assert_string_equal(first.path, path);
  assert_non_null(strstr(said, path));
  said[0] = 0;
  assert_ok(fmm_profile_obtain(NULL, 0, hear, NULL, NULL, &second));
  assert_string_equal(said, ""); /* loaded, not measured */
  assert_true(second.device[FMM_DEVICE_CPU].memory_bytes_per_s.value == first.device[FMM_DEVICE_CPU].memory_bytes_per_s.value);
  assert_true(second.device[FMM_DEVICE_CPU].constant[FMM_PHASE_VLIST][0].value == first.device[FMM_DEVICE_CPU].constant[FMM_PHASE_VLIST][0].value);
  assert_true(second.created_unix_s == first.created_unix_s);
}

static void a_profile_that_is_not_to_be_trusted_is_kept_and_told(void **state) {
  char fingerprint[FMM_FINGERPRINT_CHARS], path[512];
  fmm_machine machine;
  fmm_constant *down = &machine.device[FMM_DEVICE_CPU].constant[FMM_PHASE_DOWN][0];
  fmm_fingerprint(fingerprint);
  assert_ok(fmm_profile_user_path(fingerprint, 0, path));
  fmm_machine_nominal(2, &machine);
  fmm_build_name(machine.build);
  strcpy(machine.fingerprint, fingerprint);
  *down = (fmm_constant){.value = 2, .median_error = 36, .p90_error = 40, .n_fit = 8, .n_held_out = 4};
  fmm_profile_keep(fingerprint, 0, hear, NULL, &machine);
  assert_non_null(strstr(said, "kept in"));
  assert_non_null(strstr(said, "down in double on the CPU are off by 3600 %"));
  assert_string_equal(machine.path, path);
  assert_int_equal(access(path, F_OK), 0);
  down->median_error = 0.3, said[0] = 0;
  fmm_profile_keep(fingerprint, 0, hear, NULL, &machine);
  assert_non_null(strstr(said, "kept in"));
  assert_null(strstr(said, "trusted"));
}

static int stop_at_second(void *context, const char *what, double fraction) {
  assert_true(fraction >= 0 && fraction <= 1);
  return ++*(int *)context == 2;
}

static void a_calibration_stops_when_asked(void **state) {
  int calls = 0;
  size_t before = fmm_memory_now();
  fmm_machine machine = {.schema = -7};
  assert_int_equal(fmm_calibrate(FMM_EFFORT_QUICK, 1, 0, stop_at_second, &calls, &machine), FMM_ERR_INTERRUPTED);
  assert_int_equal(machine.schema, -7);
  assert_int_equal(fmm_memory_now(), before);
}

static void foreign_and_damaged_profiles_are_refused_and_not_replaced(void **state) {
  fmm_machine machine;
  assert_int_equal(fmm_profile_obtain(FMM_TEST_MACHINES "/cpu-2-cores.json", 0, hear, NULL, NULL, &machine), FMM_ERR_PROFILE);
  assert_non_null(strstr(fmm_last_error(), "cpu-2-cores.json"));
  assert_non_null(strstr(fmm_last_error(), "fmm-calibrate"));
  char path[PATH_MAX + 16];
  snprintf(path, sizeof path, "%s/damaged.json", state_home);
  FILE *f = fopen(path, "w");
  fputs("{\"schema\": 1", f);
  fclose(f);
  assert_int_equal(fmm_profile_obtain(path, 0, hear, NULL, NULL, &machine), FMM_ERR_PROFILE);
  assert_string_equal(said, "");
}

#define OWN_STATE(test) cmocka_unit_test_setup_teardown(test, in_own_state_home, remove_state_home)
int main(void) {
  const struct CMUnitTest tests[] = {OWN_STATE(without_a_profile_the_machine_is_measured_once_and_kept), OWN_STATE(a_profile_that_is_not_to_be_trusted_is_kept_and_told), OWN_STATE(a_calibration_stops_when_asked),
                                     OWN_STATE(foreign_and_damaged_profiles_are_refused_and_not_replaced)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
