/* Up and down's products on the GPU for pair interactions with parity (kernels/operators.h): in the regrouped basis, in which check-to-equivalent maps are eight blocks of about n/8 unknowns and all
 * eight translations of a parent cost one n x n product. Three kernels, each with sixteen columns (box and density column) a thread block in shared memory and a warp for each parity block chi:
 *   invert: leaves; natural check potentials, regrouped, through both factors of the map, spread to natural equivalent densities.
 *   merge:  parents upward; their children's regrouped densities, transformed over the children on the way to shared memory some blocks psi at a time, through M2M and the second factor.
 *   split:  parents downward; check potentials through the first factor and L2L, transformed over the children in registers.
 * Where columns are few, a thread block has one parity block, its warps that block's rows, and what is natural is spread by a launch of its own for several levels (spread_kept).
 * Between levels values stay regrouped ([box][column][8 block], chi * block on for block chi): upward the equivalent densities, downward what children inherit. Both are an eighth of what regrouping
 * natural values gives, so the matrices of merge and split hold a factor of 8, which is exact.
 * Blocks of all chi are padded with zeros to one length, one of those that the kernels are compiled for, so that all loads of a product are under way at once: what these kernels wait for is memory, far
 * more than the tensor cores. Natural values come to shared memory and go from there in whole lines, two boxes a warp; there all threads regroup them, one orbit of mirror images at a time.
 * Matrices lie in the order of fragments (fmm_cuda_parity_place), boxes being the sixteen rows of the tensor cores' instruction and a matrix's rows its eight columns: lane t of four has entries 2 t,
 * 2 t + 1, 8 + 2 t and 9 + 2 t of sixteen, which the instruction counts t, 4 + t, 8 + t, 12 + t: the same sums.
 * Where a device has too little shared memory, and for larger blocks, kernels/product_cuda.cu does it with dense matrices. */
#include <cuda_pipeline.h>

#include "kernels/mma_cuda.h"
#include "runtime/gpu/gpu_cuda.h"

