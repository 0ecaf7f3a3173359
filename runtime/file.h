/* The one seam of files: reading, streaming, atomic whole-file replacement, and fault injection. Every path of a failure carries the
 * file's name, what was tried and the system's reason. Reading fails with FMM_ERR_INPUT, writing with FMM_ERR_FILE.
 * Replacement: a temporary in the same directory is written, synced and renamed over the target, so that a reader sees the old file or
 * the whole new one; on any failure the temporary is removed and an existing file stays as it was (POSIX rename). */
#ifndef FMM_FILE_H
#define FMM_FILE_H
#include "memory.h"

/* Reading: open, read until the wanted bytes or the end, close. path must outlive the reader. */
typedef struct fmm_reader {
  int fd;
  const char *path;
  int64_t size;     /* of a regular file, -1 when not known (a pipe) */
  int64_t position; /* bytes read so far */
} fmm_reader;

fmm_status fmm_reader_open(fmm_reader *reader, const char *path);
/* Up to `bytes` bytes into buffer; *got is fewer only at the end of the file. */
fmm_status fmm_reader_read(fmm_reader *reader, void *buffer, size_t bytes, size_t *got);
void fmm_reader_close(fmm_reader *reader);

/* The whole file in *text (owned by the caller, FMM_FREE), a terminating 0 after its *length bytes. Larger than memory, and of a device or pipe than half of it, is refused. */
fmm_status fmm_file_read_all(const char *path, char **text, size_t *length);
/* The same of at most so many bytes: one with more is refused with FMM_ERR_INPUT, without being read further. */
fmm_status fmm_file_read_at_most(const char *path, size_t most, char **text, size_t *length);

/* Writing: begin, write any number of times, then commit or abandon (both end it; abandon after a failed commit is harmless). */
typedef struct fmm_replacement {
  int fd;
  char *target;    /* the file, symbolic links resolved */
  char *temporary; /* NULL: target is a device or a pipe, written directly */
  int slot;        /* of the list that fmm_file_remove_temporaries walks, -1 none */
  char *buffer;
  size_t buffered;
} fmm_replacement;

fmm_status fmm_replace_begin(fmm_replacement *replacement, const char *path);
fmm_status fmm_replace_write(fmm_replacement *replacement, const void *bytes, size_t length);
fmm_status fmm_replace_printf(fmm_replacement *replacement, const char *format, ...) __attribute__((format(printf, 2, 3)));
fmm_status fmm_replace_commit(fmm_replacement *replacement);
void fmm_replace_abandon(fmm_replacement *replacement);

/* All three at once. */
fmm_status fmm_file_replace(const char *path, const void *bytes, size_t length);
/* Whether a later replacement can begin: to be asked before long work. Leaves nothing behind. */
fmm_status fmm_file_check_writable(const char *path);
/* Makes the directories above path that are missing (mode 0777 & ~umask). */
fmm_status fmm_file_make_parents(const char *path);
/* Nonzero when path can be opened for reading. */
int fmm_file_readable(const char *path);
/* Nonzero when both name one file, links followed, or would once it is made. Devices and pipes lose nothing by that: 0. */
int fmm_file_same(const char *path, const char *other);

/* Removes the temporaries of replacements under way; async-signal-safe, for handlers that end the process. */
void fmm_file_remove_temporaries(void);

/* Fault injection for tests: the nth system call of this seam from now (1: the next) fails with this errno; FMM_FILE_SHORT in its
 * place makes the reads and writes from then on transfer one byte at a time (no failure). nth 0 switches both off. */
enum { FMM_FILE_SHORT = -1 };
void fmm_file_fail_at(int64_t nth, int error);
int64_t fmm_file_calls(void); /* system calls of this seam so far */
#endif
