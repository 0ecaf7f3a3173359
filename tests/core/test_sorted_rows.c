/* Rows sorted before there is a tree: trees made of them are those made without, of one set and of two, whether words serve or not, and no memory is lost. */
#include "test.h"

#include <stdlib.h>

#include "runtime/deep_cells.h"
#include "runtime/generate.h"
#include "same_trees.h"

enum { N = 60000, M = 70000, MANY = (1 << 21) + 1000 /* rows of 22 bits, with which words are full */, LEAF = 20 };

/* MIXED: a quarter of them closer than a finest cell, a quarter at one place. GROUPED: one in nine in 30 groups that boxes split further than words tell, but no further than there are boxes. */
enum { EVEN, MIXED, GROUPED, FAR /* so that coordinates are shifted */ };
static double *rows_of(int64_t n, int seed, int kind) {
  double *rows = malloc((size_t)n * 24);
  assert_ok(fmm_generate_points("uniform", n, (uint64_t)seed, rows, 2));
  for (int64_t i = 0; kind == MIXED && i < 3 * n; i++)
    if (i / 3 % 4 == 0) rows[i] = 0.1 + 1e-9 * rows[i];
    else if (i / 3 % 4 == 1) rows[i] = 0.3;
  for (int64_t i = 0; kind == FAR && i < 3 * n; i++) rows[i] += 1e6 * (double)(i % 3 - 1);
  for (int64_t i = 0; kind == GROUPED && i < n; i += 9)
    for (int a = 0; a < 3; a++) rows[3 * i + a] = 0.03 * (double)(i % 30 + a) + 3e-5 * rows[3 * i + a];
  return rows;
}

static int are_apart(const fmm_sorted_rows *sorted) {
  int64_t together = 0;
  for (int k = 0; k < sorted->n_sets; k++) {
    fmm_cell_list cells;
    assert_ok(fmm_deep_cells_find(&cells, &sorted->set[k], sorted->n[k], LEAF, 2));
    together += cells.n;
    FMM_FREE(&cells.cell);
  }
  return !together;
}

typedef struct points { int64_t n, m; const double *sources, *targets, *normals; } points;

/* Words of somebody else, who has them still when they have been used. */
static void lend(fmm_sorted_rows *sorted, uint64_t *own[2]) {
  for (int k = 0; k < 2; k++) {
    own[k] = NULL;
    if (k >= sorted->n_sets) continue;
    own[k] = malloc((size_t)(sorted->n[k] ? sorted->n[k] : 1) * sizeof(uint64_t));
    memcpy(own[k], sorted->set[k].word, (size_t)sorted->n[k] * sizeof(uint64_t));
    fmm_words_free(&sorted->set[k]);
    sorted->set[k].word = own[k], sorted->set[k].borrowed = 1;
  }
}

/* Allocations of the tree. */
static int64_t compare(const points *p, double root_scale, double sorted_for, int apart) {
  const fmm_input_points input[2] = {{p->n, p->sources, NULL}, {p->m, p->targets, NULL}};
  const fmm_tree_options options = {LEAF, root_scale};
  fmm_sorted_rows sorted;
  fmm_bounds bounds;
  fmm_tree one, more;
  assert_ok(fmm_tree_build(&one, p->n, p->sources, p->normals, p->m, p->targets, &options, 2));
  assert_ok(fmm_bounds_of(&bounds, p->n, p->sources, p->m, p->targets, 2));
  assert_ok(fmm_rows_sort(&sorted, &bounds, sorted_for, p->targets ? 2 : 1, input, 3));
  if (sorted_for == 1) assert_int_equal(are_apart(&sorted), apart);
  const int64_t allocations = fmm_memory_count();
  assert_ok(fmm_tree_build_within(&more, &bounds, p->n, p->sources, p->normals, p->m, p->targets, &sorted, &options, 2));
  const int64_t made = fmm_memory_count() - allocations;
  assert_true(!sorted.set[0].word && !sorted.set[1].word);
  check_same_trees(&one, &more);
  fmm_tree_free(&more);
  uint64_t *own[2];
  assert_ok(fmm_rows_sort(&sorted, &bounds, sorted_for, p->targets ? 2 : 1, input, 3));
  lend(&sorted, own);
  assert_ok(fmm_tree_build_within(&more, &bounds, p->n, p->sources, p->normals, p->m, p->targets, &sorted, &options, 2));
  check_same_trees(&one, &more);
  fmm_rows_free(&sorted), fmm_tree_free(&one), fmm_tree_free(&more);
  free(own[0]), free(own[1]);
  return made;
}

/* What was sorted is used up, whatever the root scale, and taken where it is for the tree's: nothing is sorted then. */
static void rows_sorted_before_make_the_same_tree(void **state) {
  double *even = rows_of(N, 1, EVEN), *mixed = rows_of(N, 2, MIXED), *other = rows_of(M, 3, MIXED), *grouped = rows_of(M, 4, GROUPED);
  const points all[] = {{N, 0, even, NULL, NULL}, {N, 0, mixed, NULL, NULL}, {N, M, even, other, NULL}, {N, M, mixed, other, NULL}, {0, M, even, other, NULL}, {M, 0, grouped, NULL, NULL},
                        {N, M, even, grouped, NULL}, {M, N, grouped, mixed, NULL}, {M, 0, grouped, NULL, other}};
  const size_t before = fmm_memory_now();
  for (int i = 0; i < 9; i++)
    for (double root_scale = 1; root_scale < 1.5; root_scale += 0.3) {
      const int64_t taken = compare(&all[i], root_scale, root_scale, i == 0), sorted_again = compare(&all[i], root_scale, root_scale > 1 ? 1 : 1.2, i == 0);
      assert_true(taken < sorted_again);
    }
  assert_int_equal(fmm_memory_now(), before);
  free(even), free(mixed), free(other), free(grouped);
}

