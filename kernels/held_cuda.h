/* Addresses in shared memory that stay in registers. Where an array lies there depends on the block's place in its cluster, and the compiler (CUDA 13) finds it out again wherever the array is
 * used, in innermost loops too: a special register is read, for some twenty cycles, before the first value can be.
 * Where a loop's first instructions are loads from there, it is worth a register. */
#ifndef FMM_HELD_CUDA_H
#define FMM_HELD_CUDA_H

template <typename T>
static __device__ __forceinline__ T *fmm_held(T *shared) {
  unsigned at = (unsigned)__cvta_generic_to_shared(shared);
  asm volatile("" : "+r"(at));
  return (T *)__cvta_shared_to_generic(at);
}

/* N values, an even number, from shared memory by twos: that they lie at a multiple of 16 bytes the compiler cannot know of a held address. */
template <int N>
static __device__ __forceinline__ void fmm_take(const double *from, double (&to)[N]) {
  static_assert(N % 2 == 0, "vectors of two");
#pragma unroll
  for (int k = 0; k < N; k += 2) {
    const double2 v = *(const double2 *)(from + k);
    to[k] = v.x, to[k + 1] = v.y;
  }
}
template <int N>
static __device__ __forceinline__ void fmm_take(const float *from, float (&to)[N]) {
  static_assert(N % 4 == 0, "vectors of four");
#pragma unroll
  for (int k = 0; k < N; k += 4) {
    const float4 v = *(const float4 *)(from + k);
    to[k] = v.x, to[k + 1] = v.y, to[k + 2] = v.z, to[k + 3] = v.w;
  }
}
#endif
