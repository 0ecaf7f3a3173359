/* Microbenchmarks, one a rate, each stating the operations and bytes of one run (after likwid-bench), so that the rate is a count over a time
 * and the count can be tested without a clock. A benchmark is set up once, run until its budget is spent, and torn down; its rate is the
 * median over the fastest quarter of the runs, because other work on the node only ever adds time (on a quiet one that is the median of
 * all within the spread), and a run's time is the longest processor time of its threads, which leaves out when they had to wait for a
 * core; of a cost (seconds an item) it is the fastest run, by the clock; its spread is (max - min) / median of all runs. One file a benchmark: bench_NAME.c. */
#ifndef FMM_BENCH_H
#define FMM_BENCH_H
#include "model/machine.h"

typedef struct fmm_bench_work {
  double flops;    /* floating-point operations of one run */
  double bytes;    /* bytes of memory traffic of one run, as STREAM counts them: what the program reads and writes */
  double items;    /* pairs, parallel regions, ...: what `item` names */
  const char *item;
} fmm_bench_work;

typedef struct fmm_bench {
  const char *name, *summary;
  /* Makes *context and says what one run does. `effort` scales the work: 1 is a run of about a millisecond. */
  fmm_status (*setup)(int threads, double effort, void **context, fmm_bench_work *work);
  double (*run)(void *context); /* seconds it took */
  void (*teardown)(void *context);
  enum { FMM_PER_FLOP, FMM_PER_BYTE, FMM_SECONDS_PER_ITEM } unit; /* what the rate is: flop/s, byte/s, or seconds an item */
} fmm_bench;

typedef struct fmm_bench_result {
  fmm_rate rate;        /* in the bench's unit */
  fmm_bench_work work;  /* of one run */
  double median_s;      /* of one run */
  int runs;
} fmm_bench_result;

/* Runs a benchmark for about budget_s seconds, at least three times after one warm-up. */
fmm_status fmm_bench_measure(const fmm_bench *bench, int threads, double effort, double budget_s, fmm_bench_result *result);

/* Median and (max - min) / median of n > 0 values; sorts them. */
fmm_rate fmm_median_rate(int n, double *values);
/* Rate of the fastest quarter of n > 0 runs of `amount` each (seconds an item: the inverse); sorts seconds. */
fmm_rate fmm_quiet_rate(int n, double *seconds, double amount, int inverse);

/* Processor time of the calling thread, seconds. */
double fmm_thread_s(void);

extern const fmm_bench fmm_bench_pair_double, fmm_bench_pair_single; /* bench_pair.c */
extern const fmm_bench fmm_bench_fma_double, fmm_bench_fma_single;   /* bench_fma.c */
extern const fmm_bench fmm_bench_triad;                              /* bench_memory.c */
extern const fmm_bench fmm_bench_region;                             /* bench_region.c */
#endif
