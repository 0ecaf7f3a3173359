/* Pair sums between points and surfaces of lattice points (pair_sums_lattice.c), every instruction set and accuracy, against the plain C
 * reference on hostile input, in the manner of checkasm; and the rows of the surface that they go by.
 * Bounds as in test_pair_sums.c: full: root and exponential some 4e-16, sums of n terms. Near: root 3e-13, to the third power in a gradient. Single: root 2e-7, sums of
 * floats, and coordinates that are rounded by 6e-8 of the larger of the radius and the distance from the centre, so that a term of a near point errs by as much more. */
#include "random.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/pair/pair_sums.h"
#include "kernels/simd.h"

enum { MAX_N = 300, MAX_ORDER = 8 /* of most tests */, MAX_SURFACE = 6 * (FMM_MAX_ORDER - 1) * (FMM_MAX_ORDER - 1) + 2, MAX_COLUMNS = 7, MAX_PLANES = 12 * MAX_COLUMNS, WIDTH = MAX_SURFACE + 2 };

static void rows_hold_every_point_of_the_surface_once(void **state) {
  for (int order = FMM_MIN_ORDER; order <= FMM_MAX_ORDER; order++) {
    fmm_surface s;
    assert_ok(fmm_surface_create(&s, order));
    char *seen = calloc((size_t)s.n_points, 1);
    int n = 0;
    for (int r = 0; r < s.n_rows; r++)
      for (int k = 0; k < s.row[r].n; k++, n++) {
        const fmm_surface_row *row = &s.row[r];
        int32_t point = row->first + k * row->stride, plane[3] = {row->fixed[0], row->fixed[1], row->fixed[1]};
        plane[row->axis] = row->along + k;
        assert_in_range(point, 0, s.n_points - 1);
        assert_false(seen[point]++);
        for (int axis = 0; axis < 3; axis++) {
          assert_int_equal(plane[axis] - axis * order, s.lattice[3 * point + axis]);
          assert_true(fmm_surface_plane(order, plane[axis] - axis * order) == s.xyz[3 * point + axis]);
        }
      }
    assert_int_equal(n, s.n_points);
    free(seen);
    fmm_surface_free(&s);
  }
}

typedef double values_array[MAX_PLANES][WIDTH];
typedef struct problem {
  const fmm_pair *pair;
  int n, columns, gradient, components, values;
  fmm_pair_lattice lattice;
  double points[3][WIDTH], density[3 * MAX_COLUMNS][WIDTH]; /* density: of whichever are the sources */
  double params[FMM_MAX_PARAMS];
} problem;

static fmm_surface surfaces[FMM_MAX_ORDER + 1];
static double planes[3 * MAX_SURFACE], more_planes[3 * MAX_SURFACE], given[3 * MAX_SURFACE];
static values_array expected, size, blurred_size, got;
static problem p;

static int n_surface(void) { return p.lattice.surface->n_points; }

/* How much more a term of two points errs than their coordinates, each of which is rounded as a number of the larger size. */
static double blur_of(const double a[3], const double b[3]) {
  double of_a = 0, of_b = 0, between = 0;
  for (int axis = 0; axis < 3; axis++) {
    of_a = fmax(of_a, fabs(a[axis] - p.lattice.center[axis])), of_b = fmax(of_b, fabs(b[axis] - p.lattice.center[axis]));
    between = fmax(between, fabs(a[axis] - b[axis]));
  }
  return between > 0 ? 1 + fmax(of_a, of_b) / between : 1;
}

/* By definition, term by term; sizes: sums of the terms' sizes, where a component of a vector is measured by the largest; blurred: those times their blur. */
static void reference(int n_targets, const double *const target[3], int n_sources, const double *const source[3]) {
  static const double *const no_normal[3];
  memset(expected, 0, sizeof expected);
  memset(size, 0, sizeof size);
  memset(blurred_size, 0, sizeof blurred_size);
  for (int c = 0; c < p.columns; c++)
    for (int i = 0; i < n_targets; i++)
      for (int j = 0; j < n_sources; j++) {
        const double at[3] = {target[0][i], target[1][i], target[2][i]}, from[3] = {source[0][j], source[1][j], source[2][j]}, blur = blur_of(at, from);
        double f[12] = {0}, largest[2] = {0};
        const double *density[3];
        for (int k = 0; k < p.components; k++) density[k] = &p.density[k * p.columns + c][1 + j];
        p.pair->reference(at, 1, source[0] + j, source[1] + j, source[2] + j, no_normal, density, p.params, 1, p.gradient, f);
        for (int v = 0; v < p.values; v++) largest[p.gradient && v % 4] = fmax(largest[p.gradient && v % 4], fabs(f[v]));
        for (int v = 0; v < p.values; v++) {
          expected[v * p.columns + c][1 + i] += f[v];
          size[v * p.columns + c][1 + i] += largest[p.gradient && v % 4];
          blurred_size[v * p.columns + c][1 + i] += blur * largest[p.gradient && v % 4];
        }
      }
}

