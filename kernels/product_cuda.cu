/* The operators' batched products on the GPU: every column is one box (and density column), gathered and scattered by index, so that all leaves
 * are one launch and every level one or two. Blocks of 128 threads make 32 x 64 values from panels of 16 in shared memory (rows padded to 20 doubles:
 * no bank conflicts for the fragments), the next panels being loaded meanwhile. Each value is one thread's sum in one order. */
#include "kernels/mma_cuda.h"
#include "runtime/gpu/gpu_cuda.h"

namespace {
enum { ROWS = 32, COLUMNS = 64, DEPTH = 16, PITCH = 20, THREADS = 128 };

struct panels { double2 a[2], b[4]; };

/* Where this thread's column of a segment starts; NULL: zero. scale: its factor. */
__device__ const double *column_start(const fmm_cuda_product &p, int64_t column, int segment, double *scale) {
  int64_t box = column / p.columns;
  int part = (int)(column - box * p.columns);
  if (box >= p.n_boxes) return NULL;
  if (p.d_index) box = p.d_index[box * p.n_segments + segment];
  if (box < 0) return NULL;
  *scale = p.d_in_scale ? p.d_in_scale[box] : 1;
  return p.d_in + (box * p.columns + part) * p.n;
}

__device__ __forceinline__ void load(const fmm_cuda_product &p, panels &next, const double *matrix, const double *from, double scale, int k0) {
  const double2 *a = (const double2 *)(matrix + k0);
  next.a[0] = a[0];
  next.a[1] = a[1];
  int k = k0 + (threadIdx.x & 1) * 8;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    double2 v = make_double2(0, 0);
    if (from && k + 2 * i < p.n) v = *(const double2 *)(from + k + 2 * i); /* n is even */
    next.b[i] = make_double2(v.x * scale, v.y * scale);
  }
}

__global__ void __launch_bounds__(THREADS) product(const fmm_cuda_product p) {
  __shared__ __align__(16) double a[2][ROWS * PITCH], b[2][COLUMNS * PITCH];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
  int64_t first_column = (int64_t)blockIdx.x * COLUMNS;
  int first_row = blockIdx.y * ROWS, steps = p.k_pad / DEPTH;
  int which = p.d_tile_matrix ? p.d_tile_matrix[first_column / p.columns / COLUMNS] : 0;
  const double *matrix = p.d_matrix + which * p.matrix_stride + (int64_t)(first_row + (threadIdx.x >> 2)) * p.k_pad + (threadIdx.x & 3) * 4;
  double *to_a = a[0] + (threadIdx.x >> 2) * PITCH + (threadIdx.x & 3) * 4, *to_b = b[0] + (threadIdx.x >> 1) * PITCH + (threadIdx.x & 1) * 8;
  double sum[4][4] = {}, scale = 0;
  panels next;
  const double *from = column_start(p, first_column + (threadIdx.x >> 1), 0, &scale);
  load(p, next, matrix, from, scale, 0);
  int total = steps * p.n_segments, in_segment = 0, segment = 0;
  for (int step = 0; step < total; step++) {
    int at = step & 1;
#pragma unroll
    for (int i = 0; i < 2; i++) *(double2 *)(to_a + at * ROWS * PITCH + 2 * i) = next.a[i];
#pragma unroll
    for (int i = 0; i < 4; i++) *(double2 *)(to_b + at * COLUMNS * PITCH + 2 * i) = next.b[i];
    __syncthreads(); /* two buffers: a thread writes one only after all have read it two steps ago */
    if (++in_segment == steps) {
      in_segment = 0;
      if (++segment < p.n_segments) from = column_start(p, first_column + (threadIdx.x >> 1), segment, &scale);
    }
    if (step + 1 < total) load(p, next, matrix + segment * p.matrix_stride, from, scale, in_segment * DEPTH);
    const double *pa = a[at] + (16 * (warp & 1) + g) * PITCH + t, *pb = b[at] + (32 * (warp >> 1) + g) * PITCH + t;
    double fa[8], fb[4];
#pragma unroll
    for (int i = 0; i < 8; i++) fa[i] = pa[(i & 1) * 8 * PITCH + (i >> 1) * 4];
#pragma unroll
    for (int j = 0; j < 4; j++) {
#pragma unroll
      for (int i = 0; i < 4; i++) fb[i] = pb[j * 8 * PITCH + 4 * i];
      fmm_mma_16x8x16(sum[j], fa, fb);
    }
  }
#pragma unroll
  for (int j = 0; j < 4; j++)
#pragma unroll
    for (int i = 0; i < 4; i++) {
      int row = first_row + 16 * (warp & 1) + g + 8 * (i >> 1);
      int64_t column = first_column + 32 * (warp >> 1) + 8 * j + 2 * t + (i & 1), box = column / p.columns;
      int part = (int)(column - box * p.columns);
      if (row >= p.n || box >= p.n_boxes) continue;
      if (p.d_out_index) box = p.d_out_index[box];
      if (box < 0) continue;
      double *out = p.d_out + (box * p.columns + part) * p.n + row, value = sum[j][i];
      if (p.d_out_scale) value *= p.d_out_scale[box];
      *out = p.add ? *out + value : value;
    }
}
}

cudaError_t fmm_cuda_product_run(const fmm_cuda_product *p, cudaStream_t stream) {
  if (p->n_boxes <= 0) return cudaSuccess;
  dim3 blocks((unsigned)((p->n_boxes * p->columns + COLUMNS - 1) / COLUMNS), p->m_pad / ROWS);
  product<<<blocks, THREADS, 0, stream>>>(*p);
  return cudaGetLastError();
}
