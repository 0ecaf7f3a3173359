/* Lines, fields and rows of numbers; see text.h. */
#include "text.h"

#include <stdio.h>
#include <string.h>

#include "number.h"
#include "runtime/file.h"

static int is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }

static fmm_view trimmed(fmm_view v) {
  while (v.begin < v.end && is_blank(*v.begin)) v.begin++;
  while (v.begin < v.end && is_blank(v.end[-1])) v.end--;
  return v;
}

/* Without the quotes around it, which spreadsheets write. */
static fmm_view unquoted(fmm_view v) {
  if (v.end - v.begin >= 2 && *v.begin == '"' && v.end[-1] == '"') v.begin++, v.end--;
  return trimmed(v);
}

fmm_status fmm_lines_open(fmm_lines *lines, const char *path) {
  size_t length;
  *lines = (fmm_lines){.path = path};
  FMM_TRY(fmm_file_read_all(path, &lines->text, &length));
  lines->next = lines->text, lines->end = lines->text + length;
  if (length >= 3 && !memcmp(lines->text, "\xef\xbb\xbf", 3)) lines->next += 3;
  return FMM_OK;
}

int fmm_lines_next(fmm_lines *lines) {
  if (lines->next >= lines->end) return 0;
  const char *end = memchr(lines->next, '\n', (size_t)(lines->end - lines->next));
  if (!end) end = lines->end;
  lines->line = trimmed((fmm_view){lines->next, end});
  lines->next = end + 1;
  lines->number++;
  return 1;
}

void fmm_lines_close(fmm_lines *lines) { FMM_FREE(&lines->text); }

fmm_fields fmm_fields_of(fmm_view line, char separator) {
  line = trimmed(line);
  return (fmm_fields){line, separator, line.begin == line.end};
}

int fmm_fields_next(fmm_fields *fields, fmm_view *field) {
  const char *p = fields->rest.begin, *end = fields->rest.end;
  if (fields->ended) return 0;
  if (p < end && *p == '"') { /* a separator within quotes is none */
    const char *close = memchr(p + 1, '"', (size_t)(end - p - 1));
    p = close ? close : p;
  }
  while (p < end && (fields->separator == ' ' ? !is_blank(*p) : *p != fields->separator)) p++;
  *field = unquoted(trimmed((fmm_view){fields->rest.begin, p}));
  fields->ended = p == end;
  if (p < end) p++;
  while (p < end && is_blank(*p)) p++;
  fields->rest.begin = p;
  return 1;
}

int64_t fmm_fields_count(fmm_view line, char separator) {
  fmm_fields fields = fmm_fields_of(line, separator);
  fmm_view field;
  int64_t n = 0;
  while (fmm_fields_next(&fields, &field)) n++;
  return n;
}

char fmm_separator_of(fmm_view line) {
  size_t n = (size_t)(line.end - line.begin);
  return memchr(line.begin, ';', n) ? ';' : memchr(line.begin, ',', n) ? ',' : ' ';
}

/* Bytes of the printable character at p: 1 of ASCII, 2 to 4 of UTF-8 from U+00A0 on; 0 of anything else. Overlong forms, halves of pairs and what lies above U+10FFFF are none. */
static int printable(const char *p, const char *end) {
  const unsigned char *u = (const unsigned char *)p;
  static const uint32_t least[] = {0, 0, 0xa0, 0x800, 0x10000};
  const int n = u[0] < 0x80 ? 1 : u[0] >> 5 == 6 ? 2 : u[0] >> 4 == 14 ? 3 : u[0] >> 3 == 30 ? 4 : 0;
  if (n == 1) return u[0] >= ' ' && u[0] != 127;
  if (!n || end - p < n) return 0;
  uint32_t code = u[0] & (0x7fu >> n);
  for (int i = 1; i < n; i++) {
    if (u[i] >> 6 != 2) return 0;
    code = code << 6 | (u[i] & 0x3f);
  }
  return code >= least[n] && code <= 0x10ffff && code >> 11 != 0x1b ? n : 0;
}

const char *fmm_quoted(fmm_view view, char text[FMM_QUOTED_TEXT]) {
  char *out = text;
  for (const char *p = view.begin; p < view.end && p - view.begin < FMM_QUOTED;) {
    const int n = printable(p, view.end);
    if (n && p - view.begin + n > FMM_QUOTED) break; /* no half of a character */
    if (n) memcpy(out, p, (size_t)n), out += n, p += n;
    else out += sprintf(out, "\\x%02x", (unsigned char)*p++);
  }
  *out = 0;
  return text;
}

static fmm_status parse_row(const fmm_lines *lines, char separator, int skip, const char *expected, int64_t columns, double *row) {
  fmm_fields fields = fmm_fields_of(lines->line, separator);
  fmm_view field;
  char quoted[FMM_QUOTED_TEXT];
  int64_t found = -skip;
  for (; fmm_fields_next(&fields, &field); found++) {
    if (found < 0 || found >= columns) continue;
    if (!fmm_parse_number(field.begin, field.end, &row[found]))
      return FMM_FAIL(FMM_ERR_INPUT, "%s:%lld: field %lld, '%s', is not a number; expected %s, with decimal points", lines->path,
                      (long long)lines->number, (long long)(found + skip + 1), fmm_quoted(field, quoted), expected);
  }
  if (found != columns)
    return FMM_FAIL(FMM_ERR_INPUT, "%s:%lld: %lld numbers where the lines before have %lld; expected %s", lines->path,
                    (long long)lines->number, (long long)(found < 0 ? 0 : found), (long long)columns, expected);
  return FMM_OK;
}

static int passed_over(fmm_view line) { return line.begin == line.end || *line.begin == '#'; }

fmm_status fmm_read_rows(fmm_lines *lines, char separator, int skip, int64_t most_rows, const char *expected, fmm_table *table) {
  int more = lines->number > 0;
  for (; more; more = fmm_lines_next(lines)) {
    double *row;
    if (passed_over(lines->line)) continue;
    if (most_rows >= 0 && table->rows == most_rows)
      return FMM_FAIL(FMM_ERR_INPUT, "%s:%lld: more lines than the %lld that line 1 promises", lines->path, (long long)lines->number,
                      (long long)most_rows);
    FMM_TRY(fmm_table_next_row(table, &row));
    FMM_TRY(parse_row(lines, separator, skip, expected, table->columns, row));
    fmm_table_count_row(table, lines->number);
  }
  if (most_rows >= 0 && table->rows < most_rows)
    return FMM_FAIL(FMM_ERR_INPUT, "%s:%lld: the file ends after %lld of the %lld points that line 1 promises", lines->path,
                    (long long)lines->number, (long long)table->rows, (long long)most_rows);
  return FMM_OK;
}
