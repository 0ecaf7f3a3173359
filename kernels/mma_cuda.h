/* One warp's products of 16x16 times 16x8 values on the tensor cores where there are any: in double, and of halves (16 bits).
 * In double D += A B:
 * A fragment belongs to lane = 4 g + t: a[i]: row g + 8 (i % 2), column 4 (i / 2) + t; b[i]: row 4 i + t, column g;
 * d[i]: row g + 8 (i / 2), column 2 t + i % 2. sm_90 has it as one instruction, sm_80 as eight m8n8k4 with the very same fragments, and before
 * that it is done by shuffles. */
#ifndef FMM_MMA_CUDA_H
#define FMM_MMA_CUDA_H
#include <cuda_fp16.h>
#include <stdint.h>

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
/* Called, not inlined: a kernel has hundreds of products, and an assembler that finds all of them written out in it does not end. */
static __device__ __noinline__ double2 fmm_mma_8x8x4_by_shuffles(double2 d, double a, double b) {
  const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
  for (int k = 0; k < 4; k++) {
    const double x = __shfl_sync(0xffffffffu, a, 4 * g + k), y0 = __shfl_sync(0xffffffffu, b, 8 * t + k), y1 = __shfl_sync(0xffffffffu, b, 8 * t + 4 + k);
    d = make_double2(fma(x, y0, d.x), fma(x, y1, d.y));
  }
  return d;
}

static __device__ __noinline__ float4 fmm_mma_16x8x16_by_shuffles(uint4 a, uint32_t b0, uint32_t b1, float4 c) {
  const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
  const uint32_t column[4] = {a.x, a.y, a.z, a.w};
  float d[4] = {c.x, c.y, c.z, c.w};
#pragma unroll
  for (int k = 0; k < 8; k++)
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const uint32_t x = __shfl_sync(0xffffffffu, column[i / 2 + k / 4 * 2], 4 * g + k % 4), y = __shfl_sync(0xffffffffu, k < 4 ? b0 : b1, 4 * (2 * t + i % 2) + k % 4);
      const float2 p = __half22float2(*(const __half2 *)&x), q = __half22float2(*(const __half2 *)&y);
      d[i] = fmaf(p.x, q.x, fmaf(p.y, q.y, d[i]));
    }
  return make_float4(d[0], d[1], d[2], d[3]);
}
#endif

static __device__ __forceinline__ void fmm_mma_8x8x4(double &d0, double &d1, double a, double b) {
#if __CUDA_ARCH__ >= 800
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};" : "+d"(d0), "+d"(d1) : "d"(a), "d"(b));
#elif defined(__CUDA_ARCH__)
  const double2 d = fmm_mma_8x8x4_by_shuffles(make_double2(d0, d1), a, b);
  d0 = d.x, d1 = d.y;
#endif
}

static __device__ __forceinline__ void fmm_mma_16x8x16(double (&d)[4], const double (&a)[8], const double (&b)[4]) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7,%8,%9,%10,%11}, {%12,%13,%14,%15}, {%0,%1,%2,%3};"
      : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
      : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]), "d"(a[7]), "d"(b[0]), "d"(b[1]), "d"(b[2]), "d"(b[3]));
#else
#pragma unroll
  for (int k = 0; k < 4; k++) {
    fmm_mma_8x8x4(d[0], d[1], a[2 * k], b[k]);
    fmm_mma_8x8x4(d[2], d[3], a[2 * k + 1], b[k]);
  }
#endif
}

/* The same of 16x4 by 4x8 values: low, high: row g and g + 8, column t of A; b: row t, column g of B. */
static __device__ __forceinline__ void fmm_mma_16x8x4(double (&d)[4], double low, double high, double b) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
               : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
               : "d"(low), "d"(high), "d"(b));
#else
  fmm_mma_8x8x4(d[0], d[1], low, b);
  fmm_mma_8x8x4(d[2], d[3], high, b);
#endif
}

/* D = C + A B of halves, two in a register, summed in float; sums are cut off where they would be rounded, so long ones are to be made by additions of their own.
 * a[i]: row g + 8 (i % 2), columns 8 (i / 2) + 2 t and the next; b[i]: rows 8 i + 2 t and the next, column g; d, c: as in double. */
static __device__ __forceinline__ void fmm_mma_16x8x16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, const float (&c)[4]) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
#elif defined(__CUDA_ARCH__)
  const float4 sum = fmm_mma_16x8x16_by_shuffles(make_uint4(a[0], a[1], a[2], a[3]), b0, b1, make_float4(c[0], c[1], c[2], c[3]));
  d[0] = sum.x, d[1] = sum.y, d[2] = sum.z, d[3] = sum.w;
#endif
}
#endif
