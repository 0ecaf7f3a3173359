/* Shared operators (operator_pool.h), a list: a pool holds few. */
#include "operator_pool.h"

#include <string.h>

/* pools: that have them. */
typedef struct shared { fmm_operators *operators; int pools; } shared;
typedef struct fmm_pooled_operators { shared *of; struct fmm_pooled_operators *next; } pooled;

static int fits(const fmm_operators *o, const fmm_operator_case *what) {
  return o->pair == what->pair && o->pair->info->has_degree && o->order == what->order && !memcmp(o->params, what->params, sizeof o->params);
}

static shared *find(const fmm_operator_pool *pool, const fmm_operator_case *what) {
  const pooled *p = pool ? pool->first : NULL;
  while (p && !fits(p->of->operators, what)) p = p->next;
  return p ? p->of : NULL;
}

static void release(shared *s) {
  if (--s->pools) return;
  fmm_operators_destroy(&s->operators);
  FMM_FREE(&s);
}

static fmm_status make(const fmm_operator_case *what, int threads, shared **made) {
  shared *s = NULL;
  FMM_TRY(FMM_ALLOCATE_ZERO(&s, 1, "a place for operators"));
  s->pools = 1;
  fmm_status status = fmm_operators_create(&s->operators, what->pair, what->params, what->order, what->root_half_width, what->n_levels, threads);
  if (status != FMM_OK) FMM_FREE(&s);
  else *made = s;
  return status;
}

fmm_status fmm_operator_pool_take(fmm_operator_pool *pool, const fmm_operator_pool *other, const fmm_operator_case *what, int threads, const fmm_operators **operators, size_t *bytes) {
  shared *s = find(pool, what);
  pooled *fresh = NULL;
  if (s) return *operators = s->operators, *bytes = 0, FMM_OK;
  FMM_TRY(FMM_ALLOCATE_ZERO(&fresh, 1, "a place for operators"));
  if ((s = find(other, what))) s->pools++;
  else {
    fmm_status status = make(what, threads, &s);
    if (status != FMM_OK) {
      FMM_FREE(&fresh);
      return status;
    }
  }
  *fresh = (pooled){s, pool->first};
  pool->first = fresh;
  *operators = s->operators;
  *bytes = fmm_operators_bytes(s->operators);
  return FMM_OK;
}

void fmm_operator_pool_destroy(fmm_operator_pool *pool) {
  while (pool->first) {
    pooled *p = pool->first;
    pool->first = p->next;
    release(p->of);
    FMM_FREE(&p);
  }
}
