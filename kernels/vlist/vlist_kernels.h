/* Vector code of the V phase, one table an instruction set and precision; values are of type `real` (double or float) behind void pointers.
 *
 * Groups: every vector of the transforms holds eight boxes, children of one parent or of a few (vlist_slabs.h), so that transforms need no shuffles and
 * few lanes are empty. A spectrum value is [re of 8 lanes | im of 8 lanes], 16 reals. Products are of parents: lanes are put in order of octants, zeros
 * where there is no child, before they are expanded, and back when they are contracted; a parent that has all eight has a group of its own, in that order.
 *
 * Transforms are plain sums with the cosines of one axis at a time: input has p of 2p-1 points, all but the surface zero, and symmetry about the
 * centre halves the work; at p <= 20 that is fewer operations than FFTs of padded grids, and all of them are vector operations.
 *
 * Products: for a target parent P, a neighbour Q = P + D and one frequency, y[t] += sum_s T(2D + s - t) x[s] is an 8x8 matrix, Toeplitz in each
 * axis: [a b; c a]. Two outputs of it cost three products: y0 = a (x0+x1) + (b-a) x1, y1 = a (x0+x1) + (c-a) x0 (Karatsuba; Winograd,
 * Arithmetic Complexity of Computations, SIAM 1980, ch. 2). Over three axes 27 products instead of 64, all elementwise: x is expanded to 27
 * sums once a source parent, y contracted once a target parent. Lanes of the 27: see FMM_VLIST_LANE. */
#ifndef FMM_VLIST_KERNELS_H
#define FMM_VLIST_KERNELS_H
#include "kernels/operators.h"
#include "kernels/simd.h"
#include "kernels/vlist/vlist_slabs.h"

enum { FMM_VLIST_PADDED = 32, FMM_DIRECTIONS = 27 };

/* Lane of sum (ex, ey, ez), e = 0: x0, 1: x1, 2: x0 + x1 along an axis. */
#define FMM_VLIST_LANE(ex, ey, ez) \
  ((ex) < 2 && (ey) < 2 ? 4 * (ez) + 2 * (ey) + (ex) : (ex) == 2 && (ey) == 2 ? 24 + (ez) : 12 + 4 * (ez) + ((ey) == 2 ? (ex) : 2 + (ey)))

/* Shape of the transforms of one order; tables in `real`. */
typedef struct fmm_vlist_shape {
  int order, grid, half, n_surface; /* half: points an axis at and above the centre, (p+1)/2 */
  int32_t *row_first;               /* p*p: first surface point of lattice row (ix, iy, .) */
  uint8_t *row_count;               /* p*p: its points: p, or 2 (its ends) */
  void *cosine, *sine;              /* [k 0..p-1][h 0..half-1] of 2 pi k u_h / grid, u_h = (p-1)/2 - h */
} fmm_vlist_shape;

/* One call's share of the products of a frequency: rows of target parents with their entries. */
typedef struct fmm_vlist_product {
  int64_t row_begin, row_end;
  const int64_t *offset;     /* row r has offset[r+1] - offset[r] entries from fmm_vlist_row_begin(offset, r) on */
  const fmm_vlist_entry *entry; /* their sources are those expanded; FMM_VLIST_AHEAD entries behind the last row are read too */
  const void *matrices;      /* [out][in][direction][re of padded lanes | im], zeros in FMM_VLIST_NO_DIRECTION */
  const void *expanded;      /* [source][component*n_columns + column][re | im] */
  int n_components, n_columns;
  const fmm_vlist_place *target; /* of every row */
  void *out;                 /* [group][component*n_columns + column][16]; written are the rows' lanes, and zeros behind those of a group's first row */
} fmm_vlist_product;

typedef struct fmm_vlist_kernels {
  size_t real_bytes;
  int padded;                /* reals of a padded row of 27, 28 or 32 */
  /* Eight boxes' values to [point][lane] (NULL: zeros) and back (NULL: none), where each lane's mean is added; factor multiplies. */
  void (*load)(int n, const double *const box[8], double factor, void *points);
  void (*save)(int n, const void *points, const double mean[8], double factor, double *const box[8]);
  /* Slice kz of a group's transform: points [n_surface][8] -> spectrum value (kx, ky) at out + (kx*grid + ky)*stride reals; for kz = 0 only kx < p.
   * past: written past the caches, for spectra that these do not hold until they are read. Points and spectra of the next group, which are fetched
   * ahead, follow this one's. */
  void (*forward)(const fmm_vlist_shape *s, const void *points, int kz, void *out, int64_t stride, int past, void *scratch);
  /* Adds slice kz's part to points, or begins them for kz = 0, from spectrum values at the same places. */
  void (*inverse)(const fmm_vlist_shape *s, const void *in, int64_t stride, int kz, void *points, void *scratch);
  /* n parents' places, values [group][channel][16] -> padded rows of 27, [parent][channel][re | im]. */
  void (*expand)(int64_t n, int channels, const fmm_vlist_place *place, const void *spectrum, void *expanded);
  void (*matrices)(const double full[343][2], void *out);                   /* transforms of all offsets -> [direction][re | im] */
  void (*product)(const fmm_vlist_product *p);
} fmm_vlist_kernels;

/* Those of the best instruction set allowed. */
const fmm_vlist_kernels *fmm_vlist_kernels_find(int single);
size_t fmm_vlist_scratch_bytes(const fmm_vlist_shape *s, const fmm_vlist_kernels *k);

fmm_status fmm_vlist_shape_create(fmm_vlist_shape *s, const fmm_surface *surface, int single);
void fmm_vlist_shape_free(fmm_vlist_shape *s);
#endif
