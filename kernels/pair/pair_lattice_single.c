/* Vectorised pair kernels between points and lattices, products in single. */
#define FMM_PAIR_VARIANT single
#define FMM_SINGLE
#include "kernels/pair/pair_kernel_lattice.h"
