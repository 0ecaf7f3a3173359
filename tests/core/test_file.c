/* The file seam: whole reads, atomic replacement, and every injected fault leaving the old file and no temporary behind. */
#include "test.h"
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "runtime/file.h"

static char directory[64], path[128];

static int make_directory(void **state) {
  strcpy(directory, "/tmp/fmm-test-file-XXXXXX");
  if (!mkdtemp(directory)) return -1;
  snprintf(path, sizeof path, "%s/data", directory);
  return 0;
}

static int remove_directory(void **state) {
  fmm_file_fail_at(0, 0);
  unlink(path);
  return rmdir(directory);
}

static int entries(void) {
  int n = 0;
  DIR *d = opendir(directory);
  for (struct dirent *e; (e = readdir(d));) n += e->d_name[0] != '.';
  closedir(d);
  return n;
}

static void assert_holds(const char *expected) {
  char *text;
  size_t length;
  assert_ok(fmm_file_read_all(path, &text, &length));
  assert_int_equal(length, strlen(expected));
  assert_string_equal(text, expected);
  FMM_FREE(&text);
}

static void a_file_is_read_whole_and_terminated(void **state) {
  assert_ok(fmm_file_replace(path, "hello\n", 6));
  assert_holds("hello\n");
  assert_ok(fmm_file_replace(path, "", 0));
  assert_holds("");
  assert_int_equal(entries(), 1);
}

static void a_pipe_of_unknown_size_is_read_whole(void **state) {
  int ends[2];
  char name[64], *text;
  size_t length;
  assert_int_equal(pipe(ends), 0);
  assert_int_equal(write(ends[1], "abc", 3), 3);
  close(ends[1]);
  snprintf(name, sizeof name, "/dev/fd/%d", ends[0]);
  assert_ok(fmm_file_read_all(name, &text, &length));
  assert_string_equal(text, "abc");
  FMM_FREE(&text);
  close(ends[0]);
}

/* A file, a pipe and a device that has no end. */
static void a_file_with_more_than_it_can_have_is_refused(void **state) {
  char *text = NULL, name[64];
  size_t length;
  int ends[2];
  assert_ok(fmm_file_replace(path, "12345", 5));
  assert_ok(fmm_file_read_at_most(path, 5, &text, &length));
  assert_int_equal(length, 5);
  FMM_FREE(&text);
  assert_int_equal(fmm_file_read_at_most(path, 4, &text, &length), FMM_ERR_INPUT);
  assert_non_null(strstr(fmm_last_error(), path));
  assert_int_equal(pipe(ends), 0);
  assert_int_equal(write(ends[1], "12345", 5), 5);
  close(ends[1]);
  snprintf(name, sizeof name, "/dev/fd/%d", ends[0]);
  assert_int_equal(fmm_file_read_at_most(name, 4, &text, &length), FMM_ERR_INPUT);
  close(ends[0]);
  assert_int_equal(fmm_file_read_at_most("/dev/zero", 1 << 20, &text, &length), FMM_ERR_INPUT);
  assert_non_null(strstr(fmm_last_error(), "/dev/zero: has more than the 1048576 bytes"));
  assert_null(text);
}

static void missing_files_and_directories_are_input_errors_that_name_the_path(void **state) {
  char *text = NULL;
  size_t length;
  assert_int_equal(fmm_file_read_all("/nonexistent/x.csv", &text, &length), FMM_ERR_INPUT);
  assert_non_null(strstr(fmm_last_error(), "/nonexistent/x.csv"));
  assert_non_null(strstr(fmm_last_error(), strerror(ENOENT)));
  assert_int_equal(fmm_file_read_all(directory, &text, &length), FMM_ERR_INPUT);
  assert_non_null(strstr(fmm_last_error(), "directory"));
  assert_null(text);
  assert_int_equal(fmm_file_replace("/nonexistent/x", "a", 1), FMM_ERR_FILE);
  assert_int_equal(fmm_file_replace(directory, "a", 1), FMM_ERR_FILE);
  assert_int_equal(fmm_file_check_writable("/nonexistent/x"), FMM_ERR_FILE);
  assert_ok(fmm_file_check_writable(path));
  assert_int_equal(entries(), 0);
}

