/* Inside the pair-sum engine (pair_sums*.c): one block of targets with the sums of a chunk of columns. */
#ifndef FMM_PAIR_BLOCK_H
#define FMM_PAIR_BLOCK_H
#include <math.h>
#include <stdalign.h>
#include <string.h>

#include "kernels/pair/pair_simd.h"

/* Sums of a block, a row a value and column. They are on the stack, which of a caller's threads may be small, so that there are no more of them than are needed: few serve all but derivatives of vectors in several columns. */
typedef double fmm_pair_row[FMM_PAIR_BLOCK];
enum { FMM_PAIR_FEW_ROWS = 16, FMM_PAIR_MANY_ROWS = FMM_PAIR_MAX_VALUES * FMM_PAIR_MAX_COLUMNS };
_Static_assert((int)FMM_PAIR_FEW_ROWS >= (int)FMM_PAIR_MAX_VALUES && (int)FMM_PAIR_FEW_ROWS >= 4 * (int)FMM_PAIR_MAX_COLUMNS, "one column has room, and one output with its derivatives in all");

typedef struct fmm_pair_block {
  alignas(64) double target[3][FMM_PAIR_BLOCK];
  fmm_pair_row *sums;             /* [value*n_columns + column], 64-byte aligned, of the caller */
  alignas(64) double density[FMM_PAIR_MAX_COMPONENTS][FMM_PAIR_BLOCK]; /* both directions: of the targets as sources, one column */
  const double *x;                /* where the first target's x came from: tells whether targets and sources are the same points */
  double extent[3][2];            /* of the targets, lowest and highest; single only */
  int n, n_values, column, n_columns; /* column: the chunk's first */
  fmm_pair_form form;
} fmm_pair_block;

/* Adds one range of sources to the block's sums. */
typedef void fmm_pair_range_function(const fmm_pair_sum *sum, fmm_pair_block *b, const fmm_pair_sources *s);
fmm_pair_range_function fmm_pair_range_double, fmm_pair_range_reference;

/* Single precision works on pieces gathered from several ranges, so that short ranges share the cost of a piece. */
enum { FMM_PAIR_PIECE = 1024, FMM_PAIR_PARTS = 32 };
enum { FMM_PAIR_COARSE_QUANTA = 64 }; /* what a float of 2^30 rounds to */
typedef struct fmm_pair_parts {
  int n;
  int64_t n_sources;
  fmm_pair_sources part[FMM_PAIR_PARTS];
} fmm_pair_parts;

/* Puts points of s from the begin-th on into the parts, as many as `most` in all leave room for; how many it took (0: full). */
static inline int64_t fmm_pair_take(fmm_pair_parts *parts, const fmm_pair_sources *s, int64_t begin, int64_t most) {
  int64_t n = s->n - begin < most - parts->n_sources ? s->n - begin : most - parts->n_sources;
  if (n <= 0 || parts->n == FMM_PAIR_PARTS) return 0;
  fmm_pair_sources *part = &parts->part[parts->n++];
  *part = *s;
  part->n = n, part->x += begin, part->y += begin, part->z += begin, part->density += begin;
  for (int axis = 0; axis < 3 && s->normal[0]; axis++) part->normal[axis] += begin;
  parts->n_sources += n;
  return n;
}

/* 2^exponent. */
static inline double fmm_power_of_two(int exponent) {
  double power;
  if (exponent < -1022 || exponent > 1023) return ldexp(1, exponent);
  const uint64_t bits = (uint64_t)(exponent + 1023) << 52;
  memcpy(&power, &bits, sizeof power);
  return power;
}

/* Single precision: 2^30 quanta are 2^exponent, which is above the half-extent by so much that rounded ends differ by less than 2^31 (else the sign of a difference turns). */
enum { FMM_PAIR_QUANTA_BITS = 30, FMM_PAIR_LEAST_EXPONENT = -870 };
static inline int fmm_pair_exponent_of(double half) {
  int exponent = 0;
  if (frexp(half, &exponent) > 1 - 0x1p-28) exponent++; /* half = 2^exponent times a number from 0.5 to 1 */
  return half > 0 && exponent > FMM_PAIR_LEAST_EXPONENT ? exponent : FMM_PAIR_LEAST_EXPONENT;
}

/* Single precision: the power of two that takes densities of this magnitude to at most 2^40; a pair's parameters where lengths are multiplied by 2^exponent, and
 * what sums of densities so multiplied have to be multiplied with there, for potentials and derivatives. Exact: powers of two. */
double fmm_pair_density_factor(double largest);
/* What the rounding of coordinates may make of a near pair: of derivatives, which take it twice and of which a few may outweigh all others, a sixteenth. */
static inline double fmm_pair_near_tolerance(const fmm_pair_sum *sum) { return sum->gradient ? 0.0625 * sum->tolerance : sum->tolerance; }
/* Whether all squared distances in nearest[FMM_PAIR_MAX_LANES] are far enough for the tolerance, coordinates erring by `rounding` (about 2.5 times the root of the mean square) in the unit of
 * which `length` are the kernel's. */
