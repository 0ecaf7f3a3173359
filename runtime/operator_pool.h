/* The operators of a plan and of its clusters' plans, made once each: homogeneous kernels share theirs over all levels, hence over all trees of the
 * same order too. Owned by the outermost plan's set-up, which outlives its clusters. */
#ifndef FMM_OPERATOR_POOL_H
#define FMM_OPERATOR_POOL_H
#include "kernels/operators.h"

typedef struct fmm_operator_pool { struct fmm_pooled_operators *first; } fmm_operator_pool; /* zeroed: empty */

typedef struct fmm_operator_case { const fmm_pair *pair; const double *params; int order; double root_half_width; int n_levels; } fmm_operator_case;

/* Those that fit the case, made when there are none. *bytes: what was made for it, 0 when they were there. Valid until the pool is destroyed. */
fmm_status fmm_operator_pool_take(fmm_operator_pool *pool, const fmm_operator_case *what, int threads, const fmm_operators **operators, size_t *bytes);
void fmm_operator_pool_destroy(fmm_operator_pool *pool);
#endif
