/* Where profiles are kept: the user's by fingerprint (and the GPU's part) under the XDG state directory, the system's under /etc/hybridfmm.
 * Reference: XDG Base Directory Specification (a relative XDG_STATE_HOME is ignored). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/machine.h"
#include "runtime/file.h"

static fmm_status join(char path[512], const char *directory, const char *middle, const char *fingerprint, int gpu_sms) {
  char whole[512], part[16] = "";
  if (gpu_sms > 0) snprintf(part, sizeof part, "-%d", gpu_sms);
  int length = snprintf(whole, sizeof whole, "%s%s%s%s.json", directory, middle, fingerprint, part);
  if (length < 0 || length >= (int)sizeof whole)
    return FMM_FAIL(FMM_ERR_PROFILE, "the path of the machine profile is longer than 511 bytes (%s...); give a shorter --profile", directory);
  memcpy(path, whole, (size_t)length + 1);
  return FMM_OK;
}

/* 0 when neither XDG_STATE_HOME nor HOME is usable. */
static int state_directory(const char **directory, const char **middle) {
  const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
  if (state && state[0] == '/') return *directory = state, *middle = "/hybridfmm/", 1;
  if (home && home[0] == '/') return *directory = home, *middle = "/.local/state/hybridfmm/", 1;
  return 0;
}

fmm_status fmm_profile_user_path(const char *fingerprint, int gpu_sms, char path[512]) {
  const char *directory, *middle;
  if (!state_directory(&directory, &middle))
    return FMM_FAIL(FMM_ERR_PROFILE, "neither XDG_STATE_HOME nor HOME names a directory to keep the machine profile in; give --profile FILE");
  return join(path, directory, middle, fingerprint, gpu_sms);
}

static fmm_status take_named(const char *named, const char *by, char path[512]) {
  if (!*named) return FMM_FAIL(FMM_ERR_PROFILE, "the profile path given by %s is empty: name a file, or leave it out", by);
  if (strlen(named) >= 512) return FMM_FAIL(FMM_ERR_PROFILE, "the profile path given by %s is longer than 511 bytes", by);
  if (!fmm_file_readable(named))
    return FMM_FAIL(FMM_ERR_PROFILE, "%s (given by %s) cannot be read; run fmm-calibrate --profile %s, or name another", named, by, named);
  memcpy(path, named, strlen(named) + 1);
  return FMM_OK;
}

/* Of exactly this part (0: the whole), the user's before the system's. */
static fmm_status find_kept(const char *fingerprint, int gpu_sms, char path[512], int *found) {
  const char *directory, *middle;
  char candidate[512];
  if (state_directory(&directory, &middle)) {
    FMM_TRY(join(candidate, directory, middle, fingerprint, gpu_sms));
    *found = fmm_file_readable(candidate);
  }
  if (!*found) {
    FMM_TRY(join(candidate, "/etc", "/hybridfmm/", fingerprint, gpu_sms));
    *found = fmm_file_readable(candidate);
  }
  if (*found) memcpy(path, candidate, sizeof candidate);
  return FMM_OK;
}

fmm_status fmm_profile_find(const char *explicit_path, const char *fingerprint, int gpu_sms, char path[512], int *found) {
  const char *environment = getenv("FMM_PROFILE");
  if (explicit_path || (environment && environment[0])) {
    FMM_TRY(take_named(explicit_path ? explicit_path : environment, explicit_path ? "the profile option" : "FMM_PROFILE", path));
    return *found = 1, FMM_OK;
  }
  *found = 0;
  if (gpu_sms > 0) FMM_TRY(find_kept(fingerprint, gpu_sms, path, found));
  return *found ? FMM_OK : find_kept(fingerprint, 0, path, found);
}
