/* Joins the parts of U in both directions at once (pair_both_cuda.cu): what tiles of other leaves gave to a leaf's points, and its own tiles behind the first of several, are added to its results in their order.
 * Of a point a part has as many values as results have, potential and derivatives, side by side; results have a plane for each. */
#include "runtime/gpu/gpu_cuda.h"

namespace {
enum { WARPS = 4, THREADS = 32 * WARPS, MOST_PIECES = 65535 /* blocks of a grid in y */ };

struct job { const fmm_cuda_joint *joint; int64_t n; const void *partial; const double *scale; double *out; int64_t n_targets; };

/* What takes parts back to the densities' unit. */
__device__ __forceinline__ double unit_of(const double *, const double *) { return 1; }
__device__ __forceinline__ double unit_of(const float *, const double *scale) { return scale[1]; }

/* A point's values in a part. */
template <typename Part, int VALUES> struct __align__(VALUES * sizeof(Part) > 16 ? 16 : VALUES * sizeof(Part)) values { Part of[VALUES]; };

template <typename Part, int VALUES>
__device__ __forceinline__ void add(const values<Part, VALUES> &part, double (&sum)[VALUES]) {
#pragma unroll
  for (int v = 0; v < VALUES; v++) sum[v] += part.of[v];
}

template <typename Part, int VALUES>
__device__ __forceinline__ void add_to_results(const job &a, int64_t target, const double (&sum)[VALUES]) {
#pragma unroll
  for (int v = 0; v < VALUES; v++) a.out[v * a.n_targets + target] += unit_of((const Part *)a.partial, a.scale) * sum[v];
}

/* A block 32 points of a leaf that has many parts, some of them a warp, which are added in their order. Blocks: 32 points each. */
template <typename Part, int VALUES>
__global__ void __launch_bounds__(THREADS) join_many_parts(const job a) {
  __shared__ double shared[WARPS][VALUES][32];
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const fmm_cuda_joint j = *a.joint;
  const int64_t i = (int64_t)blockIdx.x * 32 + lane;
  const values<Part, VALUES> *from = (const values<Part, VALUES> *)a.partial + j.partial + i;
  double sum[VALUES] = {};
#pragma unroll 16
  for (int k = j.parts * warp / WARPS; k < j.parts * (warp + 1) / WARPS; k++)
    if (i < j.target_count) add(from[(int64_t)k * j.target_count], sum);
  for (int v = 0; v < VALUES; v++) shared[warp][v][lane] = sum[v];
  __syncthreads();
  if (warp || i >= j.target_count) return;
  for (int w = 1; w < WARPS; w++)
    for (int v = 0; v < VALUES; v++) sum[v] += shared[w][v][lane];
  add_to_results<Part>(a, j.target_begin + i, sum);
}

/* A warp 32 points of a leaf: their parts in their order. Blocks: (leaves; which 32 points, and every MOST_PIECES-th 32 after those). */
template <typename Part, int VALUES>
__global__ void __launch_bounds__(THREADS) join_parts(const job a) {
  const int64_t number = (int64_t)blockIdx.x * WARPS + (threadIdx.x >> 5);
  if (number >= a.n) return;
  const fmm_cuda_joint j = a.joint[number];
  for (int64_t i = (int64_t)blockIdx.y * 32 + (threadIdx.x & 31); i < j.target_count; i += (int64_t)gridDim.y * 32) {
    const values<Part, VALUES> *from = (const values<Part, VALUES> *)a.partial + j.partial + i;
    double sum[VALUES] = {};
#pragma unroll 8
    for (int k = 0; k < j.parts; k++) add(from[(int64_t)k * j.target_count], sum);
    add_to_results<Part>(a, j.target_begin + i, sum);
  }
}

template <typename Part, int VALUES>
cudaError_t join(const fmm_gpu_plan *p, const job &a, cudaStream_t stream) {
  const fmm_cuda_sums *s = &p->sums[FMM_SUM_U];
  const unsigned pieces = ((unsigned)s->most_joined + 31) / 32;
  if (s->direct) return fmm_cuda_launch(join_many_parts<Part, VALUES>, dim3(pieces), THREADS, 0, stream, p->carveout, a);
  return fmm_cuda_launch(join_parts<Part, VALUES>, dim3((unsigned)((a.n + WARPS - 1) / WARPS), pieces < MOST_PIECES ? pieces : MOST_PIECES), THREADS, 0, stream, p->carveout, a);
}
template <typename Part>
cudaError_t join(const fmm_gpu_plan *p, const job &a, cudaStream_t stream) { return p->gradient ? join<Part, 4>(p, a, stream) : join<Part, 1>(p, a, stream); }
}

cudaError_t fmm_cuda_both_join(const fmm_gpu_plan *p, int64_t row_begin, int64_t row_end, cudaStream_t stream) {
  const fmm_cuda_sums *s = &p->sums[FMM_SUM_U];
  const int64_t begin = s->row_joint[row_begin], n = s->row_joint[row_end] - begin;
  if (n <= 0) return cudaSuccess;
  const job a = {s->d_joint + (s->direct ? 0 : begin), n, s->d_partial, p->d_scale, p->d_near, p->n_targets};
  return s->single ? join<float>(p, a, stream) : join<double>(p, a, stream);
}
