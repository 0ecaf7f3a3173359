/* Reader of .csv: one row a line, numbers separated by commas, semicolons or blanks (the first line decides), in quotes or not, an optional header line
 * of names, blank lines and # comments passed over. Numbers have decimal points: a comma as decimal mark is an error, not a column. */
#include <string.h>

#include "number.h"
#include "text.h"

static const char expected[] = "numbers separated by commas, semicolons or blanks";

static int is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (unsigned char)c >= 0x80; }

/* A name has a letter, of any alphabet, and does not begin as numbers do, with a sign of any kind among them: what does and is none, in a header's place too, is a mistake. */
static int is_name(fmm_view field) {
  static const char minus[] = "\xe2\x88\x92"; /* U+2212 */
  int letters = 0;
  for (const char *p = field.begin; p < field.end; p++) letters += is_letter(*p);
  if (!letters || (field.end - field.begin >= 3 && !memcmp(field.begin, minus, 3))) return 0;
  const char c = *field.begin;
  return !((c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == '\'');
}

static int is_header(fmm_view line, char separator) {
  fmm_fields fields = fmm_fields_of(line, separator);
  fmm_view field;
  double ignored;
  int names = 0, numbers = 0;
  while (fmm_fields_next(&fields, &field)) {
    if (fmm_parse_number(field.begin, field.end, &ignored)) numbers++;
    else names += is_name(field);
  }
  return names > 0 && numbers == 0;
}

/* The coordinate that a name speaks of, small: x, "X", y [m], pos_x, position.y, r_z; 0: none. */
static char axis_of(fmm_view name) {
  static const char *const stems[] = {"", "pos", "position", "coord", "r"};
  char small[32] = "";
  size_t n = 0;
  for (const char *p = name.begin; p < name.end && n + 1 < sizeof small && !strchr("[({", *p); p++) /* without a unit */
    if (!strchr("\" _.-", *p)) small[n++] = (char)(*p | 0x20);
  if (!n || small[n - 1] < 'x' || small[n - 1] > 'z') return 0;
  for (size_t i = 0; i < sizeof stems / sizeof *stems; i++)
    if (n - 1 == strlen(stems[i]) && !strncmp(small, stems[i], n - 1)) return small[n - 1];
  return 0;
}

/* Columns are taken by their place, not by their names: x, y and z elsewhere than at the beginning are not to be read as something else. */
static fmm_status check_header(const fmm_lines *lines, char separator) {
  fmm_fields fields = fmm_fields_of(lines->line, separator);
  fmm_view field;
  int64_t at[3] = {-1, -1, -1};
  for (int64_t column = 0; fmm_fields_next(&fields, &field); column++) {
    const char axis = axis_of(field);
    if (axis && at[axis - 'x'] < 0) at[axis - 'x'] = column;
  }
  if (at[0] < 0 || at[1] < 0 || at[2] < 0 || (at[0] == 0 && at[1] == 1 && at[2] == 2)) return FMM_OK;
  return FMM_FAIL(FMM_ERR_INPUT, "%s:%lld: the header has x, y and z in columns %lld, %lld and %lld; columns are read by their place: put these first, in this order, and what is neither they nor a density out of the file", lines->path,
                  (long long)lines->number, (long long)at[0] + 1, (long long)at[1] + 1, (long long)at[2] + 1);
}

static int first_content(fmm_lines *lines) {
  while (fmm_lines_next(lines))
    if (lines->line.begin < lines->line.end && *lines->line.begin != '#') return 1;
  return 0;
}

static fmm_status read_lines(fmm_lines *lines, fmm_table *table) {
  if (!first_content(lines)) return FMM_FAIL(FMM_ERR_INPUT, "%s: holds no line of numbers; expected %s", lines->path, expected);
  char separator = fmm_separator_of(lines->line);
  table->columns = fmm_fields_count(lines->line, separator);
  if (is_header(lines->line, separator)) {
    FMM_TRY(check_header(lines, separator));
    if (!first_content(lines)) return FMM_OK; /* a header alone: no rows */
    char of_rows = fmm_separator_of(lines->line); /* a header of names may be set differently */
    if (of_rows != separator) separator = of_rows, table->columns = fmm_fields_count(lines->line, separator);
  }
  return fmm_read_rows(lines, separator, 0, -1, expected, table);
}

fmm_status fmm_read_csv(const char *path, fmm_table *table) {
  fmm_lines lines;
  *table = (fmm_table){0};
  FMM_TRY(fmm_lines_open(&lines, path));
  fmm_status status = read_lines(&lines, table);
  if (status != FMM_OK) fmm_table_free(table);
  fmm_lines_close(&lines);
  return status;
}
