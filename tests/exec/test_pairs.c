/* Pair interactions: every reference gradient against central differences of its own potential; zero distance contributes nothing;
 * declared symmetry, parity and degree hold. */
#include "test.h"
#include <math.h>
#include "kernels/pair/pair.h"

static const double x = 0.3, y = -0.2, z = 0.5, target[3] = {1.1, 0.4, -0.3};

static void evaluate(const fmm_pair *p, const double t[3], const double *params, int gradient, double f[12]) {
  const double s0 = 0.7, s1 = -1.3, s2 = 0.4;
  const double *density[3] = {&s0, &s1, &s2};
  memset(f, 0, 12 * sizeof *f);
  p->reference(t, 1, &x, &y, &z, NULL, density, params, 1, gradient, f);
}

static void gradients_match_central_differences(void **state) {
  for (int i = 0; fmm_pairs[i]; i++) {
    const fmm_pair *p = fmm_pairs[i];
    double params[FMM_MAX_PARAMS], f[12];
    assert_ok(fmm_pair_resolve_params(p->info, 0, NULL, params));
    evaluate(p, target, params, 1, f);
    for (int axis = 0; axis < 3; axis++) {
      const double h = 1e-5;
      double up[3] = {target[0], target[1], target[2]}, down[3] = {target[0], target[1], target[2]}, fu[12], fd[12];
      up[axis] += h, down[axis] -= h;
      evaluate(p, up, params, 0, fu);
      evaluate(p, down, params, 0, fd);
      for (int o = 0; o < p->info->outputs; o++) /* central differences: h^2 truncation, 1e-16/h rounding */
        if (fabs((fu[o] - fd[o]) / (2 * h) - f[o * 4 + 1 + axis]) > 1e-9) fail_msg("%s output %d axis %d", p->info->name, o, axis);
    }
  }
}

static void distance_zero_contributes_nothing(void **state) {
  for (int i = 0; fmm_pairs[i]; i++) {
    double params[FMM_MAX_PARAMS], f[12], t[3] = {x, y, z};
    assert_ok(fmm_pair_resolve_params(fmm_pairs[i]->info, 0, NULL, params));
    evaluate(fmm_pairs[i], t, params, 1, f);
    for (int k = 0; k < 12; k++) assert_true(f[k] == 0);
  }
}

/* Points meet surfaces without the function then. */
static void what_is_declared_harmonic_is_one_over_r(void **state) {
  for (int i = 0; fmm_pairs[i]; i++) {
    const fmm_pair_info *info = fmm_pairs[i]->info;
    double params[FMM_MAX_PARAMS], f[12];
    if (!info->harmonic) continue;
    assert_ok(fmm_pair_resolve_params(info, 0, NULL, params));
    assert_true(info->components == 1 && info->outputs == 1 && !info->takes_normals && info->has_degree && info->degree == -1 && info->parity == FMM_PARITY_SCALAR);
    evaluate(fmm_pairs[i], target, params, 0, f);
    const double r = sqrt(pow(target[0] - x, 2) + pow(target[1] - y, 2) + pow(target[2] - z, 2));
    if (!(fabs(f[0] * r / 0.7 - 1) < 1e-14)) fail_msg("%s is not 1/r", info->name);
  }
}

static void declared_degree_and_parity_hold(void **state) {
  for (int i = 0; fmm_pairs[i]; i++) {
    const fmm_pair *p = fmm_pairs[i];
    int n = p->info->equivalent_components;
    double params[FMM_MAX_PARAMS], a[9], b[9], source[3] = {x, y, z};
    assert_ok(fmm_pair_resolve_params(p->info, 0, NULL, params));
    p->matrix(target, source, params, a);
    if (p->info->has_degree) {
      double t2[3] = {2 * target[0], 2 * target[1], 2 * target[2]}, s2[3] = {2 * x, 2 * y, 2 * z};
      p->matrix(t2, s2, params, b);
      for (int k = 0; k < n * n; k++) assert_true(fabs(b[k] - pow(2, p->info->degree) * a[k]) < 1e-14);
    }
    if (p->info->parity == FMM_PARITY_NONE) continue;
    double tm[3] = {-target[0], target[1], target[2]}, sm[3] = {-x, y, z};
    p->matrix(tm, sm, params, b);
    for (int r = 0; r < n; r++)
      for (int c = 0; c < n; c++) {
        double sign = p->info->parity == FMM_PARITY_VECTOR ? (r == 0 ? -1 : 1) * (c == 0 ? -1 : 1) : 1;
        assert_true(fabs(b[r * n + c] - sign * a[r * n + c]) < 1e-14);
      }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(gradients_match_central_differences),
                                     cmocka_unit_test(distance_zero_contributes_nothing),
                                     cmocka_unit_test(what_is_declared_harmonic_is_one_over_r), cmocka_unit_test(declared_degree_and_parity_hold)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
