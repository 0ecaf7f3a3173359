/* Which pair interactions are summed in both directions of a pair at once: a property of their descriptions, which the memory that the U list will
 * take depends on. */
#ifndef FMM_PAIR_BOTH_H
#define FMM_PAIR_BOTH_H
#include "kernels/pair/pair_info.h"

/* Possible where K is symmetric; it wins where what is shared outweighs what is added. */
int fmm_pair_can_both(const fmm_pair_info *info, int n_columns);
double fmm_pair_instructions_a_value(const fmm_pair_info *info, int gradient);
int fmm_pair_prefers_both(const fmm_pair_info *info, int gradient, int n_columns);
/* Whether one Newton step serves a GPU's sums in double, whose 1.3e-12 is well below such tolerances; else they take a third-order step. */
int fmm_pair_newton_on_gpu(double tolerance);
/* On a GPU (kernels/pair/pair_both_cuda.cu). third_order: sums in double take that step; single: in what precision the U list is, as with gradients both directions gain nothing in double. */
int fmm_pair_both_on_gpu(const fmm_pair_info *info, int gradient, int n_columns, int third_order, int single);
/* Whether a GPU sums them along the rows of a surface where they are between points and surfaces and in double (kernels/pair/pair_lattice_cuda.cu). */
int fmm_pair_lattice_on_gpu(const fmm_pair_info *info, int order, int n_columns, int third_order);
#endif