static fmm_status replace_with(size_t length) {
  char *bytes = malloc(length);
  memset(bytes, 'x', length);
  fmm_status status = fmm_file_replace(path, bytes, length);
  free(bytes);
  return status;
}

static void every_failing_call_leaves_the_old_file_and_no_temporary(void **state) {
  const int errors[] = {ENOSPC, EIO, EDQUOT};
  const size_t lengths[] = {10, 1 << 20}; /* within the buffer, and beyond it */
  assert_ok(fmm_file_replace(path, "old", 3));
  for (int e = 0; e < 3; e++)
    for (int l = 0; l < 2; l++) {
      int64_t before = fmm_file_calls(), needed;
      assert_ok(replace_with(lengths[l]));
      needed = fmm_file_calls() - before;
      assert_true(needed >= 4); /* open, write, fsync, close, rename */
      assert_ok(fmm_file_replace(path, "old", 3));
      for (int64_t n = 1; n <= needed; n++) {
        fmm_file_fail_at(n, errors[e]);
        assert_int_equal(replace_with(lengths[l]), FMM_ERR_FILE);
        assert_non_null(strstr(fmm_last_error(), strerror(errors[e])));
        assert_non_null(strstr(fmm_last_error(), path));
        fmm_file_fail_at(0, 0);
        assert_holds("old");
        assert_int_equal(entries(), 1);
      }
    }
}

static void transfers_of_one_byte_and_failing_reads_are_handled(void **state) {
  fmm_file_fail_at(1, FMM_FILE_SHORT);
  assert_ok(fmm_file_replace(path, "short transfers", 15));
  assert_holds("short transfers");
  char *text = NULL;
  size_t length;
  for (int n = 1; n <= 2; n++) { /* open, first read */
    fmm_file_fail_at(n, EIO);
    assert_int_equal(fmm_file_read_all(path, &text, &length), FMM_ERR_INPUT);
    assert_null(text);
  }
}

static void failing_allocation_leaks_and_loses_nothing(void **state) {
  assert_ok(fmm_file_replace(path, "old", 3));
  size_t held = fmm_memory_now();
  for (int n = 1; n <= 3; n++) {
    fmm_memory_fail_at(n);
    assert_int_equal(fmm_file_replace(path, "new", 3), FMM_ERR_MEMORY);
    assert_int_equal(entries(), 1);
  }
  fmm_memory_fail_at(0);
  assert_holds("old");
  assert_int_equal(fmm_memory_now(), held);
}

static void a_link_is_followed_and_the_mode_kept(void **state) {
  char link_path[128];
  struct stat s;
  snprintf(link_path, sizeof link_path, "%s/link", directory);
  assert_ok(fmm_file_replace(path, "old", 3));
  assert_int_equal(chmod(path, 0640), 0);
  assert_int_equal(symlink("data", link_path), 0);
  assert_ok(fmm_file_replace(link_path, "new", 3));
  assert_holds("new");
  assert_int_equal(lstat(link_path, &s), 0);
  assert_true(S_ISLNK(s.st_mode));
  assert_int_equal(stat(path, &s), 0);
  assert_int_equal(s.st_mode & 0777, 0640);
  unlink(link_path);
}

/* Whoever made it, and whatever is made there later: nothing is written through it, and it stays. */
static void a_link_to_what_is_not_there_is_refused(void **state) {
  char link_path[128];
  struct stat s;
  static const char *const targets[] = {"data", "link"}; /* not there; to itself */
  snprintf(link_path, sizeof link_path, "%s/link", directory);
  unlink(path);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(symlink(targets[i], link_path), 0);
    assert_int_equal(fmm_file_check_writable(link_path), FMM_ERR_FILE);
    assert_int_equal(fmm_file_replace(link_path, "x", 1), FMM_ERR_FILE);
    assert_non_null(strstr(fmm_last_error(), "a link to a file that is not there"));
    assert_int_equal(lstat(link_path, &s), 0);
    assert_true(S_ISLNK(s.st_mode));
    assert_int_equal(access(path, F_OK), -1);
    unlink(link_path);
  }
}

/* By the names that a shell gives it. */
static void a_pipe_is_written_through_its_link(void **state) {
  int ends[2];
  char name[64], got[8] = "";
  assert_int_equal(pipe(ends), 0);
  snprintf(name, sizeof name, "/dev/fd/%d", ends[1]);
  assert_ok(fmm_file_check_writable(name));
  assert_ok(fmm_file_replace(name, "hello", 5));
  assert_int_equal(read(ends[0], got, sizeof got), 5);
  assert_string_equal(got, "hello");
  close(ends[0]), close(ends[1]);
}

