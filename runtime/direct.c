/* Direct sums with compensation, two sources at a time in one SSE2 (or like) vector; one copy a pair from its header. See direct.h. */
#include "direct.h"

#include <math.h>
#include <string.h>

#include "generate.h"

typedef double pack __attribute__((vector_size(16)));
typedef int64_t pack_mask __attribute__((vector_size(16)));
enum { LANES = 2, MAX_VALUES = 12, MAX_COMPONENTS = 4 };

static inline pack reciprocal_root(pack r2) {
  pack root = {sqrt(r2[0]), sqrt(r2[1])};
  return (pack)((pack_mask)(1 / root) & (r2 > 0)); /* zero at distance zero */
}
static inline pack exponential(pack x) { return (pack){exp(x[0]), exp(x[1])}; }

#define FMM_REAL pack
#define FMM_SCALAR double
#define FMM_PAIR_FUNCTION static inline __attribute__((always_inline, unused))
#define FMM_PAIR_NAME(name) fmm_direct_##name
#define FMM_RSQRT(r2) reciprocal_root(r2)
#define FMM_EXP(x) exponential(x)
#define FMM_SQUARE(dx, dy, dz) ((dx) * (dx) + (dy) * (dy) + (dz) * (dz))
#define FMM_CONSTANT(c) (c)
#include "kernels/fmm_pair_list.h"

typedef struct sum { pack value, error, magnitude; } sum;

static inline __attribute__((always_inline)) void add(sum *s, pack x) {
  pack t = s->value + x, shadow = t - s->value;
  s->error += (s->value - (t - shadow)) + (x - shadow);
  s->value = t;
  s->magnitude += (pack)((pack_mask)x & INT64_MAX);
}

/* The lanes of one accumulator as one double, again by two-sums. */
static double total(const sum *s) {
  double value = 0, error = 0;
  for (int lane = 0; lane < LANES; lane++) {
    double x = s->value[lane], t = value + x, shadow = t - value;
    error += (value - (t - shadow)) + (x - shadow) + s->error[lane];
    value = t;
  }
  return value + error;
}

typedef struct batch { pack dx, dy, dz, s[MAX_COMPONENTS], v[3]; } batch;

static inline __attribute__((always_inline)) pack load(const double *plane, int64_t j) {
  pack p;
  memcpy(&p, plane + j, sizeof p);
  return p;
}

static inline __attribute__((always_inline)) void load_batch(const fmm_direct_case *w, const double t[3], int64_t j, int column, int components, batch *b) {
  b->dx = t[0] - load(w->x, j), b->dy = t[1] - load(w->y, j), b->dz = t[2] - load(w->z, j);
  for (int k = 0; k < components; k++) b->s[k] = load(w->density + (k * w->n_columns + column) * w->density_stride, j);
  for (int k = 0; w->normal && k < 3; k++) b->v[k] = load(w->normal[k], j);
}

/* The last source of an odd number, beside one of density zero at a harmless distance. */
static inline __attribute__((always_inline)) void load_single(const fmm_direct_case *w, const double t[3], int64_t j, int column, int components, batch *b) {
  b->dx = (pack){t[0] - w->x[j], 1}, b->dy = (pack){t[1] - w->y[j], 1}, b->dz = (pack){t[2] - w->z[j], 1};
  for (int k = 0; k < components; k++) b->s[k] = (pack){w->density[(k * w->n_columns + column) * w->density_stride + j], 0};
  for (int k = 0; w->normal && k < 3; k++) b->v[k] = (pack){w->normal[k][j], 0};
}

typedef void direct_function(const fmm_direct_case *w, const double target[3], int column, sum *sums);

/* components, outputs and gradient are constants after inlining, so that the accumulators stay in registers. */
#define DEFINE_DIRECT(name)                                                                                                              \
  static inline __attribute__((always_inline)) void sum_##name(const fmm_direct_case *w, const double target[3], int column,             \
                                                               int components, int outputs, int gradient, sum *result) {                 \
    enum { MOST = MAX_VALUES };                                                                                                          \
    int values = outputs * (gradient ? 4 : 1);                                                                                           \
    sum sums[MOST] = {0};                                                                                                                \
    batch b = {0};                                                                                                                       \
    for (int64_t j = 0; j < w->n_sources; j += LANES) {                                                                                  \
      pack one[MOST] = {0};                                                                                                              \
      if (j + LANES <= w->n_sources) load_batch(w, target, j, column, components, &b);                                                   \
      else load_single(w, target, j, column, components, &b);                                                                            \
      fmm_direct_##name(b.dx, b.dy, b.dz, b.s, b.v, w->params, 1, gradient, one);                                                        \
      _Pragma("GCC unroll 12") for (int k = 0; k < values; k++) add(&sums[k], one[k]);                                                   \
    }                                                                                                                                    \
    for (int k = 0; k < values; k++) result[k] = sums[k];                                                                                \
  }                                                                                                                                      \
  static void direct_##name(const fmm_direct_case *w, const double target[3], int column, sum *sums) {                                   \
    int components = w->pair->info->components, outputs = w->pair->info->outputs, single = components == 1 && outputs == 1;              \
    if (single && !w->gradient) sum_##name(w, target, column, 1, 1, 0, sums);                                                            \
    else if (single) sum_##name(w, target, column, 1, 1, 1, sums);                                                                       \
    else if (!w->gradient) sum_##name(w, target, column, components, outputs, 0, sums);                                                  \
    else sum_##name(w, target, column, components, outputs, 1, sums);                                                                    \
  }
FMM_PAIR_LIST(DEFINE_DIRECT)

static direct_function *find(const fmm_pair *pair) {
#define RETURN_IF_SAME(name) \
  if (pair->info == &fmm_info_##name) return direct_##name;
  FMM_PAIR_LIST(RETURN_IF_SAME)
  return NULL;
}

int fmm_direct_width(const fmm_direct_case *what) { return what->pair->info->outputs * (what->gradient ? 4 : 1) * what->n_columns; }

void fmm_direct_sums(const fmm_direct_case *what, int64_t n, const double *targets, int threads, double *values, double *magnitudes) {
  direct_function *function = find(what->pair);
  int width = fmm_direct_width(what), columns = what->n_columns;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
  for (int64_t i = 0; i < n; i++)
    for (int c = 0; c < columns; c++) {
      sum sums[MAX_VALUES] = {0};
      function(what, targets + 3 * i, c, sums);
      for (int k = 0; k < width / columns; k++) {
        values[i * width + k * columns + c] = total(&sums[k]);
        if (magnitudes) magnitudes[i * width + k * columns + c] = sums[k].magnitude[0] + sums[k].magnitude[1];
      }
    }
}

int64_t fmm_sample_rows(int64_t n, int64_t samples, uint64_t seed, int64_t *rows) {
  int64_t m = samples < n ? samples : n;
  for (int64_t i = 0; i < m; i++) {
    int64_t begin = (int64_t)((__int128)n * i / m), end = (int64_t)((__int128)n * (i + 1) / m);
    rows[i] = begin + (int64_t)(fmm_split_mix(fmm_split_mix(seed, 1) + (uint64_t)i, 1) % (uint64_t)(end - begin));
  }
  return m;
}
