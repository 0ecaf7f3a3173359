/* Vectorised pair kernels in double, reciprocal square root to rounding. */
#define FMM_PAIR_VARIANT full
#include "kernels/pair/pair_kernel.h"
