/* Stable parallel radix sort of (64-bit key, row) items, or of keys alone, most significant differing bits first.
 *
 * Used for Morton keys and for finding coincident points. The order of the result (key, then the order before) is unique, so it
 * does not depend on the number of threads. Work is O(n) passes over the bits that differ: constant digits cost nothing. */
#ifndef FMM_SORT_H
#define FMM_SORT_H
#include "status.h"

typedef struct fmm_sort_item { uint64_t key, row; } fmm_sort_item;

enum { FMM_SORT_TEAM_LEAST = 1 << 15 }; /* parts of points with so many are worth a team of their own */

/* Sorts items[0..n); scratch holds n more. FMM_ERR_MEMORY only (histograms of the threads). */
fmm_status fmm_sort_items(fmm_sort_item *items, fmm_sort_item *scratch, int64_t n, int threads);
/* The same of keys without rows. */
fmm_status fmm_sort_keys(uint64_t *keys, uint64_t *scratch, int64_t n, int threads);
/* Items on one thread; never fails and allocates nothing. */
void fmm_sort_items_serial(fmm_sort_item *items, fmm_sort_item *scratch, int64_t n);
#endif
