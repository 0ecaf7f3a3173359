/* Products of up and down by parity blocks on the FP64 tensor cores, in shared memory: device code of kernels/parity_cuda.cu, which tells of the whole, and kernels/leaves_cuda.h. A matrix's block times
 * sixteen boxes' regrouped values, a warp's sums in registers, and both in place. */
#ifndef FMM_PARITY_PRODUCT_CUDA_H
#define FMM_PARITY_PRODUCT_CUDA_H
#include "kernels/mma_cuda.h"
#include "kernels/parity_moves_cuda.h"

namespace {
/* Bytes of sixteen boxes: regrouped, and with natural values, which are not more than 8 k, behind them. */
constexpr int bytes_of(int k) { return BOXES * pitch_of(k) * (int)sizeof(double); }
constexpr int with_natural(int k) { return bytes_of(k) + BOXES * BLOCKS * k * (int)sizeof(double); }

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

/* Blocks of functions odd along axes are shorter where the order is odd, as such functions are zero in the middle planes. Of one component and order 5 or 7, whose blocks are padded to 20 and 40: tiles of the block of functions odd along
 * so many axes (that of even ones with the shell field's place), of which all but the even one have no more than a multiple of sixteen columns; of others (ORDER 0) all. */
template <int ORDER, int K>
constexpr int own_tiles_of(int axes) {
  const int half = (ORDER + 1) / 2;
  int outer = 1, inner = 1;
  for (int a = 0; a < 3; a++) outer *= half - (a < axes), inner *= half - 1 - (a < axes);
  return ORDER ? (outer - inner + (axes == 0) + 7) / 8 : tiles_of(K);
}
constexpr int odd_order_of(int order) { return order == 5 || order == 7 ? order : 0; }
template <int V> struct constant { static constexpr int value = V; };
/* do_it, with the number of axes along which functions of block chi are odd as a constant, or where ORDER is 0 with 0. */
template <int ORDER, typename F>
__device__ __forceinline__ void by_axes(int chi, const F &do_it) {
  if constexpr (ORDER == 0) do_it(constant<0>());
  else switch (__popc(chi)) {
      case 0: do_it(constant<0>()); break;
      case 1: do_it(constant<1>()); break;
      case 2: do_it(constant<2>()); break;
      default: do_it(constant<3>());
    }
}

template <int ORDER, int K>
__device__ __forceinline__ int own_tiles(int chi) {
  int own = 0;
  by_axes<ORDER>(chi, [&](auto axes) { own = own_tiles_of<ORDER, K>(axes.value); });
  return own;
}

/* sum[i] += sixteen boxes' K entries times tile part + STEP i, i < COUNT, of a block of the matrix; a: the first box's; b: the block. rest: with columns behind a multiple of sixteen. own: of the
 * tiles as many. */
template <int COUNT, int STEP, int K, int ALL>
__device__ __forceinline__ void multiply(double (&sum)[ALL][4], const double *a, int pitch, const double *b, int part, bool rest = true, int own = COUNT) {
  static_assert(COUNT <= ALL, "a sum for each");
  const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
  const double *low = a + g * pitch, *high = low + 8 * pitch;
  b += part * 8 * K;
#pragma unroll(K <= 92 ? K / 16 + 1 : 1) /* as far as there are registers */
  for (int k = 0; k + 16 <= K; k += 16) {
    const double2 l0 = *(const double2 *)(low + k + 2 * t), l1 = *(const double2 *)(low + k + 8 + 2 * t), h0 = *(const double2 *)(high + k + 2 * t), h1 = *(const double2 *)(high + k + 8 + 2 * t);
    const double fa[8] = {l0.x, h0.x, l0.y, h0.y, l1.x, h1.x, l1.y, h1.y};
#pragma unroll
    for (int m = 0; m < COUNT; m++)
      if (STEP == 1 ? m < own : part + STEP * m < tiles_of(K)) {
        const double2 *from = (const double2 *)(b + STEP * m * 8 * K + 8 * k + 4 * lane), b0 = __ldg(from), b1 = __ldg(from + 1);
        const double fb[4] = {b0.x, b0.y, b1.x, b1.y};
        fmm_mma_16x8x16(sum[m], fa, fb);
      }
  }
  if (!rest) return;
#pragma unroll
  for (int k = K / 16 * 16; k < K; k += 4) {
    const double l = low[k + t], h = high[k + t];
#pragma unroll
    for (int m = 0; m < COUNT; m++)
      if (STEP == 1 ? m < own : part + STEP * m < tiles_of(K)) fmm_mma_16x8x4(sum[m], l, h, __ldg(b + STEP * m * 8 * K + 8 * k + lane));
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
template <int ORDER = 0, int K, int SHARE>
__device__ __forceinline__ void square(const task<K, SHARE> &w, const double *matrix, double *x) {
  constexpr int OWN = task<K, SHARE>::OWN;
  double sum[OWN][4] = {};
  by_axes<ORDER>(w.chi, [&](auto axes) {
    multiply<ORDER ? own_tiles_of<ORDER, K>(axes.value) : OWN, SHARE, K>(sum, x + w.chi * K, pitch_of(K), block_of<K>(matrix, w.chi), w.part, ORDER == 0 || w.chi == 0);
  });
  w.sync();
  put(w, sum, x);
  w.sync();
}

constexpr int blocks_a_multiprocessor(int k) { return k <= 40 ? 2 : 1; }
}
#endif
