/* Near pairs of sums in single precision (pair_sums_store.c). What makes a pair wrong that is too near is the rounding of its points to quanta, far more than the arithmetic in float. So such a pair's value is
 * corrected: by what it is less what it is of the rounded points, both in double (which is not quite what the float sum had of it: of pairs some quanta apart 3e-7 of the value were left). Of two sets of some hundred points that touch few pairs are so near, and the sets need not go to double for them. */
#include <math.h>

#include "kernels/pair/pair_block.h"

typedef struct point { double at[3], density[FMM_PAIR_MAX_COMPONENTS]; } point;

static point point_of(const fmm_pair_points *p, int components, int64_t i) {
  point one = {.at = {p->x[i], p->y[i], p->z[i]}};
  for (int k = 0; k < components; k++) one.density[k] = p->density[k * p->component_stride + i];
  return one;
}

/* The i-th of a crowd. */
static point point_of_crowd(const fmm_pair_crowd *crowd, int components, int64_t i) {
  int k = 0;
  while (i >= crowd->part[k].n) i -= crowd->part[k++].n;
  return point_of(crowd->part[k].points, components, crowd->part[k].begin + i);
}

/* What the density at d from the origin's is worth there: values[v]. */
static void add_value(const fmm_pair_sum *sum, const double d[3], const double *density, double *values) {
  static const double *const no_normal[3];
  const double origin = 0;
  const double *planes[FMM_PAIR_MAX_COMPONENTS];
  for (int k = 0; k < sum->pair->info->components; k++) planes[k] = &density[k];
  sum->pair->reference(d, 1, &origin, &origin, &origin, no_normal, planes, sum->params, 1, sum->gradient, values);
}

/* The source's value at the target less that of the rounded points. */
static void correction_of(const fmm_pair_sum *sum, const point *target, const point *source, const double rounded[3], int n_values, double *correction) {
  double exact[FMM_PAIR_MAX_VALUES] = {0}, found[FMM_PAIR_MAX_VALUES] = {0}, d[3];
  for (int axis = 0; axis < 3; axis++) d[axis] = target->at[axis] - source->at[axis];
  add_value(sum, d, source->density, exact);
  add_value(sum, rounded, source->density, found);
  for (int v = 0; v < n_values; v++) correction[v] = exact[v] - found[v];
}

typedef struct near_list { int n; fmm_pair_indices pair[FMM_PAIR_MOST_NEAR]; } near_list;

static void rounded_difference(const fmm_pair_call *call, const fmm_pair_indices *p, double quantum, double d[3]) {
  for (int axis = 0; axis < 3; axis++) d[axis] = quantum * ((double)((const int32_t *)call->target[axis])[p->target] - (double)((const int32_t *)call->source[axis])[p->source]);
}

int fmm_pair_correct_both(const fmm_pair_sum *sum, const fmm_pair_call *call, const fmm_pair_crowd *crowd, const fmm_pair_side *a, double limit, double quantum, fmm_pair_block *b, fmm_pair_back *back) {
  const int components = sum->pair->info->components;
  near_list near;
  near.n = fmm_pair_arrays()->near_pairs(call, (float)limit, near.pair);
  if (near.n > FMM_PAIR_MOST_NEAR) return 0;
  for (int k = 0; k < near.n; k++) {
    const int i = near.pair[k].target, j = near.pair[k].source;
    const point t = point_of_crowd(crowd, components, i), s = point_of(a->points, components, a->begin + j);
    double d[3], opposite[3], forth[FMM_PAIR_MAX_VALUES], back_again[FMM_PAIR_MAX_VALUES];
    rounded_difference(call, &near.pair[k], quantum, d);
    for (int axis = 0; axis < 3; axis++) opposite[axis] = -d[axis];
    correction_of(sum, &t, &s, d, b->n_values, forth);
    correction_of(sum, &s, &t, opposite, b->n_values, back_again);
    for (int v = 0; v < b->n_values; v++) {
      const int derivative = sum->gradient && v % 4;
      b->sums[v][i] += forth[v] / back->block_factor[derivative];
      back->sums[v][j] += back_again[v] / back->factor[derivative];
    }
  }
  return 1;
}

/* Each pair is found from both ends, so that half as many are room enough for. */
int fmm_pair_correct_own(const fmm_pair_sum *sum, const fmm_pair_call *call, const fmm_pair_side *a, double limit, double quantum, const double factor[2], fmm_pair_block *b) {
  const int components = sum->pair->info->components;
  near_list near;
  near.n = fmm_pair_arrays()->near_pairs(call, (float)limit, near.pair);
  if (near.n > FMM_PAIR_MOST_NEAR) return 0;
  for (int k = 0; k < near.n; k++) {
    const int i = near.pair[k].target, j = near.pair[k].source;
    const point t = point_of(a->points, components, a->begin + i), s = point_of(a->points, components, a->begin + j);
    double d[3], correction[FMM_PAIR_MAX_VALUES];
    rounded_difference(call, &near.pair[k], quantum, d);
    correction_of(sum, &t, &s, d, b->n_values, correction);
    for (int v = 0; v < b->n_values; v++) b->sums[v][i] += correction[v] / factor[sum->gradient && v % 4];
  }
  return 1;
}