namespace {
enum { BOXES = 16, BLOCKS = FMM_MIRRORS, THREADS = 32 * BLOCKS, ROOM = 112 << 10 /* bytes of shared memory of which a multiprocessor has two */, SCALES = BOXES * 8 /* more bytes of it */ };

/* Doubles from one box to the next in shared memory, of so many blocks: fragments of neighbouring boxes are in different banks where that is 8 more than a multiple of 16, for which the longest have no
 * room. */
constexpr int pitch_of(int k, int blocks = BLOCKS) { return blocks * k + (k == 112 ? 2 : (24 - blocks * k % 16) % 16); }
/* Bytes of sixteen boxes: regrouped, and with natural values, which are not more than 8 k, behind them. */
constexpr int bytes_of(int k) { return BOXES * pitch_of(k) * (int)sizeof(double); }
constexpr int with_natural(int k) { return bytes_of(k) + BOXES * BLOCKS * k * (int)sizeof(double); }
/* Blocks psi of the children that merge has in shared memory at once, and their bytes; natural values take their place in the end. */
constexpr int stage_bytes(int k, int blocks) { return BLOCKS * BOXES * pitch_of(k, blocks) * (int)sizeof(double); }
constexpr int staged(int k) {
  int blocks = BLOCKS;
  while (blocks > 1 && bytes_of(k) + stage_bytes(k, blocks) > ROOM) blocks /= 2;
  return blocks;
}
constexpr int merge_bytes(int k) { return bytes_of(k) + stage_bytes(k, staged(k)); }

__device__ __forceinline__ void butterflies(double (&v)[8]) {
#pragma unroll
  for (int bit = 1; bit < 8; bit *= 2)
#pragma unroll
    for (int i = 0; i < 8; i++)
      if (!(i & bit)) {
        const double a = v[i], b = v[i | bit];
        v[i] = a + b, v[i | bit] = a - b;
      }
}

/* Eight numbers of 16 or 32 bits. */
struct eight { int v[8]; };
__device__ __forceinline__ eight load_eight(const int16_t *from) {
  const int4 raw = __ldg((const int4 *)from);
  const int w[4] = {raw.x, raw.y, raw.z, raw.w};
  eight e;
#pragma unroll
  for (int i = 0; i < 4; i++) e.v[2 * i] = (short)(w[i] & 0xffff), e.v[2 * i + 1] = w[i] >> 16;
  return e;
}
__device__ __forceinline__ eight load_eight(const int32_t *from) {
  const int4 a = __ldg((const int4 *)from), b = __ldg((const int4 *)from + 1);
  return eight{{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}};
}

/* A column of the block of threads: its box, -1: none, and its density column. Its place among the batch's columns, and its box's among the batch's boxes. */
struct column { int box, part; };
__device__ __forceinline__ int64_t at_of(int row) { return (int64_t)blockIdx.x * BOXES + row; }
__device__ __forceinline__ int64_t slot_of(const fmm_cuda_parity &p, int row) { return p.columns == 1 ? at_of(row) : at_of(row) / p.columns; }
__device__ __forceinline__ column column_of(const fmm_cuda_parity &p, int row) {
  const int64_t slot = slot_of(p, row);
  return column{slot < p.n_boxes ? __ldg(p.d_box + slot) : -1, (int)(at_of(row) - slot * p.columns)};
}
__device__ __forceinline__ int64_t place_of(const fmm_cuda_parity &p, const column &c, int length) { return ((int64_t)c.box * p.columns + c.part) * length; }

/* The columns that a warp brings and takes: two, so that its lanes are filled better. */
struct pair { column c[2]; };
__device__ __forceinline__ pair pair_of(const fmm_cuda_parity &p) {
  const int warp = threadIdx.x >> 5;
  return pair{{column_of(p, warp), column_of(p, warp + BLOCKS)}};
}
__device__ __forceinline__ int row_of(int second) { return (threadIdx.x >> 5) + BLOCKS * second; }

/* So many values, by pairs, on their way to shared memory; from NULL: zeros. */
__device__ __forceinline__ void bring(double *to, const double *from, int length) {
  for (int i = 2 * (threadIdx.x & 31); i < length; i += 64)
    if (from) __pipeline_memcpy_async(to + i, from + i, 2 * sizeof(double));
    else *(double2 *)(to + i) = make_double2(0, 0);
}
/* Natural values of the warp's columns. */
__device__ __forceinline__ void bring_natural(const fmm_cuda_parity &p, const pair &w, double *natural) {
#pragma unroll
  for (int s = 0; s < 2; s++)
    bring(natural + row_of(s) * p.n, w.c[s].box < 0 ? NULL : p.d_in + (p.in_by_slot ? at_of(row_of(s)) * p.n : place_of(p, w.c[s], p.n)), p.n);
}
/* Regrouped ones; only: block chi alone, -1: all. */
template <int K>
__device__ __forceinline__ void bring_regrouped(const fmm_cuda_parity &p, const pair &w, const double *from, double *x, int only) {
  constexpr int ALL = BLOCKS * K;
  const int begin = only < 0 ? 0 : only * K;
#pragma unroll
  for (int s = 0; s < 2; s++) bring(x + row_of(s) * pitch_of(K) + begin, w.c[s].box < 0 ? NULL : from + place_of(p, w.c[s], ALL) + begin, only < 0 ? ALL : K);
}
/* What regroup needs. */
template <int K>
__device__ __forceinline__ void bring_both(const fmm_cuda_parity &p, const pair &w, double *x, double *natural, int only) {
  bring_natural(p, w, natural);
  if (p.d_inherited) bring_regrouped<K>(p, w, p.d_inherited, x, only);
  __pipeline_commit();
}

/* An item of one of the sixteen columns; they are dealt to all threads. */
struct item { int row, number; };
__device__ __forceinline__ item item_at(const fmm_cuda_parity &p, int i) {
  const int row = (int)((unsigned)i * p.items_inverse >> 22);
  return item{row, i - row * p.n_items};
}

/* Natural values to x, added to what is inherited there; only: of block chi alone, -1: all. */
template <int K>
__device__ __forceinline__ void regroup(const fmm_cuda_parity &p, double *x, const double *natural, int only) {
#pragma unroll 1
  for (int i = threadIdx.x; i < BOXES * p.n_items; i += THREADS) {
    const item at = item_at(p, i);
    const eight point = load_eight(p.d_orbit_point + 8 * at.number), place = load_eight(p.d_orbit_place + 8 * at.number);
    const double *from = natural + at.row * p.n;
    double v[8], *to = x + at.row * pitch_of(K);
#pragma unroll
    for (int g = 0; g < 8; g++) v[g] = from[point.v[g]];
    butterflies(v);
#pragma unroll
    for (int psi = 0; psi < 8; psi++)
      if (place.v[psi] >= 0 && (only < 0 || place.v[psi] / K == only)) to[place.v[psi]] = p.d_inherited ? to[place.v[psi]] + v[psi] : v[psi];
  }
  if (!p.d_inherited)
    for (int i = threadIdx.x; i < BOXES * p.n_pads; i += THREADS) x[i % BOXES * pitch_of(K) + __ldg(p.d_pad + i / BOXES)] = 0;
}

__device__ __forceinline__ double scale_of(const fmm_cuda_parity &p, int box) { return p.d_scale && box >= 0 ? __ldg(p.d_scale + box) : 1; }

/* As they are, from x. */
template <int K>
__device__ __forceinline__ void keep(const fmm_cuda_parity &p, const pair &w, const double *x) {
  constexpr int ALL = BLOCKS * K;
  const int lane = threadIdx.x & 31;
#pragma unroll
  for (int s = 0; s < 2; s++) {
    const column c = w.c[s];
    if (!p.d_kept || c.box < 0) continue;
    const double scale = scale_of(p, c.box);
    const double2 *from = (const double2 *)(x + row_of(s) * pitch_of(K));
    double2 *kept = (double2 *)(p.d_kept + place_of(p, c, ALL));
    for (int i = lane; i < ALL / 2; i += 32) kept[i] = make_double2(scale * from[i].x, scale * from[i].y);
  }
}

/* Block chi alone, by all threads. */
template <int K>
__device__ __forceinline__ void keep_block(const fmm_cuda_parity &p, const double *x, int chi) {
  constexpr int ALL = BLOCKS * K;
  for (int i = threadIdx.x; i < BOXES * K / 2; i += THREADS) {
    const int b = i / (K / 2), k = 2 * (i % (K / 2));
    const column c = column_of(p, b);
    if (c.box < 0) continue;
    const double scale = scale_of(p, c.box);
    const double2 v = *(const double2 *)(x + b * pitch_of(K) + chi * K + k);
    *(double2 *)(p.d_kept + place_of(p, c, ALL) + chi * K + k) = make_double2(scale * v.x, scale * v.y);
  }
}

/* From x to natural values, times a scale that is not fused with anything: what is kept has it already, and the bits are to be the same. */
template <int K>
__device__ __forceinline__ void spread(const fmm_cuda_parity &p, const double *x, double *natural, const double *scale) {
#pragma unroll 1
  for (int i = threadIdx.x; i < BOXES * p.n_items; i += THREADS) {
    const item at = item_at(p, i);
    const eight point = load_eight(p.d_orbit_point + 8 * at.number), place = load_eight(p.d_orbit_place + 8 * at.number);
    const double factor = scale ? scale[at.row] : 1, *from = x + at.row * pitch_of(K);
    double v[8], *to = natural + at.row * p.n;
#pragma unroll
    for (int psi = 0; psi < 8; psi++) v[psi] = place.v[psi] >= 0 ? __dmul_rn(factor, from[place.v[psi]]) : 0;
    butterflies(v);
#pragma unroll
    for (int g = 0; g < 8; g++) to[point.v[g]] = v[g];
  }
}
/* The warp's columns. */
__device__ __forceinline__ void publish(const fmm_cuda_parity &p, const pair &w, const double *natural) {
#pragma unroll
  for (int s = 0; s < 2; s++) {
    if (w.c[s].box < 0) continue;
    const double2 *from = (const double2 *)(natural + row_of(s) * p.n);
    double2 *out = (double2 *)(p.d_out + place_of(p, w.c[s], p.n));
    for (int k = threadIdx.x & 31; k < p.n / 2; k += 32) out[k] = from[k];
  }
}
/* By all threads, when x is there. */
template <int K>
__device__ __forceinline__ void keep_and_spread(const fmm_cuda_parity &p, const pair &w, const double *x, double *natural) {
  __shared__ double scale[SCALES / sizeof(double)];
  if (p.d_scale && (threadIdx.x & 31) < 2) scale[row_of(threadIdx.x & 31)] = scale_of(p, (threadIdx.x & 31) ? w.c[1].box : w.c[0].box);
  keep<K>(p, w, x);
  if (p.d_scale) __syncthreads();
  spread<K>(p, x, natural, p.d_scale ? scale : NULL);
  __syncthreads();
  publish(p, w, natural);
}

constexpr int tiles_of(int k) { return (k + 7) / 8; }
template <int K>
__device__ __forceinline__ const double *block_of(const double *matrix, int block) { return matrix + (int64_t)block * tiles_of(K) * 8 * K; }

/* Who does what: with SHARE 1 each warp one block chi; with SHARE 8 each thread block one, its warps the tiles of eight rows in turn. */
template <int K, int SHARE>
struct task {
  static constexpr int TILES = tiles_of(K), OWN = (TILES + SHARE - 1) / SHARE; /* tiles a warp, at most */
  int chi, part;
  __device__ task() : chi(SHARE == 1 ? threadIdx.x >> 5 : blockIdx.y), part(SHARE == 1 ? 0 : threadIdx.x >> 5) {}
  __device__ void sync() const { SHARE == 1 ? __syncwarp() : __syncthreads(); }
};

template <int K>
using task_of_all = task<K, 1>;
template <int K>
using task_of_one = task<K, BLOCKS>;

/* sum[i] += sixteen boxes' K entries times tile part + STEP i of a block of the matrix; a: the first box's; b: the block. */
template <int COUNT, int STEP, int K>
__device__ __forceinline__ void multiply(double (&sum)[COUNT][4], const double *a, int pitch, const double *b, int part) {
  const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
  const double *low = a + g * pitch, *high = low + 8 * pitch;
  b += part * 8 * K;
#pragma unroll(K <= 92 ? K / 16 + 1 : 1) /* as far as there are registers */
  for (int k = 0; k + 16 <= K; k += 16) {
    const double2 l0 = *(const double2 *)(low + k + 2 * t), l1 = *(const double2 *)(low + k + 8 + 2 * t), h0 = *(const double2 *)(high + k + 2 * t), h1 = *(const double2 *)(high + k + 8 + 2 * t);
    const double fa[8] = {l0.x, h0.x, l0.y, h0.y, l1.x, h1.x, l1.y, h1.y};
#pragma unroll
    for (int m = 0; m < COUNT; m++)
      if (STEP == 1 || part + STEP * m < tiles_of(K)) {
        const double2 *from = (const double2 *)(b + STEP * m * 8 * K + 8 * k + 4 * lane), b0 = __ldg(from), b1 = __ldg(from + 1);
        const double fb[4] = {b0.x, b0.y, b1.x, b1.y};
        fmm_mma_16x8x16(sum[m], fa, fb);
      }
  }
#pragma unroll
  for (int k = K / 16 * 16; k < K; k += 4) {
    const double l = low[k + t], h = high[k + t];
#pragma unroll
    for (int m = 0; m < COUNT; m++)
      if (STEP == 1 || part + STEP * m < tiles_of(K)) fmm_mma_16x8x4(sum[m], l, h, __ldg(b + STEP * m * 8 * K + 8 * k + lane));
  }
}

/* A warp's sums to block chi of x. */
template <int K, int SHARE>
__device__ __forceinline__ void put(const task<K, SHARE> &w, const double (&sum)[task<K, SHARE>::OWN][4], double *x) {
  constexpr int PITCH = pitch_of(K);
  const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
  double *own = x + w.chi * K;
#pragma unroll
  for (int i = 0; i < task<K, SHARE>::OWN; i++) {
    const int row = 8 * (w.part + SHARE * i) + 2 * t;
    if (row >= K) continue;
    *(double2 *)(own + g * PITCH + row) = make_double2(sum[i][0], sum[i][1]);
    *(double2 *)(own + (g + 8) * PITCH + row) = make_double2(sum[i][2], sum[i][3]);
  }
}

/* Block chi of x in place. */
template <int K, int SHARE>
__device__ __forceinline__ void square(const task<K, SHARE> &w, const double *matrix, double *x) {
  double sum[task<K, SHARE>::OWN][4] = {};
  multiply<task<K, SHARE>::OWN, SHARE, K>(sum, x + w.chi * K, pitch_of(K), block_of<K>(matrix, w.chi), w.part);
  w.sync();
  put(w, sum, x);
  w.sync();
}

constexpr int blocks_a_multiprocessor(int k) { return k <= 40 ? 2 : 1; }

template <int K, int SHARE>
__global__ void __launch_bounds__(THREADS, K <= 24 ? 3 : blocks_a_multiprocessor(K)) invert(const fmm_cuda_parity p) {
  extern __shared__ __align__(16) double x[];
  double *natural = x + BOXES * pitch_of(K);
  const task<K, SHARE> mine;
  const int only = SHARE == 1 ? -1 : mine.chi;
  fmm_cuda_await_earlier();
  const pair w = pair_of(p);
  bring_both<K>(p, w, x, natural, only);
  __pipeline_wait_prior(0);
  __syncthreads();
  regroup<K>(p, x, natural, only);
  __syncthreads();
  square(mine, p.d_first, x);
  square(mine, p.d_second, x);
  if (SHARE == BLOCKS) return keep_block<K>(p, x, mine.chi);
  __syncthreads();
  keep_and_spread<K>(p, w, x, natural);
}

__device__ __forceinline__ eight children_of(const fmm_cuda_parity &p, int box, int row) {
  return box < 0 ? eight{{-1, -1, -1, -1, -1, -1, -1, -1}} : load_eight(p.d_child + 8 * slot_of(p, row));
}

/* Entries i and i + 1 of a box's eight children, by octant. */
template <int K>
__device__ __forceinline__ void load_children(const fmm_cuda_parity &p, const eight &child, int part, int i, double (&v)[8], double (&u)[8]) {
#pragma unroll
  for (int o = 0; o < 8; o++) {
    const double2 value = child.v[o] < 0 ? make_double2(0, 0) : __ldg((const double2 *)(p.d_kept + place_of(p, column{child.v[o], part}, BLOCKS * K) + i));
    v[o] = value.x, u[o] = value.y;
  }
}

/* All blocks chi from the transforms over the children, some blocks psi of them in shared memory at a time: z, [transform][box][STAGED K]. */
template <int K>
__device__ __forceinline__ void merge_all(const fmm_cuda_parity &p, const pair &w, const task_of_all<K> &mine, double *z, double (&sum)[tiles_of(K)][4]) {
  constexpr int STAGED = staged(K), LENGTH = STAGED * K, PITCH = pitch_of(K, STAGED);
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const eight child[2] = {children_of(p, w.c[0].box, warp), children_of(p, w.c[1].box, warp + BLOCKS)};
  const double *rows = block_of<K>(p.d_move, mine.chi * BLOCKS);
#pragma unroll 1
  for (int first = 0; first < BLOCKS; first += STAGED) {
    if (first) __syncthreads();
#pragma unroll
    for (int s = 0; s < 2; s++)
#pragma unroll 2
      for (int i = 2 * lane; i < LENGTH; i += 64) {
        double v[8], u[8];
        load_children<K>(p, child[s], w.c[s].part, first * K + i, v, u);
        butterflies(v), butterflies(u);
#pragma unroll
        for (int o = 0; o < 8; o++) *(double2 *)(z + (o * BOXES + warp + BLOCKS * s) * PITCH + i) = make_double2(v[o], u[o]);
      }
    __syncthreads();
#pragma unroll 1
    for (int psi = first; psi < first + STAGED; psi++)
      multiply<tiles_of(K), 1, K>(sum, z + (mine.chi ^ psi) * BOXES * PITCH + (psi - first) * K, PITCH, block_of<K>(rows, psi), 0);
  }
}

/* Block chi alone: of block psi it needs transform chi ^ psi only, which has the place of psi in x. */
template <int K>
__device__ __forceinline__ void merge_one(const fmm_cuda_parity &p, const pair &w, const task_of_one<K> &mine, double *x, double (&sum)[task_of_one<K>::OWN][4]) {
  constexpr int PITCH = pitch_of(K);
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const eight child[2] = {children_of(p, w.c[0].box, warp), children_of(p, w.c[1].box, warp + BLOCKS)};
#pragma unroll 2
  for (int at = 2 * lane; at < 2 * BLOCKS * K; at += 64) {
    const int second = at >= BLOCKS * K, i = second ? at - BLOCKS * K : at, transform = mine.chi ^ i / K;
    double v[8], u[8];
    load_children<K>(p, second ? child[1] : child[0], second ? w.c[1].part : w.c[0].part, i, v, u);
    butterflies(v), butterflies(u); /* all of them, for the same bits as merge_all's */
    double2 wanted = make_double2(v[0], u[0]);
#pragma unroll
    for (int o = 1; o < 8; o++)
      if (transform == o) wanted = make_double2(v[o], u[o]);
    *(double2 *)(x + (warp + BLOCKS * second) * PITCH + i) = wanted;
  }
  __syncthreads();
#pragma unroll 2
  for (int psi = 0; psi < BLOCKS; psi++)
    multiply<task_of_one<K>::OWN, BLOCKS, K>(sum, x + psi * K, PITCH, block_of<K>(p.d_move, mine.chi * BLOCKS + psi), mine.part);
  __syncthreads();
}

template <int K, int SHARE>
__global__ void __launch_bounds__(THREADS, blocks_a_multiprocessor(K)) merge(const fmm_cuda_parity p) {
  extern __shared__ __align__(16) double x[];
  double *z = x + BOXES * pitch_of(K);
  const task<K, SHARE> mine;
  double sum[decltype(mine)::OWN][4] = {};
  fmm_cuda_await_earlier();
  const pair w = pair_of(p);
  if constexpr (SHARE == 1) merge_all<K>(p, w, mine, z, sum);
  else merge_one<K>(p, w, mine, x, sum);
  put(mine, sum, x);
  mine.sync();
  square(mine, p.d_second, x);
  if (SHARE == BLOCKS) return keep_block<K>(p, x, mine.chi);
  __syncthreads();
  keep_and_spread<K>(p, w, x, z);
}

template <int K, int SHARE>
__global__ void __launch_bounds__(THREADS, blocks_a_multiprocessor(K)) split(const fmm_cuda_parity p) {
  constexpr int ALL = BLOCKS * K, TILES = tiles_of(K), PITCH = pitch_of(K);
  extern __shared__ __align__(16) double x[];
  double *natural = x + BOXES * PITCH;
  const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
  const task<K, SHARE> mine;
  const task_of_all<K> all; /* of the first factor, as all are needed for the sums */
  fmm_cuda_await_earlier();
  const pair w = pair_of(p);
  bring_both<K>(p, w, x, natural, -1);
  __pipeline_wait_prior(0);
  __syncthreads();
  regroup<K>(p, x, natural, -1);
  __syncthreads();
  square(all, p.d_first, x);
  __syncthreads();
  const column c[2] = {column_of(p, g), column_of(p, g + 8)};
  const eight child[2] = {children_of(p, c[0].box, g), children_of(p, c[1].box, g + 8)};
#pragma unroll 1
  for (int m = mine.part; m < TILES; m += SHARE) {
    double sum[8][1][4] = {};
#pragma unroll
    for (int o = 0; o < 8; o++) multiply<1, 1, K>(sum[o], x + (mine.chi ^ o) * K, PITCH, block_of<K>(p.d_move, mine.chi * BLOCKS + (mine.chi ^ o)), m);
    if (8 * m + 2 * t >= K) continue;
#pragma unroll
    for (int s = 0; s < 2; s++) {
      double v[8], u[8];
#pragma unroll
      for (int o = 0; o < 8; o++) v[o] = sum[o][0][2 * s], u[o] = sum[o][0][2 * s + 1];
      butterflies(v), butterflies(u);
#pragma unroll
      for (int o = 0; o < 8; o++)
        if (child[s].v[o] >= 0) *(double2 *)(p.d_kept + place_of(p, column{child[s].v[o], c[s].part}, ALL) + mine.chi * K + 8 * m + 2 * t) = make_double2(v[o], u[o]);
    }
  }
}

template <int K>
__global__ void __launch_bounds__(THREADS, blocks_a_multiprocessor(K)) spread_kept(const fmm_cuda_parity p) {
  extern __shared__ __align__(16) double x[];
  double *natural = x + BOXES * pitch_of(K);
  fmm_cuda_await_earlier();
  const pair w = pair_of(p);
  bring_regrouped<K>(p, w, p.d_kept, x, -1);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  spread<K>(p, x, natural, NULL);
  __syncthreads();
  publish(p, w, natural);
}

template <int K, int SHARE>
cudaError_t run_step(fmm_cuda_parity_step step, const fmm_cuda_parity *p, cudaStream_t stream) {
  void (*const kernel[])(const fmm_cuda_parity) = {invert<K, SHARE>, merge<K, SHARE>, split<K, SHARE>, spread_kept<K>};
  const int bytes[] = {with_natural(K), SHARE == 1 ? merge_bytes(K) : bytes_of(K), with_natural(K), with_natural(K)};
  const int64_t n = p->n_boxes * p->columns;
  const dim3 blocks((unsigned)((n + BOXES - 1) / BOXES), step == FMM_PARITY_SPREAD ? 1 : SHARE);
  return fmm_cuda_launch_when(p->early, kernel[step], blocks, THREADS, bytes[step], stream, p->carveout, *p);
}

template <int K>
cudaError_t run_either(fmm_cuda_parity_step step, const fmm_cuda_parity *p, cudaStream_t stream) {
  return fmm_cuda_parity_is_shared(p) ? run_step<K, BLOCKS>(step, p, stream) : run_step<K, 1>(step, p, stream);
}

template <int K, int SHARE>
cudaError_t allow(void) {
  const cudaFuncAttribute most = cudaFuncAttributeMaxDynamicSharedMemorySize;
  cudaError_t error = cudaFuncSetAttribute(invert<K, SHARE>, most, with_natural(K));
  if (error == cudaSuccess) error = cudaFuncSetAttribute(merge<K, SHARE>, most, merge_bytes(K));
  if (error == cudaSuccess) error = cudaFuncSetAttribute(spread_kept<K>, most, with_natural(K));
  return error == cudaSuccess ? cudaFuncSetAttribute(split<K, SHARE>, most, with_natural(K)) : error;
}
template <int K>
cudaError_t allow_both(void) {
  const cudaError_t error = allow<K, 1>();
  return error == cudaSuccess ? allow<K, BLOCKS>() : error;
}
}

