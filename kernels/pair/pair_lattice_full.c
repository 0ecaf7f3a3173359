/* Vectorised pair kernels between points and lattices, reciprocal square root to rounding. */
#define FMM_PAIR_VARIANT full
#include "kernels/pair/pair_kernel_lattice.h"
