/* Errors of orders that are known without measuring, against measurements. With an argument: prints the rows of kernels/known_errors.c as they are measured here. */
#include <math.h>

#include "test.h"

#include "kernels/known_errors.h"

static const char *const names[] = {"laplace", "stokes"};
enum { N_NAMES = sizeof names / sizeof *names };

/* All kinds: of lattices and signed ones, then of one sign. */
static void measure(const char *name, int order, double error[FMM_DENSITY_KINDS][2]) {
  const fmm_pair *pair = NULL;
  double params[FMM_MAX_PARAMS];
  assert_ok(fmm_pair_find(name, &pair));
  assert_ok(fmm_pair_resolve_params(pair->info, 0, NULL, params));
  fmm_pair_take_divisor(pair->info, params);
  assert_ok(fmm_far_field_errors(pair, params, order, 1, FMM_DENSITY_SALT, 2, error));
  assert_ok(fmm_far_field_errors(pair, params, order, 1, FMM_DENSITY_NONNEGATIVE, 2, error));
}

static int known(const char *name, int order, double error[FMM_DENSITY_KINDS][2]) {
  const fmm_pair *pair = NULL;
  assert_ok(fmm_pair_find(name, &pair));
  return fmm_known_errors(pair->info, order, error);
}

/* By how much they may be off from one kind of arithmetic to another, as a part of the larger: what is cut of the inverses and rounding decide small errors, most where densities are of one sign. */
static double slack(int kind, double error) { return error > 1e-7 ? 0.01 : error > (kind == FMM_DENSITY_NONNEGATIVE ? 1e-8 : 1e-10) ? 0.1 : 0.5; }

static void errors_are_those_measured(void **state) {
  for (int k = 0; k < N_NAMES; k++) {
    double error[FMM_DENSITY_KINDS][2] = {{0}}, measured[FMM_DENSITY_KINDS][2] = {{0}};
    int order = FMM_MIN_ORDER;
    for (; known(names[k], order, error); order++) {
      measure(names[k], order, measured);
      for (int kind = 0; kind < FMM_DENSITY_KINDS; kind++)
        for (int gradient = 0; gradient < 2; gradient++) {
          const double is = measured[kind][gradient], said = error[kind][gradient];
          if (!(fabs(is - said) <= slack(kind, said) * fmax(is, said))) fail_msg("%s, order %d, kind %d, gradient %d: %g is known, %g measured", names[k], order, kind, gradient, said, is);
        }
    }
    assert_true(order > 9); /* 6 digits and more */
  }
}

static void what_is_not_known_is_left_alone(void **state) {
  double error[FMM_DENSITY_KINDS][2] = {{1}};
  assert_false(known("yukawa", 4, error)); /* has a length */
  assert_false(known("laplace", FMM_MIN_ORDER - 1, error));
  assert_false(known("laplace", FMM_MAX_ORDER, error));
  assert_false(known("stokes", FMM_MAX_ORDER, error));
  assert_true(error[0][0] == 1);
}

static void print_rows(void) {
  for (int k = 0; k < N_NAMES; k++) {
    printf("static const errors %s[] = {\n", names[k]);
    double error[FMM_DENSITY_KINDS][2] = {{0}};
    for (int order = FMM_MIN_ORDER; known(names[k], order, error); order++) {
      measure(names[k], order, error);
      printf("  {");
      for (int kind = 0; kind < FMM_DENSITY_KINDS; kind++) printf("{%.6e, %.6e}%s", error[kind][0], error[kind][1], kind + 1 < FMM_DENSITY_KINDS ? ", " : "},\n");
    }
    printf("};\n");
  }
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(errors_are_those_measured), cmocka_unit_test(what_is_not_known_is_left_alone)};
  if (argc > 1) return print_rows(), 0;
  return cmocka_run_group_tests(tests, NULL, NULL);
}
