/* Running a command as a process: its exit code, standard output and standard error, in a directory of its own with a machine profile that
 * says "nominal", so that no test calibrates. */
#ifndef FMM_TEST_COMMAND_H
#define FMM_TEST_COMMAND_H
#include "test.h"
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "model/machine.h"
#include "runtime/cores.h"
#include "runtime/file.h"
#include "runtime/identity.h"

static const char *command_path; /* of the command tested, from argv */
static char directory[64];
static int exit_code;
static char *out, *err;

static inline char *read_text(const char *name) {
  char *text;
  size_t length;
  assert_ok(fmm_file_read_all(name, &text, &length));
  return text;
}

static inline void write_text(const char *name, const char *text) {
  FILE *file = fopen(name, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
  assert_int_equal(fclose(file), 0);
}

/* One row of so many zeros. */
static inline void write_zeros(const char *name, int columns) {
  FILE *file = fopen(name, "wb");
  assert_non_null(file);
  for (int i = 0; i < columns; i++) fputs(i ? ",0" : "0", file);
  assert_int_equal(fclose(file), 0);
}

/* Runs "BEFORE COMMAND ARGUMENTS" by the shell in the directory; fills exit_code, out, err. */
static inline void run_after(const char *before, const char *arguments) {
  char line[2048];
  snprintf(line, sizeof line, "%s '%s' %s >.out 2>.err </dev/null", before, command_path, arguments);
  int status = system(line);
  exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  FMM_FREE(&out);
  FMM_FREE(&err);
  out = read_text(".out"), err = read_text(".err");
}
static inline void run(const char *arguments) { run_after("", arguments); }

/* The command ends with 0. */
static inline void run_well(const char *arguments) {
  run(arguments);
  if (exit_code) fail_msg("%s: exit code %d, %s", arguments, exit_code, err);
}

/* It ends with this code, says one line "NAME: error: ..." with each of the words, and prints no data. */
static inline void assert_refused(int code, const char *before, const char *arguments, const char *word1, const char *word2) {
  char begin[64];
  run_after(before, arguments);
  const char *slash = strrchr(command_path, '/'), *line = err;
  snprintf(begin, sizeof begin, "%s: error: ", slash ? slash + 1 : command_path);
  if (exit_code != code) fail_msg("'%s' ends with %d, not %d: %s", arguments, exit_code, code, err);
  while (*line && strncmp(line, begin, strlen(begin))) line = strchr(line, '\n') ? strchr(line, '\n') + 1 : ""; /* remarks may come before */
  if (!*line) fail_msg("'%s': no line '%s...' in '%s'", arguments, begin, err);
  if (strchr(line, '\n') != line + strlen(line) - 1) fail_msg("'%s': more than one line: %s", arguments, line);
  if (!strstr(line, word1) || !strstr(line, word2)) fail_msg("'%s': '%s' lacks '%s' or '%s'", arguments, line, word1, word2);
  assert_string_equal(out, "");
}

/* A profile of this machine with nominal rates, named by FMM_PROFILE. */
static inline int enter_directory(void **state) {
  char path[128];
  fmm_machine machine;
  strcpy(directory, "/tmp/fmm-test-command-XXXXXX");
  if (!mkdtemp(directory) || chdir(directory)) return -1;
  fmm_machine_nominal(fmm_cores_allowed(), &machine);
  fmm_fingerprint(machine.fingerprint);
  fmm_build_name(machine.build);
  snprintf(path, sizeof path, "%s/profile.json", directory);
  if (fmm_profile_save(path, &machine) != FMM_OK) return fprintf(stderr, "%s\n", fmm_last_error()), -1;
  return setenv("FMM_PROFILE", path, 1);
}

static inline int leave_directory(void **state) {
  char line[128];
  FMM_FREE(&out);
  FMM_FREE(&err);
  snprintf(line, sizeof line, "rm -rf '%s'", directory);
  return chdir("/") || system(line);
}
#endif
