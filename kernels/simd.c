/* Picks the instruction set once a process: the best that CPU and operating system offer, lowered by FMM_SIMD or a test. */
#include "kernels/simd.h"

#include <stdlib.h>
#include <string.h>

static const char *const names[FMM_N_SIMD] = {"plain", "avx2", "avx512"};
static _Atomic int cap = FMM_N_SIMD - 1;

static fmm_simd detect(void) {
  fmm_simd best = FMM_SIMD_PLAIN;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) best = FMM_SIMD_AVX2;
  if (best == FMM_SIMD_AVX2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw"))
    best = FMM_SIMD_AVX512;
#endif
  const char *wish = getenv("FMM_SIMD");
  for (int i = 0; wish && i < (int)best; i++)
    if (!strcmp(wish, names[i])) return (fmm_simd)i;
  return best;
}

fmm_simd fmm_simd_level(void) {
  static _Atomic int found = -1;
  if (found < 0) found = (int)detect();
  return (fmm_simd)(found < cap ? found : cap);
}

static _Atomic int adds_beside = FMM_SIMD_AS_FOUND;

static int detect_adders(void) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  return __builtin_cpu_is("amd") != 0;
#else
  return 0;
#endif
}

int fmm_simd_adds_beside(void) {
  if (adds_beside == FMM_SIMD_AS_FOUND) adds_beside = detect_adders();
  return adds_beside;
}

void fmm_simd_let_add_beside(int yes_or_as_found) { adds_beside = yes_or_as_found; }

void fmm_simd_cap(fmm_simd level) { cap = (int)level; }
const char *fmm_simd_name(fmm_simd level) { return names[level]; }
