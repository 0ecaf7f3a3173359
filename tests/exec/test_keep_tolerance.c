/* fmm_plan_keep_tolerance: what it finds is about the true error, also where few targets have all of it; densities that cancel get another plan, which keeps the tolerance; and nothing else changes. */
#include "test.h"
#include "hybridfmm/fmm.h"
#include "plan_error.h"
#include "runtime/memory.h"

typedef struct scene {
  fmm_options options;
  int64_t n, m; /* sources; targets of their own, or 0 */
  int components, outputs;
  double *points, *targets, *densities, *potential, *gradient;
  fmm_plan *plan;
} scene;

static void assert_refused(fmm_status status, fmm_status expected, const char *word) {
  assert_int_equal(status, expected);
  if (!strstr(fmm_last_error(), word)) fail_msg("'%s' lacks '%s'", fmm_last_error(), word);
}

static double *numbers(int64_t n) {
  double *x = calloc((size_t)(n + 1), sizeof *x);
  assert_non_null(x);
  return x;
}

static scene make(int64_t n, int64_t m, const char *kernel, double tolerance, int gradient, int columns) {
  scene s = {.options = defaults(tolerance), .n = n, .m = m};
  s.components = s.outputs = strcmp(kernel, "stokes") ? 1 : 3;
  s.options.kernel = kernel, s.options.gradient = gradient, s.options.n_columns = columns, s.options.schedule = FMM_SCHEDULE_CPU;
  const int64_t results = (m ? m : n) * s.outputs * columns;
  s.points = numbers(3 * n), s.targets = m ? numbers(3 * m) : NULL, s.densities = numbers(n * s.components * columns);
  s.potential = numbers(results), s.gradient = gradient ? numbers(3 * results) : NULL;
  return s;
}

static void plan_scene(scene *s) {
  assert_ok(fmm_plan_create(&s->plan, &s->options));
  assert_ok(fmm_plan_set_points(s->plan, s->n, s->points, NULL, s->m, s->targets));
  assert_ok(fmm_plan_execute(s->plan, s->densities, s->potential, s->gradient));
}

static void end_scene(scene *s) {
  fmm_plan_destroy(&s->plan);
  free(s->points), free(s->targets), free(s->densities), free(s->potential), free(s->gradient);
}

static fmm_plan_info info_of(const scene *s) {
  fmm_plan_info i = {.struct_size = sizeof i};
  assert_ok(fmm_plan_get_info(s->plan, &i));
  return i;
}

static int keep(scene *s, double *error) {
  int changed = -1;
  assert_ok(fmm_plan_keep_tolerance(s->plan, s->densities, s->potential, s->gradient, error, &changed));
  return changed;
}

/* At every step'th target: the worst column of potential and gradient. */
static double true_error(const scene *s, int64_t step) {
  const int64_t rows = ((s->m ? s->m : s->n) + step - 1) / step, columns = s->options.n_columns, width = s->outputs * columns;
  double *p = numbers(rows * width), *g = s->gradient ? numbers(3 * rows * width) : NULL, *a = numbers(3 * rows * width), *b = numbers(3 * rows * width), worst = 0;
  int64_t *row = malloc((size_t)(rows + 1) * sizeof *row);
  assert_non_null(row);
  for (int64_t i = 0; i < rows; i++) row[i] = i * step;
  assert_ok(fmm_plan_direct(s->plan, s->densities, rows, row, p, g));
  for (int64_t c = 0; c < columns; c++)
    for (int kind = 0; kind <= (g != NULL); kind++) {
      const int64_t values = (kind ? 3 : 1) * s->outputs;
      for (int64_t i = 0; i < rows * values; i++)
        a[i] = (kind ? s->gradient : s->potential)[(row[i / values] * values + i % values) * columns + c], b[i] = (kind ? g : p)[i * columns + c];
      worst = fmax(worst, relative_l2(rows * values, a, b));
    }
  free(p), free(g), free(a), free(b), free(row);
  return worst;
}

