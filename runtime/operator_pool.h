/* The operators of a plan and of its clusters' plans, made once each: homogeneous kernels share theirs over all levels, hence over all trees of the
 * same order too. Of the outermost plan's set-up, which outlives its clusters. Where points are replaced or move, the new set-up's pool takes over what fits: pools share operators, which go with the last of them. */
#ifndef FMM_OPERATOR_POOL_H
#define FMM_OPERATOR_POOL_H
#include "kernels/operators.h"

typedef struct fmm_operator_pool { struct fmm_pooled_operators *first; } fmm_operator_pool; /* zeroed: empty */

typedef struct fmm_operator_case { const fmm_pair *pair; const double *params; int order; double root_half_width; int n_levels; } fmm_operator_case;

/* Those that fit the case: of the pool, else of another one (NULL: there is none), which shares them, else made. *bytes: of what came into the pool, 0 when they were there. Valid until the pool is destroyed. Pools that
 * share operators are not to be used by several threads at once. */
fmm_status fmm_operator_pool_take(fmm_operator_pool *pool, const fmm_operator_pool *other, const fmm_operator_case *what, int threads, const fmm_operators **operators, size_t *bytes);
void fmm_operator_pool_destroy(fmm_operator_pool *pool);
#endif
