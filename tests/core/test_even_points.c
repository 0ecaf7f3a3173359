/* Points that fill a cube evenly: that they are told from others, that full trees' counts are those of such points' tree, that each search has its own samples, the same ones whatever the instruction set, and memory that fails where rows are sorted later. */
#include "test.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/simd.h"
#include "runtime/estimate.h"
#include "runtime/generate.h"
#include "runtime/points.h"

static fmm_count_case laplace(void) {
  fmm_count_case what = {.order = 6, .n_columns = 1};
  assert_ok(fmm_pair_info_find("laplace", &what.pair));
  return what;
}

static int is_even(int64_t n, const double *s, int64_t m, const double *t) {
  const fmm_count_case what = laplace();
  fmm_estimate *e = NULL;
  fmm_counts counts[FMM_EVEN_TREES];
  int even = -1;
  assert_ok(fmm_estimate_create(&e, n, s, m, t, 2));
  assert_ok(fmm_estimate_even(e, &what, counts, &even));
  fmm_estimate_destroy(&e);
  return even;
}

/* Of an 8 x 8 x 8 lattice: balls of a radius, planes, or lines. */
static void fill_lattice(int64_t n, const double *from, double *s, int of, double radius) {
  enum { edge = 8 };
  for (int64_t i = 0; i < n; i++)
    for (int a = 0; a < 3; a++) {
      const double x = from[3 * i + a] * edge, cell = floor(x);
      s[3 * i + a] = a < of ? from[3 * i + a] : (cell + 0.5 + radius * (x - cell - 0.5)) / edge; /* radius 0: in the middle of its cell */
    }
}

static void shuffle(int64_t n, double *s) {
  for (int64_t i = n - 1; i > 0; i--) {
    const int64_t k = (int64_t)(fmm_generate_fraction(fmm_generate_key(9), i) * (double)(i + 1));
    for (int a = 0; a < 3; a++) {
      const double x = s[3 * i + a];
      s[3 * i + a] = s[3 * k + a], s[3 * k + a] = x;
    }
  }
}

static void points_that_fill_a_cube_evenly_are_told(void **state) {
  enum { n = 200000 };
  static const char *const others[] = {"ellipsoid", "sphere", "plummer"};
  double *s = malloc(n * 24), *t = malloc(n * 24);
  for (int seed = 1; seed <= 5; seed++) {
    assert_ok(fmm_generate_points("uniform", n, seed, s, 2));
    assert_true(is_even(n, s, 0, NULL));
  }
  assert_false(is_even(n, s, n, s));       /* two sets */
  assert_false(is_even(131072, s, 0, NULL)); /* all are in samples */
  for (int k = 0; k < 3; k++) {
    assert_ok(fmm_generate_points(others[k], n, 1, t, 2));
    assert_false(is_even(n, t, 0, NULL));
  }
  for (int i = 0; i < 3 * n; i++) t[i] = s[i] * (i % 3 == 2 ? 0.8 : 1);
  assert_false(is_even(n, t, 0, NULL));
  for (int a_group = 2; a_group <= 128; a_group *= 4) /* one after another, and anywhere */
    for (int anywhere = 0; anywhere < 2; anywhere++) {
      for (int i = 0; i < 3 * n; i++) t[i] = s[i / 3 / a_group * 3 + i % 3] + 1e-3 * s[i];
      if (anywhere) shuffle(n, t);
      assert_false(is_even(n, t, 0, NULL));
    }
  for (int of = 0; of < 3; of++) { /* small cubes, lines, planes: alike in all cells of the third level */
    fill_lattice(n, s, t, of, of ? 0 : 0.6);
    assert_false(is_even(n, t, 0, NULL));
  }
  for (int i = 0; i < n; i++) /* seven in twelve in one half of the cube */
    for (int a = 0; a < 3; a++) t[3 * i + a] = a == 0 && i % 6 == 0 ? s[3 * i] / 2 : s[3 * i + a];
  assert_false(is_even(n, t, 0, NULL));
  free(s), free(t);
}

/* Points of which each cell of the fifth level has 32. */
static void full_trees_are_near_the_counts(void **state) {
  enum { a_cell = 32, edge = 32, n = a_cell * edge * edge * edge };
  double *s = malloc(n * 24);
  fmm_count_case what = laplace();
  fmm_counts exact, full[FMM_EVEN_TREES];
  fmm_estimate *e = NULL;
  fmm_tree tree;
  fmm_lists lists;
  int even;
  what.no_gpu = 1;
  assert_ok(fmm_generate_points("uniform", n, 1, s, 2));
  for (int i = 0; i < n; i++) {
    const int cell = i / a_cell, at[3] = {cell % edge, cell / edge % edge, cell / (edge * edge)};
    for (int a = 0; a < 3; a++) s[3 * i + a] = (at[a] + s[3 * i + a]) / edge;
  }
  for (int a = 0; a < 3; a++) s[a] = 0, s[3 * (n - 1) + a] = 1;
  assert_ok(fmm_tree_build(&tree, n, s, NULL, 0, NULL, &(fmm_tree_options){2 * a_cell, 1}, 2));
  assert_ok(fmm_lists_build(&lists, &tree, fmm_surface_size(what.order), FMM_LISTS_TO_SUM, 2));
  assert_ok(fmm_count_work(&tree, &lists, &what, 2, &exact));
  fmm_lists_free(&lists);
  fmm_tree_free(&tree);
  assert_ok(fmm_estimate_create(&e, n, s, 0, NULL, 2));
  assert_ok(fmm_estimate_even(e, &what, full, &even));
  if (!even || exact.n_boxes != 37449) fail_msg("even %d, %lld boxes", even, (long long)exact.n_boxes);
  static const int phases[] = {FMM_PHASE_UP, FMM_PHASE_ULIST, FMM_PHASE_VLIST, FMM_PHASE_DOWN};
  for (int k = 0; k < 4; k++) {
    const double off = full[0].total[phases[k]].flops / exact.total[phases[k]].flops - 1;
    if (!(fabs(off) < 0.03)) fail_msg("phase %d: %g", phases[k], off);
  }
  for (int k = 1; k < FMM_EVEN_TREES; k++) assert_true(full[k].n_leaves < full[k - 1].n_leaves && full[k].n_sources == n);
  fmm_estimate_destroy(&e);
  free(s);
}

