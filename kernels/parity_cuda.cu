/* Up and down's products on the GPU for pair interactions with parity (kernels/operators.h): in the regrouped basis, in which check-to-equivalent maps are eight blocks of about n/8 unknowns and all
 * eight translations of a parent cost one n x n product. Three kernels, each with sixteen columns (box and density column) a thread block in shared memory and a warp for each parity block chi:
 *   invert: leaves; natural check potentials, regrouped, through both factors of the map, spread to natural equivalent densities.
 *   merge:  parents upward; their children's regrouped densities, transformed over the children on the way to shared memory some blocks psi at a time, through M2M and the second factor.
 *   split:  parents downward; check potentials through the first factor and L2L, transformed over the children in registers.
 * Where columns are few, a thread block has one parity block, its warps that block's rows, and what is natural is spread by a launch of its own for several levels (spread_kept).
 * Between levels values stay regrouped ([box][column][8 block], chi * block on for block chi): upward the equivalent densities, downward what children inherit. Both are an eighth of what regrouping
 * natural values gives, so the matrices of merge and split hold a factor of 8, which is exact.
 * Blocks of all chi are padded with zeros to one length, one of those that the kernels are compiled for, so that all loads of a product are under way at once: what these kernels wait for is memory, far
 * more than the tensor cores. Matrices lie in the order of fragments (fmm_cuda_parity_place), boxes being the sixteen rows of the tensor cores' instruction and a matrix's rows its eight columns: lane t
 * of four has entries 4 t .. 4 t + 3 of sixteen, which the instruction counts t, 4 + t, 8 + t, 12 + t: the same sums.
 * Where a device has too little shared memory, and for larger blocks, kernels/product_cuda.cu does it with dense matrices. */
#include "kernels/mma_cuda.h"
#include "runtime/gpu/gpu_cuda.h"

