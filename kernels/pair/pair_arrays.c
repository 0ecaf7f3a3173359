/* What the pair-sum engine does with arrays beside the pairs themselves: conversions of points and densities, extents, sums that are checked and added (pair_simd.h).
 * Compiled with the vector kernels, since every source comes by once a block of targets: between small leaves this is a fifth of the work. */
#include <string.h>

#include "kernels/pair/pair_simd.h"
#include "kernels/pair/shell.h"
#include "kernels/pair/vector.h"
#include "kernels/pair/float_vectors.h"

/* Rounding to an integer by adding 1.5 * 2^52, which all instruction sets can. */
static void to_quanta(int64_t n, const double *in, double centre, double quanta_per_unit, int32_t *out) {
  for (int64_t i = 0; i < n; i++) out[i] = (int32_t)((in[i] - centre) * quanta_per_unit + 0x1.8p52 - 0x1.8p52);
}

static void to_floats(int64_t n, const double *in, double centre, double quanta_per_unit, float *out) {
  for (int64_t i = 0; i < n; i++) out[i] = (float)((in[i] - centre) * quanta_per_unit);
}

static void to_shifted(int64_t n, const double *in, double centre, double *out) {
  for (int64_t i = 0; i < n; i++) out[i] = in[i] - centre;
}

static void to_float(int64_t n, const double *in, double factor, float *out) {
  for (int64_t i = 0; i < n; i++) out[i] = (float)(in[i] * factor);
}

typedef int32_t int_vector __attribute__((vector_size(VECTOR_BYTES)));
enum { INTEGERS = VECTOR_BYTES / (int)sizeof(int32_t) };

VECTOR_FUNCTION void place_rows(const fmm_pair_placing *p, int floats, int32_t *out) {
  const int shift = p->shift; /* which what is written cannot change */
  const int64_t n = p->n;
  const int32_t half = shift ? (int32_t)1 << (shift - 1) : 0;
  for (int axis = 0; axis < 3; axis++) {
    const int32_t *from = p->in + axis * p->in_stride, offset = p->offset[axis];
    int32_t *to = out + axis * p->out_stride;
    for (int64_t i = 0; i < n; i += INTEGERS) {
      int_vector v;
      memcpy(&v, from + i, sizeof v);
      v = ((v + half) >> shift) + offset;
      if (floats) v = (int_vector)__builtin_convertvector(v, float_vector);
      memcpy(to + i, &v, sizeof v);
    }
  }
}
static void place(const fmm_pair_placing *p, int32_t *out) { place_rows(p, 0, out); }
static void place_floats(const fmm_pair_placing *p, float *out) { place_rows(p, 1, (int32_t *)out); }

static void rescale(int64_t n, const float *in, float factor, float *out) {
  for (int64_t i = 0; i < n; i += INTEGERS) {
    float_vector v;
    memcpy(&v, in + i, sizeof v);
    v *= factor;
    memcpy(out + i, &v, sizeof v);
  }
}

#if defined(FMM_SIMD_AVX512_BUILD)
#define LESSER(a, b) ((double_vector)_mm512_min_pd((__m512d)(a), (__m512d)(b)))
#define GREATER(a, b) ((double_vector)_mm512_max_pd((__m512d)(a), (__m512d)(b)))
#elif defined(FMM_SIMD_AVX2_BUILD)
#define LESSER(a, b) ((double_vector)_mm256_min_pd((__m256d)(a), (__m256d)(b)))
#define GREATER(a, b) ((double_vector)_mm256_max_pd((__m256d)(a), (__m256d)(b)))
#else
typedef int64_t integer_vector __attribute__((vector_size(VECTOR_BYTES)));
#define CHOOSE(which, a, b) ((double_vector)(((integer_vector)(a) & (which)) | ((integer_vector)(b) & ~(which))))
#define LESSER(a, b) CHOOSE((a) < (b), a, b)
#define GREATER(a, b) CHOOSE((a) > (b), a, b)
#endif

/* Numbers that are not compare false and change nothing. */
static void widen(int64_t n, const double *in, double range[2]) {
  enum { PARTS = 2, LENGTH = VECTOR_BYTES / (int)sizeof(double) };
  double_vector low[PARTS], high[PARTS];
  for (int k = 0; k < PARTS; k++) low[k] = range[0] - (double_vector){0}, high[k] = range[1] - (double_vector){0};
  int64_t i = 0;
  for (; i + PARTS * LENGTH <= n; i += PARTS * LENGTH)
#pragma GCC unroll 2
    for (int k = 0; k < PARTS; k++) {
      double_vector v;
      memcpy(&v, in + i + k * LENGTH, sizeof v);
      low[k] = LESSER(v, low[k]), high[k] = GREATER(v, high[k]);
    }
  low[0] = LESSER(low[1], low[0]), high[0] = GREATER(high[1], high[0]);
  for (int l = 0; l < LENGTH; l++) {
    range[0] = low[0][l] < range[0] ? low[0][l] : range[0];
    range[1] = high[0][l] > range[1] ? high[0][l] : range[1];
  }
  for (; i < n; i++) {
    range[0] = in[i] < range[0] ? in[i] : range[0];
    range[1] = in[i] > range[1] ? in[i] : range[1];
  }
}

