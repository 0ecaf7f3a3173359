/* V's transforms on the GPU: equivalent densities of a parent's eight children to spectra, and back to check potentials. A block takes the children of a
 * parent (or a few of them). Plain sums along one axis after the other, since the input is zero but on p of L = 2p - 1 points an axis and the output is
 * needed on p only: fewer operations than a fast transform of so few points would save. Two kinds: for any order, and compiled for one with
 * lines in registers and frequencies k and -k made together. In the plane kz = 0 a frequency (kx, ky) and (-kx, -ky) are conjugates, so that only ky < p are
 * multiplied and transformed back. Layouts in vlist_cuda.cu; spectra are kept as C, double2 or float2 (re, im), and all
 * arithmetic is double. */
#ifndef FMM_VLIST_TRANSFORM_CUDA_H
#define FMM_VLIST_TRANSFORM_CUDA_H
#include <cuda_pipeline.h>

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
  int64_t slots;                            /* pitch of the spectrum in slots or rows */
  int64_t first;                            /* first slot or row handled */
  int order, n_surface, n, columns, components, kz_begin, kz_end, children;
};

__device__ __forceinline__ double unit_of(const transform &a, int inverse) { return a.unit ? a.unit[inverse] : 1; }

__device__ __forceinline__ double2 widen(double2 v) { return v; }
__device__ __forceinline__ double2 widen(float2 v) { return make_double2(v.x, v.y); }
/* Spectra are read when all of them are written, which are more than the caches hold: the first to leave them. */
__device__ __forceinline__ void keep(double2 *to, double2 v) { __stcs(to, v); }
__device__ __forceinline__ void keep(float2 *to, double2 v) { __stcs(to, make_float2((float)v.x, (float)v.y)); }

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
    keep(out + (int64_t)(kx * L + ky) * pitch + c, sum);
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

/* Threads: two for each line of the widest step, each making half of the line's results. */
template <int P, typename C>
struct fixed {
  static constexpr int L = 2 * P - 1, HALF = (P + 1) / 2;
  static constexpr int threads(int children) { return (2 * L * children + 31) / 32 * 32; }
  /* Not fewer children than share a sector. */
  static constexpr int whole_sectors(int children) { return children * (int)sizeof(C) < 32 ? 32 / (int)sizeof(C) : children; }
};
/* N: children of a parent that a block takes, fewer at high orders, so that several blocks fit a multiprocessor: as measured on an H200. */
template <int P, typename C>
struct fixed_forward : fixed<P, C> {
  using fixed<P, C>::L;
  static constexpr int N = fixed<P, C>::whole_sectors(P <= 8 ? 8 : 4), PARTS = 8 / N, THREADS = fixed<P, C>::threads(N);
  static constexpr size_t BYTES = 16 * (L + 2 * P * L * N) + 8 * P * P * P * N;
};
template <int P, typename C>
struct fixed_inverse : fixed<P, C> {
  using fixed<P, C>::L;
  static constexpr int N = fixed<P, C>::whole_sectors(P <= 8 ? 8 : P <= 10 ? 4 : 2), PARTS = 8 / N, THREADS = fixed<P, C>::threads(N);
  static constexpr size_t BYTES = 16 * (L + P * L * N + P * P * P * N) + sizeof(C) * L * L * N;
  static constexpr int BLOCKS = P <= 6 ? 4 : P <= 8 ? 2 : (int)(227 * 1024 / (BYTES + 1024)); /* on a multiprocessor: as many as its memory holds, but where registers would not do */
};

/* Sums of v[i] cos and v[i] sin of 2 pi i k / L: frequency k is (c.x + s.y, c.y - s.x), frequency -k (c.x - s.y, c.y + s.x). */
template <int P>
__device__ __forceinline__ void transform_pair(const double2 (&v)[P], int k, const double2 *w, double2 &c, double2 &s) {
  c = v[0], s = make_double2(0, 0);
#pragma unroll
  for (int i = 1, j = k; i < P; i++) {
    c.x = fma(v[i].x, w[j].x, c.x), c.y = fma(v[i].y, w[j].x, c.y);
    s.x = fma(v[i].x, w[j].y, s.x), s.y = fma(v[i].y, w[j].y, s.y);
    j += k;
    if (j >= 2 * P - 1) j -= 2 * P - 1;
  }
}

