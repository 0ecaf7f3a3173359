/* Writer of legacy .vtk: binary (big-endian) polydata whose vertices are the targets, with point data: a column's potential as
 * SCALARS or, with three components, VECTORS; its gradient as VECTORS or TENSORS. Reference: VTK File Formats, "Simple Legacy Formats". */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "output.h"
#include "runtime/file.h"

static fmm_status write_doubles(struct fmm_replacement *file, const double *values, int64_t n, int stride) {
  for (int64_t i = 0; i < n; i++) {
    uint64_t bits;
    memcpy(&bits, &values[i * stride], sizeof bits);
    bits = __builtin_bswap64(bits);
    FMM_TRY(fmm_replace_write(file, &bits, sizeof bits));
  }
  return FMM_OK;
}

static fmm_status write_vertices(struct fmm_replacement *file, int64_t n) {
  FMM_TRY(fmm_replace_printf(file, "\nVERTICES %lld %lld\n", (long long)n, (long long)(2 * n)));
  for (int64_t i = 0; i < n; i++) {
    uint32_t cell[2] = {__builtin_bswap32(1), __builtin_bswap32((uint32_t)i)};
    FMM_TRY(fmm_replace_write(file, cell, sizeof cell));
  }
  return FMM_OK;
}

/* One field of one column: count values a target, from values[i * count * columns + k * columns + column]. */
static fmm_status write_field(struct fmm_replacement *file, const fmm_results *r, const char *name, int column, const double *values, int count) {
  const char *kind = count == 1 ? "SCALARS" : count == 3 ? "VECTORS" : count == 9 ? "TENSORS" : NULL;
  char numbered[48];
  snprintf(numbered, sizeof numbered, r->columns > 1 ? "%s_%d" : "%s", name, column);
  if (kind) FMM_TRY(fmm_replace_printf(file, "\n%s %s double%s\n", kind, numbered, count == 1 ? " 1\nLOOKUP_TABLE default" : ""));
  else FMM_TRY(fmm_replace_printf(file, "\nFIELD %s_field 1\n%s %d %lld double\n", numbered, numbered, count, (long long)r->n));
  return write_doubles(file, values + column, r->n * count, r->columns);
}

fmm_status fmm_write_vtk(struct fmm_replacement *file, const fmm_results *r) {
  if (r->n > INT_MAX / 2)
    return FMM_FAIL(FMM_ERR_ARGUMENT, "%lld targets are more than legacy .vtk counts; write .npy", (long long)r->n);
  FMM_TRY(fmm_replace_printf(file, "# vtk DataFile Version 3.0\nhybridfmm results\nBINARY\nDATASET POLYDATA\nPOINTS %lld double\n", (long long)r->n));
  FMM_TRY(write_doubles(file, r->targets, 3 * r->n, 1));
  FMM_TRY(write_vertices(file, r->n));
  FMM_TRY(fmm_replace_printf(file, "\nPOINT_DATA %lld", (long long)r->n));
  for (int c = 0; c < r->columns; c++) {
    FMM_TRY(write_field(file, r, "potential", c, r->potential, r->outputs));
    if (r->gradient) FMM_TRY(write_field(file, r, "gradient", c, r->gradient, 3 * r->outputs));
  }
  return fmm_replace_write(file, "\n", 1);
}
