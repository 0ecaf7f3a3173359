/* Translation operators: the whole chain against direct sums, M2L transforms against plain convolution, dense against blocked form, bits
 * independent of threads, failing memory. */
#include "test.h"
#include <math.h>
#include "kernels/operators_parts.h"
#include "kernels/parity_block.h"
#include "runtime/memory.h"

static double params[FMM_MAX_PARAMS];

static const fmm_pair *pair_named(const char *name) {
  const fmm_pair *pair = NULL;
  assert_ok(fmm_pair_find(name, &pair));
  assert_ok(fmm_pair_resolve_params(pair->info, 0, NULL, params));
  return pair;
}

static double noise(int i) { return sin(1.0 + 12.9898 * i + 0.37 * i * (i % 7)); }

static double far_error(const char *name, int order, fmm_density_sign sign) {
  double error[FMM_DENSITY_KINDS][2] = {{NAN, NAN}, {NAN, NAN}};
  assert_ok(fmm_far_field_errors(pair_named(name), params, order, 1, sign, 2, error));
  return error[sign][0];
}

/* The expansion of order p resolves harmonics to degree 2(p-1) or so; two orders more gain (1.05/2.95)^2..4 = 0.13..0.016 or better: a quarter is safe. */
static void two_orders_more_gain_a_factor_four_until_rounding(void **state) {
  for (int order = 4; order <= 12; order += 2) {
    double coarse = far_error("laplace", order, FMM_DENSITY_SIGNED), fine = far_error("laplace", order + 2, FMM_DENSITY_SIGNED);
    if (!(fine < coarse / 4)) fail_msg("laplace: %g at order %d, %g at %d", coarse, order, fine, order + 2);
  }
  for (int order = 3; order <= 7; order += 2) {
    double coarse = far_error("stokes", order, FMM_DENSITY_SIGNED), fine = far_error("stokes", order + 2, FMM_DENSITY_SIGNED);
    if (!(fine < coarse / 4)) fail_msg("stokes: %g at order %d, %g at %d", coarse, order, fine, order + 2);
  }
}

/* What is promised is 1e-12 of signed densities, and points in structures may double the error (FMM_STRUCTURE_MARGIN): half of it. Rounding in the
 * inverses has a part in it, so the value depends on BLAS's kernels: 2.88e-13 with FMA, 3.03e-13 with SSE. */
static void order_16_reaches_twelve_digits_with_room(void **state) {
  assert_true(far_error("laplace", 16, FMM_DENSITY_SIGNED) < 5e-13);
  assert_true(far_error("laplace", 16, FMM_DENSITY_NONNEGATIVE) < 5e-13);
}

static void yukawa_with_short_boxes_is_as_good_as_laplace(void **state) {
  double error[FMM_DENSITY_KINDS][2] = {{NAN, NAN}, {NAN, NAN}};
  const fmm_pair *pair = pair_named("yukawa");
  assert_ok(fmm_far_field_errors(pair, params, 8, 0.01, FMM_DENSITY_SIGNED, 1, error));
  assert_true(error[FMM_DENSITY_SIGNED][0] < 3 * far_error("laplace", 8, FMM_DENSITY_SIGNED)); /* lambda h = 0.01 changes K by percents */
}

/* Plain DFT on the surface's lattice, one frequency. */
static void transform_at(const fmm_operators *o, const double *values, int kx, int ky, int kz, double out[2]) {
  out[0] = out[1] = 0;
  for (int i = 0; i < o->n_surface; i++) {
    const int32_t *at = o->shape.lattice + 3 * i;
    double phase = -2 * M_PI * (double)((kx * at[0] + ky * at[1] + kz * at[2]) % o->grid) / o->grid;
    out[0] += values[i] * cos(phase);
    out[1] += values[i] * sin(phase);
  }
}

