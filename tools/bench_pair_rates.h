/* The rate of the U list's own kernels where nothing but their instructions limits them: one leaf with its neighbours, in the first- or
 * second-level cache (Laplace, 64 points: 18 KB; 256: 72 KB), over and over, on every thread at once. What the phase reaches of it is its fraction of the limit by
 * instructions. A core's speed on a shared machine changes within seconds, so that the fraction is to be taken of rates timed just before and just after. */
#ifndef FMM_BENCH_PAIR_RATES_H
#define FMM_BENCH_PAIR_RATES_H
#include "kernels/pair/pair_sums.h"

typedef struct fmm_pair_rate {
  double best, middle; /* interactions (ordered pairs) a second: each thread's best and its median round of a tenth of a millisecond or more, summed over threads */
} fmm_pair_rate;

/* sum: as the phase prepares it, one column; both: pairs of leaves in both directions at once (fmm_pair_sum_can_add_both). Leaves of leaf_size points,
 * 1 .. FMM_BENCH_MOST_LEAF. Takes `seconds`, and what making the leaves takes. */
enum { FMM_BENCH_MOST_LEAF = 256 };
fmm_status fmm_bench_pair_rate(const fmm_pair_sum *sum, int both, int leaf_size, int threads, double seconds, fmm_pair_rate *rate);
#endif
