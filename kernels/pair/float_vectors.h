/* Two vectors of doubles as one of floats, and a half of that as doubles again (compilers make poor code of the plain conversions). After vector.h. */
typedef float float_vector __attribute__((vector_size(VECTOR_BYTES)));
typedef float half_float_vector __attribute__((vector_size(VECTOR_BYTES / 2)));
typedef double double_vector __attribute__((vector_size(VECTOR_BYTES)));

#if defined(FMM_SIMD_AVX512_BUILD)
VECTOR_FUNCTION float_vector floats_of(double_vector a, double_vector b) {
  return (float_vector)_mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps((__m512d)a)), _mm512_cvtpd_ps((__m512d)b), 1);
}
VECTOR_FUNCTION double_vector doubles_of(half_float_vector a) { return (double_vector)_mm512_cvtps_pd((__m256)a); }
#elif defined(FMM_SIMD_AVX2_BUILD)
VECTOR_FUNCTION float_vector floats_of(double_vector a, double_vector b) {
  return (float_vector)_mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps((__m256d)a)), _mm256_cvtpd_ps((__m256d)b), 1);
}
VECTOR_FUNCTION double_vector doubles_of(half_float_vector a) { return (double_vector)_mm256_cvtps_pd((__m128)a); }
#else
VECTOR_FUNCTION float_vector floats_of(double_vector a, double_vector b) { return (float_vector){(float)a[0], (float)a[1], (float)b[0], (float)b[1]}; }
VECTOR_FUNCTION double_vector doubles_of(half_float_vector a) { return (double_vector){a[0], a[1]}; }
#endif