static void so_many_rows_that_words_are_full_make_the_same_tree(void **state) {
  double *rows = rows_of(MANY, 5, GROUPED);
  compare(&(points){.n = MANY, .sources = rows}, 1, 1, 0);
  free(rows);
}

/* Deep cells in one set, which the other has too. */
static void check_failures(int kind) {
  double *rows = rows_of(N, 1, kind), *targets = rows_of(N, 2, EVEN);
  const fmm_input_points input[2] = {{N, rows, NULL}, {N, targets, NULL}};
  const size_t before = fmm_memory_now();
  int failures = 0;
  fmm_bounds bounds;
  assert_ok(fmm_bounds_of(&bounds, N, rows, N, targets, 2));
  for (fmm_status status = FMM_ERR_MEMORY; status != FMM_OK; failures++) {
    fmm_sorted_rows sorted = {0};
    fmm_tree t;
    uint64_t *own[2] = {NULL, NULL};
    fmm_memory_fail_at(failures + 1);
    status = fmm_rows_sort(&sorted, &bounds, 1, 2, input, 2);
    if (failures % 2) lend(&sorted, own);
    if (status == FMM_OK) status = fmm_tree_build_within(&t, &bounds, N, rows, NULL, N, targets, &sorted, &(fmm_tree_options){LEAF, 1}, 2);
    fmm_memory_fail_at(0);
    fmm_rows_free(&sorted);
    free(own[0]), free(own[1]);
    if (status == FMM_OK) fmm_tree_free(&t);
    else assert_int_equal(status, FMM_ERR_MEMORY);
    assert_int_equal(fmm_memory_now(), before);
  }
  assert_true(failures > 40);
  free(rows), free(targets);
}

/* Coordinates that are left out come to be the same, and what is told without them is. */
static void check_later(const points *p, int leaf, int left_out) {
  const fmm_input_points input[2] = {{p->n, p->sources, NULL}, {p->m, p->targets, NULL}};
  const fmm_tree_options options = {leaf, 1.3};
  fmm_sorted_rows sorted;
  fmm_bounds bounds;
  fmm_tree one, more;
  assert_ok(fmm_tree_build(&one, p->n, p->sources, p->normals, p->m, p->targets, &options, 2));
  assert_ok(fmm_bounds_of(&bounds, p->n, p->sources, p->m, p->targets, 2));
  assert_ok(fmm_rows_sort(&sorted, &bounds, 1.3, p->targets ? 2 : 1, input, 3));
  sorted.later = 1;
  assert_ok(fmm_tree_build_within(&more, &bounds, p->n, p->sources, p->normals, p->m, p->targets, &sorted, &options, 3));
  assert_int_equal(!more.sources.x && !more.targets.z, left_out);
  const fmm_filling before = fmm_filling_of_sources(&more), right = fmm_filling_of_sources(&one);
  assert_memory_equal(&before, &right, sizeof right);
  for (int i = 1; left_out && i <= (p->targets ? 6 : 3); i++) { /* what cannot be filled stays as it was */
    const size_t held = fmm_memory_now();
    const int of_targets = i > 3;
    fmm_memory_fail_at(i);
    assert_int_equal(fmm_tree_fill(&more, p->sources, p->targets, 2), FMM_ERR_MEMORY);
    fmm_memory_fail_at(0);
    assert_true(!more.targets.x && !more.targets.y && !more.targets.z && !more.sources.z == !of_targets);
    if (of_targets) fmm_points_drop(&more.sources);
    assert_int_equal(fmm_memory_now(), held);
  }
  assert_ok(fmm_tree_fill(&more, p->sources, p->targets, 2));
  check_same_trees(&one, &more);
  fmm_rows_free(&sorted), fmm_tree_free(&one), fmm_tree_free(&more);
}

static void coordinates_can_be_left_for_later(void **state) {
  double *even = rows_of(N, 1, EVEN), *mixed = rows_of(N, 2, MIXED), *grouped = rows_of(M, 4, GROUPED), *many = rows_of(MANY, 5, EVEN), *far = rows_of(N, 6, FAR);
  const size_t before = fmm_memory_now();
  check_later(&(points){.n = N, .sources = even}, LEAF, 1);
  check_later(&(points){.n = N, .sources = far}, LEAF, 1);
  check_later(&(points){.n = MANY, .sources = many}, LEAF, 1); /* written past the caches */
  check_later(&(points){M, N, grouped, even, NULL}, LEAF, 1);
  check_later(&(points){N, M, even, grouped, NULL}, LEAF, 1);
  check_later(&(points){.n = N, .sources = even}, N, 0);        /* one leaf, whose points are looked at */
  check_later(&(points){.n = N, .sources = mixed}, LEAF, 0);    /* merged */
  check_later(&(points){N, 0, even, NULL, mixed}, LEAF, 0);     /* with normals */
  assert_int_equal(fmm_memory_now(), before);
  free(even), free(mixed), free(grouped), free(many), free(far);
}

static void memory_that_fails_with_rows_sorted_before_leaks_nothing(void **state) {
  check_failures(MIXED);
  check_failures(GROUPED);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rows_sorted_before_make_the_same_tree), cmocka_unit_test(so_many_rows_that_words_are_full_make_the_same_tree), cmocka_unit_test(coordinates_can_be_left_for_later),
                                     cmocka_unit_test(memory_that_fails_with_rows_sorted_before_leaks_nothing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
