/* Files behind one seam: see file.h. All system calls go through the few `call_` wrappers, where faults are injected and
 * interrupted calls are repeated. */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { BUFFER_BYTES = 1 << 18, MAX_TEMPORARIES = 16, LARGEST_TRANSFER = 1 << 30, MOST_OF_NAME = 200 /* bytes of a file's name in its temporary's, as names have 255 at most */, MOST_TRIES = 100 };

static atomic_llong calls, fail_at;
static atomic_int fail_error;
static _Atomic(char *) temporaries[MAX_TEMPORARIES];

void fmm_file_fail_at(int64_t nth, int error) {
  atomic_store(&fail_error, error);
  atomic_store(&fail_at, nth ? atomic_load(&calls) + nth : 0);
}
int64_t fmm_file_calls(void) { return atomic_load(&calls); }

/* Counts a call; nonzero (errno set) when it is the one to fail. */
static int injected(void) {
  long long number = atomic_fetch_add(&calls, 1) + 1;
  int error = atomic_load(&fail_error);
  if (number != atomic_load(&fail_at) || error <= 0) return 0;
  errno = error;
  return 1;
}

static size_t transfer_size(size_t bytes) {
  long long at = atomic_load(&fail_at);
  if (at && atomic_load(&calls) >= at && atomic_load(&fail_error) == FMM_FILE_SHORT && bytes > 1) return 1;
  return bytes < LARGEST_TRANSFER ? bytes : LARGEST_TRANSFER;
}

static int call_open(const char *path, int flags, mode_t mode) { return injected() ? -1 : open(path, flags | O_CLOEXEC, mode); }
static int call_fsync(int fd) { return injected() ? -1 : fsync(fd); }
static int call_rename(const char *from, const char *to) { return injected() ? -1 : rename(from, to); }

static int call_close(int fd) {
  int fault = injected(), error = errno, result = close(fd);
  if (fault) errno = error;
  return fault ? -1 : result;
}

static ssize_t call_read(int fd, void *buffer, size_t bytes) {
  ssize_t n;
  do n = injected() ? -1 : read(fd, buffer, transfer_size(bytes));
  while (n < 0 && errno == EINTR);
  return n;
}

static int write_fully(int fd, const char *bytes, size_t length) {
  while (length) {
    ssize_t n = injected() ? -1 : write(fd, bytes, transfer_size(length));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return -1;
    bytes += n, length -= (size_t)n;
  }
  return 0;
}

/* ---- reading ---- */

static fmm_status read_failed(const char *path, const char *what) {
  return FMM_FAIL(FMM_ERR_INPUT, "%s: %s: %s", path, what, strerror(errno));
}

fmm_status fmm_reader_open(fmm_reader *reader, const char *path) {
  int fd = call_open(path, O_RDONLY, 0);
  if (fd < 0) return read_failed(path, "cannot be opened for reading");
  struct stat s = {0};
  if (fstat(fd, &s) == 0 && S_ISDIR(s.st_mode)) {
    close(fd);
    return FMM_FAIL(FMM_ERR_INPUT, "%s: is a directory, a file was expected", path);
  }
  *reader = (fmm_reader){.fd = fd, .path = path, .size = S_ISREG(s.st_mode) ? (int64_t)s.st_size : -1};
  return FMM_OK;
}

fmm_status fmm_reader_read(fmm_reader *reader, void *buffer, size_t bytes, size_t *got) {
  size_t done = 0;
  while (done < bytes) {
    ssize_t n = call_read(reader->fd, (char *)buffer + done, bytes - done);
    if (n < 0)
      return FMM_FAIL(FMM_ERR_INPUT, "%s: reading failed at byte %lld: %s", reader->path, (long long)reader->position, strerror(errno));
    if (n == 0) break;
    done += (size_t)n, reader->position += n;
  }
  *got = done;
  return FMM_OK;
}

void fmm_reader_close(fmm_reader *reader) {
  if (reader->fd >= 0) close(reader->fd);
  reader->fd = -1;
}

