/* Rows that are on the device before there is a tree (runtime/gpu_rows.h): words are the host's bit by bit, callers' arrays are left as they were, and plans have the bits of those whose points were sent. Exit 77 without a GPU. */
#include "test.h"

#include <math.h>
#include <stdlib.h>

#include "problem.h"
#include "runtime/gpu.h"
#include "runtime/gpu_rows.h"

enum { MANY = (1 << 21) + 1000 /* rows of 22 bits, with which words are full */, PLANS = 1 << 19 /* points from which on plans bring theirs */, STAGE = 1 << 24 /* bytes */ };

/* FAR: at a distance, so that coordinates are shifted; TINY: scaled by a power of two; MIXED: a quarter in one place, a quarter closer than a finest cell; SHEET: in a plane. */
enum { EVEN, FAR, TINY, MIXED, SHEET, N_KINDS };
static double *rows_of(int64_t n, int seed, int kind) {
  double *rows = malloc((size_t)(n ? n : 1) * 24);
  assert_ok(fmm_generate_points("uniform", n, (uint64_t)seed, rows, 2));
  for (int64_t i = 0; i < 3 * n; i++) {
    if (kind == FAR) rows[i] += 1e6 * (double)(i % 3 - 1);
    if (kind == TINY) rows[i] = (rows[i] - 0.5) * 1e-290;
    if (kind == MIXED && i / 3 % 4 < 2) rows[i] = i / 3 % 4 ? 0.3 : 0.1 + 1e-9 * rows[i];
    if (kind == SHEET && i % 3 == 1) rows[i] = -0.7;
  }
  return rows;
}

typedef struct sets { int n_sets; fmm_input_points of[2]; fmm_bounds bounds; } sets;

static sets sets_of(int64_t n, const double *sources, int64_t m, const double *targets) {
  sets s = {targets ? 2 : 1, {{n, sources, NULL}, {m, targets, NULL}}, {{0}, {0}, 0}};
  assert_ok(fmm_bounds_of(&s.bounds, n, sources, m, targets, 2));
  return s;
}

/* What is taken for this root scale, against the host's. Whether the device had any. */
static int take(fmm_gpu_rows *rows, const sets *s, double root_scale) {
  fmm_frame frame;
  fmm_sorted_rows here, there;
  fmm_frame_place(&frame, &s->bounds, root_scale);
  fmm_gpu_rows_take(rows, &frame, root_scale, &there);
  if (!there.n_sets) return 0;
  assert_ok(fmm_rows_sort(&here, &s->bounds, root_scale, s->n_sets, s->of, 2));
  assert_int_equal(there.n_sets, here.n_sets);
  assert_true(there.root_scale == here.root_scale);
  for (int k = 0; k < here.n_sets; k++) {
    assert_int_equal(there.n[k], here.n[k]);
    assert_int_equal(there.set[k].row_bits, here.set[k].row_bits);
    assert_int_equal(there.set[k].dropped, here.set[k].dropped);
    assert_memory_equal(there.set[k].word, here.set[k].word, (size_t)here.n[k] * sizeof(uint64_t));
  }
  fmm_rows_free(&here), fmm_rows_free(&there);
  return 1;
}

static void ask(fmm_gpu_rows *rows, const sets *s, double root_scale) {
  fmm_frame frame;
  fmm_frame_place(&frame, &s->bounds, root_scale);
  fmm_gpu_rows_ask(rows, &frame, root_scale);
}

static fmm_gpu_stage stage;
static int are_few; /* rows, and no plans nor errors of calls: for tools that slow the device down and look for these */

static fmm_gpu_rows *begin(const sets *s, size_t stage_bytes) {
  fmm_gpu_rows_request q = {.threads = 3, .n_sets = s->n_sets, .set = {s->of[0], s->of[1]}, .stage = stage.memory, .stage_bytes = stage_bytes};
  fmm_gpu_rows *rows;
  fmm_gpu_rows_begin(&rows, &q);
  return rows;
}

