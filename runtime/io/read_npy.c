/* Reader of .npy, versions 1 to 3: magic "\x93NUMPY", version, header length (2 or 4 bytes, little-endian), a Python dictionary with
 * 'descr', 'fortran_order' and 'shape', then the array. Little-endian float64 and float32, one or two dimensions; Fortran order is transposed.
 * The header's promise is held against the file's size before anything is reserved. Reference: NumPy, numpy.lib.format. */
#include <stdio.h>
#include <string.h>

#include "number.h"
#include "runtime/file.h"
#include "text.h"

enum { PREFIX = 8, LONGEST_HEADER = 1 << 16, CHUNK = 1 << 15 };

typedef struct npy_header { int64_t rows, columns; int item, fortran, dimensions; } npy_header;

static fmm_status truncated(const fmm_reader *r, const char *what, int64_t needed) {
  return FMM_FAIL(FMM_ERR_INPUT, "%s: ends at byte %lld, in its %s; expected %lld bytes", r->path, (long long)r->position, what, (long long)needed);
}

static fmm_status read_exactly(fmm_reader *r, void *buffer, size_t bytes, const char *what, int64_t needed) {
  size_t got;
  FMM_TRY(fmm_reader_read(r, buffer, bytes, &got));
  return got == bytes ? FMM_OK : truncated(r, what, needed);
}

/* The header's text, terminated, in text. */
static fmm_status read_header_text(fmm_reader *r, char text[LONGEST_HEADER + 1]) {
  unsigned char b[PREFIX + 4];
  FMM_TRY(read_exactly(r, b, PREFIX, "magic string", PREFIX));
  if (memcmp(b, "\x93NUMPY", 6)) return FMM_FAIL(FMM_ERR_INPUT, "%s: byte 0: not a .npy file (it must begin with \\x93NUMPY)", r->path);
  if (b[6] < 1 || b[6] > 3) return FMM_FAIL(FMM_ERR_INPUT, "%s: byte 6: .npy version %d.%d; versions 1 to 3 are read", r->path, b[6], b[7]);
  size_t size_bytes = b[6] == 1 ? 2 : 4, length = 0;
  FMM_TRY(read_exactly(r, b + PREFIX, size_bytes, "header length", (int64_t)(PREFIX + size_bytes)));
  for (size_t i = size_bytes; i-- > 0;) length = length << 8 | b[PREFIX + i];
  if (length > LONGEST_HEADER) return FMM_FAIL(FMM_ERR_INPUT, "%s: byte 8: a header of %zu bytes; at most %d are read", r->path, length, LONGEST_HEADER);
  FMM_TRY(read_exactly(r, text, length, "header", (int64_t)(PREFIX + size_bytes + length)));
  text[length] = 0;
  return FMM_OK;
}

/* The text after 'key': in the dictionary, NULL when it is not there. */
static const char *value_of(const char *text, const char *key) {
  char quoted[32];
  for (const char *quotes = "'\""; *quotes; quotes++) {
    snprintf(quoted, sizeof quoted, "%c%s%c", *quotes, key, *quotes);
    const char *p = strstr(text, quoted);
    if (!p) continue;
    p += strlen(quoted);
    p += strspn(p, " ");
    if (*p++ != ':') return NULL;
    return p + strspn(p, " ");
  }
  return NULL;
}

/* A value of the dictionary for an error text: up to its comma, brackets and quotes respected, or the part of it that fits. */
static const char *excerpt(const char *value, char text[FMM_QUOTED_TEXT + 4]) {
  int depth = 0, n = 0;
  char quote = 0;
  if (!value) return "missing";
  for (const char *p = value; *p && *p != '\n' && n < FMM_QUOTED; p++) {
    if (!depth && !quote && (*p == ',' || *p == '}')) break;
    if (quote ? *p == quote : *p == '\'' || *p == '"') quote = quote ? 0 : *p;
    else if (!quote) depth += (*p == '(' || *p == '[') - (*p == ')' || *p == ']');
    n++;
  }
  while (n && value[n - 1] == ' ') n--;
  fmm_quoted((fmm_view){value, value + n}, text);
  if (n == FMM_QUOTED) strcat(text, " ...");
  return n ? text : "empty";
}

static fmm_status parse_shape(const char *path, const char *shape, npy_header *h) {
  int64_t extents[2] = {0, 1};
  char found[FMM_QUOTED_TEXT + 4];
  const char *p = shape;
  int valid = p && *p++ == '(';
  while (valid) {
    p += strspn(p, " ");
    if (*p == ')') break;
    size_t digits = strspn(p, "0123456789");
    valid = h->dimensions < 2 && fmm_parse_count(p, p + digits, &extents[h->dimensions]);
    h->dimensions++;
    p += digits;
    p += strspn(p, " ");
    if (*p == ',') p++;
    else valid = valid && *p == ')';
  }
  h->rows = extents[0], h->columns = extents[1];
  if (valid && h->dimensions) return FMM_OK;
  return FMM_FAIL(FMM_ERR_INPUT, "%s: the shape in its header is %s; expected (n, columns) or (n,)", path, excerpt(shape, found));
}

