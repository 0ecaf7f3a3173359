/* Single precision of the pair-sum engine: float products, double sums.
 *
 * Coordinates go to integers, "quanta", centred on the points of the piece (a block of targets with up to 1,024 sources, gathered from the ranges; both directions: pair_sums_store.c): the
 * longest half-extent is a few quanta below 2^30 at most, so a difference is exact in 32 bits and only the rounding of each point to a quantum counts. It
 * moves a distance by 0.4 quanta (root of the mean square); at distance d a value of degree -k moves by 0.4 k / d of itself. Plain floats
 * (the coarse kernels) move it by up to 64 times as much. A piece whose nearest pair is below that rounding over the tolerance (with gradients
 * a sixteenth of it: fmm_pair_near_tolerance), or that has a pair which coincides only after rounding, goes to double; in both directions few such pairs are corrected instead (pair_sums_near.c). True coincidences are one a target where targets and sources are the same points
 * (equal points were merged), none that we know of otherwise; other counts go to double too.
 * Densities are scaled by a power of two to at most 2^40, so that neither they nor powers of 1/r leave a float's range. */
#include <math.h>
#include <string.h>

#include "kernels/pair/pair_block.h"

enum { CHUNK = FMM_PAIR_PIECE };

/* Sources and targets of a piece as the kernels take them. */
typedef struct piece {
  alignas(64) union { int32_t quanta[3][FMM_PAIR_BLOCK]; float real[3][FMM_PAIR_BLOCK]; } target;
  alignas(64) union { int32_t quanta[3][CHUNK]; float real[3][CHUNK]; } source; /* real: coarse */
  alignas(64) float normal[3][CHUNK];
  alignas(64) float density[FMM_PAIR_MAX_COMPONENTS * FMM_PAIR_MAX_COLUMNS][CHUNK]; /* [component*n_columns + column] */
  alignas(64) int32_t zeros[FMM_PAIR_BLOCK];
  alignas(64) float nearest[FMM_PAIR_MAX_LANES];
  fmm_pair_row *sums;
  double params[FMM_MAX_PARAMS];
  double quanta_per_unit, density_factor; /* unit: of the tree's scaled coordinates */
  double length;                          /* of the kernel's unit of length, in quanta */
} piece;

/* The longest half-extent of the block and the parts, and its middle. */
static double extent_of(const fmm_pair_array_kernels *arrays, const fmm_pair_block *b, const fmm_pair_parts *s, double centre[3]) {
  double half = 0;
  for (int axis = 0; axis < 3; axis++) {
    double range[2] = {b->extent[axis][0], b->extent[axis][1]};
    for (int k = 0; k < s->n; k++) {
      const double *const plane[3] = {s->part[k].x, s->part[k].y, s->part[k].z};
      arrays->extent(s->part[k].n, plane[axis], range);
    }
    half = fmax(half, 0.5 * range[1] - 0.5 * range[0]);
    centre[axis] = 0.5 * range[0] + 0.5 * range[1];
  }
  return half;
}

/* Quanta of the tree's unit of length, for the longest half-extent. */
static double quanta_of(double half) { return fmm_power_of_two(half > 0 ? FMM_PAIR_QUANTA_BITS - fmm_pair_exponent_of(half) : 0); }

static void convert_axis(const fmm_pair_array_kernels *arrays, int coarse, int64_t n, const double *in, double centre, double quanta_per_unit, int32_t *quanta,
                         float *real) {
  if (coarse) arrays->floats(n, in, centre, quanta_per_unit, real);
  else arrays->quanta(n, in, centre, quanta_per_unit, quanta);
}

static void convert_points(const fmm_pair_array_kernels *arrays, int coarse, const fmm_pair_block *b, const fmm_pair_parts *s, piece *p) {
  double centre[3], half = extent_of(arrays, b, s, centre);
  int padded = (b->n + FMM_PAIR_MAX_LANES - 1) / FMM_PAIR_MAX_LANES * FMM_PAIR_MAX_LANES;
  p->quanta_per_unit = quanta_of(half);
  for (int axis = 0; axis < 3; axis++) {
    convert_axis(arrays, coarse, padded, b->target[axis], centre[axis], p->quanta_per_unit, p->target.quanta[axis], p->target.real[axis]);
    int64_t at = 0;
    for (int k = 0; k < s->n; at += s->part[k++].n) {
      const double *const plane[3] = {s->part[k].x, s->part[k].y, s->part[k].z};
      convert_axis(arrays, coarse, s->part[k].n, plane[axis], centre[axis], p->quanta_per_unit, p->source.quanta[axis] + at, p->source.real[axis] + at);
      if (s->part[k].normal[axis]) arrays->scaled(s->part[k].n, s->part[k].normal[axis], 1, p->normal[axis] + at);
    }
  }
}

