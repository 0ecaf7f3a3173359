/* fmm-run as a process: the report, results in files, every kind of error with its exit code, and that nothing is half-written or lost. */
#include "command.h"
#include <dirent.h>
#include <math.h>
#include "runtime/gpu.h"
#include "runtime/io/input.h"
#include "run_report.h"

static const char *driver; /* folder of a driver library that is too old, from argv */

static void the_report_has_every_member_of_the_contract(void **state) {
  static const char *const members[] = {"schema_version", "case", "plan", "setup_s", "predicted_s", "evaluation_s", "phases", "error", "build", "memory_bytes", "profile"};
  static const char *const inner[][13] = {{"case", "points", "targets", "distribution", "densities", "kernel", "parameters", "scale", "targets_file", "digits", "tolerance", "gradient"},
                                          {"build", "version", "revision", "simd"},
                                          {"plan", "plan_id", "order", "leaf_size", "root_scale", "precision", "schedule", "threads", "gpu_sms", "leaves", "levels"},
                                          {"evaluation_s", "median", "min", "max", "runs"},
                                          {"error", "relative_l2", "gradient_relative_l2", "max_relative", "samples"},
                                          {"memory_bytes", "host_peak", "device_peak"},
                                          {"profile", "path", "effort", "age_s"}};
  run_well("--generate uniform --points 3000 --gradient --digits 4 --repeat 3 --verify 200 --threads 1 --json");
  json_t *r = report();
  for (size_t i = 0; i < sizeof members / sizeof *members; i++) assert_non_null(json_object_get(r, members[i]));
  for (size_t i = 0; i < sizeof inner / sizeof *inner; i++)
    for (int k = 1; inner[i][k]; k++)
      if (!json_object_get(json_object_get(r, inner[i][0]), inner[i][k])) fail_msg("no %s.%s", inner[i][0], inner[i][k]);
  json_t *phases = json_object_get(r, "phases");
  assert_int_equal(json_array_size(phases), FMM_N_PHASES);
  for (size_t i = 0; i < FMM_N_PHASES; i++) {
    static const char *const keys[] = {"name", "device", "fraction", "predicted_s", "measured_s", "limit_s"};
    for (size_t k = 0; k < 6; k++) assert_non_null(json_object_get(json_array_get(phases, i), keys[k]));
  }
  assert_true(number_at(r, "case", "points") == 3000 && number_at(r, "evaluation_s", "runs") == 3 && number_at(r, "error", "samples") == 200);
  assert_true(number_at(r, "evaluation_s", "min") <= number_at(r, "evaluation_s", "median"));
  assert_true(number_at(r, "error", "relative_l2") <= 1e-4 && number_at(r, "error", "gradient_relative_l2") <= 1e-4); /* the tolerance */
  json_decref(r);
}

static void the_report_tells_what_repeats_the_case(void **state) {
  run_well("--generate uniform --points 500 --kernel yukawa --param lambda=0.25 --scale -3 --threads 1 --json");
  json_t *r = report(), *c = json_object_get(r, "case");
  assert_true(json_number_value(json_object_get(json_object_get(c, "parameters"), "lambda")) == 0.25 && json_number_value(json_object_get(c, "scale")) == -3);
  assert_true(json_is_null(json_object_get(c, "targets_file")));
  assert_string_equal(json_string_value(json_object_get(json_object_get(r, "build"), "version")), fmm_version());
  json_decref(r);
  run_well("--generate uniform --points 500 --threads 1 --json");
  r = report(), c = json_object_get(r, "case");
  assert_true(json_object_size(json_object_get(c, "parameters")) == 0 && fabs(json_number_value(json_object_get(c, "scale")) * 4 * acos(-1) - 1) < 1e-14); /* Laplace's own */
  json_decref(r);
}

static void clusters_below_the_finest_cell_have_a_line_and_an_entry(void **state) {
  FILE *file = fopen("clustered.csv", "wb");
  assert_non_null(file);
  fputs("x,y,z\n", file);
  for (int i = 0; i < 20000; i++) {
    double part = i < 1000 ? 1 : 1e-9; /* nearly all far closer together than 2^-21 of the extent */
    fprintf(file, "%.17g,%.17g,%.17g\n", part * fmod(i * 0.7548776662466927, 1), part * fmod(i * 0.5698402909980532, 1), part * fmod(i * 0.4501942, 1));
  }
  assert_int_equal(fclose(file), 0);
  run_well("clustered.csv --densities unit --digits 3 --json");
  json_t *r = report(), *entry = json_array_get(json_object_get(r, "phases"), FMM_N_PHASES);
  assert_string_equal(json_string_value(json_object_get(entry, "name")), "clusters");
  double clusters = json_number_value(json_object_get(entry, "predicted_s"));
  assert_true(clusters > 0 && clusters < number_at(r, "predicted_s", NULL));
  assert_true(json_number_value(json_object_get(entry, "measured_s")) > 0);
  json_decref(r);
  run_well("clustered.csv --densities unit --digits 3");
  assert_non_null(strstr(out, "\nclusters cpu"));
  assert_int_equal(remove("clustered.csv"), 0);
}