static void check(int64_t n, int64_t m, int kind, size_t stage_bytes) {
  double *sources = rows_of(n, 1, kind), *targets = m < 0 ? NULL : rows_of(m, 2, kind);
  const sets s = sets_of(n, sources, m < 0 ? 0 : m, targets);
  fmm_gpu_rows *rows = begin(&s, stage_bytes);
  assert_non_null(rows);
  ask(rows, &s, 1);
  assert_int_equal(take(rows, &s, 1), 1);
  assert_int_equal(take(rows, &s, 1.3), 1); /* others than those asked for, once they have been taken */
  ask(rows, &s, 1.7);
  assert_int_equal(take(rows, &s, 2), 1); /* and before */
  assert_int_equal(take(rows, &s, 2), 1);
  assert_true(fmm_gpu_rows_serve(rows));
  fmm_gpu_rows_give_up(rows);
  assert_false(fmm_gpu_rows_serve(rows));
  fmm_gpu_rows_end(&rows);
  assert_null(rows);
  rows = begin(&s, stage_bytes); /* asked for and not taken; not even asked for */
  if (n % 2) ask(rows, &s, 1);
  if (n % 3) fmm_gpu_rows_settle(rows);
  fmm_gpu_rows_end(&rows);
  free(sources), free(targets);
}

static void words_are_those_of_the_host(void **context) {
  static const int64_t n[] = {2, 3, 1000, 60001, 700000};
  static const size_t bytes[] = {STAGE, 1 << 20, 5000}; /* enough for all, in turns, and one piece of a page */
  const size_t held = fmm_memory_now();
  for (int kind = 0; kind < N_KINDS; kind++)
    for (int i = 0; i < (!are_few ? (int)(sizeof n / sizeof *n) : kind == EVEN ? 4 : 3); i++)
      for (int k = 0; k < (n[i] > 1e5 ? 2 : 3); k++) {
        check(n[i], -1, kind, bytes[k]);
        check(n[i], 70000 - 7 * i, kind, bytes[k]);
      }
  check(5000, 0, EVEN, STAGE);
  check(0, 5000, EVEN, STAGE);
  if (!are_few) check(MANY, -1, EVEN, STAGE);
  if (!are_few) check(100, MANY, MIXED, STAGE);
  assert_int_equal(fmm_memory_now(), held);
}

/* All in one place: there is no cell to tell. No memory to come by: there are no rows. */
static void what_cannot_be_brought_is_left_to_the_host(void **context) {
  double *sources = calloc(3 * 1000, sizeof *sources);
  const sets s = sets_of(1000, sources, 0, NULL);
  fmm_gpu_rows *rows = begin(&s, STAGE);
  ask(rows, &s, 1);
  assert_int_equal(take(rows, &s, 1), 0);
  assert_true(fmm_gpu_rows_serve(rows));
  fmm_gpu_rows_end(&rows);
  assert_null(begin(&s, 0));
  assert_null(begin(&s, 4095));
  const int before = fmm_gpu_rows_allow(0);
  assert_null(begin(&s, STAGE));
  assert_int_equal(fmm_gpu_rows_allow(before), 0);
  free(sources);
}

/* Read where they lie. */
static void locked_arrays_serve_and_stay_locked(void **context) {
  enum { N = 300000 };
  double *sources = rows_of(N, 1, EVEN);
  const sets s = sets_of(N, sources, 0, NULL);
  assert_ok(fmm_gpu_register(sources, (size_t)N * 24));
  fmm_gpu_rows *rows = begin(&s, STAGE);
  assert_int_equal(take(rows, &s, 1), 1);
  fmm_gpu_rows_end(&rows);
  assert_int_equal(fmm_gpu_register(sources, (size_t)N * 24), FMM_ERR_DEVICE); /* once more */
  fmm_gpu_unregister(sources);
  free(sources);
}

