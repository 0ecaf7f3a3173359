/* Vectorised pair kernels in single precision with double sums. */
#define FMM_PAIR_VARIANT single
#define FMM_SINGLE
#include "kernels/pair/pair_kernel.h"
