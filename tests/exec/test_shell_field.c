/* The field of a far shell (kernels/shell_field.h): its series, operators that keep it to rounding, and what it is for: gradients where no charge is near. */
#include "test.h"

#include <math.h>

#include "kernels/operators_parts.h"
#include "kernels/pair/shell.h"
#include "kernels/shell_field.h"
#include "plan_error.h"
#include "runtime/generate.h"
#include "runtime/memory.h"

enum { HALF_WIDTH = 2 /* of the root */, LEVEL = 3 };
static double params[FMM_MAX_PARAMS];

static void the_series_are_those_of_sinh(void **state) {
  for (double x = 0.02; x <= 2; x += 0.02) {
    const long double y = x, value = sinhl(y) / y, slope = (coshl(y) - value) / (2 * y * y);
    assert_true(fabsl(fmm_shell_value(x * x) - value) <= 4e-16L * value);
    assert_true(fabsl(fmm_shell_slope(x * x) - slope) <= 2e-15L * slope);
  }
  assert_true(fmm_shell_value(0) == 1);
}

static double noise(int i) { return sin(1.0 + 12.9898 * i + 0.37 * i * (i % 7)); }

/* A component's field, or (axis 0 .. 2) its derivative there over that of the value at the origin, at the check points of a box of this centre, around the origin. */
static void fill_field(const fmm_operators *o, const double center[3], double half_width, int component, int axis, double *natural) {
  for (int i = 0; i < o->n; i++) natural[i] = 0;
  for (int i = 0; i < o->n_surface; i++) {
    double r2 = 0, at[3];
    for (int a = 0; a < 3; a++) at[a] = center[a] + FMM_INNER_RADIUS * half_width * o->surface[3 * i + a], r2 += at[a] * at[a];
    const long double x = sqrt(o->shell_decay2 * r2), value = o->shell_decay2 > 0 ? sinhl(x) / x : 1, slope = o->shell_decay2 > 0 ? 3 * (coshl(x) - value) / (x * x) : 1;
    natural[component * o->n_surface + i] = (double)(axis < 0 ? value : slope * at[axis] / half_width);
  }
}

static double largest_difference(int n, const double *a, const double *b) {
  double largest = 0;
  for (int i = 0; i < n; i++) largest = fmax(largest, fabs(a[i] - b[i]));
  return largest;
}

/* Largest potential that equivalents on the outer surface make within the box. */
static double largest_inside(const fmm_operators *o, double half_width, const double *equivalent) {
  double largest = 0, block[9];
  const int nc = o->parity.n_components;
  for (int p = 0; p < 20; p++) {
    double at[3], sum[3] = {0};
    for (int a = 0; a < 3; a++) at[a] = half_width * noise(3 * p + a);
    for (int i = 0; i < o->n_surface; i++) {
      double from[3];
      for (int a = 0; a < 3; a++) from[a] = o->outer_radius * half_width * o->surface[3 * i + a];
      o->pair->matrix(at, from, o->params, block);
      for (int k = 0; k < nc * nc; k++) sum[k / nc] += block[k] * equivalent[k % nc * o->n_surface + i];
    }
    for (int k = 0; k < nc; k++) largest = fmax(largest, fabs(sum[k]));
  }
  return largest;
}

/* Surfaces alone err by 1e-3 to 1e-12; what is kept, by some roundings. */
static void check_l2l(const fmm_operators *o, const fmm_level_operators *set, int component, int axis, double *v) {
  const int n = o->n;
  double *coefficients = v + n, *made = v + 2 * n, *wanted = v + 3 * n, *scratch = v + 4 * n, h = set->half_width;
  fill_field(o, (const double[3]){0, 0, 0}, h, component, axis, v);
  fmm_apply_first(o, set->down_first, 1, v, coefficients, scratch);
  for (int octant = 0; octant < 8; octant++) {
    const double center[3] = {octant & 1 ? h / 2 : -h / 2, octant & 2 ? h / 2 : -h / 2, octant & 4 ? h / 2 : -h / 2};
    for (int i = 0; i < n; i++) made[i] = 0;
    fmm_apply_l2l(o, set, octant, coefficients, made, scratch);
    fill_field(o, center, h / 2, component, axis, wanted);
    for (int i = 0; i < n && axis >= 0; i++) wanted[i] /= 2; /* in units of the child's half-width before */
    if (!(largest_difference(n, made, wanted) < 2e-14)) fail_msg("%s, order %d, octant %d, axis %d: L2L errs by %g", o->pair->info->name, o->order, octant, axis, largest_difference(n, made, wanted));
  }
}

static void check_operators(const fmm_pair *pair, int order) {
  fmm_operators *o = NULL;
  double *v = NULL, parts[3];
  assert_ok(fmm_operators_create(&o, pair, params, order, HALF_WIDTH, LEVEL + 1, 2));
  const fmm_level_operators *set = fmm_operators_at(o, LEVEL);
  const double h = set->half_width, origin[3] = {0, 0, 0};
  const int n = o->n;
  assert_non_null(set->shell);
  assert_ok(FMM_ALLOCATE(&v, 7 * n, "vectors"));
  for (int k = 0; k < o->parity.n_components; k++) {
    double *coefficients = v + n, *made = v + 2 * n, *scratch = v + 4 * n;
    fill_field(o, origin, h, k, -1, v);
    fmm_apply_first(o, set->down_first, 1, v, coefficients, scratch);
    fmm_shell_parts(o, set, coefficients, parts);
    for (int i = 0; i < o->parity.n_components; i++) assert_true(fabs(parts[i] - (i == k)) < 1e-14);
    fmm_apply_second(o, set->down_second, 1, coefficients, made, scratch);
    if (!(largest_inside(o, h, made) < 1e-13)) fail_msg("%s, order %d: %g is left of the field in the equivalents", pair->info->name, order, largest_inside(o, h, made));
    for (int axis = -1; axis < 3; axis++)
      if (axis != k || o->parity.n_components == 1) check_l2l(o, set, k, axis, v); /* u_k = x_k alone is no flow */
  }
  FMM_FREE(&v);
  fmm_operators_destroy(&o);
}

