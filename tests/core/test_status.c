/* Status names, exit codes and last-error text; allocation seam: accounting and injected failure. */
#include "test.h"
#include "runtime/memory.h"

static void every_status_has_a_name_and_the_contracts_exit_code(void **state) {
  assert_string_equal(fmm_status_name(FMM_OK), "ok");
  assert_int_equal(fmm_status_exit_code(FMM_ERR_ARGUMENT), 2);
  assert_int_equal(fmm_status_exit_code(FMM_ERR_INPUT), 3);
  assert_int_equal(fmm_status_exit_code(FMM_ERR_PROFILE), 4);
  assert_int_equal(fmm_status_exit_code(FMM_ERR_DEVICE), 5);
  assert_int_equal(fmm_status_exit_code(FMM_ERR_MEMORY), 6);
}

static void last_error_keeps_the_formatted_values(void **state) {
  assert_int_equal(FMM_FAIL(FMM_ERR_INPUT, "row %d is bad", 7), FMM_ERR_INPUT);
  assert_string_equal(fmm_last_error(), "row 7 is bad");
  FMM_FAIL(FMM_ERR_INPUT, "file x: %s", fmm_last_error());
  assert_string_equal(fmm_last_error(), "file x: row 7 is bad");
}

static void allocation_is_aligned_accounted_and_can_be_made_to_fail(void **state) {
  size_t before = fmm_memory_now();
  double *a = NULL, *b = NULL;
  assert_ok(FMM_ALLOCATE(&a, 1000, "a"));
  assert_int_equal((uintptr_t)a % FMM_ALIGNMENT, 0);
  assert_int_equal(fmm_memory_now() - before, 8000);
  fmm_memory_fail_at(1);
  assert_int_equal(FMM_ALLOCATE(&b, 10, "the b table"), FMM_ERR_MEMORY);
  assert_null(b);
  assert_non_null(strstr(fmm_last_error(), "the b table"));
  assert_ok(FMM_ALLOCATE_ZERO(&b, 10, "b"));
  assert_true(b[9] == 0);
  assert_int_equal(FMM_ALLOCATE(&b, SIZE_MAX / 4, "huge"), FMM_ERR_MEMORY);
  FMM_FREE(&a);
  FMM_FREE(&b);
  assert_int_equal(fmm_memory_now(), before);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_status_has_a_name_and_the_contracts_exit_code),
                                     cmocka_unit_test(last_error_keeps_the_formatted_values),
                                     cmocka_unit_test(allocation_is_aligned_accounted_and_can_be_made_to_fail)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
