/* The collectors: which boxes are in the U, V, W and X list of one box (Ying, Biros, Zorin 2004, section 3.2), read from the
 * neighbour table, with the moves of cheap W and X pairs into U (lists.h). */
#include "lister.h"

static void emit(fmm_emitter *e, int32_t box, int direction) {
  if (e->n < e->most) {
    e->entry[e->n] = box;
    if (e->direction) e->direction[e->n] = (uint8_t)direction;
  }
  e->n++;
}

static int64_t n_sources(const fmm_tree *t, int32_t b) { return t->source_end[b] - t->source_begin[b]; }
static int64_t n_targets(const fmm_tree *t, int32_t b) { return t->target_end[b] - t->target_begin[b]; }

/* The leaves with sources among a box's neighbours, each once, and for each the directions where it lies, one bit each; returns how many. Only
 * coarser ones can fill several places. */
static int near_leaves(const fmm_lister *l, int32_t b, int32_t leaf[27], uint32_t places[27]) {
  const int32_t *near = l->near + 27 * (int64_t)b, own_level = l->tree->level_begin[l->tree->level[b]];
  int n = 0, coarser[27], n_coarser = 0;
  for (uint32_t left = l->around[b].leaves; left; left &= left - 1) {
    const int k = __builtin_ctz(left), c = near[k];
    int at = n;
    for (int j = 0; c < own_level && j < n_coarser; j++)
      if (leaf[coarser[j]] == c) at = coarser[j];
    if (at == n) {
      if (c < own_level) coarser[n_coarser++] = n;
      leaf[n] = c, places[n++] = 0;
    }
    places[at] |= (uint32_t)1 << k;
  }
  return n;
}

/* Every X pair of box b, the ones cheaper directly too: leaves near the parent but not near b. */
static void all_x(const fmm_lister *l, int32_t b, fmm_emitter *e) {
  int32_t parent = l->tree->parent[b], leaf[27];
  uint32_t places[27];
  if (parent < 0 || !l->around[parent].leaves) return;
  int n = near_leaves(l, parent, leaf, places);
  for (int i = 0; i < n; i++)
    if (!(places[i] & l->touching[l->tree->octant[b]])) emit(e, leaf[i], 0);
}

/* Walks the boxes below one finer neighbour of a leaf, without recursion (depth is at most that of the tree, eight children each; boxes that do
 * not touch the leaf go onto the stack as complements): direct ones go to u, the rest to w; either may be NULL. Of direct ones it is their leaves where targets are the
 * sources: these hold the leaf as well, and two that hold one another are summed at once. */
static void walk_below(const fmm_lister *l, int32_t neighbour, unsigned facing, fmm_emitter *u, fmm_emitter *w) {
  const fmm_tree *t = l->tree;
  int32_t stack[8 * FMM_MAX_LEVELS];
  int n = 0;
  stack[n++] = neighbour;
  while (n) {
    const int32_t item = stack[--n], c = item < 0 ? ~item : item;
    const int64_t sources = n_sources(t, c);
    if (!sources) continue;
    const int direct = sources <= l->direct_threshold || (item >= 0 && !l->children[c].there);
    if (direct && (!u || !t->same_points || !l->children[c].there)) {
      if (u) emit(u, c, 0);
    } else if (!direct && item < 0) {
      if (w) emit(w, c, 0);
    } else {
      for (int32_t i = t->first_child[c] + t->n_children[c] - 1; i >= t->first_child[c]; i--) stack[n++] = facing >> t->octant[i] & 1 ? i : ~i;
    }
  }
}

/* The same below all neighbours of leaf b; only those of its own level have children (the neighbour table holds none finer). */
static void walk_finer(const fmm_lister *l, int32_t b, fmm_emitter *u, fmm_emitter *w) {
  const int32_t *near = l->near + 27 * (int64_t)b;
  for (uint32_t left = l->around[b].parents; left; left &= left - 1) {
    const int k = __builtin_ctz(left);
    walk_below(l, near[k], l->facing[k], u, w);
  }
}

void fmm_collect_u(const fmm_lister *l, int32_t b, fmm_emitter *e) {
  const fmm_tree *t = l->tree;
  if (t->coincident || !n_targets(t, b)) return;
  int32_t leaf[27];
  uint32_t places[27];
  int n = near_leaves(l, b, leaf, places);
  for (int i = 0; i < n; i++)
    if (t->cluster[b] < 0 || t->cluster[b] != t->cluster[leaf[i]]) emit(e, leaf[i], 0);
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
  const unsigned targets = l->children[b].targets;
  if (!targets) return;
  for (uint32_t left = l->around[b].parents & ~((uint32_t)1 << 13); left; left &= left - 1) {
    const int k = __builtin_ctz(left);
    const int32_t q = near[k];
    unsigned any = 0;
    for (int t = 0; t < 8; t++)
      if (targets >> t & 1) any |= l->far[k][t] & l->children[q].sources;
    if (any) emit(e, q, k);
  }
}
