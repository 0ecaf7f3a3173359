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

/* Every X pair of box b, the ones cheaper directly too: leaves near the parent but not near b. Only leaves coarser than the parent can fill several places. */
static void all_x(const fmm_lister *l, int32_t b, fmm_emitter *e) {
  const fmm_tree *t = l->tree;
  const int32_t parent = t->parent[b];
  if (parent < 0) return;
  const fmm_around *around = fmm_around_of(l, parent);
  const int32_t *near = around->near, own_level = t->level_begin[t->level[parent]];
  const uint32_t leaves = around->leaves, touching = l->touching[t->octant[b]];
  if (!leaves) return;
  int32_t coarser[27]; /* that touch b or are known */
  int n = 0;
  for (uint32_t left = leaves & touching; left; left &= left - 1) {
    const int32_t c = near[__builtin_ctz(left)];
    if (c < own_level) coarser[n++] = c;
  }
  for (uint32_t left = leaves & ~touching; left; left &= left - 1) {
    const int32_t c = near[__builtin_ctz(left)];
    int known = 0;
    for (int i = 0; c < own_level && i < n; i++) known |= coarser[i] == c;
    if (known) continue;
    if (c < own_level) coarser[n++] = c;
    emit(e, c, 0);
  }
}

/* Walks the boxes below one finer neighbour of a leaf, without recursion (depth is at most that of the tree, eight children each; boxes that do
 * not touch the leaf go onto the stack as complements): direct ones go to u, the rest to w. Of direct ones it is their leaves where targets are the
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
    if (direct && (!t->same_points || !l->children[c].there)) emit(u, c, 0);
    else if (!direct && item < 0) emit(w, c, 0);
    else {
      for (int32_t i = t->first_child[c] + t->n_children[c] - 1; i >= t->first_child[c]; i--) stack[n++] = facing >> t->octant[i] & 1 ? i : ~i;
    }
  }
}

/* Of one of a leaf's parent's neighbours with children, those of these that are the leaf's neighbours: leaves, and what is below the others. */
static void collect_children(const fmm_lister *l, int32_t own_cluster, const fmm_children *c, const fmm_reach *r, fmm_emitter *u, fmm_emitter *w) {
  unsigned leaves = r->octants & c->leaves;
  if (own_cluster < 0 && u->n + 8 <= u->most) { /* nearly always */
    int32_t *to = u->entry + u->n;
    for (; leaves; leaves &= leaves - 1) *to++ = fmm_child_in(c, __builtin_ctz(leaves));
    u->n = to - u->entry;
  }
  for (; leaves; leaves &= leaves - 1) {
    const int32_t child = fmm_child_in(c, __builtin_ctz(leaves));
    if (own_cluster < 0 || own_cluster != l->tree->cluster[child]) emit(u, child, 0);
  }
  for (unsigned left = r->octants & c->parents; left; left &= left - 1) {
    const int octant = __builtin_ctz(left);
    walk_below(l, fmm_child_in(c, octant), l->facing[r->direction_of[octant]], u, w);
  }
}

/* U and W of a leaf: its neighbours are looked up from those of its parent, and kept nowhere. */
void fmm_collect_near(const fmm_lister *l, int32_t b, fmm_emitter *e) {
  const fmm_tree *t = l->tree;
  const int32_t parent = t->parent[b];
  int32_t coarser[8];
  int n_coarser = 0;
  if (t->coincident || !n_targets(t, b)) return;
  if (parent < 0 && l->children[b].is_leaf && t->cluster[b] < 0) emit(&e[0], b, 0);
  for (int half = 0; half < 8 && parent >= 0; half++) {
    const fmm_reach *r = &l->reach[t->octant[b]][half];
    const int32_t n = fmm_around_of(l, parent)->near[r->from];
    if (n < 0) continue;
    const fmm_children *c = &l->children[n];
    if (c->there) {
      collect_children(l, t->cluster[b], c, r, &e[0], &e[1]);
      continue;
    }
    int known = !c->is_leaf || (t->cluster[b] >= 0 && t->cluster[b] == t->cluster[n]);
    for (int k = 0; k < n_coarser; k++) known |= coarser[k] == n;
    if (known) continue;
    coarser[n_coarser++] = n;
    emit(&e[0], n, 0);
  }
  for (int32_t a = b; a >= 0 && n_targets(t, a) <= l->direct_threshold; a = t->parent[a]) all_x(l, a, &e[0]);
}

void fmm_collect_x(const fmm_lister *l, int32_t b, fmm_emitter *e) {
  if (n_targets(l->tree, b) > l->direct_threshold) all_x(l, b, e);
}

void fmm_collect_v(const fmm_lister *l, int32_t b, fmm_emitter *e) {
  const uint64_t targets = fmm_octant_bytes(l->children[b].targets);
  if (!targets) return;
  const fmm_around *around = fmm_around_of(l, b);
  for (uint32_t left = around->parents & ~((uint32_t)1 << 13); left; left &= left - 1) {
    const int k = __builtin_ctz(left);
    const int32_t q = around->near[k];
    if (fmm_far_pairs(l->far[k], targets, l->children[q].sources)) emit(e, q, k);
  }
}
