/* Finding clusters: connect overfull cells that touch (union-find, also across levels), lift each group to the finest level where it fits
 * into 2 x 2 x 2 cells, and repeat until nothing is lifted; a level only ever goes down, so that ends. */
#include "cluster.h"

#include <stdlib.h>

#include "points.h"

typedef fmm_cluster_leaf leaf; /* .cluster is the union-find parent while groups are made */

static int by_level_and_key(const void *a, const void *b) {
  const leaf *p = a, *q = b;
  if (p->level != q->level) return p->level < q->level ? -1 : 1;
  return p->key < q->key ? -1 : p->key > q->key;
}

int64_t fmm_cluster_search(int64_t n, const leaf *leaves, int level, uint64_t key) {
  leaf wanted = {key, level, 0};
  const leaf *found = n ? bsearch(&wanted, leaves, (size_t)n, sizeof *leaves, by_level_and_key) : NULL;
  return found ? found - leaves : -1;
}

static int32_t group_of(leaf *l, int32_t i) {
  while (l[i].cluster != i) i = l[i].cluster = l[l[i].cluster].cluster; /* path halving */
  return i;
}

static void join(leaf *l, int64_t a, int64_t b) {
  int32_t p = group_of(l, (int32_t)a), q = group_of(l, (int32_t)b);
  if (p < q) l[q].cluster = p;
  else l[p].cluster = q;
}

/* Joins leaf i with every leaf of its own or a coarser level that touches it. */
static void join_neighbours(int64_t n, leaf *l, int64_t i, unsigned levels) {
  const int level = l[i].level;
  const int64_t last = ((int64_t)1 << level) - 1;
  const int64_t c[3] = {(int64_t)fmm_key_compact(l[i].key), (int64_t)fmm_key_compact(l[i].key >> 1), (int64_t)fmm_key_compact(l[i].key >> 2)};
  for (int d = 0; d < 27; d++) {
    int64_t x = c[0] + d % 3 - 1, y = c[1] + d / 3 % 3 - 1, z = c[2] + d / 9 - 1;
    if (x < 0 || y < 0 || z < 0 || x > last || y > last || z > last) continue;
    uint64_t key = fmm_key_of((uint32_t)x, (uint32_t)y, (uint32_t)z);
    for (int k = level; k >= 0; k--) {
      int64_t j = levels >> k & 1 ? fmm_cluster_search(n, l, k, key >> 3 * (level - k)) : -1;
      if (j >= 0) join(l, i, j);
    }
  }
}

typedef struct block { int64_t lo[3], hi[3]; } block; /* cells of the finest level */

static void extend_block(block *b, const leaf *l) {
  const int s = FMM_KEY_LEVEL - l->level;
  for (int a = 0; a < 3; a++) {
    int64_t c = (int64_t)fmm_key_compact(l->key >> a);
    if (c << s < b->lo[a]) b->lo[a] = c << s;
    if (((c + 1) << s) - 1 > b->hi[a]) b->hi[a] = ((c + 1) << s) - 1;
  }
}

/* Finest level, not finer than `level`, where the block fits into 2 x 2 x 2 cells. */
static int level_that_fits(const block *b, int level) {
  for (;; level--) {
    int s = FMM_KEY_LEVEL - level, fits = 1;
    for (int a = 0; a < 3; a++) fits &= (b->hi[a] >> s) - (b->lo[a] >> s) <= 1;
    if (fits) return level;
  }
}

/* One round: groups, then lifting; returns whether anything was lifted. blocks, levels: n each, workspace. */
static int lift_groups(int64_t *n, leaf *l, block *blocks, int32_t *group_level) {
  unsigned levels = 0;
  for (int64_t i = 0; i < *n; i++) {
    l[i].cluster = (int32_t)i, levels |= 1u << l[i].level;
    blocks[i] = (block){{INT64_MAX, INT64_MAX, INT64_MAX}, {-1, -1, -1}}, group_level[i] = FMM_KEY_LEVEL;
  }
  for (int64_t i = 0; i < *n; i++) join_neighbours(*n, l, i, levels);
  for (int64_t i = 0; i < *n; i++) {
    int32_t g = group_of(l, (int32_t)i);
    extend_block(&blocks[g], &l[i]);
    if (l[i].level < group_level[g]) group_level[g] = l[i].level;
  }
  int lifted = 0;
  int64_t kept = 0;
  for (int64_t i = 0; i < *n; i++)
    if (l[i].cluster == i) group_level[i] = level_that_fits(&blocks[i], group_level[i]);
  for (int64_t i = 0; i < *n; i++) l[i].cluster = group_of(l, (int32_t)i);
  for (int64_t i = 0; i < *n; i++) {
    int level = group_level[l[i].cluster];
    lifted |= level != l[i].level;
    if (level < FMM_CLUSTER_MIN_LEVEL) continue; /* given up */
    leaf up = {l[i].key >> 3 * (l[i].level - level), level, l[i].cluster};
    l[kept++] = up;
  }
  *n = kept;
  return lifted;
}

static int64_t unique_leaves(int64_t n, leaf *l) {
  if (n > 1) qsort(l, (size_t)n, sizeof *l, by_level_and_key);
  int64_t kept = 0;
  for (int64_t i = 0; i < n; i++)
    if (!i || by_level_and_key(&l[i], &l[kept - 1])) l[kept++] = l[i];
  return kept;
}

/* Numbers the groups from 0 by their first leaf; number: n, workspace. */
static int32_t number_groups(int64_t n, leaf *l, int32_t *number, int32_t n_names) {
  int32_t count = 0;
  for (int32_t i = 0; i < n_names; i++) number[i] = -1;
  for (int64_t i = 0; i < n; i++) {
    int32_t *k = &number[l[i].cluster];
    if (*k < 0) *k = count++;
    l[i].cluster = *k;
  }
  return count;
}

fmm_status fmm_clusters_find(int64_t n, const uint64_t *keys, leaf **leaves, int64_t *n_leaves, int32_t *n_clusters) {
  leaf *l = NULL;
  block *blocks = NULL;
  int32_t *workspace = NULL;
  fmm_status status;
  FMM_CHECK(FMM_ALLOCATE(&l, n, "leaves of clusters"));
  FMM_CHECK(FMM_ALLOCATE(&blocks, n, "extents of clusters"));
  FMM_CHECK(FMM_ALLOCATE(&workspace, n, "levels of clusters"));
  for (int64_t i = 0; i < n; i++) l[i] = (leaf){keys[i], FMM_KEY_LEVEL, 0};
  int64_t kept = n;
  while (lift_groups(&kept, l, blocks, workspace)) kept = unique_leaves(kept, l);
  *n_clusters = number_groups(kept, l, workspace, (int32_t)n);
  *leaves = l, *n_leaves = kept;
done:
  if (status != FMM_OK) FMM_FREE(&l);
  FMM_FREE(&blocks);
  FMM_FREE(&workspace);
  return status;
}
