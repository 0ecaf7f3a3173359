/* Points that move: what a plan keeps of its choices, whose bits its answers have then, what a failure leaves, and memory that serves again. */
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan_error.h"
#include "runtime/memory.h"
#include "runtime/plan.h"
#include "runtime/pool.h"

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

static int keeps(const fmm_plan *plan) {
  char text[4096];
  assert_ok(fmm_plan_explain(plan, text, sizeof text, NULL));
  assert_int_equal(strstr(text, "kept since the points moved") != NULL, plan->setup->kept_choice);
  return plan->setup->kept_choice;
}

/* Points that come together, foretold to take longer or less: kept once, as that is foretold when they are there, then chosen as for a new plan. */
static void points_of_another_kind_are_served_anew_in_the_next_step(void **state) {
  fmm_options o = defaults(1e-6);
  fmm_plan *plan = NULL, *fresh = NULL;
  assert_ok(fmm_plan_create(&plan, &o));
  assert_ok(fmm_plan_set_points(plan, N, points, NULL, 0, NULL));
  const fmm_choice chosen = plan->chosen;
  move(1);
  assert_ok(fmm_plan_move_points(plan, N, moved, NULL, 0, NULL));
  assert_true(keeps(plan));
  assert_memory_equal(&plan->chosen, &chosen, sizeof chosen);
  assert_true(fabs(log(plan->setup->foretold_s / (2 * N) / chosen.point_s)) > log(1.1));
  assert_ok(fmm_plan_move_points(plan, N, moved, NULL, 0, NULL));
  assert_false(keeps(plan));
  assert_ok(fmm_plan_create(&fresh, &o));
  assert_ok(fmm_plan_set_points(fresh, N, moved, NULL, 0, NULL));
  assert_string_equal(info_of(plan).plan_id, info_of(fresh).plan_id);
  assert_memory_equal(&plan->chosen, &fresh->chosen, sizeof chosen);
  fmm_plan_destroy(&plan);
  fmm_plan_destroy(&fresh);
}

/* The same points moved by nothing, but chosen for what took more or less, for another order, for more or fewer points. */
static void a_choice_for_others_is_not_kept(void **state) {
  for (int cause = 0; cause < 7; cause++) {
    fmm_options o = defaults(1e-6);
    fmm_plan *plan = NULL;
    assert_ok(fmm_plan_create(&plan, &o));
    assert_ok(fmm_plan_set_points(plan, N, points, NULL, 0, NULL));
    if (cause == 1) plan->chosen.point_s *= 1.12;
    if (cause == 2) plan->chosen.point_s /= 1.12;
    if (cause == 3) plan->chosen.order++;
    if (cause == 4) plan->chosen.n_sources = plan->chosen.n_targets = N / 2;
    if (cause == 5) plan->chosen.n_targets = 2 * N;
    if (cause == 6) plan->chosen.point_s = NAN;
    assert_ok(fmm_plan_move_points(plan, N, points, NULL, 0, NULL));
    assert_int_equal(keeps(plan), cause == 0);
    fmm_plan_destroy(&plan);
  }
}

/* Charges of both signs cancel more there, so the order is another, and nothing is kept that was chosen for the one before; back again it is as at first. */
static void points_that_move_onto_a_lattice_take_its_order(void **state) {
  enum { EDGE = 15, SITES = EDGE * EDGE * EDGE };
  fmm_options o = defaults(1e-6);
  fmm_plan *plan = NULL, *fresh = NULL;
  o.leaf_size = 50, o.root_scale = 1; /* so that there is a far field */
  assert_ok(fmm_plan_create(&plan, &o));
  assert_ok(fmm_plan_create(&fresh, &o));
  assert_ok(fmm_plan_set_points(plan, SITES, points, NULL, 0, NULL));
  const fmm_plan_info random = info_of(plan);
  for (int i = 0; i < SITES; i++) moved[3 * i] = i % EDGE, moved[3 * i + 1] = i / EDGE % EDGE, moved[3 * i + 2] = i / EDGE / EDGE;
  assert_ok(fmm_plan_move_points(plan, SITES, moved, NULL, 0, NULL));
  assert_ok(fmm_plan_set_points(fresh, SITES, moved, NULL, 0, NULL));
  assert_true(info_of(plan).order > random.order);
  assert_int_equal(info_of(plan).order, info_of(fresh).order);
  assert_string_equal(info_of(plan).plan_id, info_of(fresh).plan_id);
  assert_ok(fmm_plan_move_points(plan, SITES, points, NULL, 0, NULL));
  assert_string_equal(info_of(plan).plan_id, random.plan_id);
  fmm_plan_destroy(&plan);
  fmm_plan_destroy(&fresh);
}

