/* The operators' batched products on the GPU: every column is one box (and density column), gathered and scattered by index, so that all leaves
 * are one launch and every level one or two. Blocks of 128 threads make 32 x 64 values from panels of 16 in shared memory (rows padded to 20 doubles:
 * no bank conflicts for the fragments), two more panels being copied meanwhile. Each value is one thread's sum in one order. */
#include <cuda_pipeline.h>

#include "kernels/mma_cuda.h"
#include "runtime/gpu/gpu_cuda.h"

namespace {
enum { ROWS = 32, COLUMNS = 64, DEPTH = 16, PITCH = 20, STAGES = 3, THREADS = 128, PANEL = (ROWS + COLUMNS) * PITCH };

/* Where this thread's column of a segment starts; NULL: zero. */
__device__ const double *column_start(const fmm_cuda_product &p, int64_t column, int segment) {
  int64_t box = column / p.columns;
  int part = (int)(column - box * p.columns);
  if (box >= p.n_boxes) return NULL;
  if (p.d_index) box = p.d_index[box * p.n_segments + segment];
  if (box < 0) return NULL;
  return p.d_in + (box * p.columns + part) * p.n;
}

/* What a thread copies of each panel: 4 values of a row of the matrix, 8 of a column of the input. */
struct feed {
  const double *matrix, *from;
  int64_t column, matrix_stride;
  int segment, k; /* of the next panel */
};

/* Starts the copies of the next panel into a stage. */
__device__ __forceinline__ void load(const fmm_cuda_product &p, feed &f, double *stage) {
  if (f.segment < p.n_segments) {
    double *a = stage + (threadIdx.x >> 2) * PITCH + (threadIdx.x & 3) * 4, *b = stage + ROWS * PITCH + (threadIdx.x >> 1) * PITCH + (threadIdx.x & 1) * 8;
    const double *matrix = f.matrix + f.segment * f.matrix_stride + f.k;
#pragma unroll
    for (int i = 0; i < 2; i++) __pipeline_memcpy_async(a + 2 * i, matrix + 2 * i, 16);
    int k = f.k + (threadIdx.x & 1) * 8;
#pragma unroll
    for (int i = 0; i < 4; i++) { /* n is even; what is beyond it, or no column at all, is zero */
      bool there = f.from && k + 2 * i < p.n;
      __pipeline_memcpy_async(b + 2 * i, there ? f.from + k + 2 * i : p.d_in, 16, there ? 0 : 16);
    }
    f.k += DEPTH;
    if (f.k == p.k_pad) {
      f.k = 0;
      if (++f.segment < p.n_segments) f.from = column_start(p, f.column, f.segment);
    }
  }
  __pipeline_commit();
}

__global__ void __launch_bounds__(THREADS) product(const fmm_cuda_product p) {
  __shared__ __align__(16) double stage[STAGES * PANEL];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
  int row_tiles = p.m_pad / ROWS; /* side by side, so that their columns come from memory once */
  int64_t first_column = (int64_t)(blockIdx.x / row_tiles) * COLUMNS;
  int first_row = (int)(blockIdx.x % row_tiles) * ROWS, total = p.k_pad / DEPTH * p.n_segments;
  int which = p.d_tile_matrix ? p.d_tile_matrix[first_column / p.columns / COLUMNS] : 0;
  feed f = {p.d_matrix + which * p.matrix_stride + (int64_t)(first_row + (threadIdx.x >> 2)) * p.k_pad + (threadIdx.x & 3) * 4, NULL,
            first_column + (threadIdx.x >> 1), p.matrix_stride, 0, 0};
  f.from = column_start(p, f.column, 0);
  for (int i = 0; i < STAGES - 1; i++) load(p, f, stage + i * PANEL);
  double sum[4][4] = {};
  for (int step = 0; step < total; step++) {
    __pipeline_wait_prior(STAGES - 2);
    __syncthreads(); /* the panel is there for all, and all have done with the one that is overwritten next */
    load(p, f, stage + (step + STAGES - 1) % STAGES * PANEL);
    const double *pa = stage + step % STAGES * PANEL + (16 * (warp & 1) + g) * PITCH + t;
    const double *pb = stage + step % STAGES * PANEL + ROWS * PITCH + (32 * (warp >> 1) + g) * PITCH + t;
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
  unsigned blocks = (unsigned)((p->n_boxes * p->columns + COLUMNS - 1) / COLUMNS * (p->m_pad / ROWS));
  product<<<blocks, THREADS, 0, stream>>>(*p);
  return cudaGetLastError();
}