/* check[out component][point] by products in Fourier space for one offset. */
static void convolve(const fmm_operators *o, const fmm_level_operators *set, const int d[3], const double *density, double *check) {
  static double full[343][2];
  int c = o->parity.n_components, index = ((d[0] + 3) * 7 + d[1] + 3) * 7 + d[2] + 3;
  memset(check, 0, (size_t)o->n * sizeof *check);
  for (int kx = 0; kx < o->grid; kx++)
    for (int ky = 0; ky < o->grid; ky++)
      for (int kz = 0; kz < o->order; kz++)
        for (int out = 0; out < c; out++) {
          double sum[2] = {0}, x[2], weight = kz ? 2 : 1;
          for (int in = 0; in < c; in++) {
            fmm_m2l_gather(o, set, kx, ky, kz, out, in, full);
            transform_at(o, density + in * o->n_surface, kx, ky, kz, x);
            sum[0] += full[index][0] * x[0] - full[index][1] * x[1];
            sum[1] += full[index][0] * x[1] + full[index][1] * x[0];
          }
          for (int i = 0; i < o->n_surface; i++) {
            const int32_t *at = o->shape.lattice + 3 * i;
            double phase = 2 * M_PI * (double)((kx * at[0] + ky * at[1] + kz * at[2]) % o->grid) / o->grid;
            check[out * o->n_surface + i] += weight * (sum[0] * cos(phase) - sum[1] * sin(phase));
          }
        }
}

static void direct_m2l(const fmm_operators *o, const fmm_level_operators *set, const int d[3], const double *density, double *check) {
  int c = o->parity.n_components;
  double r = FMM_INNER_RADIUS * set->half_width, block[9];
  for (int i = 0; i < o->n_surface; i++) {
    double sum[3] = {0};
    for (int j = 0; j < o->n_surface; j++) {
      double target[3], source[3];
      for (int a = 0; a < 3; a++) target[a] = r * o->surface[3 * i + a], source[a] = r * o->surface[3 * j + a] + 2 * set->half_width * d[a];
      o->pair->matrix(target, source, params, block);
      for (int k = 0; k < c; k++)
        for (int l = 0; l < c; l++) sum[k] += block[k * c + l] * density[l * o->n_surface + j];
    }
    for (int k = 0; k < c; k++) check[k * o->n_surface + i] = sum[k];
  }
}

/* Of the squared distance only, as radial interactions are, but not alike along all axes. */
static void stretched_matrix(const double target[3], const double source[3], const double *unused, double *block) {
  const double x = target[0] - source[0], y = target[1] - source[1], z = target[2] - source[2], r2 = x * x + y * y + z * z;
  block[0] = (x * x + r2 / 2) / (r2 * sqrt(r2));
}

static void m2l_transforms_match_plain_convolution_at_all_kinds_of_offsets(void **state) {
  static const int offsets[][3] = {{2, 0, 0}, {-2, 1, 0}, {3, -3, -1}, {-1, -2, 3}, {0, 1, -2}, {-3, 3, 2}, {0, 3, -2}, {1, 2, 3}, {2, 1, 3}, {1, -3, 2}, {2, 3, 1}, {3, 1, 2}, {-3, 2, 1}, {1, 1, 0}};
  enum { N = sizeof offsets / sizeof *offsets };
  static const char *const names[] = {"laplace", "stokes", "yukawa", "stretched"};
  fmm_pair_info info = *pair_named("laplace")->info;
  info.harmonic = info.shell_field = info.inverse_distance = 0;
  const fmm_pair stretched = {.info = &info, .matrix = stretched_matrix};
  for (int k = 0; k < 4; k++)
    for (int order = 3; order <= 4; order++) {
      fmm_operators *o = NULL;
      assert_ok(fmm_operators_create(&o, k < 3 ? pair_named(names[k]) : &stretched, params, order, 2, 3, 2));
      const fmm_level_operators *set = fmm_operators_at(o, 2);
      double density[200], check[200], expected[200];
      assert_true(o->n <= 200);
      for (int i = 0; i < o->n; i++) density[i] = noise(i);
      for (int f = 0; f < N; f++) {
        double scale = 0, difference = 0;
        direct_m2l(o, set, offsets[f], density, expected);
        if (f == N - 1) memset(expected, 0, sizeof expected); /* adjacent boxes: nothing */
        convolve(o, set, offsets[f], density, check);
        for (int i = 0; i < o->n; i++) scale = fmax(scale, fabs(expected[i])), difference = fmax(difference, fabs(check[i] - expected[i]));
        if (!(difference <= 1e-13 * (scale + 1))) fail_msg("%s order %d offset %d: %g of %g", names[k], order, f, difference, scale); /* ~n eps */
      }
      fmm_operators_destroy(&o);
    }
}

