/* Plans on hostile input: tiny N, degenerate shapes, extreme scales, clusters below the finest cell, not-finite values; same bits for any
 * number of threads; nothing lost on failure; every failing allocation leaves no leak. Reference: the compensated direct sum. */
#include "test.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "plan_error.h"
#include "runtime/memory.h"
#include "runtime/plan.h"

static void tiny_numbers_of_points_are_exact(void **state) {
  double points[9] = {0, 0, 0, 1, 2, 3, -1, 0.5, 0.25};
  fmm_options o = defaults(1e-10);
  for (int n = 0; n <= 3; n++) assert_true(worst_error(&o, n, points, 0, NULL) <= 1e-13); /* direct: rounding only */
}

static void no_sources_gives_zero_at_every_target(void **state) {
  double target[3] = {1, 2, 3}, p[1] = {42};
  fmm_options o = defaults(1e-6);
  fmm_plan *plan = NULL;
  assert_ok(fmm_plan_create(&plan, &o));
  assert_ok(fmm_plan_set_points(plan, 0, NULL, NULL, 1, target));
  assert_ok(fmm_plan_execute(plan, NULL, p, NULL));
  assert_true(p[0] == 0);
  fmm_plan_destroy(&plan);
}

enum { N = 6000 };
static double points[3 * N];

static void fill(int kind, double scale, double shift) {
  assert_ok(fmm_generate_points("uniform", N, 3, points, 2));
  for (int i = 0; i < N; i++) {
    double *x = points + 3 * i;
    if (kind == 1) x[1] = x[2] = 0.25;                                /* collinear */
    if (kind == 2) x[2] = 0.5;                                        /* coplanar */
    if (kind == 3 && i % 2) x[0] += 1e9, x[1] += 1e9;                 /* two clusters 1e9 apart */
    if (kind == 4 && i % 2) x[0] *= 1e-9, x[1] *= 1e-9, x[2] *= 1e-9; /* half below the finest cell */
    if (kind == 5 && i % 3) x[0] = x[1] = x[2] = 0.125;               /* most coincide */
    if (kind == 6) x[0] = x[1] = x[2] = 0.7;                          /* all coincide */
    if (kind == 7 && i % 2) x[0] *= 1e-60, x[1] *= 1e-60, x[2] *= 1e-60;
    if (kind == 8 && i % 2) for (int k = 0; k < 3; k++) x[k] = 0.5 + (x[k] - 0.5) * 1e-12; /* tight, straddling the middle */
    for (int k = 0; k < 3; k++) x[k] = x[k] * scale + shift;
  }
}

static void degenerate_shapes_keep_the_tolerance(void **state) {
  static const char *const names[] = {"cube", "line", "plane", "two clusters", "half in 1e-9", "most coincide", "all coincide", "half in 1e-60", "half in 1e-12"};
  for (int digits = 4; digits <= 9; digits += 5)
    for (int kind = 0; kind <= 8; kind++) {
      fmm_options o = defaults(pow(10, -digits));
      fill(kind, 1, 0);
      double e = worst_error(&o, N, points, 0, NULL);
      if (!(e <= o.tolerance)) fail_msg("%s at %d digits: %g", names[kind], digits, e);
    }
}

static void extreme_coordinates_keep_the_tolerance(void **state) {
  fmm_options o = defaults(1e-6);
  const double scales[] = {1e100, 1e-100, 1}, shifts[] = {0, 0, 1e8};
  for (int k = 0; k < 3; k++) {
    fill(0, scales[k], shifts[k]);
    double e = worst_error(&o, N, points, 0, NULL);
    if (!(e <= 1e-6)) fail_msg("scale %g shift %g: %g", scales[k], shifts[k], e);
  }
}

static void check_error(const fmm_options *o, int64_t n, const double *p, int64_t m, const double *targets);

