/* The surface of order p: the p^3 lattice points of the cube [-1,1]^3 that lie on its boundary, 6(p-1)^2+2 of them, x slowest, z fastest.
 * It is unchanged when an axis is mirrored. An orbit is one point with its images under the eight combinations of mirrors: sums over an
 * orbit with signs (a Walsh-Hadamard transform of eight values) split functions on the surface into eight kinds, even or odd along each
 * axis, and every operator that commutes with the mirrors into eight blocks (Serre, Linear Representations of Finite Groups, 2.6). */
#ifndef FMM_SURFACE_H
#define FMM_SURFACE_H
#include "kernels/pair/pair_info.h"
#include "runtime/memory.h"

enum { FMM_MIN_ORDER = 2, FMM_MAX_ORDER = 20, FMM_MIRRORS = 8 };
enum { FMM_MOST_SURFACE_POINTS = 6 * (FMM_MAX_ORDER - 1) * (FMM_MAX_ORDER - 1) + 2 };

/* Points in one line of the lattice. Its planes are numbered axis * order + k: 3 * order of them hold all points. What is a sum over the axes (a
 * squared distance above all) is then one value of a row plus one of a plane. */
typedef struct fmm_surface_row {
  int32_t fixed[2];      /* the two planes that all points of the row lie in; the first of axis x */
  int32_t axis, along;   /* the third axis, y or z: the points lie in its planes along, along + 1, ... */
  int32_t n;
  int32_t first, stride; /* numbers of the row's points: first + k * stride */
} fmm_surface_row;

typedef struct fmm_surface {
  int order, n_points, n_orbits, n_rows;
  double *xyz;      /* n_points x 3, on [-1,1]^3 */
  int32_t *lattice; /* n_points x 3, 0 .. p-1 */
  int32_t *orbit;   /* n_orbits x 8: point that mirror g (bit a: axis a mirrored) makes of the orbit's first; repeats on mirror planes */
  fmm_surface_row *row; /* n_rows, every point in one of them; rows of smaller x first */
} fmm_surface;

/* Where plane k of an axis lies on [-1,1]. */
static inline double fmm_surface_plane(int order, int k) { return (double)(2 * k - (order - 1)) / (order - 1); }

fmm_status fmm_surface_create(fmm_surface *surface, int order);
void fmm_surface_free(fmm_surface *surface);

/* Unknowns (component * n_points + point) regrouped by parity. n_blocks is 8, or 1 when the pair has no parity (then the identity).
 * Block chi holds what is odd along the axes of its bits. slot[(component * n_orbits + orbit) * 8 + chi] is the place of the orbit's sum with
 * signs of block chi in the regrouped vector, or -1 where mirror planes make it zero. */
typedef struct fmm_parity_map {
  int n, n_components, n_blocks;
  int begin[FMM_MIRRORS + 1]; /* block chi: places begin[chi] .. begin[chi+1]) */
  int32_t *slot;              /* NULL when n_blocks is 1 */
  double *weight;             /* n: square root of the orbit's number of distinct points; 1 when n_blocks is 1 */
} fmm_parity_map;

fmm_status fmm_parity_map_create(fmm_parity_map *map, const fmm_surface *surface, fmm_parity parity, int n_components);
void fmm_parity_map_free(fmm_parity_map *map);

/* Sign of block chi under mirror g. */
static inline int fmm_mirror_sign(int chi, int g) { return __builtin_popcount((unsigned)(chi & g)) & 1 ? -1 : 1; }
/* What an orbit's plain values of one component must be even or odd in, for block chi. */
static inline int fmm_component_parity(fmm_parity parity, int chi, int component) { return parity == FMM_PARITY_VECTOR ? chi ^ (1 << component) : chi; }
#endif
