/* Points that fill a cube evenly: that they are told from others, that full trees' counts are those of such points' tree, and memory that fails where their rows are sorted later. */
#include "test.h"

#include <math.h>
#include <stdlib.h>

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

static void points_that_fill_a_cube_evenly_are_told(void **state) {
  enum { n = 200000, a_group = 30 };
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
  for (int i = 0; i < 3 * n; i++) t[i] = s[i / 3 / a_group * 3 + i % 3] + 1e-3 * s[i];
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
                                     cmocka_unit_test(memory_that_fails_with_even_points_leaks_nothing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
