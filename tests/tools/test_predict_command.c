/* fmm-predict as a process: the report's members, other machines, agreement with fmm-run, the picture, errors with their exit codes. */
#include "command.h"
#include <jansson.h>
#include <math.h>

static const char *run_path; /* fmm-run */

static json_t *parse(void) {
  json_error_t error;
  json_t *r = json_loads(out, 0, &error);
  if (!r || !json_is_object(r)) fail_msg("not one JSON object: line %d: %s", error.line, error.text);
  return r;
}

static json_t *predict(const char *arguments, const char *machine) {
  char line[1024];
  snprintf(line, sizeof line, "%s --machine '%s/%s.json' --json", arguments, FMM_TEST_MACHINES, machine);
  run_well(line);
  return parse();
}

static const char *text_at(json_t *r, const char *key) {
  const char *s = json_string_value(json_object_get(r, key));
  assert_non_null(s);
  return s;
}

/* Of this phase on any device: the report names one for both. */
static const char *precision_of(json_t *report, const char *phase) {
  json_t *item;
  size_t i;
  json_array_foreach(json_object_get(report, "phases"), i, item)
    if (!strcmp(text_at(item, "name"), phase)) return text_at(item, "precision");
  fail_msg("the report has no phase %s", phase);
  return NULL;
}

static void the_report_has_every_member_of_the_contract(void **state) {
  static const char *const members[] = {"schema_version", "case", "machine", "phases", "schedules", "chosen", "order", "leaf_size", "memory_bytes"};
  json_t *r = predict("--generate uniform --points 1e6 --order 4", "xeon16-h200"), *item;
  size_t i;
  for (i = 0; i < sizeof members / sizeof *members; i++) assert_non_null(json_object_get(r, members[i]));
  assert_int_equal(json_array_size(json_object_get(r, "phases")), FMM_N_PHASES * FMM_N_DEVICES);
  json_array_foreach(json_object_get(r, "phases"), i, item) {
    assert_true(json_number_value(json_object_get(item, "seconds")) >= json_number_value(json_object_get(item, "limit_s")));
    assert_int_equal(json_array_size(json_object_get(item, "interval")), 2);
    assert_string_equal(text_at(item, "precision"), strcmp(text_at(item, "name"), "vlist") ? precision_of(r, "ulist") : "single"); /* 6 digits */
  }
  double best = INFINITY, chosen = -1;
  json_array_foreach(json_object_get(r, "schedules"), i, item) {
    double s = json_number_value(json_object_get(item, "makespan_s"));
    assert_true(json_is_true(json_object_get(item, "feasible")) && json_is_null(json_object_get(item, "reason")));
    assert_int_equal(json_object_size(json_object_get(item, "assignment")), FMM_N_PHASES);
    best = fmin(best, s);
    if (!strcmp(text_at(item, "name"), text_at(r, "chosen"))) chosen = s;
  }
  assert_true(chosen == best && best > 0);
  assert_true(json_integer_value(json_object_get(json_object_get(r, "memory_bytes"), "host")) > 1000000 * 32);
  json_decref(r);
}

static void the_choice_depends_on_the_machine(void **state) {
  json_t *whole = predict("--generate uniform --points 4194304 --order 6", "xeon16-h200");
  json_t *part = predict("--generate uniform --points 4194304 --order 6", "xeon16-h200-8sm");
  json_t *none = predict("--generate uniform --points 4194304 --order 6", "cpu-2-cores"), *item;
  size_t i;
  assert_string_equal(text_at(whole, "chosen"), "gpu");
  assert_memory_equal(text_at(part, "chosen"), "hybrid", 6);
  assert_string_equal(text_at(none, "chosen"), "cpu");
  assert_string_equal(precision_of(whole, "ulist"), "mixed"); /* in both directions at once, as in double */
  assert_string_equal(precision_of(none, "ulist"), "mixed");
  json_array_foreach(json_object_get(none, "schedules"), i, item) {
    if (!strcmp(text_at(item, "name"), "cpu")) continue;
    assert_true(json_is_false(json_object_get(item, "feasible")) && json_is_null(json_object_get(item, "makespan_s")));
    assert_non_null(strstr(text_at(item, "reason"), "no usable GPU"));
  }
  json_array_foreach(json_object_get(none, "phases"), i, item)
    assert_true(json_is_null(json_object_get(item, "seconds")) == !strcmp(text_at(item, "device"), "gpu"));
  json_decref(whole), json_decref(part), json_decref(none);
}

