/* How up and down's values come to shared memory and go from there (kernels/parity_cuda.cu): natural ones, in whole lines, a warp's two boxes at a time; regrouped ones as they are kept between levels; and the
 * regrouping itself, all threads one orbit of mirror images after another. x: sixteen boxes' regrouped values, pitch_of(K) apart; natural: theirs as they lie in memory, n apart. */
#ifndef FMM_PARITY_MOVES_CUDA_H
#define FMM_PARITY_MOVES_CUDA_H
#include <cuda_pipeline.h>

#include "runtime/gpu/gpu_cuda.h"

namespace {
enum { BOXES = 16, BLOCKS = FMM_MIRRORS, THREADS = 32 * BLOCKS, SCALES = BOXES * 8 /* bytes of shared memory besides */ };

/* Doubles from one box to the next in shared memory, of so many blocks: fragments of neighbouring boxes are in different banks where that is 8 more than a multiple of 16, for which the longest have no
 * room. */
constexpr int pitch_of(int k, int blocks = BLOCKS) { return blocks * k + (k == 112 ? 2 : (24 - blocks * k % 16) % 16); }

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
/* Shell fields of the warp's columns, times the scale that densities have, which x of keep_and_spread has not yet. */
template <int K>
__device__ __forceinline__ void publish_shells(const fmm_cuda_parity &p, const pair &w, const double *x, bool scaled) {
  const int lane = threadIdx.x & 31, s = lane / FMM_CUDA_MOST_SHELLS, k = lane % FMM_CUDA_MOST_SHELLS;
  if (!p.d_shell || s > 1 || k >= p.n_shells) return;
  const column c = s ? w.c[1] : w.c[0];
  if (c.box >= 0) p.d_shell[place_of(p, c, p.n_shells) + k] = __dmul_rn(scaled ? 1 : scale_of(p, c.box), x[row_of(s) * pitch_of(K) + p.shell_place[k]]);
}
/* By all threads, when x is there. */
template <int K>
__device__ __forceinline__ void keep_and_spread(const fmm_cuda_parity &p, const pair &w, const double *x, double *natural) {
  __shared__ double scale[SCALES / sizeof(double)];
  if (p.d_scale && (threadIdx.x & 31) < 2) scale[row_of(threadIdx.x & 31)] = scale_of(p, (threadIdx.x & 31) ? w.c[1].box : w.c[0].box);
  keep<K>(p, w, x);
  publish_shells<K>(p, w, x, false);
  if (p.d_scale) __syncthreads();
  spread<K>(p, x, natural, p.d_scale ? scale : NULL);
  __syncthreads();
  publish(p, w, natural);
}
}
#endif
