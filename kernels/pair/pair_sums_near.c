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

typedef double sums_rows[FMM_PAIR_BLOCK];
_Static_assert((int)FMM_PAIR_BACK == (int)FMM_PAIR_BLOCK, "sums on targets and on sources are alike");

/* Adds to the target's sums, in place i, the source's value less that of the rounded points, whose difference is sign * rounded. */
static void correct(const fmm_pair_sum *sum, const point *target, const point *source, const double rounded[3], double sign, const double factor[2], int n_values, sums_rows *sums, int i) {
  double exact[FMM_PAIR_MAX_VALUES] = {0}, found[FMM_PAIR_MAX_VALUES] = {0}, d[3], r[3];
  for (int axis = 0; axis < 3; axis++) d[axis] = target->at[axis] - source->at[axis], r[axis] = sign * rounded[axis];
  add_value(sum, d, source->density, exact);
  add_value(sum, r, source->density, found);
  for (int v = 0; v < n_values; v++) sums[v][i] += (exact[v] - found[v]) / factor[sum->gradient && v % 4];
}

static void rounded_difference(const fmm_pair_call *call, const fmm_pair_indices *p, double quantum, double d[3]) {
  for (int axis = 0; axis < 3; axis++) d[axis] = quantum * ((double)((const int32_t *)call->target[axis])[p->target] - (double)((const int32_t *)call->source[axis])[p->source]);
}

/* crowd: NULL, the targets are a; back: NULL, sums on the targets alone. */
static int correct_all(const fmm_pair_sum *sum, const fmm_pair_call *call, const fmm_pair_crowd *crowd, const fmm_pair_side *a, double limit, double quantum, const double factor[2], fmm_pair_block *b, fmm_pair_back *back) {
  const int components = sum->pair->info->components;
  fmm_pair_indices near[FMM_PAIR_MOST_NEAR];
  const int n = fmm_pair_arrays()->near_pairs(call, (float)limit, near);
  if (n > FMM_PAIR_MOST_NEAR) return 0;
  for (int k = 0; k < n; k++) {
    const int i = near[k].target, j = near[k].source;
    const point t = crowd ? point_of_crowd(crowd, components, i) : point_of(a->points, components, a->begin + i), s = point_of(a->points, components, a->begin + j);
    double d[3];
    rounded_difference(call, &near[k], quantum, d);
    correct(sum, &t, &s, d, 1, factor, b->n_values, b->sums, i);
    if (back) correct(sum, &s, &t, d, -1, back->factor, b->n_values, back->sums, j);
  }
  return 1;
}

int fmm_pair_correct_both(const fmm_pair_sum *sum, const fmm_pair_call *call, const fmm_pair_crowd *crowd, const fmm_pair_side *a, double limit, double quantum, fmm_pair_block *b, fmm_pair_back *back) {
  return correct_all(sum, call, crowd, a, limit, quantum, back->block_factor, b, back);
}

/* Each pair is found from both ends, so that half as many are room enough for. */
int fmm_pair_correct_own(const fmm_pair_sum *sum, const fmm_pair_call *call, const fmm_pair_side *a, double limit, double quantum, const double factor[2], fmm_pair_block *b) {
  return correct_all(sum, call, NULL, a, limit, quantum, factor, b, NULL);
}
