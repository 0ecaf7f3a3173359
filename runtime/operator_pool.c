/* Shared operators (operator_pool.h), a list: a pool holds few. */
#include "operator_pool.h"

#include <string.h>

typedef struct fmm_pooled_operators { fmm_operators *operators; struct fmm_pooled_operators *next; } pooled;

static int fits(const fmm_operators *o, const fmm_operator_case *what) {
  return o->pair == what->pair && o->pair->info->has_degree && o->order == what->order && !memcmp(o->params, what->params, sizeof o->params);
}

fmm_status fmm_operator_pool_take(fmm_operator_pool *pool, const fmm_operator_case *what, int threads, const fmm_operators **operators, size_t *bytes) {
  for (pooled *p = pool->first; p; p = p->next)
    if (fits(p->operators, what)) return *operators = p->operators, *bytes = 0, FMM_OK;
  pooled *fresh = NULL;
  FMM_TRY(FMM_ALLOCATE_ZERO(&fresh, 1, "a place for operators"));
  fmm_status status = fmm_operators_create(&fresh->operators, what->pair, what->params, what->order, what->root_half_width, what->n_levels, threads);
  if (status != FMM_OK) {
    FMM_FREE(&fresh);
    return status;
  }
  fresh->next = pool->first;
  pool->first = fresh;
  *operators = fresh->operators;
  *bytes = fmm_operators_bytes(fresh->operators);
  return FMM_OK;
}

void fmm_operator_pool_destroy(fmm_operator_pool *pool) {
  while (pool->first) {
    pooled *p = pool->first;
    pool->first = p->next;
    fmm_operators_destroy(&p->operators);
    FMM_FREE(&p);
  }
}