static void operators_keep_shell_fields_to_rounding(void **state) {
  static const char *const names[] = {"laplace", "yukawa", "stokes"};
  const fmm_pair *pair = NULL;
  for (int k = 0; k < 3; k++) {
    assert_ok(fmm_pair_find(names[k], &pair));
    assert_ok(fmm_pair_resolve_params(pair->info, 0, NULL, params));
    for (int order = 3; order <= (k == 2 ? 9 : 12); order++) check_operators(pair, order);
  }
}

/* The same pairs, as if nothing were known of their mirror images. */
static void so_they_do_without_parity(void **state) {
  static const char *const names[] = {"laplace", "stokes"};
  for (int k = 0; k < 2; k++) {
    const fmm_pair *pair = NULL;
    assert_ok(fmm_pair_find(names[k], &pair));
    assert_ok(fmm_pair_resolve_params(pair->info, 0, NULL, params));
    fmm_pair_info info = *pair->info;
    info.parity = FMM_PARITY_NONE;
    const fmm_pair plain = {.info = &info, .reference = pair->reference, .matrix = pair->matrix};
    check_operators(&plain, 4);
  }
}

static void boxes_that_a_kernel_dies_away_in_keep_none(void **state) {
  const fmm_pair *pair = NULL;
  assert_ok(fmm_pair_find("yukawa", &pair));
  assert_ok(fmm_pair_resolve_params(pair->info, 0, NULL, params));
  fmm_operators *o = NULL;
  assert_ok(fmm_operators_create(&o, pair, params, 4, 8 * FMM_SHELL_MOST, 5, 2)); /* half-widths of 2, 1 and 1/2 lengths from level 2 on */
  assert_null(o->level[2].shell);
  assert_non_null(o->level[3].shell);
  assert_non_null(o->level[4].shell);
  fmm_operators_destroy(&o);
}

enum { CHARGES = 300, TRACERS = 3000, ALL = CHARGES + TRACERS };
/* Errors of gradients at points without density, in a cube of this side within the unit cube of charges; own: as targets. */
static double tracer_error(const char *kernel, double side, double tolerance, fmm_density_sign sign, int own) {
  const int nc = strcmp(kernel, "stokes") ? 1 : 3;
  static double points[3 * ALL], densities[3 * ALL], p[3 * ALL], g[9 * ALL], direct_p[3 * ALL], direct_g[9 * ALL];
  fmm_options o = defaults(tolerance);
  fmm_plan *plan = NULL;
  assert_ok(fmm_generate_points("uniform", ALL, 7, points, 2));
  assert_ok(fmm_generate_densities(sign == FMM_DENSITY_SIGNED ? "signed" : "unit", 3 * ALL, 8, densities, 2));
  for (int i = CHARGES; i < ALL; i++)
    for (int a = 0; a < 3; a++) points[3 * i + a] = 0.3 + side * (points[3 * i + a] - 0.5);
  for (int i = nc * CHARGES; i < nc * ALL; i++) densities[i] = 0;
  o.kernel = kernel, o.gradient = 1, o.leaf_size = 30; /* small, so that all levels work */
  assert_ok(fmm_plan_create(&plan, &o));
  assert_ok(fmm_plan_set_points(plan, own ? CHARGES : ALL, points, NULL, own ? TRACERS : 0, own ? points + 3 * CHARGES : NULL));
  assert_ok(fmm_plan_execute(plan, densities, p, g));
  assert_ok(fmm_plan_direct(plan, densities, own ? TRACERS : ALL, NULL, direct_p, direct_g));
  fmm_plan_destroy(&plan);
  const int64_t first = own ? 0 : 3 * nc * CHARGES;
  return relative_l2(3 * nc * TRACERS, g + first, direct_g + first);
}

/* Without the shell field's own way, of 20,000 tracers, Laplace erred by 3.4 and 8.1e-6 where 1e-2 and 1e-6 were asked for a millionth of the side, Yukawa by 0.21 and 1.3e-5 for a hundredth and a thousandth. */
static void gradients_where_no_charge_is_near_keep_the_tolerance(void **state) {
  static const double sides[] = {1e-1, 1e-2, 1e-3, 1e-6}, tolerances[] = {1e-2, 1e-3, 1e-6};
  static const char *const kernels[] = {"laplace", "yukawa", "stokes"};
  int failures = 0;
  for (int k = 0; k < 3; k++)
    for (int s = 0; s < 4; s++)
      for (int t = 0; t < 3; t++)
        for (int own = 0; own < 2; own++) {
          const fmm_density_sign sign = (s + t + own) % 2 ? FMM_DENSITY_SIGNED : FMM_DENSITY_NONNEGATIVE;
          const double error = tracer_error(kernels[k], sides[s], tolerances[t], sign, own);
          if (error <= tolerances[t]) continue;
          failures++;
          print_message("   %s, side %g, %g asked, %s: %.1e\n", kernels[k], sides[s], tolerances[t], own ? "targets of their own" : "points without density", error);
        }
  assert_int_equal(failures, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_series_are_those_of_sinh), cmocka_unit_test(operators_keep_shell_fields_to_rounding), cmocka_unit_test(so_they_do_without_parity),
                                     cmocka_unit_test(boxes_that_a_kernel_dies_away_in_keep_none), cmocka_unit_test(gradients_where_no_charge_is_near_keep_the_tolerance)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
