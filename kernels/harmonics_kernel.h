/* Vector code of harmonics.h, lanes over the points, of doubles or (FMM_SINGLE) floats. A step of the recurrence waits for the two before it, so several vectors of points go together; the
 * order m is the outer loop, as all of its harmonics share (x + i y)^m. In single densities and coefficients are brought to about 1 by powers of two, and what is the same all over the box, degree 0, is
 * added in double. */
#include <stdalign.h>
#include <string.h>

#include "kernels/harmonics.h"
#include "kernels/pair/pair_block.h"
#include "kernels/pair/vector.h"

#ifdef FMM_SIMD_AVX512_BUILD
#define MOST_VECTORS 4 /* that go together: 32 registers, else 16 */
#else
#define MOST_VECTORS 2
#endif

enum { BLOCK = 256 /* points of a call */, PADDING = 8 /* written beyond what is asked for */ };

typedef struct staged { alignas(64) fmm_scalar x[BLOCK + PADDING], y[BLOCK + PADDING], z[BLOCK + PADDING], c[BLOCK + PADDING], r2[BLOCK], s[BLOCK], root[BLOCK]; int n, n_vectors; } staged; /* root: 1 / distance from the middle, of points outside */

VECTOR_FUNCTION fmm_vector load(const fmm_scalar *from) { return *(const fmm_vector *)from; }
VECTOR_FUNCTION void store(fmm_scalar *to, fmm_vector v) { *(fmm_vector *)to = v; }

/* (from - center) * factor. Leaves are short: compilers spend as much on what is left of a vector as on all others. */
static void shift(int n, const double *from, double center, double factor, fmm_scalar *to) {
#ifdef FMM_SIMD_AVX512_BUILD
  const __m512d less = _mm512_set1_pd(center), by = _mm512_set1_pd(factor);
  for (int i = 0; i < n; i += 8) {
    const __mmask8 some = n - i >= 8 ? 0xff : (__mmask8)((1u << (n - i)) - 1);
    const __m512d v = _mm512_mul_pd(_mm512_sub_pd(_mm512_maskz_loadu_pd(some, from + i), less), by);
#ifdef FMM_SINGLE
    _mm256_storeu_ps(to + i, _mm512_cvtpd_ps(v));
#else
    _mm512_storeu_pd(to + i, v);
#endif
  }
#else
  for (int i = 0; i < n; i++) to[i] = (fmm_scalar)((from[i] - center) * factor);
#endif
}

/* to += by * (constant + sum * unit); by NULL: 1. */
static void add_values(int n, const fmm_scalar *sum, double unit, double constant, const fmm_scalar *by, double *to) {
#ifdef FMM_SIMD_AVX512_BUILD
#ifdef FMM_SINGLE
#define WIDENED(at) _mm512_cvtps_pd(_mm256_loadu_ps(at))
#else
#define WIDENED(at) _mm512_loadu_pd(at)
#endif
  const __m512d all = _mm512_set1_pd(constant), units = _mm512_set1_pd(unit);
  for (int i = 0; i < n; i += 8) { /* sum and by have whole vectors */
    const __mmask8 some = n - i >= 8 ? 0xff : (__mmask8)((1u << (n - i)) - 1);
    const __m512d v = _mm512_fmadd_pd(WIDENED(sum + i), units, all), old = _mm512_maskz_loadu_pd(some, to + i);
    _mm512_mask_storeu_pd(to + i, some, by ? _mm512_fmadd_pd(WIDENED(by + i), v, old) : _mm512_add_pd(v, old));
  }
#undef WIDENED
#else
  if (by)
    for (int i = 0; i < n; i++) to[i] += (double)by[i] * (constant + (double)sum[i] * unit);
  else
    for (int i = 0; i < n; i++) to[i] += constant + (double)sum[i] * unit;
#endif
}

/* n more points, from `begin` on. */
static void stage(const fmm_harmonic_box *box, const fmm_harmonic_points *points, int64_t begin, int n, staged *to) {
  fmm_scalar *const axis[] = {to->x, to->y, to->z};
  for (int a = 0; a < 3; a++) shift(n, points->at[a] + begin, box->center[a], box->per_side, axis[a] + to->n);
  to->n += n;
}