/* Operators are of the order, not of the points: as long as it stays they are those of before, told in full by every plan; of another order others, and nothing is left in the end. */
static void operators_serve_the_points_that_follow(void **state) {
  const size_t before = fmm_memory_now();
  fmm_options o = defaults(1e-6);
  fmm_plan *plan = NULL, *fresh = NULL;
  o.leaf_size = 50, o.root_scale = 1, o.order = 6;
  assert_ok(fmm_plan_create(&plan, &o));
  assert_ok(fmm_plan_set_points(plan, N, points, NULL, 0, NULL));
  const fmm_operators *first = plan->setup->operators;
  assert_non_null(first);
  for (int k = 0; k < 4; k++) {
    move(0);
    moved[5] += 1e-3 * k;
    assert_ok((k % 2 ? fmm_plan_set_points : fmm_plan_move_points)(plan, N, moved, NULL, 0, NULL));
    assert_ptr_equal(plan->setup->operators, first);
    assert_null(plan->spare.first);
  }
  assert_ok(fmm_plan_create(&fresh, &o));
  assert_ok(fmm_plan_set_points(fresh, N, moved, NULL, 0, NULL));
  assert_int_equal(info_of(plan).host_bytes, info_of(fresh).host_bytes);
  fmm_plan_destroy(&fresh);
  fmm_memory_fail_at(3);
  assert_int_equal(fmm_plan_set_points(plan, N, points, NULL, 0, NULL), FMM_ERR_MEMORY);
  fmm_memory_fail_at(0);
  assert_ptr_equal(plan->setup->operators, first);
  plan->options.order = 5;
  assert_ok(fmm_plan_move_points(plan, N, points, NULL, 0, NULL));
  assert_int_equal(plan->setup->operators->order, 5);
  fmm_plan_destroy(&plan);
  assert_int_equal(fmm_memory_now(), before);
}

/* Free memory for the next move: told, bounded, not where there is a cap, and given back in the end. */
static void free_memory_is_kept_for_the_next_move(void **state) {
  enum { MANY = 400000, FEWER = 280000, STEPS = 4 };
  double *rows = malloc(3 * MANY * sizeof *rows);
  int kept = 0;
  for (int capped = 0; capped < 2; capped++) {
    fmm_options o = defaults(1e-4);
    fmm_plan *plan = NULL;
    o.leaf_size = 60, o.root_scale = 1, o.order = 4, o.host_memory_cap = capped ? (size_t)1 << 32 : 0;
    assert_ok(fmm_generate_points("uniform", MANY, 11, rows, 2));
    assert_ok(fmm_plan_create(&plan, &o));
    assert_ok(fmm_plan_set_points(plan, MANY, rows, NULL, 0, NULL));
    const size_t parts_of_pages = fmm_pool_unused();
    const size_t before = info_of(plan).host_bytes;
    assert_int_equal(before, plan->setup->info.host_bytes);
    for (int k = 0; k < STEPS; k++) {
      for (int i = 0; i < 3 * MANY; i++) rows[i] += 1e-4 * sin(50 * rows[i]);
      assert_ok(fmm_plan_move_points(plan, k % 2 ? FEWER : MANY, rows, NULL, 0, NULL));
      assert_int_equal(info_of(plan).host_bytes - plan->setup->info.host_bytes, plan->kept_memory);
      assert_in_range(plan->kept_memory, 0, capped ? 0 : 16 * MANY);
      kept |= plan->kept_memory > 0;
      assert_true(fmm_pool_unused() <= plan->kept_memory + 2 * parts_of_pages + ((size_t)4 << 20));
    }
    if (!capped) { /* neither other points nor a failure leave any */
      assert_ok(fmm_plan_set_points(plan, N, points, NULL, 0, NULL));
      assert_int_equal(plan->kept_memory, 0);
      assert_ok(fmm_plan_move_points(plan, MANY, rows, NULL, 0, NULL));
      fmm_memory_fail_at(3);
      assert_int_equal(fmm_plan_move_points(plan, MANY, rows, NULL, 0, NULL), FMM_ERR_MEMORY);
      fmm_memory_fail_at(0);
      assert_int_equal(plan->kept_memory, 0);
      assert_false(fmm_memory_give_back());
      assert_ok(fmm_plan_move_points(plan, MANY, rows, NULL, 0, NULL));
      assert_ok(fmm_plan_move_points(plan, FEWER, rows, NULL, 0, NULL));
    }
    fmm_plan_destroy(&plan);
    assert_false(fmm_memory_give_back()); /* nothing that could be */
  }
#ifndef __SANITIZE_ADDRESS__
  if (!getenv("LD_PRELOAD")) assert_true(kept);
#endif
  free(rows);
}

