/* A problem of the tests through the public interface on a GPU: points, densities and room for results, and a plan of a schedule for it. */
#ifndef FMM_TEST_PROBLEM_H
#define FMM_TEST_PROBLEM_H
#include "runtime/generate.h"
#include "runtime/memory.h"

enum { SAMPLES = 500 };
static const fmm_schedule_kind schedules[] = {FMM_SCHEDULE_CPU, FMM_SCHEDULE_GPU, FMM_SCHEDULE_HYBRID1, FMM_SCHEDULE_HYBRID2, FMM_SCHEDULE_HYBRID3};
enum { N_SCHEDULES = sizeof schedules / sizeof *schedules };

typedef struct problem {
  int n, outputs, components;
  double *points, *densities, *potential, *gradient, *exact, *exact_gradient;
  fmm_options options;
  fmm_plan *plan;
} problem;

static double *values_of(int64_t n) {
  double *values;
  assert_ok(FMM_ALLOCATE_ZERO(&values, n, "test values"));
  return values;
}

static void make(problem *p, const char *kernel, const char *distribution, const char *densities, int n, double tolerance, int gradient) {
  *p = (problem){.n = n, .components = strcmp(kernel, "stokes") ? 1 : 3};
  p->outputs = p->components;
  p->points = values_of(3 * n);
  p->densities = values_of(n * p->components);
  p->potential = values_of(n * p->outputs);
  p->gradient = values_of(3 * n * p->outputs);
  p->exact = values_of(SAMPLES * p->outputs);
  p->exact_gradient = values_of(3 * SAMPLES * p->outputs);
  assert_ok(fmm_generate_points(distribution, n, 5, p->points, 1));
  assert_ok(fmm_generate_densities(densities, n * p->components, 6, p->densities, 1));
  assert_ok(fmm_options_init(&p->options));
  p->options.kernel = kernel;
  p->options.tolerance = tolerance;
  p->options.gradient = gradient;
  p->options.leaf_size = 60;
  p->options.root_scale = 1;
  p->options.density_sign = strcmp(densities, "unit") ? FMM_DENSITY_SIGNED : FMM_DENSITY_NONNEGATIVE;
}

static void release(problem *p) {
  fmm_plan_destroy(&p->plan);
  FMM_FREE(&p->points);
  FMM_FREE(&p->densities);
  FMM_FREE(&p->potential);
  FMM_FREE(&p->gradient);
  FMM_FREE(&p->exact);
  FMM_FREE(&p->exact_gradient);
}

static void plan_for(problem *p, fmm_schedule_kind schedule) {
  fmm_plan_destroy(&p->plan);
  p->options.schedule = schedule;
  assert_ok(fmm_plan_create(&p->plan, &p->options));
  assert_ok(fmm_plan_set_points(p->plan, p->n, p->points, NULL, 0, NULL));
}

static void execute(problem *p) {
  memset(p->potential, 0xff, sizeof(double) * (size_t)(p->n * p->outputs)); /* NaN */
  assert_ok(fmm_plan_execute(p->plan, p->densities, p->potential, p->options.gradient ? p->gradient : NULL));
}
#endif