/* When all are there: squares, and outside x / |x|^2. Places up to the next vector's end are at the middle, where they are no part of any sum. */
static void end_staging(const fmm_harmonic_box *box, staged *p) {
  fmm_scalar *const axis[] = {p->x, p->y, p->z};
  p->n_vectors = (p->n + LANES - 1) / LANES;
  for (int a = 0; a < 3; a++)
    for (int i = p->n; i < p->n_vectors * LANES; i++) axis[a][i] = 0;
  for (int i = 0; i < p->n_vectors * LANES; i += LANES) {
    fmm_vector x = load(p->x + i), y = load(p->y + i), z = load(p->z + i), r2 = x * x + y * y + z * z;
    if (box->outside) {
      const fmm_vector root = where_not_zero(r2, vector_rsqrt(r2)), inverse = root * root;
      store(p->root + i, root), store(p->x + i, x * inverse), store(p->y + i, y * inverse), store(p->z + i, z * inverse);
      r2 = inverse;
    }
    store(p->r2 + i, r2);
  }
}

/* Powers of x / |x|^2 of points far outside leave a float's range by way of subnormal numbers, of which sums take 10 to 30 times as long (108 points at 100 and 3,000 sides, degree 16, one Xeon core): they are zeros
 * while harmonics are summed. Not when sums are scaled, as units of tiny densities are subnormal. */
#if defined(FMM_SINGLE) && (defined(FMM_SIMD_AVX2_BUILD) || defined(FMM_SIMD_AVX512_BUILD))
static unsigned flush_subnormals(void) {
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040); /* results and operands */
  return before;
}
static void restore_subnormals(unsigned before) { _mm_setcsr(before); }
#else
static unsigned flush_subnormals(void) { return 0; }
static void restore_subnormals(unsigned before) { (void)before; }
#endif

/* How many of the vectors that are left go together: all groups nearly alike. */
VECTOR_FUNCTION int group_of(int left, int most) { return left >= 2 * most || left == most ? most : left > most ? (left + 1) / 2 : left; }

#define STEP(q, before, z, r2, step) ((z) * (q)-broadcast(step) * ((r2) * (before)))

/* Order m of a group of vectors from place i on, whose weighted (x + i y)^m are c and s: sums over the group, lane by lane, to sum[2 (l - m)] and sum[2 (l - m) + 1], added to what is there
 * unless it is the first group. Then c and s become those of m + 1. */
