/* Asking for what is read or written soon, while something else is computed: where data come in short pieces from all over the points, the processor's own foresight ends with each piece.
 * Inlined always, as compilers take a function that does nothing else for one that does nothing. */
#ifndef FMM_ASK_AHEAD_H
#define FMM_ASK_AHEAD_H
#include <stdint.h>

#define FMM_ASKS static inline __attribute__((always_inline))

/* n doubles to the nearest cache; they need not be there. Of many the first alone: they would not stay, and what lies in a row the processor foresees. */
FMM_ASKS void fmm_ask_for(const double *from, int64_t n) {
  enum { LINE = 64 / sizeof(double), MOST = 256 };
  const int64_t asked = n < MOST ? n : MOST;
  for (int64_t i = 0; i < asked; i += LINE) __builtin_prefetch(from + i);
  if (asked > 0) __builtin_prefetch(from + asked - 1); /* they begin anywhere in a line */
}
#endif
