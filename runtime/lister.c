/* The neighbour table, level by level from the root: a child's neighbour is a child of its parent's neighbour, or that neighbour
 * itself where it is a leaf. */
#include "lister.h"

#include "team_loop.h"

static void make_far_masks(fmm_lister *l) {
  for (int direction = 0; direction < 27; direction++)
    for (int t = 0; t < 8; t++) {
      l->far[direction][t] = 0;
      for (int s = 0; s < 8; s++) {
        const int d[3] = {direction % 3 - 1, direction / 3 % 3 - 1, direction / 9 - 1};
        int is_far = 0;
        for (int a = 0; a < 3; a++) {
          int offset = 2 * d[a] + (s >> a & 1) - (t >> a & 1);
          is_far |= offset < -1 || offset > 1;
        }
        l->far[direction][t] |= (uint8_t)(is_far << s);
      }
    }
}

/* Towards the box on an axis: from below it the upper half, from above the lower, beside it both. */
static void make_facing_masks(fmm_lister *l) {
  static const uint8_t upper[3] = {0xaa, 0xcc, 0xf0}; /* octants in the upper half of an axis */
  for (int direction = 0; direction < 27; direction++) {
    const int d[3] = {direction % 3 - 1, direction / 3 % 3 - 1, direction / 9 - 1};
    l->facing[direction] = 0xff;
    for (int a = 0; a < 3; a++)
      if (d[a]) l->facing[direction] &= (uint8_t)(d[a] < 0 ? upper[a] : ~upper[a]);
  }
}

static void describe_box(fmm_lister *l, int32_t b) {
  const fmm_tree *t = l->tree;
  unsigned all = 0, sources = 0, targets = 0;
  for (int32_t c = t->first_child[b], k = 0; k < t->n_children[b]; k++, c++) {
    unsigned bit = 1u << t->octant[c];
    all |= bit;
    if (t->source_end[c] > t->source_begin[c]) sources |= bit;
    if (t->target_end[c] > t->target_begin[c]) targets |= bit;
  }
  l->source_leaf[b] = !all && t->source_end[b] > t->source_begin[b];
  l->children[b] = (uint8_t)all, l->source_children[b] = (uint8_t)sources, l->target_children[b] = (uint8_t)targets;
}

static int32_t child_at(const fmm_lister *l, int32_t box, int octant) {
  unsigned mask = l->children[box];
  if (!(mask >> octant & 1)) return -1;
  return l->tree->first_child[box] + fmm_count_bits(mask & ((1u << octant) - 1));
}

static void find_neighbours(fmm_lister *l, int32_t b) {
  const fmm_tree *t = l->tree;
  const int32_t parent = t->parent[b], *around = l->near + 27 * (int64_t)parent;
  const int o = t->octant[b], ox = o & 1, oy = o >> 1 & 1, oz = o >> 2;
  int32_t *near = l->near + 27 * (int64_t)b;
  unsigned leaf = 0, finer = 0;
  for (int z = oz - 1; z <= oz + 1; z++)
    for (int y = oy - 1; y <= oy + 1; y++)
      for (int x = ox - 1; x <= ox + 1; x++) { /* -1 .. 2: parent's offset is the halved floor, the child's octant the rest */
        int32_t n = around[((x + 2) >> 1) + 3 * ((y + 2) >> 1) + 9 * ((z + 2) >> 1)];
        if (n >= 0 && l->children[n] && t->level[n] == t->level[parent]) n = child_at(l, n, (x & 1) | (y & 1) << 1 | (z & 1) << 2);
        *near++ = n;
        if (n >= 0 && n != b) leaf |= l->source_leaf[n], finer |= l->children[n];
      }
  l->around[b] = (uint8_t)((leaf ? FMM_AROUND_LEAF : 0) | (finer ? FMM_AROUND_FINER : 0));
}

static fmm_status allocate_lister(fmm_lister *l) {
  const int64_t n = l->tree->n_boxes;
  FMM_TRY(FMM_ALLOCATE(&l->near, 27 * n, "neighbours of boxes"));
  FMM_TRY(FMM_ALLOCATE(&l->children, n, "children of boxes"));
  FMM_TRY(FMM_ALLOCATE(&l->source_leaf, n, "leaves with sources"));
  FMM_TRY(FMM_ALLOCATE(&l->source_children, n, "children of boxes"));
  FMM_TRY(FMM_ALLOCATE(&l->around, n, "neighbours of boxes"));
  return FMM_ALLOCATE(&l->target_children, n, "children of boxes");
}

static void describe_piece(void *context, int64_t begin, int64_t end) {
  for (int64_t b = begin; b < end; b++) describe_box(context, (int32_t)b);
}

/* Boxes of a level, from its first one on. */
typedef struct level_boxes { fmm_lister *lister; int32_t first; } level_boxes;

static void find_neighbours_of_piece(void *context, int64_t begin, int64_t end) {
  const level_boxes *l = context;
  for (int64_t i = begin; i < end; i++) find_neighbours(l->lister, l->first + (int32_t)i);
}

fmm_status fmm_lister_make(fmm_lister *l, const fmm_tree *tree, int64_t direct_threshold, int threads) {
  *l = (fmm_lister){.tree = tree, .direct_threshold = direct_threshold};
  fmm_status status = allocate_lister(l);
  if (status != FMM_OK) {
    fmm_lister_free(l);
    return status;
  }
  make_far_masks(l);
  make_facing_masks(l);
  fmm_team_loop(tree->n_boxes, FMM_PARALLEL_MINIMUM, describe_piece, l, threads);
  for (int k = 0; k < 27; k++) l->near[k] = k == 13 ? 0 : -1;
  l->around[0] = 0;
  for (int level = 1; level < tree->n_levels; level++) {
    const int32_t first = tree->level_begin[level], n = tree->level_begin[level + 1] - first;
    fmm_team_loop(n, FMM_PARALLEL_MINIMUM, find_neighbours_of_piece, &(level_boxes){l, first}, threads);
  }
  return FMM_OK;
}

void fmm_lister_free(fmm_lister *l) {
  FMM_FREE(&l->near);
  FMM_FREE(&l->children);
  FMM_FREE(&l->source_leaf);
  FMM_FREE(&l->source_children);
  FMM_FREE(&l->target_children);
  FMM_FREE(&l->around);
}
