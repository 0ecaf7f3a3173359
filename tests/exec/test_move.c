/* Points that move: what a plan keeps of its choices, whose bits its answers have then, what a failure leaves, and memory that serves again. */
#include "test.h"

#include <math.h>
#include <string.h>

#include "plan_error.h"
#include "runtime/memory.h"
#include "runtime/plan.h"

enum { N = 4000 };
static double points[3 * N], moved[3 * N];

/* A little, all of them; or into a ball of a tenth of the extent, but for two far corners. */
static void move(int together) {
  for (int i = 0; i < 3 * N; i++) moved[i] = together && i >= 6 ? 0.45 + 0.1 * points[i] : i < 6 ? i / 3 : points[i] + 1e-3 * sin(100.0 * points[i]);
}

static fmm_plan_info info_of(const fmm_plan *plan) {
  fmm_plan_info info = {.struct_size = sizeof info};
  assert_ok(fmm_plan_get_info(plan, &info));
  return info;
}

/* As a new plan for the same leaf size and root scale would: the same bits. */
static void moved_points_keep_leaf_size_and_root_scale(void **state) {
  static double density[N], p[N], q[N];
  fmm_options o = defaults(1e-6);
  fmm_plan *plan = NULL, *other = NULL;
  assert_ok(fmm_generate_densities("signed", N, 5, density, 2));
  assert_ok(fmm_plan_create(&plan, &o));
  assert_ok(fmm_plan_move_points(plan, N, points, NULL, 0, NULL)); /* the first points: set */
  const fmm_plan_info before = info_of(plan);
  assert_true(before.n_leaves > 1);
  assert_ok(fmm_plan_create(&other, &o));
  assert_ok(fmm_plan_set_points(other, N, points, NULL, 0, NULL));
  assert_string_equal(before.plan_id, info_of(other).plan_id);
  fmm_plan_destroy(&other);
  move(0);
  assert_ok(fmm_plan_move_points(plan, N - 5, moved, NULL, 0, NULL)); /* their number may change */
  const fmm_plan_info after = info_of(plan);
  assert_int_equal(after.leaf_size, before.leaf_size);
  assert_true(after.root_scale == before.root_scale);
  assert_int_equal(after.n_sources, N - 5);
  o.leaf_size = before.leaf_size, o.root_scale = before.root_scale;
  assert_ok(fmm_plan_create(&other, &o));
  assert_ok(fmm_plan_set_points(other, N - 5, moved, NULL, 0, NULL));
  assert_string_equal(after.plan_id, info_of(other).plan_id);
  assert_ok(fmm_plan_execute(plan, density, p, NULL));
  assert_ok(fmm_plan_execute(other, density, q, NULL));
  assert_memory_equal(p, q, (N - 5) * sizeof *p);
  fmm_plan_destroy(&plan);
  fmm_plan_destroy(&other);
}

/* Points that come together make the root scale and leaf size of spread ones a bad choice: kept once, then chosen anew. */
static void a_choice_that_serves_no_longer_is_made_anew(void **state) {
  fmm_options o = defaults(1e-6);
  fmm_plan *plan = NULL, *fresh = NULL;
  char text[4096];
  assert_ok(fmm_plan_create(&plan, &o));
  assert_ok(fmm_plan_set_points(plan, N, points, NULL, 0, NULL));
  const double chosen_s = plan->chosen_s;
  const fmm_tree_options chosen = {plan->setup->tree.leaf_size, plan->setup->tree.root_scale};
  move(1);
  assert_ok(fmm_plan_move_points(plan, N, moved, NULL, 0, NULL));
  assert_int_equal(plan->setup->tree.leaf_size, chosen.leaf_size);
  assert_true(plan->setup->tree.root_scale == chosen.root_scale);
  assert_true(plan->chosen_s == chosen_s);
  assert_ok(fmm_plan_explain(plan, text, sizeof text, NULL));
  assert_non_null(strstr(text, "kept since the points moved"));
  plan->chosen_s = plan->setup->foretold_s / (2 * N) / 1.11; /* as if chosen for better */
  assert_ok(fmm_plan_move_points(plan, N, moved, NULL, 0, NULL));
  assert_ok(fmm_plan_create(&fresh, &o));
  assert_ok(fmm_plan_set_points(fresh, N, moved, NULL, 0, NULL));
  assert_string_equal(info_of(plan).plan_id, info_of(fresh).plan_id);
  assert_true(plan->chosen_s == fresh->chosen_s);
  assert_ok(fmm_plan_explain(plan, text, sizeof text, NULL));
  assert_null(strstr(text, "kept since the points moved"));
  fmm_plan_destroy(&plan);
  fmm_plan_destroy(&fresh);
}

