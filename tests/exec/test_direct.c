/* Direct sums: against sums in extended precision, on cancelling data too; the same bits for any number of threads; sampling. */
#include "test.h"
#include <math.h>
#include "runtime/direct.h"
#include "runtime/memory.h"

enum { N = 1001, M = 7, MAX_COLUMNS = 2 };
static double x[N], y[N], z[N], density[3 * MAX_COLUMNS * N], targets[M * 3];

static double random_state = 0.5;
static double next(void) { return (random_state = fmod(random_state * 997 + 0.1234567, 1)) - 0.5; }

static int fill(void **state) {
  for (int i = 0; i < N; i++) x[i] = next(), y[i] = next(), z[i] = next();
  for (int i = 0; i < 3 * MAX_COLUMNS * N; i++) density[i] = next();
  for (int i = 0; i < M * 3; i++) targets[i] = next();
  targets[0] = x[5], targets[1] = y[5], targets[2] = z[5]; /* one target is a source */
  return 0;
}

static fmm_direct_case the_case(const fmm_pair *pair, const double *params, int columns, int gradient) {
  return (fmm_direct_case){pair, params, columns, gradient, N, x, y, z, NULL, density, N};
}

/* Each pair by the plain reference, one source at a time, added in long double. */
static void extended_sums(const fmm_direct_case *w, const double t[3], long double *sums, long double *magnitudes) {
  int width = fmm_direct_width(w);
  for (int k = 0; k < width; k++) sums[k] = magnitudes[k] = 0;
  for (int64_t j = 0; j < w->n_sources; j++) {
    const double *s[3 * MAX_COLUMNS];
    double f[12 * MAX_COLUMNS] = {0};
    for (int k = 0; k < w->pair->info->components * w->n_columns; k++) s[k] = w->density + k * w->density_stride + j;
    w->pair->reference(t, 1, &x[j], &y[j], &z[j], NULL, s, w->params, w->n_columns, w->gradient, f);
    for (int k = 0; k < width; k++) sums[k] += f[k], magnitudes[k] += fabsl((long double)f[k]);
  }
}

static void sums_match_extended_precision_for_every_pair(void **state) {
  for (int p = 0; fmm_pairs[p]; p++)
    for (int gradient = 0; gradient < 2; gradient++)
      for (int columns = 1; columns <= MAX_COLUMNS; columns++) {
        double params[FMM_MAX_PARAMS], values[M * 12 * MAX_COLUMNS], magnitudes[M * 12 * MAX_COLUMNS];
        assert_ok(fmm_pair_resolve_params(fmm_pairs[p]->info, 0, NULL, params));
        fmm_direct_case w = the_case(fmm_pairs[p], params, columns, gradient);
        int width = fmm_direct_width(&w);
        fmm_direct_sums(&w, M, targets, 2, values, magnitudes);
        for (int i = 0; i < M; i++) {
          long double exact[12 * MAX_COLUMNS], size[12 * MAX_COLUMNS];
          extended_sums(&w, targets + 3 * i, exact, size);
          for (int k = 0; k < width; k++) { /* one kernel evaluation rounds about ten times, each by 1.1e-16; in the gradient terms cancel */
            double bound = 64 * 1.2e-16 * (double)size[k] + 1e-300;
            if (!(fabs((double)(values[i * width + k] - exact[k])) <= bound))
              fail_msg("%s target %d value %d: %.17g, not %.17Lg", fmm_pairs[p]->info->name, i, k, values[i * width + k], exact[k]);
            if (!(fabs((double)(magnitudes[i * width + k] - size[k])) <= 1e-12 * (double)size[k] + 1e-300)) fail_msg("magnitude %d", k);
          }
        }
      }
}

static void the_sum_itself_does_not_round(void **state) {
  /* sources on a sphere around the target, so that K is 1 to the last bit: densities that cancel to 1 from 1e16 */
  const double px[] = {1, -1, 0, 0, 0}, py[] = {0, 0, 1, -1, 0}, pz[] = {0, 0, 0, 0, 1}, d[] = {1e16, 0, 1, 1e-3, -1e16}, origin[3] = {0};
  double params[FMM_MAX_PARAMS], value, magnitude;
  const fmm_pair *laplace;
  assert_ok(fmm_pair_find("laplace", &laplace));
  fmm_direct_case w = {laplace, params, 1, 0, 5, px, py, pz, NULL, d, 5};
  fmm_direct_sums(&w, 1, origin, 1, &value, &magnitude);
  assert_true(value == 1.001);
  assert_true(magnitude >= 2e16);
}

static void bits_do_not_depend_on_the_number_of_threads(void **state) {
  double params[FMM_MAX_PARAMS], one[M * 12], three[M * 12];
  const fmm_pair *stokes;
  assert_ok(fmm_pair_find("stokes", &stokes));
  assert_ok(fmm_pair_resolve_params(stokes->info, 0, NULL, params));
  fmm_direct_case w = the_case(stokes, params, 1, 1);
  fmm_direct_sums(&w, M, targets, 1, one, NULL);
  fmm_direct_sums(&w, M, targets, 3, three, NULL);
  assert_memory_equal(one, three, sizeof one);
}

static void no_source_and_one_source_are_fine(void **state) {
  double params[FMM_MAX_PARAMS], value = 7;
  const fmm_pair *laplace;
  assert_ok(fmm_pair_find("laplace", &laplace));
  fmm_direct_case w = the_case(laplace, params, 1, 0);
  w.n_sources = 0;
  fmm_direct_sums(&w, 1, targets, 1, &value, NULL);
  assert_true(value == 0);
  w.n_sources = 1;
  fmm_direct_sums(&w, 1, targets, 1, &value, NULL);
  double r = sqrt(pow(targets[0] - x[0], 2) + pow(targets[1] - y[0], 2) + pow(targets[2] - z[0], 2));
  assert_true(fabs(value - density[0] / r) < 1e-15 / r);
}

static void samples_are_distinct_ascending_and_repeatable(void **state) {
  int64_t a[100], b[100];
  const int64_t sizes[] = {100, 101, 12345, INT64_MAX / 2};
  for (int s = 0; s < 4; s++) {
    assert_int_equal(fmm_sample_rows(sizes[s], 100, 7, a), 100);
    fmm_sample_rows(sizes[s], 100, 7, b);
    assert_memory_equal(a, b, sizeof a);
    for (int i = 0; i < 100; i++) assert_true(a[i] < sizes[s] && a[i] >= 0 && (i == 0 || a[i] > a[i - 1]));
  }
  fmm_sample_rows(12345, 100, 8, b);
  fmm_sample_rows(12345, 100, 7, a);
  assert_memory_not_equal(a, b, sizeof a);
  assert_int_equal(fmm_sample_rows(3, 100, 7, a), 3);
  for (int i = 0; i < 3; i++) assert_int_equal(a[i], i);
  assert_int_equal(fmm_sample_rows(0, 100, 7, a), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sums_match_extended_precision_for_every_pair), cmocka_unit_test(the_sum_itself_does_not_round),
                                     cmocka_unit_test(bits_do_not_depend_on_the_number_of_threads), cmocka_unit_test(no_source_and_one_source_are_fine),
                                     cmocka_unit_test(samples_are_distinct_ascending_and_repeatable)};
  return cmocka_run_group_tests(tests, fill, NULL);
}
