/* Command lines: every kind of option in both spellings, and what is said of wrong ones. */
#include "test.h"
#include <dirent.h>
#include <math.h>
#include <sys/resource.h>
#include <time.h>
#include "kernels/operators_parts.h"
#include "tools/case_options.h"

static const fmm_cli_table tables[] = {{"Case", fmm_case_table}, {"Plan", fmm_plan_table}, {0}};
static const fmm_cli cli = {"fmm-test", "usage", "summary", tables, offsetof(fmm_case_options, file), 1};

enum { MOST = 24 };

/* Parses the words of `line` (separated by single blanks). */
static fmm_status parse(const char *line, fmm_case_options *o) {
  static char words[512];
  char *argv[MOST] = {"fmm-test"};
  int argc = 1, done;
  snprintf(words, sizeof words, "%s", line);
  for (char *w = strtok(words, " "); w && argc < MOST; w = strtok(NULL, " ")) argv[argc++] = w;
  fmm_case_defaults(o);
  return fmm_cli_parse(&cli, argc, argv, o, &done);
}

static void assert_refused(const char *line, const char *word1, const char *word2) {
  fmm_case_options o;
  fmm_status status = parse(line, &o);
  if (status == FMM_OK) status = fmm_case_check(&o);
  if (status != FMM_ERR_ARGUMENT) fail_msg("'%s' gives %s", line, fmm_status_name(status));
  if (!strstr(fmm_last_error(), word1) || !strstr(fmm_last_error(), word2))
    fail_msg("'%s': '%s' lacks '%s' or '%s'", line, fmm_last_error(), word1, word2);
}

static void both_spellings_set_every_kind_of_option(void **state) {
  fmm_case_options o;
  fmm_options library;
  assert_ok(parse("a.pqr --digits 9 --leaf-size=64 --schedule hybrid2 --gradient --scale=-1.5 --kernel yukawa --param lambda=2.5 --threads 2 --bind no --precision=mixed", &o));
  assert_ok(fmm_case_check(&o));
  assert_string_equal(o.file, "a.pqr");
  assert_ok(fmm_case_to_options(&o, &library));
  assert_true(fabs(library.tolerance - 1e-9) < 1e-20);
  assert_int_equal(library.leaf_size, 64);
  assert_int_equal(library.schedule, FMM_SCHEDULE_HYBRID2);
  assert_int_equal(library.precision, FMM_PRECISION_MIXED);
  assert_true(library.gradient && library.scale == -1.5 && library.threads == 2 && !library.bind_threads);
  assert_string_equal(library.params[0].name, "lambda");
  assert_true(library.params[0].value == 2.5);
  assert_ok(parse("--generate plummer --points 1e6 --seed 9007199254740992", &o));
  assert_ok(fmm_case_check(&o));
  assert_int_equal(o.points, 1000000);
  assert_true(o.generate == 3 && o.seed == 9007199254740992);
  assert_true(fmm_case_tolerance(&o) == 1e-6);
  assert_ok(fmm_case_to_options(&o, &library));
  assert_true(library.bind_threads);
  assert_ok(parse("-- --strange-name.csv", &o));
  assert_string_equal(o.file, "--strange-name.csv");
}

static void the_last_of_a_repeated_option_counts(void **state) {
  fmm_case_options o;
  assert_ok(parse("a.csv --order 4 --order=8", &o));
  assert_int_equal(o.order, 8);
}

static void unknown_options_get_the_nearest_known_one(void **state) {
  assert_refused("a.csv --leafsize 3", "'--leafsize'", "--leaf-size");
  assert_refused("a.csv --gradeint", "unknown option", "--gradient");
  assert_refused("a.csv --tol=1e-3", "'--tol=1e-3'", "--tolerance");
  assert_refused("a.csv -x", "'-x'", "--help");
  assert_refused("a.csv --qwertyuiopasdf", "unknown option", "--help");
}

