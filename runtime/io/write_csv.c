/* Writer of .csv: a header of names, then a row a target, numbers with 17 digits (they read back bit for bit) and decimal points. */
#include <string.h>

#include "number.h"
#include "output.h"
#include "runtime/file.h"

static fmm_status write_header(struct fmm_replacement *file, const fmm_results *results) {
  int width = fmm_results_width(results);
  for (int j = 0; j < width; j++) {
    char name[32];
    fmm_results_name(results, j, name);
    FMM_TRY(fmm_replace_write(file, name, strlen(name)));
    FMM_TRY(fmm_replace_write(file, j + 1 < width ? "," : "\n", 1));
  }
  return FMM_OK;
}

static fmm_status write_row(struct fmm_replacement *file, const double *row, int width) {
  for (int j = 0; j < width; j++) {
    char text[33];
    int n = fmm_format_number(text, row[j]);
    text[n++] = j + 1 < width ? ',' : '\n';
    FMM_TRY(fmm_replace_write(file, text, (size_t)n));
  }
  return FMM_OK;
}

fmm_status fmm_write_csv(struct fmm_replacement *file, const fmm_results *results) {
  int width = fmm_results_width(results);
  double *row;
  FMM_TRY(write_header(file, results));
  FMM_TRY(FMM_ALLOCATE(&row, width, "a row of results"));
  fmm_status status = FMM_OK;
  for (int64_t i = 0; i < results->n && status == FMM_OK; i++) {
    fmm_results_row(results, i, row);
    status = write_row(file, row, width);
  }
  FMM_FREE(&row);
  return status;
}
