/* Lines and fields of a text file in memory: views, nothing is copied or changed. Carriage returns end lines too, a byte-order mark is skipped. */
#ifndef FMM_IO_TEXT_H
#define FMM_IO_TEXT_H
#include "table.h"

typedef struct fmm_view { const char *begin, *end; } fmm_view;

typedef struct fmm_lines {
  const char *path, *next, *end;
  int64_t number;  /* of the current line, from 1 */
  fmm_view line;   /* the current line, without its end and outer blanks */
  char *text;      /* the whole file, owned */
} fmm_lines;

fmm_status fmm_lines_open(fmm_lines *lines, const char *path);
int fmm_lines_next(fmm_lines *lines); /* zero at the end of the file */
void fmm_lines_close(fmm_lines *lines);

/* Takes the next field of *rest. separator ' ': any run of blanks; else that character, blanks around fields are dropped (fields can be
 * empty). Zero when there is none left. A field list that ends in a separator has an empty last field. */
typedef struct fmm_fields { fmm_view rest; char separator; int ended; } fmm_fields;
fmm_fields fmm_fields_of(fmm_view line, char separator);
int fmm_fields_next(fmm_fields *fields, fmm_view *field);
int64_t fmm_fields_count(fmm_view line, char separator);
/* The character that separates the fields of this line: ';', ',' or ' ', in this order. */
char fmm_separator_of(fmm_view line);

/* A view's text for error messages, in text: its first FMM_QUOTED bytes, what a terminal would not print (control characters, 0, what is not UTF-8) as \xNN. */
enum { FMM_QUOTED = 40, FMM_QUOTED_TEXT = 4 * FMM_QUOTED + 1 };
const char *fmm_quoted(fmm_view view, char text[FMM_QUOTED_TEXT]);

/* The rest of the lines as rows of numbers, starting with the current line. skip: fields before the numbers (an element symbol).
 * most_rows < 0: to the end of the file; otherwise that many rows are expected, neither fewer nor more. Blank lines and lines that
 * begin with # are passed over. expected: what a row is, for errors. */
fmm_status fmm_read_rows(fmm_lines *lines, char separator, int skip, int64_t most_rows, const char *expected, fmm_table *table);
#endif
