/* Reciprocal square roots of two vectors of doubles at once, begun in float, where one vector holds both: for kernels that have the squares in
 * both precisions (pair_kernel_lattice.h). Included after vector.h, in double with AVX2 or AVX-512; FMM_NEAR drops accuracy.
 *
 * root_begin takes the hardware's estimate y of 1/sqrt(R) and a Newton step, y (3 - R y^2) = 2/sqrt(R) to some 4e-7, by three multiplications;
 * R is the square times a factor that makes the result what root_end wants, in double: the square itself.
 *   full: factor 4, so y = 1/sqrt(r2) (1 + e); then y (1-h)^(-1/2) by three terms of its series, h = 1 - r2 y^2 (the fourth is below 1e-18).
 *   near: factor 4/c^2, c^3 = 1/2, so y = c/sqrt(r2) (1 + e); a Newton step is then y (3/(2c) - r2 y^2): 1.5 e^2 = 3e-13 at most, 1e-14 usually.
 * Out of a float's range the results are inf or NaN, as in vector.h. */
#include "kernels/pair/float_vectors.h"

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