static void nothing_is_kept_that_the_options_name(void **state) {
  fmm_options o = defaults(1e-6);
  fmm_plan *plan = NULL;
  o.leaf_size = 50, o.root_scale = 1.25;
  assert_ok(fmm_plan_create(&plan, &o));
  for (int k = 0; k < 2; k++) assert_ok(fmm_plan_move_points(plan, N, points, NULL, 0, NULL));
  assert_false(keeps(plan));
  assert_int_equal(plan->setup->tree.leaf_size, 50);
  fmm_plan_destroy(&plan);
}

/* Whether it changes the plan or not: what was chosen is compared with what is foretold by the same constants. */
static void adapting_spoils_no_comparison(void **state) {
  static double density[N], p[N];
  fmm_options o = defaults(1e-6);
  fmm_plan *plan = NULL;
  assert_ok(fmm_generate_densities("signed", N, 5, density, 2));
  assert_ok(fmm_plan_create(&plan, &o));
  assert_ok(fmm_plan_set_points(plan, N, points, NULL, 0, NULL));
  for (int k = 0; k < 3; k++) {
    assert_ok(fmm_plan_execute(plan, density, p, NULL));
    assert_ok(fmm_plan_adapt(plan, NULL));
    const double foretold = plan->chosen.point_s;
    assert_ok(fmm_plan_move_points(plan, N, points, NULL, 0, NULL));
    if (plan->setup->tree.n_leaves > 1) assert_true(keeps(plan));
    assert_true(fabs(plan->setup->foretold_s / (2 * N) - foretold) <= 1e-9 * foretold);
  }
  fmm_plan_destroy(&plan);
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
  assert_int_equal(plan->keeps, 0); /* of what was chosen, in other calls */
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
      assert_non_null(strstr(fmm_last_error(), "has no points;"));
      assert_ok(fmm_plan_move_points(plan, N, moved, NULL, 0, NULL));
    }
    assert_ok(fmm_plan_execute(plan, density, p, NULL));
    fmm_plan_destroy(&plan);
    assert_int_equal(fmm_memory_now(), before);
    if (status == FMM_OK) { assert_true(nth > 20); break; }
  }
}

int main(void) {
  setenv("FMM_PROFILE", "", 1), setenv("XDG_STATE_HOME", "/nonexistent", 1); /* nominal rates, by which these points have trees of several leaves */
  assert_ok(fmm_generate_points("uniform", N, 3, points, 2));
  const struct CMUnitTest tests[] = {cmocka_unit_test(moved_points_keep_leaf_size_and_root_scale), cmocka_unit_test(points_of_another_kind_are_served_anew_in_the_next_step),
                                     cmocka_unit_test(a_choice_for_others_is_not_kept), cmocka_unit_test(points_that_move_onto_a_lattice_take_its_order), cmocka_unit_test(operators_serve_the_points_that_follow), cmocka_unit_test(free_memory_is_kept_for_the_next_move), cmocka_unit_test(nothing_is_kept_that_the_options_name), cmocka_unit_test(adapting_spoils_no_comparison),
                                     cmocka_unit_test(what_is_refused_moves_nothing), cmocka_unit_test(a_failing_move_leaves_a_plan_without_points)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
