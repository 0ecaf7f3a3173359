/* Rates of the U list's kernels in cache (bench_pair_rates.h). */
#include "tools/bench_pair_rates.h"

#include <omp.h>

#include "runtime/generate.h"
#include "runtime/memory.h"
#include "tools/bench_options.h"

enum { NEIGHBOURS = 6, MOST_ROUNDS = 1000, INTERACTIONS = 1000000 }; /* of a round, or one call */

/* A leaf at the origin's corner and neighbours in a row beside it, as they lie in sorted points: planes of all, x shifted by the leaf's number. */
typedef struct leaves {
  int64_t n;       /* points of all: (1 + NEIGHBOURS) * leaf */
  int leaf;
  double *x, *y, *z, *density, *value; /* n, n, n, components * n, values * n */
  int components, values;
  fmm_pair_store store;
} leaves;

static fmm_status make_leaves(leaves *l, const fmm_pair_sum *sum, int leaf) {
  const fmm_pair_info *info = sum->pair->info;
  double *points = NULL;
  fmm_status status;
  *l = (leaves){.n = (1 + NEIGHBOURS) * leaf, .leaf = leaf, .components = info->components, .values = info->outputs * (sum->gradient ? 4 : 1)};
  FMM_CHECK(FMM_ALLOCATE(&points, 3 * l->n, "points of leaves"));
  FMM_CHECK(FMM_ALLOCATE(&l->x, (3 + l->components + l->values) * l->n, "leaves"));
  l->store.capacity = l->n + FMM_PAIR_STORE_PADDING;
  FMM_CHECK(FMM_ALLOCATE(&l->store.quanta, 3 * l->store.capacity, "leaves in single precision"));
  FMM_CHECK(FMM_ALLOCATE(&l->store.density, l->components * l->store.capacity, "leaves in single precision"));
  l->y = l->x + l->n, l->z = l->y + l->n, l->density = l->z + l->n, l->value = l->density + l->components * l->n;
  FMM_CHECK(fmm_generate_points("uniform", l->n, 1, points, 1));
  FMM_CHECK(fmm_generate_densities("signed", l->components * l->n, 1, l->density, 1));
  for (int64_t i = 0; i < l->n; i++)
    l->x[i] = points[3 * i] + (double)(i / leaf), l->y[i] = points[3 * i + 1], l->z[i] = points[3 * i + 2];
  for (int64_t i = 0; i < l->values * l->n; i++) l->value[i] = 0;
done:
  FMM_FREE(&points);
  return status;
}

static void sum_one_direction(const leaves *l, const fmm_pair_sum *sum) {
  fmm_pair_targets targets = {.n = l->leaf, .x = l->x, .y = l->y, .z = l->z, .value = l->value, .value_stride = l->n, .column_stride = l->n};
  fmm_pair_sources sources = {.n = l->n - l->leaf, .x = l->x + l->leaf, .y = l->y + l->leaf, .z = l->z + l->leaf, .density = l->density + l->leaf,
                              .component_stride = l->n, .column_stride = l->n};
  fmm_pair_sum_add(sum, &targets, 1, &sources);
}

/* Converts leaf k (single precision) and shows it. */
static fmm_pair_side side_of(const leaves *l, const fmm_pair_sum *sum, int k, fmm_pair_points *points) {
  const int64_t at = (int64_t)k * l->leaf;
  *points = (fmm_pair_points){.n = l->leaf, .x = l->x + at, .y = l->y + at, .z = l->z + at, .density = l->density + at, .component_stride = l->n};
  if (fmm_pair_sum_wants_bounds(sum)) fmm_pair_points_bound(points);
  if (fmm_pair_sum_wants_weights(sum)) fmm_pair_points_weigh(sum, points);
  if (sum->single_kernels) fmm_pair_store_put(sum, &l->store, points, at);
  return (fmm_pair_side){.points = points, .n = l->leaf, .value = l->value + at, .value_stride = l->n, .at = at};
}

static void sum_both_directions(const leaves *l, const fmm_pair_sum *sum) {
  fmm_pair_points points[1 + NEIGHBOURS];
  fmm_pair_side side[1 + NEIGHBOURS];
  for (int k = 0; k <= NEIGHBOURS; k++) side[k] = side_of(l, sum, k, &points[k]);
  fmm_pair_sum_add_both(sum, &l->store, &side[0], NEIGHBOURS, side + 1);
}

/* Interactions a second of one thread; all threads work meanwhile. A first round warms the caches. */
static fmm_pair_rate rate_of(const leaves *l, const fmm_pair_sum *sum, int both, double seconds) {
  double interactions = (both ? 2.0 : 1.0) * l->leaf * (double)(l->n - l->leaf), taken[MOST_ROUNDS], start = omp_get_wtime(), now = start;
  int calls = 1 + (int)(INTERACTIONS / interactions), rounds = 0;
  for (int round = -1; round < 1 || (round < MOST_ROUNDS && now - start < seconds); round++) {
    double begin = omp_get_wtime();
    for (int k = 0; k < calls; k++) both ? sum_both_directions(l, sum) : sum_one_direction(l, sum);
    now = omp_get_wtime();
    if (round >= 0) taken[rounds++] = now - begin;
  }
  double middle = fmm_bench_median(rounds, taken);
  return (fmm_pair_rate){.best = calls * interactions / taken[0], .middle = calls * interactions / middle};
}

fmm_status fmm_bench_pair_rate(const fmm_pair_sum *sum, int both, int leaf_size, int threads, double seconds, fmm_pair_rate *rate) {
  double best = 0, middle = 0;
  fmm_status failed = FMM_OK;
  if (leaf_size < 1 || leaf_size > FMM_BENCH_MOST_LEAF)
    return FMM_FAIL(FMM_ERR_ARGUMENT, "leaves of %d points; rates are measured of 1 to %d", leaf_size, FMM_BENCH_MOST_LEAF);
#pragma omp parallel num_threads(threads) reduction(+ : best, middle)
  {
    leaves l;
    fmm_status status = make_leaves(&l, sum, leaf_size);
#pragma omp barrier
    if (status == FMM_OK) {
      fmm_pair_rate own = rate_of(&l, sum, both, seconds);
      best = own.best, middle = own.middle;
    }
    FMM_FREE(&l.x);
    FMM_FREE(&l.store.quanta);
    FMM_FREE(&l.store.density);
#pragma omp critical
    if (status != FMM_OK) failed = status;
  }
  if (failed != FMM_OK) return FMM_FAIL(failed, "rates of pair sums were not measured");
  *rate = (fmm_pair_rate){best, middle};
  return FMM_OK;
}
