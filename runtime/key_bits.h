/* Bits of Morton keys, for the host (keys.c) and for a GPU (gpu/gpu_rows.cu) from one source. */
#ifndef FMM_KEY_BITS_H
#define FMM_KEY_BITS_H
#include <stdint.h>

#ifdef __CUDACC__
#define FMM_KEY_FUNCTION static __host__ __device__ __forceinline__
#else
#define FMM_KEY_FUNCTION static inline
#endif

/* Each of 21 bits three places from the next. */
FMM_KEY_FUNCTION uint64_t fmm_key_spread(uint64_t v) {
  v = (v | v << 32) & 0x1f00000000ffff;
  v = (v | v << 16) & 0x1f0000ff0000ff;
  v = (v | v << 8) & 0x100f00f00f00f00f;
  v = (v | v << 4) & 0x10c30c30c30c30c3;
  return (v | v << 2) & 0x1249249249249249;
}
#endif
