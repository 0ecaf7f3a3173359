/* The frame of a tree: finite check, bounding box, exact scaling and the root cube (points.h says what is promised). */
#include <float.h>
#include <math.h>

#include "points.h"
#include "team_loop.h"

enum { side_bits = 28, corner_bits = 48 }; /* root side: multiple of 2^-28, corner: of 2^-48, relative to the extent's power of two;
                                             with 22 bits of box index a centre then fits the 53 bits of a double */

typedef struct bounds { double lo[3], hi[3]; } bounds;

static fmm_status first_bad_row(const char *what, int64_t n, const double *rows) {
  static const char axis[] = "xyz";
  for (int64_t i = 0; i < 3 * n; i++)
    if (!isfinite(rows[i]))
      return FMM_FAIL(FMM_ERR_INPUT, "%s row %lld (from 0): %c is %g; every coordinate must be finite", what, (long long)(i / 3), axis[i % 3], rows[i]);
  return FMM_FAIL(FMM_ERR_INTERNAL, "%s: a coordinate that is not finite was seen and lost", what);
}

typedef struct bounding { const double *rows; bounds b; int bad; } bounding;

static void extend_by_piece(void *context, int64_t begin, int64_t end) {
  bounding *all = context;
  const double *rows = all->rows;
  double l0 = INFINITY, l1 = INFINITY, l2 = INFINITY, h0 = -INFINITY, h1 = -INFINITY, h2 = -INFINITY;
  int bad = 0;
  for (int64_t i = begin; i < end; i++) {
    double x = rows[3 * i] + 0.0, y = rows[3 * i + 1] + 0.0, z = rows[3 * i + 2] + 0.0;
    bad |= !(fabs(x) <= DBL_MAX) | !(fabs(y) <= DBL_MAX) | !(fabs(z) <= DBL_MAX);
    l0 = x < l0 ? x : l0, l1 = y < l1 ? y : l1, l2 = z < l2 ? z : l2;
    h0 = x > h0 ? x : h0, h1 = y > h1 ? y : h1, h2 = z > h2 ? z : h2;
  }
  const double lo[3] = {l0, l1, l2}, hi[3] = {h0, h1, h2};
  fmm_join_begin();
  all->bad |= bad;
  for (int a = 0; a < 3; a++) {
    all->b.lo[a] = lo[a] < all->b.lo[a] ? lo[a] : all->b.lo[a];
    all->b.hi[a] = hi[a] > all->b.hi[a] ? hi[a] : all->b.hi[a];
  }
  fmm_join_end();
}

static fmm_status extend_bounds(bounds *b, const char *what, int64_t n, const double *rows, int threads) {
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

static void place_root(fmm_frame *f, const bounds *b, double root_scale) {
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
  for (int a = 0; a < 3; a++) f->lo[a] = floor(lo[a] * f->scale / corner_quantum) * corner_quantum;
  f->cells_per_unit = ldexp(1, FMM_KEY_LEVEL) / f->side;
}

fmm_status fmm_frame_make(fmm_frame *frame, int64_t n_sources, const double *sources, int64_t n_targets, const double *targets,
                          double root_scale, int threads) {
  bounds b = {{INFINITY, INFINITY, INFINITY}, {-INFINITY, -INFINITY, -INFINITY}};
  FMM_TRY(extend_bounds(&b, "source", n_sources, sources, threads));
  if (targets) FMM_TRY(extend_bounds(&b, "target", n_targets, targets, threads));
  if (b.lo[0] > b.hi[0]) b = (bounds){{0, 0, 0}, {0, 0, 0}}; /* no points */
  place_root(frame, &b, root_scale);
  return FMM_OK;
}