/* a latitudes, 2a longitudes on the unit sphere. Column 0 of the forces: the normals times sin t, a drop; others: at random. */
static scene drop(int a, double tolerance, int columns) {
  scene s = make(2 * (int64_t)a * a, 0, "stokes", tolerance, 0, columns);
  const double pi = acos(-1);
  assert_ok(fmm_generate_densities("signed", s.n * 3 * columns, 3, s.densities, 2));
  for (int64_t i = 0; i < s.n; i++) {
    const double t = ((double)(i / (2 * a)) + 0.5) * pi / a, f = (double)(i % (2 * a)) * pi / a, x[3] = {sin(t) * cos(f), sin(t) * sin(f), cos(t)};
    for (int k = 0; k < 3; k++) s.points[3 * i + k] = x[k], s.densities[(3 * i + k) * columns] = x[k] * sin(t);
  }
  return s;
}

static void what_keeps_the_tolerance_stays(void **state) {
  for (int gradient = 0; gradient < 2; gradient++) {
    scene s = make(20000, 0, "laplace", 1e-4, gradient, 2);
    double error = -1;
    assert_ok(fmm_generate_points("plummer", s.n, 1, s.points, 2));
    assert_ok(fmm_generate_densities("signed", s.n * 2, 2, s.densities, 2));
    plan_scene(&s);
    const fmm_plan_info before = info_of(&s);
    const size_t held = fmm_memory_now();
    assert_int_equal(keep(&s, &error), 0);
    assert_int_equal(fmm_memory_now(), held);
    const double truth = true_error(&s, 1);
    if (!(error < 1.5 * truth && truth < 1.5 * error)) fail_msg("estimated %g, true %g", error, truth);
    const fmm_plan_info after = info_of(&s);
    assert_string_equal(after.plan_id, before.plan_id);
    assert_true(after.tightened == 1 && after.last_evaluation_s == before.last_evaluation_s);
    assert_ok(fmm_plan_keep_tolerance(s.plan, s.densities, s.potential, s.gradient, NULL, NULL));
    end_scene(&s);
  }
}

/* 4.0e-2 and 3.1e-6 before; with a column that does not cancel beside it too. */
static void what_cancels_gets_another_plan(void **state) {
  static const double tolerances[] = {1e-2, 1e-6};
  for (int columns = 1; columns <= 2; columns++)
    for (int t = 0; t < 2; t++) {
      scene s = drop(columns > 1 ? 60 : 180, tolerances[t], columns);
      double error = 0, first = 0;
      int rounds = 0;
      plan_scene(&s);
      const fmm_plan_info before = info_of(&s);
      while (keep(&s, &error) && rounds++ < 5) {
        if (!first) first = error;
        assert_true(info_of(&s).tightened > 1 && info_of(&s).predicted_s > 0 && !(info_of(&s).last_evaluation_s > 0));
        assert_ok(fmm_plan_execute(s.plan, s.densities, s.potential, s.gradient));
      }
      const fmm_plan_info after = info_of(&s);
      const double truth = true_error(&s, 23);
      if (columns == 1) assert_true(first > 2 * tolerances[t] && rounds > 0 && after.order > before.order);
      assert_true(truth <= tolerances[t] && error <= tolerances[t]);
      if (rounds) assert_true(strcmp(before.plan_id, after.plan_id) && after.setup_s > before.setup_s);
      assert_ok(fmm_plan_set_points(s.plan, s.n, s.points, NULL, 0, NULL)); /* it stays so */
      assert_string_equal(info_of(&s).plan_id, after.plan_id);
      end_scene(&s);
    }
}

static void what_the_options_name_stays(void **state) {
  for (int named = 0; named < 2; named++) {
    scene s = drop(100, 1e-4, 1);
    double error = 0;
    if (named) s.options.precision = FMM_PRECISION_MIXED;
    else s.options.order = 3;
    plan_scene(&s);
    const fmm_plan_info before = info_of(&s);
    assert_int_equal(keep(&s, &error), 0);
    assert_true(error > 1e-4);
    assert_string_equal(info_of(&s).plan_id, before.plan_id);
    end_scene(&s);
  }
}

