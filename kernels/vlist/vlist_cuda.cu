/* The V list on the GPU: transforms of the upward equivalents of each parent's eight children, products blocked over siblings, transforms back
 * (Ying, Biros, Zorin 2004, section 3.3). Frequencies are cut in slabs of planes kz, so that any problem fits.
 *   forward, inverse: vlist_transform_cuda.h, vlist_fixed_cuda.h.
 *   products: a block takes one frequency and 256 parents, in windows of 256 ordered by which neighbours they have (gpu_vlist.cu). For each
 *     direction in which one of a warp's 32 has a neighbour, the children of the neighbour times the 8 x 8 complex matrix of that direction, gathered from the 343 offsets, for
 *     eight parents at a time as one 16x8x16 real product: [Re -Im; Im Re] [re; im]. Eight parents none of which has a neighbour there are passed over.
 * Layouts: spectrum[frequency in slab][column * components + component][slot][child], slot: parent that is a source, the last one empty (the order of slots and
 * children: gpu_vlist.cu);
 * product[..][..][row][child]; (re, im) as double2, or in single precision float2, or sources' as halves (vlist_transform_cuda.h), for products on the tensor cores, where there are many
 * of them and orders up to 8. In single precision transforms are in float up to order 8; all else is in double all the same. */
#include "kernels/vlist/vlist_product_cuda.h"
#include "kernels/vlist/vlist_fixed_cuda.h"

