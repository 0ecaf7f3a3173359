/* Chains of multiply-adds in registers, compiled once an instruction set: the arithmetic peak (calib/bench_fma.c).
 * One call does as many operations an iteration as `bench_fma.c` counts, and returns a number that depends on all of them. */
#ifndef FMM_FMA_SIMD_H
#define FMM_FMA_SIMD_H
#include <stdint.h>
#include "kernels/simd.h"

enum { FMM_FMA_CHAINS = 12 }; /* independent sums: enough to cover latency 4-5 on two units, few enough for 16 registers */

typedef struct fmm_fma_kernel {
  int width_double, width_single; /* lanes of a register */
  double (*chain_double)(int64_t iterations, double factor, double add);
  float (*chain_single)(int64_t iterations, float factor, float add);
} fmm_fma_kernel;

extern const fmm_fma_kernel fmm_fma_plain, fmm_fma_avx2, fmm_fma_avx512;

static inline const fmm_fma_kernel *fmm_fma_at(fmm_simd level) {
  return level == FMM_SIMD_AVX512 ? &fmm_fma_avx512 : level == FMM_SIMD_AVX2 ? &fmm_fma_avx2 : &fmm_fma_plain;
}
#endif
