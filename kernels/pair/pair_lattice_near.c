/* Vectorised pair kernels between points and lattices, reciprocal square root to 3e-13. */
#define FMM_PAIR_VARIANT near
#define FMM_NEAR
#include "kernels/pair/pair_kernel_lattice.h"