static int larger_than_memory(int64_t bytes) {
  long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGE_SIZE);
  return pages > 0 && page > 0 && (double)bytes > (double)pages * (double)page;
}

static fmm_status has_more_than(const char *path, size_t most) { return FMM_FAIL(FMM_ERR_INPUT, "%s: has more than the %zu bytes that it can have", path, most); }

static fmm_status grow(const char *path, char **text, size_t *capacity, size_t used) {
  char *larger;
  if (larger_than_memory((int64_t)*capacity * 2))
    return FMM_FAIL(FMM_ERR_MEMORY, "%s: %zu bytes came and no end; of a device or a pipe at most half of this machine's memory is taken: name a file", path, used);
  FMM_TRY(FMM_ALLOCATE(&larger, *capacity * 2, "a file's text"));
  memcpy(larger, *text, used);
  FMM_FREE(text);
  *text = larger, *capacity *= 2;
  return FMM_OK;
}

static fmm_status read_rest(fmm_reader *reader, size_t most, char **text, size_t capacity, size_t *length) {
  size_t used = 0;
  for (;;) {
    size_t got;
    if (used > most) return has_more_than(reader->path, most);
    if (used + 1 == capacity) FMM_TRY(grow(reader->path, text, &capacity, used));
    FMM_TRY(fmm_reader_read(reader, *text + used, capacity - 1 - used, &got));
    used += got;
    if (used + 1 < capacity) break; /* short: the end */
  }
  if (used > most) return has_more_than(reader->path, most);
  (*text)[used] = 0;
  *length = used;
  return FMM_OK;
}

fmm_status fmm_file_read_all(const char *path, char **text, size_t *length) { return fmm_file_read_at_most(path, SIZE_MAX, text, length); }

fmm_status fmm_file_read_at_most(const char *path, size_t most, char **text, size_t *length) {
  fmm_reader reader;
  char *bytes = NULL;
  FMM_TRY(fmm_reader_open(&reader, path));
  fmm_status status = FMM_OK;
  if (reader.size >= 0 && (size_t)reader.size > most) status = has_more_than(path, most);
  else if (larger_than_memory(reader.size))
    status = FMM_FAIL(FMM_ERR_MEMORY, "%s: its %lld bytes are more than this machine's memory", path, (long long)reader.size);
  /* two more than a regular file's size, so that its end is seen without growing */
  size_t capacity = reader.size >= 0 ? (size_t)reader.size + 2 : BUFFER_BYTES;
  if (status == FMM_OK) status = FMM_ALLOCATE(&bytes, capacity, "a file's text");
  if (status == FMM_OK) status = read_rest(&reader, most, &bytes, capacity, length);
  fmm_reader_close(&reader);
  if (status == FMM_OK) *text = bytes;
  else FMM_FREE(&bytes);
  return status;
}

int fmm_file_readable(const char *path) { return access(path, R_OK) == 0; }

/* ---- paths ---- */