double fmm_pair_density_factor(double largest) {
  int exponent = 0;
  if (largest > 0) frexp(largest, &exponent);
  return fmm_power_of_two(exponent > -900 ? 40 - exponent : 940);
}

void fmm_pair_params_in(const fmm_pair_info *info, const double *params, int exponent, double in[FMM_MAX_PARAMS]) {
  for (int k = 0; k < info->n_params; k++) in[k] = params[k] * fmm_power_of_two(info->params[k].length_power * exponent);
}

void fmm_pair_factors_in(const fmm_pair_info *info, int exponent, double density_factor, double factor[2]) {
  const double power = -info->degree * exponent;
  factor[0] = (power == (int)power ? fmm_power_of_two((int)power) : exp2(power)) / density_factor;
  factor[1] = factor[0] * fmm_power_of_two(exponent);
}

static const double *density_of(const fmm_pair_block *b, const fmm_pair_sources *s, int component, int column) {
  return s->density + component * s->component_stride + (b->column + column) * s->column_stride;
}

static void convert_densities(const fmm_pair_array_kernels *arrays, const fmm_pair_block *b, int components, const fmm_pair_parts *s, piece *p) {
  double range[2] = {0, 0};
  for (int k = 0; k < s->n; k++)
    for (int i = 0; i < components * b->n_columns; i++)
      arrays->extent(s->part[k].n, density_of(b, &s->part[k], i / b->n_columns, i % b->n_columns), range);
  p->density_factor = fmm_pair_density_factor(fmax(-range[0], range[1]));
  int64_t at = 0;
  for (int k = 0; k < s->n; at += s->part[k++].n)
    for (int i = 0; i < components * b->n_columns; i++)
      arrays->scaled(s->part[k].n, density_of(b, &s->part[k], i / b->n_columns, i % b->n_columns), p->density_factor, p->density[i] + at);
}

static void convert_params(const fmm_pair_info *info, const double *params, piece *p) {
  p->length = info->has_degree ? 1 : FMM_PAIR_QUANTA_OF_UNIT;
  fmm_pair_params_in(info, params, ilogb(p->quanta_per_unit / p->length), p->params);
}

static void sum_piece(const fmm_pair_sum *sum, const fmm_pair_block *b, const fmm_pair_parts *s, piece *p) {
  int guarded = s->part[0].may_coincide, step = fmm_pair_step(b, guarded), components = sum->pair->info->components;
  fmm_pair_form form = guarded ? FMM_PAIR_GUARDED : b->form;
  fmm_pair_call call = {.n_targets = b->n, .target = {p->target.quanta[0], p->target.quanta[1], p->target.quanta[2]}, .n_sources = s->n_sources,
                        .source = {p->source.quanta[0], p->source.quanta[1], p->source.quanta[2]}, .normal = {p->normal[0], p->normal[1], p->normal[2]},
                        .params = p->params, .sums_step = b->n_columns / step, .nearest = p->nearest, .zeros = p->zeros};
  memset(p->zeros, 0, sizeof p->zeros);
  for (int l = 0; l < FMM_PAIR_MAX_LANES; l++) p->nearest[l] = 3e38f;
  fmm_pair_rows_clear(p->sums, b->n_values * b->n_columns, b->n);
  for (int first = 0; first < b->n_columns; first += step) {
    for (int k = 0; k < components; k++)
      for (int c = 0; c < step; c++) call.density[k * step + c] = p->density[k * b->n_columns + first + c];
    call.sums = p->sums + first;
    sum->single_kernels->run[sum->gradient][form](&call);
  }
}

int fmm_pair_far_enough(const fmm_pair_sum *sum, const float *nearest, double length, double rounding) {
  float least = nearest[0];
  for (int l = 1; l < FMM_PAIR_MAX_LANES; l++) least = nearest[l] < least ? nearest[l] : least;
  return sqrt(least) * length * fmm_pair_near_tolerance(sum) >= rounding;
}

