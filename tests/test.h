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

/* Each allocation of `call` fails in turn until it ends well; a failure is told as such and leaves nothing behind. At least so many there are. (With runtime/memory.h.) */
#define assert_allocations_may_fail(call, least)                     \
  do {                                                               \
    const size_t may_fail_held_ = fmm_memory_now();                  \
    for (int may_fail_nth_ = 1;; may_fail_nth_++) {                  \
      fmm_memory_fail_at(may_fail_nth_);                             \
      const fmm_status may_fail_status_ = (call);                    \
      fmm_memory_fail_at(0);                                         \
      if (may_fail_status_ == FMM_OK) {                              \
        assert_true(may_fail_nth_ > (least));                        \
        break;                                                       \
      }                                                              \
      assert_int_equal(may_fail_status_, FMM_ERR_MEMORY);            \
      assert_int_equal(fmm_memory_now(), may_fail_held_);            \
    }                                                                \
  } while (0)
#endif