/* Every call of the driver fails once: then there are no words, or the right ones, and nothing is left. */
static void failures_leave_the_work_to_the_host(void **context) {
  enum { N = 100000 };
  double *sources = rows_of(N, 1, EVEN), *targets = rows_of(N, 2, EVEN);
  const sets s = sets_of(N, sources, N, targets);
  const size_t held = fmm_memory_now();
  int failures = 0;
  for (int i = 1, done = 0; !done; i++) {
    const int64_t calls = fmm_gpu_call_count();
    fmm_gpu_fail_at(i);
    fmm_gpu_rows *rows = begin(&s, 1 << 20);
    const int taken = rows && take(rows, &s, 1);
    assert_true(fmm_gpu_rows_serve(rows) <= taken);
    fmm_gpu_rows_end(&rows);
    done = fmm_gpu_call_count() - calls < i;
    fmm_gpu_fail_at(0);
    failures += !taken;
    assert_true(taken || !done);
  }
  assert_in_range(failures, 30, 200);
  for (int i = 1; i < 20; i++) { /* allocations: of the object, in the jobs, of words */
    fmm_memory_fail_at(i);
    fmm_gpu_rows *rows = begin(&s, 1 << 20 /* too few for words to stay there */);
    fmm_frame frame;
    fmm_sorted_rows sorted = {0};
    fmm_frame_place(&frame, &s.bounds, 1);
    if (rows) fmm_gpu_rows_take(rows, &frame, 1, &sorted);
    fmm_memory_fail_at(0);
    assert_int_equal(!rows, i == 1);
    assert_int_equal(sorted.n_sets, i > 3 ? 2 : 0);
    fmm_rows_free(&sorted);
    fmm_gpu_rows_end(&rows);
  }
  assert_int_equal(fmm_memory_now(), held);
  free(sources), free(targets);
}

enum { ROWS = 50 };
/* A plan's answers, to its points and, moved, to others; then by direct sums at some rows, and the error that it finds. */
static void answer(problem *p, int brought, const double *targets, int64_t m, const double *moved, double *first, double *second, double exact[ROWS + 1]) {
  const int before = fmm_gpu_rows_allow(brought);
  fmm_plan_destroy(&p->plan);
  assert_ok(fmm_plan_create(&p->plan, &p->options));
  const int64_t taken = fmm_gpu_rows_count();
  const fmm_gpu_taken before_moving = fmm_gpu_spare_taken();
  assert_ok(fmm_plan_set_points(p->plan, p->n, p->points, NULL, m, targets));
  assert_ok(fmm_plan_execute(p->plan, p->densities, first, NULL));
  assert_ok(fmm_plan_move_points(p->plan, p->n, moved, NULL, m, targets));
  assert_ok(fmm_plan_execute(p->plan, p->densities, second, NULL));
  assert_int_equal(fmm_gpu_rows_count() - taken, brought ? (targets ? 4 : 2) : 0);
  const fmm_gpu_taken moving = fmm_gpu_spare_taken();
  assert_int_equal(moving.queues - before_moving.queues, 1);
  assert_in_range(moving.blocks - before_moving.blocks, 1, FMM_GPU_N_BLOCKS); /* that of points is as large */
  if (p->options.schedule == FMM_SCHEDULE_GPU) assert_int_equal(moving.operators - before_moving.operators, 1); /* other schedules may have none there */
  fmm_plan_info info = {.struct_size = sizeof info}, after = info;
  assert_ok(fmm_plan_get_info(p->plan, &info));
  assert_ok(fmm_plan_direct(p->plan, p->densities, ROWS, NULL, exact, NULL));
  assert_ok(fmm_plan_keep_tolerance(p->plan, p->densities, second, NULL, &exact[ROWS], NULL));
  assert_ok(fmm_plan_get_info(p->plan, &after));
  assert_int_equal(info.host_bytes, after.host_bytes); /* what comes back for these is counted from the start */
  fmm_gpu_rows_allow(before);
}