/* Gradients go with the inverse square of the unit: zeros once for large coordinates, and no execution succeeded for small ones. */
static void units_that_double_precision_cannot_hold_are_refused_with_the_points(void **state) {
  const double scales[] = {1e200, 1e-200};
  for (int k = 0; k < 4; k++) {
    fmm_options o = defaults(1e-3);
    fmm_plan *plan = NULL;
    o.gradient = k % 2;
    fill(0, scales[k / 2], 0);
    assert_ok(fmm_plan_create(&plan, &o));
    fmm_status status = fmm_plan_set_points(plan, 100, points, NULL, 0, NULL);
    assert_int_equal(status, o.gradient ? FMM_ERR_INPUT : FMM_OK);
    if (status != FMM_OK) assert_non_null(strstr(fmm_last_error(), k / 2 ? "extent of some 7e-201 " : "extent "));
    if (status != FMM_OK) assert_non_null(strstr(fmm_last_error(), "another unit"));
    fmm_plan_destroy(&plan);
  }
  fill(6, 1, 0); /* half of them within 1e-200: no unit helps */
  for (int i = 0; i < N / 2; i++) points[3 * i] = 1e-200 * i, points[3 * i + 1] = points[3 * i + 2] = 0;
  for (int gradient = 0; gradient < 2; gradient++) {
    fmm_options o = defaults(1e-3);
    fmm_plan *plan = NULL;
    o.gradient = gradient;
    assert_ok(fmm_plan_create(&plan, &o));
    assert_int_equal(fmm_plan_set_points(plan, N, points, NULL, 0, NULL), FMM_ERR_INPUT);
    assert_non_null(strstr(fmm_last_error(), "less than 1e-153 of the extent of all points"));
    fmm_plan_destroy(&plan);
  }
}

/* Lengths of 1e100 must not overflow where the order is measured: wrong by percents once. */
static void extreme_units_keep_the_tolerance_of_kernels_with_a_length(void **state) {
  fill(0, 1e100, 0);
  fmm_param lambda = {"lambda", 1e-100};
  fmm_options o = defaults(1e-5);
  o.kernel = "yukawa", o.leaf_size = 60, o.n_params = 1, o.params[0] = lambda;
  check_error(&o, N, points, 0, NULL);
}

static void check_error(const fmm_options *o, int64_t n, const double *p, int64_t m, const double *targets) {
  double e = worst_error(o, n, p, m, targets);
  if (!(e <= o->tolerance)) fail_msg("error %g, tolerance %g", e, o->tolerance);
}

static void targets_far_outside_the_sources_keep_the_tolerance(void **state) {
  fmm_options o = defaults(1e-6);
  static double targets[3 * 500];
  fill(0, 1, 0);
  assert_ok(fmm_generate_points("uniform", 500, 9, targets, 2));
  for (int i = 0; i < 1500; i++) targets[i] = 1000 + 10 * targets[i];
  check_error(&o, N, points, 500, targets);
  for (int i = 0; i < 1500; i++) targets[i] = (i / 3) % 2 ? targets[i] - 1000 : targets[i];
  check_error(&o, N, points, 500, targets);
}

static void zero_densities_give_zero(void **state) {
  static double density[N], p[N];
  fmm_options o = defaults(1e-6);
  fmm_plan *plan = NULL;
  fill(0, 1, 0);
  memset(density, 0, sizeof density);
  assert_ok(fmm_plan_create(&plan, &o));
  assert_ok(fmm_plan_set_points(plan, N, points, NULL, 0, NULL));
  assert_ok(fmm_plan_execute(plan, density, p, NULL));
  for (int i = 0; i < N; i++) assert_true(p[i] == 0);
  fmm_plan_destroy(&plan);
}

static void not_finite_input_names_the_row_and_leaves_all_untouched(void **state) {
  static double density[N], p[N];
  fmm_options o = defaults(1e-6);
  fmm_plan *plan = NULL;
  fill(0, 1, 0);
  for (int i = 0; i < N; i++) density[i] = 1, p[i] = 42;
  assert_ok(fmm_plan_create(&plan, &o));
  assert_ok(fmm_plan_set_points(plan, N, points, NULL, 0, NULL));
  points[3 * 4321 + 1] = NAN;
  assert_int_equal(fmm_plan_set_points(plan, N, points, NULL, 0, NULL), FMM_ERR_INPUT);
  assert_non_null(strstr(fmm_last_error(), "4321"));
  density[77] = density[5000] = INFINITY;
  assert_int_equal(fmm_plan_execute(plan, density, p, NULL), FMM_ERR_INPUT);
  assert_non_null(strstr(fmm_last_error(), "row 77 "));
  for (int i = 0; i < N; i++) assert_true(p[i] == 42);
  density[77] = density[5000] = 1;
  assert_ok(fmm_plan_execute(plan, density, p, NULL)); /* the old points are still there */
  assert_true(p[0] > 0);
  fmm_plan_destroy(&plan);
}