static void json_stays_one_object_whatever_else_is_asked(void **state) {
  run_well("--generate sphere --points 500 --json --explain -v");
  json_decref(report());
  assert_true(strlen(err) > 0); /* the explanation */
}

static void quiet_says_nothing_and_the_text_report_names_all_phases(void **state) {
  run_well("--generate sphere --points 500 -q");
  assert_string_equal(out, "");
  assert_string_equal(err, "");
  run_well("--generate sphere --points 500 --verify 100 --explain");
  static const char *const words[] = {"up", "ulist", "vlist", "wlist", "xlist", "down", "predicted", "measured", "limit", "relative L2", "profile"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (!strstr(out, words[i])) fail_msg("no '%s' in %s", words[i], out);
}

/* An order far too low: its author is told to leave it out, not that the plan erred. */
static void a_missed_tolerance_is_put_down_to_what_was_asked(void **state) {
  run_well("--generate uniform --points 5000 --digits 9 --order 3 --leaf-size 50 --verify 100");
  assert_non_null(strstr(err, "above the tolerance"));
  assert_non_null(strstr(err, "leave out --order"));
}

/* 14 digits of a gradient are more than the method keeps: said before, and not reported as a fault afterwards, nor put down to the densities: the
 * potential, which is within the tolerance, might as well cancel a little. */
static void a_tolerance_that_no_order_keeps_is_no_fault_of_the_plan(void **state) {
  static const char *const densities[] = {"unit", "signed"};
  char line[256];
  for (int i = 0; i < 2; i++) {
    snprintf(line, sizeof line, "--generate uniform --points 12000 --digits 14 --gradient --leaf-size 60 --verify 300 --json --no-check --densities %s", densities[i]);
    run_well(line);
    json_t *r = report();
    if (!(number_at(r, "error", "relative_l2") <= 1e-14 && number_at(r, "error", "gradient_relative_l2") > 1e-14)) skip();
    json_decref(r);
    assert_non_null(strstr(err, "no order is expected"));
    assert_non_null(strstr(err, "the error of the gradient is above"));
    assert_null(strstr(err, "potential"));
    assert_null(strstr(err, "report"));
    assert_null(strstr(err, "cancel"));
  }
}

static void help_and_version_end_well(void **state) {
  run_well("--help");
  assert_non_null(strstr(out, "--leaf-size"));
  assert_string_equal(err, "");
  run_well("--version");
  assert_non_null(strstr(out, fmm_version()));
}

/* Two charges at distance 2: potentials and gradients by hand. */
static void results_are_rows_of_potential_and_gradient_in_input_order(void **state) {
  fmm_input in;
  write_text("two.csv", "0,0,0,3\n2,0,0,-5\n");
  run_well("two.csv --scale 1 --gradient --digits 12 --output two.npy -q");
  assert_ok(fmm_input_read_densities("two.npy", 2, &in));
  const double expected[] = {-2.5, -1.25, 0, 0, 1.5, -0.75, 0, 0};
  assert_int_equal(in.k, 4);
  for (int i = 0; i < 8; i++)
    if (!(fabs(in.densities[i] - expected[i]) <= 3e-12)) fail_msg("value %d is %.17g, not %g", i, in.densities[i], expected[i]); /* the tolerance times the largest */
  fmm_input_free(&in);
  write_text("at.xyz", "1\n\nX 0 0 4\n");
  run_well("two.csv --scale 1 --targets at.xyz --digits 12 --output two.csv.out.csv -q");
  char *text = read_text("two.csv.out.csv");
  assert_true(!strncmp(text, "potential\n", 10));
  assert_true(fabs(strtod(text + 10, NULL) - (3 / 4. - 5 / sqrt(20))) < 1e-12);
  FMM_FREE(&text);
}

static void columns_kernels_and_parameters_reach_the_library(void **state) {
  fmm_input in;
  write_text("p.csv", "0,0,0\n1,0,0\n");
  write_text("d.csv", "1,10\n2,20\n");
  run_well("p.csv --densities d.csv --scale 1 --digits 12 --output o.csv -q");
  assert_ok(fmm_input_read_densities("o.csv", 2, &in));
  assert_true(in.k == 2 && fabs(in.densities[0] - 2) < 2e-12 && fabs(in.densities[1] - 20) < 2e-11 && fabs(in.densities[3] - 10) < 2e-11);
  fmm_input_free(&in);
  run_well("p.csv --densities ones --kernel yukawa --param lambda=2 --scale 1 --digits 12 --output o.csv -q");
  assert_ok(fmm_input_read_densities("o.csv", 2, &in));
  assert_true(fabs(in.densities[0] - exp(-2)) < 1e-12);
  fmm_input_free(&in);
  run_well("p.csv --densities unit --kernel stokes --output o.vtk -q");
  assert_refused(3, "", "p.csv --densities d.csv --kernel stokes", "d.csv", "takes 3");
  assert_refused(2, "", "p.csv --densities ones --kernel yukawa --param mu=2", "mu", "lambda");
  assert_memory_equal(err, "fmm-run: error", 14); /* before any remark, and before any machine is measured */
  assert_refused(2, "", "p.csv --densities ones --kernel yukawa --param lambda=nan", "lambda: 'nan'", "--param lambda=1.5");
  assert_refused(2, "", "p.csv --densities ones --kernel yukawa --param lambda=-1", "lambda = -1", "0 ..");
  assert_refused(2, "", "p.csv --densities ones --kernel laplac", "laplac", "laplace");
}

static void usage_errors_end_with_2(void **state) {
  write_text("p.csv", "0,0,0\n1,0,0\n");
  assert_refused(2, "", "", "nothing to evaluate", "--generate");
  assert_refused(2, "", "p.csv --leafsize 3", "--leafsize", "--leaf-size");
  assert_refused(2, "", "p.csv --digits abc", "abc", "not a number");
  assert_refused(2, "", "p.csv --order 1", "--order", "2 ..");
  assert_refused(2, "", "p.csv --threads 0", "--threads", "0");
  assert_refused(2, "", "p.csv --leaf-size -3", "-3", "1 ..");
  assert_refused(2, "", "p.csv --tolerance nan", "nan", "0.5");
  assert_refused(2, "", "p.csv", "p.csv", "--densities");
  assert_refused(2, "", "p.csv --densities ones --threads 4000", "4000", "core");
  assert_refused(2, "", "p.csv --densities ones --output o.txt", "o.txt", ".npy, .csv, .vtk");
  run_well("p.csv --densities ones --threads 3 --oversubscribe -q");
}

static void input_errors_end_with_3(void **state) {
  write_text("nan.csv", "0,0,0,1\n1,nan,0,1\n");
  write_text("cut.npy", "\x93NUMPY\x01");
  write_text("p.dat", "0 0 0 1\n");
  write_text("p.csv", "0,0,0\n1,0,0\n");
  write_text("d.csv", "1\n");
  assert_refused(3, "", "nan.csv", "nan.csv:2:", "y is nan");
  assert_refused(3, "", "cut.npy", "cut.npy", "byte");
  assert_refused(3, "", "p.dat", "'.dat'", ".pqr, .npy, .csv, .xyz");
  assert_refused(3, "", "missing.csv", "missing.csv", "No such file");
  assert_refused(3, "", "p.csv --densities d.csv", "d.csv", "2 points");
  assert_refused(3, "", "p.csv --densities ones --targets nan.csv", "nan.csv:2:", "y is nan");
  assert_refused(3, "", ". ", "suffix", ".pqr");
}

/* 2,000,000 columns within seconds: nothing is made of them before they are counted. */
static void too_many_density_columns_are_refused_at_once(void **state) {
  write_zeros("most.csv", 3 + 1024);
  run_well("most.csv -q");
  write_zeros("wide.csv", 3 + 1025);
  assert_refused(3, "", "wide.csv", "wide.csv: 1025 density columns", "at most 1024");
  run_well("wide.csv --densities unit -q");
  write_zeros("p.csv", 3);
  write_zeros("wide.csv", 3 * 1025);
  assert_refused(3, "", "p.csv --densities wide.csv --kernel stokes", "wide.csv: 3075 density columns", "at most 3072");
  write_zeros("wide.csv", 2000000);
  assert_refused(3, "timeout 20", "wide.csv", "wide.csv: 1999997 density columns", "at most 1024");
}

static void profile_errors_end_with_4(void **state) {
  write_text("damaged.json", "{\"schema\": 1, ");
  assert_refused(4, "", "--generate uniform --points 10 --profile damaged.json", "damaged.json", "");
  assert_refused(4, "", "--generate uniform --points 10 --profile missing.json", "missing.json", "fmm-calibrate");
}

static void a_profile_of_another_machine_ends_with_4(void **state) {
  fmm_machine other;
  fmm_machine_nominal(64, &other);
  strcpy(other.fingerprint, "0123456789abcdef");
  strcpy(other.build, "0.0.1 elsewhere");
  assert_ok(fmm_profile_save("foreign.json", &other));
  assert_refused(4, "", "--generate uniform --points 10 --profile foreign.json", "foreign.json", "");
}

static void a_gpu_schedule_without_a_gpu_ends_with_5(void **state) {
  fmm_gpu_info gpu = {0};
  fmm_gpu_query(0, &gpu);
  if (gpu.present) skip();
  assert_refused(5, "", "--generate uniform --points 1000 --schedule gpu", "gpu", "");
  run_well("--generate uniform --points 1000 --json");
  assert_true(strlen(err) > 0 && strchr(err, '\n') == err + strlen(err) - 1); /* one line says what is missing */
}

static int files_beginning_with(const char *begin) {
  int n = 0;
  DIR *d = opendir(".");
  for (struct dirent *e; (e = readdir(d));) n += !strncmp(e->d_name, begin, strlen(begin));
  closedir(d);
  return n;
}

static void assert_kept(const char *name, const char *content) {
  char *text = read_text(name);
  assert_string_equal(text, content);
  FMM_FREE(&text);
  assert_int_equal(files_beginning_with(name), 1); /* no temporary beside it */
}

/* Whatever the reason: no driver (as it is here, mostly), none visible, one too old. auto runs and says why in one line; a named schedule is refused. */
static void without_a_usable_gpu_auto_says_why_and_runs(void **state) {
  char old_driver[512];
  snprintf(old_driver, sizeof old_driver, "LD_LIBRARY_PATH='%s'", driver);
  const char *const before[] = {"CUDA_VISIBLE_DEVICES=", "CUDA_VISIBLE_DEVICES=-1", old_driver};
  for (int i = 0; i < 3; i++) {
    run_after(before[i], "--generate uniform --points 500 --digits 3");
    if (exit_code) fail_msg("%s: exit code %d, %s", before[i], exit_code, err);
    char *line = strstr(err, "no GPU is used: ");
    if (!line || strstr(line + 1, "no GPU is used: ")) fail_msg("%s: not one line says why no GPU is used: %s", before[i], err);
    assert_refused(5, before[i], "--generate uniform --points 500 --schedule gpu", "GPU", "cpu");
  }
}

static void an_existing_output_survives_every_failure(void **state) {
  write_text("nan.csv", "0,0,0,1\n1,nan,0,1\n");
  write_text("old.npy", "old");
  assert_refused(3, "", "nan.csv --output old.npy", "nan.csv:2:", "");
  assert_kept("old.npy", "old");
  /* a file size limit is a full disk that tests can have: the temporary cannot be written */
  assert_refused(6, "ulimit -f 8;", "--generate uniform --points 20000 --digits 2 --output old.npy", "old.npy", "too large");
  assert_kept("old.npy", "old");
  assert_refused(6, "", "--generate uniform --points 10 --output missing/old.npy", "missing/old.npy", "directory");
}

/* By any name: the same path, another spelling, a link, one that is still to be made. */
static void files_that_are_read_or_written_are_not_written_over(void **state) {
  const char *const points = "0,0,0\n1,0,0\n";
  write_text("same.csv", points);
  write_text("d.csv", "1\n2\n");
  assert_int_equal(symlink("same.csv", "linked.csv"), 0);
  assert_refused(2, "", "same.csv --densities ones --output same.csv", "--output 'same.csv'", "another");
  assert_refused(2, "", "same.csv --densities ones --output ./same.csv", "--output './same.csv'", "'same.csv'");
  assert_refused(2, "", "same.csv --densities ones --output linked.csv", "'linked.csv'", "'same.csv'");
  assert_refused(2, "", "same.csv --densities d.csv --output d.csv", "--output", "'d.csv'");
  assert_refused(2, "", "same.csv --densities ones --targets d.csv --trace d.csv", "--trace", "'d.csv'");
  assert_refused(2, "", "same.csv --densities ones --profile profile.json --trace profile.json", "--trace", "'profile.json'");
  assert_refused(2, "", "same.csv --densities ones --output new.csv --trace ./new.csv", "--output 'new.csv'", "--trace './new.csv'");
  assert_int_equal(symlink("new.json", "leads.csv"), 0); /* to what is not there yet */
  assert_refused(6, "", "same.csv --densities ones --output leads.csv --trace new.json", "leads.csv", "not there");
  unlink("leads.csv");
  assert_refused(2, "FMM_PROFILE=profile.json", "same.csv --densities ones --trace profile.json", "--trace", "profile.json");
  assert_int_equal(files_beginning_with("new.csv"), 0);
  assert_kept("same.csv", points);
  assert_kept("d.csv", "1\n2\n");
  write_text("ones", "");
  run_well("same.csv --densities ones --trace ones -q"); /* the name of a density is no file */
}

/* BLAS waits for address space for ever, in calls and at the end of the process: it is asked for beforehand, and not waited for. 1 and 127: the OpenMP
 * runtime or the loader found none. Times are generous, for a busy machine. */
static void with_little_address_space_it_ends_and_says_so(void **state) {
  char before[64];
#ifdef __SANITIZE_ADDRESS__
  skip(); /* needs terabytes of it */
#endif
  for (int mib = 150; mib <= 750; mib += 150) {
    snprintf(before, sizeof before, "ulimit -v %d; timeout 100", 1024 * mib);
    run_after(before, "--generate uniform --points 20000 --threads 1 -q");
    if (exit_code != 0 && exit_code != 1 && exit_code != 6 && exit_code != 127) fail_msg("%d MiB: exit code %d, %s", mib, exit_code, err);
    if (exit_code == 6) assert_non_null(strstr(err, "no memory"));
  }
}

/* The same of data: what a process may write, without what it only reserves. */
static void with_little_data_it_ends_and_says_so(void **state) {
  char before[64];
  int refused = 0;
#ifdef __SANITIZE_ADDRESS__
  skip();
#endif
  for (int mib = 60; mib <= 660; mib += 120) {
    snprintf(before, sizeof before, "ulimit -d %d; timeout 100", 1024 * mib);
    run_after(before, "--generate uniform --points 20000 --threads 1 -q");
    if (exit_code != 0 && exit_code != 1 && exit_code != 6 && exit_code != 127) fail_msg("%d MiB: exit code %d, %s", mib, exit_code, err);
    refused += exit_code == 6;
    if (exit_code == 6) assert_non_null(strstr(err, "no memory"));
  }
  assert_true(refused > 0);
}

static void a_full_standard_output_ends_with_6(void **state) {
  char line[512];
  snprintf(line, sizeof line, "'%s' --generate uniform --points 10 --json >/dev/full 2>.err", command_path);
  assert_int_equal(WEXITSTATUS(system(line)), 6);
  char *text = read_text(".err");
  assert_non_null(strstr(text, "standard output"));
  FMM_FREE(&text);
}

static void signals_end_with_130_and_143_and_leave_nothing(void **state) {
  write_text("old.npy", "old");
  static const struct { const char *before; int code; } ends[] = {{"timeout --preserve-status -s INT 1", 130}, {"timeout --preserve-status -s TERM 1", 143}, {"timeout --preserve-status -s HUP 1", 129}};
  signal(SIGHUP, SIG_DFL); /* the command leaves it ignored where it was */
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
    run_after(ends[i].before, "--generate uniform --points 20000 --repeat 1000000 --output old.npy");
    assert_int_equal(exit_code, ends[i].code);
    assert_string_equal(out, "");
    assert_kept("old.npy", "old");
  }
}