static void compare(int n_targets, double bound, values_array measure, const char *what) {
  for (int k = 0; k < p.values * p.columns; k++) {
    if (got[k][0] != 7 || got[k][n_targets + 1] != 7) fail_msg("%s: wrote beside its targets", what);
    for (int i = 1; i <= n_targets; i++) {
      double error = fabs(got[k][i] - expected[k][i]), allowed = bound * measure[k][i] + 1e-300 * MAX_N;
      if (!(error <= allowed) && isfinite(expected[k][i]))
        fail_msg("%s: %s %s, order %d, %d points, columns %d, gradient %d: value %d target %d is %.17g, not %.17g (allowed %g)", what, p.pair->info->name,
                 fmm_simd_name(fmm_simd_level()), p.lattice.surface->order, p.n, p.columns, p.gradient, k, i, got[k][i], expected[k][i], allowed);
    }
  }
}

static void clear_targets(int n) {
  for (int k = 0; k < p.values * p.columns; k++)
    for (int i = 0; i <= n + 1; i++) got[k][i] = i >= 1 && i <= n ? 0 : 7;
}

static void onto_points(const fmm_pair_sum *sum) {
  fmm_pair_targets targets = {.n = p.n, .x = p.points[0] + 1, .y = p.points[1] + 1, .z = p.points[2] + 1, .value = got[0] + 1,
                              .value_stride = (int64_t)p.columns * WIDTH, .column_stride = WIDTH};
  p.lattice.density = p.density[0] + 1, p.lattice.component_stride = (int64_t)p.columns * WIDTH, p.lattice.column_stride = WIDTH;
  fmm_pair_lattice twice[2] = {p.lattice, p.lattice};
  twice[1].planes = more_planes;
  clear_targets(p.n);
  fmm_pair_sum_from_lattices(sum, &targets, 2, twice);
  for (int k = 0; k < p.values * p.columns; k++)
    for (int i = 1; i <= p.n; i++) got[k][i] /= 2;
}

/* In four ranges, one of them empty. */
static void onto_surface(const fmm_pair_sum *sum) {
  int64_t cut[5] = {0, p.n / 3, p.n / 3, p.n - p.n / 5, p.n};
  fmm_pair_sources range[4];
  for (int k = 0; k < 4; k++)
    range[k] = (fmm_pair_sources){.n = cut[k + 1] - cut[k], .x = p.points[0] + 1 + cut[k], .y = p.points[1] + 1 + cut[k], .z = p.points[2] + 1 + cut[k],
                                  .density = p.density[0] + 1 + cut[k], .component_stride = (int64_t)p.columns * WIDTH, .column_stride = WIDTH};
  clear_targets(n_surface());
  fmm_pair_sum_onto_lattice(sum, &p.lattice, got[0] + 1, (int64_t)p.columns * WIDTH, WIDTH, 4, range);
}

enum { FULL, NEAR, SINGLE, N_ACCURACIES };

static void check_one(const char *what, int onto, int accuracy) {
  static const double tolerances[] = {0, 1e-9, 0}, bounds[] = {4e-15, 1e-12, 4e-7};
  fmm_pair_sum sum;
  fmm_pair_sum_prepare(&sum, p.pair, p.params, p.columns, p.gradient, accuracy == SINGLE ? FMM_PRECISION_SINGLE : FMM_PRECISION_DOUBLE, 0);
  fmm_pair_sum_allow_near(&sum, tolerances[accuracy]);
  assert_true(p.pair->info->components == 3 || sum.lattice_kernels);
  if (onto) onto_surface(&sum);
  else onto_points(&sum);
  compare(onto ? n_surface() : p.n, bounds[accuracy], accuracy == SINGLE ? blurred_size : size, what);
}