namespace {
enum { BOXES = 16, BLOCKS = FMM_MIRRORS, THREADS = 32 * BLOCKS, ROOM = 108 << 10 /* bytes of shared memory of which a multiprocessor has two */ };

/* Doubles from one box to the next in shared memory: fragments of neighbouring boxes in different banks. */
constexpr int pitch_of(int length) { return length + 2; }
constexpr int bytes_of(int k) { return BOXES * pitch_of(BLOCKS * k) * (int)sizeof(double); }
/* Blocks psi of the children that merge has in shared memory at once, and their bytes. */
constexpr int stage_bytes(int k, int blocks) { return BLOCKS * BOXES * pitch_of(blocks * k) * (int)sizeof(double); }
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

/* A column of the block of threads: its box, -1: none, its place among the batch's, its density column. */
struct column { int box, slot, part; };
__device__ __forceinline__ column column_of(const fmm_cuda_parity &p, int b) {
  const int64_t at = (int64_t)blockIdx.x * BOXES + b, slot = p.columns == 1 ? at : at / p.columns;
  return column{slot < p.n_boxes ? __ldg(p.d_box + slot) : -1, (int)slot, (int)(at - slot * p.columns)};
}
__device__ __forceinline__ int64_t place_of(const fmm_cuda_parity &p, int64_t box, int part, int length) { return (box * p.columns + part) * length; }

/* The columns whose natural values a warp brings and takes: two, so that its lanes are filled better. */
struct pair { column c[2]; };
__device__ __forceinline__ pair pair_of(const fmm_cuda_parity &p) {
  const int warp = threadIdx.x >> 5;
  return pair{{column_of(p, warp), column_of(p, warp + BLOCKS)}};
}

/* Natural values to x, with what they inherit; only: of block chi alone, -1: all. */
template <int K>
__device__ __forceinline__ void regroup(const fmm_cuda_parity &p, const pair &w, double *x, int only) {
  constexpr int ALL = BLOCKS * K;
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
#pragma unroll 2
  for (int i = lane; i < 2 * p.n_items; i += 32) {
    const int second = i >= p.n_items, item = second ? i - p.n_items : i;
    const column c = second ? w.c[1] : w.c[0];
    const int component = item / p.n_orbits;
    const eight point = load_eight(p.d_orbit_point + 8 * (item - component * p.n_orbits));
    eight place = load_eight(p.d_orbit_place + 8 * item);
    if (only >= 0)
#pragma unroll
      for (int psi = 0; psi < 8; psi++)
        if (place.v[psi] / K != only) place.v[psi] = -1;
    double v[8] = {}, more[8] = {}, *to = x + (warp + BLOCKS * second) * pitch_of(ALL);
    if (c.box >= 0) {
      const double *in = p.d_in + place_of(p, p.in_by_slot ? c.slot : c.box, c.part, p.n) + component * p.n_surface;
#pragma unroll
      for (int g = 0; g < 8; g++) v[g] = __ldg(in + point.v[g]);
      if (p.d_inherited) {
        const double *from = p.d_inherited + place_of(p, c.box, c.part, ALL);
#pragma unroll
        for (int psi = 0; psi < 8; psi++) more[psi] = place.v[psi] >= 0 ? __ldg(from + place.v[psi]) : 0;
      }
    }
    butterflies(v);
#pragma unroll
    for (int psi = 0; psi < 8; psi++)
      if (place.v[psi] >= 0) to[place.v[psi]] = v[psi] + more[psi];
  }
  for (int i = threadIdx.x; i < BOXES * p.n_pads; i += THREADS) x[i % BOXES * pitch_of(ALL) + __ldg(p.d_pad + i / BOXES)] = 0;
}

__device__ __forceinline__ double scale_of(const fmm_cuda_parity &p, int box) { return p.d_scale && box >= 0 ? __ldg(p.d_scale + box) : 1; }

/* As they are, from x. */
template <int K>
__device__ __forceinline__ void keep(const fmm_cuda_parity &p, const pair &w, const double *x) {
  constexpr int ALL = BLOCKS * K;
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
#pragma unroll
  for (int s = 0; s < 2; s++) {
    const column c = w.c[s];
    if (!p.d_kept || c.box < 0) continue;
    const double scale = scale_of(p, c.box);
    const double2 *from = (const double2 *)(x + (warp + BLOCKS * s) * pitch_of(ALL));
    double2 *kept = (double2 *)(p.d_kept + place_of(p, c.box, c.part, ALL));
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
    const double2 v = *(const double2 *)(x + b * pitch_of(ALL) + chi * K + k);
    *(double2 *)(p.d_kept + place_of(p, c.box, c.part, ALL) + chi * K + k) = make_double2(scale * v.x, scale * v.y);
  }
}

/* To natural values, times a scale: from x, or, x NULL, from what was kept. */
template <int K>
__device__ __forceinline__ void spread(const fmm_cuda_parity &p, const pair &w, const double *x) {
  constexpr int ALL = BLOCKS * K;
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const double scale[2] = {scale_of(p, w.c[0].box), scale_of(p, w.c[1].box)};
#pragma unroll 2
  for (int i = lane; i < 2 * p.n_items; i += 32) {
    const int second = i >= p.n_items, item = second ? i - p.n_items : i;
    const column c = second ? w.c[1] : w.c[0];
    if (c.box < 0) continue;
    const int component = item / p.n_orbits;
    const double factor = x ? second ? scale[1] : scale[0] : 1, *from = x ? x + (warp + BLOCKS * second) * pitch_of(ALL) : p.d_kept + place_of(p, c.box, c.part, ALL);
    const eight point = load_eight(p.d_orbit_point + 8 * (item - component * p.n_orbits)), place = load_eight(p.d_orbit_place + 8 * item);
    double v[8], *out = p.d_out + place_of(p, c.box, c.part, p.n) + component * p.n_surface;
#pragma unroll
    for (int psi = 0; psi < 8; psi++) v[psi] = place.v[psi] >= 0 ? factor * from[place.v[psi]] : 0;
    butterflies(v);
#pragma unroll
    for (int g = 0; g < 8; g++) out[point.v[g]] = v[g];
  }
}

constexpr int tiles_of(int k) { return (k + 7) / 8; }

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

/* sum[i] += sixteen boxes' K entries times tile part + STEP i of a block of the matrix; a: the first box's; b: the first tile's fragments. */
template <int COUNT, int STEP, int K>
__device__ __forceinline__ void multiply(double (&sum)[COUNT][4], const double *a, int pitch, const double *b, int part) {
  const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
  const double *low = a + g * pitch, *high = low + 8 * pitch;
  b += part * 8 * K;
#pragma unroll(K <= 92 ? K / 16 + 1 : 1) /* as far as there are registers */
  for (int k = 0; k + 16 <= K; k += 16) {
    const double2 l0 = *(const double2 *)(low + k + 4 * t), l1 = *(const double2 *)(low + k + 4 * t + 2), h0 = *(const double2 *)(high + k + 4 * t), h1 = *(const double2 *)(high + k + 4 * t + 2);
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
  constexpr int PITCH = pitch_of(BLOCKS * K);
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
  multiply<task<K, SHARE>::OWN, SHARE, K>(sum, x + w.chi * K, pitch_of(BLOCKS * K), matrix + w.chi * tiles_of(K) * 8 * K, w.part);
  w.sync();
  put(w, sum, x);
  w.sync();
}

/* A few columns more a multiprocessor are worth spilled registers where a column's work is small. */
constexpr int blocks_a_multiprocessor(int k, int otherwise) { return k <= 24 ? otherwise : k <= 40 ? 2 : 1; }

template <int K, int SHARE>
__global__ void __launch_bounds__(THREADS, blocks_a_multiprocessor(K, 3)) invert(const fmm_cuda_parity p) {
  extern __shared__ __align__(16) double x[];
  const task<K, SHARE> mine;
  fmm_cuda_await_earlier();
  const pair w = pair_of(p);
  regroup<K>(p, w, x, SHARE == 1 ? -1 : mine.chi);
  __syncthreads();
  square(mine, p.d_first, x);
  square(mine, p.d_second, x);
  if (SHARE == BLOCKS) return keep_block<K>(p, x, mine.chi);
  __syncthreads();
  keep<K>(p, w, x);
  spread<K>(p, w, x);
}

__device__ __forceinline__ eight children_of(const fmm_cuda_parity &p, const column &c) { return c.box < 0 ? eight{{-1, -1, -1, -1, -1, -1, -1, -1}} : load_eight(p.d_child + 8 * (int64_t)c.slot); }

/* Entries i and i + 1 of a box's eight children, by octant. */
template <int K>
__device__ __forceinline__ void load_children(const fmm_cuda_parity &p, const eight &child, int part, int i, double (&v)[8], double (&u)[8]) {
#pragma unroll
  for (int o = 0; o < 8; o++) {
    const double2 value = child.v[o] < 0 ? make_double2(0, 0) : __ldg((const double2 *)(p.d_kept + place_of(p, child.v[o], part, BLOCKS * K) + i));
    v[o] = value.x, u[o] = value.y;
  }
}

/* All blocks chi from the transforms over the children, some blocks psi of them in shared memory at a time: z, [transform][box][STAGED K]. */
template <int K>
__device__ __forceinline__ void merge_all(const fmm_cuda_parity &p, const pair &w, const task_of_all<K> &mine, double *z, double (&sum)[tiles_of(K)][4]) {
  constexpr int STAGED = staged(K), LENGTH = STAGED * K, PITCH = pitch_of(LENGTH);
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const eight child[2] = {children_of(p, w.c[0]), children_of(p, w.c[1])};
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
      multiply<tiles_of(K), 1, K>(sum, z + (mine.chi ^ psi) * BOXES * PITCH + (psi - first) * K, PITCH, p.d_move + (int64_t)(mine.chi * BLOCKS + psi) * tiles_of(K) * 8 * K, 0);
  }
}

/* Block chi alone: of block psi it needs transform chi ^ psi only, which has the place of psi in x. */
template <int K>
__device__ __forceinline__ void merge_one(const fmm_cuda_parity &p, const pair &w, const task_of_one<K> &mine, double *x, double (&sum)[task_of_one<K>::OWN][4]) {
  constexpr int PITCH = pitch_of(BLOCKS * K);
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const eight child[2] = {children_of(p, w.c[0]), children_of(p, w.c[1])};
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
    multiply<task_of_one<K>::OWN, BLOCKS, K>(sum, x + psi * K, PITCH, p.d_move + (int64_t)(mine.chi * BLOCKS + psi) * tiles_of(K) * 8 * K, mine.part);
  __syncthreads();
}

template <int K, int SHARE>
__global__ void __launch_bounds__(THREADS, blocks_a_multiprocessor(K, 2)) merge(const fmm_cuda_parity p) {
  extern __shared__ __align__(16) double x[];
  const task<K, SHARE> mine;
  double sum[decltype(mine)::OWN][4] = {};
  fmm_cuda_await_earlier();
  const pair w = pair_of(p);
  if constexpr (SHARE == 1) merge_all<K>(p, w, mine, x + BOXES * pitch_of(BLOCKS * K), sum);
  else merge_one<K>(p, w, mine, x, sum);
  put(mine, sum, x);
  mine.sync();
  square(mine, p.d_second, x);
  if (SHARE == BLOCKS) return keep_block<K>(p, x, mine.chi);
  __syncthreads();
  keep<K>(p, w, x);
  spread<K>(p, w, x);
}

template <int K, int SHARE>
__global__ void __launch_bounds__(THREADS, blocks_a_multiprocessor(K, 2)) split(const fmm_cuda_parity p) {
  constexpr int ALL = BLOCKS * K, TILES = tiles_of(K), PITCH = pitch_of(ALL);
  extern __shared__ __align__(16) double x[];
  const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
  const task<K, SHARE> mine;
  fmm_cuda_await_earlier();
  regroup<K>(p, pair_of(p), x, -1);
  __syncthreads();
  square(task_of_all<K>(), p.d_first, x); /* all that its sums need */
  __syncthreads();
  const column c[2] = {column_of(p, g), column_of(p, g + 8)};
  const eight child[2] = {children_of(p, c[0]), children_of(p, c[1])};
#pragma unroll 1
  for (int m = mine.part; m < TILES; m += SHARE) {
    double sum[8][1][4] = {};
#pragma unroll
    for (int o = 0; o < 8; o++) multiply<1, 1, K>(sum[o], x + (mine.chi ^ o) * K, PITCH, p.d_move + (int64_t)(mine.chi * BLOCKS + (mine.chi ^ o)) * TILES * 8 * K, m);
    if (8 * m + 2 * t >= K) continue;
#pragma unroll
    for (int s = 0; s < 2; s++) {
      double v[8], u[8];
#pragma unroll
      for (int o = 0; o < 8; o++) v[o] = sum[o][0][2 * s], u[o] = sum[o][0][2 * s + 1];
      butterflies(v), butterflies(u);
#pragma unroll
      for (int o = 0; o < 8; o++)
        if (child[s].v[o] >= 0) *(double2 *)(p.d_kept + place_of(p, child[s].v[o], c[s].part, ALL) + mine.chi * K + 8 * m + 2 * t) = make_double2(v[o], u[o]);
    }
  }
}

template <int K>
__global__ void __launch_bounds__(THREADS) spread_kept(const fmm_cuda_parity p) {
  fmm_cuda_await_earlier();
  spread<K>(p, pair_of(p), NULL);
}

template <int K, int SHARE>
cudaError_t run_step(fmm_cuda_parity_step step, const fmm_cuda_parity *p, cudaStream_t stream) {
  void (*const kernel[])(const fmm_cuda_parity) = {invert<K, SHARE>, merge<K, SHARE>, split<K, SHARE>, spread_kept<K>};
  const int bytes[] = {bytes_of(K), SHARE == 1 ? merge_bytes(K) : bytes_of(K), bytes_of(K), 0};
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
  cudaError_t error = cudaFuncSetAttribute(invert<K, SHARE>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes_of(K));
  if (error == cudaSuccess) error = cudaFuncSetAttribute(merge<K, SHARE>, cudaFuncAttributeMaxDynamicSharedMemorySize, merge_bytes(K));
  return error == cudaSuccess ? cudaFuncSetAttribute(split<K, SHARE>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes_of(K)) : error;
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
#define BYTES(k) merge_bytes(k)
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
