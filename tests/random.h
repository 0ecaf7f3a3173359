/* Random numbers of tests that place points by hand: splitmix64, one sequence a program, set by `seed`. */
#ifndef FMM_TEST_RANDOM_H
#define FMM_TEST_RANDOM_H
#include <stdint.h>

static uint64_t seed;
/* In [0, 1). */
static double uniform(void) {
  uint64_t v = (seed += 0x9e3779b97f4a7c15u);
  v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9u;
  v = (v ^ v >> 27) * 0x94d049bb133111ebu;
  return (double)((v ^ v >> 31) >> 11) * 0x1p-53;
}
#endif
