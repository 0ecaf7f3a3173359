/* What the pair-sum engine does with arrays beside the pairs themselves: conversions of points and densities, extents, sums that are checked and added (pair_simd.h).
 * Compiled with the vector kernels, since every source comes by once a block of targets: between small leaves this is a fifth of the work. */
#include <string.h>

#include "kernels/pair/pair_simd.h"
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

static void add(int64_t n, double factor, const double *in, double *to) {
  for (int64_t i = 0; i < n; i++) to[i] += factor * in[i];
}

static void clear(int64_t n, double *out) {
  for (int64_t i = 0; i < n; i++) out[i] = 0;
}

#define TABLE_(suffix) fmm_pair_arrays_##suffix
#define TABLE(suffix) TABLE_(suffix)
const fmm_pair_array_kernels TABLE(FMM_SIMD_SUFFIX) = {to_quanta, to_floats, to_shifted, to_float, widen, all_finite, add, clear};
