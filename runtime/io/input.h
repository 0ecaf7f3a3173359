/* Points and densities from files, the format decided by the suffix:
 *   .pqr  ATOM/HETATM records: x y z and one density, the charge
 *   .npy  float64 or float32, (n, 3 + k): x y z and k densities
 *   .csv  a line a point: x y z and k densities; optional header; commas, semicolons or blanks
 *   .xyz  number of points, comment, then [element] x y z and k densities a line
 * Every value is checked to be finite; the first that is not is named, with its line (its row from 0 in .npy). Errors: FMM_ERR_INPUT (FMM_ERR_MEMORY).
 * For kernels of several components the k columns are component-major: column component * columns + column. */
#ifndef FMM_IO_INPUT_H
#define FMM_IO_INPUT_H
#include "runtime/memory.h"

typedef struct fmm_input {
  int64_t n;
  double *points;    /* n x 3 */
  int64_t k;         /* densities a point in the file */
  double *densities; /* n x k; NULL when k is 0 */
} fmm_input;

fmm_status fmm_input_read(const char *path, fmm_input *input);
/* Densities alone: all columns of .npy (also of shape (n,)) and .csv, those after the coordinates of .pqr and .xyz. n: rows expected, < 0 any.
 * input->points is NULL. */
fmm_status fmm_input_read_densities(const char *path, int64_t n, fmm_input *input);
void fmm_input_free(fmm_input *input);

/* Whether the suffix is one that is read; else FMM_ERR_INPUT with those that are. Touches no file. */
fmm_status fmm_input_check_suffix(const char *path);
#endif
