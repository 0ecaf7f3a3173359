/* V's transforms on the GPU: equivalent densities of a parent's eight children to spectra, and back to check potentials. A block takes the children of a
 * parent (or a few of them). Plain sums along one axis after the other, since the input is zero but on p of L = 2p - 1 points an axis and the output is
 * needed on p only: fewer operations than a fast transform of so few points would save. These serve any order; those compiled for one are in
 * vlist_fixed_cuda.h. In the plane kz = 0 a frequency (kx, ky) and (-kx, -ky) are conjugates, so that only ky < p are
 * multiplied and transformed back. Layouts in vlist_cuda.cu; spectra are kept as C, double2, float2 (re, im) or halves. */
#ifndef FMM_VLIST_TRANSFORM_CUDA_H
#define FMM_VLIST_TRANSFORM_CUDA_H
#include <cuda_fp16.h>

#include "runtime/gpu/gpu_cuda.h"

namespace {
enum { TRANSFORM_THREADS = 256 };

struct transform {
  const double *equivalent; double *check;  /* [box][column][n] */
  const int32_t *child;                     /* 8 a slot or row */
  const int16_t *grid_surface;
  const double *twiddle, *degree;
  const double *unit;                       /* of densities and its inverse, that spectra fit a float; NULL: 1 */
  double *partial;                          /* [row][child][column and component][surface point] between slabs; NULL when there is one */
  void *spectrum;                           /* C */
  float *slot_unit;                         /* [column and component][slot]: of what halves are multiples; NULL where spectra are not kept so */
  int64_t slots;                            /* pitch of the spectrum in slots or rows */
  int64_t first;                            /* first slot or row handled */
  int order, n_surface, n, columns, components, kz_begin, kz_end, children;
};

__device__ __forceinline__ double unit_of(const transform &a, int inverse) { return a.unit ? a.unit[inverse] : 1; }

/* A source's spectrum in single: (re, im) in units of its parent's, each the sum of two halves, which together have a float's digits. As the tensor cores take them: of two children one after the other first the
 * higher halves of both, then the lower ones. */
struct alignas(8) halves { __half2 of[2]; };

/* Powers of two: a unit in which what is `most` at most is below 2^15, as halves are below 2^16 and have all of their digits from 2^-14 on, and its inverse. */
__device__ __forceinline__ float2 unit_for(float most) {
  const int exponent = max((int)(__float_as_uint(most) >> 23), 16);
  return make_float2(__uint_as_float((uint32_t)(exponent - 14) << 23), __uint_as_float((uint32_t)(268 - exponent) << 23));
}

__device__ __forceinline__ double2 widen(double2 v) { return v; }
__device__ __forceinline__ float2 narrow(double2 v) { return make_float2((float)v.x, (float)v.y); }
__device__ __forceinline__ double2 widen(float2 v) { return make_double2(v.x, v.y); }
/* Spectra are read when all of them are written, which are more than the caches hold: the first to leave them. */
__device__ __forceinline__ void keep(double2 *to, double2 v) { __stcs(to, v); }
__device__ __forceinline__ void keep(float2 *to, float2 v) { __stcs(to, v); }
/* In units of the inverse of per_unit, which only halves have; of these two lanes that differ in bit 0 have two children one after the other. */
__device__ __forceinline__ void keep(double2 *to, double2 v, float) { keep(to, v); }
__device__ __forceinline__ void keep(float2 *to, double2 v, float) { keep(to, narrow(v)); }
__device__ __forceinline__ void keep(float2 *to, float2 v, float) { keep(to, v); }
__device__ __forceinline__ void keep(halves *to, float2 v, float per_unit) {
  const float x = v.x * per_unit, y = v.y * per_unit;
  const __half2 high = __floats2half2_rn(x, y), low = __floats2half2_rn(x - __low2float(high), y - __high2float(high));
  const bool odd = threadIdx.x & 1;
  const __half2 other = __shfl_xor_sync(3u << (threadIdx.x & 30), odd ? high : low, 1);
  const __half2 first = odd ? other : high, second = odd ? low : other;
  __stcs((uint2 *)to, make_uint2(*(const uint32_t *)&first, *(const uint32_t *)&second));
}

/* Whether a child shares a sector of 32 bytes of the spectra with one that exists: the others are never written nor read (and stay zero). `existing`:
 * bit c for child c. */
template <typename C>
__device__ __forceinline__ bool in_use(unsigned existing, int c) {
  constexpr int CHILDREN = 32 / (int)sizeof(C);
  return existing >> (c & ~(CHILDREN - 1)) & ((1 << CHILDREN) - 1);
}
/* Which exist of the N children of one parent that these lanes are. */
template <int N>
__device__ __forceinline__ unsigned existing_children(int box) { return __ballot_sync(0xffffffffu, box >= 0) >> (threadIdx.x & (32 - N)) & ((1u << N) - 1); }

__device__ __forceinline__ void add_times(double2 &sum, double2 a, double2 b) {
  sum.x = fma(a.x, b.x, fma(-a.y, b.y, sum.x));
  sum.y = fma(a.x, b.y, fma(a.y, b.x, sum.y));
}

/* Blocks: (slot, part of its children; plane of the slab; column and component). */
template <typename C_>
__global__ void __launch_bounds__(TRANSFORM_THREADS) forward(const transform a) {
  extern __shared__ __align__(16) double shared[];
  const int p = a.order, L = 2 * p - 1, C = a.children, parts = 8 / C, kz = a.kz_begin + blockIdx.y;
  const int64_t slot = a.first + blockIdx.x / parts;
  const int first_child = (blockIdx.x % parts) * C, column = blockIdx.z / a.components, component = blockIdx.z % a.components;
  double2 *w = (double2 *)shared, *plane = w + L, *lines = plane + p * p * C; /* e^{-2 pi i j / L}; [x][y][c]; [x][ky][c] */
  double *in = (double *)(lines + p * L * C);                                    /* [c][surface point] */
  for (int j = threadIdx.x; j < L; j += blockDim.x) w[j] = make_double2(a.twiddle[2 * j], -a.twiddle[2 * j + 1]);
  const double unit = unit_of(a, 0);
  for (int i = threadIdx.x; i < C * a.n_surface; i += blockDim.x) {
    int c = i / a.n_surface, s = i - c * a.n_surface, box = a.child[slot * 8 + first_child + c];
    in[i] = box >= 0 ? unit * a.equivalent[((int64_t)box * a.columns + column) * a.n + component * a.n_surface + s] : 0;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < p * p * C; i += blockDim.x) {
    int c = i % C, xy = i / C;
    double2 sum = make_double2(0, 0);
    for (int z = 0, j = 0; z < p; z++) {
      int s = a.grid_surface[xy * p + z];
      if (s >= 0) {
        double v = in[c * a.n_surface + s];
        sum.x = fma(v, w[j].x, sum.x);
        sum.y = fma(v, w[j].y, sum.y);
      }
      j += kz;
      if (j >= L) j -= L;
    }
    plane[i] = sum;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < p * L * C; i += blockDim.x) {
    int c = i % C, ky = i / C % L, x = i / (C * L);
    double2 sum = make_double2(0, 0);
    for (int y = 0, j = 0; y < p; y++) {
      add_times(sum, plane[(x * p + y) * C + c], w[j]);
      j += ky;
      if (j >= L) j -= L;
    }
    lines[i] = sum;
  }
  __syncthreads();
  const int64_t pitch = (int64_t)a.columns * a.components * a.slots * 8;
  C_ *out = (C_ *)a.spectrum + (int64_t)(kz - a.kz_begin) * L * L * pitch + ((int64_t)blockIdx.z * a.slots + slot) * 8 + first_child;
  for (int i = threadIdx.x; i < L * L * C; i += blockDim.x) {
    int c = i % C, ky = i / C % L, kx = i / (C * L);
    double2 sum = make_double2(0, 0);
    for (int x = 0, j = 0; x < p; x++) {
      add_times(sum, lines[(x * L + ky) * C + c], w[j]);
      j += kx;
      if (j >= L) j -= L;
    }
    keep(out + (int64_t)(kx * L + ky) * pitch + c, sum, 1);
  }
}

/* Blocks: (row, part of its children; column and component); all planes of the slab, added to the check potentials. */
template <typename C_>
__global__ void __launch_bounds__(TRANSFORM_THREADS) inverse(const transform a) {
  extern __shared__ __align__(16) double shared[];
  const int p = a.order, L = 2 * p - 1, C = a.children, parts = 8 / C;
  const int64_t row = a.first + blockIdx.x / parts;
  const int first_child = (blockIdx.x % parts) * C, column = blockIdx.y / a.components, component = blockIdx.y % a.components;
  double2 *w = (double2 *)shared, *plane = w + L, *lines = plane + L * L * C, *face = lines + p * L * C; /* [kx][ky][c]; [x][ky][c]; [x][y][c] */
  double *sum_of = (double *)(face + p * p * C);                                                           /* [c][surface point] */
  for (int j = threadIdx.x; j < L; j += blockDim.x) w[j] = make_double2(a.twiddle[2 * j], a.twiddle[2 * j + 1]);
  double *partial = a.partial + ((row * 8 + first_child) * a.columns * a.components + blockIdx.y) * a.n_surface; /* of the first child */
  const int64_t next_child = (int64_t)a.columns * a.components * a.n_surface;
  for (int i = threadIdx.x; i < C * a.n_surface; i += blockDim.x)
    sum_of[i] = a.kz_begin ? partial[i / a.n_surface * next_child + i % a.n_surface] : 0;
  const int64_t pitch = (int64_t)a.columns * a.components * a.slots * 8;
  for (int kz = a.kz_begin; kz < a.kz_end; kz++) {
    const C_ *from = (const C_ *)a.spectrum + (int64_t)(kz - a.kz_begin) * L * L * pitch + ((int64_t)blockIdx.y * a.slots + row) * 8 + first_child;
    for (int i = threadIdx.x; i < L * L * C; i += blockDim.x) {
      if (a.child[row * 8 + first_child + i % C] < 0) continue;
      int kx = i / C / L, ky = i / C % L;
      const bool conjugate = kz == 0 && ky >= p;
      double2 f = widen(from[(int64_t)(conjugate ? (L - kx) % L * L + L - ky : i / C) * pitch + i % C]);
      plane[i] = make_double2(f.x, conjugate ? -f.y : f.y);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < p * L * C; i += blockDim.x) {
      int rest = i % (L * C), x = i / (L * C);
      double2 sum = make_double2(0, 0);
      for (int kx = 0, j = 0; kx < L; kx++) {
        add_times(sum, plane[kx * L * C + rest], w[j]);
        j += x;
        if (j >= L) j -= L;
      }
      lines[i] = sum;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < p * p * C; i += blockDim.x) {
      int c = i % C, y = i / C % p, x = i / (C * p);
      double2 sum = make_double2(0, 0);
      for (int ky = 0, j = 0; ky < L; ky++) {
        add_times(sum, lines[(x * L + ky) * C + c], w[j]);
        j += y;
        if (j >= L) j -= L;
      }
      face[i] = sum;
    }
    __syncthreads();
    double weight = kz ? 2 : 1; /* L is odd: every other frequency stands for its conjugate too */
    for (int i = threadIdx.x; i < p * p * p * C; i += blockDim.x) {
      int c = i % C, xyz = i / C, s = a.grid_surface[xyz];
      if (s < 0) continue;
      double2 f = face[xyz / p * C + c], e = w[kz * (xyz % p) % L];
      sum_of[c * a.n_surface + s] += weight * (f.x * e.x - f.y * e.y);
    }
    /* the next plane's barrier comes before `face` is written again; sum_of[i] is always the same thread's */
  }
  __syncthreads();
  for (int i = threadIdx.x; i < C * a.n_surface; i += blockDim.x) {
    int c = i / a.n_surface, s = i - c * a.n_surface, box = a.child[row * 8 + first_child + c];
    if (a.kz_end < p) partial[c * next_child + s] = sum_of[i];
    else if (box >= 0) a.check[((int64_t)box * a.columns + column) * a.n + component * a.n_surface + s] += unit_of(a, 1) * a.degree[box] * sum_of[i];
  }
}
}
#endif
