/* Mutated files: from a few good ones, bytes are changed, cut out, doubled and truncated by a fixed seed. Whatever comes, a reader either
 * gives finite values of a consistent shape or an error with a text; it neither crashes nor leaks (run it under the sanitizers). */
#include "io_files.h"
#include <math.h>
#include "runtime/io/input.h"

enum { ROUNDS = 1500, CAPACITY = 4096 };

static uint64_t random_state = 20240611;
static uint32_t random_below(uint32_t n) { /* PCG-like, fixed everywhere */
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(random_state >> 33) % n;
}

static size_t mutate(char *bytes, size_t n) {
  static const char interesting[] = "0123456789.,;-+eE \t\r\n#'(){}:\0\xff\x80nNiI";
  for (uint32_t m = 1 + random_below(6); m > 0 && n > 0; m--) {
    size_t at = random_below((uint32_t)n), span = 1 + random_below(20);
    if (span > n - at) span = n - at;
    switch (random_below(5)) {
      case 0: bytes[at] = (char)random_below(256); break;
      case 1: bytes[at] = interesting[random_below(sizeof interesting - 1)]; break;
      case 2: memmove(bytes + at, bytes + at + span, n - at - span), n -= span; break;
      case 3: if (n + span < CAPACITY) memmove(bytes + at + span, bytes + at, n - at), n += span; break;
      case 4: if (random_below(4) == 0) n = at; break;
    }
  }
  return n;
}

static int64_t accepted;

static void assert_well_behaved(const char *path) {
  fmm_input in = {0};
  size_t held = fmm_memory_now();
  fmm_clear_error();
  fmm_status status = fmm_input_read(path, &in);
  if (status == FMM_OK) {
    accepted++;
    assert_true(in.n >= 0 && in.k >= 0);
    for (int64_t i = 0; i < 3 * in.n; i++) assert_true(isfinite(in.points[i]));
    for (int64_t i = 0; i < in.k * in.n; i++) assert_true(isfinite(in.densities[i]));
  } else {
    assert_true(status == FMM_ERR_INPUT || status == FMM_ERR_MEMORY);
    assert_non_null(strstr(fmm_last_error(), path));
  }
  fmm_input_free(&in);
  assert_int_equal(fmm_memory_now(), held);
}

static void fuzz(const char *name, const char *seed, size_t length) {
  char bytes[CAPACITY];
  accepted = 0;
  for (int i = 0; i < ROUNDS; i++) {
    memcpy(bytes, seed, length);
    size_t n = i ? mutate(bytes, length) : length;
    assert_well_behaved(file_with_bytes(name, bytes, n));
  }
  unlink(last_path);
  assert_true(accepted > 0 && accepted < ROUNDS);
}

static void mutated_csv_is_read_or_refused(void **state) {
  static const char seed[] = "x,y,z,q\n1,2,3,4\n-1.5e3,2.25,.5,1e-7\n# c\n7;8;9;1\n";
  fuzz("f.csv", seed, 30);
  fuzz("f.csv", seed + 8, sizeof seed - 17);
}

static void mutated_xyz_is_read_or_refused(void **state) {
  static const char seed[] = "3\ncomment\nC 1.0 2.0 3.0\nH -1 -2 -3\nO 1e1 2e2 3e3\n";
  fuzz("f.xyz", seed, sizeof seed - 1);
}

static void mutated_pqr_is_read_or_refused(void **state) {
  static const char seed[] = "REMARK a\nATOM  5 N MET 1 -6.406 5.469 -3.259 -0.3 1.85\nHETATM 6 H MET 1 1 2 3 4 5\nEND\n";
  fuzz("f.pqr", seed, sizeof seed - 1);
}

static void mutated_npy_is_read_or_refused(void **state) {
  char seed[256] = "\x93NUMPY\x01";
  static const char dictionary[] = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 4), }\n";
  const double values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  size_t n = sizeof dictionary - 1;
  seed[8] = (char)n;
  memcpy(seed + 10, dictionary, n);
  memcpy(seed + 10 + n, values, sizeof values);
  fuzz("f.npy", seed, 10 + n + sizeof values);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(mutated_csv_is_read_or_refused), cmocka_unit_test(mutated_xyz_is_read_or_refused),
                                     cmocka_unit_test(mutated_pqr_is_read_or_refused), cmocka_unit_test(mutated_npy_is_read_or_refused)};
  return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
