/* Vectorised pair kernels in double with one Newton step (relative error of the root <= 1.5 e^2, e the estimate's). */
#define FMM_PAIR_VARIANT reduced
#define FMM_REDUCED
#include "kernels/pair/pair_kernel.h"