static void plans_have_the_same_bits(void **context) {
  enum { M = 30000 };
  static const struct { const char *points; fmm_schedule_kind schedule; int with_targets, merges, leaf; double root; } cases[] = {
    {"uniform", FMM_SCHEDULE_GPU, 0, 0, 100, 1},   {"ellipsoid", FMM_SCHEDULE_GPU, 0, 0, 100, 1.4}, {"plummer", FMM_SCHEDULE_HYBRID1, 0, 0, 100, 1},
    {"plummer", FMM_SCHEDULE_GPU, 1, 0, 50, 1.2}, {"uniform", FMM_SCHEDULE_GPU, 0, 1, 50, 1},       {"ellipsoid", FMM_SCHEDULE_HYBRID2, 1, 1, 0, 0},
  };
  for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
    problem p;
    make(&p, "laplace", cases[i].points, "signed", PLANS, 1e-4, 0);
    p.options.schedule = cases[i].schedule, p.options.leaf_size = cases[i].leaf, p.options.root_scale = cases[i].root;
    for (int k = 0; cases[i].merges && k < 3 * 3000; k++) p.points[k] = p.points[k % 3]; /* more in one place than a leaf may have */
    const int64_t m = cases[i].with_targets ? M : 0, n = m ? m : p.n;
    double *targets = m ? rows_of(m, 9, EVEN) : NULL, *moved = values_of(3 * p.n), *value[4], exact[2][ROWS + 1];
    for (int k = 0; k < 3 * p.n; k++) moved[k] = p.points[k] * (1 + 1e-4 * sin(k / 3 * 1.0));
    for (int k = 0; k < 4; k++) value[k] = values_of(n);
    answer(&p, 0, targets, m, moved, value[0], value[1], exact[0]);
    answer(&p, 1, targets, m, moved, value[2], value[3], exact[1]);
    assert_memory_equal(value[0], value[2], (size_t)n * sizeof(double));
    assert_memory_equal(value[1], value[3], (size_t)n * sizeof(double));
    assert_memory_equal(exact[0], exact[1], sizeof exact[0]);
    for (int k = 0; k < 4; k++) FMM_FREE(&value[k]);
    FMM_FREE(&moved);
    free(targets);
    release(&p);
  }
}

/* Points that only the device has come back, or an error says that they cannot; then they come another time. */
static void checks_that_fail_lose_nothing(void **context) {
  enum { CALLS = 30 }; /* some of them ask where the arrays lie, and pass */
  problem p;
  double exact[ROWS], right[ROWS], error, other;
  make(&p, "laplace", "uniform", "signed", PLANS, 1e-3, 0);
  const int before = fmm_gpu_rows_allow(0);
  plan_for(&p, FMM_SCHEDULE_GPU);
  execute(&p);
  assert_ok(fmm_plan_direct(p.plan, p.densities, ROWS, NULL, right, NULL));
  assert_ok(fmm_plan_keep_tolerance(p.plan, p.densities, p.potential, NULL, &error, NULL));
  fmm_gpu_rows_allow(before);
  int failed = 0;
  for (int by_memory = 0; by_memory < 2; by_memory++)
    for (int direct = 0; direct < 2; direct++)
      for (int i = 1; i <= (by_memory ? 3 : CALLS); i++) {
        plan_for(&p, FMM_SCHEDULE_GPU);
        execute(&p);
        const size_t held = fmm_memory_now();
        if (by_memory) fmm_memory_fail_at(i);
        else fmm_gpu_fail_at(i);
        const fmm_status status = direct ? fmm_plan_direct(p.plan, p.densities, ROWS, NULL, exact, NULL) : fmm_plan_keep_tolerance(p.plan, p.densities, p.potential, NULL, &other, NULL);
        fmm_memory_fail_at(0), fmm_gpu_fail_at(0);
        failed += status != FMM_OK;
        if (status != FMM_OK) assert_int_equal(fmm_memory_now(), held);
        if (by_memory) assert_int_equal(status, FMM_ERR_MEMORY);
        else assert_true(status == FMM_OK || status == FMM_ERR_DEVICE);
        assert_ok(fmm_plan_direct(p.plan, p.densities, ROWS, NULL, exact, NULL));
        assert_memory_equal(exact, right, sizeof right);
        assert_ok(fmm_plan_keep_tolerance(p.plan, p.densities, p.potential, NULL, &other, NULL));
        assert_true(other == error);
      }
  assert_true(failed > 2 * 3 + 2);
  release(&p);
}

