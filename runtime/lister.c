/* The neighbour table, level by level from the root: a child's neighbour is a child of its parent's neighbour, or that neighbour
 * itself where it is a leaf. */
#include "lister.h"

#include "team_loop.h"

void fmm_lists_far(uint64_t far[27]) {
  for (int direction = 0; direction < 27; direction++) {
    far[direction] = 0;
    for (int t = 0; t < 8; t++)
      for (int s = 0; s < 8; s++) {
        const int d[3] = {direction % 3 - 1, direction / 3 % 3 - 1, direction / 9 - 1};
        int is_far = 0;
        for (int a = 0; a < 3; a++) {
          int offset = 2 * d[a] + (s >> a & 1) - (t >> a & 1);
          is_far |= offset < -1 || offset > 1;
        }
        far[direction] |= (uint64_t)is_far << (8 * t + s);
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
  for (int octant = 0; octant < 8; octant++) {
    l->touching[octant] = 0;
    for (int k = 0; k < 27; k++) l->touching[octant] |= (uint32_t)(l->facing[26 - k] >> octant & 1) << k;
  }
}

static fmm_children describe_box(const fmm_tree *t, int32_t b) {
  fmm_children all = {.first = t->first_child[b], .table = -1, .is_leaf = !t->n_children[b] && t->source_end[b] > t->source_begin[b]};
  for (int32_t k = 0; k < t->n_children[b]; k++) {
    const int32_t c = all.first + k, octant = t->octant[c];
    const uint8_t bit = (uint8_t)(1u << octant);
    all.place |= (uint32_t)k << 4 * octant;
    all.there |= bit;
    if (t->n_children[c]) all.parents |= bit;
    if (t->target_end[c] > t->target_begin[c]) all.targets |= bit;
    if (t->source_end[c] == t->source_begin[c]) continue;
    all.sources |= bit;
    if (!t->n_children[c]) all.leaves |= bit;
  }
  return all;
}

/* Of the axis of an octant, the neighbours at -1 .. 1 that lie in the first (half 0) or the second of the two places of the parent's
 * neighbourhood that they reach: they begin at *first and *last is the last. Child at x of -1 .. 2 counted from the parent's lower half. */
static void half_of_axis(int bit, int half, int *first, int *last) {
  const int low = 2 * (bit + half) - 2;
  *first = low < bit - 1 ? bit - 1 : low;
  *last = low + 1 > bit + 1 ? bit + 1 : low + 1;
}

static void make_reach(fmm_reach *reach, const int o[3], const int half[3]) {
  int first[3], last[3];
  for (int a = 0; a < 3; a++) half_of_axis(o[a], half[a], &first[a], &last[a]);
  *reach = (fmm_reach){.from = (uint8_t)(o[0] + half[0] + 3 * (o[1] + half[1]) + 9 * (o[2] + half[2]))};
  for (int z = first[2]; z <= last[2]; z++)
    for (int y = first[1]; y <= last[1]; y++)
      for (int x = first[0]; x <= last[0]; x++) {
        const int k = (x - o[0] + 1) + 3 * (y - o[1] + 1) + 9 * (z - o[2] + 1);
        reach->direction[reach->n] = (uint8_t)k, reach->directions |= (uint32_t)1 << k;
        const int octant = (x & 1) | (y & 1) << 1 | (z & 1) << 2;
        reach->octants |= (uint8_t)(1u << octant), reach->direction_of[octant] = (uint8_t)k;
        reach->octant[reach->n++] = (uint8_t)octant;
      }
}

static void make_all_reaches(fmm_lister *l) {
  for (int o = 0; o < 8; o++)
    for (int h = 0; h < 8; h++) make_reach(&l->reach[o][h], (const int[]){o & 1, o >> 1 & 1, o >> 2}, (const int[]){h & 1, h >> 1 & 1, h >> 2});
}

/* The neighbours that lie in one of the parent's, n: that box's children, or that box itself where it has none, or nothing where it is -1. */
static void enter_neighbours(const fmm_lister *l, fmm_around *around, int32_t n, const fmm_reach *r) {
  const fmm_children *c = &l->children[n < 0 ? 0 : n];
  if (n < 0 || !c->there) {
    for (int i = 0; i < r->n; i++) around->near[r->direction[i]] = n;
    if (n >= 0 && c->is_leaf) around->leaves |= r->directions;
    return;
  }
  for (int i = 0; i < r->n; i++) {
    const int k = r->direction[i], child = r->octant[i];
    around->near[k] = c->there >> child & 1 ? fmm_child_in(c, child) : -1;
    around->leaves |= (uint32_t)(c->leaves >> child & 1) << k, around->parents |= (uint32_t)(c->parents >> child & 1) << k;
  }
}

static void find_neighbours(fmm_lister *l, int32_t b) {
  const fmm_reach *reach = l->reach[l->tree->octant[b]];
  const fmm_around *of_parent = fmm_around_of(l, l->tree->parent[b]);
  fmm_around own = {.leaves = 0};
  for (int half = 0; half < 8; half++) enter_neighbours(l, &own, of_parent->near[reach[half].from], &reach[half]);
  *fmm_around_of(l, b) = own;
}

static fmm_status allocate_lister(fmm_lister *l) {
  FMM_TRY(FMM_ALLOCATE(&l->children, l->tree->n_boxes, "children of boxes"));
  return FMM_ALLOCATE(&l->around, l->tree->n_boxes - l->tree->n_leaves, "neighbours of boxes");
}

static void describe_piece(void *context, int64_t begin, int64_t end) {
  const fmm_lister *l = context;
  for (int64_t b = begin; b < end; b++) l->children[b] = describe_box(l->tree, (int32_t)b);
}

static void number_tables(fmm_lister *l) {
  int32_t n = 0;
  for (int32_t b = 0; b < l->tree->n_boxes; b++)
    if (l->children[b].there) l->children[b].table = n++;
}

/* Boxes of a level, from its first one on. */
typedef struct level_boxes { fmm_lister *lister; int32_t first; } level_boxes;

static void find_neighbours_of_piece(void *context, int64_t begin, int64_t end) {
  const level_boxes *l = context;
  for (int64_t i = begin; i < end; i++)
    if (l->lister->children[l->first + i].there) find_neighbours(l->lister, l->first + (int32_t)i);
}

fmm_status fmm_lister_make(fmm_lister *l, const fmm_tree *tree, int64_t direct_threshold, int threads) {
  enum { least = 128 }; /* boxes that are worth a piece, some microseconds */
  *l = (fmm_lister){.tree = tree, .direct_threshold = direct_threshold};
  fmm_status status = allocate_lister(l);
  if (status != FMM_OK) {
    fmm_lister_free(l);
    return status;
  }
  fmm_lists_far(l->far);
  make_facing_masks(l);
  make_all_reaches(l);
  fmm_team_loop(tree->n_boxes, least, describe_piece, l, threads);
  number_tables(l);
  if (l->children[0].there) {
    for (int k = 0; k < 27; k++) l->around[0].near[k] = k == 13 ? 0 : -1;
    l->around[0].leaves = 0, l->around[0].parents = 1u << 13;
  }
  for (int level = 1; level < tree->n_levels; level++) {
    const int32_t first = tree->level_begin[level], n = tree->level_begin[level + 1] - first;
    fmm_team_loop(n, least, find_neighbours_of_piece, &(level_boxes){l, first}, threads);
  }
  return FMM_OK;
}

void fmm_lister_free(fmm_lister *l) {
  FMM_FREE(&l->children);
  FMM_FREE(&l->around);
}
