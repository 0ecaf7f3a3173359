/* Vectors of one instruction set and value type by GCC vector extensions, with the functions they lack: reciprocal square root,
 * exponential, sums over lanes. Included with FMM_SINGLE defined for float, else double; FMM_NEAR, FMM_REDUCED and FMM_COARSE drop accuracy (pair_sums.h).
 *
 * Reciprocal square root: hardware estimate y with h = 1 - r2 y^2, then y (1-h)^(-1/2) by its series, as many terms as the estimate
 * needs: |h| <= 2^-10.4 (AVX2: rsqrtps, 1.5*2^-12) or 2^-13 (AVX-512: rsqrt14); (1-h)^(-1/2) = 1 + h/2 + 3h^2/8 + 5h^3/16 + 35h^4/128...
 * In two steps, so that a loop may take the estimate of a later pair while it refines that of an earlier one (pair_kernel.h).
 * In AVX2 doubles the estimate has 24 bits or fewer, so y^2 is exact. Out of a float's range (r2 < 2^-126) it gives inf or NaN, which the
 * engine finds in the sums and repairs; see pair_sums.c. */
#include <stdint.h>
#if defined(FMM_SIMD_AVX2_BUILD) || defined(FMM_SIMD_AVX512_BUILD)
#include <immintrin.h>
#endif
#include <math.h>

#if defined(FMM_SIMD_AVX512_BUILD)
enum { VECTOR_BYTES = 64, VECTOR_REGISTERS = 32 };
#elif defined(FMM_SIMD_AVX2_BUILD)
enum { VECTOR_BYTES = 32, VECTOR_REGISTERS = 16 };
#else
enum { VECTOR_BYTES = 16, VECTOR_REGISTERS = 16 };
#endif

#ifdef FMM_SINGLE
typedef float fmm_scalar;
typedef int32_t fmm_integer;
#else
typedef double fmm_scalar;
typedef int64_t fmm_integer;
#endif
typedef fmm_scalar fmm_vector __attribute__((vector_size(VECTOR_BYTES)));
typedef fmm_integer fmm_mask __attribute__((vector_size(VECTOR_BYTES)));
enum { LANES = VECTOR_BYTES / (int)sizeof(fmm_scalar) };

#define VECTOR_FUNCTION static inline __attribute__((always_inline, unused))

VECTOR_FUNCTION fmm_vector broadcast(fmm_scalar c) { return c - (fmm_vector){0}; } /* x - 0 is x, even for -0 */
VECTOR_FUNCTION fmm_vector vector_constant(double c) { return broadcast((fmm_scalar)c); }

#if defined(FMM_SIMD_AVX512_BUILD) && defined(FMM_SINGLE)
VECTOR_FUNCTION fmm_vector rsqrt_estimate(fmm_vector r2) { return (fmm_vector)_mm512_rsqrt14_ps((__m512)r2); }
#elif defined(FMM_SIMD_AVX512_BUILD)
VECTOR_FUNCTION fmm_vector rsqrt_estimate(fmm_vector r2) { return (fmm_vector)_mm512_rsqrt14_pd((__m512d)r2); }
#elif defined(FMM_SIMD_AVX2_BUILD) && defined(FMM_SINGLE)
VECTOR_FUNCTION fmm_vector rsqrt_estimate(fmm_vector r2) { return (fmm_vector)_mm256_rsqrt_ps((__m256)r2); }
#elif defined(FMM_SIMD_AVX2_BUILD)
VECTOR_FUNCTION fmm_vector rsqrt_estimate(fmm_vector r2) {
  return (fmm_vector)_mm256_cvtps_pd(_mm_rsqrt_ps(_mm256_cvtpd_ps((__m256d)r2)));
}
#else
VECTOR_FUNCTION fmm_vector rsqrt_estimate(fmm_vector r2) {
  fmm_vector y;
  for (int i = 0; i < LANES; i++) y[i] = 1 / (fmm_scalar)sqrt(r2[i]);
  return y;
}
#endif

/* 1/sqrt(r2) from its estimate y. */
VECTOR_FUNCTION fmm_vector rsqrt_refine(fmm_vector r2, fmm_vector y) {
#if defined(FMM_SIMD_AVX2_BUILD) || defined(FMM_SIMD_AVX512_BUILD)
  fmm_vector h = vector_constant(1) - r2 * (y * y);
#if defined(FMM_COARSE) && defined(FMM_SIMD_AVX512_BUILD)
  (void)h;
  return y;
#elif defined(FMM_SINGLE) || defined(FMM_REDUCED)
  return y + (y * vector_constant(0.5)) * h;
#elif defined(FMM_NEAR)
  return y + (y * h) * (vector_constant(0.5) + h * vector_constant(0.375));
#elif defined(FMM_SIMD_AVX512_BUILD)
  return y + (y * h) * (vector_constant(0.5) + h * (vector_constant(0.375) + h * vector_constant(0.3125)));
#else
  return y + (y * h) * (vector_constant(0.5) + h * (vector_constant(0.375) + h * (vector_constant(0.3125) + h * vector_constant(0.2734375))));
#endif
#else
  (void)r2;
  return y;
#endif
}
VECTOR_FUNCTION fmm_vector vector_rsqrt(fmm_vector r2) { return rsqrt_refine(r2, rsqrt_estimate(r2)); }

