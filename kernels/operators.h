/* The precomputed translation operators of the kernel-independent FMM for one (pair interaction, parameters, order).
 *
 * Surfaces are cubes' surfaces with p points an edge (kernels/surface.h). Upward equivalent and downward check: 1.05 half-widths ("inner"),
 * upward check and downward equivalent: 2.95 to 5 by order ("outer", fmm_outer_radius). Index of an unknown: component * n_surface + surface point.
 *
 * Check-to-equivalent maps are pseudo-inverses by SVD in two factors, never multiplied out; for the upward map K(outer, inner) = U S V^T:
 *   first = S^-1 U^T (check potentials -> coefficients), second = V (coefficients -> equivalent densities), small singular values cut.
 * M2M has `first` multiplied in, first * K(parent's outer, child's inner), so a parent needs one `second` for all its children.
 * The downward map is the transpose of an upward map, of the pair with its arguments exchanged (of the pair itself when it is symmetric):
 *   first = V^T (check -> coefficients), second = U S^-1 (coefficients -> equivalent), and L2L = (first_up * K)^T takes the parent's
 *   coefficients to its children's check potentials: boxes that are not leaves never need downward equivalents.
 *
 * Parity: the surface is unchanged by the mirrors of the three axes, and so are the pair interactions that declare it. Then in the basis of
 * orbit sums (fmm_parity_map) first and second are eight blocks of about n/8, and the M2M of octant c is that of octant 0 with the signs of
 * mirror c on both sides. With a Walsh-Hadamard transform over the children, all eight M2M of a parent cost one n x n product.
 *
 * M2L is a convolution on the surface's lattice: cyclic of length L = 2p-1 an axis, which is the smallest without wrap-around.
 * Homogeneous kernels have one set for a box of half-width 1, scaled by level; others a set a level (from level 2, the first with far boxes).
 * Reference: Ying, Biros, Zorin 2004, sections 3.1-3.3; two factors: Malhotra & Biros, Commun. Comput. Phys. 18 (2015) 808. */
#ifndef FMM_OPERATORS_H
#define FMM_OPERATORS_H
#include "kernels/harmonics.h"
#include "kernels/pair/pair.h"
#include "kernels/surface.h"
#include "runtime/memory.h"

#define FMM_INNER_RADIUS 1.05 /* upward equivalent and downward check surfaces, in half-widths */

/* Upward check and downward equivalent surfaces, in half-widths. The farther they are, the less of a field's high harmonics, which p points an
 * edge alias, reaches them, and the worse conditioned the inverses are. */
double fmm_outer_radius(const fmm_pair_info *info, int order);

/* A matrix packed for kernels/translate.h: panels of FMM_PANEL_ROWS rows (the last padded with zeros), each by columns:
 * entry (i, j) is data[(i / 6 * columns + j) * 6 + i % 6]. */
enum { FMM_PANEL_ROWS = 6 };
typedef struct fmm_panels { int rows, columns; double *data; } fmm_panels;

/* Operators of one level. Blocks chi as in parity.begin; all in the regrouped basis, with the orbits' weights multiplied in: inputs are
 * plain sums over orbits with signs, outputs are spread over orbits with signs and no factor. */
typedef struct fmm_level_operators {
  double half_width;          /* scaled half-width they are made for (1 for homogeneous kernels) */
  fmm_panels up_first[8], up_second[8];     /* block chi: m x m */
  fmm_panels down_first[8], down_second[8];
  /* m2m[chi]: coefficients of block chi from all n inner unknowns of the child in octant 0. l2l[chi]: inner check unknowns of block chi of that
   * child from all n coefficients of the parent. With no parity: m2m[c], l2l[c] of octant c, n x n. */
  fmm_panels m2m[8], l2l[8];
  /* Harmonic pairs, kernels/harmonics.h: block chi of the upward equivalent densities, regrouped, from the moments of a leaf's densities, and of the harmonics inside a leaf, in units of its side, from its regrouped check
   * potentials (times the level's factor, fmm_operators_scale), with the shell field in degree 0. Where these are not whole (fmm_moments_are_whole), from and to coefficients instead. */
  fmm_panels up_moments[8], down_moments[8];
  /* Likewise of W and X: the harmonics outside a box, of its upward equivalent densities, and its downward check potentials of harmonics inside, both regrouped; times the level's factor. */
  fmm_panels w_moments[8], x_moments[8];
  /* M2L in Fourier space, complex: m2l[((kz*L + kx)*L + ky)*components^2 + out*components + in][offset][re,im], kz 0..p-1, kx and ky 0..L-1
   * (negative frequencies k at L+k), the inverse transform's 1/L^3 multiplied in; zero for adjacent boxes. offset: of
   * d = source box - target box in box units; with parity only d >= 0: (dx*4 + dy)*4 + dz, else ((dx+3)*7 + dy+3)*7 + dz+3. See fmm_m2l_gather. */
  double *m2l;
  /* components x n: what of a box's downward coefficients is the shell field of each component, which L2L hands on exactly and down_second leaves out (kernels/shell_field.h);
   * NULL: neither, the pair has none or dies away within the box. */
  double *shell;
} fmm_level_operators;

