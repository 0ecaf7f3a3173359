/* The frame of a tree: finite check, bounding box, exact scaling and the root cube (points.h says what is promised). */
#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/simd.h"
#include "points.h"
#include "team_loop.h"

/* Along an axis along which points have less than a 64th of the root's side (sheets, lines) it begins a third of the side before them: on every level such points are a third, or two, of their box from its
 * end, where expansions are better than at an end, at which all would lie. */
enum { thin = 64 };
enum { side_bits = 28, corner_bits = 48 }; /* root side: multiple of 2^-28, corner: of 2^-48, relative to the extent's power of two;
                                             with 22 bits of box index a centre then fits the 53 bits of a double */

static fmm_status first_bad_row(const char *what, int64_t n, const double *rows) {
  static const char axis[] = "xyz";
  for (int64_t i = 0; i < 3 * n; i++)
    if (!isfinite(rows[i]))
      return FMM_FAIL(FMM_ERR_INPUT, "%s row %lld (from 0): %c is %g; every coordinate must be finite", what, (long long)(i / 3), axis[i % 3], rows[i]);
  return FMM_FAIL(FMM_ERR_INTERNAL, "%s: a coordinate that is not finite was seen and lost", what);
}

typedef struct bounding { const double *rows; fmm_bounds b; int bad; } bounding;

/* Four rows side by side, twelve values in vectors of four, of which those of lane k are of axis k % 3, as pieces begin with a row. What is not finite times zero is no number, and stays none in a sum. */
enum { FOUR = 4, VECTORS = 3, LANES = FOUR * VECTORS };
typedef double four __attribute__((vector_size(FOUR * sizeof(double))));
typedef int64_t mask __attribute__((vector_size(FOUR * sizeof(int64_t))));
typedef union extremes { struct { four low[VECTORS], high[VECTORS], not_finite[VECTORS], least; } of; double lane[3][LANES], all[3 * LANES + FOUR]; } extremes;

static inline __attribute__((always_inline)) void find_in_vectors(extremes *e, int64_t n, const double *value) {
  extremes own = *e;
  for (int64_t i = 0; i + LANES <= n; i += LANES)
    for (int k = 0; k < VECTORS; k++) {
      four v;
      memcpy(&v, value + i + FOUR * k, sizeof v);
      const mask lower = v < own.of.low[k], higher = v > own.of.high[k];
      own.of.low[k] = (four)((lower & (mask)v) | (~lower & (mask)own.of.low[k])), own.of.high[k] = (four)((higher & (mask)v) | (~higher & (mask)own.of.high[k]));
      own.of.not_finite[k] += v * 0;
      const mask infinity = {0x7ff0000000000000, 0x7ff0000000000000, 0x7ff0000000000000, 0x7ff0000000000000};
      const four magnitude = (four)(((mask)v & INT64_MAX) | ((v == 0) & infinity));
      const mask less = magnitude < own.of.least;
      own.of.least = (four)((less & (mask)magnitude) | (~less & (mask)own.of.least));
    }
  *e = own;
}

#ifdef __x86_64__
FMM_TARGET_AVX2 static void find_avx2(extremes *e, int64_t n, const double *value) { find_in_vectors(e, n, value); }
#else
#define find_avx2 find_in_vectors
#endif

static void find_extremes(extremes *e, int64_t n, const double *value) {
  if (fmm_simd_level() >= FMM_SIMD_AVX2) find_avx2(e, n, value);
  else find_in_vectors(e, n, value);
}

