/* What the kernels between points and lattice surfaces (pair_kernel_lattice.h) are called with, and their tables: one an instruction set and
 * accuracy, one row a pair interaction (order of the Meson list). A kernel handles one block of points and a whole surface. */
#ifndef FMM_PAIR_LATTICE_H
#define FMM_PAIR_LATTICE_H
#include "kernels/pair/pair_simd.h"
#include "kernels/surface.h"

typedef struct fmm_pair_lattice_call {
  int order, n_rows, n_surface;
  const fmm_surface_row *row;
  const double *plane;      /* 3 * order: where the planes of the axes lie; in single in a unit in which these are near 1 */
  int64_t n_points;         /* lanes beyond it, to the next multiple of FMM_PAIR_MAX_LANES, hold numbers */
  const void *point[3];     /* double or float, 64-byte aligned */
  const void *density[FMM_PAIR_MAX_COLUMNS]; /* of the sources, double or float; onto the surface: 64-byte aligned, zero beyond the last point */
  const double *params;
  double factor[2];         /* of potentials and of derivatives, by which sums are multiplied */
  double *sums[4 * FMM_PAIR_MAX_COLUMNS]; /* [value*columns + column], on the targets, added to; onto points: 64-byte aligned */
  void *lanes;              /* onto the surface: workspace, n_surface * columns vectors of 64 bytes, aligned */
} fmm_pair_lattice_call;

typedef void fmm_pair_lattice_kernel(const fmm_pair_lattice_call *call);

/* By number of columns as in the first three of fmm_pair_form. */
typedef struct fmm_pair_lattice_kernels {
  fmm_pair_lattice_kernel *onto_points[2][3], *onto_surface[3]; /* [gradient][columns], [columns] */
} fmm_pair_lattice_kernels;

/* Those of other pairs do nothing. */
static inline int fmm_pair_suits_lattice(const fmm_pair_info *info) {
  return info->radial && !info->takes_normals && info->components == 1 && info->equivalent_components == 1 && info->outputs == 1;
}

#define FMM_PAIR_LATTICE_TABLES(X) X(full) X(near) X(single)
#define FMM_PAIR_LATTICE_DECLARE_TABLE(accuracy)                                                                            \
  extern const fmm_pair_lattice_kernels fmm_pair_lattice_kernels_##accuracy##_plain[], fmm_pair_lattice_kernels_##accuracy##_avx2[], \
      fmm_pair_lattice_kernels_##accuracy##_avx512[];
FMM_PAIR_LATTICE_TABLES(FMM_PAIR_LATTICE_DECLARE_TABLE)
#undef FMM_PAIR_LATTICE_DECLARE_TABLE
#endif