static void check(const char *what) {
  const double *const surface[3] = {given, given + n_surface(), given + 2 * n_surface()}, *const points[3] = {p.points[0] + 1, p.points[1] + 1, p.points[2] + 1};
  for (int onto = 0; onto < 2 - p.gradient; onto++) { /* onto the surface there are potentials only */
    if (onto) reference(n_surface(), surface, p.n, points);
    else reference(p.n, points, n_surface(), surface);
    for (int simd = FMM_SIMD_PLAIN; simd < FMM_N_SIMD; simd++) {
      fmm_simd_cap((fmm_simd)simd);
      if (fmm_simd_level() != (fmm_simd)simd) continue; /* not on this CPU */
      for (int accuracy = 0; accuracy < N_ACCURACIES; accuracy++) check_one(what, onto, accuracy);
    }
    fmm_simd_cap(FMM_SIMD_AVX512);
  }
}

static void prepare(const fmm_pair *pair, int order, int n, int columns, int gradient, double radius, double center) {
  p = (problem){.pair = pair, .n = n, .columns = columns, .gradient = gradient, .components = pair->info->components,
                .values = pair->info->outputs * (gradient ? 4 : 1), .lattice = {.surface = &surfaces[order], .center = {center, -center, center / 3}, .radius = radius, .planes = planes}};
  seed = (uint64_t)(order * 1000 + n);
  assert_ok(fmm_pair_resolve_params(pair->info, 0, NULL, p.params));
  if (!pair->info->has_degree) p.params[0] = 1 / radius; /* terms that do not vanish */
  fmm_surface_planes(n_surface(), p.lattice.surface->xyz, p.lattice.center, radius, given, given + n_surface(), given + 2 * n_surface());
  for (int k = 0; k < 3 * MAX_COLUMNS; k++)
    for (int i = 0; i < WIDTH; i++) p.density[k][i] = uniform() - 0.5;
}

/* Points in a cube of this many radii about the surface's centre; every third one on a point of the surface, corners first, when `on`: then that centre has to be zero, or they would be on it but for rounding. */
static void place(double spread, int on) {
  for (int i = 0; i < p.n; i++) {
    int corner = i / 3 % 2 ? n_surface() - 1 : 0, m = i < 6 ? corner : (i * 5) % n_surface();
    for (int axis = 0; axis < 3; axis++)
      p.points[axis][1 + i] = on && i % 3 == 0 ? given[axis * n_surface() + m] : p.lattice.center[axis] + p.lattice.radius * spread * (2 * uniform() - 1);
  }
}

/* What for all pairs, with and without gradients. */
static void for_all(void (*one)(const fmm_pair *pair, int gradient)) {
  for (int k = 0; fmm_pairs[k]; k++)
    for (int gradient = 0; gradient < 2; gradient++) one(fmm_pairs[k], gradient);
}

static void every_order_and_number(const fmm_pair *pair, int gradient) {
  static const int numbers[] = {0, 1, 2, 5, 7, 8, 9, 15, 16, 17, 33, 91, 127, 128, 129, 300};
  for (int k = 0; k < 16; k++)
    for (int order = FMM_MIN_ORDER + k % 2; order <= (numbers[k] > 40 ? 5 : MAX_ORDER); order += 2) {
      prepare(pair, order, numbers[k], 1, gradient, 2.95, 0.3);
      place(0.34, 0);
      check("inside");
    }
}
static void every_order_and_number_of_points_is_right(void **state) { for_all(every_order_and_number); }

static void every_number(const fmm_pair *pair, int gradient) {
  for (int columns = 1; columns <= MAX_COLUMNS; columns++) {
    prepare(pair, 4, 37, columns, gradient, 1.05, columns % 2 ? 0 : -0.1);
    place(3, columns % 2);
    check("columns");
  }
}
static void every_number_of_columns_is_right(void **state) { for_all(every_number); }

/* Fewer columns go together where a surface is large. */
static void large_surfaces(const fmm_pair *pair, int gradient) {
  static const int orders[] = {11, 15, 20}, columns[] = {2, 4, MAX_COLUMNS};
  for (int k = 0; k < 3; k++)
    for (int c = 0; c < 3; c++) {
      prepare(pair, orders[k], 9, columns[c], gradient, 2.95, 0.3);
      place(0.34, 0);
      check("large surfaces");
    }
}
static void columns_of_large_surfaces_are_right(void **state) { for_all(large_surfaces); }

static void far_and_near(const fmm_pair *pair, int gradient) {
  static const double spreads[] = {0, 1e-9, 0.5, 1, 1 + 1e-9, 10, 1e6};
  for (int k = 0; k < 7; k++)
    for (int on = 0; on < 2; on++) {
      prepare(pair, 3 + k % 3, 29, 1, gradient, 1, on ? 0 : 0.5);
      place(spreads[k], on);
      check(on ? "on the surface" : "distances");
    }
}
static void points_on_near_and_far_from_the_surface_are_right(void **state) { for_all(far_and_near); }

