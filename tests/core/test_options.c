/* Options: defaults, structs of other sizes, refusals that name the value; the trace's text is one JSON object with a span an event. */
#include "test.h"

#include <math.h>

#include "runtime/memory.h"
#include "runtime/options.h"
#include "runtime/trace.h"

static void defaults_pass_their_own_check(void **state) {
  fmm_options o;
  assert_ok(fmm_options_init(&o));
  assert_ok(fmm_options_check(&o));
  assert_true(isnan(o.scale) && o.tolerance == 1e-6);
}

static void a_smaller_struct_of_an_older_caller_keeps_later_defaults(void **state) {
  fmm_options o, copy;
  assert_ok(fmm_options_init(&o));
  o.struct_size = offsetof(fmm_options, profile_path);
  o.profile_path = "not part of that struct";
  assert_ok(fmm_options_copy(&o, &copy));
  assert_null(copy.profile_path);
  o.struct_size = 3;
  assert_int_equal(fmm_options_copy(&o, &copy), FMM_ERR_ARGUMENT);
}

static void refusals_name_the_option_and_the_value(void **state) {
  fmm_options o;
  assert_ok(fmm_options_init(&o));
  o.order = 21;
  assert_int_equal(fmm_options_check(&o), FMM_ERR_ARGUMENT);
  assert_string_equal(fmm_last_error(), "option order is 21; it must be 2 .. 20 (0: the plan chooses)");
  assert_ok(fmm_options_init(&o));
  o.executions = -1;
  assert_int_equal(fmm_options_check(&o), FMM_ERR_ARGUMENT);
  assert_string_equal(fmm_last_error(), "option executions is -1; it must be 0 .. 1e12 (0: unknown)");
  o.executions = NAN;
  assert_int_equal(fmm_options_check(&o), FMM_ERR_ARGUMENT);
  assert_ok(fmm_options_init(&o));
  o.params[0] = (fmm_param){"lambda", 1}, o.n_params = 1;
  assert_int_equal(fmm_options_check(&o), FMM_ERR_ARGUMENT);
  assert_non_null(strstr(fmm_last_error(), "laplace takes no parameters"));
}

static void trace_text_has_a_track_name_and_every_span(void **state) {
  fmm_trace trace = {0};
  char *text = NULL;
  size_t length;
  fmm_trace_add(&trace, "cpu", "up", 1.0, 1.5);
  fmm_trace_add(&trace, "gpu", "ulist", 1.25, 2.0);
  assert_ok(fmm_trace_json(&trace, &text, &length));
  assert_int_equal(strlen(text), length);
  assert_non_null(strstr(text, "\"name\": \"up\", \"ts\": 0.000, \"dur\": 500000.000"));
  assert_non_null(strstr(text, "\"tid\": 2, \"name\": \"ulist\", \"ts\": 250000.000, \"dur\": 750000.000"));
  assert_non_null(strstr(text, "\"args\": {\"name\": \"gpu\"}"));
  FMM_FREE(&text);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(defaults_pass_their_own_check), cmocka_unit_test(a_smaller_struct_of_an_older_caller_keeps_later_defaults),
                                     cmocka_unit_test(refusals_name_the_option_and_the_value), cmocka_unit_test(trace_text_has_a_track_name_and_every_span)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
