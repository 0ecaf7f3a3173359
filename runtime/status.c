/* Status names, exit codes and the thread-local last-error text, all from FMM_STATUS_LIST. */
#include "status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "io/number.h"

static _Thread_local char error_text[FMM_ERROR_TEXT];
static _Thread_local char error_where[FMM_ERROR_WHERE];

fmm_status fmm_fail(fmm_status status, const char *file, int line, const char *format, ...) {
  char text[sizeof error_text]; /* formatted apart: an argument may be the old text */
  va_list arguments;
  va_start(arguments, format);
  fmm_format_arguments(text, sizeof text, format, arguments);
  va_end(arguments);
  memcpy(error_text, text, sizeof text);
  const char *slash = strrchr(file, '/');
  snprintf(error_where, sizeof error_where, "%s:%d", slash ? slash + 1 : file, line);
  return status;
}

void fmm_clear_error(void) { error_text[0] = error_where[0] = 0; }
void fmm_error_take(fmm_error *error) {
  memcpy(error->text, error_text, sizeof error_text);
  memcpy(error->where, error_where, sizeof error_where);
}
void fmm_error_give(const fmm_error *error) {
  memcpy(error_text, error->text, sizeof error_text);
  memcpy(error_where, error->where, sizeof error_where);
}
const char *fmm_last_error(void) { return error_text; }
const char *fmm_last_error_where(void) { return error_where; }

const char *fmm_status_name(fmm_status status) {
  switch (status) {
#define FMM_STATUS_NAME(code, name, exit_code, meaning) \
  case code: return name;
    FMM_STATUS_LIST(FMM_STATUS_NAME)
#undef FMM_STATUS_NAME
  }
  return "unknown";
}

int fmm_status_exit_code(fmm_status status) {
  switch (status) {
#define FMM_STATUS_EXIT(code, name, exit_code, meaning) \
  case code: return exit_code;
    FMM_STATUS_LIST(FMM_STATUS_EXIT)
#undef FMM_STATUS_EXIT
  }
  return 1;
}

const char *fmm_version(void) { return FMM_VERSION; }