static void dense_operators_are_the_blocked_ones(void **state) {
  for (int which = 0; which < 2; which++) {
    fmm_operators *o = NULL;
    assert_ok(fmm_operators_create(&o, pair_named(which ? "stokes" : "laplace"), params, which ? 3 : 5, 1, 1, 1));
    const fmm_level_operators *set = fmm_operators_at(o, 2);
    int n = o->n;
    double *matrix = NULL, *v = NULL;
    assert_ok(FMM_ALLOCATE(&matrix, n * n, "matrix"));
    assert_ok(FMM_ALLOCATE(&v, 5 * n, "vectors"));
    for (int kind = FMM_OPERATOR_UP_FIRST; kind <= FMM_OPERATOR_L2L; kind++)
      for (int octant = 0; octant < 8; octant += 3) {
        double *y = v + n, scale = 0, difference = 0;
        for (int i = 0; i < n; i++) v[i] = noise(i), y[i] = 0;
        if (kind == FMM_OPERATOR_UP_FIRST) fmm_apply_first(o, set->up_first, 1, v, y, v + 2 * n);
        if (kind == FMM_OPERATOR_DOWN_FIRST) fmm_apply_first(o, set->down_first, 1, v, y, v + 2 * n);
        if (kind == FMM_OPERATOR_UP_SECOND) fmm_apply_second(o, set->up_second, 1, v, y, v + 2 * n);
        if (kind == FMM_OPERATOR_DOWN_SECOND) fmm_apply_second(o, set->down_second, 1, v, y, v + 2 * n);
        if (kind == FMM_OPERATOR_M2M) fmm_apply_m2m(o, set, octant, v, y, v + 2 * n);
        if (kind == FMM_OPERATOR_L2L) fmm_apply_l2l(o, set, octant, v, y, v + 2 * n);
        assert_ok(fmm_operators_dense(o, set, (fmm_operator_kind)kind, octant, matrix));
        for (int i = 0; i < n; i++) {
          double sum = 0;
          for (int j = 0; j < n; j++) sum += matrix[i * n + j] * v[j], scale = fmax(scale, fabs(matrix[i * n + j]));
          difference = fmax(difference, fabs(sum - y[i]));
        }
        if (!(difference <= 1e-14 * n * scale)) fail_msg("kind %d octant %d: %g of %g", kind, octant, difference, scale); /* n eps */
      }
    FMM_FREE(&matrix);
    FMM_FREE(&v);
    fmm_operators_destroy(&o);
  }
}

static void same_bits(const double *a, const double *b) {
  if (a || b) assert_memory_equal(a, b, fmm_memory_bytes(a));
}

static void bits_do_not_depend_on_the_number_of_threads(void **state) {
  static const char *const names[] = {"laplace", "stokes", "yukawa"};
  for (int k = 0; k < 3; k++) {
    fmm_operators *one = NULL, *three = NULL;
    const fmm_pair *pair = pair_named(names[k]);
    assert_ok(fmm_operators_create(&one, pair, params, k == 1 ? 5 : 8, 1, 3, 1));
    assert_ok(fmm_operators_create(&three, pair, params, k == 1 ? 5 : 8, 1, 3, 3));
    const fmm_level_operators *a = fmm_operators_at(one, 2), *b = fmm_operators_at(three, 2);
    for (int chi = 0; chi < 8; chi++) {
      same_bits(a->m2m[chi].data, b->m2m[chi].data), same_bits(a->l2l[chi].data, b->l2l[chi].data);
      same_bits(a->up_first[chi].data, b->up_first[chi].data), same_bits(a->up_second[chi].data, b->up_second[chi].data);
      same_bits(a->down_first[chi].data, b->down_first[chi].data), same_bits(a->down_second[chi].data, b->down_second[chi].data);
    }
    same_bits(a->m2l, b->m2l);
    fmm_operators_destroy(&one);
    fmm_operators_destroy(&three);
  }
}

