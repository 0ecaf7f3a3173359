/* Arithmetic peak: independent chains of multiply-adds in registers on every thread, widest instruction set in use. Two operations a lane
 * and step. The roof of matrix products (operators, M2L). */
#include "calib/bench.h"

#include <math.h>

#include "calib/fma_simd.h"
#include "runtime/memory.h"

typedef struct chains { int threads, single; int64_t iterations; const fmm_fma_kernel *kernel; double sink[]; } chains;

static fmm_status setup(int threads, double effort, int single, void **context, fmm_bench_work *work) {
  chains *c = NULL;
  FMM_TRY(fmm_allocate_zero_bytes((void **)&c, sizeof(chains) + (size_t)threads * 8 * sizeof(double), 1, "the multiply-add benchmark"));
  c->threads = threads;
  c->single = single;
  c->iterations = effort * 2e5 < 1000 ? 1000 : (int64_t)(effort * 2e5);
  c->kernel = fmm_fma_at(fmm_simd_level());
  double steps = (double)FMM_FMA_CHAINS * (single ? c->kernel->width_single : c->kernel->width_double) * (double)c->iterations * threads;
  *work = (fmm_bench_work){.flops = 2 * steps, .items = steps, .item = "multiply-add"};
  *context = c;
  return FMM_OK;
}

static fmm_status setup_double(int threads, double effort, void **context, fmm_bench_work *work) { return setup(threads, effort, 0, context, work); }
static fmm_status setup_single(int threads, double effort, void **context, fmm_bench_work *work) { return setup(threads, effort, 1, context, work); }

static double run(void *context) {
  chains *c = context;
  double longest = 0;
#pragma omp parallel for num_threads(c->threads) schedule(static, 1) reduction(max : longest)
  for (int t = 0; t < c->threads; t++) {
    double start = fmm_thread_s();
    c->sink[8 * t] = c->single ? (double)c->kernel->chain_single(c->iterations, 0.5f, 1) : c->kernel->chain_double(c->iterations, 0.5, 1);
    longest = fmax(longest, fmm_thread_s() - start);
  }
  return longest;
}

static void teardown(void *context) { fmm_free_bytes(context); }

const fmm_bench fmm_bench_fma_double = {"fma_double", "multiply-add peak, double", setup_double, run, teardown, FMM_PER_FLOP};
const fmm_bench fmm_bench_fma_single = {"fma_single", "multiply-add peak, single", setup_single, run, teardown, FMM_PER_FLOP};
