/* Single precision of sums in both directions: sets of points that are converted once and summed with many others (pair_sums_single.c has the arithmetic and when it is exact
 * enough). A set is kept as integers from its own middle, as fine as its extent allows. Where it meets others, all get the middle and the quantum of their union: its integers are
 * shifted right, with rounding, and the difference of the middles is added. That, rounded too, brings the error of a difference of two points from 0.4 quanta to about 0.6 (root of the mean
 * square; 0.8 where a set is a billion times smaller than the union), so that nearest pairs must be twice as far. Where the bounds of two sets are so far apart already, as those of most neighbours
 * are, no pair of theirs needs to be looked at. */
#include <math.h>
#include <string.h>

#include "kernels/pair/pair_block.h"

enum { MOST_SHIFT = 30 };
static const double MOST_FACTOR = 0x1p940; /* of fmm_pair_density_factor */
static const double rounding_of_placed = 2, rounding_of_own = 1;

/* Rows of points as the kernels take them; vectors that are written whole reach beyond the last. */
typedef struct lanes {
  alignas(64) union { int32_t quanta[3][FMM_PAIR_BLOCK + FMM_PAIR_STORE_PADDING]; float real[3][FMM_PAIR_BLOCK + FMM_PAIR_STORE_PADDING]; } at; /* real: coarse */
} lanes;
_Static_assert((int)FMM_PAIR_STORE_PADDING >= (int)FMM_PAIR_MAX_LANES && FMM_PAIR_BACK <= FMM_PAIR_BLOCK, "whole vectors");
enum { LANES_STRIDE = FMM_PAIR_BLOCK + FMM_PAIR_STORE_PADDING };

/* The middle and the quantum of what is summed together: 2^30 quanta are 2^exponent. */
typedef struct frame {
  double centre[3], quanta_per_unit, length; /* length: of the kernel's unit of length, in quanta */
  int exponent, exponent_of_length;          /* the latter in the tree's units */
  double params[FMM_MAX_PARAMS];
} frame;

static double centre_of(const fmm_pair_points *p, int axis) { return 0.5 * p->bounds[axis][0] + 0.5 * p->bounds[axis][1]; }

void fmm_pair_points_bound(fmm_pair_points *points) {
  const double *const plane[3] = {points->x, points->y, points->z};
  double half = 0;
  for (int axis = 0; axis < 3; axis++) {
    double *bounds = points->bounds[axis];
    bounds[0] = INFINITY, bounds[1] = -INFINITY;
    fmm_pair_arrays()->extent(points->n, plane[axis], bounds);
    half = fmax(half, 0.5 * bounds[1] - 0.5 * bounds[0]);
  }
  points->exponent = fmm_pair_exponent_of(half);
}

void fmm_pair_points_weigh(const fmm_pair_sum *sum, fmm_pair_points *points) {
  double range[2] = {0, 0};
  for (int k = 0; k < sum->pair->info->components; k++) fmm_pair_arrays()->extent(points->n, points->density + k * points->component_stride, range);
  const double largest = fmax(-range[0], range[1]);
  points->least_density = INFINITY;
  for (int k = 0; sum->by_products && k < sum->pair->info->components; k++)
    points->least_density = fmin(points->least_density, fmm_pair_arrays()->least(points->n, points->density + k * points->component_stride));
  points->density_factor = largest > 0 ? fmm_pair_density_factor(largest) : MOST_FACTOR; /* zeros let others have theirs */
}

void fmm_pair_store_put(const fmm_pair_sum *sum, const fmm_pair_store *store, const fmm_pair_points *points, int64_t at) {
  const fmm_pair_array_kernels *arrays = fmm_pair_arrays();
  const double *const plane[3] = {points->x, points->y, points->z}, quanta_per_unit = fmm_power_of_two(FMM_PAIR_QUANTA_BITS - points->exponent);
  for (int axis = 0; axis < 3; axis++) arrays->quanta(points->n, plane[axis], centre_of(points, axis), quanta_per_unit, store->quanta + axis * store->capacity + at);
  for (int k = 0; k < sum->pair->info->components; k++)
    arrays->scaled(points->n, points->density + k * points->component_stride, points->density_factor, store->density + k * store->capacity + at);
}

