/* What a warp's 32 lanes find out together, by one instruction where the device has it. */
#ifndef FMM_WARP_CUDA_H
#define FMM_WARP_CUDA_H
#include <stdint.h>

/* The largest of all lanes' numbers. The compiler knows that all have the same then, so that a loop to it needs no register a lane. */
static __device__ __forceinline__ uint32_t fmm_most_of_warp(uint32_t n) {
#if __CUDA_ARCH__ >= 800
  return __reduce_max_sync(0xffffffffu, n);
#else
#pragma unroll
  for (int step = 16; step; step >>= 1) n = max(n, __shfl_xor_sync(0xffffffffu, n, step));
  return n;
#endif
}
#endif
