/* Sums from surfaces onto points on the GPU (L2P, W) for the kernel 1/r in double, a lane for itself: device code of kernels/pair/pair_lattice_cuda.cu and kernels/down/down_leaves_cuda.cu.
 * A lane has R points and sums over all of a surface, row by row: a surface is a lattice, so squares along the row are in registers, and along it a pair costs one addition where there were three
 * subtractions and three multiplications. Roots are twice their value (root_cuda.h), and sums halved at the end. */
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

/* A row of the surface along z onto R points: y is its place along that axis, in_plane the squares of the distances from its plane x. */
template <int P, int R>
__device__ __forceinline__ void add_row(const double *row, int y, const double (&in_plane)[R], const double (&from_y)[R], double step, const double (&along)[R][P], double (&sum)[R]) {
  double density[P];
  load<P>(row, density);
#pragma unroll
  for (int r = 0; r < R; r++) {
    double dy = fma(-(double)y, step, from_y[r]), rest = fma(dy, dy, in_plane[r]);
#pragma unroll
    for (int k = 0; k < P; k++) fmm_add_twice(sum[r], density[k], rest + along[r][k]);
  }
}

/* One surface, whose densities are q, onto R points; from[k][r]: point r's distance along axis k from the surface's first plane; step: between planes. */
template <int P, int R>
__device__ __forceinline__ void add_surface(const double *q, const double (&from)[3][R], double step, double (&sum)[R]) {
  constexpr int RING = 4 * P - 4; /* points of an inner plane x: rows y = 0 and y = P - 1, and between them the first and last z of each y */
  double along[R][P], ends[2][R], in_plane[R];
#pragma unroll
  for (int r = 0; r < R; r++) {
#pragma unroll
    for (int k = 0; k < P; k++) along[r][k] = squared(fma(-(double)k, step, from[2][r]));
    ends[0][r] = along[r][0], ends[1][r] = along[r][P - 1];
  }
#pragma unroll 1
  for (int x = 0; x < P; x += P - 1) { /* whole planes */
#pragma unroll
    for (int r = 0; r < R; r++) in_plane[r] = squared(fma(-(double)x, step, from[0][r]));
#pragma unroll
    for (int y = 0; y < P; y++) add_row<P, R>(q + (x ? P * P + (P - 2) * RING : 0) + y * P, y, in_plane, from[1], step, along, sum);
  }
#pragma unroll 1
  for (int x = 1; x < P - 1; x++) {
#pragma unroll
    for (int r = 0; r < R; r++) in_plane[r] = squared(fma(-(double)x, step, from[0][r]));
    const double *ring = q + P * P + (x - 1) * RING;
    add_row<P, R>(ring, 0, in_plane, from[1], step, along, sum);
    add_row<P, R>(ring + 3 * P - 4, P - 1, in_plane, from[1], step, along, sum);
  }
#pragma unroll
  for (int r = 0; r < R; r++)
#pragma unroll
    for (int k = 1; k < P - 1; k++) along[r][k] = squared(fma(-(double)k, step, from[0][r]));
#pragma unroll
  for (int y = 1; y < P - 1; y++) {
    double2 density[P];
#pragma unroll
    for (int k = 1; k < P - 1; k++) density[k] = *(const double2 *)(q + P * P + P + 2 * (y - 1) + (k - 1) * RING);
#pragma unroll
    for (int r = 0; r < R; r++) {
      double dy = squared(fma(-(double)y, step, from[1][r]));
#pragma unroll
      for (int k = 1; k < P - 1; k++) {
        fmm_add_twice(sum[r], density[k].x, dy + ends[0][r] + along[r][k]);
        fmm_add_twice(sum[r], density[k].y, dy + ends[1][r] + along[r][k]);
      }
    }
  }
}
}
#endif