static void finish_frame(const fmm_pair_sum *sum, frame *f) {
  const fmm_pair_info *info = sum->pair->info;
  f->quanta_per_unit = fmm_power_of_two(FMM_PAIR_QUANTA_BITS - f->exponent);
  f->length = info->has_degree ? 1 : FMM_PAIR_QUANTA_OF_UNIT;
  f->exponent_of_length = FMM_PAIR_QUANTA_BITS - f->exponent - ilogb(f->length);
  fmm_pair_params_in(info, sum->params, f->exponent_of_length, f->params);
}

static void frame_of_own(const fmm_pair_sum *sum, const fmm_pair_points *p, frame *f) {
  for (int axis = 0; axis < 3; axis++) f->centre[axis] = centre_of(p, axis);
  f->exponent = p->exponent;
  finish_frame(sum, f);
}

/* Of a and the crowd. Returns how far all of the crowd is from a at least, by bounds: along an axis, so that it is 0 or less where they overlap. */
static double frame_of_all(const fmm_pair_sum *sum, const fmm_pair_crowd *crowd, const fmm_pair_side *a, frame *f) {
  double half = 0, least = INFINITY, gap[FMM_PAIR_PARTS];
  for (int axis = 0; axis < 3; axis++) {
    const double first = a->points->bounds[axis][0], last = a->points->bounds[axis][1];
    double low = first, high = last;
    for (int k = 0; k < crowd->n; k++) {
      const double *bounds = crowd->part[k].points->bounds[axis], behind = bounds[0] - last, before = first - bounds[1], apart = behind > before ? behind : before;
      low = bounds[0] < low ? bounds[0] : low, high = bounds[1] > high ? bounds[1] : high;
      gap[k] = axis == 0 || apart > gap[k] ? apart : gap[k];
    }
    half = fmax(half, 0.5 * high - 0.5 * low);
    f->centre[axis] = 0.5 * low + 0.5 * high;
  }
  for (int k = 0; k < crowd->n; k++) least = gap[k] < least ? gap[k] : least;
  f->exponent = fmm_pair_exponent_of(half);
  finish_frame(sum, f);
  return least;
}

/* A side's points into rows from the `to`-th on. */
static void place(const fmm_pair_sum *sum, const fmm_pair_store *store, const frame *f, const fmm_pair_side *side, lanes *rows, int64_t to) {
  const int shift = f->exponent - side->points->exponent;
  fmm_pair_placing placing = {.n = side->n, .in = store->quanta + side->at + side->begin, .in_stride = store->capacity, .out_stride = LANES_STRIDE,
                              .shift = shift < MOST_SHIFT ? shift : MOST_SHIFT};
  for (int axis = 0; axis < 3; axis++) placing.offset[axis] = (int32_t)lrint((centre_of(side->points, axis) - f->centre[axis]) * f->quanta_per_unit);
  if (sum->accuracy == FMM_PAIR_COARSE) fmm_pair_arrays()->place_floats(&placing, rows->at.real[0] + to);
  else fmm_pair_arrays()->place(&placing, rows->at.quanta[0] + to);
}

/* To the end of the last vector the last point again. */
static void pad(lanes *rows, int64_t n) {
  for (int axis = 0; axis < 3; axis++)
    for (int64_t i = n; i % FMM_PAIR_MAX_LANES; i++) rows->at.quanta[axis][i] = rows->at.quanta[axis][n - 1]; /* floats have the same size */
}

static double rounding_in(const fmm_pair_sum *sum, double rounding) { return sum->accuracy == FMM_PAIR_COARSE ? FMM_PAIR_COARSE_QUANTA : rounding; }

