/* The arithmetic that the library computes in, whatever the caller's is: rounding to nearest, and no traps. Keys, checksums and what cancels in the operators count on the former; a point's distance from itself gives
 * infinity times zero, which kernels leave out, with the latter on. Put at the beginning of what the interface calls; the caller's mode, flags and traps come back when that is left. Threads that are made meanwhile
 * inherit it; those that the caller's thread had for OpenMP before keep theirs. */
#ifndef FMM_ARITHMETIC_H
#define FMM_ARITHMETIC_H
#include <fenv.h>

static inline fenv_t fmm_arithmetic_begin(void) {
  fenv_t callers;
  feholdexcept(&callers);
  fesetround(FE_TONEAREST);
  return callers;
}
static inline void fmm_arithmetic_end(const fenv_t *callers) { fesetenv(callers); }
#define FMM_OWN_ARITHMETIC() __attribute__((cleanup(fmm_arithmetic_end), unused)) const fenv_t callers_arithmetic = fmm_arithmetic_begin()
#endif
