/* The V list on the GPU: transforms of the upward equivalents of each parent's eight children, products blocked over siblings, transforms back
 * (Ying, Biros, Zorin 2004, section 3.3). Frequencies are cut in slabs of planes kz, so that any problem fits.
 *   forward, inverse: vlist_transform_cuda.h.
 *   products: a block takes one frequency and 256 parents, in windows of 256 ordered by which neighbours they have (gpu_vlist.cu). For each
 *     direction in which one of a warp's 32 has a neighbour, the children of the neighbour times the 8 x 8 complex matrix of that direction, gathered from the 343 offsets, for
 *     eight parents at a time as one 16x8x16 real product: [Re -Im; Im Re] [re; im]. Eight parents none of which has a neighbour there are passed over.
 * Layouts: spectrum[frequency in slab][column * components + component][slot][child], slot: parent that is a source, the last one empty (in double, children of slots of colour 1 as in
 * vlist_windows.h);
 * product[..][..][row][child]; (re, im) as C: double2, or float2 where the phase is in single precision (arithmetic is double all the same). */
#include "kernels/mma_cuda.h"
#include "kernels/vlist/vlist_lines_cuda.h"
#include "kernels/vlist/vlist_transform_cuda.h"

namespace {
enum { WARPS = 8, GROUPS = 4 };
static_assert(WARPS * GROUPS * (int)FMM_V_TOGETHER == (int)FMM_V_WINDOW && GROUPS * (int)FMM_V_TOGETHER == (int)FMM_V_A_WARP, "a block takes a window");

struct products {
  const void *spectrum;
  const double2 *m2l;
  void *product;
  const int32_t *row, *row_child;
  const fmm_cuda_v_line *line;
  int64_t rows, slots, begin, end; /* rows [begin, end) of all `rows` are wanted; slots counts the empty one */
  int64_t first_window;
  int columns, components;
  int grid, half; /* frequencies (kx, ky) of the first plane with ky < half alone; half 0: the first plane is not kz = 0 */
  int zero, sign; /* 0 and the sign's bit, which the compiler does not know: see turned_by */
};

/* The two source children of lane t in a fragment, and their values as they come: (re, im) of the one, then of the other. piece: 16 t. */
template <typename C>
struct fragment;
template <>
struct fragment<double2> {
  static __device__ __forceinline__ int child(int t, int i) { return t + 4 * i; }
  static __device__ __forceinline__ void load(const char *x, uint32_t place, uint32_t piece, double (&b)[4]) {
    const uint32_t at = fmm_vlist_place(place) | piece; /* at ^ 64: the other half of the slot */
    const double2 first = *(const double2 *)(x + at), second = *(const double2 *)(x + (at ^ 64));
    b[0] = first.x, b[1] = first.y, b[2] = second.x, b[3] = second.y;
  }
};
template <>
struct fragment<float2> {
  static __device__ __forceinline__ int child(int t, int i) { return 2 * t + i; }
  static __device__ __forceinline__ void load(const char *x, uint32_t place, uint32_t piece, double (&b)[4]) {
    const float4 v = *(const float4 *)(x + (fmm_vlist_place(place) | piece));
    b[0] = v.x, b[1] = v.y, b[2] = v.z, b[3] = v.w;
  }
};

/* Where the matrix of a source's child o onto a target's child g is behind a direction's base: octant bit 0 is x. */
__device__ __forceinline__ int offset_of(int o, int g) {
  return fmm_vlist_table_at(1 + (o & 1) - (g & 1), 1 + (o >> 1 & 1) - (g >> 1 & 1), 1 + (o >> 2) - (g >> 2));
}

/* The slab's frequency of a block. */
__device__ __forceinline__ int frequency_of(const products &a, int block) {
  if (!a.half) return block;
  return block < a.grid * a.half ? block / a.half * a.grid + block % a.half : block + a.grid * (a.grid - a.half);
}

/* A value that stays in a register: it is not made again wherever it is used. */
__device__ __forceinline__ uint32_t kept(uint32_t value) {
  asm volatile("" : "+r"(value));
  return value;
}

/* x (high 0), or -x (the sign's bit); low is 0. A fragment holds each value of the matrix twice, once negated. Where the compiler knows that two of its registers are equal it keeps a second
 * copy of the whole fragment, for which there is no room, and a negation that it knows waits for the units that the products use. So it must not know: the bits of both words are turned by
 * arguments of the kernel. */
__device__ __forceinline__ double turned_by(double x, int high, int low) { return __hiloint2double(__double2hiint(x) ^ high, __double2loint(x) ^ low); }

/* A line's part, loaded here and not where it is needed first, which is a direction later. */
__device__ __forceinline__ uint4 fetch(const uint4 *part) {
  uint4 v;
  asm volatile("ld.global.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(part));
  return v;
}

/* Two groups, those that are there; the loads of both come before the products. */
template <typename C>
__device__ __forceinline__ void multiply_two(unsigned there, uint32_t first, uint32_t second, const char *x, uint32_t piece, const double (&f)[8], double (&sum)[4], double (&other)[4]) {
  double b[4], c[4];
  if (there == 3) {
    fragment<C>::load(x, first, piece, b);
    fragment<C>::load(x, second, piece, c);
    fmm_mma_16x8x16(sum, f, b);
    fmm_mma_16x8x16(other, f, c);
  } else if (there == 1) {
    fragment<C>::load(x, first, piece, b);
    fmm_mma_16x8x16(sum, f, b);
  } else if (there) {
    fragment<C>::load(x, second, piece, b);
    fmm_mma_16x8x16(other, f, b);
  }
}

__device__ __forceinline__ bool is_wanted(const products &a, int row) { return row >= a.begin && row < a.end; }

/* Blocks: (window; frequency of the slab, as said; column and component out). ONE: there is one component. */
template <typename C, bool ONE>
__global__ void __launch_bounds__(WARPS * 32, 3) multiply(const products a) {
  __shared__ double2 table[FMM_V_TABLE];
  const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3, E = ONE ? 1 : a.components;
  const int column = blockIdx.z / E, out = blockIdx.z % E;
  const int64_t position = (a.first_window + blockIdx.x) * FMM_V_WINDOW + threadIdx.x; /* a lane looks up one row */
  const bool idle = !__any_sync(0xffffffffu, is_wanted(a, a.row[position]));
  const int offset[2] = {offset_of(fragment<C>::child(t, 0), g), offset_of(fragment<C>::child(t, 1), g)};
  const uint32_t piece = kept(16 * t), my_group = kept(1u << t);
  double sum[GROUPS][4] = {};
  for (int in = 0; in < E; in++) {
    const int64_t frequency = frequency_of(a, blockIdx.y);
    __syncthreads();
    for (int i = threadIdx.x; i < 343; i += WARPS * 32) table[fmm_vlist_table_at(i / 49, i / 7 % 7, i % 7)] = a.m2l[((frequency * E + out) * E + in) * 343 + i];
    __syncthreads();
    if (idle) continue;
    const char *x = (const char *)a.spectrum + (frequency * a.columns * E + column * E + in) * a.slots * 8 * (int64_t)sizeof(C);
    const uint4 *part = (const uint4 *)(a.line + position / FMM_V_A_WARP * FMM_V_LINES) + g;
    uint4 next = fetch(part);
#pragma unroll 1
    for (;;) {
      const uint4 now = next;
      const unsigned there = __ballot_sync(0xffffffffu, now.x & my_group) & (1 << GROUPS) - 1;
      if (!there) break;
      part += sizeof(fmm_cuda_v_line) / sizeof(uint4);
      next = fetch(part);
      const int base = fmm_vlist_table_base(now);
      const double2 m0 = table[base + offset[0]], m1 = table[base + offset[1]];
      const double f[8] = {m0.x, m0.y, turned_by(m0.y, a.sign, a.zero), turned_by(m0.x, a.zero, a.zero), m1.x, m1.y, turned_by(m1.y, a.sign, a.zero), turned_by(m1.x, a.zero, a.zero)};
      multiply_two<C>(there & 3, now.x, now.y, x, piece, f, sum[0], sum[1]);
      multiply_two<C>(there >> 2, now.z, now.w, x, piece, f, sum[2], sum[3]);
    }
  }
  if (idle) return;
  const int row = a.row[position]; /* once more, rather than all the while in a register */
  unsigned existing = 0;
  if (is_wanted(a, row)) {
    const int4 *child = (const int4 *)(a.row_child + (int64_t)row * 8), p = child[0], q = child[1];
    existing = (p.x >= 0) | (p.y >= 0) << 1 | (p.z >= 0) << 2 | (p.w >= 0) << 3 | (q.x >= 0) << 4 | (q.y >= 0) << 5 | (q.z >= 0) << 6 | (q.w >= 0) << 7;
  }
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
    products m = {};
    m.spectrum = p->d_spectrum, m.product = p->d_product;
    m.m2l = p->op[set].d_m2l + (int64_t)kz_begin * LL * p->equivalents * p->equivalents * 343;
    m.row = p->d_v_row, m.row_child = p->d_row_child, m.line = p->d_v_line;
    m.rows = p->v_rows, m.slots = p->v_slots + 1, m.begin = begin, m.end = end;
    m.first_window = p->v_group[i].first_window + first;
    m.columns = p->columns, m.components = p->equivalents;
    m.grid = p->grid, m.half = kz_begin ? 0 : p->order;
    m.sign = INT32_MIN;
    CUDA_TRY(fmm_cuda_launch(p->equivalents == 1 ? multiply<C, true> : multiply<C, false>, dim3((unsigned)(last - first + 1), planes * LL - (kz_begin ? 0 : p->grid * (p->order - 1)), parts),
                             WARPS * 32, 0, stream, p->carveout, m));
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