/* Value at point x of a line given by sum[k] = F_k + F_-k and difference[k] = F_k - F_-k (sum[0] = F_0). */
template <int P>
__device__ __forceinline__ double2 value_at(const double2 (&sum)[P], const double2 (&difference)[P], int x, const double2 *w) {
  double2 f = sum[0];
#pragma unroll
  for (int k = 1, j = x; k < P; k++) {
    f.x = fma(sum[k].x, w[j].x, fma(-difference[k].y, w[j].y, f.x));
    f.y = fma(sum[k].y, w[j].x, fma(difference[k].x, w[j].y, f.y));
    j += x;
    if (j >= 2 * P - 1) j -= 2 * P - 1;
  }
  return f;
}

template <int P, typename C>
__global__ void __launch_bounds__(fixed_forward<P, C>::THREADS) forward_fixed(const transform a) {
  typedef fixed_forward<P, C> own;
  constexpr int L = own::L, HALF = own::HALF, N = own::N, PARTS = own::PARTS, THREADS = own::THREADS;
  extern __shared__ __align__(16) double shared[];
  double2 *w = (double2 *)shared, *all_lines = w + L; /* two of [x][ky][c], used in turn */
  double *in = (double *)(all_lines + 2 * P * L * N);    /* [x][y][z][c], zero inside */
  const int64_t slot = a.first + blockIdx.x / PARTS, pitch = (int64_t)a.columns * a.components * a.slots * 8;
  const int column = blockIdx.y / a.components, component = blockIdx.y % a.components, c = threadIdx.x % N, half = threadIdx.x / N % 2, line = threadIdx.x / (2 * N);
  const int child = blockIdx.x % PARTS * N + c, box = a.child[slot * 8 + child];
  const bool writes = in_use<C>(existing_children<N>(box), c);
  for (int j = threadIdx.x; j < L; j += THREADS) w[j] = make_double2(a.twiddle[2 * j], a.twiddle[2 * j + 1]);
  const double unit = unit_of(a, 0);
  for (int i = threadIdx.x; i < P * P * P * N; i += THREADS) { /* i % N is c: THREADS is a multiple of N */
    int s = a.grid_surface[i / N];
    in[i] = box >= 0 && s >= 0 ? unit * a.equivalent[((int64_t)box * a.columns + column) * a.n + component * a.n_surface + s] : 0;
  }
  __syncthreads();
  for (int kz = a.kz_begin; kz < a.kz_end; kz++) {
    double2 *lines = all_lines + (kz & 1) * P * L * N;
    if (line < P) { /* line: x */
      double2 v[P];
#pragma unroll
      for (int y = 0; y < P; y++) {
        v[y] = make_double2(0, 0);
#pragma unroll
        for (int z = 0, j = 0; z < P; z++) {
          double q = in[((line * P + y) * P + z) * N + c];
          v[y].x = fma(q, w[j].x, v[y].x), v[y].y = fma(-q, w[j].y, v[y].y);
          j += kz;
          if (j >= L) j -= L;
        }
      }
      for (int k = half * HALF; k < (half ? P : HALF); k++) {
        double2 cs, sn;
        transform_pair<P>(v, k, w, cs, sn);
        lines[(line * L + k) * N + c] = make_double2(cs.x + sn.y, cs.y - sn.x);
        if (k) lines[(line * L + L - k) * N + c] = make_double2(cs.x - sn.y, cs.y + sn.x);
      }
    }
    __syncthreads();
    if (line < (kz ? L : P) && writes) { /* line: ky */
      double2 v[P];
      C *out = (C *)a.spectrum + (int64_t)(kz - a.kz_begin) * L * L * pitch + ((int64_t)blockIdx.y * a.slots + slot) * 8 + child;
#pragma unroll
      for (int x = 0; x < P; x++) v[x] = lines[(x * L + line) * N + c];
      for (int k = half * HALF; k < (half ? P : HALF); k++) {
        double2 cs, sn;
        transform_pair<P>(v, k, w, cs, sn);
        keep(out + (int64_t)(k * L + line) * pitch, make_double2(cs.x + sn.y, cs.y - sn.x));
        if (k) keep(out + (int64_t)((L - k) * L + line) * pitch, make_double2(cs.x - sn.y, cs.y + sn.x));
      }
    }
  }
}

/* A plane kz comes to shared memory by asynchronous copies during the last step of the one before. The planes' values at points (x, y) are kept for the
 * sums over kz at the end. */
