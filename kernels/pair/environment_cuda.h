/* The environments in which pair headers are compiled for the GPU (see pair.h): double with a third-order step after the hardware's seed of
 * 1/sqrt (1.7e-16), double with a Newton step (1.3e-12), float; each open, and guarded where a distance of zero may occur (contributes 0).
 * Seeds: rsqrt.approx.ftz.f64 has a relative error of 9.3e-7. FMM_PAIR_HEADER is the pair's header, FMM_CUDA_PAIR its name. */
#ifndef FMM_ENVIRONMENT_CUDA_H
#define FMM_ENVIRONMENT_CUDA_H

static __device__ __forceinline__ double fmm_rsqrt_seed(double r2) {
  double y;
  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(r2));
  return y;
}
static __device__ __forceinline__ double fmm_rsqrt_third(double r2) {
  double y = fmm_rsqrt_seed(r2), e = fma(-(r2 * y), y, 1.0);
  return fma(y * e, fma(0.375, e, 0.5), y);
}
/* y/2 by its exponent, off the double pipe: the seed's low word is zero. */
static __device__ __forceinline__ double fmm_rsqrt_newton(double r2) {
  double y = fmm_rsqrt_seed(r2), e = fma(-(r2 * y), y, 1.0);
  return fma(__hiloint2double(__double2hiint(y) - 0x00100000, 0), e, y);
}
/* The seed flushes subnormal squares: those rare pairs take the library's way. */
static __device__ __forceinline__ double fmm_rsqrt_guarded(double r2, double y) {
  if (r2 < 2.3e-308) y = r2 > 0 ? rsqrt(r2) : 0;
  return y;
}
static __device__ __forceinline__ float fmm_rsqrt_float(float r2) {
  float y;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(r2));
  return y;
}

#define FMM_PAIR_FUNCTION static __device__ __forceinline__
#define FMM_PAIR_NAME(name) fmm_pair_of_##name
#define FMM_CONSTANT(c) ((FMM_REAL)(c))
#define FMM_SQUARE(dx, dy, dz) ((dx) * (dx) + (dy) * (dy) + (dz) * (dz))
#define FMM_EXP(x) exp(x)

#define FMM_REAL double
#define FMM_SCALAR double
namespace third_open {
#define FMM_RSQRT(r2) fmm_rsqrt_third(r2)
#include FMM_PAIR_HEADER
#undef FMM_RSQRT
}
namespace third_guarded {
#define FMM_RSQRT(r2) fmm_rsqrt_guarded(r2, fmm_rsqrt_third(r2))
#include FMM_PAIR_HEADER
#undef FMM_RSQRT
}
namespace newton_open {
#define FMM_RSQRT(r2) fmm_rsqrt_newton(r2)
#include FMM_PAIR_HEADER
#undef FMM_RSQRT
}
namespace newton_guarded {
#define FMM_RSQRT(r2) fmm_rsqrt_guarded(r2, fmm_rsqrt_newton(r2))
#include FMM_PAIR_HEADER
#undef FMM_RSQRT
}
#undef FMM_REAL
#undef FMM_SCALAR
#undef FMM_EXP
#define FMM_REAL float
#define FMM_SCALAR float
#define FMM_EXP(x) expf(x)
namespace float_open {
#define FMM_RSQRT(r2) fmm_rsqrt_float(r2)
#include FMM_PAIR_HEADER
#undef FMM_RSQRT
}
namespace float_guarded {
#define FMM_RSQRT(r2) ((r2) > 0 ? fmm_rsqrt_float(r2) : 0.0f)
#include FMM_PAIR_HEADER
#undef FMM_RSQRT
}
#undef FMM_REAL
#undef FMM_SCALAR
#undef FMM_EXP

#define FMM_JOIN_(a, b) a##b
#define FMM_JOIN(a, b) FMM_JOIN_(a, b)
#define FMM_PAIR_HERE FMM_JOIN(fmm_pair_of_, FMM_CUDA_PAIR)
/* An accuracy as a type: its number, and the pair with and without the guard. */
#define FMM_ACCURACY(type, real, space)                                                                                              \
  struct type {                                                                                                                   \
    typedef real Real;                                                                                                              \
    template <bool guard, int gradient, int columns>                                                                                \
    static __device__ __forceinline__ void pair(Real dx, Real dy, Real dz, const Real *s, const Real *normal, const Real *params, Real *f) { \
      if (guard) space##_guarded::FMM_PAIR_HERE(dx, dy, dz, s, normal, params, columns, gradient, f);                               \
      else space##_open::FMM_PAIR_HERE(dx, dy, dz, s, normal, params, columns, gradient, f);                                        \
    }                                                                                                                               \
  };
FMM_ACCURACY(third, double, third)
FMM_ACCURACY(newton, double, newton)
FMM_ACCURACY(single, float, float)
#endif
