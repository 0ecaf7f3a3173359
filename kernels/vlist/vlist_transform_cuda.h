/* V's transforms on the GPU: equivalent densities of a parent's eight children to spectra, and back to check potentials. A block takes the children of a
 * parent (or a few of them). Plain sums along one axis after the other, since the input is zero but on p of L = 2p - 1 points an axis and the output is
 * needed on p only: fewer operations than a fast transform of so few points would save. Two kinds: for any order, and compiled for one with
 * lines in registers and frequencies k and -k made together. In the plane kz = 0 a frequency (kx, ky) and (-kx, -ky) are conjugates, so that only ky < p are
 * multiplied and transformed back. Layouts in vlist_cuda.cu; spectra are kept as C, double2, float2 (re, im) or halves. */
#ifndef FMM_VLIST_TRANSFORM_CUDA_H
#define FMM_VLIST_TRANSFORM_CUDA_H
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <type_traits>

#include "kernels/vlist/vlist_turns_cuda.h"
#include "runtime/gpu/gpu_cuda.h"

namespace {
enum { TRANSFORM_THREADS = 256 };

struct transform {
  const double *equivalent; double *check;  /* [box][column][n] */
  const int32_t *child;                     /* 8 a slot or row */
  const int16_t *grid_surface;
  const double *twiddle, *degree;
  const double *unit;                       /* of densities and its inverse, that spectra fit a float; NULL: 1 */
  double *partial;                          /* [row][child][column and component][surface point] between slabs; NULL when there is one */
  void *spectrum;                           /* C */
  float *slot_unit;                         /* [column and component][slot]: of what halves are multiples; NULL where spectra are not kept so */
  int64_t slots;                            /* pitch of the spectrum in slots or rows */
  int64_t first;                            /* first slot or row handled */
  int order, n_surface, n, columns, components, kz_begin, kz_end, children;
};

__device__ __forceinline__ double unit_of(const transform &a, int inverse) { return a.unit ? a.unit[inverse] : 1; }

/* A source's spectrum in single: (re, im) in units of its parent's, each the sum of two halves, which together have a float's digits. As the tensor cores take them: of two children one after the other first the
 * higher halves of both, then the lower ones. */
struct alignas(8) halves { __half2 of[2]; };

/* Powers of two: a unit in which what is `most` at most is below 2^15, as halves are below 2^16 and have all of their digits from 2^-14 on, and its inverse. */
__device__ __forceinline__ float2 unit_for(float most) {
  const int exponent = max((int)(__float_as_uint(most) >> 23), 16);
  return make_float2(__uint_as_float((uint32_t)(exponent - 14) << 23), __uint_as_float((uint32_t)(268 - exponent) << 23));
}

__device__ __forceinline__ double2 widen(double2 v) { return v; }
__device__ __forceinline__ float2 narrow(double2 v) { return make_float2((float)v.x, (float)v.y); }
__device__ __forceinline__ double2 widen(float2 v) { return make_double2(v.x, v.y); }
/* Spectra are read when all of them are written, which are more than the caches hold: the first to leave them. */
__device__ __forceinline__ void keep(double2 *to, double2 v) { __stcs(to, v); }
__device__ __forceinline__ void keep(float2 *to, float2 v) { __stcs(to, v); }
/* In units of the inverse of per_unit, which only halves have; of these two lanes that differ in bit 0 have two children one after the other. */
__device__ __forceinline__ void keep(double2 *to, double2 v, float) { keep(to, v); }
__device__ __forceinline__ void keep(float2 *to, double2 v, float) { keep(to, narrow(v)); }
__device__ __forceinline__ void keep(float2 *to, float2 v, float) { keep(to, v); }
__device__ __forceinline__ void keep(halves *to, float2 v, float per_unit) {
  const float x = v.x * per_unit, y = v.y * per_unit;
  const __half2 high = __floats2half2_rn(x, y), low = __floats2half2_rn(x - __low2float(high), y - __high2float(high));
  const bool odd = threadIdx.x & 1;
  const __half2 other = __shfl_xor_sync(3u << (threadIdx.x & 30), odd ? high : low, 1);
  const __half2 first = odd ? other : high, second = odd ? low : other;
  __stcs((uint2 *)to, make_uint2(*(const uint32_t *)&first, *(const uint32_t *)&second));
}

/* Whether a child shares a sector of 32 bytes of the spectra with one that exists: the others are never written nor read (and stay zero). `existing`:
 * bit c for child c. */
template <typename C>
__device__ __forceinline__ bool in_use(unsigned existing, int c) {
  constexpr int CHILDREN = 32 / (int)sizeof(C);
  return existing >> (c & ~(CHILDREN - 1)) & ((1 << CHILDREN) - 1);
}
/* Which exist of the N children of one parent that these lanes are. */
template <int N>
__device__ __forceinline__ unsigned existing_children(int box) { return __ballot_sync(0xffffffffu, box >= 0) >> (threadIdx.x & (32 - N)) & ((1u << N) - 1); }

__device__ __forceinline__ void add_times(double2 &sum, double2 a, double2 b) {
  sum.x = fma(a.x, b.x, fma(-a.y, b.y, sum.x));
  sum.y = fma(a.x, b.y, fma(a.y, b.x, sum.y));
}

/* Blocks: (slot, part of its children; plane of the slab; column and component). */
template <typename C_>
__global__ void __launch_bounds__(TRANSFORM_THREADS) forward(const transform a) {
  extern __shared__ __align__(16) double shared[];
  const int p = a.order, L = 2 * p - 1, C = a.children, parts = 8 / C, kz = a.kz_begin + blockIdx.y;
  const int64_t slot = a.first + blockIdx.x / parts;
  const int first_child = (blockIdx.x % parts) * C, column = blockIdx.z / a.components, component = blockIdx.z % a.components;
  double2 *w = (double2 *)shared, *plane = w + L, *lines = plane + p * p * C; /* e^{-2 pi i j / L}; [x][y][c]; [x][ky][c] */
  double *in = (double *)(lines + p * L * C);                                    /* [c][surface point] */
  for (int j = threadIdx.x; j < L; j += blockDim.x) w[j] = make_double2(a.twiddle[2 * j], -a.twiddle[2 * j + 1]);
  const double unit = unit_of(a, 0);
  for (int i = threadIdx.x; i < C * a.n_surface; i += blockDim.x) {
    int c = i / a.n_surface, s = i - c * a.n_surface, box = a.child[slot * 8 + first_child + c];
    in[i] = box >= 0 ? unit * a.equivalent[((int64_t)box * a.columns + column) * a.n + component * a.n_surface + s] : 0;
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
  C_ *out = (C_ *)a.spectrum + (int64_t)(kz - a.kz_begin) * L * L * pitch + ((int64_t)blockIdx.z * a.slots + slot) * 8 + first_child;
  for (int i = threadIdx.x; i < L * L * C; i += blockDim.x) {
    int c = i % C, ky = i / C % L, kx = i / (C * L);
    double2 sum = make_double2(0, 0);
    for (int x = 0, j = 0; x < p; x++) {
      add_times(sum, lines[(x * L + ky) * C + c], w[j]);
      j += kx;
      if (j >= L) j -= L;
    }
    keep(out + (int64_t)(kx * L + ky) * pitch + c, sum, 1);
  }
}

/* Blocks: (row, part of its children; column and component); all planes of the slab, added to the check potentials. */
template <typename C_>
__global__ void __launch_bounds__(TRANSFORM_THREADS) inverse(const transform a) {
  extern __shared__ __align__(16) double shared[];
  const int p = a.order, L = 2 * p - 1, C = a.children, parts = 8 / C;
  const int64_t row = a.first + blockIdx.x / parts;
  const int first_child = (blockIdx.x % parts) * C, column = blockIdx.y / a.components, component = blockIdx.y % a.components;
  double2 *w = (double2 *)shared, *plane = w + L, *lines = plane + L * L * C, *face = lines + p * L * C; /* [kx][ky][c]; [x][ky][c]; [x][y][c] */
  double *sum_of = (double *)(face + p * p * C);                                                           /* [c][surface point] */
  for (int j = threadIdx.x; j < L; j += blockDim.x) w[j] = make_double2(a.twiddle[2 * j], a.twiddle[2 * j + 1]);
  double *partial = a.partial + ((row * 8 + first_child) * a.columns * a.components + blockIdx.y) * a.n_surface; /* of the first child */
  const int64_t next_child = (int64_t)a.columns * a.components * a.n_surface;
  for (int i = threadIdx.x; i < C * a.n_surface; i += blockDim.x)
    sum_of[i] = a.kz_begin ? partial[i / a.n_surface * next_child + i % a.n_surface] : 0;
  const int64_t pitch = (int64_t)a.columns * a.components * a.slots * 8;
  for (int kz = a.kz_begin; kz < a.kz_end; kz++) {
    const C_ *from = (const C_ *)a.spectrum + (int64_t)(kz - a.kz_begin) * L * L * pitch + ((int64_t)blockIdx.y * a.slots + row) * 8 + first_child;
    for (int i = threadIdx.x; i < L * L * C; i += blockDim.x) {
      if (a.child[row * 8 + first_child + i % C] < 0) continue;
      int kx = i / C / L, ky = i / C % L;
      const bool conjugate = kz == 0 && ky >= p;
      double2 f = widen(from[(int64_t)(conjugate ? (L - kx) % L * L + L - ky : i / C) * pitch + i % C]);
      plane[i] = make_double2(f.x, conjugate ? -f.y : f.y);
    }
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
    if (a.kz_end < p) partial[c * next_child + s] = sum_of[i];
    else if (box >= 0) a.check[((int64_t)box * a.columns + column) * a.n + component * a.n_surface + s] += unit_of(a, 1) * a.degree[box] * sum_of[i];
  }
}

/* ---- common orders: p = P, all planes of the slab one after another ---- */

/* Arithmetic, of spectra kept as C: in float where these are in single, but of a box's mean (frequency 0), which outweighs all other values (vlist_means.h). */
template <int P, typename C>
using complex_of = typename std::conditional<sizeof(C) < sizeof(double2) && P <= 8, float2, double2>::type;
template <int P, typename C>
using real_of = typename std::conditional<sizeof(C) < sizeof(double2) && P <= 8, float, double>::type;

/* Threads: two for each line of the widest step, each making half of the line's results; whole warps make the same half. */
template <int P, typename C>
struct fixed {
  static constexpr int L = 2 * P - 1;
  static constexpr size_t COMPLEX = sizeof(complex_of<P, C>), REAL = sizeof(real_of<P, C>);
  static constexpr int threads(int children) { return (L * children + 31) / 32 * 64; }
  /* Not fewer children than share a sector. */
  static constexpr int whole_sectors(int children) { return children * (int)sizeof(C) < 32 ? 32 / (int)sizeof(C) : children; }
};
/* N: children of a parent that a block takes, fewer at high orders, so that several blocks fit a multiprocessor: as measured on an H200. */
template <int P, typename C>
struct fixed_forward : fixed<P, C> {
  using fixed<P, C>::L;
  static constexpr int N = fixed<P, C>::whole_sectors(P <= 8 ? 8 : 4), PARTS = 8 / N, THREADS = fixed<P, C>::threads(N);
  static constexpr size_t BYTES = fixed<P, C>::COMPLEX * (L + 2 * P * L * N) + fixed<P, C>::REAL * P * P * P * N;
};
template <int P, typename C>
struct fixed_inverse : fixed<P, C> {
  using fixed<P, C>::L;
  static constexpr int N = fixed<P, C>::whole_sectors(P <= 8 ? 8 : P <= 10 ? 4 : 2), PARTS = 8 / N, THREADS = fixed<P, C>::threads(N);
  static constexpr size_t BYTES = fixed<P, C>::COMPLEX * (L + P * L * N + P * P * P * N) + sizeof(C) * L * L * N;
  static constexpr int BLOCKS = P <= 6 || (P <= 8 && sizeof(C) < sizeof(double2)) ? 4 : P <= 8 ? 2 : (int)(227 * 1024 / (BYTES + 1024)); /* on a multiprocessor: as many as its memory holds, but where registers would not do */
};

/* The frequencies or points of a line that a thread makes: one half of them or the other, all threads of a warp alike. */
template <int P, int WHICH> struct half_of { static constexpr int BEGIN = WHICH ? (P + 1) / 2 : 0, END = WHICH ? P : (P + 1) / 2; };

/* Sums of v[i] cos and v[i] sin of 2 pi i k / L: frequency k is (c.x + s.y, c.y - s.x), frequency -k (c.x - s.y, c.y + s.x). k: known to the compiler where this is used. */
template <int P, typename V>
__device__ __forceinline__ void transform_pair(const V (&v)[P], int k, V &c, V &s) {
  constexpr int L = 2 * P - 1;
  typedef decltype(c.x) real;
  c = v[0], s = V{0, 0};
#pragma unroll
  for (int i = 1; i < P; i++) {
    const real cos = (real)all_turns<L>.cos[i * k % L], sin = (real)all_turns<L>.sin[i * k % L];
    c.x = fma(v[i].x, cos, c.x), c.y = fma(v[i].y, cos, c.y);
    s.x = fma(v[i].x, sin, s.x), s.y = fma(v[i].y, sin, s.y);
  }
}

/* Value at point x of a line given by sum[k] = F_k + F_-k and difference[k] = F_k - F_-k (sum[0] = F_0). x: likewise. */
template <int P, typename V>
__device__ __forceinline__ V value_at(const V (&sum)[P], const V (&difference)[P], int x) {
  constexpr int L = 2 * P - 1;
  V f = sum[0];
  typedef decltype(f.x) real;
#pragma unroll
  for (int k = 1; k < P; k++) {
    const real cos = (real)all_turns<L>.cos[k * x % L], sin = (real)all_turns<L>.sin[k * x % L];
    f.x = fma(sum[k].x, cos, fma(-difference[k].y, sin, f.x));
    f.y = fma(sum[k].y, cos, fma(difference[k].x, sin, f.y));
  }
  return f;
}

/* What a line becomes, by pairs of frequencies k and -k: each(k, F_k, F_-k). */
template <int P, int WHICH, typename V, class Each>
__device__ __forceinline__ void transform_half(const V (&v)[P], const Each &each) {
#pragma unroll
  for (int k = half_of<P, WHICH>::BEGIN; k < half_of<P, WHICH>::END; k++) {
    V c, s;
    transform_pair<P>(v, k, c, s);
    each(k, V{c.x + s.y, c.y - s.x}, V{c.x - s.y, c.y + s.x});
  }
}
template <int P, typename V, class Each>
__device__ __forceinline__ void transform_line(const V (&v)[P], int half, const Each &each) {
  if (half) transform_half<P, 1>(v, each);
  else transform_half<P, 0>(v, each);
}

/* And back: each(x, value). */
template <int P, int WHICH, typename V, class Each>
__device__ __forceinline__ void values_of_half(const V (&sum)[P], const V (&difference)[P], const Each &each) {
#pragma unroll
  for (int x = half_of<P, WHICH>::BEGIN; x < half_of<P, WHICH>::END; x++) each(x, value_at<P>(sum, difference, x));
}
template <int P, typename V, class Each>
__device__ __forceinline__ void values_of_line(const V (&sum)[P], const V (&difference)[P], int half, const Each &each) {
  if (half) values_of_half<P, 1>(sum, difference, each);
  else values_of_half<P, 0>(sum, difference, each);
}

__device__ __forceinline__ void to_complex(double2 v, double2 *to) { *to = v; }
__device__ __forceinline__ void to_complex(double2 v, float2 *to) { *to = narrow(v); }
__device__ __forceinline__ void to_complex(float2 v, double2 *to) { *to = widen(v); }
__device__ __forceinline__ void to_complex(float2 v, float2 *to) { *to = v; }

/* A block's sums, in the threads' order, of those whose numbers are alike modulo N, a power of two up to 32; room: N a warp. All have them behind the next barrier, from sum_of_like. */
template <int N>
__device__ __forceinline__ void sum_like(double v, double *room) {
#pragma unroll
  for (int step = 16; step >= N; step >>= 1) v += __shfl_xor_sync(0xffffffffu, v, step);
  if ((int)(threadIdx.x & 31) < N) room[threadIdx.x / 32 * N + threadIdx.x % N] = v;
}
template <int N, int THREADS>
__device__ __forceinline__ double sum_of_like(int c, const double *room) {
  double sum = 0;
#pragma unroll
  for (int w = 0; w < THREADS / 32; w++) sum += room[w * N + c];
  return sum;
}

/* Of halves: the unit of all children's, none of whose frequencies has more than the sum of all magnitudes. */
template <typename C, int THREADS>
__device__ __forceinline__ float choose_unit(const transform &a, int64_t slot, float magnitudes) {
  if constexpr (!std::is_same<C, halves>::value) return 1;
  else {
    __shared__ float of_warp[THREADS / 32];
    for (int step = 16; step; step >>= 1) magnitudes += __shfl_xor_sync(0xffffffffu, magnitudes, step);
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = magnitudes;
    __syncthreads();
    float most = 0;
#pragma unroll
    for (int i = 0; i < THREADS / 32; i++) most += of_warp[i];
    const float2 units = unit_for(most);
    if (threadIdx.x == 0) a.slot_unit[blockIdx.y * a.slots + slot] = units.x;
    return units.y;
  }
}

template <int P, typename C>
__global__ void __launch_bounds__(fixed_forward<P, C>::THREADS) forward_fixed(const transform a) {
  typedef fixed_forward<P, C> own;
  typedef complex_of<P, C> V;
  typedef real_of<P, C> real;
  constexpr int L = own::L, N = own::N, PARTS = own::PARTS, THREADS = own::THREADS;
  static_assert(PARTS == 1 || !std::is_same<C, halves>::value, "a block has all children of a slot");
  constexpr bool MEAN_APART = sizeof(V) < sizeof(double2);
  extern __shared__ __align__(16) double shared[];
  __shared__ double means[MEAN_APART ? THREADS / 32 * N : 1];
  V *w = (V *)shared, *all_lines = w + L; /* two of [x][ky][c], used in turn */
  real *in = (real *)(all_lines + 2 * P * L * N);    /* [x][y][z][c], zero inside */
  const int64_t slot = a.first + blockIdx.x / PARTS, pitch = (int64_t)a.columns * a.components * a.slots * 8;
  const int column = blockIdx.y / a.components, component = blockIdx.y % a.components, c = threadIdx.x % N, half = threadIdx.x / 32 % 2, line = (threadIdx.x / 64 * 32 + threadIdx.x % 32) / N;
  const int child = blockIdx.x % PARTS * N + c, box = a.child[slot * 8 + child];
  const bool writes = in_use<C>(existing_children<N>(box), c);
  for (int j = threadIdx.x; j < L; j += THREADS) to_complex(make_double2(a.twiddle[2 * j], a.twiddle[2 * j + 1]), w + j);
  const double unit = unit_of(a, 0);
  double sum = 0;
  float magnitudes = 0;
  for (int i = threadIdx.x; i < P * P * P * N; i += THREADS) { /* i % N is c: THREADS is a multiple of N */
    int s = a.grid_surface[i / N];
    const double v = box >= 0 && s >= 0 ? unit * a.equivalent[((int64_t)box * a.columns + column) * a.n + component * a.n_surface + s] : 0;
    in[i] = (real)v, sum += v, magnitudes += fabsf((float)v);
  }
  if (MEAN_APART) sum_like<N>(sum, means);
  const float per_unit = choose_unit<C, THREADS>(a, slot, magnitudes);
  __syncthreads();
  for (int kz = a.kz_begin; kz < a.kz_end; kz++) {
    V *lines = all_lines + (kz & 1) * P * L * N;
    if (line < P) { /* line: x */
      V v[P];
#pragma unroll
      for (int y = 0; y < P; y++) {
        v[y] = V{0, 0};
#pragma unroll
        for (int z = 0, j = 0; z < P; z++) {
          real q = in[((line * P + y) * P + z) * N + c];
          v[y].x = fma(q, w[j].x, v[y].x), v[y].y = fma(-q, w[j].y, v[y].y);
          j += kz;
          if (j >= L) j -= L;
        }
      }
      transform_line<P>(v, half, [&](int k, V first, V second) {
        lines[(line * L + k) * N + c] = first;
        if (k) lines[(line * L + L - k) * N + c] = second;
      });
    }
    __syncthreads();
    if (line < (kz ? L : P) && writes) { /* line: ky */
      V v[P];
      C *out = (C *)a.spectrum + (int64_t)(kz - a.kz_begin) * L * L * pitch + ((int64_t)blockIdx.y * a.slots + slot) * 8 + child;
#pragma unroll
      for (int x = 0; x < P; x++) v[x] = lines[(x * L + line) * N + c];
      transform_line<P>(v, half, [&](int k, V first, V second) {
        if (MEAN_APART && k == 0 && kz == 0 && line == 0) first.x = (real)sum_of_like<N, THREADS>(c, means);
        keep(out + (int64_t)(k * L + line) * pitch, first, per_unit);
        if (k) keep(out + (int64_t)((L - k) * L + line) * pitch, second, per_unit);
      });
    }
  }
}

/* What is kept between slabs: a sum, and where that is in float the mean beside it, which is added at the end. */
__device__ __forceinline__ double partial_of(double sum, double) { return sum; }
__device__ __forceinline__ double partial_of(float sum, float mean) { return __hiloint2double(__float_as_int(mean), __float_as_int(sum)); }
template <typename Real> __device__ __forceinline__ Real take_partial(double partial, Real *mean);
template <> __device__ __forceinline__ double take_partial(double partial, double *) { return partial; }
template <> __device__ __forceinline__ float take_partial(double partial, float *mean) { return *mean = __int_as_float(__double2hiint(partial)), __int_as_float(__double2loint(partial)); }
__device__ __forceinline__ double whole_of(double sum, double) { return sum; }
__device__ __forceinline__ double whole_of(float sum, float mean) { return (double)sum + mean; }

/* From the device's memory to its second cache, for whoever reads it next. */
__device__ __forceinline__ void ask_for(const void *line) { asm volatile("prefetch.global.L2 [%0];" ::"l"(line)); }

/* A plane kz comes to shared memory by asynchronous copies during the last step of the one before, when the next but one is asked for. The planes' values at points (x, y) are kept for the
 * sums over kz at the end. */
template <int P, typename C>
__global__ void __launch_bounds__(fixed_inverse<P, C>::THREADS, fixed_inverse<P, C>::BLOCKS) inverse_fixed(const transform a) {
  typedef fixed_inverse<P, C> own;
  typedef complex_of<P, C> V;
  typedef real_of<P, C> real;
  constexpr int L = own::L, N = own::N, PARTS = own::PARTS, THREADS = own::THREADS;
  constexpr bool MEAN_APART = sizeof(V) < sizeof(double2);
  extern __shared__ __align__(16) double shared[];
  V *w = (V *)shared, *lines = w + L, *faces = lines + P * L * N; /* [x][ky][c]; [kz][x][y][c] */
  C *plane = (C *)(faces + P * P * P * N);                            /* [kx][ky][c] */
  const int64_t row = a.first + blockIdx.x / PARTS, pitch = (int64_t)a.columns * a.components * a.slots * 8;
  const int column = blockIdx.y / a.components, component = blockIdx.y % a.components, c = threadIdx.x % N, half = threadIdx.x / 32 % 2, line = (threadIdx.x / 64 * 32 + threadIdx.x % 32) / N;
  const int child = blockIdx.x % PARTS * N + c, box = a.child[row * 8 + child];
  const C *from = (const C *)a.spectrum + ((int64_t)blockIdx.y * a.slots + row) * 8 + child;
  real mean = 0;
  for (int j = threadIdx.x; j < L; j += THREADS) to_complex(make_double2(a.twiddle[2 * j], a.twiddle[2 * j + 1]), w + j);
  for (int kz = a.kz_begin - 1; kz < a.kz_end; kz++) {
    if (kz >= a.kz_begin && line < (kz ? L : P)) { /* line: ky */
      V sum[P], difference[P];
      to_complex(plane[line * N + c], sum);
      if (MEAN_APART && kz == 0) {
        mean = plane[c].x;
        if (line == 0) sum[0].x = 0;
      }
#pragma unroll
      for (int k = 1; k < P; k++) {
        V f, g;
        to_complex(plane[(k * L + line) * N + c], &f), to_complex(plane[((L - k) * L + line) * N + c], &g);
        sum[k] = V{f.x + g.x, f.y + g.y}, difference[k] = V{f.x - g.x, f.y - g.y};
      }
      values_of_line<P>(sum, difference, half, [&](int x, V value) { lines[(x * L + line) * N + c] = value; });
    }
    __syncthreads();
    if (kz + 1 < a.kz_end && box >= 0) /* THREADS is a multiple of N: a thread copies for its own child alone, and what has none is never used */
      for (int i = threadIdx.x; i < L * L * N; i += THREADS)
        if (kz >= 0 || i / N % L < P) __pipeline_memcpy_async(plane + i, from + ((int64_t)(kz + 1 - a.kz_begin) * L * L + i / N) * pitch, sizeof(C));
    if (kz + 2 < a.kz_end && c == 0) /* one child for all, whose values lie side by side */
      for (int i = threadIdx.x; i < L * L * N; i += THREADS) ask_for(from + ((int64_t)(kz + 2 - a.kz_begin) * L * L + i / N) * pitch);
    __pipeline_commit();
    if (kz >= a.kz_begin && line < P) { /* line: x */
      V sum[P], difference[P];
      sum[0] = lines[line * L * N + c];
#pragma unroll
      for (int k = 1; k < P; k++) {
        V f = lines[(line * L + k) * N + c], g = kz ? lines[(line * L + L - k) * N + c] : V{f.x, -f.y};
        sum[k] = V{f.x + g.x, f.y + g.y}, difference[k] = V{f.x - g.x, f.y - g.y};
      }
      values_of_line<P>(sum, difference, half, [&](int y, V value) { faces[((kz * P + line) * P + y) * N + c] = value; });
    }
    __pipeline_wait_prior(0);
    __syncthreads();
  }
  /* Sums over kz, to shared memory where a plane was, if there is room, and from there by whole lines: lanes have different children here. */
  constexpr int SURFACE = 6 * (P - 1) * (P - 1) + 2, PITCH = SURFACE + 1; /* SURFACE is even: children in other banks */
  constexpr bool GATHERS = (PITCH + 1) * sizeof(real) <= L * L * sizeof(C);
  real *whole = (real *)plane, *mean_of = whole + N * PITCH; /* [c][point of the surface]; [c] */
  const bool is_last = a.kz_end == P;
  if (line < P && box >= 0) {
    double *partial = a.partial + ((row * 8 + child) * a.columns * a.components + blockIdx.y) * a.n_surface;
    double *check = a.check + ((int64_t)box * a.columns + column) * a.n + component * a.n_surface, degree = unit_of(a, 1) * a.degree[box];
    constexpr int MIDDLE = (P + 1) / 2;
    for (int y = half * MIDDLE; y < (half ? P : MIDDLE); y++) {
      real sum_of[P]; /* all z */
      const int16_t *surface = a.grid_surface + (line * P + y) * P;
#pragma unroll
      for (int z = 0; z < P; z++) sum_of[z] = a.kz_begin && surface[z] >= 0 ? take_partial<real>(partial[surface[z]], &mean) : 0;
      for (int kz = a.kz_begin; kz < a.kz_end; kz++) {
        real weight = kz ? 2 : 1; /* L is odd: every other frequency stands for its conjugate too */
        V f = faces[((kz * P + line) * P + y) * N + c];
#pragma unroll
        for (int z = 0, j = 0; z < P; z++) {
          sum_of[z] = fma(weight * f.x, w[j].x, fma(-(weight * f.y), w[j].y, sum_of[z]));
          j += kz;
          if (j >= L) j -= L;
        }
      }
#pragma unroll
      for (int z = 0; z < P; z++) {
        if (surface[z] < 0) continue;
        if (!is_last) partial[surface[z]] = partial_of(sum_of[z], mean);
        else if (GATHERS) whole[c * PITCH + surface[z]] = sum_of[z];
        else check[surface[z]] += degree * whole_of(sum_of[z], mean);
      }
    }
    if (GATHERS && line == 0 && half == 0) mean_of[c] = mean;
  }
  if (!GATHERS || !is_last) return;
  __syncthreads();
  const int *boxes = a.child + row * 8 + blockIdx.x % PARTS * N;
  for (int s = threadIdx.x; s < SURFACE; s += THREADS) {
    double before[N];
#pragma unroll
    for (int k = 0; k < N; k++) before[k] = boxes[k] < 0 ? 0 : a.check[((int64_t)boxes[k] * a.columns + column) * a.n + component * SURFACE + s];
#pragma unroll
    for (int k = 0; k < N; k++)
      if (boxes[k] >= 0)
        a.check[((int64_t)boxes[k] * a.columns + column) * a.n + component * SURFACE + s] = before[k] + unit_of(a, 1) * a.degree[boxes[k]] * whole_of(whole[k * PITCH + s], mean_of[k]);
  }
}
}
#endif