typedef struct fmm_operators {
  const fmm_pair *pair;
  double params[FMM_MAX_PARAMS];
  int order, n_surface, n;    /* n = equivalent_components * n_surface */
  int grid, n_frequencies;    /* L = 2p-1; L*L*p */
  double outer_radius;        /* fmm_outer_radius of pair and order */
  double shell_decay2;        /* square of the shell field's inverse length */
  int n_offsets;              /* 64 or 343 */
  fmm_surface shape;
  double *surface;            /* shape.xyz: n_surface x 3, on the cube [-1,1]^3 */
  fmm_parity_map parity;
  fmm_harmonics harmonics;    /* of harmonic pairs, else none */
  int n_levels;               /* sets held: 1 when homogeneous */
  fmm_level_operators level[FMM_MAX_LEVELS];
} fmm_operators;

/* Makes the operators. root_half_width (scaled) and n_levels matter only to kernels without a degree. */
fmm_status fmm_operators_create(fmm_operators **operators, const fmm_pair *pair, const double params[FMM_MAX_PARAMS], int order,
                                double root_half_width, int n_levels, int threads);
void fmm_operators_destroy(fmm_operators **operators);
size_t fmm_operators_bytes(const fmm_operators *operators);

/* The set of a level, and the factor of a homogeneous kernel's level: potentials of boxes of half-width h are h^degree times those of
 * half-width 1 (1 for other kernels). */
static inline const fmm_level_operators *fmm_operators_at(const fmm_operators *o, int level) { return &o->level[o->n_levels == 1 ? 0 : level]; }
double fmm_operators_scale(const fmm_operators *o, double half_width);

/* Transforms of the kernel from component `in` to `out` at one frequency, for all offsets: full[((dx+3)*7 + dy+3)*7 + dz+3][re,im]. */
void fmm_m2l_gather(const fmm_operators *o, const fmm_level_operators *set, int kx, int ky, int kz, int out, int in, double full[343][2]);

/* The operators as plain row-major n x n matrices on unknowns in natural order (what a device that multiplies dense matrices wants; tests).
 * Coefficients keep the order of the regrouped basis. octant matters to M2M and L2L only. */
typedef enum fmm_operator_kind {
  FMM_OPERATOR_UP_FIRST,    /* check potentials -> coefficients */
  FMM_OPERATOR_UP_SECOND,   /* coefficients -> equivalent densities */
  FMM_OPERATOR_DOWN_FIRST,
  FMM_OPERATOR_DOWN_SECOND,
  FMM_OPERATOR_M2M,         /* child's equivalent densities -> parent's upward coefficients, to be summed over children */
  FMM_OPERATOR_L2L          /* parent's downward coefficients -> child's downward check potentials, to be added */
} fmm_operator_kind;
fmm_status fmm_operators_dense(const fmm_operators *o, const fmm_level_operators *set, fmm_operator_kind kind, int octant, double *matrix);

/* Kinds of densities of which errors are known: fmm_density_sign, one charge alone at the corner of a box, and charges of both signs in turn on a lattice
 * (kernels/charge_lattice.h), moved off it (a salt) or not (a crystal). */
enum { FMM_DENSITY_ALONE = 2, FMM_DENSITY_SALT, FMM_DENSITY_CRYSTAL, FMM_DENSITY_KINDS };

/* Expected relative L2 errors of a whole evaluation of order p, measured on the operators (far_field_error.c): error[kind of densities][gradient], of
 * potentials (gradient 0) and of gradients (1). half_width: of boxes whose children are leaves, scaled (homogeneous kernels: any). Measured, and written,
 * are those that matter where the densities are of the kind `what` (as fmm_order_for_tolerance takes it): that kind and a charge alone, and with FMM_DENSITY_SALT signed ones and crystals. */
fmm_status fmm_far_field_errors(const fmm_pair *pair, const double params[FMM_MAX_PARAMS], int order, double half_width, int what, int threads,
                                double error[FMM_DENSITY_KINDS][2]);

/* Smallest order whose expected error for this kind of densities (fmm_density_sign; or FMM_DENSITY_SALT: signed ones on points as evenly spaced as
 * those of a lattice), of potentials and (gradient nonzero) gradients, is within tolerance; when none
 * is, the one with the smallest error of those tried. *expected: its expected error, so that the caller can tell. At once where errors are known (known_errors.h), else milliseconds at 6 digits, longer for more;
 * remembers what it measured. The answer does not depend on the number of threads. */
fmm_status fmm_order_for_tolerance(const fmm_pair *pair, const double params[FMM_MAX_PARAMS], double tolerance, int kind, int gradient,
                                   double root_half_width, int threads, int *order, double *expected);

/* An order that no order within tolerance is below, from the error of the lowest and the fastest decay there can be: milliseconds always. */
fmm_status fmm_order_bound(const fmm_pair *pair, const double params[FMM_MAX_PARAMS], double tolerance, int kind, int gradient,
                           double root_half_width, int threads, int *bound);
#endif
