/* The V list on the GPU: transforms of the upward equivalents of each parent's eight children, products blocked over siblings, transforms back
 * (Ying, Biros, Zorin 2004, section 3.3). Frequencies are cut in slabs of planes kz, so that any problem fits.
 *   forward, inverse: vlist_transform_cuda.h.
 *   products: a block takes one frequency and 256 parents, in windows of 256 ordered by which neighbours they have (gpu_tables.cu). For each of 26 directions
 *     the children of the neighbour times the 8 x 8 complex matrix of that direction, gathered from the 343 offsets, for eight parents at a time as one
 *     16x8x16 real product: [Re -Im; Im Re] [re; im]. Eight parents none of which has a neighbour there are passed over.
 * Layouts: spectrum[frequency in slab][column * components + component][slot][child], slot: parent that is a source, the last one empty (in double, children of slots of colour 1 as in
 * vlist_windows.h);
 * product[..][..][row][child]; (re, im) as C: double2, or float2 where the phase is in single precision (arithmetic is double all the same). */
#include "kernels/mma_cuda.h"
#include "kernels/vlist/vlist_transform_cuda.h"

namespace {
enum { WARPS = 8, GROUPS = 4 };
constexpr int BLOCK = WARPS * GROUPS * 8 /* parents a block */, BLOCKS_A_WINDOW = (int)FMM_V_WINDOW / BLOCK;
static_assert(BLOCKS_A_WINDOW * BLOCK == FMM_V_WINDOW, "blocks do not straddle windows");
/* The table of offsets in shared memory: strides such that the eight lanes of a quarter warp read different banks. */
enum { TABLE_Y = 11, TABLE_X = 81 };

struct products {
  const void *spectrum;
  const double2 *m2l;
  void *product;
  const int32_t *neighbor, *row, *row_child;
  int64_t positions, rows, slots, begin, end; /* rows [begin, end) of all `rows` are wanted; slots counts the empty one */
  int64_t first_position;
  int columns, components;
  int grid, half; /* frequencies (kx, ky) of the first plane with ky < half alone; half 0: the first plane is not kz = 0 */
};

/* The two source children of lane t in a fragment, and their values as they come: (re, im) of the one, then of the other. */
template <typename C>
struct fragment;
template <>
struct fragment<double2> {
  static __device__ __forceinline__ int child(int t, int i) { return t + 4 * i; }
  static __device__ __forceinline__ void load(const double2 *x, int place /* of octant 0 */, int t, double (&b)[4]) {
    double2 first = x[place + t], second = x[(place ^ 4) + t];
    b[0] = first.x, b[1] = first.y, b[2] = second.x, b[3] = second.y;
  }
};
template <>
struct fragment<float2> {
  static __device__ __forceinline__ int child(int t, int i) { return 2 * t + i; }
  static __device__ __forceinline__ void load(const float2 *x, int place, int t, double (&b)[4]) {
    float4 v = ((const float4 *)x)[place / 2 + t];
    b[0] = v.x, b[1] = v.y, b[2] = v.z, b[3] = v.w;
  }
};

__device__ __forceinline__ int table_at(int x, int y, int z) { return TABLE_X * x + TABLE_Y * y + z; }
/* Where the matrix of neighbour (0, 0, 0)'s child o onto a target's child g is: octant bit 0 is x. */
__device__ __forceinline__ int offset_of(int o, int g) { return table_at(3 + (o & 1) - (g & 1), 3 + (o >> 1 & 1) - (g >> 1 & 1), 3 + (o >> 2) - (g >> 2)); }

/* The slab's frequency of a block. */
__device__ __forceinline__ int frequency_of(const products &a, int block) {
  if (!a.half) return block;
  return block < a.grid * a.half ? block / a.half * a.grid + block % a.half : block + a.grid * (a.grid - a.half);
}

/* Blocks: (256 parents; frequency of the slab, as said; column and component out). */
template <typename C>
__global__ void __launch_bounds__(WARPS * 32, 3) multiply(const products a) {
  __shared__ double2 table[7 * TABLE_X];
  const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3, E = a.components;
  const int column = blockIdx.z / E, out = blockIdx.z % E;
  const int64_t position = a.first_position + ((int64_t)blockIdx.x * WARPS + (threadIdx.x >> 5)) * GROUPS * 8 + lane; /* GROUPS * 8 == 32: a lane looks up one row */
  const int row = a.row[position], empty = ((int)a.slots - 1) * 8;
  const bool wanted = row >= a.begin && row < a.end;
  const bool idle = !__any_sync(0xffffffffu, wanted);
  double sum[GROUPS][4] = {};
  const int offset[2] = {offset_of(fragment<C>::child(t, 0), g), offset_of(fragment<C>::child(t, 1), g)};
  for (int in = 0; in < E; in++) {
    const int64_t frequency = frequency_of(a, blockIdx.y);
    __syncthreads();
    for (int i = threadIdx.x; i < 343; i += blockDim.x) table[table_at(i / 49, i / 7 % 7, i % 7)] = a.m2l[((frequency * E + out) * E + in) * 343 + i];
    __syncthreads();
    if (idle) continue;
    const C *x = (const C *)a.spectrum + (frequency * a.columns * E + column * E + in) * a.slots * 8;
    const int32_t *neighbor = a.neighbor + position;
    int next = wanted ? *neighbor : empty;
    for (int k = 0; k < 26; k++) {
      int mine = next, direction = k < 13 ? k : k + 1;
      neighbor += a.positions;
      if (k < 25) next = wanted ? *neighbor : empty;
      unsigned there = __ballot_sync(0xffffffffu, mine != empty);
      if (!there) continue;
      int base = 2 * table_at(direction % 3 - 1, direction / 3 % 3 - 1, direction / 9 - 1);
      double2 m0 = table[base + offset[0]], m1 = table[base + offset[1]];
      const double f[8] = {m0.x, m0.y, -m0.y, m0.x, m1.x, m1.y, -m1.y, m1.x};
#pragma unroll
      for (int j = 0; j < GROUPS; j++) {
        if (!(there >> 8 * j & 0xff)) continue;
        double b[4];
        fragment<C>::load(x, __shfl_sync(0xffffffffu, mine, 8 * j + g), t, b);
        fmm_mma_16x8x16(sum[j], f, b);
      }
    }
  }
  if (idle) return;
  unsigned existing = 0;
  for (int c = 0; c < 8 && wanted; c++) existing |= (unsigned)(a.row_child[(int64_t)row * 8 + c] >= 0) << c;
  C *y = (C *)a.product + ((int64_t)frequency_of(a, blockIdx.y) * a.columns * E + blockIdx.z) * a.rows * 8;
#pragma unroll
  for (int j = 0; j < GROUPS; j++)
#pragma unroll
    for (int i = 0; i < 2; i++) {
      int from = 8 * j + 2 * t + i, to = __shfl_sync(0xffffffffu, row, from);
      unsigned children = __shfl_sync(0xffffffffu, existing, from); /* none of a row that is not wanted */
      if (in_use<C>(children, g)) keep(y + (int64_t)to * 8 + g, make_double2(sum[j][i], sum[j][2 + i]));
    }
}

/* The kernels of an order and how to launch them: over (boxes, planes and parts) for any order, over (parents and parts of their children, parts) for the compiled ones. */
typedef void transform_kernel(const transform);
struct launch {
  transform_kernel *kernel;
  int parts /* of a parent's children */, threads;
  size_t bytes;
};
struct choice { launch forward, inverse; };
template <int P, typename C>
choice fixed_choice() {
  typedef fixed_forward<P, C> f;
  typedef fixed_inverse<P, C> i;
  return choice{{forward_fixed<P, C>, f::PARTS, f::THREADS, f::BYTES}, {inverse_fixed<P, C>, i::PARTS, i::THREADS, i::BYTES}};
}

/* Compiled for this order. */
template <typename C>
bool find_fixed(int order, choice *found) {
  switch (order) {
    case 3: *found = fixed_choice<3, C>(); return true;
    case 4: *found = fixed_choice<4, C>(); return true;
    case 5: *found = fixed_choice<5, C>(); return true;
    case 6: *found = fixed_choice<6, C>(); return true;
    case 7: *found = fixed_choice<7, C>(); return true;
    case 8: *found = fixed_choice<8, C>(); return true;
    case 9: *found = fixed_choice<9, C>(); return true;
    case 10: *found = fixed_choice<10, C>(); return true;
    case 11: *found = fixed_choice<11, C>(); return true;
    case 12: *found = fixed_choice<12, C>(); return true;
    default: return false;
  }
}

transform transform_of(const fmm_gpu_plan *p) {
  transform a = {};
  a.grid_surface = p->d_grid_surface;
  a.twiddle = p->d_twiddle;
  a.degree = p->d_degree_out;
  a.unit = p->v_single ? p->d_scale : NULL;
  a.partial = p->d_v_partial;
  a.order = p->order, a.n_surface = p->n_surface, a.n = p->n, a.columns = p->columns, a.components = p->equivalents;
  return a;
}

template <typename C>
fmm_status run_slab(fmm_gpu_plan *p, int kz_begin, int kz_end, int64_t row_begin, int64_t row_end, cudaStream_t stream) {
  int parts = p->columns * p->equivalents, planes = kz_end - kz_begin, LL = p->grid * p->grid;
  transform a = transform_of(p);
  a.kz_begin = kz_begin, a.kz_end = kz_end;
  a.equivalent = p->d_up_equivalent, a.child = p->d_slot_child, a.spectrum = p->d_spectrum, a.slots = p->v_slots + 1, a.children = p->children_forward;
  choice c;
  bool is_fixed = p->fixed_transforms && find_fixed<C>(p->order, &c);
  if (is_fixed) CUDA_TRY(fmm_cuda_launch(c.forward.kernel, dim3((unsigned)(p->v_slots + 1) * (unsigned)c.forward.parts, parts), c.forward.threads, c.forward.bytes, stream, p->carveout, a));
  else
    CUDA_TRY(fmm_cuda_launch(forward<C>, dim3((unsigned)((p->v_slots + 1) * (8 / a.children)), planes, parts), TRANSFORM_THREADS,
                             fmm_vlist_cuda_forward_bytes(p->order, p->n_surface, a.children), stream, p->carveout, a));
  for (int i = 0; i < p->n_v_groups; i++) {
    int64_t begin = row_begin > p->v_group[i].begin ? row_begin : p->v_group[i].begin, end = row_end < p->v_group[i].end ? row_end : p->v_group[i].end;
    if (begin >= end) continue;
    int set = p->n_operator_levels == 1 ? 0 : p->v_group[i].level;
    int64_t from = p->v_group[i].begin, first = (begin - from) / FMM_V_WINDOW, last = (end - from - 1) / FMM_V_WINDOW; /* windows */
    products m = {p->d_spectrum, p->op[set].d_m2l + (int64_t)kz_begin * LL * p->equivalents * p->equivalents * 343, p->d_product, p->d_neighbor, p->d_v_row,
                  p->d_row_child, p->v_positions, p->v_rows, p->v_slots + 1, begin, end, (p->v_group[i].first_window + first) * FMM_V_WINDOW, p->columns, p->equivalents,
                  p->grid, kz_begin ? 0 : p->order};
    CUDA_TRY(fmm_cuda_launch(multiply<C>, dim3((unsigned)(last - first + 1) * BLOCKS_A_WINDOW, planes * LL - (kz_begin ? 0 : p->grid * (p->order - 1)), parts), WARPS * 32, 0, stream, p->carveout, m));
  }
  a.check = p->d_down_check, a.child = p->d_row_child, a.spectrum = p->d_product, a.slots = p->v_rows, a.children = p->children_inverse, a.first = row_begin;
  unsigned rows = (unsigned)(row_end - row_begin);
  if (is_fixed) CUDA_TRY(fmm_cuda_launch(c.inverse.kernel, dim3(rows * (unsigned)c.inverse.parts, parts), c.inverse.threads, c.inverse.bytes, stream, p->carveout, a));
  else
    CUDA_TRY(fmm_cuda_launch(inverse<C>, dim3(rows * (8 / a.children), parts), TRANSFORM_THREADS, fmm_vlist_cuda_inverse_bytes(p->order, p->n_surface, a.children), stream,
                             p->carveout, a));
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

namespace {
template <typename C>
fmm_status prepare(fmm_gpu_plan *p, size_t most_bytes) {
  choice c;
  p->fixed_transforms = find_fixed<C>(p->order, &c) && c.forward.bytes <= most_bytes && c.inverse.bytes <= most_bytes;
  if (p->fixed_transforms) {
    CUDA_TRY(cudaFuncSetAttribute(c.forward.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)c.forward.bytes));
    CUDA_TRY(cudaFuncSetAttribute(c.inverse.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)c.inverse.bytes));
    return FMM_OK;
  }
  /* A limit is the kernel's, whatever plan launches it, and these serve all orders: so it is the device's, not what this plan needs. */
  CUDA_TRY(cudaFuncSetAttribute(forward<C>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)most_bytes));
  CUDA_TRY(cudaFuncSetAttribute(inverse<C>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)most_bytes));
  return FMM_OK;
}
}

fmm_status fmm_vlist_cuda_prepare(fmm_gpu_plan *p, size_t most_bytes) {
  return p->v_single ? prepare<float2>(p, most_bytes) : prepare<double2>(p, most_bytes);
}

fmm_status fmm_vlist_cuda(fmm_gpu_plan *p, int64_t row_begin, int64_t row_end, cudaStream_t stream) {
  if (row_begin >= row_end) return FMM_OK;
  for (int kz = 0; kz < p->order; kz += p->slab) {
    int kz_end = kz + p->slab < p->order ? kz + p->slab : p->order;
    FMM_TRY(p->v_single ? run_slab<float2>(p, kz, kz_end, row_begin, row_end, stream) : run_slab<double2>(p, kz, kz_end, row_begin, row_end, stream));
  }
  return FMM_OK;
}
