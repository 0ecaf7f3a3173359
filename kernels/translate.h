/* Translations of many boxes at once: a block holds FMM_LANES vectors (a box and column each) side by side, [unknown][lane], so that a matrix
 * entry is loaded once for all of them and every operation is a vector operation. Compiled once an instruction set (translate_simd.c). */
#ifndef FMM_TRANSLATE_H
#define FMM_TRANSLATE_H
#include "kernels/operators.h"
#include "kernels/simd.h"

enum { FMM_LANES = 16 };

typedef struct fmm_translate_kernels {
  /* out[row][lane] = sum over segments of panels(row, columns from column_begin on) times segment[s][column][lane]. */
  void (*product)(const fmm_panels *panels, int column_begin, int n_segments, const double *const *segment, const int *length, double *out);
  /* fmm_regroup and fmm_spread of every lane; not in place. */
  void (*regroup)(const fmm_operators *o, const double *natural, double *regrouped);
  void (*spread)(const fmm_operators *o, const double *regrouped, double *natural);
  /* Between vectors that lie one after the other, a lane's at lane[l] (NULL: none), and rows of all lanes: value i of a lane is at row[i] (NULL: i). put: rows are factor times the lanes' values,
   * zero for a lane that there is not; take: lanes get what the rows have, added to what is there where add. */
  void (*put)(int n, const int32_t *row, const double *const lane[FMM_LANES], double factor, double *rows);
  void (*take)(int n, const int32_t *row, const double *rows, int add, double *const lane[FMM_LANES]);
  /* to[axis * n_terms + k], of three, cleared first: coefficients of the derivatives of a field of solid harmonics (kernels/harmonics.h), times unit, every lane. */
  void (*slopes)(const fmm_harmonics *h, double unit, const double *from, double *to);
  /* In place over eight blocks of n doubles: z[psi] = sum over c of sign(psi, c) z[c]. */
  void (*hadamard)(double *z, int64_t n);
} fmm_translate_kernels;

/* Those of the best instruction set allowed. */
const fmm_translate_kernels *fmm_translate_find(void);

/* The blocks' products: blocks of any shape, whose rows and columns begin at these places (eight of them, and the end); first or second (eight square blocks), M2M of all children, L2L to all children.
 * m2m: z: [c][unknown][lane], children's regrouped densities, overwritten; l2l: z receives children's regrouped check potentials. */
void fmm_translate_blocks(const fmm_translate_kernels *k, const fmm_panels blocks[8], const int column_begin[FMM_MIRRORS + 1], const int row_begin[FMM_MIRRORS + 1], const double *in, double *out);
void fmm_translate_square(const fmm_translate_kernels *k, const fmm_operators *o, const fmm_panels blocks[8], const double *in, double *out);
void fmm_translate_m2m(const fmm_translate_kernels *k, const fmm_operators *o, const fmm_level_operators *set, double *z, double *out);
void fmm_translate_l2l(const fmm_translate_kernels *k, const fmm_operators *o, const fmm_level_operators *set, const double *in, double *z);
#endif