/* They are sorted for the first tree of a search: what others' counts are depends on no search before. A few points in one place are split as far as in the tree itself. */
static void another_search_begins_anew(void **state) {
  enum { n = 200005, close = 200 };
  double *s = malloc(n * 24);
  const fmm_count_case what = laplace();
  const fmm_tree_options first = {64, 1.3}, second = {64, 1.1};
  fmm_estimate *e = NULL, *other = NULL;
  fmm_counts full[FMM_EVEN_TREES], got[2];
  fmm_tree tree;
  int even;
  assert_ok(fmm_generate_points("uniform", n, 1, s, 2));
  for (int i = 0; i < close; i++)
    for (int a = 0; a < 3; a++) s[3 * i + a] = 0.3 + 1e-5 * s[3 * i + a];
  assert_ok(fmm_estimate_create(&e, n, s, 0, NULL, 2));
  assert_ok(fmm_estimate_create(&other, n, s, 0, NULL, 2));
  assert_ok(fmm_estimate_even(e, &what, full, &even));
  assert_true(even);
  assert_ok(fmm_estimate_counts(e, 1, &first, &what, &got[0]));
  assert_ok(fmm_tree_build(&tree, n, s, NULL, 0, NULL, &first, 2));
  assert_int_equal(got[0].n_levels, tree.n_levels);
  fmm_tree_free(&tree);
  assert_ok(fmm_estimate_even(e, &what, full, &even));
  assert_ok(fmm_estimate_counts(e, 1, &second, &what, &got[0]));
  assert_ok(fmm_estimate_counts(other, 1, &second, &what, &got[1]));
  assert_memory_equal(&got[0], &got[1], sizeof got[0]);
  fmm_estimate_destroy(&e), fmm_estimate_destroy(&other);
  free(s);
}

/* Samples are taken by vectors where there are any, of as many points as fill none at the end. */
static void estimates_are_the_same_for_any_instruction_set(void **state) {
  enum { n = 200005 };
  static const char *const names[] = {"uniform", "plummer"};
  double *s = malloc(n * 24);
  const fmm_count_case what = laplace();
  for (int k = 0; k < 2; k++) {
    fmm_counts got[FMM_N_SIMD];
    assert_ok(fmm_generate_points(names[k], n, 1, s, 2));
    for (int simd = 0; simd < FMM_N_SIMD; simd++) {
      fmm_estimate *e = NULL;
      fmm_simd_cap((fmm_simd)simd);
      assert_ok(fmm_estimate_create(&e, n, s, 0, NULL, 2));
      assert_ok(fmm_estimate_counts(e, 1, &(fmm_tree_options){9, 1}, &what, &got[simd]));
      assert_memory_equal(&got[0], &got[simd], sizeof got[0]);
      fmm_estimate_destroy(&e);
    }
    fmm_simd_cap(FMM_SIMD_AVX512);
  }
  free(s);
}

/* They are sorted only when a tree is asked for, and again when another search begins. */
static void memory_that_fails_with_even_points_leaks_nothing(void **state) {
  enum { n = 140000 };
  double *s = malloc(n * 24);
  const fmm_count_case what = laplace();
  const size_t before = fmm_memory_now();
  int failures = 0;
  assert_ok(fmm_generate_points("uniform", n, 1, s, 1));
  for (;; failures++) {
    fmm_estimate *e = NULL;
    fmm_counts full[FMM_EVEN_TREES], c;
    int even = 0;
    fmm_memory_fail_at(failures + 1);
    fmm_status status = fmm_estimate_create(&e, n, s, 0, NULL, 1);
    for (int search = 0; search < 2 && status == FMM_OK; search++) {
      status = fmm_estimate_even(e, &what, full, &even);
      if (status == FMM_OK) status = fmm_estimate_counts(e, 1, &(fmm_tree_options){500, 1.3 - 0.1 * search}, &what, &c);
    }
    const int all_made = status == FMM_OK;
    fmm_memory_fail_at(0);
    if (e && !all_made) assert_ok(fmm_estimate_counts(e, 1, &(fmm_tree_options){500, 1.2}, &what, &c)); /* asked again it answers */
    fmm_estimate_destroy(&e);
    assert_int_equal(fmm_memory_now(), before);
    if (all_made) break;
    assert_int_equal(status, FMM_ERR_MEMORY);
  }
  assert_true(failures > 40);
  free(s);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(points_that_fill_a_cube_evenly_are_told), cmocka_unit_test(full_trees_are_near_the_counts),
                                     cmocka_unit_test(another_search_begins_anew), cmocka_unit_test(estimates_are_the_same_for_any_instruction_set),
                                     cmocka_unit_test(memory_that_fails_with_even_points_leaks_nothing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