static int all_finite(int64_t n, const double *in) {
  const uint64_t magnitude = 0x7fffffffffffffffu, one = 0x0010000000000000u;
  uint64_t carries = 0;
  for (int64_t i = 0; i < n; i++) {
    uint64_t bits;
    memcpy(&bits, &in[i], sizeof bits);
    carries |= (bits & magnitude) + one; /* into the sign, of what is no number alone */
  }
  return !(carries >> 63);
}

static double least(int64_t n, const double *in) {
  const uint64_t magnitude = 0x7fffffffffffffffu;
  uint64_t least_bits = 0x7ff0000000000000u; /* magnitudes are ordered as their bits are */
  double value;
  for (int64_t i = 0; i < n; i++) {
    uint64_t bits;
    memcpy(&bits, &in[i], sizeof bits);
    bits &= magnitude;
    least_bits = bits < least_bits ? bits : least_bits;
  }
  memcpy(&value, &least_bits, sizeof value);
  return value;
}

#ifdef FMM_SIMD_AVX512_BUILD
/* Leaves are short: compilers spend as much on what is left of a vector as on all others. */
static void add(int64_t n, double factor, const double *in, double *to) {
  const __m512d by = _mm512_set1_pd(factor);
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) _mm512_storeu_pd(to + i, _mm512_fmadd_pd(by, _mm512_loadu_pd(in + i), _mm512_loadu_pd(to + i)));
  const __mmask8 rest = (__mmask8)((1u << (n - i)) - 1);
  if (rest) _mm512_mask_storeu_pd(to + i, rest, _mm512_fmadd_pd(by, _mm512_maskz_loadu_pd(rest, in + i), _mm512_maskz_loadu_pd(rest, to + i)));
}
#else
static void add(int64_t n, double factor, const double *in, double *to) {
  for (int64_t i = 0; i < n; i++) to[i] += factor * in[i];
}
#endif

static void clear(int64_t n, double *out) {
  for (int64_t i = 0; i < n; i++) out[i] = 0;
}

/* One bit a lane that is below the limit. */
VECTOR_FUNCTION unsigned lanes_below(float_vector v, float_vector limit) {
#if defined(FMM_SIMD_AVX512_BUILD)
  return _mm512_cmp_ps_mask((__m512)v, (__m512)limit, _CMP_LT_OQ);
#elif defined(FMM_SIMD_AVX2_BUILD)
  return (unsigned)_mm256_movemask_ps(_mm256_cmp_ps((__m256)v, (__m256)limit, _CMP_LT_OQ));
#else
  unsigned lanes = 0;
  for (int l = 0; l < INTEGERS; l++) lanes |= (unsigned)(v[l] < limit[l]) << l;
  return lanes;
#endif
}

/* The smallest boxes around a call's targets, INTEGERS at a time, which lie beside one another mostly. */
enum { GROUPS = FMM_PAIR_BLOCK / INTEGERS, GROUP_VECTORS = (GROUPS + INTEGERS - 1) / INTEGERS };
typedef union group_boxes { struct { int_vector low[3][GROUP_VECTORS], high[3][GROUP_VECTORS]; } of; int32_t low_high[2][3][GROUP_VECTORS * INTEGERS]; } group_boxes;

static void bound_groups(const fmm_pair_call *call, group_boxes *box) {
  for (int axis = 0; axis < 3; axis++) {
    const int32_t *at = call->target[axis];
    for (int g = 0; g * INTEGERS < call->n_targets; g++) {
      int32_t low = at[g * INTEGERS], high = low;
      for (int l = 0; l < INTEGERS; l++) {
        const int32_t v = at[g * INTEGERS + l];
        low = v < low ? v : low, high = v > high ? v : high;
      }
      box->low_high[0][axis][g] = low, box->low_high[1][axis][g] = high;
    }
  }
}

VECTOR_FUNCTION int_vector pick(int_vector mask, int_vector yes, int_vector no) { return (mask & yes) | (~mask & no); }

