/* Solid harmonics on the GPU (kernels/harmonics.h says what they are): sums at a lane's points of a box's coefficients, which all lanes read from shared memory, and where products by parity blocks put
 * these; and what is known of degrees and terms when code is compiled: device code of kernels/down/down_leaves_cuda.cu and kernels/up/up_moments_cuda.cu. The loops over degree and order are unrolled, so that the recurrence's steps are constants. */
#ifndef FMM_HARMONICS_CUDA_H
#define FMM_HARMONICS_CUDA_H
#include "kernels/parity_product_cuda.h"
extern "C" {
#include "kernels/harmonics.h"
}

namespace {
constexpr int degree_of(int order) {
  constexpr unsigned char more[FMM_MAX_ORDER + 1] = FMM_HARMONIC_DEGREES_MORE;
  return 2 * (order - 1) + more[order];
}
constexpr int pairs_of(int degree) { return (degree + 1) * (degree + 2) / 2; }
constexpr double step_of(int l, int m) { return ((l - 1.) * (l - 1) - m * m) / ((2. * l - 1) * (2. * l - 3)); }

/* Values from one box's coefficients to the next's in shared memory: cosine and sine of each pair of degree and order. */
constexpr int coefficients_of(int degree) { return 2 * pairs_of(degree); }

template <typename F> struct cosine_sine;
template <> struct cosine_sine<double> { typedef double2 type; };
template <> struct cosine_sine<float> { typedef float2 type; };

/* Points of one box that a lane has, all of whom a coefficient serves that it reads. With derivatives two would take more registers than there are. */
constexpr int points_of_lane(int gradient) { return gradient ? 1 : 2; }

/* The sums at N points of a box, in units of the box's side from its middle. at: x, y and z of all of them. */
template <int L, int N, typename F>
__device__ __forceinline__ void sums_of_harmonics(const F *coefficients, const F (&at)[3][N], F (&sum)[N]) {
  const typename cosine_sine<F>::type *of = (const typename cosine_sine<F>::type *)coefficients;
  const F(&x)[N] = at[0], (&y)[N] = at[1], (&z)[N] = at[2];
  F r2[N], c[N], s[N];
#pragma unroll
  for (int i = 0; i < N; i++) r2[i] = x[i] * x[i] + y[i] * y[i] + z[i] * z[i], c[i] = 1, s[i] = 0, sum[i] = 0;
#pragma unroll
  for (int m = 0; m <= L; m++) {
    F q[N], before[N], cosines[N], sines[N];
#pragma unroll
    for (int i = 0; i < N; i++) q[i] = 1, before[i] = 0, cosines[i] = 0, sines[i] = 0;
#pragma unroll
    for (int l = m; l <= L; l++) {
      const typename cosine_sine<F>::type a = *of++;
#pragma unroll
      for (int i = 0; i < N; i++) {
        cosines[i] += q[i] * a.x;
        if (m) sines[i] += q[i] * a.y;
        const F next = l == m ? z[i] : z[i] * q[i] - (F)step_of(l + 1, m) * r2[i] * before[i];
        before[i] = q[i], q[i] = next;
      }
    }
#pragma unroll
    for (int i = 0; i < N; i++) {
      sum[i] += c[i] * cosines[i];
      if (m) sum[i] += s[i] * sines[i];
      const F next = m ? x[i] * c[i] - y[i] * s[i] : x[i];
      s[i] = m ? x[i] * s[i] + y[i] * c[i] : y[i], c[i] = next;
    }
    asm volatile("" ::: "memory"); /* loads of later orders would take registers */
  }
}

constexpr int place_of_pair(int degree, int l, int m) { return m * (degree + 1) - m * (m - 1) / 2 + l - m; } /* fmm_harmonic_pair */

/* The same in float, and its derivatives along x, y and z, from coefficients over the harmonics' units (harmonics.c): then derivatives of harmonics are harmonics, or halves of them, and one table serves all four sums.
 * (In double the recurrence's constants take more registers than there are.)
 *   R_lm = unit_lm H_lm,   (l-m)(l+m) R_lm = (2l-1) z R_(l-1)m - r^2 R_(l-2)m,   d/dz R_lm = R_(l-1)m,   (d/dx -+ i d/dy) R_lm = +- R_(l-1)(m-+1). */
template <int L>
__device__ __forceinline__ void gradient_of_harmonics(const float *coefficients, float x, float y, float z, float (&value)[4]) {
  typedef float F;
  typedef float2 both;
  const both *of = (const both *)coefficients;
  const F r2 = x * x + y * y + z * z;
  F c = 1, s = 0;
  double first = 1; /* of an order's, which compilers know */
#pragma unroll
  for (int v = 0; v < 4; v++) value[v] = 0;
#pragma unroll
  for (int m = 0; m <= L; m++) {
    if (m) first *= 0.5 / m;
    F q = (F)first, before = 0, cosines[4] = {}, sines[4] = {}; /* of order m; of the next degree's order m, m + 1 and m - 1 */
#pragma unroll
    for (int l = m; l <= L; l++) {
      const both a = of[place_of_pair(L, l, m)];
      cosines[0] += q * a.x;
      if (m) sines[0] += q * a.y;
      if (l == L) continue;
      const both same = of[place_of_pair(L, l + 1, m)], above = of[place_of_pair(L, l + 1, m + 1)];
      cosines[1] += q * same.x, cosines[2] += q * above.x, sines[2] += q * above.y;
      if (m) {
        const both below = of[place_of_pair(L, l + 1, m - 1)];
        sines[1] += q * same.y, cosines[3] += q * below.x;
        if (m > 1) sines[3] += q * below.y;
      }
      const F next = (F)((2. * l + 1) / ((l + 1. - m) * (l + 1. + m))) * (z * q) - (F)(1 / ((l + 1. - m) * (l + 1. + m))) * (r2 * before);
      before = q, q = next;
    }
    const F half = (F)0.5, twice = m == 1 ? cosines[3] : half * cosines[3]; /* order 0 has all of what the others share with their conjugates */
    value[0] += c * cosines[0], value[1] += c * (half * cosines[2] - twice), value[2] += c * (half * (sines[2] + sines[3])), value[3] += c * cosines[1];
    if (m) value[0] += s * sines[0], value[1] += s * (half * (sines[2] - sines[3])), value[2] -= s * (half * cosines[2] + twice), value[3] += s * sines[1];
    const F next = m ? x * c - y * s : x;
    s = m ? x * s + y * c : y, c = next;
    asm volatile("" ::: "memory"); /* loads of later orders would take registers */
  }
}

/* How many terms a parity block has, and rows of the longest in tiles of eight. */
constexpr int terms_of_block(int degree, int chi) {
  int n = 0;
  for (int m = 0; m <= degree; m++)
    for (int l = m; l <= degree; l++)
      for (int sine = 0; sine <= (m > 0); sine++) n += (((m + sine) & 1) | sine << 1 | ((l + m) & 1) << 2) == chi;
  return n;
}
constexpr int term_tiles_of(int degree) {
  int most = 0;
  for (int chi = 0; chi < FMM_MIRRORS; chi++) most = terms_of_block(degree, chi) > most ? terms_of_block(degree, chi) : most;
  return (most + 7) / 8;
}

/* Sixteen boxes' coefficients of block chi, a warp's, from its regrouped values; moments: the eight blocks' matrices; slots: of each row of each block the place in a box's coefficients, -1: none. */
template <int L, int K>
__device__ __forceinline__ void to_harmonics(const double *x, const double *moments, const int16_t *slots, double *coefficients) {
  constexpr int TILES = term_tiles_of(L), PITCH = coefficients_of(L);
  const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3, chi = threadIdx.x >> 5;
  double sum[TILES][4] = {};
  constexpr int ORDER = L == degree_of(5) ? 5 : L == degree_of(7) ? 7 : 0; /* whose blocks of as many odd axes have as many terms: 21, 15, 15 and 10; 45, 36, 36 and 28 */
  by_axes<ORDER>(chi, [&](auto axes) {
    multiply<ORDER ? (terms_of_block(L, (1 << axes.value) - 1) + 7) / 8 : TILES, 1, K>(sum, x + chi * K, pitch_of(K), moments + chi * TILES * 8 * K, 0, ORDER == 0 || chi == 0);
  });
#pragma unroll
  for (int i = 0; i < TILES; i++) {
    const short2 slot = __ldg((const short2 *)(slots + (chi * TILES + i) * 8 + 2 * t));
    double *low = coefficients + g * PITCH, *high = low + 8 * PITCH;
    if (slot.x >= 0) low[slot.x] = sum[i][0], high[slot.x] = sum[i][2];
    if (slot.y >= 0) low[slot.y] = sum[i][1], high[slot.y] = sum[i][3];
  }
}
}
#endif
