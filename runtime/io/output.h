/* Results to a file, the format decided by the suffix; the file is replaced whole or not at all (runtime/file.h).
 *   .npy  float64, (n, width); width = columns * outputs * (1, or 4 with gradient)
 *   .csv  a header line of names, then a row a target
 *   .vtk  legacy binary polydata: the targets with a scalar (or vector) field potential and a vector (or tensor) field gradient a column
 * A row a target in input order; in it for each density column the potential's components, then the gradient's, [output][axis]. */
#ifndef FMM_IO_OUTPUT_H
#define FMM_IO_OUTPUT_H
#include "runtime/memory.h"

typedef struct fmm_results {
  int64_t n;
  const double *targets;   /* n x 3 (only .vtk writes them) */
  int outputs, columns;
  const double *potential; /* n x outputs x columns */
  const double *gradient;  /* n x outputs x 3 x columns, or NULL */
} fmm_results;

fmm_status fmm_output_write(const char *path, const fmm_results *results);
/* Known suffix (else FMM_ERR_ARGUMENT with those that are) and a directory that can be written (else FMM_ERR_FILE): before long work. */
fmm_status fmm_output_check(const char *path);

/* Values in a row, and the row of target i in the order above (what every writer writes). */
int fmm_results_width(const fmm_results *results);
void fmm_results_row(const fmm_results *results, int64_t i, double *row);
/* Name of value j of a row: "potential", "gx", "potential_y", "gxy", with the column's number appended when there are several. */
void fmm_results_name(const fmm_results *results, int j, char name[32]);

/* Writers, one file each. */
struct fmm_replacement;
typedef fmm_status fmm_results_writer(struct fmm_replacement *file, const fmm_results *results);
fmm_results_writer fmm_write_npy, fmm_write_csv, fmm_write_vtk;
#endif