namespace {
/* The kernels of an order and how to launch them: over (boxes, planes and parts) for any order, over (parents and parts of their children, parts) for the compiled ones. */
typedef void transform_kernel(const transform);
struct launch {
  transform_kernel *kernel;
  int parts /* of a parent's children */, threads;
  size_t bytes;
};
struct choice { launch forward, inverse; };
template <int P, typename S, typename C>
choice fixed_choice() {
  typedef fixed_forward<P, S> f;
  typedef fixed_inverse<P, C> i;
  return choice{{forward_fixed<P, S>, f::PARTS, f::THREADS, f::BYTES}, {inverse_fixed<P, C>, i::PARTS, i::THREADS, i::BYTES}};
}

/* Compiled for this order: with sources' spectra kept as S and sums as C. */
template <typename S, typename C>
bool find_fixed(int order, choice *found) {
  switch (order) {
    case 3: *found = fixed_choice<3, S, C>(); return true;
    case 4: *found = fixed_choice<4, S, C>(); return true;
    case 5: *found = fixed_choice<5, S, C>(); return true;
    case 6: *found = fixed_choice<6, S, C>(); return true;
    case 7: *found = fixed_choice<7, S, C>(); return true;
    case 8: *found = fixed_choice<8, S, C>(); return true;
  }
  if constexpr (!std::is_same<S, halves>::value) switch (order) {
      case 9: *found = fixed_choice<9, S, C>(); return true;
      case 10: *found = fixed_choice<10, S, C>(); return true;
      case 11: *found = fixed_choice<11, S, C>(); return true;
      case 12: *found = fixed_choice<12, S, C>(); return true;
    }
  return false;
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

template <typename S>
auto products_kernel(int components) {
  if constexpr (std::is_same<S, halves>::value) return components == 1 ? multiply_halves<true> : multiply_halves<false>;
  else return components == 1 ? multiply<S, true> : multiply<S, false>;
}

/* Sources' spectra, and where these are halves also the units of what the products read. */
template <typename S>
cudaError_t run_forward(const fmm_gpu_plan *p, const transform &a, const launch *fixed, int planes, cudaStream_t stream) {
  const unsigned parts = (unsigned)(p->columns * p->equivalents);
  if (fixed) {
    const cudaError_t error = fmm_cuda_launch(fixed->kernel, dim3((unsigned)a.slots * (unsigned)fixed->parts, parts), fixed->threads, fixed->bytes, stream, p->carveout, a);
    if (error != cudaSuccess || !std::is_same<S, halves>::value) return error;
    const int64_t words = fmm_cuda_v_lines(p) * 16;
    return fmm_cuda_launch(list_units, dim3((unsigned)((words + TRANSFORM_THREADS - 1) / TRANSFORM_THREADS), parts), TRANSFORM_THREADS, 0, stream, p->carveout, p->d_v_line, words, a.slot_unit, a.slots, p->d_v_line_unit);
  }
  if constexpr (std::is_same<S, halves>::value) return cudaErrorInvalidDeviceFunction; /* see prepare */
  else
    return fmm_cuda_launch(forward<S>, dim3((unsigned)a.slots * (unsigned)(8 / a.children), planes, parts), TRANSFORM_THREADS, fmm_vlist_cuda_forward_bytes(p->order, p->n_surface, a.children), stream, p->carveout, a);
}

template <typename S, typename C>
fmm_status run_slab(fmm_gpu_plan *p, int kz_begin, int kz_end, int64_t row_begin, int64_t row_end, cudaStream_t stream) {
  int parts = p->columns * p->equivalents, planes = kz_end - kz_begin, LL = p->grid * p->grid;
  transform a = transform_of(p);
  a.kz_begin = kz_begin, a.kz_end = kz_end;
  a.equivalent = p->d_up_equivalent, a.child = p->d_slot_child, a.spectrum = p->d_spectrum, a.slots = p->v_slots + 1, a.children = p->children_forward;
  a.slot_unit = p->d_v_slot_unit;
  choice c;
  bool is_fixed = p->fixed_transforms && find_fixed<S, C>(p->order, &c);
  CUDA_TRY(run_forward<S>(p, a, is_fixed ? &c.forward : NULL, planes, stream));
  for (int i = 0; i < p->n_v_groups; i++) {
    int64_t begin = row_begin > p->v_group[i].begin ? row_begin : p->v_group[i].begin, end = row_end < p->v_group[i].end ? row_end : p->v_group[i].end;
    if (begin >= end) continue;
    int set = p->n_operator_levels == 1 ? 0 : p->v_group[i].level;
    int64_t from = p->v_group[i].begin, first = (begin - from) / FMM_V_WINDOW, last = (end - from - 1) / FMM_V_WINDOW; /* windows */
    products m = {};
    m.spectrum = p->d_spectrum, m.product = p->d_product;
    m.m2l = p->op[set].d_m2l + (int64_t)kz_begin * LL * p->equivalents * p->equivalents * 343;
    m.row = p->d_v_row, m.row_child = p->d_row_child, m.line = p->d_v_line;
    m.line_unit = (const uint4 *)p->d_v_line_unit, m.lines = fmm_cuda_v_lines(p);
    m.rows = p->v_rows, m.slots = p->v_slots + 1, m.begin = begin, m.end = end;
    m.first_window = p->v_group[i].first_window + first;
    m.columns = p->columns, m.components = p->equivalents;
    m.grid = p->grid, m.half = kz_begin ? 0 : p->order;
    m.sign = INT32_MIN;
    CUDA_TRY(fmm_cuda_launch(products_kernel<S>(p->equivalents), dim3((unsigned)(last - first + 1), planes * LL - (kz_begin ? 0 : p->grid * (p->order - 1)), parts),
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
template <typename S, typename C>
fmm_status prepare(fmm_gpu_plan *p, size_t most_bytes) {
  choice c;
  p->fixed_transforms = find_fixed<S, C>(p->order, &c) && c.forward.bytes <= most_bytes && c.inverse.bytes <= most_bytes;
  if (p->fixed_transforms) {
    CUDA_TRY(cudaFuncSetAttribute(c.forward.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)c.forward.bytes));
    CUDA_TRY(cudaFuncSetAttribute(c.inverse.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)c.inverse.bytes));
    return FMM_OK;
  }
  if constexpr (std::is_same<S, halves>::value) return p->v_halves = 0, prepare<C, C>(p, most_bytes);
  else {
    /* A limit is the kernel's, whatever plan launches it, and these serve all orders: so it is the device's, not what this plan needs. */
    CUDA_TRY(cudaFuncSetAttribute(forward<S>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)most_bytes));
    CUDA_TRY(cudaFuncSetAttribute(inverse<C>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)most_bytes));
    return FMM_OK;
  }
}
}

int fmm_cuda_v_halves(const fmm_gpu_plan *p, int64_t from) {
  const int64_t measured = 45000; /* on an H200: 200,000 uniform points with leaves of at most 110, root scale 1.2, take 9 us longer at order 4 and 9 less at order 5 */
  choice c;
  return p->v_rows * p->columns * p->equivalents * p->order * p->order * p->order >= (from ? from : measured) && find_fixed<halves, float2>(p->order, &c);
}

fmm_status fmm_vlist_cuda_prepare(fmm_gpu_plan *p, size_t most_bytes) {
  if (p->v_halves) return prepare<halves, float2>(p, most_bytes);
  return p->v_single ? prepare<float2, float2>(p, most_bytes) : prepare<double2, double2>(p, most_bytes);
}

fmm_status fmm_vlist_cuda(fmm_gpu_plan *p, int64_t row_begin, int64_t row_end, cudaStream_t stream) {
  if (row_begin >= row_end) return FMM_OK;
  for (int kz = 0; kz < p->order; kz += p->slab) {
    int kz_end = kz + p->slab < p->order ? kz + p->slab : p->order;
    FMM_TRY((p->v_halves   ? run_slab<halves, float2>(p, kz, kz_end, row_begin, row_end, stream)
             : p->v_single ? run_slab<float2, float2>(p, kz, kz_end, row_begin, row_end, stream)
                           : run_slab<double2, double2>(p, kz, kz_end, row_begin, row_end, stream)));
  }
  return FMM_OK;
}