/* A path's directory ("." or up to the last slash); returns the name in it. */
static const char *split(const char *path, char directory[PATH_MAX]) {
  const char *slash = strrchr(path, '/');
  snprintf(directory, PATH_MAX, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
  return slash ? slash + 1 : path;
}

int fmm_file_same(const char *path, const char *other) {
  char directory[PATH_MAX], other_directory[PATH_MAX];
  struct stat s, of_other;
  int exists = stat(path, &s) == 0, other_exists = stat(other, &of_other) == 0;
  if (exists != other_exists || (exists && !S_ISREG(s.st_mode))) return 0;
  if (!exists && (strcmp(split(path, directory), split(other, other_directory)) || stat(directory, &s) || stat(other_directory, &of_other))) return 0;
  return s.st_dev == of_other.st_dev && s.st_ino == of_other.st_ino;
}

/* ---- replacement ---- */

static fmm_status write_failed(const char *path, const char *what) {
  return FMM_FAIL(FMM_ERR_FILE, "%s: %s: %s", path, what, strerror(errno));
}

void fmm_file_remove_temporaries(void) {
  for (int i = 0; i < MAX_TEMPORARIES; i++) {
    char *path = atomic_load(&temporaries[i]);
    if (path) unlink(path);
  }
}

static int remember_temporary(char *path) {
  for (int i = 0; i < MAX_TEMPORARIES; i++) {
    char *empty = NULL;
    if (atomic_compare_exchange_strong(&temporaries[i], &empty, path)) return i;
  }
  return -1;
}

static fmm_status copy_path(const char *path, char **copy) {
  char *resolved = realpath(path, NULL); /* a link's target is replaced, not the link */
  const char *from = resolved ? resolved : path;
  fmm_status status = FMM_ALLOCATE(copy, strlen(from) + 1, "a path");
  if (status == FMM_OK) strcpy(*copy, from);
  free(resolved);
  return status;
}

static void release(fmm_replacement *r) {
  if (r->slot >= 0) atomic_store(&temporaries[r->slot], NULL);
  FMM_FREE(&r->target);
  FMM_FREE(&r->temporary);
  FMM_FREE(&r->buffer);
  *r = (fmm_replacement){.fd = -1, .slot = -1};
}

/* A name that no other thread has, and another process or machine hardly: numbers of processes are those of their container. */
static void name_temporary(fmm_replacement *r, size_t capacity) {
  static atomic_uint number;
  const char *slash = strrchr(r->target, '/');
  const int begin = slash ? (int)(slash + 1 - r->target) : 0, kept = (int)strnlen(r->target + begin, MOST_OF_NAME);
  struct timespec now = {0};
  clock_gettime(CLOCK_REALTIME, &now);
  snprintf(r->temporary, capacity, "%.*s.%ld-%u-%09ld.part", begin + kept, r->target, (long)getpid(), atomic_fetch_add(&number, 1), (long)now.tv_nsec);
}

/* Opens a file of its own beside the target, NAME.PID-NUMBER-TIME.part, with the mode of the file it will replace. */
static fmm_status open_temporary(fmm_replacement *r, const struct stat *existing) {
  size_t capacity = strlen(r->target) + 64;
  FMM_TRY(FMM_ALLOCATE(&r->temporary, capacity, "a path"));
  for (int tries = 0; r->fd < 0; tries++) {
    name_temporary(r, capacity);
    r->fd = call_open(r->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666);
    if (r->fd >= 0 || (errno == EEXIST && tries < MOST_TRIES)) continue;
    const int error = errno;
    FMM_FREE(&r->temporary); /* it is not ours to remove */
    errno = error;
    return write_failed(r->target, error == ENAMETOOLONG ? "cannot be written (give it a shorter name)" : "cannot be written (its directory must exist and be writable)");
  }
  r->slot = remember_temporary(r->temporary);
  if (existing) (void)!fchmod(r->fd, existing->st_mode & 0777);
  return FMM_OK;
}

static fmm_status open_target(fmm_replacement *r, const char *path) {
  struct stat s;
  FMM_TRY(copy_path(path, &r->target));
  FMM_TRY(FMM_ALLOCATE(&r->buffer, BUFFER_BYTES, "a file buffer"));
  int exists = stat(r->target, &s) == 0;
  if (!exists && errno == ENAMETOOLONG) return write_failed(path, "cannot be written (give it a shorter name)"); /* its temporary's name may be shorter */
  if (exists && S_ISDIR(s.st_mode)) return FMM_FAIL(FMM_ERR_FILE, "%s: is a directory, a file name was expected", path);
  struct stat link;
  if (!exists && lstat(path, &link) == 0 && S_ISLNK(link.st_mode)) /* it may be anyone's, and another name of what is written beside this */
    return FMM_FAIL(FMM_ERR_FILE, "%s: is a link to a file that is not there; name that file, or remove the link", path);
  if (!exists || S_ISREG(s.st_mode)) return open_temporary(r, exists ? &s : NULL);
  r->fd = call_open(r->target, O_WRONLY, 0);
  return r->fd < 0 ? write_failed(path, "cannot be opened for writing") : FMM_OK;
}

fmm_status fmm_replace_begin(fmm_replacement *replacement, const char *path) {
  *replacement = (fmm_replacement){.fd = -1, .slot = -1};
  fmm_status status = open_target(replacement, path);
  if (status != FMM_OK) release(replacement);
  return status;
}

static fmm_status flush(fmm_replacement *r) {
  size_t n = r->buffered;
  r->buffered = 0;
  return write_fully(r->fd, r->buffer, n) ? write_failed(r->target, "writing failed, the file is left as it was") : FMM_OK;
}

fmm_status fmm_replace_write(fmm_replacement *r, const void *bytes, size_t length) {
  if (length > BUFFER_BYTES - r->buffered) FMM_TRY(flush(r));
  if (length > BUFFER_BYTES)
    return write_fully(r->fd, bytes, length) ? write_failed(r->target, "writing failed, the file is left as it was") : FMM_OK;
  memcpy(r->buffer + r->buffered, bytes, length);
  r->buffered += length;
  return FMM_OK;
}

fmm_status fmm_replace_printf(fmm_replacement *r, const char *format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  int n = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (n < 0 || (size_t)n >= sizeof text) return FMM_FAIL(FMM_ERR_INTERNAL, "%s: a line of %d bytes is too long", r->target, n);
  return fmm_replace_write(r, text, (size_t)n);
}

/* The rename itself must reach the disk; a directory that cannot be synced is no failure (some file systems refuse). */
static void sync_directory(const char *target) {
  char directory[PATH_MAX];
  split(target, directory);
  int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd >= 0) fsync(fd), close(fd);
}

