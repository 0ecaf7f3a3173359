/* 1/sqrt on the GPU: in float the hardware's, in double from its hardware's seed, rsqrt.approx.ftz.f64, which has a relative error of 9.3e-7: a third-order step (1.7e-16), one Newton
 * step (1.3e-12), and the latter's double value, which saves the halving where a sum is linear in it. The seed flushes subnormal squares. */
#ifndef FMM_ROOT_CUDA_H
#define FMM_ROOT_CUDA_H

static __device__ __forceinline__ double fmm_rsqrt_seed(double r2) {
  double y;
  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(r2));
  return y;
}
/* 0 for 0: by the seed's high word, its low one is zero. */
static __device__ __forceinline__ double fmm_rsqrt_seed_or_zero(double r2) {
  double y = fmm_rsqrt_seed(r2);
  return __hiloint2double(r2 == 0 ? 0 : __double2hiint(y), 0);
}
static __device__ __forceinline__ double fmm_rsqrt_third(double r2, double y) {
  double e = fma(-(r2 * y), y, 1.0);
  return fma(y * e, fma(0.375, e, 0.5), y);
}
/* y/2 by its exponent, off the double pipe: the seed's low word is zero. */
static __device__ __forceinline__ double fmm_rsqrt_newton(double r2, double y) {
  double e = fma(-(r2 * y), y, 1.0);
  return fma(__hiloint2double(__double2hiint(y) - 0x00100000, 0), e, y);
}
static __device__ __forceinline__ double fmm_rsqrt_newton_twice(double r2, double y) { return y * fma(-(r2 * y), y, 3.0); }
static __device__ __forceinline__ float fmm_rsqrt_float(float r2) {
  float y;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(r2));
  return y;
}
/* sum += 2 density / r, with the density's product beside the step instead of behind it. */
static __device__ __forceinline__ void fmm_add_twice(double &sum, double density, double r2) {
  double y = fmm_rsqrt_seed(r2);
  sum = fma(density * y, fma(-(r2 * y), y, 3.0), sum);
}
#endif