static void no_hardware_is_touched_for_another_machine(void **state) {
  run_after("FMM_PROFILE=/nonexistent.json", "--generate sphere --points 1000 --order 4 --machine '" FMM_TEST_MACHINES "/xeon16-h200.json' --threads 16");
  assert_int_equal(exit_code, 0); /* 16 threads of the other machine, whatever this one has */
  assert_non_null(strstr(out, "NVIDIA H200"));
}

/* What is predicted and what runs are the same choice. */
static void check_agreement(const char *arguments) {
  static const char *const same[] = {"order", "leaf_size", "root_scale"};
  const char *predict_path = command_path;
  run_well(arguments);
  json_t *p = parse();
  command_path = run_path;
  run_well(arguments);
  command_path = predict_path;
  json_t *r = parse(), *plan = json_object_get(r, "plan");
  for (size_t i = 0; i < sizeof same / sizeof *same; i++)
    if (!json_equal(json_object_get(p, same[i]), json_object_get(plan, same[i]))) fail_msg("%s: %s is not what was predicted", arguments, same[i]);
  assert_true(json_equal(json_object_get(p, "chosen"), json_object_get(plan, "schedule")));
  assert_true(json_integer_value(json_object_get(json_object_get(p, "case"), "points")) == json_integer_value(json_object_get(json_object_get(r, "case"), "points")));
  json_decref(p), json_decref(r);
}

/* Same case and profile, same choices: what is asked before running is what then runs. */
static void a_case_is_predicted_as_it_is_run(void **state) {
  char points[20000] = "x,y,z,q\n";
  for (int i = 0, n = 8; i < 300; i++) n += snprintf(points + n, sizeof points - (size_t)n, "%g,%g,%g,%g\n", sin(i), cos(3.7 * i), sin(5.1 * i + 1), cos(i));
  write_text("points.csv", points);
  check_agreement("points.csv --digits 4 --threads 1 --json");
  check_agreement("--generate plummer --points 40000 --digits 3 --threads 1 --executions 1 --json");
  check_agreement("--generate plummer --points 40000 --digits 3 --threads 1 --json");
}

static void a_file_without_densities_will_do(void **state) {
  write_text("bare.xyz", "0 0 0\n1 0 0\n0 1 0\n");
  run_well("bare.xyz --json");
  json_decref(parse());
}

static void the_text_report_names_phases_schedules_and_memory(void **state) {
  run_well("--generate plummer --points 50000 --order 4");
  for (int p = 0; p < FMM_N_PHASES; p++) assert_non_null(strstr(out, ((const char *[]){"up ", "ulist ", "vlist ", "wlist ", "xlist ", "down "})[p]));
  assert_non_null(strstr(out, "<- chosen"));
  assert_non_null(strstr(out, "memory"));
  run_well("--generate uniform --points 10"); /* little, but not nothing */
  assert_non_null(strstr(out, "memory"));
  assert_null(strstr(strstr(out, "memory"), " 0.0 "));
  run_well("--generate plummer --points 50000 --order 4 -q");
  assert_string_equal(out, "");
}

static void a_case_larger_than_the_memory_is_said_to_be(void **state) {
  run_well("--generate uniform --points 1e12 --machine '" FMM_TEST_MACHINES "/xeon16-h200.json'");
  assert_non_null(strstr(out, "of the plan's own: more than the machine's"));
  run_well("--generate uniform --points 1e6 --machine '" FMM_TEST_MACHINES "/xeon16-h200.json'");
  assert_null(strstr(out, "more than"));
  json_t *r = predict("--generate uniform --points 1e12", "xeon16-h200"), *memory = json_object_get(r, "memory_bytes");
  assert_true(json_number_value(json_object_get(memory, "host")) > json_number_value(json_object_get(memory, "host_has")));
  assert_true(json_number_value(json_object_get(memory, "host_has")) > 1e9);
  json_decref(r);
}