static void a_plan_without_points_has_no_timeline(void **state) {
  const fmm_options o = defaults(1e-6);
  fmm_plan *plan = NULL;
  assert_ok(fmm_plan_create(&plan, &o));
  assert_int_equal(fmm_plan_write_trace(plan, "timeline-of-nothing.json"), FMM_ERR_ARGUMENT);
  assert_non_null(strstr(fmm_last_error(), "call fmm_plan_set_points first"));
  assert_int_not_equal(access("timeline-of-nothing.json", F_OK), 0);
  assert_int_equal(fmm_plan_write_trace(plan, ""), FMM_ERR_ARGUMENT);
  assert_non_null(strstr(fmm_last_error(), "the file name is empty"));
  fmm_plan_destroy(&plan);
}

/* A plan's whole life in the calling thread: a kernel in double, and in single. */
static void *live(void *kernel) {
  static double density[3 * N], p[3 * N];
  fmm_status status = FMM_OK;
  for (int i = 0; i < 3 * N; i++) density[i] = 1;
  for (int digits = 3; digits <= 9 && status == FMM_OK; digits += 6) {
    fmm_options o = defaults(pow(10, -digits));
    fmm_plan *plan = NULL;
    o.kernel = kernel, o.threads = 1, o.leaf_size = 30;
    status = fmm_plan_create(&plan, &o);
    if (status == FMM_OK) status = fmm_plan_set_points(plan, 3000, points, NULL, 0, NULL);
    if (status == FMM_OK) status = fmm_plan_execute(plan, density, p, NULL);
    fmm_plan_destroy(&plan);
  }
  return status == FMM_OK ? kernel : NULL;
}

#ifdef __SANITIZE_ADDRESS__
enum { STACK = 8 << 20 }; /* which its frames need */
#else
enum { STACK = 512 << 10 };
#endif

static void a_thread_with_half_a_megabyte_of_stack_may_own_a_plan(void **state) {
  fill(0, 1, 0);
  for (int i = 0; i < 2; i++) {
    char kernel[2][8] = {"laplace", "stokes"};
    void *result = NULL;
    pthread_attr_t attributes;
    pthread_t thread;
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstacksize(&attributes, STACK), 0);
    assert_int_equal(pthread_create(&thread, &attributes, live, kernel[i]), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, kernel[i]);
    pthread_attr_destroy(&attributes);
  }
}

static void direct_sums_refuse_what_an_execution_refuses(void **state) {
  double x[9] = {0, 0, 0, 1, 0, 0, 0, 1, 0}, density[3] = {1, 1, 1}, p[3] = {42, 42, 42}, g[9] = {42};
  for (int gradient = 0; gradient < 2; gradient++) {
    fmm_options o = defaults(1e-6);
    fmm_plan *plan = NULL;
    o.gradient = gradient;
    double *wrong = gradient ? NULL : g, *right = gradient ? g : NULL;
    assert_ok(fmm_plan_create(&plan, &o));
    assert_int_equal(fmm_plan_direct(plan, density, 3, NULL, p, right), FMM_ERR_ARGUMENT); /* no points yet */
    assert_ok(fmm_plan_set_points(plan, 3, x, NULL, 0, NULL));
    assert_int_equal(fmm_plan_execute(plan, density, p, wrong), FMM_ERR_ARGUMENT);
    assert_int_equal(fmm_plan_direct(plan, density, 3, NULL, p, wrong), FMM_ERR_ARGUMENT);
    assert_non_null(strstr(fmm_last_error(), "gradient"));
    assert_int_equal(fmm_plan_direct(plan, NULL, 3, NULL, p, right), FMM_ERR_ARGUMENT);
    assert_int_equal(fmm_plan_direct(plan, density, 3, NULL, NULL, right), FMM_ERR_ARGUMENT);
    density[1] = NAN;
    assert_int_equal(fmm_plan_execute(plan, density, p, right), FMM_ERR_INPUT);
    assert_int_equal(fmm_plan_direct(plan, density, 3, NULL, p, right), FMM_ERR_INPUT);
    assert_non_null(strstr(fmm_last_error(), "row 1 "));
    assert_true(p[0] == 42 && g[0] == 42);
    density[1] = 1;
    fmm_plan_destroy(&plan);
  }
}

