/* The environments in which pair headers are compiled for the GPU (see pair.h): double with a third-order step after the hardware's seed of
 * 1/sqrt (1.7e-16), double with a Newton step (1.3e-12), float; each open, and where a distance of zero may occur (contributes 0) guarded: against zero alone, or also against squares that the seed flushes, which
 * takes three times as long and is for coordinates so small that there may be such squares (gpu_order.cu).
 * With a Newton step, FMM_RSQRT is FMM_CUDA_MULTIPLE times the root: 2 where the pair says inverse_distance, whose sums are scaled back at their end, else 1.
 * FMM_PAIR_HEADER is the pair's header, FMM_CUDA_PAIR its name. */
#ifndef FMM_ENVIRONMENT_CUDA_H
#define FMM_ENVIRONMENT_CUDA_H
#include "kernels/pair/root_cuda.h"

template <int multiple>
static __device__ __forceinline__ double fmm_rsqrt_newton_times(double r2) {
  double y = fmm_rsqrt_seed(r2);
  return multiple == 2 ? fmm_rsqrt_newton_twice(r2, y) : fmm_rsqrt_newton(r2, y);
}
template <int multiple>
static __device__ __forceinline__ double fmm_rsqrt_newton_or_zero(double r2) {
  return multiple == 2 ? fmm_rsqrt_newton_twice(r2, fmm_rsqrt_seed_or_zero(r2)) : r2 == 0 ? 0 : fmm_rsqrt_newton(r2, fmm_rsqrt_seed(r2));
}
/* Those rare pairs take the library's way. */
template <int multiple>
static __device__ __forceinline__ double fmm_rsqrt_guarded(double r2, double y) {
  if (r2 < 2.3e-308) y = r2 > 0 ? multiple * rsqrt(r2) : 0;
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
#define FMM_RSQRT(r2) fmm_rsqrt_third(r2, fmm_rsqrt_seed(r2))
#include FMM_PAIR_HEADER
#undef FMM_RSQRT
}
namespace third_guarded {
#define FMM_RSQRT(r2) fmm_rsqrt_guarded<1>(r2, fmm_rsqrt_third(r2, fmm_rsqrt_seed(r2)))
#include FMM_PAIR_HEADER
#undef FMM_RSQRT
}
namespace third_nonzero {
#define FMM_RSQRT(r2) fmm_rsqrt_third(r2, fmm_rsqrt_seed_or_zero(r2))
#include FMM_PAIR_HEADER
#undef FMM_RSQRT
}
namespace newton_open {
#define FMM_RSQRT(r2) fmm_rsqrt_newton_times<FMM_CUDA_MULTIPLE>(r2)
#include FMM_PAIR_HEADER
#undef FMM_RSQRT
}
namespace newton_guarded {
#define FMM_RSQRT(r2) fmm_rsqrt_guarded<FMM_CUDA_MULTIPLE>(r2, fmm_rsqrt_newton_times<FMM_CUDA_MULTIPLE>(r2))
#include FMM_PAIR_HEADER
#undef FMM_RSQRT
}
namespace newton_nonzero {
#define FMM_RSQRT(r2) fmm_rsqrt_newton_or_zero<FMM_CUDA_MULTIPLE>(r2)
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
namespace float_nonzero {
#define FMM_RSQRT(r2) ((r2) > 0 ? fmm_rsqrt_float(r2) : 0.0f)
#include FMM_PAIR_HEADER
#undef FMM_RSQRT
}
#undef FMM_REAL
#undef FMM_SCALAR
#undef FMM_EXP

namespace float_guarded = float_nonzero;

/* How distances of zero are met. */
enum { FMM_OPEN, FMM_NONZERO, FMM_GUARDED };
#define FMM_PAIR_HERE FMM_JOIN(fmm_pair_of_, FMM_CUDA_PAIR)
/* An accuracy as a type: its number, its multiple of the root, and the pair with each guard. */
#define FMM_ACCURACY(type, real, space, multiple)                                                                                            \
  struct type {                                                                                                                              \
    typedef real Real;                                                                                                                       \
    static constexpr int MULTIPLE = multiple;                                                                                                \
    template <int guard, int gradient, int columns>                                                                                          \
    static __device__ __forceinline__ void pair(Real dx, Real dy, Real dz, const Real *s, const Real *normal, const Real *params, Real *f) { \
      if (guard == FMM_GUARDED) space##_guarded::FMM_PAIR_HERE(dx, dy, dz, s, normal, params, columns, gradient, f);                         \
      else if (guard == FMM_NONZERO) space##_nonzero::FMM_PAIR_HERE(dx, dy, dz, s, normal, params, columns, gradient, f);                    \
      else space##_open::FMM_PAIR_HERE(dx, dy, dz, s, normal, params, columns, gradient, f);                                                 \
    }                                                                                                                                        \
  };
FMM_ACCURACY(third, double, third, 1)
FMM_ACCURACY(newton, double, newton, FMM_CUDA_MULTIPLE)
FMM_ACCURACY(single, float, float, 1)
#endif
