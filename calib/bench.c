/* The driver of microbenchmarks (bench.h). */
#include "calib/bench.h"

#include <stdlib.h>
#include <time.h>

#include "runtime/memory.h"
#include "runtime/trace.h"

enum { FEWEST_RUNS = 8, MOST_RUNS = 1001 };

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

fmm_rate fmm_median_rate(int n, double *values) {
  qsort(values, (size_t)n, sizeof *values, ascending);
  double median = n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
  return (fmm_rate){median, median > 0 ? (values[n - 1] - values[0]) / median : 0};
}

fmm_rate fmm_quiet_rate(int n, double *seconds, double amount, int inverse) {
  double spread = fmm_median_rate(n, seconds).spread, quiet = fmm_median_rate((n + 3) / 4, seconds).value;
  return (fmm_rate){inverse ? quiet / amount : amount / quiet, spread};
}

double fmm_thread_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

fmm_status fmm_bench_measure(const fmm_bench *bench, int threads, double effort, double budget_s, fmm_bench_result *result) {
  double seconds[MOST_RUNS];
  fmm_bench_work work = {0};
  void *context = NULL;
  int n = 0;
  FMM_TRY(bench->setup(threads, effort, &context, &work));
  bench->run(context); /* warm-up: page faults, clocks, the team of threads */
  double end = fmm_now_s() + budget_s;
  while (n < FEWEST_RUNS || (n < MOST_RUNS && fmm_now_s() < end)) {
    double t = bench->run(context);
    if (t <= 0) t = 1e-9; /* the clock's resolution */
    seconds[n++] = t;
  }
  bench->teardown(context);
  double amount = bench->unit == FMM_PER_FLOP ? work.flops : bench->unit == FMM_PER_BYTE ? work.bytes : work.items;
  fmm_rate rate = fmm_quiet_rate(n, seconds, amount, bench->unit == FMM_SECONDS_PER_ITEM);
  if (bench->unit == FMM_SECONDS_PER_ITEM) rate.value = seconds[0] / amount; /* the least that it costs; the fit finds what it costs beyond that */
  *result = (fmm_bench_result){.rate = rate, .work = work, .median_s = fmm_median_rate(n, seconds).value, .runs = n};
  return FMM_OK;
}
