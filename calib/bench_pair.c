/* Effective peak of the Laplace pair sum (Choi et al. 2014, section 4.2.2): leaves of points against themselves and their 26 neighbours, through
 * the engine that the U list itself uses, from cache, on every thread. 11 operations a pair, so that the rate is that of the actual
 * instruction mix; the other pair interactions are priced from it by their own flops. */
#include "calib/bench.h"

#include <math.h>

#include "kernels/pair/pair_sums.h"
#include "runtime/memory.h"

enum { LEAF_POINTS = 128, LEAVES = 27, SOURCES = LEAF_POINTS * LEAVES, CENTER = 13 }; /* x, y, z, density of 27 leaves: 108 KiB */

typedef struct leaf_block {
  double x[SOURCES], y[SOURCES], z[SOURCES], density[SOURCES], value[LEAF_POINTS];
} leaf_block;

typedef struct pair_bench { int threads; int64_t repeats; double params[FMM_MAX_PARAMS]; fmm_pair_sum sum; leaf_block *block; } pair_bench;

/* Points spread evenly by an additive recurrence (golden-ratio steps); no two coincide. */
static void fill(leaf_block *b) {
  double u = 0.1, v = 0.2, w = 0.3;
  for (int leaf = 0; leaf < LEAVES; leaf++)
    for (int i = leaf * LEAF_POINTS; i < (leaf + 1) * LEAF_POINTS; i++) {
      u += 0.8191725133961645, u -= (int)u;
      v += 0.6710436067037893, v -= (int)v;
      w += 0.5497004779019703, w -= (int)w;
      b->x[i] = u + leaf / 9, b->y[i] = v + leaf / 3 % 3, b->z[i] = w + leaf % 3;
      b->density[i] = 1 + u;
    }
  for (int i = 0; i < LEAF_POINTS; i++) b->value[i] = 0;
}

static void teardown(void *context) {
  pair_bench *p = context;
  FMM_FREE(&p->block);
  fmm_free_bytes(p);
}

static fmm_status setup(int threads, double effort, fmm_precision precision, double tolerance, void **context, fmm_bench_work *work) {
  const fmm_pair *pair;
  pair_bench *p = NULL;
  FMM_TRY(fmm_pair_find("laplace", &pair));
  FMM_TRY(FMM_ALLOCATE_ZERO(&p, 1, "the pair-sum benchmark"));
  p->threads = threads;
  p->repeats = effort * 3 < 1 ? 1 : (int64_t)(effort * 3);
  fmm_status status = fmm_pair_resolve_params(pair->info, 0, NULL, p->params);
  if (status == FMM_OK) status = FMM_ALLOCATE(&p->block, threads, "the pair-sum benchmark");
  if (status != FMM_OK) return teardown(p), status;
  fmm_pair_sum_prepare(&p->sum, pair, p->params, 1, 0, precision, tolerance);
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int t = 0; t < threads; t++) fill(&p->block[t]);
  double pairs = (double)LEAF_POINTS * SOURCES * (double)p->repeats * threads;
  *work = (fmm_bench_work){.flops = pair->info->flops * pairs, .items = pairs, .item = "pair"};
  *context = p;
  return FMM_OK;
}

static fmm_status setup_double(int threads, double effort, void **context, fmm_bench_work *work) {
  return setup(threads, effort, FMM_PRECISION_DOUBLE, 1e-13, context, work);
}

static fmm_status setup_single(int threads, double effort, void **context, fmm_bench_work *work) {
  return setup(threads, effort, FMM_PRECISION_SINGLE, 1e-4, context, work);
}

static void sum_block(const fmm_pair_sum *sum, leaf_block *b) {
  fmm_pair_sources range[LEAVES];
  for (int leaf = 0; leaf < LEAVES; leaf++) {
    int first = leaf * LEAF_POINTS;
    range[leaf] = (fmm_pair_sources){.n = LEAF_POINTS, .x = b->x + first, .y = b->y + first, .z = b->z + first, .density = b->density + first,
                                     .component_stride = SOURCES, .column_stride = SOURCES, .may_coincide = leaf == CENTER};
  }
  fmm_pair_targets targets = {.n = LEAF_POINTS, .x = range[CENTER].x, .y = range[CENTER].y, .z = range[CENTER].z, .value = b->value,
                              .value_stride = LEAF_POINTS, .column_stride = LEAF_POINTS};
  fmm_pair_sum_add(sum, &targets, LEAVES, range);
}

static double run(void *context) {
  pair_bench *p = context;
  double longest = 0;
#pragma omp parallel for num_threads(p->threads) schedule(static, 1) reduction(max : longest)
  for (int t = 0; t < p->threads; t++) {
    double start = fmm_thread_s();
    for (int64_t r = 0; r < p->repeats; r++) sum_block(&p->sum, &p->block[t]);
    longest = fmax(longest, fmm_thread_s() - start);
  }
  return longest;
}

const fmm_bench fmm_bench_pair_double = {"pair_double", "effective peak of the Laplace pair sum, double", setup_double, run, teardown, FMM_PER_FLOP};
const fmm_bench fmm_bench_pair_single = {"pair_single", "effective peak of the Laplace pair sum, single", setup_single, run, teardown, FMM_PER_FLOP};