static void results_beyond_double_precision_are_an_error_and_leave_all_untouched(void **state) {
  double x[6] = {0, 0, 0, 1e-200, 0, 0}, density[2] = {1e200, 1e200}, p[2] = {42, 42};
  fmm_options o = defaults(1e-6);
  fmm_plan *plan = NULL;
  assert_ok(fmm_plan_create(&plan, &o));
  assert_ok(fmm_plan_set_points(plan, 2, x, NULL, 0, NULL));
  assert_int_equal(fmm_plan_execute(plan, density, p, NULL), FMM_ERR_INPUT);
  assert_non_null(strstr(fmm_last_error(), "row 0 "));
  assert_true(p[0] == 42 && p[1] == 42);
  fmm_plan_destroy(&plan);
}

/* Regular points: errors add up in phase. */
static void lattices_and_even_lines_keep_the_tolerance(void **state) {
  fmm_options o = defaults(1e-6);
  for (int i = 0; i < N; i++) points[3 * i] = i / (double)N, points[3 * i + 1] = points[3 * i + 2] = 0;
  assert_true(worst_error(&o, N, points, 0, NULL) <= 1e-6);
  for (int i = 0; i < N; i++) points[3 * i] = i % 18, points[3 * i + 1] = i / 18 % 18, points[3 * i + 2] = i / 324;
  assert_true(worst_error(&o, N, points, 0, NULL) <= 1e-6);
}

/* All charge in one point at a box's corner: the worst place for its expansion, and nothing dilutes the error. */
static double error_of_a_lone_charge(const char *kernel, int components, double tolerance, fmm_density_sign sign, int gradient) {
  enum { M = 4000 };
  static double density[3 * M], p[3 * M], g[9 * M], exact[3 * M], slope[9 * M];
  fmm_options o = defaults(tolerance);
  fmm_plan *plan = NULL;
  o.leaf_size = 40, o.root_scale = 1, o.gradient = gradient, o.density_sign = sign, o.kernel = kernel;
  fill(0, 1, 0);
  memset(density, 0, sizeof density);
  for (int k = 0; k < components; k++) density[2 * components + k] = 1;
  for (int k = 0; k < 3; k++) points[k] = 0, points[3 + k] = 1, points[6 + k] = 0.5; /* the root is the unit cube */
  assert_ok(fmm_plan_create(&plan, &o));
  assert_ok(fmm_plan_set_points(plan, M, points, NULL, 0, NULL));
  assert_ok(fmm_plan_execute(plan, density, p, gradient ? g : NULL));
  assert_ok(fmm_plan_direct(plan, density, M, NULL, exact, gradient ? slope : NULL));
  fmm_plan_destroy(&plan);
  return fmax(relative_l2(M * components, p, exact), gradient ? relative_l2(3 * M * components, g, slope) : 0);
}

static void one_charge_at_a_corner_keeps_the_tolerance(void **state) {
  for (int digits = 3; digits <= 9; digits += 3) {
    double tolerance = pow(10, -digits);
    assert_true(error_of_a_lone_charge("laplace", 1, tolerance, FMM_DENSITY_SIGNED, 0) <= tolerance);
    assert_true(error_of_a_lone_charge("laplace", 1, tolerance, FMM_DENSITY_SIGNED, 1) <= tolerance);
    assert_true(error_of_a_lone_charge("laplace", 1, tolerance, FMM_DENSITY_NONNEGATIVE, 1) <= tolerance);
    assert_true(error_of_a_lone_charge("stokes", 3, tolerance, FMM_DENSITY_SIGNED, digits < 9) <= tolerance);
  }
}

