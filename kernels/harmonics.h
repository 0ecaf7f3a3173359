/* Solid harmonics: what leaves' points give to and take from surfaces, for pairs whose fields are harmonic (1/r).
 *
 * P2M by surfaces sums every point onto every check point. But what a leaf's points make outside, as far as surfaces of order p can tell it, is given by fewer numbers, the moments of
 * its densities with the solid harmonics up to degree L (fmm_harmonic_degree), which cost two or three operations a point each where a pair of point and surface costs seven. They become equivalent densities by
 * one matrix, the field of moments at the check points and its inverse (fmm_level_operators.up_moments), so that everything else stays as it is. Downward, check potentials become the coefficients of the
 * harmonics inside the leaf (down_moments), and their sums at the points are potentials; those of three derivatives, made once a leaf, are gradients.
 *
 * The harmonics, real, of degree l and order m <= l, cosine and sine:
 *   H(x) = Q_lm(z, r^2) {Re, Im} (x + i y)^m,   Q_mm = 1,   Q_lm = z Q_(l-1)m - step_lm r^2 Q_(l-2)m,   step_lm = ((l-1)^2 - m^2) / ((2l-1) (2l-3)):
 * monic in z, so that a step is two multiplications and a multiply-add, the same for cosine and sine. Then, |y| < |x|,
 *   1 / |x - y| = sum over l, m of weight_lm H(y) H(x) / |x|^(2l+1),   weight_lm = (2 - [m = 0]) (l-m)!/(l+m)! lead_lm^2,   lead_lm = (2l)! / (2^l l! (l-m)!).
 * Points are in units of the box's side from its middle. (Hobson, The Theory of Spherical and Ellipsoidal Harmonics, 1931; P2M and L2P of the classical method: Greengard & Rokhlin, Acta Numerica 6 (1997) 229.)
 *
 * Each is even or odd along each axis, so that the matrices fall into the operators' parity blocks. Places: pair k of (l, m), by m and then l; value 2k cosine, 2k + 1 sine (of m = 0
 * there is none); in blocks' order: place[2k + part]. */
#ifndef FMM_HARMONICS_H
#define FMM_HARMONICS_H
#include "kernels/ask_ahead.h"
#include <stdint.h>
#include "kernels/pair/pair_info.h"
#include "kernels/surface.h"

/* Whether a pair's leaves go by harmonics on CPU cores (theirs are in blocks by parity), and those of some orders and many leaves on a GPU (kernels/harmonics_cost.h). */
static inline int fmm_has_harmonics(const fmm_pair_info *pair) { return pair->harmonic && pair->parity == FMM_PARITY_SCALAR; }

/* A surface of order p carries degrees up to 2(p-1), most of what a leaf's charges make. How many more are needed, so that what is cut stays small beside what the surface misses, was measured with one charge among 4,000 points, at the
 * corner of a box and its parents that others face, the worst place (orders 2 to 20, all else alike): potentials and gradients then err by at most 1.1 times as much as by surfaces; of random charges by 1.02. A lone charge at a
 * corner that faces outward, where surfaces err a hundred times less, errs by up to 4.6 times as much as by them (orders 3, 5 and 6; 1.4 and 1.6 at 4 and 7), and so do clusters there, up to 17 times seen at order 5: by what
 * the other corners err by. */
#define FMM_HARMONIC_DEGREES_MORE {0, 0, 1, 1, 2, 2, 3, 4, 5, 4, 7, 8, 8, 10, 12, 13, 13, 12, 13, 12, 10} /* by order */
static inline int fmm_harmonic_degree(int order) {
  static const unsigned char more[FMM_MAX_ORDER + 1] = FMM_HARMONIC_DEGREES_MORE;
  return 2 * (order - 1) + more[order];
}
enum { FMM_MOST_DEGREE = 48, FMM_MOST_HARMONICS = (FMM_MOST_DEGREE + 1) * (FMM_MOST_DEGREE + 2) }; /* of any order; cosines and sines */
static inline int fmm_harmonic_pairs(int degree) { return (degree + 1) * (degree + 2) / 2; }
/* Whether leaves' moments become equivalent densities, and check potentials harmonics, by one matrix each, so that coefficients are not made on the way. These matrices have no entries as large as the inverses of which they are made; but
 * what rounding leaves is four times as much as with two for a constant field inside a shell from order 15 on, and three to fifteen times from order 17 on (a lone charge's potential upward, potentials inside a shell of equal charges downward).
 * The GPU's kernels take it for granted of theirs (kernels/harmonics_cost.h). */
