/* The threads that a BLAS makes for itself. */
#ifndef FMM_BLAS_THREADS_H
#define FMM_BLAS_THREADS_H

/* OpenBLAS with threads of its own makes them when it is loaded, and they look for work for a tenth of a second, on cores that the first set-up needs; no work comes, as operators are made by one thread each:
 * ends them, as the first thing that a program does. Not where memory is limited (below). */
void fmm_blas_threads_end(void);
/* Whether this process has a limit on address space or data. Then BLAS may wait for ever for a thread of its own that waits for memory, when it ends them and when the process ends. */
int fmm_memory_is_limited(void);
#endif
