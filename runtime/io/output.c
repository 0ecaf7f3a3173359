/* The table of output formats, and the order of values in a row. */
#include "output.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "runtime/file.h"

static const struct { const char *suffix; fmm_results_writer *write; } formats[] = {
    {".npy", fmm_write_npy}, {".csv", fmm_write_csv}, {".vtk", fmm_write_vtk}};
enum { N_FORMATS = sizeof formats / sizeof formats[0] };

static fmm_status find_writer(const char *path, fmm_results_writer **write) {
  const char *slash = strrchr(path, '/'), *suffix = strrchr(slash ? slash : path, '.');
  char known[64] = "";
  for (int i = 0; i < N_FORMATS; i++) {
    if (suffix && !strcasecmp(suffix, formats[i].suffix)) return *write = formats[i].write, FMM_OK;
    size_t used = strlen(known);
    snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", formats[i].suffix);
  }
  return FMM_FAIL(FMM_ERR_ARGUMENT, "%s: unknown suffix '%s'; results are written to %s", path, suffix ? suffix : "", known);
}

fmm_status fmm_output_check(const char *path) {
  fmm_results_writer *write;
  FMM_TRY(find_writer(path, &write));
  return fmm_file_check_writable(path);
}

fmm_status fmm_output_write(const char *path, const fmm_results *results) {
  fmm_results_writer *write;
  fmm_replacement file;
  FMM_TRY(find_writer(path, &write));
  FMM_TRY(fmm_replace_begin(&file, path));
  fmm_status status = write(&file, results);
  if (status == FMM_OK) return fmm_replace_commit(&file);
  fmm_replace_abandon(&file);
  return status;
}

int fmm_results_width(const fmm_results *r) { return r->columns * r->outputs * (r->gradient ? 4 : 1); }

void fmm_results_row(const fmm_results *r, int64_t i, double *row) {
  const double *p = r->potential + i * r->outputs * r->columns;
  const double *g = r->gradient ? r->gradient + i * r->outputs * 3 * r->columns : NULL;
  for (int c = 0; c < r->columns; c++) {
    for (int o = 0; o < r->outputs; o++) *row++ = p[o * r->columns + c];
    for (int o = 0; g && o < r->outputs * 3; o++) *row++ = g[o * r->columns + c];
  }
}

void fmm_results_name(const fmm_results *r, int j, char name[32]) {
  int width = fmm_results_width(r) / r->columns, k = j % width, several = r->outputs > 1;
  char column[12] = "";
  if (r->columns > 1) snprintf(column, sizeof column, "_%d", j / width);
  if (k < r->outputs && !several) snprintf(name, 32, "potential%s", column);
  else if (k < r->outputs) snprintf(name, 32, "potential_%c%s", 'x' + k % 3, column);
  else if (!several) snprintf(name, 32, "g%c%s", 'x' + (k - r->outputs), column);
  else snprintf(name, 32, "g%c%c%s", 'x' + (k - r->outputs) / 3 % 3, 'x' + (k - r->outputs) % 3, column);
}
