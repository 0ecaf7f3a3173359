/* Reciprocal square roots of two vectors of doubles at once, begun in float, where one vector holds both: for kernels that have the squares in
 * both precisions (pair_kernel_lattice.h). Included after vector.h, double only; FMM_NEAR drops accuracy.
 *
 * root_begin takes the hardware's estimate y of 1/sqrt(R) and a Newton step, y (3 - R y^2) = 2/sqrt(R) to some 4e-7, by three multiplications;
 * R is the square times a factor that makes the result what root_end wants, in double: the square itself.
 *   full: factor 4, so y = 1/sqrt(r2) (1 + e); then y (1-h)^(-1/2) by three terms of its series, h = 1 - r2 y^2 (the fourth is below 1e-18).
 *   near: factor 4/c^2, c^3 = 1/2, so y = c/sqrt(r2) (1 + e); a Newton step is then y (3/(2c) - r2 y^2): 1.5 e^2 = 3e-13 at most, 1e-14 usually.
 * Out of a float's range the results are inf or NaN, as in vector.h. */
typedef float float_vector __attribute__((vector_size(VECTOR_BYTES)));
typedef float half_float_vector __attribute__((vector_size(VECTOR_BYTES / 2)));

/* Both vectors in one of floats, and a half of that in double again (compilers make poor code of the plain conversions). */
#if defined(FMM_SIMD_AVX512_BUILD)
VECTOR_FUNCTION float_vector floats_of(fmm_vector a, fmm_vector b) {
  return (float_vector)_mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps((__m512d)a)), _mm512_cvtpd_ps((__m512d)b), 1);
}
VECTOR_FUNCTION fmm_vector doubles_of(half_float_vector a) { return (fmm_vector)_mm512_cvtps_pd((__m256)a); }
#elif defined(FMM_SIMD_AVX2_BUILD)
VECTOR_FUNCTION float_vector floats_of(fmm_vector a, fmm_vector b) {
  return (float_vector)_mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps((__m256d)a)), _mm256_cvtpd_ps((__m256d)b), 1);
}
VECTOR_FUNCTION fmm_vector doubles_of(half_float_vector a) { return (fmm_vector)_mm256_cvtps_pd((__m128)a); }
#else
VECTOR_FUNCTION float_vector floats_of(fmm_vector a, fmm_vector b) { return (float_vector){(float)a[0], (float)a[1], (float)b[0], (float)b[1]}; }
#endif

#if defined(FMM_SIMD_AVX2_BUILD) || defined(FMM_SIMD_AVX512_BUILD)
#ifdef FMM_NEAR
#define ROOT_C 0.79370052598409973738 /* 2^(-1/3) */
#else
#define ROOT_C 1
#endif
#define ROOT_FACTOR (4 / (ROOT_C * ROOT_C))

VECTOR_FUNCTION float_vector root_begin(float_vector R) {
#if defined(FMM_SIMD_AVX512_BUILD)
  float_vector y = (float_vector)_mm512_rsqrt14_ps((__m512)R);
#else
  float_vector y = (float_vector)_mm256_rsqrt_ps((__m256)R);
#endif
  return y * (3 - R * (y * y));
}

VECTOR_FUNCTION fmm_vector root_end(fmm_vector r2, half_float_vector begun) {
  fmm_vector y = doubles_of(begun), square = r2 * (y * y);
#ifdef FMM_NEAR
  return y * (vector_constant(1.5 / ROOT_C) - square);
#else
  fmm_vector h = vector_constant(1) - square;
  return y + (y * h) * (vector_constant(0.5) + h * vector_constant(0.375));
#endif
}
#else
#define ROOT_FACTOR 1
VECTOR_FUNCTION float_vector root_begin(float_vector R) { return R; }
VECTOR_FUNCTION fmm_vector root_end(fmm_vector r2, half_float_vector begun) {
  (void)begun;
  return rsqrt_estimate(r2);
}
#endif
