/* Reader of .pqr (molecules with charges): of every ATOM and HETATM record the last five blank-separated fields are x y z charge radius;
 * a second MODEL is refused; at least five fields come before them (record, number, atom, residue, its number), or three, where some of these touch. Those vary between programs and are only counted; other
 * records are passed over. Makes x y z charge.
 * Reference: APBS, documentation of the PQR format. */
#include <string.h>
#include <strings.h>

#include "number.h"
#include "text.h"

enum { HEAD = 5, TAIL = 5 };

/* In any case of letters: a record that is passed over is a charge that is lost. */
static int begins(fmm_view line, const char *name) {
  const size_t n = strlen(name);
  return (size_t)(line.end - line.begin) >= n && !strncasecmp(line.begin, name, n);
}

static int is_atom(fmm_view line) { return begins(line, "ATOM") || begins(line, "HETATM"); }

/* Fields without a blank between them, as large numbers and long names make them (ARGA1000, HH11ARG): two at most, where what would be x has a decimal point, as the residue's number, which
 * stands there where the radius is missing, has not. */
enum { MOST_JOINED = 2 };
static int has_point(fmm_view line, int64_t number) {
  fmm_fields fields = fmm_fields_of(line, ' ');
  fmm_view field;
  for (int64_t i = 0; fmm_fields_next(&fields, &field); i++)
    if (i == number) return memchr(field.begin, '.', (size_t)(field.end - field.begin)) != NULL;
  return 0;
}

/* Digits alone. */
static int is_whole(fmm_view line, int64_t number) {
  fmm_fields fields = fmm_fields_of(line, ' ');
  fmm_view field;
  int64_t value;
  for (int64_t i = 0; fmm_fields_next(&fields, &field); i++)
    if (i == number) return fmm_parse_count(field.begin + (*field.begin == '-'), field.end, &value);
  return 0;
}

/* Numbers of five digits touch the record's name: HETATM12345 is one field for two. */
static int number_joined(fmm_view line) { return begins(line, "HETATM") && line.begin[6] >= '0' && line.begin[6] <= '9'; }

static fmm_status parse_atom(const fmm_lines *lines, double row[4]) {
  static const char *const names[TAIL] = {"x", "y", "z", "charge", "radius"};
  int64_t before = fmm_fields_count(lines->line, ' ') - TAIL;
  fmm_fields fields = fmm_fields_of(lines->line, ' ');
  fmm_view field;
  char quoted[FMM_QUOTED_TEXT];
  if (before + number_joined(lines->line) < HEAD && (before < HEAD - MOST_JOINED || !has_point(lines->line, before)))
    return FMM_FAIL(FMM_ERR_INPUT, "%s:%lld: %lld fields; expected record, number, atom, residue and its number, then x y z charge radius, separated by blanks",
                    lines->path, (long long)lines->number, (long long)(before + TAIL));
  if (before + number_joined(lines->line) == HEAD && is_whole(lines->line, before) && has_point(lines->line, before + 1)) /* with a chain's name, which is a field more, and no radius */
    return FMM_FAIL(FMM_ERR_INPUT, "%s:%lld: of the last five fields, which are x y z charge radius, the first is a whole number and the second is not, as where the radius is missing and the residue's number is taken for x; add the radius, or write x with a decimal point",
                    lines->path, (long long)lines->number);
  for (int64_t i = -before; fmm_fields_next(&fields, &field); i++) {
    double value;
    if (i < 0) continue;
    if (!fmm_parse_number(field.begin, field.end, &value))
      return FMM_FAIL(FMM_ERR_INPUT, "%s:%lld: the %s, '%s', is not a number; the last five fields of an atom must be x y z charge radius, separated by blanks",
                      lines->path, (long long)lines->number, names[i], fmm_quoted(field, quoted));
    if (i < 4) row[i] = value;
  }
  return FMM_OK;
}

static fmm_status read_atoms(fmm_lines *lines, fmm_table *table) {
  while (fmm_lines_next(lines)) {
    double *row;
    if (begins(lines->line, "MODEL") && table->rows)
      return FMM_FAIL(FMM_ERR_INPUT, "%s:%lld: a second MODEL; their atoms would be summed together: give each a file of its own", lines->path, (long long)lines->number);
    if (!is_atom(lines->line)) continue;
    FMM_TRY(fmm_table_next_row(table, &row));
    FMM_TRY(parse_atom(lines, row));
    fmm_table_count_row(table, lines->number);
  }
  if (!table->rows) return FMM_FAIL(FMM_ERR_INPUT, "%s: no ATOM or HETATM record in its %lld lines", lines->path, (long long)lines->number);
  return FMM_OK;
}

fmm_status fmm_read_pqr(const char *path, fmm_table *table) {
  fmm_lines lines;
  *table = (fmm_table){.columns = 4, .point_columns = 3};
  FMM_TRY(fmm_lines_open(&lines, path));
  fmm_status status = read_atoms(&lines, table);
  if (status != FMM_OK) fmm_table_free(table);
  fmm_lines_close(&lines);
  return status;
}