static void bits_and_plan_id_are_the_same_for_any_number_of_threads(void **state) {
  char *one, *two;
  run_well("--generate ellipsoid --points 5000 --threads 1 --gradient --output one.csv --json");
  json_t *a = report();
  run_well("--generate ellipsoid --points 5000 --threads 2 --oversubscribe --gradient --output two.csv --json");
  json_t *b = report();
  one = read_text("one.csv"), two = read_text("two.csv");
  assert_string_equal(one, two);
  assert_string_equal(json_string_value(json_object_get(json_object_get(a, "plan"), "plan_id")),
                      json_string_value(json_object_get(json_object_get(b, "plan"), "plan_id")));
  FMM_FREE(&one);
  FMM_FREE(&two);
  json_decref(a), json_decref(b);
}

static void the_trace_is_json_with_events(void **state) {
  run_well("--generate uniform --points 2000 --trace t.json -q");
  json_t *t = json_load_file("t.json", 0, NULL);
  assert_non_null(t);
  json_t *events = json_is_array(t) ? t : json_object_get(t, "traceEvents");
  assert_true(json_array_size(events) > 0);
  json_decref(t);
}

static void no_point_and_no_target_are_fine(void **state) {
  run_well("--generate uniform --points 0 --json");
  json_decref(report());
  write_text("none.csv", "x,y,z\n");
  run_well("--generate uniform --points 100 --targets none.csv --output none.npy -q");
  fmm_input in;
  assert_ok(fmm_input_read_densities("none.npy", 0, &in));
  fmm_input_free(&in);
}