static void what_is_refused_moves_nothing(void **state) {
  static double density[N], p[N], q[N];
  fmm_options o = defaults(1e-3);
  fmm_plan *plan = NULL;
  assert_ok(fmm_generate_densities("signed", N, 5, density, 2));
  assert_ok(fmm_plan_create(&plan, &o));
  assert_ok(fmm_plan_set_points(plan, N, points, NULL, 0, NULL));
  assert_ok(fmm_plan_execute(plan, density, p, NULL));
  move(0);
  moved[3 * 77 + 1] = NAN;
  assert_int_equal(fmm_plan_move_points(plan, N, moved, NULL, 0, NULL), FMM_ERR_INPUT);
  assert_non_null(strstr(fmm_last_error(), "row 77"));
  assert_int_equal(fmm_plan_move_points(plan, N, NULL, NULL, 0, NULL), FMM_ERR_ARGUMENT);
  assert_int_equal(fmm_plan_move_points(plan, -1, moved, NULL, 0, NULL), FMM_ERR_ARGUMENT);
  assert_int_equal(fmm_plan_move_points(NULL, N, moved, NULL, 0, NULL), FMM_ERR_ARGUMENT);
  assert_ok(fmm_plan_execute(plan, density, q, NULL));
  assert_memory_equal(p, q, sizeof p);
  fmm_plan_destroy(&plan);
}

/* Then the plan has no points and says so, and others may be set. */
static void a_failing_move_leaves_a_plan_without_points(void **state) {
  static double density[N], p[N];
  const size_t before = fmm_memory_now();
  fmm_options o = defaults(1e-3);
  o.order = 4;
  move(0);
  for (int i = 3; i < N; i += 2) for (int k = 0; k < 3; k++) moved[3 * i + k] *= 1e-9; /* below the finest cell: a plan of their own */
  assert_ok(fmm_generate_densities("signed", N, 5, density, 2));
  for (int64_t nth = 1;; nth = nth < 8 ? nth + 1 : nth + nth / 4) {
    fmm_plan *plan = NULL;
    assert_ok(fmm_plan_create(&plan, &o));
    assert_ok(fmm_plan_set_points(plan, N, points, NULL, 0, NULL));
    fmm_memory_fail_at(nth);
    fmm_status status = fmm_plan_move_points(plan, N, moved, NULL, 0, NULL);
    fmm_memory_fail_at(0);
    if (status != FMM_OK) {
      assert_int_equal(status, FMM_ERR_MEMORY);
      assert_int_equal(fmm_plan_execute(plan, density, p, NULL), FMM_ERR_ARGUMENT);
      assert_non_null(strstr(fmm_last_error(), "no points yet"));
      assert_ok(fmm_plan_move_points(plan, N, moved, NULL, 0, NULL));
    }
    assert_ok(fmm_plan_execute(plan, density, p, NULL));
    fmm_plan_destroy(&plan);
    assert_int_equal(fmm_memory_now(), before);
    if (status == FMM_OK) { assert_true(nth > 20); break; }
  }
}

static void held_memory_serves_again(void **state) {
  enum { BYTES = 5 << 20 };
  const size_t before = fmm_memory_now();
  char *a = NULL, *b = NULL, *small = NULL;
  assert_ok(FMM_ALLOCATE(&a, BYTES, "a"));
  fmm_memory_hold();
  fmm_memory_hold();
  char *first = a;
  FMM_FREE(&a);
  assert_int_equal(fmm_memory_now(), before); /* what is kept is nobody's */
  assert_ok(FMM_ALLOCATE(&small, BYTES / 2, "too small for it"));
  assert_ptr_not_equal(small, first);
  fmm_memory_release();
  assert_ok(FMM_ALLOCATE(&b, BYTES - 100000, "about as much")); /* still held by the other */
  assert_ptr_equal(b, first);
  assert_int_equal(fmm_memory_bytes(b), BYTES - 100000);
  memset(b, 1, BYTES - 100000);
  FMM_FREE(&b);
  assert_ok(FMM_ALLOCATE(&a, BYTES, "all of it"));
  assert_ptr_equal(a, first);
  fmm_memory_release();
  FMM_FREE(&a);
  FMM_FREE(&small);
  assert_int_equal(fmm_memory_now(), before);
}

int main(void) {
  assert_ok(fmm_generate_points("uniform", N, 3, points, 2));
  const struct CMUnitTest tests[] = {cmocka_unit_test(moved_points_keep_leaf_size_and_root_scale), cmocka_unit_test(a_choice_that_serves_no_longer_is_made_anew),
                                     cmocka_unit_test(what_is_refused_moves_nothing), cmocka_unit_test(a_failing_move_leaves_a_plan_without_points),
                                     cmocka_unit_test(held_memory_serves_again)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