enum { FMM_MOST_ORDER_OF_WHOLE_MOMENTS = 14 };
static inline int fmm_moments_are_whole(int order) { return order <= FMM_MOST_ORDER_OF_WHOLE_MOMENTS; }
/* Operations on vectors a point and pair of (l, m): three of the recurrence, a multiply-add of cosine and sine for each output; a multiply-add counts as one. */
static inline int fmm_harmonic_instructions(int gradient) { return 3 + 2 * (gradient ? 4 : 1); }
static inline int fmm_harmonic_pair(int degree, int l, int m) { return m * (degree + 1) - m * (m - 1) / 2 + l - m; }

enum { FMM_HARMONIC_OUTPUTS = 4 }; /* potential and gradient */

/* A derivative along an axis, of the side: value `to` of the derivative's coefficients gets factor times value `from` of the field's. Places are in blocks' order. */
typedef struct fmm_harmonic_slope { int32_t axis, to, from; double factor; } fmm_harmonic_slope;

typedef struct fmm_harmonics {
  int degree, n_pairs, n_terms;   /* n_terms = (degree+1)^2; all 0: the pair has none */
  int begin[FMM_MIRRORS + 1];     /* parity block chi: terms begin[chi] .. begin[chi+1] in blocks' order */
  int32_t *place;                 /* 2 n_pairs; -1: the sine of m = 0 */
  int32_t *row[2];                /* places of values where lanes hold many boxes: of one set of terms [2 n_pairs], of a set for each output [2 n_pairs][FMM_HARMONIC_OUTPUTS], output o's from o n_terms on;
                                   * what is in no place is in row FMM_HARMONIC_OUTPUTS n_terms */
  double *weight, *step, *unit;   /* n_pairs; step and single_step one more, which is read and not used; unit: of the harmonic in one whose derivatives are others, or halves of them (harmonics.c) */
  float *single_step;
  int n_slopes;
  fmm_harmonic_slope *slope;
} fmm_harmonics;

fmm_status fmm_harmonics_create(fmm_harmonics *h, int degree);
void fmm_harmonics_free(fmm_harmonics *h);

/* All 2 n_pairs harmonics at a point, plain C. */
void fmm_harmonics_at(const fmm_harmonics *h, const double at[3], double *value);

/* The same in vector code, once an instruction set and precision (harmonics_kernel.h). A box: points are taken less center, times per_side (1 over its side).
 * outside: points x outside the box, and H(x) / |x|^(2l+1) instead of H(x). That is H(x / |x|^2) / |x| (Kelvin's inversion), so that it is summed as points inside are. */
typedef struct fmm_harmonic_box { double center[3], per_side; int outside; } fmm_harmonic_box;
static inline void fmm_harmonic_place(const fmm_harmonic_box *box, double x, double y, double z, double at[3]) {
  at[0] = (x - box->center[0]) * box->per_side, at[1] = (y - box->center[1]) * box->per_side, at[2] = (z - box->center[2]) * box->per_side;
}
typedef struct fmm_harmonic_points { int64_t n; const double *at[3], *density; } fmm_harmonic_points; /* at[axis][i] */
/* Asks for coordinates and, where there are any, densities (ask_ahead.h). */
FMM_ASKS void fmm_ask_for_points(const fmm_harmonic_points *p) {
  for (int a = 0; a < 3; a++) fmm_ask_for(p->at[a], p->n);
  if (p->density) fmm_ask_for(p->density, p->n);
}

typedef struct fmm_harmonic_kernels {
  /* moment[2 n_pairs] += sums over the points of all ranges of density times harmonics. */
  void (*moments)(const fmm_harmonics *h, const fmm_harmonic_box *box, int64_t n_ranges, const fmm_harmonic_points *ranges, double *moment);
  /* value[o * value_stride + i] += sum of coefficients times harmonics at point i; coefficient o of value v of pair k is coefficient[(2k + v) * n_outputs + o]; n_outputs 1, or 4 of which the
   * last three are those of the slopes: outside they are put together with what inversion makes of gradients. room: as many doubles as there are coefficients. */
  void (*values)(const fmm_harmonics *h, const fmm_harmonic_box *box, const fmm_harmonic_points *points, int n_outputs, const double *coefficient, void *room, double *value, int64_t value_stride);
} fmm_harmonic_kernels;
const fmm_harmonic_kernels *fmm_harmonic_kernels_find(int single);
#endif