static const char *data; /* folder of molecules, from argv */

static void molecules_are_within_the_tolerance_at_all_targets(void **state) {
  static const char *const names[] = {"1a63.pqr", "mache.pqr", "actin-dimer.pqr", "achbp.pqr"};
  char line[512];
  if (access(data, R_OK)) skip(); /* no such data on this machine */
  for (int i = 0; i < 4; i++) {
    snprintf(line, sizeof line, "%s/%s --digits 6 --verify 100000 --json --no-check", data, names[i]);
    run_well(line);
    json_t *r = report();
    assert_true(number_at(r, "error", "samples") == number_at(r, "case", "points"));
    if (!(number_at(r, "error", "relative_l2") <= 1e-6)) fail_msg("%s: error %g", names[i], number_at(r, "error", "relative_l2")); /* the tolerance */
    json_decref(r);
  }
}

int main(int argc, char **argv) {
  if (argc != 4) return fprintf(stderr, "usage: test_run FMM-RUN DATA-FOLDER OLD-DRIVER-FOLDER\n"), 1;
  command_path = realpath(argv[1], NULL), data = argv[2], driver = argv[3];
  if (!command_path) return perror(argv[1]), 1;
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_report_has_every_member_of_the_contract), cmocka_unit_test(the_report_tells_what_repeats_the_case),
                                     cmocka_unit_test(clusters_below_the_finest_cell_have_a_line_and_an_entry),
                                     cmocka_unit_test(json_stays_one_object_whatever_else_is_asked),
                                     cmocka_unit_test(quiet_says_nothing_and_the_text_report_names_all_phases),
                                     cmocka_unit_test(a_missed_tolerance_is_put_down_to_what_was_asked),
                                     cmocka_unit_test(a_tolerance_that_no_order_keeps_is_no_fault_of_the_plan),
                                     cmocka_unit_test(help_and_version_end_well),
                                     cmocka_unit_test(results_are_rows_of_potential_and_gradient_in_input_order),
                                     cmocka_unit_test(columns_kernels_and_parameters_reach_the_library),
                                     cmocka_unit_test(usage_errors_end_with_2),
                                     cmocka_unit_test(input_errors_end_with_3),
                                     cmocka_unit_test(too_many_density_columns_are_refused_at_once),
                                     cmocka_unit_test(profile_errors_end_with_4),
                                     cmocka_unit_test(a_profile_of_another_machine_ends_with_4),
                                     cmocka_unit_test(a_gpu_schedule_without_a_gpu_ends_with_5),
                                     cmocka_unit_test(without_a_usable_gpu_auto_says_why_and_runs),
                                     cmocka_unit_test(an_existing_output_survives_every_failure),
                                     cmocka_unit_test(files_that_are_read_or_written_are_not_written_over),
                                     cmocka_unit_test(with_little_address_space_it_ends_and_says_so), cmocka_unit_test(with_little_data_it_ends_and_says_so),
                                     cmocka_unit_test(a_full_standard_output_ends_with_6),
                                     cmocka_unit_test(signals_end_with_130_and_143_and_leave_nothing),
                                     cmocka_unit_test(bits_and_plan_id_are_the_same_for_any_number_of_threads),
                                     cmocka_unit_test(the_trace_is_json_with_events),
                                     cmocka_unit_test(no_point_and_no_target_are_fine),
                                     cmocka_unit_test(molecules_are_within_the_tolerance_at_all_targets)};
  return cmocka_run_group_tests(tests, enter_directory, leave_directory);
}
