/* See blas_threads.h. Other libraries of BLAS do not have these functions. */
#include "blas_threads.h"

#include <sys/resource.h>

static int is_limited(int resource) {
  struct rlimit limit;
  return !getrlimit(resource, &limit) && limit.rlim_cur != RLIM_INFINITY;
}

int fmm_memory_is_limited(void) { return is_limited(RLIMIT_AS) || is_limited(RLIMIT_DATA); }

extern void openblas_set_num_threads(int threads) __attribute__((weak));
extern int openblas_get_parallel(void) __attribute__((weak)), blas_thread_shutdown_(void) __attribute__((weak));
void fmm_blas_threads_end(void) {
  enum { OWN_THREADS = 1 };
  if (!openblas_set_num_threads || !openblas_get_parallel || !blas_thread_shutdown_ || openblas_get_parallel() != OWN_THREADS || fmm_memory_is_limited()) return;
  openblas_set_num_threads(1); /* else they are made again */
  blas_thread_shutdown_();
}