static void extend_by_piece(void *context, int64_t begin, int64_t end) {
  bounding *all = context;
  const double *value = all->rows + 3 * begin;
  const int64_t n = 3 * (end - begin);
  extremes e;
  for (int k = 0; k < LANES; k++) e.lane[0][k] = INFINITY, e.lane[1][k] = -INFINITY, e.lane[2][k] = 0;
  for (int k = 0; k < FOUR; k++) e.all[3 * LANES + k] = INFINITY;
  find_extremes(&e, n, value);
  for (int64_t i = n - n % LANES; i < n; i++) {
    const int k = (int)(i % LANES);
    e.lane[0][k] = fmin(e.lane[0][k], value[i]), e.lane[1][k] = fmax(e.lane[1][k], value[i]), e.lane[2][k] += value[i] * 0;
    if (value[i] != 0) e.all[3 * LANES] = fmin(e.all[3 * LANES], fabs(value[i]));
  }
  fmm_join_begin();
  for (int k = 0; k < FOUR; k++) all->b.least = fmin(all->b.least, e.all[3 * LANES + k]);
  for (int k = 0; k < LANES; k++) {
    const int a = k % 3;
    const double low = e.lane[0][k], high = e.lane[1][k];
    all->bad |= e.lane[2][k] != 0;
    all->b.lo[a] = low < all->b.lo[a] ? low + 0.0 : all->b.lo[a]; /* no -0 */
    all->b.hi[a] = high > all->b.hi[a] ? high + 0.0 : all->b.hi[a];
  }
  fmm_join_end();
}

static fmm_status extend_bounds(fmm_bounds *b, const char *what, int64_t n, const double *rows, int threads) {
  bounding all = {rows, *b, 0};
  fmm_team_loop(n, FMM_PARALLEL_MINIMUM, extend_by_piece, &all, threads);
  if (all.bad) return first_bad_row(what, n, rows);
  *b = all.b;
  return FMM_OK;
}

/* A shift that every coordinate in [lo, hi] can be subtracted by without rounding (Sterbenz: within a factor of two), or 0. */
static double exact_shift(double lo, double hi) {
  if (lo > 0 && hi / 2 <= lo) return lo;
  if (hi < 0 && lo / 2 >= hi) return hi;
  return 0;
}

void fmm_frame_place(fmm_frame *f, const fmm_bounds *b, double root_scale) {
  double lo[3], hi[3], eighth = 0; /* an eighth of the extent: cannot overflow */
  for (int a = 0; a < 3; a++) {
    f->shift[a] = exact_shift(b->lo[a], b->hi[a]);
    lo[a] = b->lo[a] - f->shift[a], hi[a] = b->hi[a] - f->shift[a];
    eighth = fmax(eighth, hi[a] / 8 - lo[a] / 8);
    if (hi[a] > lo[a] && eighth == 0) eighth = DBL_TRUE_MIN; /* an extent of denormal size */
  }
  f->coincident = eighth == 0;
  f->scale = 1, f->side = 1;
  if (!f->coincident) {
    int exponent = -(ilogb(eighth) + 3);
    exponent = exponent > 1022 ? 1022 : exponent < -1022 ? -1022 : exponent;
    f->scale = ldexp(1, exponent);
    double extent = 0;
    for (int a = 0; a < 3; a++) extent = fmax(extent, hi[a] * f->scale - lo[a] * f->scale);
    double side_quantum = ldexp(1, ilogb(extent) - side_bits);
    f->side = (ceil(extent * root_scale / side_quantum) + 1) * side_quantum;
  }
  double corner_quantum = ldexp(1, ilogb(f->side) - corner_bits);
  for (int a = 0; a < 3; a++) {
    const double extent = hi[a] * f->scale - lo[a] * f->scale, before = extent < f->side / thin ? f->side / 3 : 0;
    f->lo[a] = floor((lo[a] * f->scale - before) / corner_quantum) * corner_quantum;
  }
  f->cells_per_unit = ldexp(1, FMM_KEY_LEVEL) / f->side;
}

fmm_status fmm_bounds_of(fmm_bounds *bounds, int64_t n_sources, const double *sources, int64_t n_targets, const double *targets, int threads) {
  fmm_bounds b = {{INFINITY, INFINITY, INFINITY}, {-INFINITY, -INFINITY, -INFINITY}, INFINITY};
  FMM_TRY(extend_bounds(&b, "source", n_sources, sources, threads));
  if (targets) FMM_TRY(extend_bounds(&b, "target", n_targets, targets, threads));
  if (b.lo[0] > b.hi[0]) b = (fmm_bounds){{0, 0, 0}, {0, 0, 0}, INFINITY}; /* no points */
  *bounds = b;
  return FMM_OK;
}
