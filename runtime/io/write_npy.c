/* Writer of .npy version 1: header padded so that the array begins at a multiple of 64 bytes. Reference: NumPy, numpy.lib.format. */
#include <stdio.h>
#include <string.h>

#include "output.h"
#include "runtime/file.h"

fmm_status fmm_write_npy(struct fmm_replacement *file, const fmm_results *results) {
  unsigned char head[128];
  int width = fmm_results_width(results);
  double *row;
  memset(head, ' ', sizeof head);
  memcpy(head, "\x93NUMPY\x01\x00", 8);
  head[8] = sizeof head - 10, head[9] = 0;
  int n = snprintf((char *)head + 10, sizeof head - 10, "{'descr': '<f8', 'fortran_order': False, 'shape': (%lld, %d), }", (long long)results->n, width);
  head[10 + n] = ' ', head[sizeof head - 1] = '\n';
  FMM_TRY(fmm_replace_write(file, head, sizeof head));
  FMM_TRY(FMM_ALLOCATE(&row, width, "a row of results"));
  fmm_status status = FMM_OK;
  for (int64_t i = 0; i < results->n && status == FMM_OK; i++) {
    fmm_results_row(results, i, row);
    status = fmm_replace_write(file, row, (size_t)width * sizeof *row);
  }
  FMM_FREE(&row);
  return status;
}