static void a_device_is_written_directly_and_its_full_disk_reported(void **state) {
  assert_ok(fmm_file_replace("/dev/null", "x", 1));
  assert_int_equal(fmm_file_replace("/dev/full", "x", 1), FMM_ERR_FILE);
  assert_non_null(strstr(fmm_last_error(), strerror(ENOSPC)));
}

static void a_handler_can_remove_what_is_under_way(void **state) {
  fmm_replacement r;
  assert_ok(fmm_replace_begin(&r, path));
  assert_ok(fmm_replace_printf(&r, "%d\n", 7));
  assert_int_equal(entries(), 1);
  fmm_file_remove_temporaries();
  assert_int_equal(entries(), 0);
  fmm_replace_abandon(&r);
}

/* Temporaries are files of their own, whatever other writers of the same file name theirs, and fit beside the longest name. */
static void two_writers_at_once_leave_one_whole_file(void **state) {
  fmm_replacement first, second;
  char text[3] = "";
  assert_ok(fmm_replace_begin(&first, path));
  assert_ok(fmm_replace_begin(&second, path));
  assert_int_equal(entries(), 2);
  assert_ok(fmm_replace_printf(&first, "%d\n", 7));
  assert_ok(fmm_replace_printf(&second, "%d\n", 8));
  assert_ok(fmm_replace_commit(&second));
  assert_ok(fmm_replace_commit(&first));
  assert_int_equal(entries(), 1);
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  assert_int_equal(fread(text, 1, sizeof text, file), 2);
  assert_memory_equal(text, "7\n", 2);
  fclose(file);
}

static void the_longest_name_can_be_written(void **state) {
  char name[512];
  const int begin = snprintf(name, sizeof name, "%s/", directory);
  memset(name + begin, 'n', 255), name[begin + 255] = 0;
  assert_ok(fmm_file_replace(name, "x", 1));
  assert_int_equal(entries(), 1);
  assert_int_equal(unlink(name), 0);
  name[begin + 255] = 'n', name[begin + 256] = 0;
  assert_int_equal(fmm_file_check_writable(name), FMM_ERR_FILE);
  assert_non_null(strstr(fmm_last_error(), strerror(ENAMETOOLONG)));
  assert_int_equal(entries(), 0);
}

static void parents_are_made(void **state) {
  char deep[128];
  snprintf(deep, sizeof deep, "%s/a/b/c", directory);
  assert_ok(fmm_file_make_parents(deep));
  assert_ok(fmm_file_make_parents(deep));
  assert_ok(fmm_file_check_writable(deep));
  snprintf(deep, sizeof deep, "%s/a/b", directory);
  assert_int_equal(rmdir(deep), 0);
  snprintf(deep, sizeof deep, "%s/a", directory);
  assert_int_equal(rmdir(deep), 0);
  assert_int_equal(fmm_file_make_parents("/proc/no/such"), FMM_ERR_FILE);
}

int main(void) {
#define FILE_TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)
  const struct CMUnitTest tests[] = {FILE_TEST(a_file_is_read_whole_and_terminated), FILE_TEST(a_pipe_of_unknown_size_is_read_whole),
                                     FILE_TEST(a_file_with_more_than_it_can_have_is_refused), FILE_TEST(missing_files_and_directories_are_input_errors_that_name_the_path),
                                     FILE_TEST(every_failing_call_leaves_the_old_file_and_no_temporary),
                                     FILE_TEST(transfers_of_one_byte_and_failing_reads_are_handled),
                                     FILE_TEST(failing_allocation_leaks_and_loses_nothing), FILE_TEST(a_link_is_followed_and_the_mode_kept), FILE_TEST(a_link_to_what_is_not_there_is_refused), FILE_TEST(a_pipe_is_written_through_its_link),
                                     FILE_TEST(a_device_is_written_directly_and_its_full_disk_reported),
                                     FILE_TEST(a_handler_can_remove_what_is_under_way), FILE_TEST(two_writers_at_once_leave_one_whole_file),
                                     FILE_TEST(the_longest_name_can_be_written), FILE_TEST(parents_are_made)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