/* Where columns are few, eight thread blocks share the work of sixteen columns: what one multiprocessor reads of the matrices takes longer than all else. */
int fmm_cuda_parity_is_shared(const fmm_cuda_parity *p) { return (p->n_boxes * p->columns + BOXES - 1) / BOXES * BLOCKS <= 4 * p->sms; }

/* Each of those of fmm_gpu_parity_block. */
#define FOR_BLOCK(block, call, otherwise) \
  switch (block) {                        \
    case 4: return call(4);               \
    case 8: return call(8);               \
    case 20: return call(20);             \
    case 24: return call(24);             \
    case 40: return call(40);             \
    case 60: return call(60);             \
    case 64: return call(64);             \
    case 92: return call(92);             \
    case 112: return call(112);           \
    default: return otherwise;            \
  }

int fmm_cuda_parity_bytes(int block) {
#define BYTES(k) ((merge_bytes(k) > with_natural(k) ? merge_bytes(k) : with_natural(k)) + SCALES)
  FOR_BLOCK(block, BYTES, INT32_MAX)
}

cudaError_t fmm_cuda_parity_prepare(int block, int *early) {
  cudaFuncAttributes attributes;
  *early = cudaFuncGetAttributes(&attributes, invert<4, 1>) == cudaSuccess && attributes.ptxVersion >= 90 && attributes.binaryVersion >= 90;
#define ALLOW(k) allow_both<k>()
  FOR_BLOCK(block, ALLOW, cudaErrorInvalidValue)
}

cudaError_t fmm_cuda_parity_run(fmm_cuda_parity_step step, const fmm_cuda_parity *p, cudaStream_t stream) {
  if (p->n_boxes <= 0) return cudaSuccess;
#define RUN(k) run_either<k>(step, p, stream)
  FOR_BLOCK(p->block, RUN, cudaErrorInvalidValue)
}