VECTOR_FUNCTION float_vector square_of(const int_vector difference[3]) {
  const float_vector x = __builtin_convertvector(difference[0], float_vector), y = __builtin_convertvector(difference[1], float_vector), z = __builtin_convertvector(difference[2], float_vector);
  return x * x + y * y + z * z;
}

/* One bit for each of the v-th INTEGERS groups that a source may be near to: it is, where it is near to one of their targets, as every step of either square rounds what is not larger to what is not larger. */
VECTOR_FUNCTION unsigned groups_near(const group_boxes *box, int v, const int_vector s[3], float_vector most) {
  int_vector outside[3];
  for (int axis = 0; axis < 3; axis++) {
    const int_vector below = box->of.low[axis][v] - s[axis], above = s[axis] - box->of.high[axis][v], larger = pick(below > above, below, above);
    outside[axis] = larger & (larger > 0);
  }
  return lanes_below(square_of(outside), most);
}

static int near_pairs(const fmm_pair_call *call, float limit, fmm_pair_indices *pair) {
  const float_vector zero = {0}, most = limit - zero;
  const int n_groups = (call->n_targets + INTEGERS - 1) / INTEGERS;
  group_boxes box;
  int n = 0;
  memset(&box, 0, sizeof box); /* groups that are not there are looked at with the others of a vector */
  bound_groups(call, &box);
  for (int64_t j = 0; j < call->n_sources; j++) {
    int_vector s[3];
    for (int axis = 0; axis < 3; axis++) s[axis] = ((const int32_t *)call->source[axis])[j] - (int_vector){0};
    for (int v = 0; v * INTEGERS < n_groups; v++)
      for (unsigned near = groups_near(&box, v, s, most); near; near &= near - 1) {
        const int g = v * INTEGERS + __builtin_ctz(near), i = g * INTEGERS;
        if (g >= n_groups) break;
        int_vector d[3];
        for (int axis = 0; axis < 3; axis++) d[axis] = *(const int_vector *)((const int32_t *)call->target[axis] + i) - s[axis];
        const float_vector r2 = square_of(d);
        for (unsigned left = lanes_below(r2, most) & lanes_below(-r2, zero); left; left &= left - 1) {
          const int lane = __builtin_ctz(left);
          if (i + lane >= call->n_targets) break;
          if (n == FMM_PAIR_MOST_NEAR) return n + 1;
          pair[n++] = (fmm_pair_indices){(int16_t)(i + lane), (int16_t)j};
        }
      }
  }
  return n;
}

static void from_origin(int64_t n, const double *const in[3], const double origin[3], double factor, double *const out[3], double *square) {
  const double *x = in[0], *y = in[1], *z = in[2], at[3] = {origin[0], origin[1], origin[2]};
  double *to_x = out[0], *to_y = out[1], *to_z = out[2];
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) {
    const double dx = x[i] - at[0], dy = y[i] - at[1], dz = z[i] - at[2];
    to_x[i] = dx * factor, to_y[i] = dy * factor, to_z[i] = dz * factor;
    square[i] = dx * dx + dy * dy + dz * dz;
  }
}

/* fmm_shell_add. Values and derivatives are different planes. */
static void add_shell(int64_t n, const double *const at[3], const double center[3], double decay2, double part, int gradient, double *value, int64_t value_stride) {
  const double *x = at[0], *y = at[1], *z = at[2], middle[3] = {center[0], center[1], center[2]};
  double *to_x = value + value_stride, *to_y = value + 2 * value_stride, *to_z = value + 3 * value_stride;
  for (int64_t i = 0; i < n && decay2 == 0; i++) value[i] += part;
  if (decay2 == 0) return;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) {
    const double dx = x[i] - middle[0], dy = y[i] - middle[1], dz = z[i] - middle[2];
    value[i] += part * fmm_shell_value(decay2 * (dx * dx + dy * dy + dz * dz));
  }
  if (!gradient) return;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) {
    const double dx = x[i] - middle[0], dy = y[i] - middle[1], dz = z[i] - middle[2], slope = 2 * decay2 * part * fmm_shell_slope(decay2 * (dx * dx + dy * dy + dz * dz));
    to_x[i] += slope * dx, to_y[i] += slope * dy, to_z[i] += slope * dz;
  }
}

#define TABLE_(suffix) fmm_pair_arrays_##suffix
#define TABLE(suffix) TABLE_(suffix)
const fmm_pair_array_kernels TABLE(FMM_SIMD_SUFFIX) = {to_quanta, to_floats, to_shifted, to_float, place, place_floats, rescale, widen, all_finite, least, add, clear, near_pairs, from_origin, add_shell};
