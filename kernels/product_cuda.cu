/* The operators' batched products on the GPU: every column is one box (and density column), gathered and scattered by index, so that all leaves
 * are one launch and every level one or two. Each value is one thread's sums in one order. For interactions without parity and large orders; others: kernels/parity_cuda.cu. Two kernels on the FP64 tensor cores:
 *   wide_product: blocks of 128 threads make 80 x 64 values (64 rows where that wastes fewer, 32 columns where blocks are few) from panels of 16 in shared memory (columns padded
 *     to 18 doubles: no bank conflicts for the fragments), two more panels being copied meanwhile.
 *   short_product: for levels of few boxes, where a block's chain of panels is what takes the time: 32 x 16 values, the panels of all segments dealt to
 *     eight warps, fragments straight from the L2 cache, the warps' sums added in their order. Its blocks are placed while the product before it still runs.
 * Matrices lie by tiles of 16 x 16 in the order of fragments (fmm_cuda_tile_place), so that one comes to a lane's registers as it is used: lane t of four has entries 4 t .. 4 t + 3
 * of a row's sixteen, where the instruction counts t, 4 + t, 8 + t, 12 + t: the same sums. */
#include <cuda_pipeline.h>

#include "kernels/mma_cuda.h"
#include "runtime/gpu/gpu_cuda.h"

namespace {
enum { DEPTH = 16, TILE = 16 * DEPTH, PITCH = 18, STAGES = 3, THREADS = 128, BATCH = 4 /* values a thread adds to at once */ };
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

/* A pair to shared memory (its address there), or zeros; without waiting where the device can. */
__device__ __forceinline__ void copy_pair(unsigned to, const double *from, bool there) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(there ? 16 : 0) : "memory");
#else
  *(double2 *)__cvta_shared_to_generic(to) = there ? *(const double2 *)from : make_double2(0, 0);
#endif
}

/* What a thread copies of each panel: a pair of each tile of the matrix and COLUMNS / 16 pairs of a column of the input. */
template <int ROWS, int COLUMNS>
struct feed {
  static constexpr int SHARE = THREADS / COLUMNS, PART = DEPTH / SHARE; /* threads a column, entries each */
  const double *matrix, *from; /* of the next panel */
  int64_t column;
  int tile[ROWS / 16], to_column; /* places: of a tile among the matrix's, and in the stage, in bytes */
  int segment, k;
  bool there;

  __device__ __forceinline__ void start(const fmm_cuda_product &p, int64_t first_column, int first_row) {
    matrix = matrix_of(p, first_column) + 2 * threadIdx.x;
#pragma unroll
    for (int i = 0; i < ROWS / 16; i++) tile[i] = min(first_row / 16 + i, p.m_pad / 16 - 1) * DEPTH * p.k_pad; /* what comes of rows beyond the last is never written */
    to_column = 8 * (ROWS * DEPTH + (int)threadIdx.x / SHARE * PITCH + (int)threadIdx.x % SHARE * PART);
    column = first_column + threadIdx.x / SHARE;
    segment = k = 0;
    enter(p);
  }
  __device__ __forceinline__ void enter(const fmm_cuda_product &p) {
    from = column_start(p, column, segment);
    there = from != NULL;
    from = there ? from + threadIdx.x % SHARE * PART : p.d_in;
  }
  /* Starts the copies of the next panel into a stage. n is even; what is beyond it, or no column at all, is zero. */
  __device__ __forceinline__ void load(const fmm_cuda_product &p, unsigned stage) {
    if (segment < p.n_segments) {
#pragma unroll
      for (int i = 0; i < ROWS / 16; i++) copy_pair(stage + 8 * TILE * i + 16 * threadIdx.x, matrix + tile[i], true);
      const int left = p.n - k - threadIdx.x % SHARE * PART;
#pragma unroll
      for (int i = 0; i < PART; i += 2) copy_pair(stage + to_column + 8 * i, there && i < left ? from + i : p.d_in, there && i < left);
      matrix += TILE, k += DEPTH;
      if (there) from += DEPTH;
      if (k == p.k_pad) {
        k = 0, matrix += p.matrix_stride - DEPTH * p.k_pad;
        if (++segment < p.n_segments) enter(p);
      }
    }
    __pipeline_commit();
  }
};

