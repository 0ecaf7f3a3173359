/* The data of a case: points, targets and densities, from files or generated, in the layout that the library takes. */
#ifndef FMM_RUN_CASE_H
#define FMM_RUN_CASE_H
#include "case_options.h"
#include "kernels/pair/pair_info.h"

typedef struct fmm_case {
  const fmm_pair_info *pair;
  int64_t n_points;       /* of the file, or generated */
  int64_t n;              /* of them, sources: all, or (fmm_case_load) those with density */
  double *points;         /* n x 3, the sources */
  int64_t n_targets;      /* n when targets is NULL */
  double *targets;        /* n_targets x 3: a file's, or (fmm_case_load) all points; NULL: the sources */
  int columns;
  double *densities;      /* n x pair->components x columns */
  int in_phase;           /* one component, and fmm_densities_in_phase */
  int spread;             /* fmm_densities_spread */
  const char *densities_from; /* "unit", a file's name; owned by the options */
} fmm_case;

/* Reads or makes everything. Where at most a fifth of the points have any density, those are the sources and all are targets: that takes 0.54 to 0.85 of the time where a tenth have, 0.88 to 1 where a fifth have
 * (200,000 uniform points, 3 and 6 digits, potentials and gradients, two Zen 4 cores), and plans then see how far the others are from what makes their field, which Yukawa needs. Not where all points are as even as a
 * lattice's or a curve's, which plans look for among sources and need to know. Release with fmm_case_free. */
fmm_status fmm_case_load(const fmm_case_options *options, int threads, fmm_case *data);
void fmm_case_free(fmm_case *data);
/* c->columns of a file's k density columns, or FMM_ERR_INPUT where the kernel does not take as many. */
fmm_status fmm_case_take_columns(const char *path, int64_t k, fmm_case *c);
/* Whether FMM_DENSITY_NONNEGATIVE holds of n x columns densities (row by row): none is negative, and in no column do few places (n x 3; NULL: all different) outweigh the rest. */
int fmm_densities_in_phase(int64_t n, const double *points, int columns, const double *densities);
/* Whether fmm_options' densities_spread holds of n rows of components x columns densities. */
int fmm_densities_spread(int64_t n, int components, int columns, const double *densities);
#endif
