/* Vectorised solid harmonics, in single. */
#define FMM_SINGLE
#include "kernels/harmonics_kernel.h"
