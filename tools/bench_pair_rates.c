/* Rates of the U list's kernels in cache (bench_pair_rates.h). */
#include "tools/bench_pair_rates.h"

#include <math.h>
#include <omp.h>

#include "runtime/generate.h"
#include "runtime/memory.h"

enum { NEIGHBOURS = 6, ROUNDS = 200, SUMS = 50 };

/* A leaf at the origin's corner and neighbours in a row beside it, as they lie in sorted points: planes of all, x shifted by the leaf's number. */
typedef struct leaves {
  int64_t n;       /* points of all: (1 + NEIGHBOURS) * leaf */
  int leaf;
  double *x, *y, *z, *density, *value; /* n, n, n, components * n, values * n */
  int components, values;
} leaves;

static fmm_status make_leaves(leaves *l, const fmm_pair_sum *sum, int leaf) {
  const fmm_pair_info *info = sum->pair->info;
  double *points = NULL;
  fmm_status status;
  *l = (leaves){.n = (1 + NEIGHBOURS) * leaf, .leaf = leaf, .components = info->components, .values = info->outputs * (sum->gradient ? 4 : 1)};
  FMM_CHECK(FMM_ALLOCATE(&points, 3 * l->n, "points of leaves"));
  FMM_CHECK(FMM_ALLOCATE(&l->x, (3 + l->components + l->values) * l->n, "leaves"));
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

static void sum_both_directions(const leaves *l, const fmm_pair_sum *sum) {
  fmm_pair_points own = {.n = l->leaf, .x = l->x, .y = l->y, .z = l->z, .density = l->density, .component_stride = l->n, .value = l->value, .value_stride = l->n};
  fmm_pair_points others = own;
  others.n = l->n - l->leaf, others.x += l->leaf, others.y += l->leaf, others.z += l->leaf, others.density += l->leaf, others.value += l->leaf;
  fmm_pair_points_measure(sum, &own);
  fmm_pair_points_measure(sum, &others);
  fmm_pair_sum_add_both(sum, &own, 1, &others);
}

/* The most interactions a second of one thread; all threads work meanwhile. */
static double best_rate(const leaves *l, const fmm_pair_sum *sum, int both) {
  double least = INFINITY;
  for (int round = 0; round < ROUNDS; round++) {
    double start = omp_get_wtime();
    for (int k = 0; k < SUMS; k++) both ? sum_both_directions(l, sum) : sum_one_direction(l, sum);
    least = fmin(least, omp_get_wtime() - start);
  }
  return (both ? 2.0 : 1.0) * SUMS * l->leaf * (double)(l->n - l->leaf) / least;
}

fmm_status fmm_bench_pair_rates(const fmm_pair_sum *sum, int leaf_size, int threads, fmm_pair_rates *rates) {
  double one = 0, both = 0;
  fmm_status failed = FMM_OK;
  if (leaf_size < 1 || leaf_size > FMM_BENCH_MOST_LEAF)
    return FMM_FAIL(FMM_ERR_ARGUMENT, "leaves of %d points; rates are measured of 1 to %d", leaf_size, FMM_BENCH_MOST_LEAF);
#pragma omp parallel num_threads(threads) reduction(+ : one, both)
  {
    leaves l;
    fmm_status status = make_leaves(&l, sum, leaf_size);
#pragma omp barrier
    if (status == FMM_OK) one = best_rate(&l, sum, 0);
#pragma omp barrier
    if (status == FMM_OK && fmm_pair_sum_can_add_both(sum)) both = best_rate(&l, sum, 1);
    FMM_FREE(&l.x);
#pragma omp critical
    if (status != FMM_OK) failed = status;
  }
  if (failed != FMM_OK) return FMM_FAIL(failed, "rates of pair sums were not measured");
  *rates = (fmm_pair_rates){one, both};
  return FMM_OK;
}