/* No order helps against rounding: charges of both signs 1e-8 apart, far away. */
static void what_no_plan_can_keep_stays(void **state) {
  scene s = make(4000, 1000, "laplace", 1e-12, 0, 1);
  double error = 0;
  s.options.leaf_size = 50; /* a far field: direct sums would round as those that they are held against */
  assert_ok(fmm_generate_points("uniform", s.n, 1, s.points, 1));
  assert_ok(fmm_generate_points("uniform", s.m, 2, s.targets, 1));
  for (int64_t i = 0; i < s.n; i++) s.densities[i] = i % 2 ? -1 : 1;
  for (int64_t i = 1; i < s.n; i += 2)
    for (int k = 0; k < 3; k++) s.points[3 * i + k] = s.points[3 * (i - 1) + k] + 1e-8;
  for (int64_t i = 0; i < s.m; i++) s.targets[3 * i] += 4;
  plan_scene(&s);
  assert_int_equal(keep(&s, &error), 0);
  assert_true(error > 1e-12 && info_of(&s).tightened == 1);
  end_scene(&s);
}

/* One target in 5,000 has nearly all the field; its neighbour the only source of weight. */
static void few_loud_targets_are_seen(void **state) {
  scene s = make(5000, 20000, "laplace", 1e-5, 1, 1);
  double error = 0;
  assert_ok(fmm_generate_points("uniform", s.n, 1, s.points, 1));
  assert_ok(fmm_generate_points("uniform", s.m, 2, s.targets, 1));
  assert_ok(fmm_generate_densities("signed", s.n, 3, s.densities, 1));
  for (int i = 0; i < 4; i++)
    for (int k = 0; k < 3; k++) s.targets[3 * 5000 * i + k] = s.points[3 * 1000 * i + k] + 1e-3 * (k == i % 3);
  plan_scene(&s);
  keep(&s, &error);
  const double truth = true_error(&s, 1);
  if (!(error < 2 * truth && truth < 2 * error)) fail_msg("estimated %g, true %g", error, truth);
  end_scene(&s);
}

/* A lattice of charges of both signs that fade towards its faces, 1e10 times as large as 20,000 others far off among which are nearly all targets; 100 of 60,100 are beside the lattice, no louder than the others, and have all of the error: 3.9e-5. */
static void targets_exposed_to_what_cancels_are_seen(void **state) {
  enum { EDGE = 16, IONS = EDGE * EDGE * EDGE, OTHERS = 20000, TARGETS = 60000, BESIDE = 100 };
  const double pi = acos(-1);
  scene s = make(IONS + OTHERS, TARGETS + BESIDE, "laplace", 1e-6, 0, 1);
  assert_ok(fmm_generate_points("uniform", s.n, 1, s.points, 1));
  assert_ok(fmm_generate_points("uniform", s.m, 2, s.targets, 1));
  assert_ok(fmm_generate_densities("unit", s.n, 3, s.densities, 1));
  for (int i = 0; i < IONS; i++) {
    const int at[3] = {i % EDGE, i / EDGE % EDGE, i / EDGE / EDGE};
    s.densities[i] = (at[0] + at[1] + at[2]) % 2 ? -1e10 : 1e10;
    for (int k = 0; k < 3; k++) s.points[3 * i + k] = at[k] * 0.2 / EDGE, s.densities[i] *= pow(sin(pi * (at[k] + 0.5) / EDGE), 4);
  }
  for (int64_t i = 3 * (int64_t)IONS; i < 3 * s.n; i++) s.points[i] = 0.8 + 0.2 * s.points[i];
  for (int64_t i = 0; i < 3 * (int64_t)TARGETS; i++) s.targets[i] = 0.8 + 0.2 * s.targets[i];
  for (int64_t i = 3 * (int64_t)TARGETS; i < 3 * s.m; i++) s.targets[i] = (i % 3 ? 0.05 : 0.32) + 0.1 * s.targets[i];
  plan_scene(&s);
  double error = 0;
  int rounds = 0;
  while (keep(&s, &error) && rounds++ < 6) assert_ok(fmm_plan_execute(s.plan, s.densities, s.potential, NULL));
  const double truth = true_error(&s, 1);
  if (!(rounds > 0 && truth <= 1e-6)) fail_msg("%d rounds, estimated %g, true %g", rounds, error, truth);
  end_scene(&s);
}

