/* Reader of .xyz: a line with the number of points, a comment line, then a line a point: [element] x y z [densities...].
 * Files without the first two lines (point clouds: x y z a line) are read too. One frame only. */
#include "number.h"
#include "text.h"

static const char expected[] = "[element] x y z [densities]";

static int starts_with_word(fmm_view line) {
  fmm_fields fields = fmm_fields_of(line, fmm_separator_of(line));
  fmm_view field;
  double ignored;
  return fmm_fields_next(&fields, &field) && !fmm_parse_number(field.begin, field.end, &ignored);
}

static fmm_status read_points(fmm_lines *lines, int64_t count, fmm_table *table) {
  char separator = fmm_separator_of(lines->line);
  int skip = starts_with_word(lines->line);
  int64_t fields = fmm_fields_count(lines->line, separator);
  if (fields - skip < 3)
    return FMM_FAIL(FMM_ERR_INPUT, "%s:%lld: %lld fields; expected %s", lines->path, (long long)lines->number, (long long)fields, expected);
  table->columns = fields - skip;
  return fmm_read_rows(lines, separator, skip, count, expected, table);
}

static fmm_status read_lines(fmm_lines *lines, fmm_table *table) {
  int64_t count = -1;
  char quoted[FMM_QUOTED_TEXT];
  table->point_columns = table->columns = 3;
  if (!fmm_lines_next(lines)) return FMM_FAIL(FMM_ERR_INPUT, "%s:1: the file is empty; expected the number of points", lines->path);
  if (fmm_fields_count(lines->line, ' ') == 1 && fmm_separator_of(lines->line) == ' ') {
    if (!fmm_parse_count(lines->line.begin, lines->line.end, &count))
      return FMM_FAIL(FMM_ERR_INPUT, "%s:1: '%s' is not a number of points", lines->path, fmm_quoted(lines->line, quoted));
    fmm_lines_next(lines); /* the comment */
    int more = fmm_lines_next(lines);
    if (count == 0 && !more) return FMM_OK;
    if (!more) return FMM_FAIL(FMM_ERR_INPUT, "%s:%lld: the file ends before the first of %lld points", lines->path, (long long)lines->number, (long long)count);
  }
  while (lines->line.begin == lines->line.end || *lines->line.begin == '#')
    if (!fmm_lines_next(lines)) {
      if (count <= 0) return FMM_OK;
      return FMM_FAIL(FMM_ERR_INPUT, "%s:%lld: the file ends before the first of %lld points", lines->path, (long long)lines->number, (long long)count);
    }
  return read_points(lines, count, table);
}

fmm_status fmm_read_xyz(const char *path, fmm_table *table) {
  fmm_lines lines;
  *table = (fmm_table){0};
  FMM_TRY(fmm_lines_open(&lines, path));
  fmm_status status = read_lines(&lines, table);
  if (status != FMM_OK) fmm_table_free(table);
  fmm_lines_close(&lines);
  return status;
}
