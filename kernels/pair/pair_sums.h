/* Pair sums on the CPU: f(x_i) += sum_j K(x_i, y_j) s(y_j) between one set of targets and several contiguous ranges of sources.
 * The engine behind the phases ulist, wlist and xlist and behind the P2M and L2P of up and down. Points are planes (x[], y[], z[]) in the
 * tree's scaled coordinates; values are planes with strides, so that sorted points, surfaces and [box][column][n] arrays are all read in
 * place. The instruction set is picked inside; nothing is allocated; one call is one thread's work, and its bits depend on nothing but
 * its arguments and the instruction set. Coordinates are at most 1e18 in size (squares must not overflow a float). */
#ifndef FMM_PAIR_SUMS_H
#define FMM_PAIR_SUMS_H
#include "kernels/pair/pair.h"
#include "kernels/surface.h"

/* How exact a pair is; fmm_pair_sum_prepare picks from the phase's precision and tolerance. */
typedef enum fmm_pair_accuracy {
  FMM_PAIR_FULL,    /* double, reciprocal square root to about 1e-16 */
  FMM_PAIR_NEAR,    /* double, two terms of the root's series: at most 1.3e-10 (AVX2), 6e-13 (AVX-512); tolerances from 1e-9 */
  FMM_PAIR_REDUCED, /* double, one Newton step: relative error of the root at most 2e-7 (AVX2), 6e-9 (AVX-512); tolerances from 1e-6, of homogeneous pairs from 1e-7 with AVX-512 */
  FMM_PAIR_SINGLE,  /* float products, integer coordinates, double sums; pieces that are too tight for it go to double */
  FMM_PAIR_COARSE,  /* float coordinates, root to 6e-5 (AVX-512) or as SINGLE; tolerances from 3e-4, where allowed */
  FMM_N_PAIR_ACCURACIES
} fmm_pair_accuracy;

/* What is summed. Made once a phase by fmm_pair_sum_prepare; read only afterwards, by any number of threads. */
typedef struct fmm_pair_sum {
  const fmm_pair *pair;
  const double *params; /* in scaled units; not copied */
  int n_columns, gradient;
  double tolerance;     /* single: a block whose rounding may exceed it goes to double */
  const struct fmm_pair_kernels *kernels;        /* double, of this instruction set; NULL: the plain C reference */
  const struct fmm_pair_kernels *single_kernels; /* NULL: all in double */
  fmm_pair_accuracy accuracy;                    /* of the pieces that stay in single, or of all */
  int by_products;      /* both directions by products of densities (pair_sums_products.c) */
  const struct fmm_pair_lattice_kernels *lattice_kernels; /* of the same precision; NULL: the pair has none */
} fmm_pair_sum;

/* n sources with their densities: component k, column c, point j is density[k*component_stride + c*column_stride + j]. */
typedef struct fmm_pair_sources {
  int64_t n;
  const double *x, *y, *z;
  const double *normal[3]; /* only of pairs that take normals, else NULL */
  const double *density;
  int64_t component_stride, column_stride;
  int may_coincide;        /* nonzero: a source may lie exactly on a target (a leaf with itself); such a pair contributes nothing */
} fmm_pair_sources;

/* n targets and where their sums are added: value v = output*(gradient ? 4 : 1) + k, column c, point i is
 * value[v*value_stride + c*column_stride + i]. */
typedef struct fmm_pair_targets {
  int64_t n;
  const double *x, *y, *z;
  double *value;
  int64_t value_stride, column_stride;
} fmm_pair_targets;

/* Fills *sum; the accuracy comes from the phase's precision and the plan's tolerance. */
void fmm_pair_sum_prepare(fmm_pair_sum *sum, const fmm_pair *pair, const double *params, int n_columns, int gradient, fmm_precision precision,
                          double tolerance);

/* Single precision may become coarse where the tolerance lets it. For sums of points onto points only: check potentials and equivalent
 * densities are related by badly conditioned inverses, which noise of 1e-4 should not meet. */
void fmm_pair_sum_allow_coarse(fmm_pair_sum *sum);

/* Adds the sums over n_ranges source ranges to the targets' values, in the order given. Ranges may be empty. */
void fmm_pair_sum_add(const fmm_pair_sum *sum, const fmm_pair_targets *targets, int64_t n_ranges, const fmm_pair_sources *ranges);

/* Sums in both directions: two sets of points, each the other's sources. K(x, y) = K(y, x)^T lets one root serve two interactions. Only where
 * fmm_pair_sum_can_add_both: symmetric pairs without normals, one column. What single precision alone wants is marked (single). */