/* ROOT_MULTIPLE / sqrt(r2) from the estimate: the Newton step, or the series of (1-h)^(-1/2) times what makes its last coefficient 1, in another variable u = h + ROOT_SHIFT
 * in which its last but one vanishes, so that a term less has to be added (squares completed). For sums that are powers of the root, which are divided by that power of the multiple
 * at their end. */
#if (defined(FMM_SIMD_AVX2_BUILD) || defined(FMM_SIMD_AVX512_BUILD)) && !(defined(FMM_COARSE) && defined(FMM_SIMD_AVX512_BUILD))
enum { SCALED = 1 };
#if defined(FMM_SINGLE) || defined(FMM_REDUCED)
#define ROOT_MULTIPLE 2
VECTOR_FUNCTION fmm_vector rsqrt_refine_scaled(fmm_vector r2, fmm_vector y) { return y * (vector_constant(3) - r2 * (y * y)); }
#else
#if defined(FMM_NEAR) /* 8/3 + 4h/3 + h^2 = u^2 + 20/9 */
#define ROOT_MULTIPLE (8. / 3)
#define ROOT_SHIFT (2. / 3)
VECTOR_FUNCTION fmm_vector root_series(fmm_vector u) { return vector_constant(20. / 9) + u * u; }
#elif defined(FMM_SIMD_AVX512_BUILD) /* 16/5 + 8h/5 + 6h^2/5 + h^3 = u (u^2 + 28/25) + 336/125 */
#define ROOT_MULTIPLE (16. / 5)
#define ROOT_SHIFT (2. / 5)
VECTOR_FUNCTION fmm_vector root_series(fmm_vector u) { return vector_constant(336. / 125) + u * (vector_constant(28. / 25) + u * u); }
#else /* 128/35 + 64h/35 + 48h^2/35 + 8h^3/7 + h^4 = (u^2 + 108/245)^2 + 2112u/1715 + 182016/60025 */
#define ROOT_MULTIPLE (128. / 35)
#define ROOT_SHIFT (2. / 7)
VECTOR_FUNCTION fmm_vector root_series(fmm_vector u) {
  fmm_vector square = vector_constant(108. / 245) + u * u;
  return square * square + (vector_constant(182016. / 60025) + u * vector_constant(2112. / 1715));
}
#endif
VECTOR_FUNCTION fmm_vector rsqrt_refine_scaled(fmm_vector r2, fmm_vector y) { return y * root_series(vector_constant(1 + ROOT_SHIFT) - r2 * (y * y)); }
#endif
#else
enum { SCALED = 0 };
#define ROOT_MULTIPLE 1
VECTOR_FUNCTION fmm_vector rsqrt_refine_scaled(fmm_vector r2, fmm_vector y) { return rsqrt_refine(r2, y); }
#endif

#if defined(FMM_SIMD_AVX512_BUILD) && defined(FMM_SINGLE)
VECTOR_FUNCTION fmm_vector vector_min(fmm_vector a, fmm_vector b) { return (fmm_vector)_mm512_min_ps((__m512)a, (__m512)b); }
#elif defined(FMM_SIMD_AVX2_BUILD) && defined(FMM_SINGLE)
VECTOR_FUNCTION fmm_vector vector_min(fmm_vector a, fmm_vector b) { return (fmm_vector)_mm256_min_ps((__m256)a, (__m256)b); }
#else
VECTOR_FUNCTION fmm_vector vector_min(fmm_vector a, fmm_vector b) {
  fmm_mask less = a < b;
  return (fmm_vector)(((fmm_mask)a & less) | ((fmm_mask)b & ~less));
}
#endif

/* y, and 0 at distance zero. */
#if defined(FMM_SIMD_AVX512_BUILD) && defined(FMM_SINGLE)
VECTOR_FUNCTION fmm_vector where_not_zero(fmm_vector r2, fmm_vector y) {
  return (fmm_vector)_mm512_maskz_mov_ps(_mm512_cmpneq_ps_mask((__m512)r2, _mm512_setzero_ps()), (__m512)y);
}
#else
VECTOR_FUNCTION fmm_vector where_not_zero(fmm_vector r2, fmm_vector y) { return (fmm_vector)((fmm_mask)y & (r2 != 0)); }
#endif

