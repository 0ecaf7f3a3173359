/* Cost of one parallel region: what a CPU phase pays to start its team and join it again, level by level. Nothing is computed inside. The time is
 * what elapses: where threads sleep between regions (OMP_WAIT_POLICY=passive) the one that starts them sleeps too until they have ended. */
#include "calib/bench.h"
#include "runtime/trace.h"
#include "runtime/memory.h"

typedef struct regions { int threads, count; double sink[]; } regions;

static fmm_status setup(int threads, double effort, void **context, fmm_bench_work *work) {
  regions *r = NULL;
  FMM_TRY(fmm_allocate_zero_bytes((void **)&r, sizeof(regions) + (size_t)threads * 8 * sizeof(double), 1, "the parallel-region benchmark"));
  r->threads = threads;
  r->count = effort * 5 < 1 ? 1 : (int)(effort * 5);
  *work = (fmm_bench_work){.items = r->count, .item = "parallel region"};
  *context = r;
  return FMM_OK;
}

static void touch(double *value) { __asm__ volatile("" : "+m"(*value)); }

static double run(void *context) {
  regions *r = context;
  double start = fmm_now_s();
  for (int i = 0; i < r->count; i++) {
#pragma omp parallel for num_threads(r->threads) schedule(static, 1)
    for (int t = 0; t < r->threads; t++) touch(&r->sink[8 * t]);
  }
  return fmm_now_s() - start;
}

static void teardown(void *context) { fmm_free_bytes(context); }

const fmm_bench fmm_bench_region = {"region", "start and join of a team of threads", setup, run, teardown, FMM_SECONDS_PER_ITEM};