static void orders_out_of_range_are_refused(void **state) {
  fmm_operators *o = NULL;
  assert_int_equal(fmm_operators_create(&o, pair_named("laplace"), params, 1, 1, 1, 1), FMM_ERR_ARGUMENT);
  assert_int_equal(fmm_operators_create(&o, pair_named("laplace"), params, 21, 1, 1, 1), FMM_ERR_ARGUMENT);
  assert_null(o);
}

/* Whichever thread it was that failed, the caller's has the text. */
static void fail_at_each(const char *name, int order, int threads, int least) {
  const fmm_pair *pair = pair_named(name);
  size_t before = fmm_memory_now();
  for (int nth = 1;; nth++) {
    fmm_operators *o = NULL;
    assert_int_equal(fmm_operators_create(&o, pair, params, 1, 1, 4, threads), FMM_ERR_ARGUMENT); /* another text */
    fmm_memory_fail_at(nth);
    fmm_status status = fmm_operators_create(&o, pair, params, order, 1, 4, threads);
    fmm_memory_fail_at(0);
    if (status == FMM_OK) {
      fmm_operators_destroy(&o);
      assert_true(nth > least);
      break;
    }
    assert_int_equal(status, FMM_ERR_MEMORY);
    if (!strstr(fmm_last_error(), "no memory for")) fail_msg("%s, %d threads, allocation %d: \"%s\"", name, threads, nth, fmm_last_error());
    assert_null(o);
    assert_int_equal(fmm_memory_now(), before);
  }
  assert_int_equal(fmm_memory_now(), before);
}

static void every_failing_allocation_is_reported_and_leaks_nothing(void **state) {
  fail_at_each("yukawa", 3, 1, 40);
  for (int threads = 1; threads <= 3; threads++) fail_at_each("laplace", 4, threads, 60), fail_at_each("stokes", 3, threads, 40);
}

/* What a GPU's products by parity blocks take their shape from. */
static void the_largest_parity_block_is_foretold(void **state) {
  static const fmm_parity kinds[] = {FMM_PARITY_SCALAR, FMM_PARITY_VECTOR};
  for (int order = FMM_MIN_ORDER; order <= FMM_MAX_ORDER; order++) {
    fmm_surface surface;
    assert_ok(fmm_surface_create(&surface, order));
    for (int i = 0; i < 2; i++) {
      const int components = i ? 3 : 1;
      fmm_parity_map map;
      int most = 0;
      assert_ok(fmm_parity_map_create(&map, &surface, kinds[i], components));
      for (int chi = 0; chi < FMM_MIRRORS; chi++) most = map.begin[chi + 1] - map.begin[chi] > most ? map.begin[chi + 1] - map.begin[chi] : most;
      assert_int_equal(fmm_parity_block_most(kinds[i], components, order), most);
      const fmm_pair_info pair = {.parity = kinds[i], .equivalent_components = components};
      const int block = fmm_gpu_parity_block(&pair, order);
      assert_true(block ? block >= most && block % 4 == 0 : most > 112);
      fmm_parity_map_free(&map);
    }
    fmm_surface_free(&surface);
  }
  assert_int_equal(fmm_gpu_parity_block(&(fmm_pair_info){.parity = FMM_PARITY_NONE, .equivalent_components = 1}, 4), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_largest_parity_block_is_foretold), cmocka_unit_test(two_orders_more_gain_a_factor_four_until_rounding),
                                     cmocka_unit_test(order_16_reaches_twelve_digits_with_room),
                                     cmocka_unit_test(yukawa_with_short_boxes_is_as_good_as_laplace),
                                     cmocka_unit_test(m2l_transforms_match_plain_convolution_at_all_kinds_of_offsets),
                                     cmocka_unit_test(dense_operators_are_the_blocked_ones),
                                     cmocka_unit_test(bits_do_not_depend_on_the_number_of_threads),
                                     cmocka_unit_test(orders_out_of_range_are_refused),
                                     cmocka_unit_test(every_failing_allocation_is_reported_and_leaks_nothing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