static void impossible_values_are_named_with_what_is_allowed(void **state) {
  assert_refused("a.csv --digits abc", "--digits: 'abc'", "not a number");
  assert_refused("a.csv --digits 0", "--digits: 0", "outside");
  assert_refused("a.csv --digits=nan", "nan", "outside");
  assert_refused("a.csv --tolerance nan", "--tolerance: nan", "outside");
  assert_refused("a.csv --tolerance 1e-40", "1e-40", "1e-14 .. 0.5");
  assert_refused("a.csv --order 1", "--order: 1", "2 .. 20");
  assert_refused("a.csv --leaf-size -3", "--leaf-size: -3", "outside 1 ..");
  assert_refused("a.csv --leaf-size 2.5", "2.5", "whole number");
  assert_refused("a.csv --threads 0", "--threads: 0", "outside 1 ..");
  assert_refused("a.csv --threads 99999999999999999999999", "99999999999999999999999", "outside");
  assert_refused("a.csv --order 0x10", "'0x10'", "not a number");
  assert_refused("a.csv --schedule fast", "'fast'", "auto|cpu|gpu");
  assert_refused("a.csv --precision doubl", "'doubl'", "auto|double");
  assert_refused("a.csv --param lambda", "'lambda'", "NAME=VALUE");
  assert_refused("a.csv --param =3", "'=3'", "NAME=VALUE");
  assert_refused("a.csv --param lambda=x", "'x'", "not a finite number");
  assert_refused("a.csv --param lambda=1 --param lambda=2", "--param lambda", "twice");
  assert_refused("a.csv --seed 9007199254740993", "9007199254740993", "outside");
  assert_refused("a.csv --order", "--order needs a value", "P");
  assert_refused("a.csv --targets --gradient", "--targets needs a value", "FILE");
  assert_refused("a.csv --targets=", "--targets", "empty");
  assert_refused("a.csv --densities onez", "onez", "ones|unit|signed");
  assert_refused("a.csv --densities d.dat", "d.dat", ".pqr, .npy, .csv, .xyz");
  assert_refused("a.csv --gradient=1", "--gradient takes no value", "'1'");
}

static void options_that_contradict_each_other_are_refused(void **state) {
  assert_refused("", "nothing to evaluate", "--generate");
  assert_refused("a.csv --generate uniform --points 5", "both a file", "a.csv");
  assert_refused("--generate uniform", "--points", "needs");
  assert_refused("--generate cube --points 5", "'cube'", "ellipsoid");
  assert_refused("a.csv --points 5", "--points 5", "--generate");
  assert_refused("a.csv b.csv", "a.csv", "b.csv");
  assert_refused("a.csv --digits 3 --tolerance 1e-3", "--digits", "--tolerance");
}

static int count_threads(void) {
  DIR *tasks = opendir("/proc/self/task");
  int n = 0;
  assert_non_null(tasks);
  for (const struct dirent *entry; (entry = readdir(tasks));) n += entry->d_name[0] != '.';
  closedir(tasks);
  return n;
}

/* A thread that has been joined may be listed for a moment longer. */
static int count_threads_left(void) {
  int n = count_threads();
  for (int i = 0; n > 1 && i < 1000; i++) nanosleep(&(struct timespec){0, 1000000}, NULL), n = count_threads();
  return n;
}

/* Those that OpenBLAS makes when it is loaded would look for work for a tenth of a second beside the command's own. Where it makes none (one core, a limit on memory, another BLAS) nothing is told. */
static void a_command_has_no_threads_but_its_own(void **state) {
  double a[4] = {2, 0, 0, 1}, ut[4], sigma[2], vt[4];
  struct rlimit limit;
  if (count_threads() == 1 || getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur != RLIM_INFINITY || getrlimit(RLIMIT_DATA, &limit) || limit.rlim_cur != RLIM_INFINITY) skip();
  fmm_cli_begin("fmm-test");
  assert_int_equal(count_threads_left(), 1);
  assert_ok(fmm_blas_single_thread_begin(1));
  assert_ok(fmm_small_svd(2, a, ut, sigma, vt));
  fmm_blas_single_thread_end();
  assert_int_equal(count_threads_left(), 1);
  assert_true(fabs(sigma[0] - 2) < 1e-12 && fabs(sigma[1] - 1) < 1e-12);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(both_spellings_set_every_kind_of_option), cmocka_unit_test(the_last_of_a_repeated_option_counts),
                                     cmocka_unit_test(unknown_options_get_the_nearest_known_one),
                                     cmocka_unit_test(impossible_values_are_named_with_what_is_allowed),
                                     cmocka_unit_test(options_that_contradict_each_other_are_refused), cmocka_unit_test(a_command_has_no_threads_but_its_own)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
