/* Arrays that a whole team works on. Linux gives a page the memory of the NUMA node whose thread writes it first; so such arrays are zeroed by the
 * team, in the even ranges that its static loops use, rather than by the thread that allocates. */
#ifndef FMM_TEAM_ARRAY_H
#define FMM_TEAM_ARRAY_H
#include "memory.h"

/* values: n_planes planes of n. Thread t of the team zeroes the t-th part of every plane, as `omp for schedule(static)` over n cuts it. */
void fmm_team_zero(double *values, size_t n_planes, size_t n, int threads);

/* *values = n_planes x n zeros, first touched like that. FMM_ERR_MEMORY leaves *values untouched. */
fmm_status fmm_team_allocate(double **values, size_t n_planes, size_t n, int threads, const char *what);
#endif
