/* The table of formats, and the split of what a reader made into points and densities. */
#include "input.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "table.h"

static const struct { const char *suffix; fmm_table_reader *read; } formats[] = {
    {".pqr", fmm_read_pqr}, {".npy", fmm_read_npy}, {".csv", fmm_read_csv}, {".xyz", fmm_read_xyz}};
enum { N_FORMATS = sizeof formats / sizeof formats[0] };

static fmm_status find_reader(const char *path, fmm_table_reader **read) {
  const char *slash = strrchr(path, '/'), *suffix = strrchr(slash ? slash : path, '.');
  char known[64] = "";
  for (int i = 0; i < N_FORMATS; i++) {
    if (suffix && !strcasecmp(suffix, formats[i].suffix)) return *read = formats[i].read, FMM_OK;
    size_t used = strlen(known);
    snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", formats[i].suffix);
  }
  return FMM_FAIL(FMM_ERR_INPUT, "%s: unknown suffix '%s'; point files end in %s", path, suffix ? suffix : "", known);
}

fmm_status fmm_input_check_suffix(const char *path) {
  fmm_table_reader *read;
  return find_reader(path, &read);
}

/* Value i of the table is not finite: where it stands, and what it is. */
static fmm_status not_finite(const char *path, const fmm_table *t, int64_t coordinates, int64_t i) {
  int64_t column = i % t->columns, densities = t->columns - coordinates;
  char where[48], name[64] = "the density";
  if (t->line_not_finite) snprintf(where, sizeof where, "%lld", (long long)t->line_not_finite);
  else snprintf(where, sizeof where, " row %lld (from 0)", (long long)(i / t->columns));
  if (column < coordinates) snprintf(name, sizeof name, "%c", 'x' + (int)column);
  else if (densities > 1) snprintf(name, sizeof name, "density %lld of %lld", (long long)(column - coordinates + 1), (long long)densities);
  return FMM_FAIL(FMM_ERR_INPUT, "%s:%s: %s is %g; coordinates and densities must be finite", path, where, name, t->values[i]);
}

static fmm_status check_finite(const char *path, const fmm_table *t, int64_t coordinates) {
  int64_t n = t->rows * t->columns;
  for (int64_t i = 0; i < n; i++)
    if (!isfinite(t->values[i])) return not_finite(path, t, coordinates, i);
  return FMM_OK;
}

/* Columns [first, first + count) of the table as an array of their own. */
static fmm_status take_columns(const fmm_table *t, int64_t first, int64_t count, double **values) {
  if (count == 0) return FMM_OK;
  FMM_TRY(FMM_ALLOCATE(values, t->rows * count, "points or densities"));
  for (int64_t i = 0; i < t->rows; i++)
    for (int64_t j = 0; j < count; j++) (*values)[i * count + j] = t->values[i * t->columns + first + j];
  return FMM_OK;
}

static fmm_status split(const char *path, const fmm_table *t, fmm_input *input) {
  if (t->one_dimensional || t->columns < 3)
    return FMM_FAIL(FMM_ERR_INPUT, "%s: %lld column%s; expected x y z and any number of densities", path, (long long)t->columns, t->columns == 1 ? "" : "s");
  FMM_TRY(check_finite(path, t, 3));
  input->n = t->rows, input->k = t->columns - 3;
  FMM_TRY(take_columns(t, 0, 3, &input->points));
  return take_columns(t, 3, input->k, &input->densities);
}

static fmm_status split_densities(const char *path, const fmm_table *t, int64_t n, fmm_input *input) {
  int64_t first = t->point_columns;
  if (t->columns <= first) return FMM_FAIL(FMM_ERR_INPUT, "%s: holds no density column", path);
  if (n >= 0 && t->rows != n)
    return FMM_FAIL(FMM_ERR_INPUT, "%s: %lld rows of densities for %lld points; expected as many", path, (long long)t->rows, (long long)n);
  FMM_TRY(check_finite(path, t, first));
  input->n = t->rows, input->k = t->columns - first;
  return take_columns(t, first, input->k, &input->densities);
}

fmm_status fmm_input_read(const char *path, fmm_input *input) {
  fmm_table_reader *read;
  fmm_table table;
  fmm_input result = {0};
  FMM_TRY(find_reader(path, &read));
  FMM_TRY(read(path, &table));
  fmm_status status = split(path, &table, &result);
  fmm_table_free(&table);
  if (status == FMM_OK) *input = result;
  else fmm_input_free(&result);
  return status;
}

fmm_status fmm_input_read_densities(const char *path, int64_t n, fmm_input *input) {
  fmm_table_reader *read;
  fmm_table table;
  fmm_input result = {0};
  FMM_TRY(find_reader(path, &read));
  FMM_TRY(read(path, &table));
  fmm_status status = split_densities(path, &table, n, &result);
  fmm_table_free(&table);
  if (status == FMM_OK) *input = result;
  else fmm_input_free(&result);
  return status;
}

void fmm_input_free(fmm_input *input) {
  FMM_FREE(&input->points);
  FMM_FREE(&input->densities);
  *input = (fmm_input){0};
}
