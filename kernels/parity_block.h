/* How large the blocks are into which parity cuts up's and down's operators (kernels/operators.h), from the order alone: for costs, and for the GPU, whose kernels know their length when they are compiled. */
#ifndef FMM_PARITY_BLOCK_H
#define FMM_PARITY_BLOCK_H
#include "kernels/surface.h"

/* Unknowns of the largest of the eight (fmm_parity_map); INT32_MAX without parity. */
int fmm_parity_block_most(fmm_parity parity, int n_components, int order);

/* Unknowns of each block, padded by one at least (the shell field's place), as the GPU's products have them (kernels/parity_cuda.cu), for orders 2, 3 and 4, 5 and 6 ... 11 and 12 of one component and 3 and 4, 5 and 6, 7 and 8 of three;
 * 0: they have dense operators (kernels/product_cuda.cu), as there is no parity or no block is large enough. Devices with less shared memory a block than an H100 have dense ones for more orders, those of 99 kB for orders 5, 6 and 9 to 12, of 64 kB from order 3 on, which only they know
 * (runtime/gpu/gpu_plan.cu): costs and memory are then foretold too small. */
int fmm_gpu_parity_block(const fmm_pair_info *pair, int order);
#endif
