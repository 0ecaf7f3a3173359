/* Sums in double between two sets that are apart (kernels/pair/pair_sums_apart.c): one pair alone across the gap between two sets, since sums of many would hide what the nearest loses. */
#include "random.h"
#include "test.h"

#include <math.h>

#include "kernels/pair/pair_sums.h"
#include "kernels/simd.h"

enum { N = 37 };
typedef struct cloud { double x[N], y[N], z[N], density[N], value[N]; } cloud;

/* Points of [0, extent]^3 moved by `move` along an axis; only point 5 has a density, and it lies on the face that `move` leaves or reaches. */
static void fill(cloud *c, int axis, double extent, double move, int last) {
  double *const plane[3] = {c->x, c->y, c->z};
  for (int i = 0; i < N; i++) {
    for (int a = 0; a < 3; a++) plane[a][i] = extent * uniform() + (a == axis ? move : 0);
    c->density[i] = i == 5, c->value[i] = 0;
  }
  plane[axis][5] = last ? move + extent : move;
}

static fmm_pair_side side_of(fmm_pair_points *points, cloud *c) {
  *points = (fmm_pair_points){.n = N, .x = c->x, .y = c->y, .z = c->z, .density = c->density, .component_stride = N};
  fmm_pair_points_bound(points);
  return (fmm_pair_side){.points = points, .n = N, .value = c->value, .value_stride = N};
}

/* The relative error of the pair across a gap, the larger of both directions. */
static double error_across(const fmm_pair *pair, double tolerance, int axis, double extent, double gap) {
  static cloud near, far;
  double params[FMM_MAX_PARAMS], across = 0;
  fmm_pair_points points[2];
  fmm_pair_sum sum;
  fill(&near, axis, extent, 0, 1);
  fill(&far, axis, extent, extent * (1 + gap), 0);
  double *const a[3] = {near.x, near.y, near.z}, *const b[3] = {far.x, far.y, far.z};
  for (int k = 0; k < 3; k++)
    if (k != axis) b[k][5] = a[k][5] + 0.1 * gap * extent;
  assert_ok(fmm_pair_resolve_params(pair->info, 0, NULL, params));
  const double at[3] = {near.x[5], near.y[5], near.z[5]}, one = 1, *const density[1] = {&one};
  pair->reference(at, 1, &far.x[5], &far.y[5], &far.z[5], NULL, density, params, 1, 0, &across);
  fmm_pair_sum_prepare(&sum, pair, params, 1, 0, FMM_PRECISION_DOUBLE, tolerance);
  assert_int_equal(fmm_pair_sum_wants_bounds(&sum), tolerance >= 1e-11 && pair->info->has_degree);
  const fmm_pair_side left = side_of(&points[0], &near), right = side_of(&points[1], &far);
  fmm_pair_sum_add_both(&sum, NULL, &left, 1, &right);
  return fmax(fabs(near.value[5] - across), fabs(far.value[5] - across)) / across;
}

/* From gaps at which rounding loses much to wide ones; `root` is what the root alone may err by. At 1e-10 roots are exact, so that errors of homogeneous pairs show that the form under test was taken. */
static void a_pair_across_a_gap_keeps_a_quarter_of_the_tolerance(void **state) {
  const struct { double tolerance, root; } accuracy[] = {{1e-12, 1e-15}, {1e-10, 1e-15}, {1e-9, 1.3e-10}, {1e-7, 6e-9}, {1e-6, 3e-7}};
  const char *const names[] = {"laplace", "yukawa"};
  for (int simd = FMM_SIMD_PLAIN; simd < FMM_N_SIMD; simd++) {
    fmm_simd_cap((fmm_simd)simd);
    for (int k = 0; k < 2 && fmm_simd_level() == (fmm_simd)simd; k++)
      for (int t = 0; t < 5; t++) {
        const fmm_pair *pair;
        double worst = 0;
        assert_ok(fmm_pair_find(names[k], &pair));
        for (int step = 0; step < 400; step++) {
          const double gap = pow(10, -step / 40.0), extent = step % 3 ? 0.37 : 3e-5;
          seed = (uint64_t)step;
          const double error = error_across(pair, accuracy[t].tolerance, step % 3, extent, gap);
          worst = fmax(worst, error);
          if (!(error <= 0.25 * accuracy[t].tolerance + accuracy[t].root))
            fail_msg("%s %s, tolerance %g, gap %g: error %g", names[k], fmm_simd_name(fmm_simd_level()), accuracy[t].tolerance, gap, error);
        }
        if (accuracy[t].tolerance == 1e-10 && pair->info->has_degree && worst < 1e-13) fail_msg("%s: nothing lost across gaps, another form was taken", names[k]);
      }
  }
  fmm_simd_cap(FMM_SIMD_AVX512);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_pair_across_a_gap_keeps_a_quarter_of_the_tolerance)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
