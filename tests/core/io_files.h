/* A temporary directory and files in it, for the tests of readers and writers. */
#ifndef FMM_TEST_IO_FILES_H
#define FMM_TEST_IO_FILES_H
#include "test.h"
#include <stdlib.h>
#include <unistd.h>
#include "runtime/file.h"

static char directory[64], last_path[128];

static int make_directory(void **state) {
  strcpy(directory, "/tmp/fmm-test-io-XXXXXX");
  return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state) { return rmdir(directory); }

/* The path of a file of this name with these bytes; one file at a time. */
static const char *file_with_bytes(const char *name, const void *bytes, size_t length) {
  snprintf(last_path, sizeof last_path, "%s/%s", directory, name);
  FILE *file = fopen(last_path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, length, file), length);
  assert_int_equal(fclose(file), 0);
  return last_path;
}
static inline const char *file_with(const char *name, const char *text) { return file_with_bytes(name, text, strlen(text)); }
#endif
