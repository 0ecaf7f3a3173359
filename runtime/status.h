/* Status and errors: every fallible function returns fmm_status; the thread-local text says what, with which values, where.
 * Usage: return FMM_FAIL(FMM_ERR_INPUT, "row %lld is not finite: ...", row);   FMM_TRY(f(x));   (after libCEED's errors) */
#ifndef FMM_STATUS_H
#define FMM_STATUS_H
#include "hybridfmm/fmm.h"

/* Records the formatted text (with file:line kept apart for the trace) and returns status. */
fmm_status fmm_fail(fmm_status status, const char *file, int line, const char *format, ...) __attribute__((format(printf, 4, 5)));
#define FMM_FAIL(status, ...) fmm_fail((status), __FILE__, __LINE__, __VA_ARGS__)

/* "file.c:123" of the latest failure in this thread, for verbose output. */
const char *fmm_last_error_where(void);
void fmm_clear_error(void);

/* The latest failure of one thread, for another: where work is joined. */
enum { FMM_ERROR_TEXT = 1024, FMM_ERROR_WHERE = 128 };
typedef struct fmm_error { char text[FMM_ERROR_TEXT], where[FMM_ERROR_WHERE]; } fmm_error;
void fmm_error_take(fmm_error *error);
void fmm_error_give(const fmm_error *error);

#define FMM_TRY(call)                        \
  do {                                       \
    fmm_status fmm_try_ = (call);            \
    if (fmm_try_ != FMM_OK) return fmm_try_; \
  } while (0)

/* For functions with one clean-up label `done` and a variable `fmm_status status`. */
#define FMM_CHECK(call)                                  \
  do {                                                   \
    if ((status = (call)) != FMM_OK) goto done;          \
  } while (0)
#endif