/* Gradients inside a sphere of equal charges at 9 digits, of which rounding leaves some 3e-9: a few plans, then none, and the error is told. */
static void what_no_plan_keeps_ends(void **state) {
  scene s = make(20000, 2000, "laplace", 1e-9, 1, 1);
  double error = 0, first = 0;
  int rounds = 0;
  assert_ok(fmm_generate_points("uniform", s.m, 2, s.targets, 1));
  for (int64_t i = 0; i < s.n; i++) {
    const double z = 1 - (2 * (double)i + 1) / (double)s.n, r = sqrt(1 - z * z), f = 2.399963229728653 * (double)i;
    s.points[3 * i] = r * cos(f), s.points[3 * i + 1] = r * sin(f), s.points[3 * i + 2] = z, s.densities[i] = 1;
  }
  for (int64_t i = 0; i < 3 * s.m; i++) s.targets[i] -= 0.5;
  plan_scene(&s);
  while (keep(&s, &error)) {
    first = first > 0 ? first : error;
    assert_true(++rounds <= 5);
    assert_ok(fmm_plan_execute(s.plan, s.densities, s.potential, s.gradient));
  }
  const double truth = true_error(&s, 1);
  if (!(rounds > 0 && error > 1e-9 && error < first / 10 && error < 2 * truth && truth < 2 * error)) fail_msg("%d rounds, estimated %g, first %g, true %g", rounds, error, first, truth);
  end_scene(&s);
}

/* Single precision holds no root's cube times densities of 1e-304: gradients of such are 0, which is not what direct sums are. */
static void gradients_that_are_lost_are_seen(void **state) {
  scene s = make(3, 0, "laplace", 1e-6, 1, 1);
  double error = -1;
  s.options.scale = 1, s.options.precision = FMM_PRECISION_SINGLE;
  for (int i = 0; i < 3; i++) s.points[3 * i] = i, s.densities[i] = 1e-304;
  plan_scene(&s);
  for (int i = 0; i < 9; i++) s.gradient[i] = 0; /* whatever this machine's vectors make of it */
  assert_int_equal(keep(&s, &error), 0); /* named */
  assert_true(error == 1);
  for (int i = 0; i < 3; i++) s.potential[i] = 0;
  keep(&s, &error);
  assert_true(error == 1);
  end_scene(&s);
}

static void results_that_are_not_finite_are_not_judged(void **state) {
  static const double bad[] = {INFINITY, NAN};
  scene s = make(3000, 0, "laplace", 1e-5, 0, 1);
  assert_ok(fmm_generate_points("uniform", s.n, 1, s.points, 1));
  assert_ok(fmm_generate_densities("signed", s.n, 3, s.densities, 1));
  plan_scene(&s);
  for (int i = 0; i < 2; i++) {
    double error = 0;
    s.potential[5] = bad[i];
    assert_int_equal(keep(&s, &error), 0);
    assert_true(isnan(error));
  }
  end_scene(&s);
}

static void threads_change_nothing(void **state) {
  double tightened[2], error[2];
  char id[2][17];
  for (int k = 0; k < 2; k++) {
    scene s = drop(100, 1e-2, 1);
    s.options.threads = 1 + 2 * k, s.options.oversubscribe = 1;
    plan_scene(&s);
    assert_int_equal(keep(&s, &error[k]), 1);
    const fmm_plan_info info = info_of(&s);
    tightened[k] = info.tightened;
    memcpy(id[k], info.plan_id, sizeof id[k]);
    end_scene(&s);
  }
  assert_true(tightened[0] == tightened[1] && error[0] == error[1]);
  assert_string_equal(id[0], id[1]);
}

