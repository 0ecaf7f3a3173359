/* The V list on the GPU: transforms of the upward equivalents of each parent's eight children, products blocked over siblings, transforms back
 * (Ying, Biros, Zorin 2004, section 3.3). Frequencies are cut in slabs of planes kz, so that any problem fits.
 *   forward, inverse: vlist_transform_cuda.h.
 *   products: a block takes one frequency and 256 parents. For each of 26 directions the children of the neighbour times the 8 x 8 complex matrix of that
 *     direction, gathered from the 343 offsets, for eight parents at a time as one 16x8x16 real product: [Re -Im; Im Re] [re; im].
 * Layouts: spectrum[frequency in slab][column * components + component][slot][child], slot: parent that is a source, the last one empty;
 * product[..][..][row][child]; double2 is (re, im). */
#include "kernels/mma_cuda.h"
#include "kernels/vlist/vlist_transform_cuda.h"

namespace {
enum { WARPS = 8, GROUPS = 4, ROWS = WARPS * GROUPS * 8 };

struct products {
  const double2 *spectrum, *m2l;
  double2 *product;
  const int32_t *neighbor;
  int64_t rows, slots, begin, end; /* rows [begin, end) of all `rows`; slots counts the empty one */
  int columns, components;
};

/* Blocks: (256 rows; frequency of the slab; column and component out). */
__global__ void __launch_bounds__(WARPS * 32, 3) multiply(const products a) {
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
      unsigned there = __ballot_sync(0xffffffffu, mine != empty);
      if (!there) continue;
      int base = offset + 98 * (direction % 3 - 1) + 14 * (direction / 3 % 3 - 1) + 2 * (direction / 9 - 1);
      double2 m0 = table[base], m1 = table[base + 1]; /* octant bit 2 is z, fastest in the table */
      const double f[8] = {m0.x, m0.y, m1.x, m1.y, -m0.y, m0.x, -m1.y, m1.x};
#pragma unroll
      for (int j = 0; j < GROUPS; j++) {
        if (!(there >> 8 * j & 0xff)) continue; /* none of the eight has a neighbour there: common on surfaces */
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

/* The kernels of an order and how to launch them: over (boxes, planes and parts) for any order, over (parents, parts) for the compiled ones. */
typedef void transform_kernel(const transform);
struct choice {
  transform_kernel *forward, *inverse;
  int threads;
  size_t forward_bytes, inverse_bytes;
};
template <int P>
choice fixed_choice() { return choice{forward_fixed<P>, inverse_fixed<P>, fixed<P>::THREADS, fixed<P>::FORWARD_BYTES, fixed<P>::INVERSE_BYTES}; }

/* Compiled for this order, and fitting (children set to 8 at the plan's making). */
bool find_fixed(int order, choice *found) {
  switch (order) {
    case 3: *found = fixed_choice<3>(); return true;
    case 4: *found = fixed_choice<4>(); return true;
    case 5: *found = fixed_choice<5>(); return true;
    case 6: *found = fixed_choice<6>(); return true;
    case 7: *found = fixed_choice<7>(); return true;
    case 8: *found = fixed_choice<8>(); return true;
    default: return false;
  }
}

transform transform_of(const fmm_gpu_plan *p) {
  transform a = {};
  a.grid_surface = p->d_grid_surface;
  a.twiddle = p->d_twiddle;
  a.degree = p->d_degree_out;
  a.partial = p->d_v_partial;
  a.order = p->order, a.n_surface = p->n_surface, a.n = p->n, a.columns = p->columns, a.components = p->equivalents;
  return a;
}

fmm_status run_slab(fmm_gpu_plan *p, int kz_begin, int kz_end, int64_t row_begin, int64_t row_end, cudaStream_t stream) {
  int parts = p->columns * p->equivalents, planes = kz_end - kz_begin, LL = p->grid * p->grid;
  transform a = transform_of(p);
  a.kz_begin = kz_begin, a.kz_end = kz_end;
  a.equivalent = p->d_up_equivalent, a.child = p->d_slot_child, a.spectrum = p->d_spectrum, a.slots = p->v_slots + 1, a.children = p->children_forward;
  choice c;
  bool is_fixed = p->fixed_transforms && find_fixed(p->order, &c);
  if (is_fixed) c.forward<<<dim3((unsigned)(p->v_slots + 1), parts), c.threads, c.forward_bytes, stream>>>(a);
  else
    forward<<<dim3((unsigned)((p->v_slots + 1) * (8 / a.children)), planes, parts), TRANSFORM_THREADS, fmm_vlist_cuda_forward_bytes(p->order, p->n_surface, a.children),
              stream>>>(a);
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
  unsigned rows = (unsigned)(row_end - row_begin);
  if (is_fixed) c.inverse<<<dim3(rows, parts), c.threads, c.inverse_bytes, stream>>>(a);
  else inverse<<<dim3(rows * (8 / a.children), parts), TRANSFORM_THREADS, fmm_vlist_cuda_inverse_bytes(p->order, p->n_surface, a.children), stream>>>(a);
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

fmm_status fmm_vlist_cuda_prepare(fmm_gpu_plan *p, size_t most_bytes) {
  choice c;
  p->fixed_transforms = find_fixed(p->order, &c) && c.forward_bytes <= most_bytes && c.inverse_bytes <= most_bytes;
  if (p->fixed_transforms) {
    CUDA_TRY(cudaFuncSetAttribute(c.forward, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)c.forward_bytes));
    CUDA_TRY(cudaFuncSetAttribute(c.inverse, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)c.inverse_bytes));
    return FMM_OK;
  }
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
