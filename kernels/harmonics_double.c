/* Vectorised solid harmonics, in double. */
#include "kernels/harmonics_kernel.h"