/* From few points, whose plan has less page-locked memory than rows come by way of, to many and back, also of other leaves: the bits of a plan that never had others. */
static void few_points_become_many(void **context) {
  static const int n[] = {3000, PLANS, 60000, 700, PLANS + 5000, 3000};
  problem p;
  make(&p, "laplace", "uniform", "signed", PLANS + 5000, 1e-4, 1);
  const size_t held = fmm_memory_now();
  double *right = values_of(p.n), *slopes = values_of(3 * p.n);
  fmm_plan *moved = NULL;
  p.options.schedule = FMM_SCHEDULE_GPU, p.options.leaf_size = 30;
  assert_ok(fmm_plan_create(&moved, &p.options));
  for (int i = 0; i < (int)(sizeof n / sizeof *n); i++) {
    fmm_plan *fresh = NULL;
    assert_ok(fmm_plan_create(&fresh, &p.options));
    assert_ok(fmm_plan_set_points(fresh, n[i], p.points, NULL, 0, NULL));
    assert_ok(fmm_plan_execute(fresh, p.densities, right, slopes));
    fmm_plan_destroy(&fresh);
    assert_ok(fmm_plan_move_points(moved, n[i], p.points, NULL, 0, NULL));
    assert_ok(fmm_plan_execute(moved, p.densities, p.potential, p.gradient));
    assert_memory_equal(right, p.potential, (size_t)n[i] * sizeof(double));
    assert_memory_equal(slopes, p.gradient, (size_t)n[i] * 3 * sizeof(double));
  }
  fmm_plan_destroy(&moved);
  FMM_FREE(&right);
  FMM_FREE(&slopes);
  assert_int_equal(fmm_memory_now(), held);
  release(&p);
}

/* A coordinate that is no number is found beside; the plan keeps its points. */
static void refused_points_are_let_go(void **context) {
  problem p;
  make(&p, "laplace", "uniform", "signed", PLANS, 1e-3, 0);
  plan_for(&p, FMM_SCHEDULE_GPU);
  execute(&p);
  double *right = values_of(p.n), *wrong = values_of(3 * p.n);
  memcpy(right, p.potential, (size_t)p.n * sizeof(double)), memcpy(wrong, p.points, (size_t)p.n * 24);
  wrong[3 * PLANS - 1] = NAN;
  for (int i = 0; i < 2; i++) {
    assert_int_equal((i ? fmm_plan_move_points : fmm_plan_set_points)(p.plan, p.n, wrong, NULL, 0, NULL), FMM_ERR_INPUT);
    execute(&p);
    assert_memory_equal(right, p.potential, (size_t)p.n * sizeof(double));
  }
  FMM_FREE(&right);
  FMM_FREE(&wrong);
  release(&p);
}

/* Fails calls all over a set-up, also those that bring rows: an error then and the points before, or the right answer. */
static void set_ups_that_fail_lose_nothing(void **context) {
  problem p;
  make(&p, "laplace", "uniform", "signed", PLANS, 1e-3, 0);
  plan_for(&p, FMM_SCHEDULE_GPU);
  execute(&p);
  double *right = values_of(p.n);
  memcpy(right, p.potential, (size_t)p.n * sizeof(double));
  int failed = 0, served = 0, made = 0, tried = 0;
  for (int i = 1; i < 200; i += 3) {
    fmm_gpu_fail_at(i);
    const fmm_status status = fmm_plan_set_points(p.plan, p.n, p.points, NULL, 0, NULL);
    fmm_gpu_fail_at(0);
    failed += status != FMM_OK, served += status == FMM_OK;
    assert_true(status == FMM_OK || status == FMM_ERR_DEVICE);
    if (i % 4 == 0) {
      execute(&p);
      assert_memory_equal(right, p.potential, (size_t)p.n * sizeof(double));
    }
  }
  assert_true(failed > 0 && served > 0); /* what brings rows is not needed, the plan is */
  fmm_gpu_fail_for_memory(1);
  for (int i = 1;; i += 4) { /* room may be missing because of them: the plan is made without */
    const int64_t calls = fmm_gpu_call_count();
    fmm_gpu_fail_at(i);
    const fmm_status status = fmm_plan_set_points(p.plan, p.n, p.points, NULL, 0, NULL);
    fmm_gpu_fail_at(0);
    if (fmm_gpu_call_count() - calls < i) break;
    assert_true(status == FMM_OK || status == FMM_ERR_DEVICE); /* the latter: whether there is a device could not be asked */
    made += status == FMM_OK, tried++;
    execute(&p);
    assert_memory_equal(right, p.potential, (size_t)p.n * sizeof(double));
  }
  fmm_gpu_fail_for_memory(0);
  assert_true(tried > 15 && made >= tried - 2);
  FMM_FREE(&right);
  release(&p);
}