int fmm_pair_far_enough(const fmm_pair_sum *sum, const float *nearest, double length, double rounding);
/* The square of that distance, in quanta. */
static inline double fmm_pair_near_limit(const fmm_pair_sum *sum, double rounding) { return rounding / fmm_pair_near_tolerance(sum) * (rounding / fmm_pair_near_tolerance(sum)); }
void fmm_pair_params_in(const fmm_pair_info *info, const double *params, int exponent, double in[FMM_MAX_PARAMS]);
void fmm_pair_factors_in(const fmm_pair_info *info, int exponent, double density_factor, double factor[2]);

/* Adds all ranges to the block's sums in single precision, pieces that are too tight for it in double. */
void fmm_pair_ranges_single(const fmm_pair_sum *sum, fmm_pair_block *b, int64_t n_ranges, const fmm_pair_sources *ranges);

/* Both directions at once: the points of several sets, which fill a block of targets. */
typedef struct fmm_pair_crowd {
  int n;
  int64_t n_points;
  fmm_pair_side part[FMM_PAIR_PARTS];
} fmm_pair_crowd;

/* Sums on the sources, row [value], and what these and the block's are to be multiplied with: potentials, derivatives. */
typedef struct fmm_pair_back {
  alignas(64) double sums[FMM_PAIR_MAX_VALUES][FMM_PAIR_BACK];
  double factor[2], block_factor[2];
} fmm_pair_back;

/* In single precision: a crowd and at most FMM_PAIR_BACK points a in both directions, at most FMM_PAIR_BLOCK points a onto themselves. They write b->sums and *back (and b->sums and
 * *factor, of potentials and derivatives), or return 0 when these must go to double. */
int fmm_pair_both_single(const fmm_pair_sum *sum, const fmm_pair_store *store, const fmm_pair_crowd *crowd, const fmm_pair_side *a, fmm_pair_block *b, fmm_pair_back *back);
int fmm_pair_own_single(const fmm_pair_sum *sum, const fmm_pair_store *store, const fmm_pair_side *a, fmm_pair_block *b, double factor[2]);

/* Corrects the pairs of a call in single, of quanta, that are nearer than sqrt(limit) of these, `quantum` long (pair_sums_near.c); 0, having done nothing, where these are too many. Sums and factors as the two
 * functions above leave them. */
int fmm_pair_correct_both(const fmm_pair_sum *sum, const fmm_pair_call *call, const fmm_pair_crowd *crowd, const fmm_pair_side *a, double limit, double quantum, fmm_pair_block *b, fmm_pair_back *back);
int fmm_pair_correct_own(const fmm_pair_sum *sum, const fmm_pair_call *call, const fmm_pair_side *a, double limit, double quantum, const double factor[2], fmm_pair_block *b);

/* Whether a crowd and a go by products of densities (pair_sums_products.c), in double, or in single, where the crowd's densities are multiplied by this factor. */
int fmm_pair_products_serve(const fmm_pair_sum *sum, const fmm_pair_crowd *crowd, const fmm_pair_side *a);
int fmm_pair_products_serve_single(const fmm_pair_sum *sum, const fmm_pair_crowd *crowd, const fmm_pair_side *a, double crowd_factor);
/* Whether they are the faster way. */
int fmm_pair_products_pay(const fmm_pair_info *info, int gradient, int n_columns);

/* In double, a crowd and at most FMM_PAIR_BACK points a that are apart; returns 0, having written nothing, when differences must be taken. */
int fmm_pair_both_apart(const fmm_pair_sum *sum, const fmm_pair_crowd *crowd, const fmm_pair_side *a, fmm_pair_block *b, fmm_pair_back *back);

/* Blocks of about equal size, multiples of the longest vector but the last. */
static inline int64_t fmm_pair_block_size(int64_t n) {
  int64_t blocks = (n + FMM_PAIR_BLOCK - 1) / FMM_PAIR_BLOCK, size = blocks ? (n + blocks - 1) / blocks : 1;
  return (size + FMM_PAIR_MAX_LANES - 1) / FMM_PAIR_MAX_LANES * FMM_PAIR_MAX_LANES;
}

/* Targets from the begin-th on into a block, padded lanes included; in single their extent too. */
void fmm_pair_load_points(fmm_pair_block *b, const fmm_pair_targets *t, int64_t begin);
void fmm_pair_load_targets(const fmm_pair_sum *sum, fmm_pair_block *b, const fmm_pair_targets *t, int64_t begin);
void fmm_pair_add_to_targets(const fmm_pair_block *b, const fmm_pair_targets *t, int64_t begin);

/* Columns and values that a call of this form takes from a chunk; calls with sums in rows. */
static inline int fmm_pair_step(const fmm_pair_block *b, int may_coincide) { return may_coincide ? 1 : b->n_columns; }

/* Those of the best instruction set allowed. */
const fmm_pair_array_kernels *fmm_pair_arrays(void);

static inline int fmm_pair_rows_finite(fmm_pair_row *rows, int n_rows, int n) {
  for (int row = 0; row < n_rows; row++)
    if (!fmm_pair_arrays()->finite(n, rows[row])) return 0;
  return 1;
}
/* Of n targets and the lanes that pad them. */
static inline void fmm_pair_rows_clear(fmm_pair_row *rows, int n_rows, int n) {
  int padded = (n + FMM_PAIR_MAX_LANES - 1) / FMM_PAIR_MAX_LANES * FMM_PAIR_MAX_LANES;
  for (int row = 0; row < n_rows; row++) fmm_pair_arrays()->clear(padded, rows[row]);
}
#endif