static fmm_status finish(fmm_replacement *r) {
  FMM_TRY(flush(r));
  if (r->temporary && call_fsync(r->fd)) return write_failed(r->target, "writing to disk failed, the file is left as it was");
  int fd = r->fd;
  r->fd = -1;
  if (call_close(fd)) return write_failed(r->target, "closing failed, the file is left as it was");
  if (!r->temporary) return FMM_OK;
  if (call_rename(r->temporary, r->target)) return write_failed(r->target, "renaming the new file failed, the file is left as it was");
  sync_directory(r->target);
  return FMM_OK;
}

fmm_status fmm_replace_commit(fmm_replacement *replacement) {
  fmm_status status = finish(replacement);
  if (status == FMM_OK) release(replacement);
  else fmm_replace_abandon(replacement);
  return status;
}

void fmm_replace_abandon(fmm_replacement *r) {
  if (r->fd >= 0) close(r->fd);
  if (r->temporary) unlink(r->temporary);
  release(r);
}

fmm_status fmm_file_replace(const char *path, const void *bytes, size_t length) {
  fmm_replacement r;
  FMM_TRY(fmm_replace_begin(&r, path));
  fmm_status status = fmm_replace_write(&r, bytes, length);
  if (status == FMM_OK) return fmm_replace_commit(&r);
  fmm_replace_abandon(&r);
  return status;
}

/* A pipe is not opened: its reader would take the closing for the end. */
fmm_status fmm_file_check_writable(const char *path) {
  fmm_replacement r;
  struct stat s;
  if (stat(path, &s) == 0 && S_ISFIFO(s.st_mode)) return access(path, W_OK) ? write_failed(path, "cannot be written") : FMM_OK;
  FMM_TRY(fmm_replace_begin(&r, path));
  fmm_replace_abandon(&r);
  return FMM_OK;
}

fmm_status fmm_file_make_parents(const char *path) {
  char *copy;
  fmm_status status = FMM_OK;
  FMM_TRY(FMM_ALLOCATE(&copy, strlen(path) + 1, "a path"));
  strcpy(copy, path);
  for (char *p = copy + 1; status == FMM_OK && *copy && *p; p++) {
    if (*p != '/') continue;
    *p = 0;
    if ((injected() || mkdir(copy, 0777)) && errno != EEXIST) status = write_failed(copy, "the directory cannot be made");
    *p = '/';
  }
  FMM_FREE(&copy);
  return status;
}
