/* The operators' batched products on the GPU: every column is one box (and density column), gathered and scattered by index, so that all leaves
 * are one launch and every level one or two. Each value is one thread's sums in one order. Two kernels on the FP64 tensor cores:
 *   wide_product: blocks of 128 threads make 80 x 64 values (64 rows where that wastes fewer, 32 columns where blocks are few) from panels of 16 in shared memory (rows padded to
 *     20 doubles: no bank conflicts for the fragments), two more panels being copied meanwhile.
 *   short_product: for levels of few boxes, where a block's chain of panels is what takes the time: 32 x 16 values, the panels of all segments dealt to
 *     eight warps, fragments straight from the L2 cache, the warps' sums added in their order. Its blocks are placed while the product before it still runs. */
#include <cuda_pipeline.h>

#include "kernels/mma_cuda.h"
#include "runtime/gpu/gpu_cuda.h"

namespace {
enum { DEPTH = 16, PITCH = 20, STAGES = 3, THREADS = 128, BATCH = 4 /* values a thread adds to at once */ };
enum { SHORT_ROWS = 32, SHORT_COLUMNS = 16, SHORT_WARPS = 8, SHORT_MOST = 1024 /* columns; the two kernels take as long at about this many */ };
enum { FEW_BLOCKS = 264 /* below this many blocks of 64 columns, 32 keep more multiprocessors busy */ };

/* Where a column of a segment starts; NULL: zero. */
__device__ const double *column_start(const fmm_cuda_product &p, int64_t column, int segment) {
  int64_t box = column / p.columns;
  int part = (int)(column - box * p.columns);
  if (box >= p.n_boxes) return NULL;
  if (p.d_index) box = p.d_index[box * p.n_segments + segment];
  if (box < 0) return NULL;
  return p.d_in + (box * p.columns + part) * p.n;
}

/* Where a column's values go, and by what factor; NULL: nowhere. */
__device__ double *column_end(const fmm_cuda_product &p, int64_t column, double *scale) {
  int64_t box = column / p.columns;
  int part = (int)(column - box * p.columns);
  *scale = 1;
  if (box < p.n_boxes && p.d_out_index) box = p.d_out_index[box];
  else if (box >= p.n_boxes) box = -1;
  if (box < 0) return NULL;
  if (p.d_out_scale) *scale = p.d_out_scale[box];
  return p.d_out + (box * p.columns + part) * p.n;
}

__device__ void put(const fmm_cuda_product &p, int row, int64_t column, double value) {
  double scale, *out = column_end(p, column, &scale);
  if (out && row < p.n) out[row] = p.add ? out[row] + scale * value : scale * value;
}

/* Which of the matrices a tile of columns is for. */
__device__ const double *matrix_of(const fmm_cuda_product &p, int64_t first_column) {
  return p.d_matrix + (p.d_tile_matrix ? p.d_tile_matrix[first_column / p.columns / FMM_GPU_TILE_BOXES] : 0) * p.matrix_stride;
}

/* What a thread copies of each panel: ROWS / 16 pairs of the matrix, COLUMNS / 16 pairs of a column of the input. */
struct feed {
  const double *matrix, *from;
  int64_t column;
  int segment, k; /* of the next panel */
};

/* Starts the copies of the next panel into a stage. Rows beyond the matrix repeat its last one: what comes of them is never written. */
template <int ROWS, int COLUMNS>
__device__ __forceinline__ void load(const fmm_cuda_product &p, feed &f, int first_row, double *stage) {
  if (f.segment < p.n_segments) {
    const double *matrix = f.matrix + f.segment * p.matrix_stride + f.k;
#pragma unroll
    for (int i = 0; i < ROWS / 16; i++) {
      int at = threadIdx.x + i * THREADS, row = at >> 3, pair = at & 7;
      __pipeline_memcpy_async(stage + row * PITCH + 2 * pair, matrix + (int64_t)min(first_row + row, p.m_pad - 1) * p.k_pad + 2 * pair, 16);
    }
    constexpr int SHARE = THREADS / COLUMNS;
    int k = threadIdx.x % SHARE * (DEPTH / SHARE);
    double *b = stage + (ROWS + threadIdx.x / SHARE) * PITCH + k;
    k += f.k;
#pragma unroll
    for (int i = 0; i < DEPTH / SHARE / 2; i++) { /* n is even; what is beyond it, or no column at all, is zero */
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

/* Each of the four warps makes all rows of its quarter of the columns. */
template <int ROWS, int COLUMNS>
__global__ void __launch_bounds__(THREADS, 3) wide_product(const fmm_cuda_product p) {
  constexpr int PANEL = (ROWS + COLUMNS) * PITCH, TILES = ROWS / 16, EIGHTS = COLUMNS / 32 /* tiles of eight columns a warp */;
  extern __shared__ __align__(16) double stage[]; /* STAGES panels */
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
  const int row_tiles = (p.n + ROWS - 1) / ROWS; /* side by side, so that their columns come from memory once */
  const int64_t first_column = (int64_t)(blockIdx.x / row_tiles) * COLUMNS;
  const int first_row = (int)(blockIdx.x % row_tiles) * ROWS, total = p.k_pad / DEPTH * p.n_segments;
  feed f = {matrix_of(p, first_column), NULL, first_column + threadIdx.x / (THREADS / COLUMNS), 0, 0};
  f.from = column_start(p, f.column, 0);
  for (int i = 0; i < STAGES - 1; i++) load<ROWS, COLUMNS>(p, f, first_row, stage + i * PANEL);
  double sum[TILES][EIGHTS][4] = {};
  for (int step = 0; step < total; step++) {
    __pipeline_wait_prior(STAGES - 2);
    __syncthreads(); /* the panel is there for all, and all have done with the one that is overwritten next */
    load<ROWS, COLUMNS>(p, f, first_row, stage + (step + STAGES - 1) % STAGES * PANEL);
    const double *pa = stage + step % STAGES * PANEL + g * PITCH + t, *pb = stage + step % STAGES * PANEL + (ROWS + 8 * EIGHTS * warp + g) * PITCH + t;
    double fa[8], fb[EIGHTS][4];
#pragma unroll
    for (int j = 0; j < EIGHTS; j++)
#pragma unroll
      for (int i = 0; i < 4; i++) fb[j][i] = pb[j * 8 * PITCH + 4 * i];
#pragma unroll
    for (int m = 0; m < TILES; m++) {
#pragma unroll
      for (int i = 0; i < 8; i++) fa[i] = pa[(16 * m + (i & 1) * 8) * PITCH + (i >> 1) * 4];
#pragma unroll
      for (int j = 0; j < EIGHTS; j++) fmm_mma_16x8x16(sum[m][j], fa, fb[j]);
    }
  }
  /* By columns in shared memory, so that what is added to comes and goes whole lines at a time. */
  constexpr int OUT_PITCH = ROWS + 2, PAIRS = ROWS / 2;
  __shared__ double *out[COLUMNS];
  __shared__ double scale[COLUMNS];
  __syncthreads();
  if (threadIdx.x < COLUMNS) out[threadIdx.x] = column_end(p, first_column + threadIdx.x, &scale[threadIdx.x]);
#pragma unroll
  for (int m = 0; m < TILES; m++)
#pragma unroll
    for (int j = 0; j < EIGHTS; j++)
#pragma unroll
      for (int i = 0; i < 4; i++) stage[(8 * (EIGHTS * warp + j) + 2 * t + (i & 1)) * OUT_PITCH + 16 * m + g + 8 * (i >> 1)] = sum[m][j][i];
  __syncthreads();
#pragma unroll 1
  for (int first = threadIdx.x; first < COLUMNS * PAIRS; first += BATCH * THREADS) {
    double2 value[BATCH], *to[BATCH];
#pragma unroll
    for (int k = 0; k < BATCH; k++) { /* n is even */
      int place = first + k * THREADS, at = min(place, COLUMNS * PAIRS - 1), column = at / PAIRS, row = 2 * (at % PAIRS);
      to[k] = place == at && out[column] && first_row + row < p.n ? (double2 *)(out[column] + first_row + row) : NULL;
      double2 made = *(const double2 *)(stage + column * OUT_PITCH + row), old = p.add && to[k] ? *to[k] : make_double2(0, 0);
      value[k] = make_double2(old.x + scale[column] * made.x, old.y + scale[column] * made.y);
    }
#pragma unroll
    for (int k = 0; k < BATCH; k++)
      if (to[k]) *to[k] = value[k];
  }
}

__global__ void __launch_bounds__(SHORT_WARPS * 32) short_product(const fmm_cuda_product p) {
  __shared__ double part[SHORT_WARPS][SHORT_ROWS * SHORT_COLUMNS];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
  const int row_tiles = p.m_pad / SHORT_ROWS;
  const int64_t first_column = (int64_t)(blockIdx.x / row_tiles) * SHORT_COLUMNS;
  const int first_row = (int)(blockIdx.x % row_tiles) * SHORT_ROWS, panels = p.k_pad / DEPTH, total = panels * p.n_segments;
  const double *matrix = matrix_of(p, first_column) + (int64_t)(first_row + g) * p.k_pad + t, *from[2] = {NULL, NULL};
  double sum[2][2][4] = {};
  int last = -1;
  fmm_cuda_await_earlier();
#pragma unroll 2
  for (int step = total * warp / SHORT_WARPS; step < total * (warp + 1) / SHORT_WARPS; step++) {
    int segment = step / panels, k = step % panels * DEPTH;
    if (segment != last)
      for (int j = 0; j < 2; j++) from[j] = column_start(p, first_column + 8 * j + g, segment);
    last = segment;
    double fa[2][8], fb[2][4];
#pragma unroll
    for (int m = 0; m < 2; m++)
#pragma unroll
      for (int i = 0; i < 8; i++) fa[m][i] = matrix[segment * p.matrix_stride + (int64_t)(16 * m + (i & 1) * 8) * p.k_pad + k + (i >> 1) * 4];
#pragma unroll
    for (int j = 0; j < 2; j++)
#pragma unroll
      for (int i = 0; i < 4; i++) fb[j][i] = from[j] && k + 4 * i + t < p.n ? from[j][k + 4 * i + t] : 0;
#pragma unroll
    for (int m = 0; m < 2; m++)
#pragma unroll
      for (int j = 0; j < 2; j++) fmm_mma_16x8x16(sum[m][j], fa[m], fb[j]);
  }
#pragma unroll
  for (int m = 0; m < 2; m++)
#pragma unroll
    for (int j = 0; j < 2; j++)
#pragma unroll
      for (int i = 0; i < 4; i++) part[warp][(8 * j + 2 * t + (i & 1)) * SHORT_ROWS + 16 * m + g + 8 * (i >> 1)] = sum[m][j][i];
  __syncthreads();
  for (int i = threadIdx.x; i < SHORT_ROWS * SHORT_COLUMNS; i += SHORT_WARPS * 32) {
    double value = 0;
    for (int w = 0; w < SHORT_WARPS; w++) value += part[w][i];
    put(p, first_row + i % SHORT_ROWS, first_column + i / SHORT_ROWS, value);
  }
}

int padded(int n, int rows) { return (n + rows - 1) / rows * rows; }

template <int ROWS, int COLUMNS>
cudaError_t run_wide(const fmm_cuda_product *p, int64_t columns, cudaStream_t stream) {
  constexpr int BYTES = STAGES * (ROWS + COLUMNS) * PITCH * (int)sizeof(double);
  unsigned blocks = (unsigned)((columns + COLUMNS - 1) / COLUMNS * ((p->n + ROWS - 1) / ROWS));
  return fmm_cuda_launch(wide_product<ROWS, COLUMNS>, blocks, THREADS, BYTES, stream, p->carveout, *p);
}
template <int ROWS>
cudaError_t run_rows(const fmm_cuda_product *p, int64_t columns, cudaStream_t stream) {
  return (columns + 63) / 64 * ((p->n + ROWS - 1) / ROWS) > FEW_BLOCKS ? run_wide<ROWS, 64>(p, columns, stream) : run_wide<ROWS, 32>(p, columns, stream);
}

template <int ROWS, int COLUMNS>
cudaError_t allow_wide(void) {
  return cudaFuncSetAttribute(wide_product<ROWS, COLUMNS>, cudaFuncAttributeMaxDynamicSharedMemorySize, STAGES * (ROWS + COLUMNS) * PITCH * (int)sizeof(double));
}
}

/* More shared memory than a block gets unasked. Early launches (of short products: chains of them are what they shorten) from sm_90 on, where also the code
 * was compiled for it. */
cudaError_t fmm_cuda_product_prepare(int *early) {
  cudaFuncAttributes attributes;
  *early = cudaFuncGetAttributes(&attributes, short_product) == cudaSuccess && attributes.ptxVersion >= 90 && attributes.binaryVersion >= 90;
  cudaError_t error = allow_wide<80, 64>();
  if (error == cudaSuccess) error = allow_wide<80, 32>();
  if (error == cudaSuccess) error = allow_wide<64, 64>();
  return error == cudaSuccess ? allow_wide<64, 32>() : error;
}

cudaError_t fmm_cuda_product_run(const fmm_cuda_product *p, cudaStream_t stream) {
  int64_t columns = p->n_boxes * p->columns;
  if (columns <= 0) return cudaSuccess;
  if (columns > SHORT_MOST) return padded(p->n, 80) <= padded(p->n, 64) ? run_rows<80>(p, columns, stream) : run_rows<64>(p, columns, stream);
  unsigned blocks = (unsigned)((columns + SHORT_COLUMNS - 1) / SHORT_COLUMNS * (p->m_pad / SHORT_ROWS));
  return fmm_cuda_launch_when(p->early, short_product, blocks, SHORT_WARPS * 32, 0, stream, p->carveout, *p);
}