typedef struct fmm_pair_points {
  int64_t n;
  const double *x, *y, *z;
  const double *density;   /* component k, point j: density[k*component_stride + j] */
  int64_t component_stride;
  double bounds[3][2];     /* (where fmm_pair_sum_wants_bounds) lowest and highest coordinates */
  int exponent;            /* (single) the longest half-extent is below 2^exponent (pair_block.h) */
  double density_factor;   /* (where fmm_pair_sum_wants_weights) the power of two that takes densities to at most 2^40; of zeros the largest there is */
  double least_density;    /* (the same) the smallest magnitude of a density */
} fmm_pair_points;
int fmm_pair_sum_wants_bounds(const fmm_pair_sum *sum);
int fmm_pair_sum_wants_weights(const fmm_pair_sum *sum);
void fmm_pair_points_bound(fmm_pair_points *points);                          /* fills in bounds, exponent */
void fmm_pair_points_weigh(const fmm_pair_sum *sum, fmm_pair_points *points); /* fills in density_factor, least_density */

/* (single) Sets of points as floats and integers, each converted once and then summed with many others. A set's coordinates are quanta from its own middle, 2^30 of
 * which are 2^exponent; its densities come times density_factor. quanta: 3 x capacity, density: components x capacity, of the caller. A set of n points
 * from place `at` on needs at + n + FMM_PAIR_STORE_PADDING <= capacity, since vectors are read whole. */
typedef struct fmm_pair_store { int64_t capacity; int32_t *quanta; float *density; } fmm_pair_store;
enum { FMM_PAIR_STORE_PADDING = 16 };
void fmm_pair_store_put(const fmm_pair_sum *sum, const fmm_pair_store *store, const fmm_pair_points *points, int64_t at);

/* One set in a sum: points [begin, begin + n) of it. */
typedef struct fmm_pair_side {
  const fmm_pair_points *points;
  int64_t begin, n;
  double *value;           /* of the set's first point: value v of point i is value[v*value_stride + i], added to */
  int64_t value_stride;
  int64_t at;              /* (single) its place in the store */
} fmm_pair_side;

int fmm_pair_sum_can_add_both(const fmm_pair_sum *sum);
int fmm_pair_sum_prefers_both(const fmm_pair_sum *sum); /* can, and is faster so than one-sided twice */

/* a and each of the others at once; no two points may coincide. store: NULL but in single. */
void fmm_pair_sum_add_both(const fmm_pair_sum *sum, const fmm_pair_store *store, const fmm_pair_side *a, int64_t n_others, const fmm_pair_side *others);
/* a onto itself; equal points contribute nothing to each other. */
void fmm_pair_sum_add_own(const fmm_pair_sum *sum, const fmm_pair_store *store, const fmm_pair_side *a);

/* A surface of lattice points around center, of this radius. Its sums with points are faster than as two sets of points for radial pairs of one
 * component, and the same for all. Points may lie on the surface: such pairs contribute nothing. */
typedef struct fmm_pair_lattice {
  const fmm_surface *surface;
  double center[3], radius;
  const double *density; /* as a source: component k, column c, point m is density[k*component_stride + c*column_stride + m] */
  int64_t component_stride, column_stride;
  double *planes;        /* workspace, 3 n_points doubles, each lattice its own */
} fmm_pair_lattice;
enum { FMM_PAIR_MOST_LATTICES = 8 };

/* Sums with surfaces may have roots to 3e-13 instead of 1e-16, where this tolerance of the whole evaluation lets them (from 1e-9 on). Amplified by the
 * inverses that relate surfaces, that noise has changed the method's own error by 3 % at most (orders 7 to 14, 90 % of the points in clusters of 1e-3
 * to 1e-10 of the rest's extent included). */
void fmm_pair_sum_allow_near(fmm_pair_sum *sum, double tolerance);

/* Adds the sums over the points of n surfaces (at most FMM_PAIR_MOST_LATTICES) to the targets' values. */
void fmm_pair_sum_from_lattices(const fmm_pair_sum *sum, const fmm_pair_targets *targets, int n, const fmm_pair_lattice *lattices);

/* Adds the sums over n_ranges source ranges to values at the surface's points, potentials only (sum->gradient is 0): output v, column c, point m is
 * value[v*value_stride + c*column_stride + m]. Ranges may be empty. */
void fmm_pair_sum_onto_lattice(const fmm_pair_sum *sum, const fmm_pair_lattice *lattice, double *value, int64_t value_stride, int64_t column_stride,
                               int64_t n_ranges, const fmm_pair_sources *ranges);

/* fmm_shell_add (kernels/shell_field.h) in vector code, to the targets' first plane of values and, with gradient, the three that follow. */
void fmm_pair_sum_add_shell(const fmm_pair_targets *targets, const double center[3], double decay2, double part, int gradient);

/* Planes of a surface's points: x[i] = center[0] + radius * surface[3 i], ... (surface: n x 3, on the cube [-1,1]^3). */
void fmm_surface_planes(int n, const double *surface, const double center[3], double radius, double *x, double *y, double *z);
#endif