static void bits_do_not_depend_on_the_number_of_threads(void **state) {
  static double density[N], one[4 * N], many[4 * N];
  char id[17] = "";
  assert_ok(fmm_generate_densities("signed", N, 5, density, 2));
  for (int kind = 0; kind <= 4; kind += 4)
    for (int threads = 1; threads <= 5; threads++) {
      fmm_options o = defaults(1e-5);
      fmm_plan *plan = NULL;
      fmm_plan_info info = {.struct_size = sizeof info};
      double *out = threads == 1 ? one : many;
      o.threads = threads, o.oversubscribe = 1, o.gradient = 1;
      fill(kind, 1, 0);
      assert_ok(fmm_plan_create(&plan, &o));
      assert_ok(fmm_plan_set_points(plan, N, points, NULL, 0, NULL));
      for (int repeat = 0; repeat < 2; repeat++) {
        assert_ok(fmm_plan_execute(plan, density, out, out + N));
        assert_memory_equal(one, out, sizeof one);
      }
      assert_ok(fmm_plan_get_info(plan, &info));
      if (threads == 1) strcpy(id, info.plan_id);
      assert_string_equal(id, info.plan_id);
      fmm_plan_destroy(&plan);
    }
}

static void the_prediction_is_for_the_threads_that_are_taken(void **state) {
  fmm_machine machine;
  double predicted[2];
  fmm_machine_nominal(16, &machine);
  fill(0, 1, 0);
  for (int k = 0; k < 2; k++) {
    fmm_options o = defaults(1e-6);
    fmm_plan *plan = NULL;
    fmm_plan_info info = {.struct_size = sizeof info};
    o.threads = k ? 16 : 2, o.oversubscribe = 1;
    assert_ok(fmm_plan_create_with(&plan, &o, &machine));
    assert_ok(fmm_plan_set_points(plan, N, points, NULL, 0, NULL));
    assert_ok(fmm_plan_get_info(plan, &info));
    predicted[k] = info.predicted_s;
    fmm_plan_destroy(&plan);
  }
  assert_true(predicted[0] > 4 * predicted[1]); /* an eighth of the cores, but as many parallel regions */
}

static void several_columns_give_the_same_as_one_by_one(void **state) {
  enum { M = 1500, COLUMNS = 7 };
  static double density[M * COLUMNS], p[M * COLUMNS], single[M], out[M];
  fmm_options o = defaults(1e-6);
  fmm_plan *plan = NULL;
  fill(0, 1, 0);
  assert_ok(fmm_generate_densities("signed", M * COLUMNS, 5, density, 2));
  o.n_columns = COLUMNS;
  assert_ok(fmm_plan_create(&plan, &o));
  assert_ok(fmm_plan_set_points(plan, M, points, NULL, 0, NULL));
  assert_ok(fmm_plan_execute(plan, density, p, NULL));
  fmm_plan_destroy(&plan);
  o.n_columns = 1;
  assert_ok(fmm_plan_create(&plan, &o));
  assert_ok(fmm_plan_set_points(plan, M, points, NULL, 0, NULL));
  for (int c = 0; c < COLUMNS; c++) {
    double column[M];
    for (int i = 0; i < M; i++) single[i] = density[i * COLUMNS + c], column[i] = p[i * COLUMNS + c];
    assert_ok(fmm_plan_execute(plan, single, out, NULL));
    assert_true(relative_l2(M, column, out) < 2e-6); /* each within 1e-6 of the truth */
  }
  fmm_plan_destroy(&plan);
}

static void every_failing_allocation_is_an_error_without_a_leak(void **state) {
  enum { M = 700 };
  static double density[M], p[M];
  size_t before = fmm_memory_now();
  fill(4, 1, 0);
  assert_ok(fmm_generate_densities("unit", M, 5, density, 2));
  for (int64_t nth = 1;; nth++) {
    fmm_options o = defaults(1e-3);
    o.order = 4, o.leaf_size = 20, o.root_scale = 1;
    fmm_plan *plan = NULL;
    fmm_memory_fail_at(nth);
    fmm_status status = fmm_plan_create(&plan, &o);
    if (status == FMM_OK) status = fmm_plan_set_points(plan, M, points, NULL, 0, NULL);
    if (status == FMM_OK) status = fmm_plan_execute(plan, density, p, NULL);
    fmm_memory_fail_at(0);
    fmm_plan_destroy(&plan);
    if (fmm_memory_now() != before) fail_msg("allocation %lld leaks %zu bytes", (long long)nth, fmm_memory_now() - before);
    if (status == FMM_OK) { assert_true(nth > 20); break; }
    assert_int_equal(status, FMM_ERR_MEMORY);
  }
}