static fmm_status parse_header(const char *path, const char *text, npy_header *h) {
  const char *descr = value_of(text, "descr"), *order = value_of(text, "fortran_order");
  char found[FMM_QUOTED_TEXT + 4];
  *h = (npy_header){0};
  if (descr && strlen(descr) >= 5 && (!strncmp(descr + 1, "<f8", 3) || !strncmp(descr + 1, "<f4", 3)) && descr[4] == descr[0]) h->item = descr[3] - '0';
  else return FMM_FAIL(FMM_ERR_INPUT, "%s: the descr in its header is %s; expected '<f8' (float64) or '<f4' (float32), as numpy's .astype('float64') gives", path, excerpt(descr, found));
  if (order && !strncmp(order, "True", 4)) h->fortran = 1;
  else if (!order || strncmp(order, "False", 5))
    return FMM_FAIL(FMM_ERR_INPUT, "%s: the fortran_order in its header is %s; expected True or False", path, excerpt(order, found));
  return parse_shape(path, value_of(text, "shape"), h);
}

/* The bytes of the array, held against the file's size. */
static fmm_status check_size(const fmm_reader *r, const npy_header *h) {
  int64_t bytes, here = r->position;
  if (__builtin_mul_overflow(h->rows, h->columns, &bytes) || __builtin_mul_overflow(bytes, (int64_t)h->item, &bytes) ||
      bytes > INT64_MAX - here)
    return FMM_FAIL(FMM_ERR_INPUT, "%s: a shape of %lld x %lld is more than any file holds", r->path, (long long)h->rows, (long long)h->columns);
  if (r->size < 0) return FMM_FAIL(FMM_ERR_INPUT, "%s: is not a regular file; .npy is read from regular files only", r->path);
  if (r->size < here + bytes)
    return FMM_FAIL(FMM_ERR_INPUT, "%s: ends at byte %lld; %lld x %lld values of %d bytes from byte %lld on need %lld bytes", r->path,
                    (long long)r->size, (long long)h->rows, (long long)h->columns, h->item, (long long)here, (long long)(here + bytes));
  if (r->size > here + bytes)
    return FMM_FAIL(FMM_ERR_INPUT, "%s: byte %lld: the file goes on after its %lld x %lld values", r->path, (long long)(here + bytes),
                    (long long)h->rows, (long long)h->columns);
  return FMM_OK;
}

static fmm_status read_values(fmm_reader *r, const npy_header *h, int64_t n, double *values) {
  float chunk[CHUNK];
  int64_t needed = r->position + n * h->item;
  if (h->item == 8) return read_exactly(r, values, (size_t)n * sizeof *values, "array", needed);
  for (int64_t done = 0; done < n;) {
    int64_t part = n - done < CHUNK ? n - done : CHUNK;
    FMM_TRY(read_exactly(r, chunk, (size_t)part * sizeof *chunk, "array", needed));
    for (int64_t i = 0; i < part; i++) values[done + i] = chunk[i];
    done += part;
  }
  return FMM_OK;
}

static fmm_status transpose(fmm_table *t) {
  double *rows;
  FMM_TRY(FMM_ALLOCATE(&rows, t->rows * t->columns, "a file's table"));
  for (int64_t i = 0; i < t->rows; i++)
    for (int64_t j = 0; j < t->columns; j++) rows[i * t->columns + j] = t->values[j * t->rows + i];
  FMM_FREE(&t->values);
  t->values = rows;
  return FMM_OK;
}

static fmm_status read_array(fmm_reader *r, char *text, fmm_table *table) {
  npy_header h;
  FMM_TRY(read_header_text(r, text));
  FMM_TRY(parse_header(r->path, text, &h));
  FMM_TRY(check_size(r, &h));
  *table = (fmm_table){.rows = h.rows, .columns = h.columns, .capacity = h.rows * h.columns, .one_dimensional = h.dimensions == 1};
  FMM_TRY(FMM_ALLOCATE(&table->values, table->capacity, "a file's table"));
  FMM_TRY(read_values(r, &h, table->capacity, table->values));
  return h.fortran && h.dimensions == 2 ? transpose(table) : FMM_OK;
}

fmm_status fmm_read_npy(const char *path, fmm_table *table) {
  fmm_reader reader;
  char *text = NULL;
  *table = (fmm_table){0};
  FMM_TRY(fmm_reader_open(&reader, path));
  fmm_status status = FMM_ALLOCATE(&text, LONGEST_HEADER + 1, "a .npy header");
  if (status == FMM_OK) status = read_array(&reader, text, table);
  if (status != FMM_OK) fmm_table_free(table);
  FMM_FREE(&text);
  fmm_reader_close(&reader);
  return status;
}
