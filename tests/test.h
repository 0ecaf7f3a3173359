/* What every test program includes: cmocka with the headers it wants before it. */
#ifndef FMM_TEST_H
#define FMM_TEST_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "runtime/status.h"

/* Exit code by which a test says that this machine lacks what it needs. */
enum { FMM_TEST_SKIP = 77 };

/* Fails with the library's own words. */
#define assert_ok(call)                                                                         \
  do {                                                                                          \
    fmm_status assert_ok_ = (call);                                                             \
    if (assert_ok_ != FMM_OK) fail_msg("%s: %s", fmm_status_name(assert_ok_), fmm_last_error()); \
  } while (0)
#endif