/* At 14 digits of stokes an order takes minutes to find. */
static void no_order_is_sought_without_a_far_field(void **state) {
  enum { M = 200 };
  static double density[3 * M], p[3 * M], exact[3 * M];
  fmm_plan_info info = {.struct_size = sizeof info};
  fmm_options o = defaults(1e-14);
  fmm_plan *plan = NULL;
  o.kernel = "stokes";
  fill(0, 1, 0);
  assert_ok(fmm_generate_densities("signed", 3 * M, 5, density, 2));
  assert_ok(fmm_plan_create(&plan, &o));
  assert_ok(fmm_plan_set_points(plan, M, points, NULL, 0, NULL));
  assert_ok(fmm_plan_get_info(plan, &info));
  assert_int_equal(info.order, 0);
  assert_true(isnan(info.expected_error));
  assert_ok(fmm_plan_execute(plan, density, p, NULL));
  assert_ok(fmm_plan_direct(plan, density, M, NULL, exact, NULL));
  assert_true(relative_l2(3 * M, p, exact) <= 1e-14);
  fmm_plan_destroy(&plan);
}

/* Many lengths away from the few sources no order is enough, which it took 5 s to know; direct sums of so few pairs are known to be the fastest first. */
static void no_order_is_sought_where_pairs_are_few(void **state) {
  enum { SOURCES = 200, TARGETS = 20000 };
  static double sources[3 * SOURCES], targets[3 * TARGETS];
  fmm_plan_info info = {.struct_size = sizeof info};
  fmm_options o = defaults(1e-6);
  fmm_plan *plan = NULL;
  o.kernel = "yukawa", o.gradient = 1, o.n_params = 1, o.params[0] = (fmm_param){"lambda", 1000};
  assert_ok(fmm_generate_points("uniform", SOURCES, 3, sources, 2));
  assert_ok(fmm_generate_points("uniform", TARGETS, 4, targets, 2));
  assert_ok(fmm_plan_create(&plan, &o));
  assert_ok(fmm_plan_set_points(plan, SOURCES, sources, NULL, TARGETS, targets));
  assert_ok(fmm_plan_get_info(plan, &info));
  assert_int_equal(info.order, 0);
  assert_true(isnan(info.expected_error));
  fmm_plan_destroy(&plan);
}

static void execute_allocates_nothing(void **state) {
  static double density[N], p[N];
  fmm_options o = defaults(1e-6);
  fmm_plan *plan = NULL;
  fill(4, 1, 0);
  assert_ok(fmm_generate_densities("unit", N, 5, density, 2));
  assert_ok(fmm_plan_create(&plan, &o));
  assert_ok(fmm_plan_set_points(plan, N, points, NULL, 0, NULL));
  int64_t before = fmm_memory_count();
  assert_ok(fmm_plan_execute(plan, density, p, NULL));
  assert_int_equal(fmm_memory_count(), before);
  fmm_plan_destroy(&plan);
}

static void impossible_numbers_of_points_are_refused_before_any_is_read(void **state) {
  static const double point[3] = {0, 0, 0};
  fmm_plan *plan = NULL;
  fmm_options o = defaults(1e-6);
  assert_ok(fmm_plan_create(&plan, &o));
  assert_int_equal(fmm_plan_set_points(plan, -1, point, NULL, 0, NULL), FMM_ERR_ARGUMENT);
  assert_int_equal(fmm_plan_set_points(plan, INT64_MAX / 8, point, NULL, 0, NULL), FMM_ERR_ARGUMENT);
  assert_non_null(strstr(fmm_last_error(), "1152921504606846975"));
  assert_int_equal(fmm_plan_set_points(plan, 1, point, NULL, INT64_MAX, point), FMM_ERR_ARGUMENT);
  assert_int_equal(fmm_plan_set_points(plan, 1, NULL, NULL, 0, NULL), FMM_ERR_ARGUMENT);
  fmm_plan_destroy(&plan);
}