static int count(const char *text, const char *word) {
  int n = 0;
  for (; (text = strstr(text, word)); text += strlen(word)) n++;
  return n;
}

static void the_picture_is_one_whole_svg(void **state) {
  run_well("--generate uniform --points 1e6 --order 4 -q --plot p.svg --machine '" FMM_TEST_MACHINES "/xeon16-h200.json'");
  char *svg = read_text("p.svg");
  assert_memory_equal(svg, "<svg ", 5);
  assert_string_equal(svg + strlen(svg) - 7, "</svg>\n");
  assert_int_equal(count(svg, "<text "), count(svg, "</text>"));
  assert_true(count(svg, "<rect ") > FMM_N_PHASES * FMM_N_DEVICES);
  assert_null(strstr(svg, "nan"));
  assert_null(strstr(svg, "inf"));
  FMM_FREE(&svg);
  assert_refused(6, "", "--generate uniform --points 100 --plot /nonexistent/p.svg", "/nonexistent/p.svg", "");
}

static void more_threads_than_the_other_machine_has_are_refused_unless_allowed(void **state) {
  assert_refused(2, "", "--generate uniform --points 1e6 --order 4 --threads 64 --machine '" FMM_TEST_MACHINES "/xeon16-h200.json'", "--threads 64", "16 cores");
  run_well("--generate uniform --points 1e6 --order 4 --threads 64 --oversubscribe --machine '" FMM_TEST_MACHINES "/xeon16-h200.json' -q");
}

static void impossible_requests_are_refused(void **state) {
  assert_refused(2, "", "", "nothing to evaluate", "--generate");
  assert_refused(2, "", "--generate uniform --points 10 --machine a.json --profile b.json", "--machine", "--profile");
  assert_refused(4, "", "--generate uniform --points 10 --machine absent.json", "absent.json", "fmm-calibrate");
  assert_refused(5, "", "--generate uniform --points 10 --schedule gpu --order 4 --machine '" FMM_TEST_MACHINES "/cpu-2-cores.json'", "gpu", "no usable GPU");
  assert_refused(2, "", "--generate uniform --points 10 --targets t.npy", "--targets", "t.npy");
  assert_refused(3, "", "absent.npy", "absent.npy", "");
  assert_refused(2, "", "--generate uniform --points 10 --plot picture.png", "picture.png", ".svg");
  write_zeros("wide.csv", 200000);
  assert_refused(3, "timeout 10", "--generate uniform --points 1 --densities wide.csv", "wide.csv: 200000 density columns", "at most 1024");
  write_text("p.csv", "0,0,0\n");
  assert_int_equal(symlink("p.csv", "linked.svg"), 0);
  assert_refused(2, "", "p.csv --plot linked.svg", "--plot 'linked.svg'", "'p.csv'");
  write_text("broken.json", "{\"schema\": 1");
  assert_refused(4, "", "--generate uniform --points 10 --machine broken.json", "broken.json", "damaged");
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_report_has_every_member_of_the_contract),
                                     cmocka_unit_test(the_choice_depends_on_the_machine),
                                     cmocka_unit_test(no_hardware_is_touched_for_another_machine),
                                     cmocka_unit_test(a_case_is_predicted_as_it_is_run),
                                     cmocka_unit_test(a_file_without_densities_will_do),
                                     cmocka_unit_test(the_text_report_names_phases_schedules_and_memory),
                                     cmocka_unit_test(a_case_larger_than_the_memory_is_said_to_be),
                                     cmocka_unit_test(the_picture_is_one_whole_svg),
                                     cmocka_unit_test(more_threads_than_the_other_machine_has_are_refused_unless_allowed),
                                     cmocka_unit_test(impossible_requests_are_refused)};
  if (argc < 3) return 2;
  command_path = realpath(argv[1], NULL), run_path = realpath(argv[2], NULL);
  if (!command_path || !run_path) return 2;
  return cmocka_run_group_tests(tests, enter_directory, leave_directory);
}
