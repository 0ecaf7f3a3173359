/* Products of the V list on the GPU: device code of vlist_cuda.cu, which says what they are and how their data lie. By arithmetic:
 *   in_double: a product of eight parents is one 16x8x16 real one on the FP64 tensor cores.
 *   in_halves: spectra are sums of two halves (16 bits) each, of eleven digits, and so is the matrix; three of the four products of these, all but that of both lower ones, are made by the tensor cores, which do sixteen times
 *     as many of halves as of doubles. They sum a direction's in float, cut off instead of rounded; all directions' are added in float, each in the units of its source. A box's mean, which outweighs all other values
 *     (frequency 0, vlist_means.h), is multiplied in double.
 * Splitting for tensor cores: Markidis, Chien, Laure, Peng, Vetter 2018; Ootomo and Yokota 2022. */
#ifndef FMM_VLIST_PRODUCT_CUDA_H
#define FMM_VLIST_PRODUCT_CUDA_H
#include "kernels/mma_cuda.h"
#include "kernels/vlist/vlist_lines_cuda.h"
#include "kernels/vlist/vlist_transform_cuda.h"
#include "kernels/warp_cuda.h"

namespace {
enum { WARPS = 8, GROUPS = 4 };
static_assert(WARPS * GROUPS * (int)FMM_V_TOGETHER == (int)FMM_V_WINDOW && GROUPS * (int)FMM_V_TOGETHER == (int)FMM_V_A_WARP, "a block takes a window");

struct products {
  const void *spectrum;
  const double2 *m2l;
  void *product;
  const int32_t *row, *row_child;
  const fmm_cuda_v_line *line;
  const uint4 *line_unit; /* of halves: [column and component][line][t], see units_of */
  int64_t lines;
  int64_t rows, slots, begin, end; /* rows [begin, end) of all `rows` are wanted; slots counts the empty one */
  int64_t first_window;
  int columns, components;
  int grid, half; /* frequencies (kx, ky) of the first plane with ky < half alone; half 0: the first plane is not kz = 0 */
  int zero, sign; /* 0 and the sign's bit, which the compiler does not know: see turned_by */
};

/* x (high 0), or -x (the sign's bit); low is 0. A fragment holds each value of the matrix twice, once negated. Where the compiler knows that two of its registers are equal it keeps a second
 * copy of the whole fragment, for which there is no room, and a negation that it knows waits for the units that the products use. So it must not know: the bits of both words are turned by
 * arguments of the kernel. */
__device__ __forceinline__ double turned_by(double x, int high, int low) { return __hiloint2double(__double2hiint(x) ^ high, __double2loint(x) ^ low); }

/* The two source children of lane t, and their values as they come: (re, im) of the one, then of the other. piece: 16 t. */
__device__ __forceinline__ int child_of(int t, int i) { return t + 4 * i; }
__device__ __forceinline__ void load(double2, const char *x, uint32_t place, uint32_t piece, double (&b)[4]) {
  const uint32_t at = fmm_vlist_place(place) | piece; /* at ^ 64: the other half of the slot */
  const double2 first = *(const double2 *)(x + at), second = *(const double2 *)(x + (at ^ 64));
  b[0] = first.x, b[1] = first.y, b[2] = second.x, b[3] = second.y;
}
__device__ __forceinline__ void load(float2, const char *x, uint32_t place, uint32_t piece, double (&b)[4]) {
  const float4 v = *(const float4 *)(x + (fmm_vlist_place(place) | piece));
  b[0] = v.x, b[1] = v.y, b[2] = v.z, b[3] = v.w;
}
__device__ __forceinline__ void load(halves, const char *x, uint32_t place, uint32_t piece, uint4 &b) { b = *(const uint4 *)(x + (fmm_vlist_place(place) | piece)); }
__device__ __forceinline__ float2 pair_of(uint32_t bits) { return __half22float2(*(const __half2 *)&bits); }
__device__ __forceinline__ void load(halves, const char *x, uint32_t place, uint32_t piece, double (&b)[4]) {
  uint4 v;
  load(halves{}, x, place, piece, v);
  const float2 high[2] = {pair_of(v.x), pair_of(v.y)}, low[2] = {pair_of(v.z), pair_of(v.w)};
#pragma unroll
  for (int i = 0; i < 2; i++) b[2 * i] = (double)high[i].x + low[i].x, b[2 * i + 1] = (double)high[i].y + low[i].y;
}

/* The units of a group's rows 2 t and 2 t + 1, whose sums a lane has: of powers of two the upper halves of floats suffice, in one word. */
struct units { float even, odd; };
__device__ __forceinline__ units units_of(uint32_t word) { return units{__uint_as_float(word << 16), __uint_as_float(word & 0xffff0000u)}; }

/* S: what sources' spectra are kept as, C: what sums are. entry: of the table of matrices; matrix: a lane's fragments, of a direction; values: of a neighbour. */
template <typename S_>
struct in_double {
  typedef S_ S;
  static constexpr bool HAS_UNITS = std::is_same<S, halves>::value;
  typedef typename std::conditional<HAS_UNITS, float2, S>::type C;
  typedef double sum[4];
  typedef double2 entry;
  typedef double values[4];
  struct matrix { double f[8]; };
  static __device__ __forceinline__ void put(entry *table, int at, double2 m, float) { table[at] = m; }
  static __device__ __forceinline__ matrix matrix_at(const entry *table, int first, int second, int sign, int zero) {
    const entry m0 = table[first], m1 = table[second];
    return matrix{{m0.x, m0.y, turned_by(m0.y, sign, zero), turned_by(m0.x, zero, zero), m1.x, m1.y, turned_by(m1.y, sign, zero), turned_by(m1.x, zero, zero)}};
  }
  static __device__ __forceinline__ void add(sum &to, const matrix &m, const values &v, const units &unit) {
    if constexpr (HAS_UNITS) {
      double d[4] = {};
      fmm_mma_16x8x16(d, m.f, v);
      to[0] = fma(unit.even, d[0], to[0]), to[1] = fma(unit.odd, d[1], to[1]), to[2] = fma(unit.even, d[2], to[2]), to[3] = fma(unit.odd, d[3], to[3]);
    } else fmm_mma_16x8x16(to, m.f, v);
  }
  static __device__ __forceinline__ C result(double re, double im, float) {
    C c;
    c.x = re, c.y = im;
    return c;
  }
};

struct in_halves {
  typedef halves S;
  static constexpr bool HAS_UNITS = true;
  typedef float2 C;
  typedef float sum[4];
  typedef uint2 entry; /* (re, -im) and (im, re); behind FMM_V_TABLE of them the same of what is left */
  typedef uint4 values;
  struct matrix { uint32_t high[4], low[4]; };
  static __device__ __forceinline__ uint32_t bits_of(__half x, __half y) { return (uint32_t)__half_as_ushort(x) | (uint32_t)__half_as_ushort(y) << 16; }
  static __device__ __forceinline__ void put(entry *table, int at, double2 m, float per_unit) {
    const float re = (float)(m.x * per_unit), im = (float)(m.y * per_unit);
    const __half x = __float2half_rn(re), y = __float2half_rn(im), u = __float2half_rn(re - __half2float(x)), v = __float2half_rn(im - __half2float(y));
    table[at] = make_uint2(bits_of(x, __hneg(y)), bits_of(y, x)), table[FMM_V_TABLE + at] = make_uint2(bits_of(u, __hneg(v)), bits_of(v, u));
  }
  /* Loaded as the products take them, so that nothing is moved between registers. */
  static __device__ __forceinline__ matrix matrix_at(const entry *table, int first, int second, int, int) {
    const entry a = table[first], b = table[second], c = table[FMM_V_TABLE + first], d = table[FMM_V_TABLE + second];
    return matrix{{a.x, a.y, b.x, b.y}, {c.x, c.y, d.x, d.y}};
  }
  static __device__ __forceinline__ void add(sum &to, const matrix &m, const values &v, const units &unit) {
    const float none[4] = {};
    float d[4];
    fmm_mma_16x8x16(d, m.low, v.x, v.y, none);
    fmm_mma_16x8x16(d, m.high, v.z, v.w, d);
    fmm_mma_16x8x16(d, m.high, v.x, v.y, d);
    to[0] = fmaf(unit.even, d[0], to[0]), to[1] = fmaf(unit.odd, d[1], to[1]), to[2] = fmaf(unit.even, d[2], to[2]), to[3] = fmaf(unit.odd, d[3], to[3]);
  }
  static __device__ __forceinline__ C result(float re, float im, float unit) { return make_float2(unit * re, unit * im); }
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

/* A line's part, loaded here and not where it is needed first, which is a direction later. */
__device__ __forceinline__ uint4 fetch(const uint4 *part) {
  uint4 v;
  asm volatile("ld.global.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(part));
  return v;
}

/* A direction of a warp's groups, those that are there, with as many loads before the products as there are registers for: of doubles two. */
template <class A>
__device__ __forceinline__ void multiply_two(unsigned there, uint32_t first, uint32_t second, const char *x, uint32_t piece, const typename A::matrix &m, uint32_t unit, uint32_t other_unit, typename A::sum &sum,
                                             typename A::sum &other) {
  typedef typename A::S S;
  typename A::values b, c;
  if (there == 3) {
    load(S{}, x, first, piece, b), load(S{}, x, second, piece, c);
    A::add(sum, m, b, units_of(unit));
    A::add(other, m, c, units_of(other_unit));
  } else if (there == 1) {
    load(S{}, x, first, piece, b);
    A::add(sum, m, b, units_of(unit));
  } else if (there) {
    load(S{}, x, second, piece, b);
    A::add(other, m, b, units_of(other_unit));
  }
}
template <class A>
__device__ __forceinline__ void multiply_groups(unsigned there, const uint4 &line, const uint4 &unit, const char *x, uint32_t piece, const typename A::matrix &m, typename A::sum (&sum)[GROUPS]) {
  multiply_two<A>(there & 3, line.x, line.y, x, piece, m, unit.x, unit.y, sum[0], sum[1]);
  multiply_two<A>(there >> 2, line.z, line.w, x, piece, m, unit.z, unit.w, sum[2], sum[3]);
}
template <>
__device__ __forceinline__ void multiply_groups<in_halves>(unsigned there, const uint4 &line, const uint4 &unit_of, const char *x, uint32_t piece, const in_halves::matrix &m, in_halves::sum (&sum)[GROUPS]) {
  const uint32_t place[GROUPS] = {line.x, line.y, line.z, line.w}, unit[GROUPS] = {unit_of.x, unit_of.y, unit_of.z, unit_of.w};
  in_halves::values b[GROUPS];
#pragma unroll
  for (int j = 0; j < GROUPS; j++)
    if (there >> j & 1) load(halves{}, x, place[j], piece, b[j]);
#pragma unroll
  for (int j = 0; j < GROUPS; j++)
    if (there >> j & 1) in_halves::add(sum[j], m, b[j], units_of(unit[j]));
}

__device__ __forceinline__ bool is_wanted(const products &a, int row) { return row >= a.begin && row < a.end; }

/* The largest of a block's threads' numbers, which are not negative; *room is 0 before. */
__device__ __forceinline__ float block_most(float v, uint32_t *room) {
  const uint32_t most = fmm_most_of_warp(__float_as_uint(v)); /* as unsigned numbers they have the same order */
  if ((threadIdx.x & 31) == 0) atomicMax(room, most);
  __syncthreads();
  return __uint_as_float(*room);
}

/* The matrices of a frequency, for all components in. */
__device__ __forceinline__ const double2 *matrices_of(const products &a, int64_t frequency, int components, int out) { return a.m2l + (frequency * components + out) * components * 343; }

/* A frequency of a window. ONE: there is one component. table_units: of a table's halves and its inverse. */
template <class A, bool ONE>
__device__ __forceinline__ void multiply_window(const products &a, int64_t frequency, typename A::entry *table, const float2 &table_units) {
  typedef typename A::C C;
  const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3, E = ONE ? 1 : a.components;
  const int column = blockIdx.z / E, out = blockIdx.z % E;
  const int64_t position = (a.first_window + blockIdx.x) * FMM_V_WINDOW + threadIdx.x; /* a lane looks up one row */
  const bool idle = !__any_sync(0xffffffffu, is_wanted(a, a.row[position]));
  const int offset[2] = {offset_of(child_of(t, 0), g), offset_of(child_of(t, 1), g)};
  const uint32_t piece = kept(16 * t), my_group = kept(1u << t);
  typename A::sum sum[GROUPS] = {};
  for (int in = 0; in < E; in++) {
    const double2 *const m2l = matrices_of(a, frequency, E, out) + in * 343;
    __syncthreads();
    for (int i = threadIdx.x; i < 343; i += WARPS * 32) A::put(table, fmm_vlist_table_at(i / 49, i / 7 % 7, i % 7), m2l[i], table_units.y);
    __syncthreads();
    if (idle) continue;
    const char *x = (const char *)a.spectrum + (frequency * a.columns * E + column * E + in) * a.slots * 8 * (int64_t)sizeof(C);
    const int64_t line = position / FMM_V_A_WARP * FMM_V_LINES;
    const uint4 *part = (const uint4 *)(a.line + line) + g;
    const uint4 *unit = NULL;
    if constexpr (A::HAS_UNITS) unit = a.line_unit + ((column * E + in) * a.lines + line) * 4 + t;
    uint4 next = fetch(part);
#pragma unroll 1
    for (;;) {
      const uint4 now = next;
      const unsigned there = __ballot_sync(0xffffffffu, now.x & my_group) & (1 << GROUPS) - 1;
      if (!there) break;
      uint4 unit_of = {};
      if constexpr (A::HAS_UNITS) unit_of = *unit, unit += 4;
      part += sizeof(fmm_cuda_v_line) / sizeof(uint4);
      next = fetch(part);
      const int base = fmm_vlist_table_base(now);
      const typename A::matrix m = A::matrix_at(table, base + offset[0], base + offset[1], a.sign, a.zero);
      multiply_groups<A>(there, now, unit_of, x, piece, m, sum);
    }
  }
  if (idle) return;
  const int row = a.row[position]; /* once more, rather than all the while in a register */
  unsigned existing = 0;
  if (is_wanted(a, row)) {
    const int4 *child = (const int4 *)(a.row_child + (int64_t)row * 8), p = child[0], q = child[1];
    existing = (p.x >= 0) | (p.y >= 0) << 1 | (p.z >= 0) << 2 | (p.w >= 0) << 3 | (q.x >= 0) << 4 | (q.y >= 0) << 5 | (q.z >= 0) << 6 | (q.w >= 0) << 7;
  }
  C *y = (C *)a.product + (frequency_of(a, blockIdx.y) * (int64_t)a.columns * E + blockIdx.z) * a.rows * 8;
#pragma unroll
  for (int j = 0; j < GROUPS; j++)
#pragma unroll
    for (int i = 0; i < 2; i++) {
      int from = 8 * j + 2 * t + i, to = __shfl_sync(0xffffffffu, row, from);
      unsigned children = __shfl_sync(0xffffffffu, existing, from); /* none of a row that is not wanted */
      if (in_use<C>(children, g)) keep(y + (int64_t)to * 8 + g, A::result(sum[j][i], sum[j][2 + i], table_units.x));
    }
}

/* Blocks: (window; frequency of the slab, as said; column and component out). */
template <typename S, bool ONE>
__global__ void __launch_bounds__(WARPS * 32, 3) multiply(const products a) {
  __shared__ double2 table[FMM_V_TABLE];
  multiply_window<in_double<S>, ONE>(a, frequency_of(a, blockIdx.y), table, make_float2(1, 1));
}

template <bool ONE>
__global__ void __launch_bounds__(WARPS * 32, 4) multiply_halves(const products a) {
  __shared__ double2 table[FMM_V_TABLE];
  __shared__ uint32_t most;
  static_assert(sizeof *table == 2 * sizeof(in_halves::entry), "the table serves both");
  const int64_t frequency = frequency_of(a, blockIdx.y);
  if (frequency == 0 && a.half) return multiply_window<in_double<halves>, ONE>(a, frequency, table, make_float2(1, 1));
  const int E = ONE ? 1 : a.components;
  const double2 *const m2l = matrices_of(a, frequency, E, blockIdx.z % E);
  float mine = 0;
  for (int i = threadIdx.x; i < E * 343; i += WARPS * 32) mine = fmaxf(mine, fmaxf(fabsf((float)m2l[i].x), fabsf((float)m2l[i].y)));
  if (threadIdx.x == 0) most = 0;
  __syncthreads();
  multiply_window<in_halves, ONE>(a, frequency, (in_halves::entry *)table, unit_for(block_most(mine, &most)));
}

/* The units of the lines' places: of each line 4 x 4 words, by t and groups. */
__global__ void list_units(const fmm_cuda_v_line *line, int64_t words, const float *slot_unit, int64_t slots, uint32_t *line_unit) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= words) return;
  const int t = (int)(i / GROUPS % 4), group = (int)(i % GROUPS);
  const float *unit = slot_unit + blockIdx.y * slots;
  uint32_t bits[2];
  for (int k = 0; k < 2; k++) bits[k] = __float_as_uint(unit[fmm_vlist_place(line[i / 16].place[fmm_cuda_v_place(8 * group + 2 * t + k)]) / (8 * sizeof(halves))]);
  line_unit[blockIdx.y * words + i] = bits[0] >> 16 | (bits[1] & 0xffff0000u);
}
}
#endif