static void options_out_of_range_are_refused_with_their_value(void **state) {
  fmm_plan *plan = NULL;
  fmm_options o = defaults(1e-6);
  o.order = 1;
  assert_int_equal(fmm_plan_create(&plan, &o), FMM_ERR_ARGUMENT);
  assert_non_null(strstr(fmm_last_error(), "order is 1"));
  o = defaults(NAN);
  assert_int_equal(fmm_plan_create(&plan, &o), FMM_ERR_ARGUMENT);
  o = defaults(1e-6), o.kernel = "laplac";
  assert_int_equal(fmm_plan_create(&plan, &o), FMM_ERR_ARGUMENT);
  assert_non_null(strstr(fmm_last_error(), "laplace"));
  o = defaults(1e-6), o.threads = 4000;
  assert_int_equal(fmm_plan_create(&plan, &o), FMM_ERR_ARGUMENT);
  o = defaults(1e-6), o.root_scale = 3;
  assert_int_equal(fmm_plan_create(&plan, &o), FMM_ERR_ARGUMENT);
  assert_null(plan);
}

static void arrays_on_a_device_that_is_not_there_are_refused_by_name(void **state) {
  fmm_gpu_info gpu;
  fmm_gpu_query(0, &gpu);
  for (int k = 0; k < 2; k++) {
    fmm_plan *plan = NULL;
    fmm_options o = defaults(1e-6);
    *(k ? &o.densities_space : &o.results_space) = FMM_MEMORY_DEVICE;
    o.schedule = FMM_SCHEDULE_CPU;
    fmm_status status = fmm_plan_create(&plan, &o);
    assert_int_equal(status, gpu.present ? FMM_OK : FMM_ERR_DEVICE);
    if (status != FMM_OK) assert_non_null(strstr(fmm_last_error(), k ? "densities_space is FMM_MEMORY_DEVICE" : "results_space is FMM_MEMORY_DEVICE"));
    fmm_plan_destroy(&plan);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tiny_numbers_of_points_are_exact), cmocka_unit_test(no_sources_gives_zero_at_every_target),
      cmocka_unit_test(degenerate_shapes_keep_the_tolerance), cmocka_unit_test(extreme_coordinates_keep_the_tolerance), cmocka_unit_test(units_that_double_precision_cannot_hold_are_refused_with_the_points), cmocka_unit_test(extreme_units_keep_the_tolerance_of_kernels_with_a_length),
      cmocka_unit_test(targets_far_outside_the_sources_keep_the_tolerance), cmocka_unit_test(zero_densities_give_zero),
      cmocka_unit_test(not_finite_input_names_the_row_and_leaves_all_untouched), cmocka_unit_test(a_plan_without_points_has_no_timeline), cmocka_unit_test(a_thread_with_half_a_megabyte_of_stack_may_own_a_plan), cmocka_unit_test(direct_sums_refuse_what_an_execution_refuses), cmocka_unit_test(results_beyond_double_precision_are_an_error_and_leave_all_untouched),
      cmocka_unit_test(lattices_and_even_lines_keep_the_tolerance), cmocka_unit_test(one_charge_at_a_corner_keeps_the_tolerance), cmocka_unit_test(bits_do_not_depend_on_the_number_of_threads), cmocka_unit_test(the_prediction_is_for_the_threads_that_are_taken),
      cmocka_unit_test(several_columns_give_the_same_as_one_by_one), cmocka_unit_test(every_failing_allocation_is_an_error_without_a_leak),
      cmocka_unit_test(no_order_is_sought_without_a_far_field), cmocka_unit_test(no_order_is_sought_where_pairs_are_few), cmocka_unit_test(execute_allocates_nothing), cmocka_unit_test(impossible_numbers_of_points_are_refused_before_any_is_read),
                                     cmocka_unit_test(options_out_of_range_are_refused_with_their_value), cmocka_unit_test(arrays_on_a_device_that_is_not_there_are_refused_by_name)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