#ifdef FMM_SINGLE
/* *nearest becomes the smaller of it and r2 where that is not zero; *apart counts those lanes. By the mask of where_not_zero, so that a compiler makes one. */
VECTOR_FUNCTION void note_distance(fmm_vector r2, fmm_vector *nearest, fmm_mask *apart) {
#ifdef FMM_SIMD_AVX512_BUILD
  const __mmask16 some = _mm512_cmpneq_ps_mask((__m512)r2, _mm512_setzero_ps());
  *nearest = (fmm_vector)_mm512_mask_min_ps((__m512)*nearest, some, (__m512)r2, (__m512)*nearest);
  *apart = (fmm_mask)_mm512_mask_add_epi32((__m512i)*apart, some, (__m512i)*apart, _mm512_set1_epi32(1));
#else
  const fmm_mask some = r2 != 0;
  *apart -= some;
  *nearest = vector_min((fmm_vector)((fmm_mask)r2 | (~some & (fmm_mask)vector_constant(3e38))), *nearest);
#endif
}
#endif

VECTOR_FUNCTION fmm_vector vector_rsqrt_guarded(fmm_vector r2) { return where_not_zero(r2, vector_rsqrt(r2)); }

/* exp(x) = 2^n exp(f), |f| <= ln(2)/2, n rounded by adding 1.5 * 2^(mantissa bits); ln 2 in two parts (Cody & Waite, Software Manual for the
 * Elementary Functions, 1980, ch. 6); exp(f) by its series, cut where the next term is below the accuracy. Results below the smallest
 * normal number are 0; x is at most 88 (float) or 709. NaN stays NaN. */
VECTOR_FUNCTION fmm_vector vector_exp(fmm_vector x) {
#ifdef FMM_SINGLE
  const fmm_scalar shift = 0x1.8p23f, ln2_high = 0x1.62e4p-1f, ln2_low = 0x1.7f7d1cp-20f, smallest = -87.3f;
  enum { TERMS = 6, BITS = 23, BIAS = 127 };
#else
  const fmm_scalar shift = 0x1.8p52, ln2_high = 0x1.62e42fefap-1, ln2_low = 0x1.cf79abc9e3b39p-40, smallest = -708.3;
#ifdef FMM_REDUCED
  enum { TERMS = 8, BITS = 52, BIAS = 1023 };
#else
  enum { TERMS = 13, BITS = 52, BIAS = 1023 };
#endif
#endif
  static const double inverse_factorial[] = {1, 1, 1. / 2, 1. / 6, 1. / 24, 1. / 120, 1. / 720, 1. / 5040, 1. / 40320, 1. / 362880,
                                             1. / 3628800, 1. / 39916800, 1. / 479001600, 1. / 6227020800.};
  fmm_mask tiny = x < smallest;
  fmm_vector t = x * (fmm_scalar)1.4426950408889634 + shift, n = t - shift;
  fmm_vector f = (x - n * ln2_high) - n * ln2_low, p = vector_constant(inverse_factorial[TERMS]);
#pragma GCC unroll 16
  for (int i = TERMS - 1; i >= 0; i--) p = p * f + (fmm_scalar)inverse_factorial[i];
  fmm_vector power = (fmm_vector)(((fmm_mask)t << BITS) + ((fmm_integer)BIAS << BITS));
  return (fmm_vector)(~tiny & (fmm_mask)(p * power));
}

#if defined(FMM_SIMD_AVX512_BUILD) && defined(FMM_SINGLE)
#define LANE_PAIRS(odd) {0 + odd, 2 + odd, 4 + odd, 6 + odd, 8 + odd, 10 + odd, 12 + odd, 14 + odd, 16 + odd, 18 + odd, 20 + odd, 22 + odd, 24 + odd, 26 + odd, 28 + odd, 30 + odd}
#elif defined(FMM_SIMD_AVX512_BUILD) || (defined(FMM_SIMD_AVX2_BUILD) && defined(FMM_SINGLE))
#define LANE_PAIRS(odd) {0 + odd, 2 + odd, 4 + odd, 6 + odd, 8 + odd, 10 + odd, 12 + odd, 14 + odd}
#elif defined(FMM_SIMD_AVX2_BUILD) || defined(FMM_SINGLE)
#define LANE_PAIRS(odd) {0 + odd, 2 + odd, 4 + odd, 6 + odd}
#else
#define LANE_PAIRS(odd) {0 + odd, 2 + odd}
#endif

/* Sums over the lanes of LANES vectors, in order: halves are paired and added until one vector holds all. */
VECTOR_FUNCTION fmm_vector lane_sums(const fmm_vector *rows) {
  const fmm_mask even = LANE_PAIRS(0), odd = LANE_PAIRS(1);
  fmm_vector v[LANES];
#pragma GCC unroll 16
  for (int k = 0; k < LANES; k++) v[k] = rows[k];
#pragma GCC unroll 4
  for (int n = LANES / 2; n > 0; n /= 2)
#pragma GCC unroll 8
    for (int k = 0; k < n; k++) v[k] = __builtin_shuffle(v[2 * k], v[2 * k + 1], even) + __builtin_shuffle(v[2 * k], v[2 * k + 1], odd);
  return v[0];
}
