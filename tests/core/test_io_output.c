/* Writers: round trips bit for bit, the order of values in a row, names, and an existing file that survives every failure. */
#include "io_files.h"
#include <locale.h>
#include <math.h>
#include "runtime/io/input.h"
#include "runtime/io/output.h"

enum { N = 3, OUTPUTS = 3, COLUMNS = 2, WIDTH = OUTPUTS * 4 * COLUMNS };
static double targets[N * 3], potential[N * OUTPUTS * COLUMNS], gradient[N * OUTPUTS * 3 * COLUMNS];
static const fmm_results results = {N, targets, OUTPUTS, COLUMNS, potential, gradient};

/* Values that no short decimal holds, extreme ones among them. */
static int fill(void **state) {
  for (int i = 0; i < N * 3; i++) targets[i] = sin(i + 1);
  for (int i = 0; i < N * OUTPUTS * COLUMNS; i++) potential[i] = exp(3 * cos(i) * i);
  for (int i = 0; i < N * OUTPUTS * 3 * COLUMNS; i++) gradient[i] = -sqrt(i) * 1e-300;
  return make_directory(state);
}

/* Potentials of column 0, its gradients, then column 1's. */
static double expected_value(int i, int j) {
  int c = j / (OUTPUTS * 4), k = j % (OUTPUTS * 4);
  return k < OUTPUTS ? potential[(i * OUTPUTS + k) * COLUMNS + c] : gradient[(i * OUTPUTS * 3 + k - OUTPUTS) * COLUMNS + c];
}

static void assert_round_trip(const char *name) {
  fmm_input in;
  const char *path = file_with(name, "old");
  assert_ok(fmm_output_write(path, &results));
  assert_ok(fmm_input_read_densities(path, N, &in));
  assert_int_equal(in.k, WIDTH);
  for (int i = 0; i < N; i++)
    for (int j = 0; j < WIDTH; j++) assert_true(in.densities[i * WIDTH + j] == expected_value(i, j));
  fmm_input_free(&in);
  unlink(path);
}

static void npy_and_csv_read_back_bit_for_bit(void **state) {
  assert_round_trip("out.npy");
  assert_round_trip("out.csv");
}

static void names_say_component_axis_and_column(void **state) {
  char name[32];
  fmm_results one = {N, targets, 1, 1, potential, gradient};
  fmm_results_name(&one, 0, name);
  assert_string_equal(name, "potential");
  fmm_results_name(&one, 3, name);
  assert_string_equal(name, "gz");
  fmm_results_name(&results, 1, name);
  assert_string_equal(name, "potential_y_0");
  fmm_results_name(&results, OUTPUTS * 4 + OUTPUTS + 3 * 1 + 2, name); /* column 1, output y, axis z */
  assert_string_equal(name, "gyz_1");
}

static double big_endian(const char *p) {
  uint64_t bits;
  memcpy(&bits, p, 8);
  bits = __builtin_bswap64(bits);
  double v;
  memcpy(&v, &bits, 8);
  return v;
}

static void vtk_holds_points_and_fields_big_endian(void **state) {
  char *text;
  size_t length;
  const char *path = file_with("out.vtk", "old");
  fmm_results one = {N, targets, 1, 1, potential, gradient};
  assert_ok(fmm_output_write(path, &one));
  assert_ok(fmm_file_read_all(path, &text, &length));
  assert_memory_equal(text, "# vtk DataFile Version 3.0\n", 27);
  const char *points = memmem(text, length, "POINTS 3 double\n", 16) + 16;
  assert_true(big_endian(points + 8 * 4) == targets[4]);
  const char *p = memmem(text, length, "SCALARS potential double 1\nLOOKUP_TABLE default\n", 48) + 48;
  assert_true(big_endian(p + 8 * 2) == potential[2]);
  const char *g = memmem(text, length, "VECTORS gradient double\n", 24) + 24;
  assert_true(big_endian(g + 8 * 8) == gradient[8]);
  assert_int_equal(g + 8 * 9 + 1 - text, length); /* and nothing behind it but a line end */
  FMM_FREE(&text);
  unlink(path);
}

static void no_target_and_no_gradient_are_fine(void **state) {
  fmm_results none = {0, targets, 1, 1, potential, NULL};
  static const char *const names[] = {"out.npy", "out.csv", "out.vtk"};
  for (int i = 0; i < 3; i++) {
    const char *path = file_with(names[i], "old");
    assert_ok(fmm_output_write(path, &none));
    unlink(path);
  }
}

static void every_failure_leaves_the_old_file(void **state) {
  static const char *const names[] = {"out.npy", "out.csv", "out.vtk"};
  for (int i = 0; i < 3; i++) {
    const char *path = file_with(names[i], "old");
    int64_t before = fmm_file_calls();
    assert_ok(fmm_output_write(path, &results));
    int64_t needed = fmm_file_calls() - before;
    path = file_with(names[i], "old");
    for (int64_t n = 1; n <= needed; n++) {
      char *text;
      size_t length;
      fmm_file_fail_at(n, 28 /* ENOSPC */);
      assert_int_equal(fmm_output_write(path, &results), FMM_ERR_FILE);
      fmm_file_fail_at(0, 0);
      assert_ok(fmm_file_read_all(path, &text, &length));
      assert_string_equal(text, "old");
      FMM_FREE(&text);
    }
    unlink(path);
  }
}

static void unknown_suffixes_and_missing_directories_are_known_beforehand(void **state) {
  assert_int_equal(fmm_output_check("out.txt"), FMM_ERR_ARGUMENT);
  assert_non_null(strstr(fmm_last_error(), ".npy, .csv, .vtk"));
  assert_int_equal(fmm_output_check("/nonexistent/out.npy"), FMM_ERR_FILE);
  const char *path = file_with("out.npy", "old");
  assert_ok(fmm_output_check(path));
  unlink(path);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(npy_and_csv_read_back_bit_for_bit), cmocka_unit_test(names_say_component_axis_and_column),
                                     cmocka_unit_test(vtk_holds_points_and_fields_big_endian), cmocka_unit_test(no_target_and_no_gradient_are_fine),
                                     cmocka_unit_test(every_failure_leaves_the_old_file),
                                     cmocka_unit_test(unknown_suffixes_and_missing_directories_are_known_beforehand)};
  return cmocka_run_group_tests(tests, fill, remove_directory);
}
