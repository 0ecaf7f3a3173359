/* The collectors: which boxes are in the U, V, W and X list of one box (Ying, Biros, Zorin 2004, section 3.2), read from the
 * neighbour table, with the moves of cheap W and X pairs into U (lists.h). */
#include "lister.h"

static void emit(fmm_emitter *e, int32_t box, int direction) {
  if (e->entry) e->entry[e->n] = box;
  if (e->direction) e->direction[e->n] = (uint8_t)direction;
  e->n++;
}

static int64_t n_sources(const fmm_tree *t, int32_t b) { return t->source_end[b] - t->source_begin[b]; }
static int64_t n_targets(const fmm_tree *t, int32_t b) { return t->target_end[b] - t->target_begin[b]; }

/* Whether a box c, not coarser than b, touches or overlaps b. */
static int touches(const fmm_lister *l, int32_t b, int32_t c) {
  const int shift = l->tree->level[c] - l->tree->level[b];
  for (int a = 0; a < 3; a++) {
    int64_t lo = (int64_t)l->cell[a][b] << shift, hi = ((int64_t)l->cell[a][b] + 1) << shift, at = l->cell[a][c];
    if (at < lo - 1 || at > hi) return 0;
  }
  return 1;
}

/* The leaves with sources among a box's neighbours, each once; returns how many. Only coarser ones can fill several places. */
static int near_leaves(const fmm_lister *l, int32_t b, int32_t leaves[27]) {
  const int32_t *near = l->near + 27 * (int64_t)b, own_level = l->tree->level_begin[l->tree->level[b]];
  int n = 0, coarser[27], n_coarser = 0;
  for (int k = 0; k < 27; k++) {
    int32_t c = near[k];
    if (c < 0 || !l->source_leaf[c]) continue;
    int known = 0;
    if (c < own_level) {
      for (int j = 0; j < n_coarser; j++) known |= coarser[j] == c;
      if (!known) coarser[n_coarser++] = c;
    }
    if (!known) leaves[n++] = c;
  }
  return n;
}

/* Every X pair of box b, the ones cheaper directly too: leaves near the parent but not near b. */
static void all_x(const fmm_lister *l, int32_t b, fmm_emitter *e) {
  int32_t parent = l->tree->parent[b], above[27];
  if (parent < 0) return;
  int n = near_leaves(l, parent, above);
  for (int i = 0; i < n; i++)
    if (!touches(l, above[i], b)) emit(e, above[i], 0);
}

/* Walks the boxes below the finer neighbours of leaf b, without recursion (depth is at most that of the tree, eight children each):
 * direct ones go to u, the rest to w; either may be NULL. */
static void walk_finer(const fmm_lister *l, int32_t b, fmm_emitter *u, fmm_emitter *w) {
  const fmm_tree *t = l->tree;
  const int32_t *near = l->near + 27 * (int64_t)b;
  int32_t stack[8 * FMM_MAX_LEVELS];
  for (int k = 0; k < 27; k++) {
    if (near[k] < 0 || !l->children[near[k]]) continue;
    int n = 0;
    stack[n++] = near[k];
    while (n) {
      int32_t c = stack[--n];
      if (!n_sources(t, c)) continue;
      int cheap = n_sources(t, c) <= l->direct_threshold, is_near = touches(l, b, c);
      if (cheap || (is_near && !l->children[c])) {
        if (u) emit(u, c, 0);
      } else if (!is_near) {
        if (w) emit(w, c, 0);
      } else {
        for (int i = t->n_children[c] - 1; i >= 0; i--) stack[n++] = t->first_child[c] + i;
      }
    }
  }
}

void fmm_collect_u(const fmm_lister *l, int32_t b, fmm_emitter *e) {
  const fmm_tree *t = l->tree;
  if (t->coincident || !n_targets(t, b)) return;
  int32_t leaves[27];
  int n = near_leaves(l, b, leaves);
  for (int i = 0; i < n; i++)
    if (t->cluster[b] < 0 || t->cluster[b] != t->cluster[leaves[i]]) emit(e, leaves[i], 0);
  walk_finer(l, b, e, NULL);
  for (int32_t a = b; a >= 0 && n_targets(t, a) <= l->direct_threshold; a = t->parent[a]) all_x(l, a, e);
}

void fmm_collect_w(const fmm_lister *l, int32_t b, fmm_emitter *e) {
  if (n_targets(l->tree, b)) walk_finer(l, b, NULL, e);
}

void fmm_collect_x(const fmm_lister *l, int32_t b, fmm_emitter *e) {
  if (n_targets(l->tree, b) > l->direct_threshold) all_x(l, b, e);
}

void fmm_collect_v(const fmm_lister *l, int32_t b, fmm_emitter *e) {
  const int32_t *near = l->near + 27 * (int64_t)b;
  if (!l->target_children[b]) return;
  for (int k = 0; k < 27; k++) {
    int32_t q = near[k];
    if (k == 13 || q < 0 || !l->source_children[q] || l->tree->level[q] != l->tree->level[b]) continue;
    unsigned any = 0;
    for (int t = 0; t < 8; t++)
      if (l->target_children[b] >> t & 1) any |= l->far[k][t] & l->source_children[q];
    if (any) emit(e, q, k);
  }
}
