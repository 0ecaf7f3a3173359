/* A program of somebody else: built against the installed library by pkg-config alone, it sums 2,000 charges and compares with
 * its own direct sum. Uses nothing but the public header and libc. */
#include <hybridfmm/fmm.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 2000 };
static double points[N][3], charges[N], potential[N];

static int failed(const char *call, fmm_status status) {
  if (status == FMM_OK) return 0;
  fprintf(stderr, "consumer: %s: %s: %s\n", call, fmm_status_name(status), fmm_last_error());
  return 1;
}

/* Relative L2 error against sum q_j / (4 pi r_ij). */
static double relative_error(void) {
  double error = 0, norm = 0;
  for (int i = 0; i < N; i++) {
    double sum = 0;
    for (int j = 0; j < N; j++) {
      double dx = points[i][0] - points[j][0], dy = points[i][1] - points[j][1], dz = points[i][2] - points[j][2];
      double r = sqrt(dx * dx + dy * dy + dz * dz);
      if (r > 0) sum += charges[j] / r;
    }
    sum /= 4 * acos(-1.0);
    error += (potential[i] - sum) * (potential[i] - sum);
    norm += sum * sum;
  }
  return sqrt(error / norm);
}

int main(void) {
  fmm_options options;
  fmm_plan *plan = NULL;
  const double tolerance = 1e-6;
  srand(1);
  for (int i = 0; i < N; i++) {
    for (int d = 0; d < 3; d++) points[i][d] = rand() / (double)RAND_MAX;
    charges[i] = rand() / (double)RAND_MAX - 0.5;
  }
  if (failed("fmm_options_init", fmm_options_init(&options))) return 1;
  options.tolerance = tolerance;
  options.leaf_size = 50; /* a tree of some levels, whatever this machine's profile says */
  options.schedule = FMM_SCHEDULE_CPU;
  if (failed("fmm_plan_create", fmm_plan_create(&plan, &options))) return 1;
  if (failed("fmm_plan_set_points", fmm_plan_set_points(plan, N, &points[0][0], NULL, 0, NULL))) return 1;
  if (failed("fmm_plan_execute", fmm_plan_execute(plan, charges, potential, NULL))) return 1;
  fmm_plan_destroy(&plan);
  double error = relative_error();
  printf("consumer: hybridfmm %s, relative error %.1e, asked %.0e\n", fmm_version(), error, tolerance);
  return plan == NULL && error <= tolerance ? 0 : 1;
}
