/* Vector code of translate.h: products of packed panels with blocks of lanes, and the butterflies of the parity regrouping.
 * The product keeps 6 rows x 2 vectors in registers; x86 has 16 (32 with AVX-512), so sums stay there and a load serves two multiply-adds. */
#include <string.h>

#include "kernels/translate.h"

#if defined(FMM_SIMD_AVX512_BUILD)
enum { WIDTH = 8 };
#elif defined(FMM_SIMD_AVX2_BUILD)
enum { WIDTH = 4 };
#else
enum { WIDTH = 2 };
#endif
typedef double vector __attribute__((vector_size(WIDTH * 8), aligned(WIDTH * 8)));
enum { PASS = 2 * WIDTH };

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

static inline vector load(const double *p) { return *(const vector *)p; }
static inline void store(double *p, vector v) { *(vector *)p = v; }

/* Six rows for the lanes from `lane` on. */
static inline __attribute__((always_inline)) void six_rows(const double *a, int n_segments, const double *const *segment, const int *length, int lane,
                                                           int rows, double *out) {
  vector sum[FMM_PANEL_ROWS][2] = {{{0}}};
  for (int s = 0; s < n_segments; s++) {
    const double *x = segment[s] + lane;
    for (int j = 0; j < length[s]; j++, x += FMM_LANES, a += FMM_PANEL_ROWS) {
      vector x0 = load(x), x1 = load(x + WIDTH);
#pragma GCC unroll 6
      for (int r = 0; r < FMM_PANEL_ROWS; r++) {
        sum[r][0] += a[r] * x0;
        sum[r][1] += a[r] * x1;
      }
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < FMM_PANEL_ROWS; r++)
    if (r < rows) {
      store(out + r * FMM_LANES + lane, sum[r][0]);
      store(out + r * FMM_LANES + lane + WIDTH, sum[r][1]);
    }
}

static void product(const fmm_panels *panels, int column_begin, int n_segments, const double *const *segment, const int *length, double *out) {
  for (int i = 0; i < panels->rows; i += FMM_PANEL_ROWS) {
    const double *a = panels->data + (int64_t)i * panels->columns + (int64_t)column_begin * FMM_PANEL_ROWS;
    for (int lane = 0; lane < FMM_LANES; lane += PASS) six_rows(a, n_segments, segment, length, lane, panels->rows - i, out + (int64_t)i * FMM_LANES);
  }
}

static inline __attribute__((always_inline)) void butterflies(vector v[FMM_MIRRORS]) {
#pragma GCC unroll 3
  for (int bit = 1; bit < FMM_MIRRORS; bit *= 2)
#pragma GCC unroll 8
    for (int i = 0; i < FMM_MIRRORS; i++)
      if (!(i & bit)) {
        vector a = v[i], b = v[i | bit];
        v[i] = a + b;
        v[i | bit] = a - b;
      }
}

static void regroup(const fmm_operators *o, const double *natural, double *regrouped) {
  const fmm_parity_map *map = &o->parity;
  if (map->n_blocks == 1) {
    memcpy(regrouped, natural, (size_t)o->n * FMM_LANES * sizeof *natural);
    return;
  }
  for (int k = 0; k < map->n_components; k++)
    for (int i = 0; i < o->shape.n_orbits; i++) {
      const int32_t *slot = map->slot + (k * o->shape.n_orbits + i) * FMM_MIRRORS, *orbit = o->shape.orbit + i * FMM_MIRRORS;
      const double *from = natural + (int64_t)k * o->n_surface * FMM_LANES;
      for (int lane = 0; lane < FMM_LANES; lane += WIDTH) {
        vector v[FMM_MIRRORS];
        for (int g = 0; g < FMM_MIRRORS; g++) v[g] = load(from + orbit[g] * FMM_LANES + lane);
        butterflies(v);
        for (int psi = 0; psi < FMM_MIRRORS; psi++) {
          int place = slot[fmm_component_parity(o->pair->info->parity, psi, k)];
          if (place >= 0) store(regrouped + (int64_t)place * FMM_LANES + lane, v[psi]);
        }
      }
    }
}

static void spread(const fmm_operators *o, const double *regrouped, double *natural) {
  const fmm_parity_map *map = &o->parity;
  if (map->n_blocks == 1) {
    memcpy(natural, regrouped, (size_t)o->n * FMM_LANES * sizeof *natural);
    return;
  }
  for (int k = 0; k < map->n_components; k++)
    for (int i = 0; i < o->shape.n_orbits; i++) {
      const int32_t *slot = map->slot + (k * o->shape.n_orbits + i) * FMM_MIRRORS, *orbit = o->shape.orbit + i * FMM_MIRRORS;
      double *to = natural + (int64_t)k * o->n_surface * FMM_LANES;
      for (int lane = 0; lane < FMM_LANES; lane += WIDTH) {
        vector v[FMM_MIRRORS];
        for (int psi = 0; psi < FMM_MIRRORS; psi++) {
          int place = slot[fmm_component_parity(o->pair->info->parity, psi, k)];
          v[psi] = place >= 0 ? load(regrouped + (int64_t)place * FMM_LANES + lane) : (vector){0};
        }
        butterflies(v);
        for (int g = 0; g < FMM_MIRRORS; g++) store(to + orbit[g] * FMM_LANES + lane, v[g]);
      }
    }
}

#if defined(FMM_SIMD_AVX512_BUILD)
#define SWAPPED_STEPS {{{0, 8, 2, 10, 4, 12, 6, 14}, {1, 9, 3, 11, 5, 13, 7, 15}}, {{0, 1, 8, 9, 4, 5, 12, 13}, {2, 3, 10, 11, 6, 7, 14, 15}}, {{0, 1, 2, 3, 8, 9, 10, 11}, {4, 5, 6, 7, 12, 13, 14, 15}}}
#elif defined(FMM_SIMD_AVX2_BUILD)
#define SWAPPED_STEPS {{{0, 4, 2, 6}, {1, 5, 3, 7}}, {{0, 1, 4, 5}, {2, 3, 6, 7}}}
#else
#define SWAPPED_STEPS {{{0, 2}, {1, 3}}}
#endif
typedef int64_t places __attribute__((vector_size(WIDTH * 8)));

/* WIDTH vectors as the columns of what they were the rows of: in steps of 1, 2, 4, blocks beside the diagonal change places. */
static inline __attribute__((always_inline)) void transpose(vector v[WIDTH]) {
  const places swapped[][2] = SWAPPED_STEPS;
#pragma GCC unroll 3
  for (int bit = 1, step = 0; bit < WIDTH; bit *= 2, step++)
#pragma GCC unroll 8
    for (int i = 0; i < WIDTH; i++)
      if (!(i & bit)) {
        const vector a = v[i], b = v[i | bit];
        v[i] = __builtin_shuffle(a, b, swapped[step][0]);
        v[i | bit] = __builtin_shuffle(a, b, swapped[step][1]);
      }
}

static inline int64_t row_at(const int32_t *row, int i) { return (int64_t)(row ? row[i] : i) * FMM_LANES; }
static inline vector load_any(const double *p) {
  vector v;
  memcpy(&v, p, sizeof v);
  return v;
}

static void put(int n, const int32_t *row, const double *const lane[FMM_LANES], double factor, double *rows) {
  const int whole = n / WIDTH * WIDTH;
  for (int first = 0; first < FMM_LANES; first += WIDTH) {
    for (int i = 0; i < whole; i += WIDTH) {
      vector v[WIDTH];
      for (int l = 0; l < WIDTH; l++) v[l] = lane[first + l] ? factor * load_any(lane[first + l] + i) : (vector){0};
      transpose(v);
      for (int k = 0; k < WIDTH; k++) store(rows + row_at(row, i + k) + first, v[k]);
    }
    for (int l = first; l < first + WIDTH; l++)
      for (int i = whole; i < n; i++) rows[row_at(row, i) + l] = lane[l] ? factor * lane[l][i] : 0;
  }
}

static void take(int n, const int32_t *row, const double *rows, int add, double *const lane[FMM_LANES]) {
  const int whole = n / WIDTH * WIDTH;
  for (int first = 0; first < FMM_LANES; first += WIDTH) {
    for (int i = 0; i < whole; i += WIDTH) {
      vector v[WIDTH];
      for (int k = 0; k < WIDTH; k++) v[k] = load(rows + row_at(row, i + k) + first);
      transpose(v);
      for (int l = 0; l < WIDTH; l++) {
        if (!lane[first + l]) continue;
        if (add) v[l] += load_any(lane[first + l] + i);
        memcpy(lane[first + l] + i, &v[l], sizeof v[l]);
      }
    }
    for (int l = first; l < first + WIDTH; l++)
      for (int i = whole; i < n && lane[l]; i++) lane[l][i] = (add ? lane[l][i] : 0) + rows[row_at(row, i) + l];
  }
}

static void slopes(const fmm_harmonics *h, double unit, const double *from, double *to) {
  memset(to, 0, 3 * (size_t)h->n_terms * FMM_LANES * sizeof *to);
  for (int i = 0; i < h->n_slopes; i++) {
    const fmm_harmonic_slope *s = &h->slope[i];
    const double *in = from + (int64_t)s->from * FMM_LANES;
    double *out = to + ((int64_t)s->axis * h->n_terms + s->to) * FMM_LANES;
    const double factor = unit * s->factor;
    for (int lane = 0; lane < FMM_LANES; lane += WIDTH) store(out + lane, load(out + lane) + factor * load(in + lane));
  }
}

static void hadamard(double *z, int64_t n) {
  for (int64_t i = 0; i < n; i += WIDTH) {
    vector v[FMM_MIRRORS];
    for (int c = 0; c < FMM_MIRRORS; c++) v[c] = load(z + c * n + i);
    butterflies(v);
    for (int c = 0; c < FMM_MIRRORS; c++) store(z + c * n + i, v[c]);
  }
}

extern const fmm_translate_kernels JOIN(fmm_translate_, FMM_SIMD_SUFFIX);
const fmm_translate_kernels JOIN(fmm_translate_, FMM_SIMD_SUFFIX) = {product, regroup, spread, put, take, slopes, hadamard};
