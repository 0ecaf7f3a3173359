/* What every reader makes: a table of numbers, row-major, and where each row was in its file (for errors). */
#ifndef FMM_IO_TABLE_H
#define FMM_IO_TABLE_H
#include "runtime/memory.h"

typedef struct fmm_table {
  int64_t rows;
  int64_t columns;
  double *values;       /* rows x columns */
  int64_t capacity;     /* values reserved; readers of text grow it */
  int point_columns;    /* 3 where the format itself says that the first three are coordinates (.pqr, .xyz), else 0 */
  int one_dimensional;  /* the file holds a vector (.npy of shape (n,)) */
  int64_t line_not_finite; /* of the first row with a value that is not finite, from 1; 0: there is none, or the file has no lines */
} fmm_table;

/* Room for one more row, whose place is returned in *row; the caller fills it from a line and then counts it. */
fmm_status fmm_table_next_row(fmm_table *table, double **row);
void fmm_table_count_row(fmm_table *table, int64_t line);
void fmm_table_free(fmm_table *table);

/* Readers, one file each. On failure the table is empty. Errors name file and line or byte, and what was expected. */
typedef fmm_status fmm_table_reader(const char *path, fmm_table *table);
fmm_table_reader fmm_read_pqr, fmm_read_npy, fmm_read_csv, fmm_read_xyz;
#endif
