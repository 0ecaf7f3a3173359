/* Vectorised pair kernels in double with two terms of the root's series (relative error of the root <= 2.5 e^3, e the estimate's). */
#define FMM_PAIR_VARIANT near
#define FMM_NEAR
#include "kernels/pair/pair_kernel.h"
