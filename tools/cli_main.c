/* What every command does around its work: signals, the error line, the exit code. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "blas_threads.h"
#include "cli.h"
#include "runtime/file.h"

static const char *the_command = "";

/* Files under replacement lose their temporaries, so nothing half-written is left; the targets are untouched until the rename. */
static void end_by_signal(int number) {
  fmm_file_remove_temporaries();
  _exit(128 + number);
}

void fmm_cli_begin(const char *command) {
  static const int unless_ignored[] = {SIGHUP, SIGQUIT, SIGXCPU}; /* as nohup asks, and scripts for what they leave running */
  struct sigaction end = {.sa_handler = end_by_signal}, ignore = {.sa_handler = SIG_IGN}, before;
  the_command = command;
  sigemptyset(&end.sa_mask);
  sigaction(SIGINT, &end, NULL);
  sigaction(SIGTERM, &end, NULL);
  for (size_t i = 0; i < sizeof unless_ignored / sizeof *unless_ignored; i++)
    if (!sigaction(unless_ignored[i], NULL, &before) && before.sa_handler != SIG_IGN) sigaction(unless_ignored[i], &end, NULL);
  sigaction(SIGPIPE, &ignore, NULL);
  sigaction(SIGXFSZ, &ignore, NULL);
  fmm_blas_threads_end();
}

/* One line whatever a file name holds. */
static void print_line(const char *kind, const char *text) {
  char line[1024];
  snprintf(line, sizeof line, "%s", text);
  for (char *p = line; *p; p++)
    if ((unsigned char)*p < ' ' || *p == 127) *p = ' ';
  fprintf(stderr, "%s: %s%s\n", the_command, kind, line);
}

void fmm_cli_say(const char *format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  print_line("", text);
}

static int end(int code) {
  if (fmm_memory_is_limited()) fflush(NULL), _exit(code);
  return code;
}

int fmm_cli_end(fmm_status status, int verbose) {
  if (status == FMM_OK && (fflush(stdout) || ferror(stdout)))
    status = FMM_FAIL(FMM_ERR_FILE, "standard output cannot be written: %s", strerror(errno));
  if (status == FMM_OK) return end(0);
  print_line("error: ", fmm_last_error());
  if (verbose) fmm_cli_say("(%s, at %s)", fmm_status_name(status), fmm_last_error_where());
  return end(fmm_status_exit_code(status));
}