VECTOR_FUNCTION void add_order(const int group, staged *p, int i, int n_degrees, const fmm_scalar *step, fmm_vector *sum) {
  fmm_vector q[MOST_VECTORS], before[MOST_VECTORS], z[MOST_VECTORS], r2[MOST_VECTORS], c[MOST_VECTORS], s[MOST_VECTORS];
#pragma GCC unroll 4
  for (int v = 0; v < group; v++) {
    q[v] = vector_constant(1), before[v] = vector_constant(0);
    z[v] = load(p->z + i + v * LANES), r2[v] = load(p->r2 + i + v * LANES), c[v] = load(p->c + i + v * LANES), s[v] = load(p->s + i + v * LANES);
  }
  for (int l = 0; l < n_degrees; l++) {
    fmm_vector cosines = q[0] * c[0], sines = q[0] * s[0];
#pragma GCC unroll 4
    for (int v = 1; v < group; v++) cosines += q[v] * c[v], sines += q[v] * s[v];
    if (i > 0) cosines += sum[2 * l], sines += sum[2 * l + 1];
    sum[2 * l] = cosines, sum[2 * l + 1] = sines;
#pragma GCC unroll 4
    for (int v = 0; v < group; v++) {
      const fmm_vector next = STEP(q[v], before[v], z[v], r2[v], step[l + 1]);
      before[v] = q[v], q[v] = next;
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < group; v++) {
    const fmm_vector x = load(p->x + i + v * LANES), y = load(p->y + i + v * LANES);
    store(p->c + i + v * LANES, x * c[v] - y * s[v]);
    store(p->s + i + v * LANES, x * s[v] + y * c[v]);
  }
}

static void add_orders(staged *p, int n_degrees, const fmm_scalar *step, fmm_vector *sum) {
  for (int at = 0, left = p->n_vectors, group; left > 0; left -= group, at += group * LANES) {
    group = group_of(left, MOST_VECTORS);
    switch (group) {
      case 1: add_order(1, p, at, n_degrees, step, sum); break;
      case 2: add_order(2, p, at, n_degrees, step, sum); break;
#if MOST_VECTORS > 2
      case 3: add_order(3, p, at, n_degrees, step, sum); break;
      case 4: add_order(4, p, at, n_degrees, step, sum); break;
#endif
    }
  }
}

/* The steps of all pairs and one more, which is read and not used. */
static const fmm_scalar *steps_of(const fmm_harmonics *h) {
#ifdef FMM_SINGLE
  return h->single_step;
#else
  return h->step;
#endif
}

static double density_factor(int64_t n_ranges, const fmm_harmonic_points *ranges) {
#ifdef FMM_SINGLE
  double range[2] = {0, 0};
  for (int64_t i = 0; i < n_ranges; i++) fmm_pair_arrays()->extent(ranges[i].n, ranges[i].density, range);
  return fmm_pair_density_factor(range[1] > -range[0] ? range[1] : -range[0]);
#else
  (void)n_ranges, (void)ranges;
  return 1;
#endif
}

/* Sums over the lanes of n of the vectors. */
VECTOR_FUNCTION void take_lanes(const fmm_vector *sum, int n, double *to) {
  const fmm_vector all = lane_sums(sum);
  for (int lane = 0; lane < n; lane++) to[lane] = (double)all[lane];
}

/* In double whatever v is in, which has whole vectors: lane by lane, then by halves. */
static double sum_of(int n_vectors, const fmm_scalar *v) {
  double sum[LANES] = {0};
  for (int i = 0; i < n_vectors; i++)
    for (int lane = 0; lane < LANES; lane++) sum[lane] += (double)v[i * LANES + lane];
  for (int half = LANES / 2; half; half /= 2)
    for (int lane = 0; lane < half; lane++) sum[lane] += sum[lane + half];
  return sum[0];
}

/* Of the points that are staged, with their densities times 1 / unit in c. */
static void add_staged(const fmm_harmonics *h, const fmm_harmonic_box *box, staged *p, double unit, double *moment) {
  fmm_vector sum[2 * (FMM_MOST_DEGREE + 1) + 2 * LANES]; /* of an order, behind those of the ones before that do not fill all lanes */
  double all[FMM_MOST_HARMONICS], total; /* total: of degree 0, most of a far field, in double whatever the others are in */
  int held = 0;
  double *to = all;
  end_staging(box, p);
  for (int i = p->n; i < p->n_vectors * LANES; i++) p->c[i] = 0;
  for (int i = 0; i < p->n_vectors * LANES; i += LANES) {
    store(p->s + i, vector_constant(0));
    if (box->outside) store(p->c + i, load(p->c + i) * load(p->root + i));
  }
  total = sum_of(p->n_vectors, p->c);
  const unsigned mode = flush_subnormals();
  for (int m = 0, k = 0; m <= h->degree; k += h->degree + 1 - m, m++) {
    int first = 0;
    add_orders(p, h->degree + 1 - m, steps_of(h) + k, sum + held);
    for (held += 2 * (h->degree + 1 - m); held >= LANES; held -= LANES, first += LANES, to += LANES) take_lanes(sum + first, LANES, to);
    for (int i = 0; first && i < held; i++) sum[i] = sum[first + i];
  }
  for (int i = held; i < LANES; i++) sum[i] = vector_constant(0);
  take_lanes(sum, held, to);
  restore_subnormals(mode);
  all[0] = total;
  for (int i = 0; i < 2 * h->n_pairs; i++) moment[i] += all[i] * unit;
  p->n = 0;
}

static void moments(const fmm_harmonics *h, const fmm_harmonic_box *box, int64_t n_ranges, const fmm_harmonic_points *ranges, double *moment) {
  const double factor = density_factor(n_ranges, ranges), unit = 1 / factor;
  staged p;
  p.n = 0;
  for (int64_t r = 0; r < n_ranges; r++) {
    if (r + 1 < n_ranges) fmm_ask_for_points(&ranges[r + 1]);
    for (int64_t begin = 0; begin < ranges[r].n;) {
      const int n = ranges[r].n - begin < BLOCK - p.n ? (int)(ranges[r].n - begin) : BLOCK - p.n;
      shift(n, ranges[r].density + begin, 0, factor, p.c + p.n);
      stage(box, &ranges[r], begin, n, &p);
      begin += n;
      if (p.n == BLOCK) add_staged(h, box, &p, unit, moment);
    }
  }
  if (p.n) add_staged(h, box, &p, unit, moment);
}

/* Values of a group of vectors from place i on. coefficient: [pair][cosine, sine][output]. */
VECTOR_FUNCTION void sum_group(const int group, const int outputs, const staged *p, int i, const fmm_harmonics *h, const fmm_scalar *coefficient, fmm_scalar (*value)[BLOCK]) {
  fmm_vector c[MOST_VECTORS], s[MOST_VECTORS], z[MOST_VECTORS], r2[MOST_VECTORS], sum[MOST_VECTORS][FMM_HARMONIC_OUTPUTS];
  const fmm_scalar *step = steps_of(h);
#pragma GCC unroll 4
  for (int v = 0; v < group; v++) {
    c[v] = vector_constant(1), s[v] = vector_constant(0);
    z[v] = load(p->z + i + v * LANES), r2[v] = load(p->r2 + i + v * LANES);
#pragma GCC unroll 4
    for (int o = 0; o < outputs; o++) sum[v][o] = vector_constant(0);
  }
  for (int m = 0; m <= h->degree; m++) {
    fmm_vector q[MOST_VECTORS], before[MOST_VECTORS], cosines[MOST_VECTORS][FMM_HARMONIC_OUTPUTS], sines[MOST_VECTORS][FMM_HARMONIC_OUTPUTS];
#pragma GCC unroll 4
    for (int v = 0; v < group; v++) {
      q[v] = vector_constant(1), before[v] = vector_constant(0);
#pragma GCC unroll 4
      for (int o = 0; o < outputs; o++) cosines[v][o] = sines[v][o] = vector_constant(0);
    }
    for (int l = m; l <= h->degree; l++, coefficient += 2 * outputs, step++) {
#pragma GCC unroll 4
      for (int v = 0; v < group; v++)
#pragma GCC unroll 4
        for (int o = 0; o < outputs; o++) cosines[v][o] += q[v] * broadcast(coefficient[o]), sines[v][o] += q[v] * broadcast(coefficient[outputs + o]);
#pragma GCC unroll 4
      for (int v = 0; v < group; v++) {
        const fmm_vector next = STEP(q[v], before[v], z[v], r2[v], step[1]);
        before[v] = q[v], q[v] = next;
      }
    }
#pragma GCC unroll 4
    for (int v = 0; v < group; v++) {
      const fmm_vector x = load(p->x + i + v * LANES), y = load(p->y + i + v * LANES), next = x * c[v] - y * s[v];
#pragma GCC unroll 4
      for (int o = 0; o < outputs; o++) sum[v][o] += c[v] * cosines[v][o] + s[v] * sines[v][o];
      s[v] = x * s[v] + y * c[v], c[v] = next;
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < group; v++)
#pragma GCC unroll 4
    for (int o = 0; o < outputs; o++) store(value[o] + i + v * LANES, sum[v][o]);
}

static void sum_potentials(const staged *p, const fmm_harmonics *h, const fmm_scalar *coefficient, fmm_scalar (*value)[BLOCK]) {
  for (int at = 0, left = p->n_vectors, group; left > 0; left -= group, at += group * LANES) {
    group = group_of(left, MOST_VECTORS);
    switch (group) {
      case 1: sum_group(1, 1, p, at, h, coefficient, value); break;
      case 2: sum_group(2, 1, p, at, h, coefficient, value); break;
#if MOST_VECTORS > 2
      case 3: sum_group(3, 1, p, at, h, coefficient, value); break;
      case 4: sum_group(4, 1, p, at, h, coefficient, value); break;
#endif
    }
  }
}

static void sum_gradients(const staged *p, const fmm_harmonics *h, const fmm_scalar *coefficient, fmm_scalar (*value)[BLOCK]) {
  for (int at = 0, left = p->n_vectors, group; left > 0; left -= group, at += group * LANES) {
    group = group_of(left, MOST_VECTORS / 2);
    if (group == 1) sum_group(1, FMM_HARMONIC_OUTPUTS, p, at, h, coefficient, value);
#if MOST_VECTORS > 2
    else sum_group(2, FMM_HARMONIC_OUTPUTS, p, at, h, coefficient, value);
#endif
  }
}

/* Coefficients as the kernel takes them (single: in room, the constants apart). Returns what they were multiplied by. */
static double convert(int n, int n_outputs, const double *coefficient, double constant[FMM_HARMONIC_OUTPUTS], void *room, const fmm_scalar **scalar) {
#ifdef FMM_SINGLE
  double range[2] = {0, 0};
  float *to = room;
  fmm_pair_arrays()->extent(n, coefficient, range);
  const double factor = fmm_pair_density_factor(range[1] > -range[0] ? range[1] : -range[0]);
  for (int i = 0; i < n; i++) to[i] = (float)(coefficient[i] * factor);
  for (int o = 0; o < n_outputs; o++) constant[o] = coefficient[o], to[o] = 0;
  *scalar = to;
  return factor;
#else
  (void)n, (void)n_outputs, (void)room;
  memset(constant, 0, FMM_HARMONIC_OUTPUTS * sizeof *constant);
  *scalar = coefficient;
  return 1;
#endif
}

/* Outside, the potential is F(x / |x|^2) / |x|, its gradient -x F / |x|^3 + (G - 2 x (x.G) / |x|^2) / |x|^3 where F and its gradient G are sums inside. */
static void add_outside(const fmm_harmonic_box *box, int n_outputs, const staged *p, const double constant[FMM_HARMONIC_OUTPUTS], double unit, const fmm_scalar (*sum)[BLOCK], double *value,
                        int64_t value_stride) {
  double *to_x = value + value_stride, *to_y = value + 2 * value_stride, *to_z = value + 3 * value_stride;
  add_values(p->n, sum[0], unit, constant[0], p->root, value);
  if (n_outputs == 1) return;
#pragma GCC ivdep
  for (int i = 0; i < p->n; i++) {
    const double x = (double)p->x[i], y = (double)p->y[i], z = (double)p->z[i], root = (double)p->root[i], f = constant[0] + (double)sum[0][i] * unit; /* x: over |x|^2 */
    const double gx = constant[1] + (double)sum[1][i] * unit, gy = constant[2] + (double)sum[2][i] * unit, gz = constant[3] + (double)sum[3][i] * unit;
    const double along = f * box->per_side + 2 * (x * gx + y * gy + z * gz);
    to_x[i] += root * (root * root * gx - x * along), to_y[i] += root * (root * root * gy - y * along), to_z[i] += root * (root * root * gz - z * along);
  }
}

static void values(const fmm_harmonics *h, const fmm_harmonic_box *box, const fmm_harmonic_points *points, int n_outputs, const double *coefficient, void *room, double *value,
                   int64_t value_stride) {
  double constant[FMM_HARMONIC_OUTPUTS];
  const fmm_scalar *scalar;
  const double unit = 1 / convert(2 * h->n_pairs * n_outputs, n_outputs, coefficient, constant, room, &scalar);
  staged p;
  alignas(64) fmm_scalar sum[FMM_HARMONIC_OUTPUTS][BLOCK];
  for (int64_t begin = 0; begin < points->n; begin += BLOCK) {
    p.n = 0;
    stage(box, points, begin, points->n - begin < BLOCK ? (int)(points->n - begin) : BLOCK, &p);
    end_staging(box, &p);
    const unsigned mode = flush_subnormals();
    if (n_outputs == 1) sum_potentials(&p, h, scalar, sum);
    else sum_gradients(&p, h, scalar, sum);
    restore_subnormals(mode);
    if (box->outside) add_outside(box, n_outputs, &p, constant, unit, (const fmm_scalar (*)[BLOCK])sum, value + begin, value_stride);
    for (int o = 0; o < n_outputs && !box->outside; o++) add_values(p.n, sum[o], unit, constant[o], NULL, value + o * value_stride + begin);
  }
}

#define TABLE__(precision, suffix) fmm_harmonics_##precision##_##suffix
#define TABLE_(precision, suffix) TABLE__(precision, suffix)
#ifdef FMM_SINGLE
#define TABLE TABLE_(single, FMM_SIMD_SUFFIX)
#else
#define TABLE TABLE_(double, FMM_SIMD_SUFFIX)
#endif
extern const fmm_harmonic_kernels TABLE;
const fmm_harmonic_kernels TABLE = {moments, values};
