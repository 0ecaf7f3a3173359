/* A few 64-bit keys sorted by vectors without a branch that depends on them: columns of vectors by a network (Batcher 1968), then columns merged across the lanes. */
#ifndef FMM_SORT_NETWORK_H
#define FMM_SORT_NETWORK_H
#include <stdint.h>

/* How many at most on this processor; 0 where it has no such vectors. */
int fmm_sort_network_most(void);
/* Sorts n keys, 1 to that many, to to[0..n), which is `from` itself or does not overlap it. */
void fmm_sort_network(const uint64_t *from, uint64_t *to, int n);
#endif
