/* Double precision of sums in both directions between a set and a crowd that are apart: potentials of radial homogeneous pairs. A squared distance as |t|^2 + |s|^2 - 2 t.s, coordinates from a common
 * origin, is four operations where differences take six, and a pair has 14 to 16 in all. What cancels limits it: squares, partial sums and shifted coordinates round by 2^-53 of up to (|t| + |s|)^2 in all, such that
 * 1/r errs by 2^-52 (|t| + |s|)^2 / r^2 at most where that matters. With the origin in the middle of the set, whose half diagonal is h, and at a distance of g at least, that is at most
 * 2^-52 (1 + 2 h / g)^2 (found: a seventh of it, tests/exec/test_pair_apart.c). Bounds of the sets tell g; where the error may be more than a quarter of the tolerance, differences are taken. */
#include <math.h>

#include "kernels/pair/pair_block.h"
#include "kernels/pair/pair_lattice.h"

static const double least_tolerance = 1e-11; /* hardly any neighbours are apart for less */

/* Whether nothing but distances enters, and these as powers: an exponential multiplies what they err by by as many lengths as they are long. */
static int suits(const fmm_pair_sum *sum) {
  const fmm_pair_info *info = sum->pair->info;
  return sum->kernels && !sum->gradient && sum->tolerance >= least_tolerance && info->has_degree && fmm_pair_suits_lattice(info);
}

int fmm_pair_sum_wants_bounds(const fmm_pair_sum *sum) { return sum->single_kernels || suits(sum); }

/* The middle of a set's bounds; returns the half diagonal. */
static double middle_of(const fmm_pair_points *p, double middle[3]) {
  double square = 0;
  for (int axis = 0; axis < 3; axis++) {
    const double half = 0.5 * p->bounds[axis][1] - 0.5 * p->bounds[axis][0];
    middle[axis] = 0.5 * p->bounds[axis][0] + 0.5 * p->bounds[axis][1];
    square += half * half;
  }
  return sqrt(square);
}

/* How far two sets are from one another at least, squared. */
static double square_between(const fmm_pair_points *a, const fmm_pair_points *b) {
  double square = 0;
  for (int axis = 0; axis < 3; axis++) {
    const double gap = fmax(fmax(b->bounds[axis][0] - a->bounds[axis][1], a->bounds[axis][0] - b->bounds[axis][1]), 0);
    square += gap * gap;
  }
  return square;
}

/* Of the set a; the crowd's part k. */
static int far_enough(const fmm_pair_sum *sum, const fmm_pair_crowd *crowd, const fmm_pair_side *a, double middle[3]) {
  const double diagonal = 2 * middle_of(a->points, middle);
  double least = INFINITY;
  for (int k = 0; k < crowd->n; k++) least = fmin(least, square_between(a->points, crowd->part[k].points));
  const double ratio = 1 + diagonal / sqrt(least);
  return ratio * ratio * 0x1p-52 <= 0.25 * sum->tolerance;
}

int fmm_pair_both_apart(const fmm_pair_sum *sum, const fmm_pair_crowd *crowd, const fmm_pair_side *a, fmm_pair_block *b, fmm_pair_back *back) {
  const fmm_pair_array_kernels *arrays = fmm_pair_arrays();
  const int components = sum->pair->info->components;
  alignas(64) double square[2][FMM_PAIR_BLOCK];
  alignas(64) double source[3][FMM_PAIR_BACK];
  double origin[3];
  if (!suits(sum) || !far_enough(sum, crowd, a, origin)) return 0;
  int64_t n = 0;
  for (int k = 0; k < crowd->n; n += crowd->part[k++].n) {
    const fmm_pair_side *part = &crowd->part[k];
    const fmm_pair_points *p = part->points;
    arrays->from_origin(part->n, (const double *const[]){p->x + part->begin, p->y + part->begin, p->z + part->begin}, origin, 1,
                        (double *const[]){b->target[0] + n, b->target[1] + n, b->target[2] + n}, square[0] + n);
    for (int c = 0; c < components; c++) memcpy(b->density[c] + n, p->density + c * p->component_stride + part->begin, (size_t)part->n * sizeof(double));
  }
  b->n = (int)n;
  for (; n % FMM_PAIR_MAX_LANES; n++) {
    for (int axis = 0; axis < 3; axis++) b->target[axis][n] = b->target[axis][b->n - 1];
    for (int c = 0; c < components; c++) b->density[c][n] = 0;
    square[0][n] = square[0][b->n - 1];
  }
  const fmm_pair_points *p = a->points;
  arrays->from_origin(a->n, (const double *const[]){p->x + a->begin, p->y + a->begin, p->z + a->begin}, origin, -2, (double *const[]){source[0], source[1], source[2]}, square[1]);
  fmm_pair_call call = {.n_targets = b->n, .target = {b->target[0], b->target[1], b->target[2]}, .n_sources = a->n, .source = {source[0], source[1], source[2]},
                        .square = {square[0], square[1]}, .params = sum->params, .sums = b->sums, .sums_step = 1, .back = back->sums};
  for (int c = 0; c < components; c++) {
    call.density[c] = p->density + c * p->component_stride + a->begin;
    call.target_density[c] = b->density[c];
  }
  fmm_pair_rows_clear(b->sums, b->n_values, b->n);
  sum->kernels->run[0][FMM_PAIR_APART](&call);
  return 1;
}
