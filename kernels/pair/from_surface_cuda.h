/* Sums from surfaces onto points on the GPU (L2P, W) for the kernel 1/r in double, a lane for itself: device code of kernels/pair/pair_lattice_cuda.cu and kernels/down/down_leaves_cuda.cu.
 * A lane has R points and sums over all of a surface, row by row: a surface is a lattice, so squares along the row are in registers, and along it a pair costs one addition where there were three
 * subtractions and three multiplications. With gradients (G nonzero) distances along the row are in registers too; across it all pairs of a row have the same, so that these derivatives are made once a row.
 * Roots are twice their value (root_cuda.h), and sums brought to their own by scaled_sum at the end. */
#ifndef FMM_FROM_SURFACE_CUDA_H
#define FMM_FROM_SURFACE_CUDA_H
#include "kernels/pair/root_cuda.h"

namespace {
/* Values [0, N) from an address that is aligned for pairs where N is even. */
template <int N>
__device__ __forceinline__ void load(const double *from, double (&to)[N]) {
#pragma unroll
  for (int i = 0; i < N / 2 * 2; i += 2) {
    double2 v = N % 2 ? make_double2(from[i], from[i + 1]) : *(const double2 *)(from + i);
    to[i] = v.x, to[i + 1] = v.y;
  }
  if (N % 2) to[N - 1] = from[N - 1];
}
__device__ __forceinline__ double squared(double x) { return x * x; }

/* A point's potential and, with gradients, the derivatives along x, y, z, in multiples of their value. */
constexpr int values_of_point(int gradient) { return gradient ? 4 : 1; }
__device__ __forceinline__ double scaled_sum(double sum, int value) { return (value ? -0.125 : 0.5) * sum; }

/* Of the pairs of a row of the surface: density times cubed root, and that times the distance along the row. */
struct row_sums { double cubes, along; };

/* One pair: potential and the row's sums; along: the distance along the row. */
template <int G>
__device__ __forceinline__ void add_pair(double &potential, row_sums &row, double density, double r2, double along) {
  if (!G) return fmm_add_twice(potential, density, r2);
  const double root = fmm_rsqrt_newton_twice(r2, fmm_rsqrt_seed(r2)), one = density * root, cube = one * (root * root);
  potential += one, row.cubes += cube, row.along = fma(cube, along, row.along);
}

/* A row's part in the derivatives. */
template <int G, int AXIS>
__device__ __forceinline__ void add_derivatives(double (&sum)[values_of_point(G)], const row_sums &row, double first, double second) {
  if constexpr (G) {
    constexpr int ONE = AXIS == 0 ? 1 : 0, OTHER = AXIS == 2 ? 1 : 2; /* the axes across it, whose distances are these */
    sum[1 + AXIS] += row.along;
    sum[1 + ONE] = fma(row.cubes, first, sum[1 + ONE]), sum[1 + OTHER] = fma(row.cubes, second, sum[1 + OTHER]);
  }
}

/* Distances of R points from the planes of an axis, and their squares. */
template <int P, int R>
struct planes { double square[R][P], distance[R][P]; };
template <int P, int R>
__device__ __forceinline__ planes<P, R> planes_of(const double (&from)[R], double step) {
  planes<P, R> a;
#pragma unroll
  for (int r = 0; r < R; r++)
#pragma unroll
    for (int k = 0; k < P; k++) a.distance[r][k] = fma(-(double)k, step, from[r]), a.square[r][k] = squared(a.distance[r][k]);
  return a;
}

/* A row of the surface along z onto R points: y is its place along that axis, from_x the distances from its plane x. */
template <int G, int P, int R>
__device__ __forceinline__ void add_row(const double *row, int y, const double (&from_x)[R], const double (&from_y)[R], double step, const planes<P, R> &z, double (&sum)[R][values_of_point(G)]) {
  double density[P];
  load<P>(row, density);
#pragma unroll
  for (int r = 0; r < R; r++) {
    const double dy = fma(-(double)y, step, from_y[r]), rest = fma(dy, dy, squared(from_x[r]));
    row_sums all = {};
#pragma unroll
    for (int k = 0; k < P; k++) add_pair<G>(sum[r][0], all, density[k], rest + z.square[r][k], z.distance[r][k]);
    add_derivatives<G, 2>(sum[r], all, from_x[r], dy);
  }
}

/* One surface, whose densities are q, onto R points; from[k][r]: point r's distance along axis k from the surface's first plane; step: between planes. */
template <int G, int P, int R>
__device__ __forceinline__ void add_surface(const double *q, const double (&from)[3][R], double step, double (&sum)[R][values_of_point(G)]) {
  constexpr int RING = 4 * P - 4; /* points of an inner plane x: rows y = 0 and y = P - 1, and between them the first and last z of each y */
  double from_x[R], ends[2][R];
  {
    const planes<P, R> z = planes_of<P, R>(from[2], step);
#pragma unroll 1
    for (int x = 0; x < P; x += P - 1) { /* whole planes */
#pragma unroll
      for (int r = 0; r < R; r++) from_x[r] = fma(-(double)x, step, from[0][r]);
#pragma unroll
      for (int y = 0; y < P; y++) add_row<G, P, R>(q + (x ? P * P + (P - 2) * RING : 0) + y * P, y, from_x, from[1], step, z, sum);
    }
#pragma unroll 1
    for (int x = 1; x < P - 1; x++) {
#pragma unroll
      for (int r = 0; r < R; r++) from_x[r] = fma(-(double)x, step, from[0][r]);
      const double *ring = q + P * P + (x - 1) * RING;
      add_row<G, P, R>(ring, 0, from_x, from[1], step, z, sum);
      add_row<G, P, R>(ring + 3 * P - 4, P - 1, from_x, from[1], step, z, sum);
    }
  }
  const planes<P, R> x = planes_of<P, R>(from[0], step);
#pragma unroll
  for (int r = 0; r < R; r++) ends[0][r] = from[2][r], ends[1][r] = fma(-(double)(P - 1), step, from[2][r]);
#pragma unroll
  for (int y = 1; y < P - 1; y++) { /* rows along x, of the first and the last z */
    double2 density[P];
#pragma unroll
    for (int k = 1; k < P - 1; k++) density[k] = *(const double2 *)(q + P * P + P + 2 * (y - 1) + (k - 1) * RING);
#pragma unroll
    for (int r = 0; r < R; r++) {
      const double dy = fma(-(double)y, step, from[1][r]), first = fma(ends[0][r], ends[0][r], squared(dy)), last = fma(ends[1][r], ends[1][r], squared(dy));
      row_sums all[2] = {};
#pragma unroll
      for (int k = 1; k < P - 1; k++) {
        add_pair<G>(sum[r][0], all[0], density[k].x, first + x.square[r][k], x.distance[r][k]);
        add_pair<G>(sum[r][0], all[1], density[k].y, last + x.square[r][k], x.distance[r][k]);
      }
      add_derivatives<G, 0>(sum[r], all[0], dy, ends[0][r]);
      add_derivatives<G, 0>(sum[r], all[1], dy, ends[1][r]);
    }
  }
}
}
#endif
