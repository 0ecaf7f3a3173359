/* Arrays that a whole team works on. Linux gives a page the memory of the NUMA node whose thread writes it first; so such arrays are zeroed by the
 * team, in the even ranges that its static loops use, rather than by the thread that allocates. */
#ifndef FMM_TEAM_ARRAY_H
#define FMM_TEAM_ARRAY_H
#include "memory.h"

/* *values = n_planes x n zeros: thread t of the team writes the t-th part of every plane first, as `omp for schedule(static)` over n cuts it. FMM_ERR_MEMORY leaves *values untouched. */
fmm_status fmm_team_allocate(double **values, size_t n_planes, size_t n, int threads, const char *what);
#endif