/* Whether the piece's rounding is within the tolerance and its zero distances are true ones. */
static int acceptable(const fmm_pair_sum *sum, const fmm_pair_block *b, const fmm_pair_sources *s, piece *p) {
  if (!fmm_pair_far_enough(sum, p->nearest, p->length, sum->accuracy == FMM_PAIR_COARSE ? FMM_PAIR_COARSE_QUANTA : 1)) return 0;
  for (int i = 0; s->may_coincide && i < b->n; i++) {
    uintptr_t at = (uintptr_t)(b->x + i), begin = (uintptr_t)s->x, end = (uintptr_t)(s->x + s->n);
    if (p->zeros[i] != (at >= begin && at < end ? b->n_columns : 0)) return 0;
  }
  return fmm_pair_rows_finite(p->sums, b->n_values * b->n_columns, b->n);
}

/* Factors from sums of quanta and scaled densities to the tree's units. */
static void factors_of(const fmm_pair_sum *sum, const piece *p, double density_factor, double factor[2]) {
  fmm_pair_factors_in(sum->pair->info, ilogb(p->quanta_per_unit / p->length), density_factor, factor);
}

static void add_piece(const fmm_pair_sum *sum, fmm_pair_block *b, piece *p) {
  double factor[2];
  factors_of(sum, p, p->density_factor, factor);
  for (int v = 0; v < b->n_values; v++)
    for (int c = 0; c < b->n_columns; c++) {
      double by = factor[sum->gradient && v % 4], *to = b->sums[v * b->n_columns + c];
      const double *from = p->sums[v * b->n_columns + c];
      fmm_pair_arrays()->add(b->n, by, from, to);
    }
}

/* Guarded parts come alone. */
static void add_parts(const fmm_pair_sum *sum, fmm_pair_block *b, fmm_pair_parts *s, piece *p) {
  const fmm_pair_array_kernels *arrays = fmm_pair_arrays();
  if (!s->n) return;
  convert_points(arrays, sum->accuracy == FMM_PAIR_COARSE, b, s, p);
  convert_densities(arrays, b, sum->pair->info->components, s, p);
  convert_params(sum->pair->info, sum->params, p);
  sum_piece(sum, b, s, p);
  if (acceptable(sum, b, &s->part[0], p)) add_piece(sum, b, p);
  else
    for (int k = 0; k < s->n; k++) fmm_pair_range_double(sum, b, &s->part[k]);
  s->n = 0, s->n_sources = 0;
}

static void add_ranges(const fmm_pair_sum *sum, fmm_pair_block *b, int64_t n_ranges, const fmm_pair_sources *ranges, fmm_pair_row *rows) {
  piece p;
  fmm_pair_parts parts;
  p.sums = rows;
  parts.n = 0, parts.n_sources = 0;
  for (int64_t r = 0; r < n_ranges; r++) {
    if (parts.n && (ranges[r].may_coincide || parts.part[0].may_coincide)) add_parts(sum, b, &parts, &p);
    for (int64_t begin = 0, taken; begin < ranges[r].n; begin += taken) {
      taken = fmm_pair_take(&parts, &ranges[r], begin, CHUNK);
      if (!taken || ranges[r].may_coincide) add_parts(sum, b, &parts, &p);
    }
  }
  add_parts(sum, b, &parts, &p);
}

__attribute__((noinline)) static void add_in_few_rows(const fmm_pair_sum *sum, fmm_pair_block *b, int64_t n_ranges, const fmm_pair_sources *ranges) {
  alignas(64) fmm_pair_row rows[FMM_PAIR_FEW_ROWS];
  add_ranges(sum, b, n_ranges, ranges, rows);
}

__attribute__((noinline)) static void add_in_many_rows(const fmm_pair_sum *sum, fmm_pair_block *b, int64_t n_ranges, const fmm_pair_sources *ranges) {
  alignas(64) fmm_pair_row rows[FMM_PAIR_MANY_ROWS];
  add_ranges(sum, b, n_ranges, ranges, rows);
}

void fmm_pair_ranges_single(const fmm_pair_sum *sum, fmm_pair_block *b, int64_t n_ranges, const fmm_pair_sources *ranges) {
  (b->n_values * b->n_columns <= FMM_PAIR_FEW_ROWS ? add_in_few_rows : add_in_many_rows)(sum, b, n_ranges, ranges);
}
