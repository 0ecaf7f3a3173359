/* Vectorised pair kernels in single precision with plain float coordinates and, on AVX-512, the bare estimate of 1/r (2^-14): for tolerances
 * around 1e-3. */
#define FMM_PAIR_VARIANT coarse
#define FMM_SINGLE
#define FMM_COARSE
#include "kernels/pair/pair_kernel.h"