static void twins_clusters_and_next_to_nothing_are_served(void **state) {
  for (int kind = 0; kind < 5; kind++) {
    scene s = make(kind < 3 ? kind : 4000, 0, "laplace", 1e-5, 1, 1);
    double error = -1;
    assert_ok(fmm_generate_points("uniform", s.n, 1, s.points, 1));
    assert_ok(fmm_generate_densities("signed", s.n, 3, s.densities, 1));
    for (int64_t i = 0; kind == 3 && i < s.n; i++)
      for (int k = 0; k < 3 && i % 3; k++) s.points[3 * i + k] = s.points[3 * (i / 300) + k]; /* many in few places */
    for (int64_t i = 0; kind == 4 && i < s.n / 2; i++)
      for (int k = 0; k < 3; k++) s.points[3 * i + k] *= 1e-9;
    plan_scene(&s);
    keep(&s, &error);
    const double truth = s.n ? true_error(&s, 1) : 0;
    if (!(error <= 2 * truth + 1e-15 && truth <= 2 * error + 1e-15)) fail_msg("kind %d: estimated %g, true %g", kind, error, truth);
    end_scene(&s);
  }
}

static void a_failure_leaves_the_plan_as_it_was(void **state) {
  scene s = drop(100, 1e-2, 1);
  int changed = -1, failures = 0;
  double error = -1;
  plan_scene(&s);
  const fmm_plan_info before = info_of(&s);
  const size_t held = fmm_memory_now();
  for (long k = 1;; k += 1 + k / 8) {
    fmm_memory_fail_at(k);
    const fmm_status status = fmm_plan_keep_tolerance(s.plan, s.densities, s.potential, s.gradient, &error, &changed);
    fmm_memory_fail_at(0);
    if (status == FMM_OK) break;
    assert_int_equal(status, FMM_ERR_MEMORY);
    assert_true(changed == -1 && error == -1);
    assert_string_equal(info_of(&s).plan_id, before.plan_id);
    assert_true(info_of(&s).tightened == 1);
    assert_int_equal(fmm_memory_now(), held);
    failures++;
  }
  if (failures <= 20 || changed != 1) fail_msg("%d failures, changed %d, error %g", failures, changed, error);
  end_scene(&s);
}

static void misuse_is_refused(void **state) {
  scene s = make(100, 0, "laplace", 1e-5, 0, 1);
  int changed;
  assert_refused(fmm_plan_keep_tolerance(NULL, s.densities, s.potential, NULL, NULL, &changed), FMM_ERR_ARGUMENT, "plan is NULL");
  assert_ok(fmm_plan_create(&s.plan, &s.options));
  assert_refused(fmm_plan_keep_tolerance(s.plan, s.densities, s.potential, NULL, NULL, &changed), FMM_ERR_ARGUMENT, "fmm_plan_set_points");
  assert_ok(fmm_generate_points("uniform", s.n, 1, s.points, 1));
  assert_ok(fmm_plan_set_points(s.plan, s.n, s.points, NULL, 0, NULL));
  assert_refused(fmm_plan_keep_tolerance(s.plan, s.densities, s.potential, NULL, NULL, &changed), FMM_ERR_ARGUMENT, "fmm_plan_execute");
  assert_ok(fmm_plan_execute(s.plan, s.densities, s.potential, NULL));
  assert_refused(fmm_plan_keep_tolerance(s.plan, NULL, s.potential, NULL, NULL, &changed), FMM_ERR_ARGUMENT, "densities is NULL");
  assert_refused(fmm_plan_keep_tolerance(s.plan, s.densities, NULL, NULL, NULL, &changed), FMM_ERR_ARGUMENT, "potential is NULL");
  s.densities[7] = NAN;
  assert_refused(fmm_plan_keep_tolerance(s.plan, s.densities, s.potential, NULL, NULL, &changed), FMM_ERR_INPUT, "row 7");
  end_scene(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_keeps_the_tolerance_stays), cmocka_unit_test(what_cancels_gets_another_plan), cmocka_unit_test(what_the_options_name_stays),
                                     cmocka_unit_test(what_no_plan_can_keep_stays), cmocka_unit_test(few_loud_targets_are_seen), cmocka_unit_test(targets_exposed_to_what_cancels_are_seen), cmocka_unit_test(what_no_plan_keeps_ends),
                                     cmocka_unit_test(gradients_that_are_lost_are_seen), cmocka_unit_test(results_that_are_not_finite_are_not_judged), cmocka_unit_test(threads_change_nothing),
                                     cmocka_unit_test(twins_clusters_and_next_to_nothing_are_served), cmocka_unit_test(a_failure_leaves_the_plan_as_it_was), cmocka_unit_test(misuse_is_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
