/* V's transforms on the GPU (vlist_transform_cuda.h) compiled for an order P, 3 to 12: lines in registers, frequencies k and -k made together, all planes kz of a slab one after another. */
#ifndef FMM_VLIST_FIXED_CUDA_H
#define FMM_VLIST_FIXED_CUDA_H
#include <cuda_pipeline.h>
#include <type_traits>

#include "kernels/vlist/vlist_transform_cuda.h"
#include "kernels/vlist/vlist_turns_cuda.h"

namespace {
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
  static constexpr int PAD = P % 2 ? 0 : N, PLANE = P * P * N + PAD; /* points of a plane x: those that lanes of other lines read at once lie in other banks */
  static constexpr size_t BYTES = fixed<P, C>::COMPLEX * (L + 2 * P * L * N) + fixed<P, C>::REAL * P * PLANE;
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
  real *in = (real *)(all_lines + 2 * P * L * N);    /* planes x: [y][z][c], zero inside */
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
    in[i + i / (P * P * N) * own::PAD] = (real)v, sum += v, magnitudes += fabsf((float)v);
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
          real q = in[line * own::PLANE + (y * P + z) * N + c];
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