/* A lane's part of a tile of the matrix, and of a column. */
__device__ __forceinline__ void take_tile(const double *from, double (&a)[8]) {
#pragma unroll
  for (int i = 0; i < 4; i++) {
    double2 v = *(const double2 *)(from + 64 * i);
    a[2 * i] = v.x, a[2 * i + 1] = v.y;
  }
}
__device__ __forceinline__ void take_column(const double *from, double (&b)[4]) {
  double2 first = *(const double2 *)from, second = *(const double2 *)(from + 2);
  b[0] = first.x, b[1] = first.y, b[2] = second.x, b[3] = second.y;
}

/* Each of the four warps makes all rows of its quarter of the columns. */
template <int ROWS, int COLUMNS>
__global__ void __launch_bounds__(THREADS, 3) wide_product(const fmm_cuda_product p) {
  constexpr int PANEL = ROWS * DEPTH + COLUMNS * PITCH, TILES = ROWS / 16, EIGHTS = COLUMNS / 32 /* tiles of eight columns a warp */;
  extern __shared__ __align__(16) double stage[]; /* STAGES panels */
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
  const int row_tiles = (p.n + ROWS - 1) / ROWS; /* side by side, so that their columns come from memory once */
  const int64_t first_column = (int64_t)(blockIdx.x / row_tiles) * COLUMNS;
  const int first_row = (int)(blockIdx.x % row_tiles) * ROWS, total = p.k_pad / DEPTH * p.n_segments;
  __shared__ double *out[COLUMNS];
  __shared__ double scale[COLUMNS];
  feed<ROWS, COLUMNS> f;
  const unsigned stages = (unsigned)__cvta_generic_to_shared(stage);
  f.start(p, first_column, first_row);
  for (int i = 0; i < STAGES - 1; i++) f.load(p, stages + 8 * i * PANEL);
  if (threadIdx.x < COLUMNS) out[threadIdx.x] = column_end(p, first_column + threadIdx.x, &scale[threadIdx.x]);
  double sum[TILES][EIGHTS][4] = {};
  int now = 0, next = STAGES - 1;
  for (int step = 0; step < total; step++) {
    __pipeline_wait_prior(STAGES - 2);
    __syncthreads(); /* the panel is there for all, and all have done with the one that is overwritten next */
    f.load(p, stages + 8 * next * PANEL);
    const double *pa = stage + now * PANEL + 2 * lane, *pb = stage + now * PANEL + ROWS * DEPTH + (8 * EIGHTS * warp + g) * PITCH + 4 * t;
    now = now == STAGES - 1 ? 0 : now + 1, next = next == STAGES - 1 ? 0 : next + 1;
    double fa[2][8], fb[EIGHTS][4];
#pragma unroll
    for (int j = 0; j < EIGHTS; j++) take_column(pb + j * 8 * PITCH, fb[j]);
    take_tile(pa, fa[0]);
#pragma unroll
    for (int m = 0; m < TILES; m++) {
      if (m + 1 < TILES) take_tile(pa + (m + 1) * TILE, fa[(m + 1) % 2]);
#pragma unroll
      for (int j = 0; j < EIGHTS; j++) fmm_mma_16x8x16(sum[m][j], fa[m % 2], fb[j]);
    }
  }
  /* By columns in shared memory, so that what is added to comes and goes whole lines at a time. */
  constexpr int OUT_PITCH = ROWS + 2, PAIRS = ROWS / 2;
  __syncthreads();
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

__global__ void __launch_bounds__(SHORT_WARPS * 32, 2) short_product(const fmm_cuda_product p) {
  __shared__ double part[SHORT_WARPS][SHORT_ROWS * SHORT_COLUMNS];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
  const int row_tiles = p.m_pad / SHORT_ROWS;
  const int64_t first_column = (int64_t)(blockIdx.x / row_tiles) * SHORT_COLUMNS;
  const int first_row = (int)(blockIdx.x % row_tiles) * SHORT_ROWS, panels = p.k_pad / DEPTH, total = panels * p.n_segments;
  const double *matrix = matrix_of(p, first_column) + (int64_t)first_row * p.k_pad + 2 * lane, *from[2] = {NULL, NULL};
  double sum[2][2][4] = {};
  int last = -1;
  fmm_cuda_await_earlier();
#pragma unroll 2
  for (int step = total * warp / SHORT_WARPS; step < total * (warp + 1) / SHORT_WARPS; step++) {
    int segment = step / panels, k = step % panels * DEPTH;
    if (segment != last)
      for (int j = 0; j < 2; j++) from[j] = column_start(p, first_column + 8 * j + g, segment);
    last = segment;
    double fa[2][8], fb[2][4] = {};
    const double *panel = matrix + segment * p.matrix_stride + DEPTH * k;
#pragma unroll
    for (int m = 0; m < 2; m++) take_tile(panel + 16 * m * p.k_pad, fa[m]);
#pragma unroll
    for (int j = 0; j < 2; j++)
#pragma unroll
      for (int i = 0; i < 4; i += 2) { /* n is even */
        if (!from[j] || k + 4 * t + i >= p.n) continue;
        double2 v = *(const double2 *)(from[j] + k + 4 * t + i);
        fb[j][i] = v.x, fb[j][i + 1] = v.y;
      }
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

/* A warp for each component of a column. */
__global__ void __launch_bounds__(THREADS) shell_parts(const double *shell, const double *coefficient, const int32_t *d_box, int64_t n_boxes, int columns, int equivalents, int n, double *out) {
  const int64_t warp = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / 32, column = warp / equivalents, slot = column / columns;
  const int k = (int)(warp - column * equivalents);
  if (slot >= n_boxes) return;
  const int32_t box = d_box[slot];
  if (box < 0) return;
  const int64_t at = (int64_t)box * columns + (column - slot * columns);
  double sum = 0;
  for (int i = threadIdx.x & 31; i < n; i += 32) sum += shell[k * n + i] * coefficient[at * n + i];
  for (int step = 16; step; step >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  if ((threadIdx.x & 31) == 0) out[at * equivalents + k] = sum;
}

int padded(int n, int rows) { return (n + rows - 1) / rows * rows; }

template <int ROWS, int COLUMNS>
cudaError_t run_wide(const fmm_cuda_product *p, int64_t columns, cudaStream_t stream) {
  constexpr int BYTES = STAGES * (ROWS * DEPTH + COLUMNS * PITCH) * (int)sizeof(double);
  unsigned blocks = (unsigned)((columns + COLUMNS - 1) / COLUMNS * ((p->n + ROWS - 1) / ROWS));
  return fmm_cuda_launch(wide_product<ROWS, COLUMNS>, blocks, THREADS, BYTES, stream, p->carveout, *p);
}
template <int ROWS>
cudaError_t run_rows(const fmm_cuda_product *p, int64_t columns, cudaStream_t stream) {
  return (columns + 63) / 64 * ((p->n + ROWS - 1) / ROWS) > FEW_BLOCKS ? run_wide<ROWS, 64>(p, columns, stream) : run_wide<ROWS, 32>(p, columns, stream);
}

template <int ROWS, int COLUMNS>
cudaError_t allow_wide(void) {
  return cudaFuncSetAttribute(wide_product<ROWS, COLUMNS>, cudaFuncAttributeMaxDynamicSharedMemorySize, STAGES * (ROWS * DEPTH + COLUMNS * PITCH) * (int)sizeof(double));
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
  if (error == cudaSuccess) error = allow_wide<64, 32>();
  return error;
}

cudaError_t fmm_cuda_product_run(const fmm_cuda_product *p, cudaStream_t stream) {
  int64_t columns = p->n_boxes * p->columns;
  if (columns <= 0) return cudaSuccess;
  if (columns > SHORT_MOST) return padded(p->n, 80) <= padded(p->n, 64) ? run_rows<80>(p, columns, stream) : run_rows<64>(p, columns, stream);
  unsigned blocks = (unsigned)((columns + SHORT_COLUMNS - 1) / SHORT_COLUMNS * (p->m_pad / SHORT_ROWS));
  return fmm_cuda_launch_when(p->early, short_product, blocks, SHORT_WARPS * 32, 0, stream, p->carveout, *p);
}

cudaError_t fmm_cuda_shells(const fmm_gpu_plan *p, const fmm_cuda_operators *o, const int32_t *d_box, int64_t n, cudaStream_t stream) {
  const int64_t warps = n * p->columns * p->equivalents;
  if (warps <= 0) return cudaSuccess;
  return fmm_cuda_launch(shell_parts, dim3((unsigned)((32 * warps + THREADS - 1) / THREADS)), THREADS, 0, stream, p->carveout, (const double *)o->d_shell, (const double *)p->d_coefficient, d_box, n, p->columns,
                         p->equivalents, p->n, p->d_shell);
}