template <int P, typename C>
__global__ void __launch_bounds__(fixed_inverse<P, C>::THREADS, fixed_inverse<P, C>::BLOCKS) inverse_fixed(const transform a) {
  typedef fixed_inverse<P, C> own;
  constexpr int L = own::L, HALF = own::HALF, N = own::N, PARTS = own::PARTS, THREADS = own::THREADS;
  extern __shared__ __align__(16) double shared[];
  double2 *w = (double2 *)shared, *lines = w + L, *faces = lines + P * L * N; /* [x][ky][c]; [kz][x][y][c] */
  C *plane = (C *)(faces + P * P * P * N);                                       /* [kx][ky][c] */
  const int64_t row = a.first + blockIdx.x / PARTS, pitch = (int64_t)a.columns * a.components * a.slots * 8;
  const int column = blockIdx.y / a.components, component = blockIdx.y % a.components, c = threadIdx.x % N, half = threadIdx.x / N % 2, line = threadIdx.x / (2 * N);
  const int child = blockIdx.x % PARTS * N + c, box = a.child[row * 8 + child];
  const C *from = (const C *)a.spectrum + ((int64_t)blockIdx.y * a.slots + row) * 8 + child;
  for (int j = threadIdx.x; j < L; j += THREADS) w[j] = make_double2(a.twiddle[2 * j], a.twiddle[2 * j + 1]);
  for (int kz = a.kz_begin - 1; kz < a.kz_end; kz++) {
    if (kz >= a.kz_begin && line < (kz ? L : P)) { /* line: ky */
      double2 sum[P], difference[P];
      sum[0] = widen(plane[line * N + c]);
#pragma unroll
      for (int k = 1; k < P; k++) {
        double2 f = widen(plane[(k * L + line) * N + c]), g = widen(plane[((L - k) * L + line) * N + c]);
        sum[k] = make_double2(f.x + g.x, f.y + g.y), difference[k] = make_double2(f.x - g.x, f.y - g.y);
      }
      for (int x = half * HALF; x < (half ? P : HALF); x++) lines[(x * L + line) * N + c] = value_at<P>(sum, difference, x, w);
    }
    __syncthreads();
    if (kz + 1 < a.kz_end && box >= 0) /* THREADS is a multiple of N: a thread copies for its own child alone, and what has none is never used */
      for (int i = threadIdx.x; i < L * L * N; i += THREADS)
        if (kz >= 0 || i / N % L < P) __pipeline_memcpy_async(plane + i, from + ((int64_t)(kz + 1 - a.kz_begin) * L * L + i / N) * pitch, sizeof(C));
    __pipeline_commit();
    if (kz >= a.kz_begin && line < P) { /* line: x */
      double2 sum[P], difference[P];
      sum[0] = lines[line * L * N + c];
#pragma unroll
      for (int k = 1; k < P; k++) {
        double2 f = lines[(line * L + k) * N + c], g = kz ? lines[(line * L + L - k) * N + c] : make_double2(f.x, -f.y);
        sum[k] = make_double2(f.x + g.x, f.y + g.y), difference[k] = make_double2(f.x - g.x, f.y - g.y);
      }
      for (int y = half * HALF; y < (half ? P : HALF); y++) faces[((kz * P + line) * P + y) * N + c] = value_at<P>(sum, difference, y, w);
    }
    __pipeline_wait_prior(0);
    __syncthreads();
  }
  if (line >= P || box < 0) return;
  double *partial = a.partial + ((row * 8 + child) * a.columns * a.components + blockIdx.y) * a.n_surface;
  double *check = a.check + ((int64_t)box * a.columns + column) * a.n + component * a.n_surface, degree = unit_of(a, 1) * a.degree[box];
  for (int y = half * HALF; y < (half ? P : HALF); y++) {
    double sum_of[P]; /* all z */
    const int16_t *surface = a.grid_surface + (line * P + y) * P;
#pragma unroll
    for (int z = 0; z < P; z++) sum_of[z] = a.kz_begin && surface[z] >= 0 ? partial[surface[z]] : 0;
    for (int kz = a.kz_begin; kz < a.kz_end; kz++) {
      double weight = kz ? 2 : 1; /* L is odd: every other frequency stands for its conjugate too */
      double2 f = faces[((kz * P + line) * P + y) * N + c];
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
      if (a.kz_end < P) partial[surface[z]] = sum_of[z];
      else check[surface[z]] += degree * sum_of[z];
    }
  }
}
}
#endif
