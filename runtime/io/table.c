/* A growing table of numbers: capacity doubles, so that reading is linear and a hostile first line reserves nothing. */
#include "table.h"

#include <math.h>
#include <string.h>

fmm_status fmm_table_next_row(fmm_table *table, double **row) {
  int64_t used = table->rows * table->columns; /* cannot overflow: it is allocated */
  if (used + table->columns > table->capacity) {
    int64_t capacity = 2 * table->capacity > used + table->columns ? 2 * table->capacity : 64 + used + table->columns;
    double *larger;
    FMM_TRY(FMM_ALLOCATE(&larger, capacity, "a file's table"));
    if (used) memcpy(larger, table->values, (size_t)used * sizeof *larger);
    FMM_FREE(&table->values);
    table->values = larger, table->capacity = capacity;
  }
  *row = table->values + used;
  return FMM_OK;
}

void fmm_table_count_row(fmm_table *table, int64_t line) {
  const double *row = table->values + table->rows * table->columns;
  for (int64_t j = 0; j < table->columns && !table->line_not_finite; j++)
    if (!isfinite(row[j])) table->line_not_finite = line;
  table->rows++;
}

void fmm_table_free(fmm_table *table) {
  FMM_FREE(&table->values);
  *table = (fmm_table){0};
}
