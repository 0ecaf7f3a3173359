/* Evaluation of pair interactions on the host: the plain C reference functions that every optimised kernel is tested against, and
 * the table of them. One header a pair, kernels/pair/NAME.h, holds the info (FMM_PAIR_INFO, a definition) and ONE inline function, from which plain C,
 * AVX2, AVX-512 and CUDA, single and double are all compiled (FMM_REAL is the value type, scalar or vector).
 *
 * A pair header reads (Laplace as the example):
 *
 *   #ifdef FMM_PAIR_INFO_PASS
 *   FMM_PAIR_INFO(laplace) = { .name = "laplace", .components = 1, ... };
 *   #else
 *   FMM_PAIR_FUNCTION void FMM_PAIR_NAME(laplace)(FMM_REAL dx, FMM_REAL dy, FMM_REAL dz, const FMM_REAL *s, const FMM_REAL *normal,
 *                                                 const FMM_SCALAR *params, int columns, int gradient, FMM_REAL *f)
 *   { FMM_REAL r = FMM_RSQRT(FMM_SQUARE(dx, dy, dz)); ... f[c] += s[c] * r; ... }
 *   #endif
 *
 * (dx,dy,dz) = target - source. s[component*columns + column]; f[(output*(gradient ? 4 : 1) + k)*columns + column], k = 0 the potential, 1..3 its
 * derivatives by the target's x, y, z. columns and gradient are compile-time constants after inlining. FMM_RSQRT(0) is 0 where a
 * zero distance can occur, so that such a pair contributes nothing. Single precision has distances of up to 2^30 (pair_sums_single.c): no factor smaller than about r^-4 may stand alone. Some loops know FMM_SQUARE, dx^2 + dy^2 + dz^2, beforehand. FMM_EXP is Yukawa's. */
#ifndef FMM_PAIR_H
#define FMM_PAIR_H
#include "kernels/pair/pair_info.h"

/* One target, n sources (planes), results added to f (layout above): plain C, double; the reference. Guarded at zero distance.
 * density[k] is plane k = component*columns + column. */
typedef void fmm_pair_reference(const double target[3], int64_t n, const double *x, const double *y, const double *z,
                                const double *const normal[3], const double *const *density, const double *params, int columns,
                                int gradient, double *f);

typedef struct fmm_pair {
  const fmm_pair_info *info;
  fmm_pair_reference *reference;
  /* K(target, source) as a matrix block: block[out * components + in] (potential only, equivalent components), plain C double. */
  void (*matrix)(const double target[3], const double source[3], const double *params, double *block);
} fmm_pair;

extern const fmm_pair *const fmm_pairs[]; /* NULL-terminated, order of the Meson list */
fmm_status fmm_pair_find(const char *name, const fmm_pair **pair);
#endif