/* Fails calls all over a move, of few points and of such as are brought: an error then, and no points, or the right answer. Where room is missing beside what the points before left, the plan is made without that. */
static void moves_that_fail_leave_no_points(void **context) {
  for (int many = 0; many < 2; many++) {
    problem p;
    int made[2] = {0}, tried[2] = {0};
    make(&p, "laplace", "uniform", "signed", many ? PLANS : 20000, 1e-3, 0);
    p.options.leaf_size = 100, p.options.root_scale = 1;
    plan_for(&p, FMM_SCHEDULE_GPU);
    execute(&p);
    double *right = values_of(p.n);
    memcpy(right, p.potential, (size_t)p.n * sizeof(double));
    for (int of_memory = 0; of_memory < 2; of_memory++)
      for (int i = 1;; i += many ? 9 : 2) {
        const int64_t calls = fmm_gpu_call_count();
        fmm_gpu_fail_for_memory(of_memory);
        fmm_gpu_fail_at(i);
        const fmm_status status = fmm_plan_move_points(p.plan, p.n, p.points, NULL, 0, NULL);
        fmm_gpu_fail_at(0);
        fmm_gpu_fail_for_memory(0);
        if (status != FMM_OK) {
          assert_true(status == FMM_ERR_DEVICE || status == FMM_ERR_MEMORY);
          fmm_plan_info info = {.struct_size = sizeof info};
          if (fmm_plan_get_info(p.plan, &info) == FMM_OK) assert_int_equal(status, FMM_ERR_DEVICE); /* refused before, as nobody could be asked where the points lie */
          else {
            assert_int_equal(fmm_plan_execute(p.plan, p.densities, p.potential, NULL), FMM_ERR_ARGUMENT);
            assert_ok(fmm_plan_set_points(p.plan, p.n, p.points, NULL, 0, NULL));
          }
        }
        if (fmm_gpu_call_count() - calls < i) break;
        made[of_memory] += status == FMM_OK, tried[of_memory]++;
        if (i % 5 && status != FMM_OK) continue;
        execute(&p);
        assert_memory_equal(right, p.potential, (size_t)p.n * sizeof(double));
      }
    assert_true(tried[0] > 5 && made[0] < tried[0]);
    assert_true(made[1] >= tried[1] - 4);
    FMM_FREE(&right);
    release(&p);
  }
}

/* What a test that failed left behind does not fail others. */
static int begin_anew(void **context) {
  fmm_gpu_rows_allow(1), fmm_gpu_fail_at(0), fmm_gpu_fail_for_memory(0), fmm_memory_fail_at(0);
  return 0;
}

int main(int argc, char **argv) {
  fmm_gpu_info gpu;
  fmm_gpu_query(0, &gpu);
  if (!gpu.present) {
    print_message("no GPU: %s\n", gpu.reason);
    return 77;
  }
  are_few = argc > 1 && !strcmp(argv[1], "few");
  const struct CMUnitTest of_few[] = {cmocka_unit_test_setup(words_are_those_of_the_host, begin_anew)};
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(words_are_those_of_the_host, begin_anew),
    cmocka_unit_test_setup(what_cannot_be_brought_is_left_to_the_host, begin_anew),
    cmocka_unit_test_setup(locked_arrays_serve_and_stay_locked, begin_anew),
    cmocka_unit_test_setup(failures_leave_the_work_to_the_host, begin_anew),
    cmocka_unit_test_setup(plans_have_the_same_bits, begin_anew),
    cmocka_unit_test_setup(checks_that_fail_lose_nothing, begin_anew),
    cmocka_unit_test_setup(few_points_become_many, begin_anew),
    cmocka_unit_test_setup(refused_points_are_let_go, begin_anew),
    cmocka_unit_test_setup(set_ups_that_fail_lose_nothing, begin_anew),
    cmocka_unit_test_setup(moves_that_fail_leave_no_points, begin_anew),
  };
  if (fmm_gpu_stage_make(&stage, 0, 2, STAGE) != FMM_OK) return 1;
  const int failed = are_few ? cmocka_run_group_tests(of_few, NULL, NULL) : cmocka_run_group_tests(tests, NULL, NULL);
  fmm_gpu_stage_free(&stage);
  return failed;
}
