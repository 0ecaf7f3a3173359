/* The V list on the GPU: transforms of the upward equivalents of each parent's eight children, products blocked over siblings, transforms back
 * (Ying, Biros, Zorin 2004, section 3.3). Frequencies are cut in slabs of planes kz, so that any problem fits.
 *   forward, inverse: a block takes the children of a parent (or a few of them); plain sums along one axis after the other, since the input is zero but
 *     on p of L = 2p - 1 points an axis and the output is needed on p only: fewer operations than a fast transform of so few points would save.
 *   products: a block takes one frequency and 256 parents. For each of 26 directions the children of the neighbour times the 8 x 8 complex matrix of that
 *     direction, gathered from the 343 offsets, for eight parents at a time as one 16x8x16 real product: [Re -Im; Im Re] [re; im].
 * Layouts: spectrum[frequency in slab][column * components + component][slot][child], slot: parent that is a source, the last one empty;
 * product[..][..][row][child]; double2 is (re, im). */
#include "kernels/mma_cuda.h"
#include "runtime/gpu/gpu_cuda.h"

namespace {
enum { TRANSFORM_THREADS = 256, WARPS = 8, GROUPS = 4, ROWS = WARPS * GROUPS * 8 };

struct transform {
  const double *equivalent; double *check;  /* [box][column][n] */
  const int32_t *child;                     /* 8 a slot or row */
  const int16_t *grid_surface;
  const double *twiddle, *degree;
  double2 *spectrum;
  int64_t slots;                            /* pitch of the spectrum in slots or rows */
  int64_t first;                            /* first slot or row handled */
  int order, grid, n_surface, n, columns, components, kz_begin, kz_end, children;
};

__device__ __forceinline__ void add_times(double2 &sum, double2 a, double2 b) {
  sum.x = fma(a.x, b.x, fma(-a.y, b.y, sum.x));
  sum.y = fma(a.x, b.y, fma(a.y, b.x, sum.y));
}

/* Blocks: (slot, part of its children; plane of the slab; column and component). */
__global__ void __launch_bounds__(TRANSFORM_THREADS) forward(const transform a) {
  extern __shared__ __align__(16) double shared[];
  const int p = a.order, L = a.grid, C = a.children, parts = 8 / C, kz = a.kz_begin + blockIdx.y;
  const int64_t slot = a.first + blockIdx.x / parts;
  const int first_child = (blockIdx.x % parts) * C, column = blockIdx.z / a.components, component = blockIdx.z % a.components;
  double2 *w = (double2 *)shared, *plane = w + L, *lines = plane + p * p * C; /* e^{-2 pi i j / L}; [x][y][c]; [x][ky][c] */
  double *in = (double *)(lines + p * L * C);                                    /* [c][surface point] */
  for (int j = threadIdx.x; j < L; j += blockDim.x) w[j] = make_double2(a.twiddle[2 * j], -a.twiddle[2 * j + 1]);
  for (int i = threadIdx.x; i < C * a.n_surface; i += blockDim.x) {
    int c = i / a.n_surface, s = i - c * a.n_surface, box = a.child[slot * 8 + first_child + c];
    in[i] = box >= 0 ? a.equivalent[((int64_t)box * a.columns + column) * a.n + component * a.n_surface + s] : 0;
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
  double2 *out = a.spectrum + (int64_t)(kz - a.kz_begin) * L * L * pitch + ((int64_t)blockIdx.z * a.slots + slot) * 8 + first_child;
  for (int i = threadIdx.x; i < L * L * C; i += blockDim.x) {
    int c = i % C, ky = i / C % L, kx = i / (C * L);
    double2 sum = make_double2(0, 0);
    for (int x = 0, j = 0; x < p; x++) {
      add_times(sum, lines[(x * L + ky) * C + c], w[j]);
      j += kx;
      if (j >= L) j -= L;
    }
    out[(int64_t)(kx * L + ky) * pitch + c] = sum;
  }
}

/* Blocks: (row, part of its children; column and component); all planes of the slab, added to the check potentials. */
__global__ void __launch_bounds__(TRANSFORM_THREADS) inverse(const transform a) {
  extern __shared__ __align__(16) double shared[];
  const int p = a.order, L = a.grid, C = a.children, parts = 8 / C;
  const int64_t row = a.first + blockIdx.x / parts;
  const int first_child = (blockIdx.x % parts) * C, column = blockIdx.y / a.components, component = blockIdx.y % a.components;
  double2 *w = (double2 *)shared, *plane = w + L, *lines = plane + L * L * C, *face = lines + p * L * C; /* [kx][ky][c]; [x][ky][c]; [x][y][c] */
  double *sum_of = (double *)(face + p * p * C);                                                           /* [c][surface point] */
  for (int j = threadIdx.x; j < L; j += blockDim.x) w[j] = make_double2(a.twiddle[2 * j], a.twiddle[2 * j + 1]);
  for (int i = threadIdx.x; i < C * a.n_surface; i += blockDim.x) sum_of[i] = 0;
  const int64_t pitch = (int64_t)a.columns * a.components * a.slots * 8;
  for (int kz = a.kz_begin; kz < a.kz_end; kz++) {
    const double2 *from = a.spectrum + (int64_t)(kz - a.kz_begin) * L * L * pitch + ((int64_t)blockIdx.y * a.slots + row) * 8 + first_child;
    for (int i = threadIdx.x; i < L * L * C; i += blockDim.x) plane[i] = from[(int64_t)(i / C) * pitch + i % C];
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
    if (box >= 0) a.check[((int64_t)box * a.columns + column) * a.n + component * a.n_surface + s] += a.degree[box] * sum_of[i];
  }
}

struct products {
  const double2 *spectrum, *m2l;
  double2 *product;
  const int32_t *neighbor;
  int64_t rows, slots, begin, end; /* rows [begin, end) of all `rows`; slots counts the empty one */
  int columns, components;
};

/* Blocks: (256 rows; frequency of the slab; column and component out). */
__global__ void __launch_bounds__(WARPS * 32) multiply(const products a) {
  __shared__ double2 table[343];
  const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3, E = a.components;
  const int column = blockIdx.z / E, out = blockIdx.z % E;
  const int64_t row0 = a.begin + ((int64_t)blockIdx.x * WARPS + (threadIdx.x >> 5)) * GROUPS * 8;
  const int empty = (int)a.slots - 1;
  const int64_t my_row = row0 + lane; /* GROUPS * 8 == 32: lane l looks up row l's neighbours */
  double sum[GROUPS][4] = {};
  /* offset (d + 3) of source octant t (or t + 4) of the neighbour against target octant g: x slowest, octant bit 0 is x */
  const int offset = 171 + 49 * ((t & 1) - (g & 1)) + 7 * ((t >> 1 & 1) - (g >> 1 & 1)) - (g >> 2 & 1);
  for (int in = 0; in < E; in++) {
    __syncthreads();
    for (int i = threadIdx.x; i < 343; i += blockDim.x) table[i] = a.m2l[(((int64_t)blockIdx.y * E + out) * E + in) * 343 + i];
    __syncthreads();
    if (row0 >= a.end) continue;
    const double2 *x = a.spectrum + ((int64_t)blockIdx.y * a.columns * E + column * E + in) * a.slots * 8;
    int next = my_row < a.end ? a.neighbor[my_row] : empty;
    for (int k = 0; k < 26; k++) {
      int mine = next, direction = k < 13 ? k : k + 1;
      if (k < 25) next = my_row < a.end ? a.neighbor[(int64_t)(k + 1) * a.rows + my_row] : empty;
      if (__all_sync(0xffffffffu, mine == empty)) continue;
      int base = offset + 98 * (direction % 3 - 1) + 14 * (direction / 3 % 3 - 1) + 2 * (direction / 9 - 1);
      double2 m0 = table[base], m1 = table[base + 1]; /* octant bit 2 is z, fastest in the table */
      const double f[8] = {m0.x, m0.y, m1.x, m1.y, -m0.y, m0.x, -m1.y, m1.x};
#pragma unroll
      for (int j = 0; j < GROUPS; j++) {
        int q = __shfl_sync(0xffffffffu, mine, 8 * j + g);
        double2 x0 = x[(int64_t)q * 8 + t], x1 = x[(int64_t)q * 8 + t + 4];
        const double b[4] = {x0.x, x1.x, x0.y, x1.y};
        fmm_mma_16x8x16(sum[j], f, b);
      }
    }
  }
  double2 *y = a.product + ((int64_t)blockIdx.y * a.columns * E + blockIdx.z) * a.rows * 8;
#pragma unroll
  for (int j = 0; j < GROUPS; j++)
#pragma unroll
    for (int i = 0; i < 2; i++) {
      int64_t row = row0 + 8 * j + 2 * t + i;
      if (row < a.end) y[row * 8 + g] = make_double2(sum[j][i], sum[j][2 + i]);
    }
}

transform transform_of(const fmm_gpu_plan *p) {
  transform a = {};
  a.grid_surface = p->d_grid_surface;
  a.twiddle = p->d_twiddle;
  a.degree = p->d_degree_out;
  a.order = p->order, a.grid = p->grid, a.n_surface = p->n_surface, a.n = p->n, a.columns = p->columns, a.components = p->equivalents;
  return a;
}

fmm_status run_slab(fmm_gpu_plan *p, int kz_begin, int kz_end, int64_t row_begin, int64_t row_end, cudaStream_t stream) {
  int parts = p->columns * p->equivalents, planes = kz_end - kz_begin, LL = p->grid * p->grid;
  transform a = transform_of(p);
  a.kz_begin = kz_begin, a.kz_end = kz_end;
  a.equivalent = p->d_up_equivalent, a.child = p->d_slot_child, a.spectrum = p->d_spectrum, a.slots = p->v_slots + 1, a.children = p->children_forward;
  dim3 blocks((unsigned)((p->v_slots + 1) * (8 / a.children)), planes, parts);
  forward<<<blocks, TRANSFORM_THREADS, fmm_vlist_cuda_forward_bytes(p->order, p->n_surface, a.children), stream>>>(a);
  CUDA_LAUNCHED();
  for (int i = 0; i < p->n_v_groups; i++) {
    int64_t begin = row_begin > p->v_group[i].begin ? row_begin : p->v_group[i].begin, end = row_end < p->v_group[i].end ? row_end : p->v_group[i].end;
    if (begin >= end) continue;
    int set = p->n_operator_levels == 1 ? 0 : p->v_group[i].level;
    products m = {p->d_spectrum, p->op[set].d_m2l + (int64_t)kz_begin * LL * p->equivalents * p->equivalents * 343, p->d_product, p->d_neighbor,
                  p->v_rows, p->v_slots + 1, begin, end, p->columns, p->equivalents};
    multiply<<<dim3((unsigned)((end - begin + ROWS - 1) / ROWS), planes * LL, parts), WARPS * 32, 0, stream>>>(m);
    CUDA_LAUNCHED();
  }
  a.check = p->d_down_check, a.child = p->d_row_child, a.spectrum = p->d_product, a.slots = p->v_rows, a.children = p->children_inverse, a.first = row_begin;
  inverse<<<dim3((unsigned)((row_end - row_begin) * (8 / a.children)), parts), TRANSFORM_THREADS,
            fmm_vlist_cuda_inverse_bytes(p->order, p->n_surface, a.children), stream>>>(a);
  CUDA_LAUNCHED();
  return FMM_OK;
}
}

size_t fmm_vlist_cuda_forward_bytes(int order, int n_surface, int children) {
  size_t p = (size_t)order, L = 2 * p - 1, C = (size_t)children;
  return 16 * (L + p * p * C + p * L * C) + 8 * C * (size_t)n_surface;
}
size_t fmm_vlist_cuda_inverse_bytes(int order, int n_surface, int children) {
  size_t p = (size_t)order, L = 2 * p - 1, C = (size_t)children;
  return 16 * (L + L * L * C + p * L * C + p * p * C) + 8 * C * (size_t)n_surface;
}

fmm_status fmm_vlist_cuda_prepare(const fmm_gpu_plan *p) {
  CUDA_TRY(cudaFuncSetAttribute(forward, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                (int)fmm_vlist_cuda_forward_bytes(p->order, p->n_surface, p->children_forward)));
  CUDA_TRY(cudaFuncSetAttribute(inverse, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                (int)fmm_vlist_cuda_inverse_bytes(p->order, p->n_surface, p->children_inverse)));
  return FMM_OK;
}

fmm_status fmm_vlist_cuda(fmm_gpu_plan *p, int64_t row_begin, int64_t row_end, cudaStream_t stream) {
  if (row_begin >= row_end) return FMM_OK;
  for (int kz = 0; kz < p->order; kz += p->slab)
    FMM_TRY(run_slab(p, kz, kz + p->slab < p->order ? kz + p->slab : p->order, row_begin, row_end, stream));
  return FMM_OK;
}