static void any_scale(const fmm_pair *pair, int gradient) {
  static const double radii[] = {1e-120, 1e-30, 1e-22, 1e-21, 1e-20, 1e-19, 1e-10, 1e-3, 1e6, 1e12, 1e17}; /* squares of 1e-20 are float denormals */
  for (int k = 0; k < 11; k++)
    for (int off = 0; off < 2; off++) {
      prepare(pair, 5, 18, 2, gradient, radii[k], off && radii[k] > 1e-11 && radii[k] < 1e10 ? radii[k] : 0); /* farther off: deep_down */
      place(0.7, !off);
      check("scales");
    }
}
static void surfaces_of_any_size_are_right(void **state) { for_all(any_scale); }

static void one_place(const fmm_pair *pair, int gradient) {
  for (int on = 0; on < 2; on++) {
    prepare(pair, 5, 40, 1, gradient, 1.05, on ? 0 : 0.25);
    for (int i = 0; i < p.n; i++)
      for (int axis = 0; axis < 3; axis++) p.points[axis][1 + i] = on ? given[axis * n_surface() + 3] : p.lattice.center[axis];
    check(on ? "all points on one of the surface" : "all points at the centre");
  }
}
static void points_at_one_place_are_right(void **state) { for_all(one_place); }

/* Twenty levels down the last place of the extent is 1e-9 of a box: a surface that lies there has the shape of one at the origin all the same, and the results the same bits. */
static void deep_down(const fmm_pair *pair, int gradient) {
  static values_array at_origin[2];
  const double center[3] = {0.375, -0.625, 0.25}, grid = 0x1p-45;
  prepare(pair, 6, 40, 1, gradient, 2.95 * 0x1p-21, 0);
  for (int i = 1; i <= p.n; i++)
    for (int axis = 0; axis < 3; axis++) p.points[axis][i] = grid * nearbyint((uniform() - 0.5) * 0x1p-20 / grid);
  for (int away = 0; away < 2; away++) {
    for (int axis = 0; axis < 3 && away; axis++) {
      p.lattice.center[axis] = center[axis];
      for (int i = 1; i <= p.n; i++) p.points[axis][i] += center[axis]; /* exact */
    }
    for (int onto = 0; onto < 2 - gradient; onto++) {
      fmm_pair_sum sum;
      fmm_pair_sum_prepare(&sum, p.pair, p.params, 1, gradient, FMM_PRECISION_DOUBLE, 0);
      memset(got, 0, sizeof got);
      if (onto) onto_surface(&sum);
      else onto_points(&sum);
      if (!away) memcpy(at_origin[onto], got, sizeof got);
      else if (memcmp(at_origin[onto], got, sizeof got)) fail_msg("%s, %s: other bits away from the origin", pair->info->name, onto ? "onto the surface" : "onto points");
    }
  }
}
static void surfaces_far_below_the_root_keep_their_shape(void **state) { for_all(deep_down); }

static void no_density(const fmm_pair *pair, int gradient) {
  for (int variant = 0; variant < 3; variant++) {
    prepare(pair, 4, 21, 1, gradient, 1, 0);
    place(0.9, 0);
    for (int k = 0; k < 3; k++)
      for (int i = 0; i < WIDTH; i++) p.density[k][i] *= variant == 0 ? 0 : variant == 1 ? 1e200 : 1e-200;
    check("densities");
  }
}
static void densities_of_any_size_are_right(void **state) { for_all(no_density); }

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_hold_every_point_of_the_surface_once),  cmocka_unit_test(every_order_and_number_of_points_is_right),
      cmocka_unit_test(every_number_of_columns_is_right),           cmocka_unit_test(columns_of_large_surfaces_are_right), cmocka_unit_test(points_on_near_and_far_from_the_surface_are_right),
      cmocka_unit_test(surfaces_of_any_size_are_right),             cmocka_unit_test(surfaces_far_below_the_root_keep_their_shape),
      cmocka_unit_test(points_at_one_place_are_right),
      cmocka_unit_test(densities_of_any_size_are_right)};
  for (int order = FMM_MIN_ORDER; order <= FMM_MAX_ORDER; order++)
    if (fmm_surface_create(&surfaces[order], order) != FMM_OK) return 1;
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  for (int order = FMM_MIN_ORDER; order <= FMM_MAX_ORDER; order++) fmm_surface_free(&surfaces[order]);
  return failed;
}
