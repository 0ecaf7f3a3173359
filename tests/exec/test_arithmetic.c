/* Callers that round otherwise than to nearest, or have traps for what is invalid: plans compute as in any other program, and leave the caller's mode as it was. */
#include "test.h"

#include <fenv.h>
#include <string.h>

#include "plan_error.h"

enum { N = 4000 };
static const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
enum { MODES = sizeof modes / sizeof *modes };

typedef struct answer { double potential[N], gradient[3 * N], direct[100]; char id[64]; } answer;

/* A whole life of a plan, its points set twice, in the mode and with traps that the thread has. */
static void live(const char *kernel, const double *points, const double *moved, const double *density, answer *a) {
  fmm_options o = defaults(1e-5);
  fmm_plan *plan = NULL;
  double error;
  int changed;
  o.kernel = kernel, o.gradient = 1, o.leaf_size = 60;
  if (!strcmp(kernel, "yukawa")) o.n_params = 1, o.params[0] = (fmm_param){"lambda", 3};
  assert_ok(fmm_plan_create(&plan, &o));
  assert_ok(fmm_plan_set_points(plan, N, points, NULL, 0, NULL));
  assert_ok(fmm_plan_move_points(plan, N, moved, NULL, 0, NULL));
  assert_ok(fmm_plan_execute(plan, density, a->potential, a->gradient));
  assert_ok(fmm_plan_keep_tolerance(plan, density, a->potential, a->gradient, &error, &changed));
  fmm_plan_info info = {.struct_size = sizeof info};
  assert_ok(fmm_plan_get_info(plan, &info));
  snprintf(a->id, sizeof a->id, "%s", info.plan_id);
  double *gradient = calloc(3 * N, sizeof *gradient);
  assert_ok(fmm_plan_direct(plan, density, 100, NULL, a->direct, gradient));
  free(gradient);
  fmm_plan_destroy(&plan);
}

static void the_rounding_mode_of_the_caller_changes_nothing(void **state) {
  static double points[3 * N], moved[3 * N], density[N];
  static answer answers[MODES];
  static const char *const kernels[] = {"laplace", "yukawa"};
  assert_ok(fmm_generate_points("plummer", N, 3, points, 1));
  assert_ok(fmm_generate_densities("signed", N, 5, density, 1));
  for (int i = 0; i < 3 * N; i++) moved[i] = points[i] * 1.0625;
  for (int k = 0; k < 2; k++)
    for (int m = 0; m < MODES; m++) {
      memset(&answers[m], 0, sizeof answers[m]);
      assert_int_equal(fesetround(modes[m]), 0);
      live(kernels[k], points, moved, density, &answers[m]);
      assert_int_equal(fegetround(), modes[m]);
      fesetround(FE_TONEAREST);
      if (memcmp(&answers[m], &answers[0], sizeof answers[0])) fail_msg("%s: other results in rounding mode %d of fenv.h", kernels[k], modes[m]);
    }
}

static void traps_of_the_caller_do_not_spring(void **state) {
  static double points[3 * N], density[N];
  static answer a;
  const int all = FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW;
  assert_ok(fmm_generate_points("uniform", N, 3, points, 1));
  assert_ok(fmm_generate_densities("signed", N, 5, density, 1));
  if (feenableexcept(all) == -1) skip();
  live("laplace", points, points, density, &a);
  assert_int_equal(fegetexcept(), all);
  assert_int_equal(fetestexcept(FE_INVALID), 0); /* nor do flags stay behind, on which a later trap would fall */
  fedisableexcept(all);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_rounding_mode_of_the_caller_changes_nothing),
      cmocka_unit_test(traps_of_the_caller_do_not_spring),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
