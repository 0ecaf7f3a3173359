/* The rate of the U list's own kernels where nothing but their instructions limits them: one leaf with its neighbours, in the first- or
 * second-level cache (Laplace, 64 points: 18 KB), over and over, on every thread. What the phase reaches of it is its fraction of the limit by instructions. */
#ifndef FMM_BENCH_PAIR_RATES_H
#define FMM_BENCH_PAIR_RATES_H
#include "kernels/pair/pair_sums.h"

typedef struct fmm_pair_rates {
  double one_direction, both_directions; /* interactions (ordered pairs) a second, all threads; the best of many; 0: the pair has no such kernel */
} fmm_pair_rates;

/* sum: as the phase prepares it, one column. Leaves of leaf_size points, 1 .. FMM_BENCH_MOST_LEAF. */
enum { FMM_BENCH_MOST_LEAF = 128 };
fmm_status fmm_bench_pair_rates(const fmm_pair_sum *sum, int leaf_size, int threads, fmm_pair_rates *rates);
#endif
