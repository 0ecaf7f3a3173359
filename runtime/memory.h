/* The one seam of host memory: aligned, zeroed on request, accounted, and able to fail on demand (fault injection).
 * All of the library allocates here, so that a plan's reserve can be reported and every failing path tested. */
#ifndef FMM_MEMORY_H
#define FMM_MEMORY_H
#include "status.h"

enum { FMM_ALIGNMENT = 64 };

/* *pointer = count * size bytes, 64-byte aligned, uninitialised; count 0 gives a valid pointer. what: noun for the error text.
 * FMM_ERR_MEMORY (also when count * size overflows) leaves *pointer untouched. */
fmm_status fmm_allocate_bytes(void **pointer, size_t count, size_t size, const char *what);
fmm_status fmm_allocate_zero_bytes(void **pointer, size_t count, size_t size, const char *what);
#define FMM_ALLOCATE(pointer, count, what) fmm_allocate_bytes((void **)(pointer), (size_t)(count), sizeof **(pointer), (what))
#define FMM_ALLOCATE_ZERO(pointer, count, what) fmm_allocate_zero_bytes((void **)(pointer), (size_t)(count), sizeof **(pointer), (what))

/* Releases and sets the caller's pointer to NULL: FMM_FREE(&p). NULL is allowed. */
void fmm_free_bytes(void *pointer);
#define FMM_FREE(pointer)             \
  do {                                \
    fmm_free_bytes(*(pointer));       \
    *(pointer) = NULL;                \
  } while (0)

/* Between these, blocks of 64 kB and more, in any thread, come from a pool and go back there when they are freed, then or later (pool.h). Calls count, also of several threads; when the last has released, all that is
 * free goes to the system but for parts of pages and what somebody keeps. What a holder's thread gets from the system is touched first by a team of so many threads. */
void fmm_memory_hold(int threads);
/* By a holder: the least that it will use in all. So much comes from the system at once then, unless there is memory in the pool: pages that come one by one, in the midst of other work, keep one thread busy each while others wait for it. */
void fmm_memory_expect(size_t bytes);
void fmm_memory_release(void);
/* By one who will hold again for as much work: what is free now and nobody else keeps stays, in whole pages of 2 MB and at most so many bytes, until the same is said with other bytes; 0: it goes. *own: how many, which this changes, at first 0. */
void fmm_memory_keep(size_t *own, size_t most);
/* What is kept now goes to the system, as when it has no more memory for others; nonzero if there was any. */
int fmm_memory_give_back(void);

/* Whether so many bytes are there, taken and given back: before calls of libraries that end the process where they are not. Counts as an allocation. */
fmm_status fmm_memory_spare(size_t bytes, const char *what);

size_t fmm_memory_now(void);  /* bytes held by the library in this process, but for blocks that are only kept */
size_t fmm_memory_peak(void); /* largest value so far */
size_t fmm_memory_bytes(const void *pointer); /* size of one block of this seam */
int64_t fmm_memory_count(void); /* allocations so far, failed ones too */

/* The nth allocation from now fails (1: the next); 0 switches it off. For tests. */
void fmm_memory_fail_at(int64_t nth);
#endif
