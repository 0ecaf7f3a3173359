/* Pieces that operators.c is made of: small dense algebra on one thread, the M2L table, regrouping of one vector. */
#ifndef FMM_OPERATORS_PARTS_H
#define FMM_OPERATORS_PARTS_H
#include "kernels/operators.h"

/* What blocks of a team's loop came to, each with its text where it failed; joined by the thread that goes on: the first failure, with its text, or FMM_OK. */
typedef struct fmm_block_outcome { fmm_status status; fmm_error error; } fmm_block_outcome;
static inline void fmm_block_note(fmm_block_outcome *block, fmm_status status) {
  block->status = status;
  if (status != FMM_OK) fmm_error_take(&block->error);
}
static inline fmm_status fmm_blocks_join(int n, const fmm_block_outcome *block) {
  for (int i = 0; i < n; i++)
    if (block[i].status != FMM_OK) return fmm_error_give(&block[i].error), block[i].status;
  return FMM_OK;
}

/* A = U S V^T of an m x m row-major matrix (destroyed): U^T by rows into ut, V^T by rows into vt, descending singular values. */
fmm_status fmm_small_svd(int m, double *a, double *ut, double *sigma, double *vt);
/* c = a b, row-major: a rows x inner, b inner x columns. */
void fmm_small_product(int rows, int columns, int inner, const double *a, const double *b, double *c);
/* Between these, BLAS and LAPACK use one thread a call (the process's setting is restored at the end); one operator set at a time, made by
 * that many of our threads. FMM_ERR_MEMORY where the process has no address space for them; then nothing has begun. */
fmm_status fmm_blas_single_thread_begin(int threads);
void fmm_blas_single_thread_end(void);

/* Parts of fmm_operators_create: all but the levels; one level's translations without M2L (between the two calls above). */
fmm_status fmm_operators_shape(fmm_operators *o, const fmm_pair *pair, const double params[FMM_MAX_PARAMS], int order);
void fmm_operators_clear(fmm_operators *o); /* frees what it holds, not itself */
fmm_status fmm_level_create(const fmm_operators *o, fmm_level_operators *set, double half_width, int threads);
fmm_status fmm_level_create_inverses(const fmm_operators *o, fmm_level_operators *set, double half_width, int threads); /* without M2M and L2L */

/* Fills set->shell and makes L2L (where it is there) and down_second of it; where there is nothing to do, does nothing (shell_field.c). */
fmm_status fmm_shell_create(const fmm_operators *o, fmm_level_operators *set);

/* Fills up_moments, down_moments, w_moments and x_moments of harmonic pairs, from the inverses and, if it is there, the shell (operators_harmonic.c); of others does nothing. */
fmm_status fmm_level_harmonics_create(const fmm_operators *o, fmm_level_operators *set, int threads);

/* Room for rows x columns, of which padding is zero; then columns from `first` on of a matrix given by row and column strides, row i times row_factor[i], column j times column_factor[j] (NULL: 1). fmm_panels_pack: both, of all columns. */
fmm_status fmm_panels_reserve(fmm_panels *panels, int rows, int columns);
void fmm_panels_fill(fmm_panels *panels, int first, int columns, const double *matrix, int64_t row_stride, int64_t column_stride, const double *row_factor, const double *column_factor);
fmm_status fmm_panels_pack(fmm_panels *panels, int rows, int columns, const double *matrix, int64_t row_stride, int64_t column_stride, const double *row_factor,
                           const double *column_factor);
static inline double fmm_panel_entry(const fmm_panels *p, int i, int j) { return p->data[((int64_t)(i / FMM_PANEL_ROWS) * p->columns + j) * FMM_PANEL_ROWS + i % FMM_PANEL_ROWS]; }

/* Fills set->m2l for set->half_width. */
fmm_status fmm_m2l_create(const fmm_operators *o, fmm_level_operators *set, int threads);

/* natural (n) -> regrouped sums over orbits (n), and regrouped values spread over orbits -> natural. Not in place. */
void fmm_regroup(const fmm_operators *o, const double *natural, double *regrouped);
void fmm_spread(const fmm_operators *o, const double *regrouped, double *natural);

/* The operators in plain C (operators_apply.c). First and second: of n_vectors, one after the other, at most FMM_MOST_VECTORS; scratch: n each. The others: of one; scratch: 2 n;
 * m2m adds to the coefficients, l2l to the child's check potentials. */
enum { FMM_MOST_VECTORS = 4 };
void fmm_apply_first(const fmm_operators *o, const fmm_panels first[8], int n_vectors, const double *natural, double *coefficients, double *scratch);
void fmm_apply_second(const fmm_operators *o, const fmm_panels second[8], int n_vectors, const double *coefficients, double *natural, double *scratch);
/* Moments in blocks' order to natural equivalent densities, and natural check potentials, divided by the level's factor, to harmonics, of one vector; scratch: 2 n. */
void fmm_apply_up_moments(const fmm_operators *o, const fmm_level_operators *set, const double *moments, double *natural, double *scratch);
void fmm_apply_down_moments(const fmm_operators *o, const fmm_level_operators *set, const double *natural, double *harmonics, double *scratch);
void fmm_apply_m2m(const fmm_operators *o, const fmm_level_operators *set, int octant, const double *child, double *coefficients, double *scratch);
void fmm_apply_l2l(const fmm_operators *o, const fmm_level_operators *set, int octant, const double *coefficients, double *child_check, double *scratch);
#endif