int fmm_pair_both_single(const fmm_pair_sum *sum, const fmm_pair_store *store, const fmm_pair_crowd *crowd, const fmm_pair_side *a, fmm_pair_block *b, fmm_pair_back *back) {
  const fmm_pair_array_kernels *arrays = fmm_pair_arrays();
  const int components = sum->pair->info->components;
  lanes target, source;
  alignas(64) float target_density[FMM_PAIR_MAX_COMPONENTS][LANES_STRIDE], nearest[FMM_PAIR_MAX_LANES];
  double target_factor = INFINITY;
  frame f;
  const double rounding = rounding_in(sum, rounding_of_placed), gap = frame_of_all(sum, crowd, a, &f);
  const int apart = gap * f.quanta_per_unit * fmm_pair_near_tolerance(sum) >= 2 * rounding; /* twice, as rounded points may be nearer by a quantum or two */
  for (int i = 0; i < crowd->n; i++) target_factor = fmin(target_factor, crowd->part[i].points->density_factor);
  place(sum, store, &f, a, &source, 0);
  int64_t n = 0;
  for (int i = 0; i < crowd->n; n += crowd->part[i++].n) {
    const fmm_pair_side *part = &crowd->part[i];
    place(sum, store, &f, part, &target, n);
    for (int k = 0; k < components; k++)
      arrays->rescale(part->n, store->density + k * store->capacity + part->at + part->begin, (float)(target_factor / part->points->density_factor), target_density[k] + n);
  }
  pad(&target, n);
  for (int k = 0; k < components; k++)
    for (int64_t i = n; i % FMM_PAIR_MAX_LANES; i++) target_density[k][i] = 0;
  for (int l = 0; l < FMM_PAIR_MAX_LANES; l++) nearest[l] = 3e38f;
  fmm_pair_call call = {.n_targets = (int)n, .target = {target.at.quanta[0], target.at.quanta[1], target.at.quanta[2]}, .n_sources = a->n,
                        .source = {source.at.quanta[0], source.at.quanta[1], source.at.quanta[2]}, .params = f.params, .sums = b->sums,
                        .sums_step = 1, .nearest = nearest, .back = back->sums};
  for (int k = 0; k < components; k++) call.density[k] = store->density + k * store->capacity + a->at + a->begin, call.target_density[k] = target_density[k];
  b->n = (int)n;
  fmm_pair_rows_clear(b->sums, b->n_values, b->n);
  const int by_products = fmm_pair_products_serve_single(sum, crowd, a, target_factor);
  sum->single_kernels->run[sum->gradient][apart ? (by_products ? FMM_PAIR_PRODUCTS_APART : FMM_PAIR_APART) : by_products ? FMM_PAIR_PRODUCTS : FMM_PAIR_BOTH](&call);
  fmm_pair_factors_in(sum->pair->info, f.exponent_of_length, a->points->density_factor, back->block_factor);
  fmm_pair_factors_in(sum->pair->info, f.exponent_of_length, target_factor, back->factor);
  if (!isfinite(back->factor[1]) || !isfinite(back->block_factor[1])) return 0; /* derivatives' are the larger ones */
  if (apart || fmm_pair_far_enough(sum, nearest, f.length, rounding)) return 1;
  return sum->accuracy == FMM_PAIR_SINGLE && fmm_pair_correct_both(sum, &call, crowd, a, fmm_pair_near_limit(sum, rounding), 1 / f.quanta_per_unit, b, back);
}

int fmm_pair_own_single(const fmm_pair_sum *sum, const fmm_pair_store *store, const fmm_pair_side *a, fmm_pair_block *b, double factor[2]) {
  lanes rows;
  alignas(64) float nearest[FMM_PAIR_MAX_LANES];
  alignas(64) int32_t zeros[LANES_STRIDE] = {0};
  frame f;
  frame_of_own(sum, a->points, &f);
  place(sum, store, &f, a, &rows, 0);
  pad(&rows, a->n);
  for (int l = 0; l < FMM_PAIR_MAX_LANES; l++) nearest[l] = 3e38f;
  const void *const planes[3] = {rows.at.quanta[0], rows.at.quanta[1], rows.at.quanta[2]};
  fmm_pair_call call = {.n_targets = (int)a->n, .target = {planes[0], planes[1], planes[2]}, .n_sources = a->n, .source = {planes[0], planes[1], planes[2]},
                        .params = f.params, .sums = b->sums, .sums_step = 1, .nearest = nearest, .zeros = zeros};
  for (int k = 0; k < sum->pair->info->components; k++) call.density[k] = store->density + k * store->capacity + a->at + a->begin;
  b->n = (int)a->n;
  fmm_pair_rows_clear(b->sums, b->n_values, b->n);
  sum->single_kernels->run[sum->gradient][FMM_PAIR_GUARDED](&call);
  fmm_pair_factors_in(sum->pair->info, f.exponent_of_length, a->points->density_factor, factor);
  for (int i = 0; i < b->n; i++)
    if (zeros[i] != 1) return 0; /* a point and none but itself */
  const double rounding = rounding_in(sum, rounding_of_own);
  if (!isfinite(factor[1])) return 0;
  if (!fmm_pair_far_enough(sum, nearest, f.length, rounding) &&
      !(sum->accuracy == FMM_PAIR_SINGLE && fmm_pair_correct_own(sum, &call, a, fmm_pair_near_limit(sum, rounding), 1 / f.quanta_per_unit, factor, b)))
    return 0;
  return fmm_pair_rows_finite(b->sums, b->n_values, b->n);
}
