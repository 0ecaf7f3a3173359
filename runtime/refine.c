/* Boxes from sorted keys, level by level from the root. A box is split by binary searches for its children's borders in the sorted
 * keys; every level is made in two parallel passes over those of its boxes that are split (borders, children) around a prefix sum, so that the
 * result does not depend on the number of threads. Levels are kept as arrays of nodes and copied into the tree's flat arrays at the end. */
#include "refine.h"

#include <math.h>
#include <string.h>

#include "cluster.h"
#include "jobs.h"
#include "points.h"
#include "team_loop.h"

typedef struct node {
  uint64_t key;
  int64_t begin[2], end[2]; /* sources, targets */
  int32_t parent, first_child, cluster;
  uint8_t n_children;
} node;

/* A node that has children, and where these begin and end among sources and targets. */
typedef struct split { int32_t node; int64_t border[2][9]; } split;

typedef struct building {
  fmm_tree *tree;
  const int64_t *most;            /* a box with more sources, or more targets, is split */
  int threads;
  const fmm_sorted_words *keys[2]; /* sources, targets */
  fmm_cluster_leaf *cluster_leaf; /* by level and key */
  int64_t n_cluster_leaves;
  node *level[FMM_MAX_LEVELS];
  int64_t level_size[FMM_MAX_LEVELS];
  int n_levels;
  split *splits;                  /* of the level that is being split */
} building;

/* Borders of the eight children in one set of points: all searches side by side, without a branch that depends on keys. */
static void find_borders(const building *b, const node *n, int level, int set, int64_t border[9]) {
  const int shift = 3 * (FMM_KEY_LEVEL - level - 1);
  const uint64_t *word = b->keys[set]->word;
  uint64_t bound[8];
  for (int o = 0; o < 8; o++) border[o] = n->begin[set], bound[o] = fmm_word_bound(b->keys[set], (n->key << 3 | (uint64_t)o) << shift);
  border[8] = n->end[set];
  for (int64_t left = n->end[set] - n->begin[set]; left > 0;) { /* where it is less than `left` further on */
    const int64_t half = (left + 1) / 2;
    for (int o = 1; o < 8; o++) border[o] += word[border[o] + half - 1] < bound[o] ? half : 0;
    left -= half;
  }
}

static int is_split(const building *b, const node *n, int level) {
  const int64_t *most = b->most;
  return level < FMM_KEY_LEVEL && !b->tree->coincident && n->cluster < 0 && (n->end[0] - n->begin[0] > most[0] || n->end[1] - n->begin[1] > most[1]);
}

static void find_cluster(const building *b, node *n, int level) {
  int64_t at = fmm_cluster_search(b->n_cluster_leaves, b->cluster_leaf, level, n->key);
  n->cluster = at < 0 ? -1 : b->cluster_leaf[at].cluster;
}

/* Whether a child has points. */
static int is_there(const split *s, int octant) {
  return s->border[0][octant + 1] > s->border[0][octant] || s->border[1][octant + 1] > s->border[1][octant];
}

static void count_children(const building *b, split *s, int level) {
  node *n = &b->level[level][s->node];
  find_borders(b, n, level, 0, s->border[0]);
  if (b->tree->same_points) memcpy(s->border[1], s->border[0], sizeof s->border[0]);
  else find_borders(b, n, level, 1, s->border[1]);
  for (int o = 0; o < 8; o++) n->n_children += is_there(s, o);
}

static void make_children(const building *b, const split *s, int level) {
  const node *n = &b->level[level][s->node];
  node *child = b->level[level + 1] + n->first_child;
  for (int o = 0; o < 8; o++)
    if (is_there(s, o)) {
      *child = (node){.key = n->key << 3 | (uint64_t)o, .begin = {s->border[0][o], s->border[1][o]}, .end = {s->border[0][o + 1], s->border[1][o + 1]}, .parent = s->node};
      find_cluster(b, child++, level + 1);
    }
}

/* Pieces of a level, or of what is split of it. */
typedef struct piece { building *b; int level; } piece;

static void count_piece(void *context, int64_t begin, int64_t end) {
  const piece *p = context;
  for (int64_t i = begin; i < end; i++) count_children(p->b, &p->b->splits[i], p->level);
}

static void make_piece(void *context, int64_t begin, int64_t end) {
  const piece *p = context;
  for (int64_t i = begin; i < end; i++) make_children(p->b, &p->b->splits[i], p->level);
}

static fmm_status find_splits(building *b, int level, int64_t *n_splits) {
  const node *nodes = b->level[level];
  int64_t n = 0;
  for (int64_t i = 0; i < b->level_size[level]; i++) n += is_split(b, &nodes[i], level);
  FMM_FREE(&b->splits);
  FMM_TRY(FMM_ALLOCATE(&b->splits, n, "boxes that are split"));
  *n_splits = n, n = 0;
  for (int64_t i = 0; i < b->level_size[level]; i++)
    if (is_split(b, &nodes[i], level)) b->splits[n++].node = (int32_t)i;
  return FMM_OK;
}

static fmm_status refine_level(building *b, int level) {
  enum { least = 16 }; /* boxes to split that are worth a piece, some microseconds */
  piece all = {b, level};
  node *nodes = b->level[level];
  int64_t n_splits, total = 0, before = 0;
  FMM_TRY(find_splits(b, level, &n_splits));
  fmm_team_loop(n_splits, least, count_piece, &all, b->threads);
  for (int l = 0; l <= level; l++) before += b->level_size[l];
  for (int64_t i = 0; i < n_splits; i++) {
    node *n = &nodes[b->splits[i].node];
    n->first_child = (int32_t)total; /* within the next level */
    total += n->n_children;
    if (before + total > INT32_MAX)
      return FMM_FAIL(FMM_ERR_ARGUMENT, "leaf size %d makes more than %d boxes; use a larger one", b->tree->leaf_size, INT32_MAX);
  }
  b->n_levels = level + 1;
  if (!total) return FMM_OK;
  FMM_TRY(FMM_ALLOCATE(&b->level[level + 1], total, "boxes of a level"));
  b->level_size[level + 1] = total;
  fmm_team_loop(n_splits, least, make_piece, &all, b->threads);
  return FMM_OK;
}

static fmm_status refine(building *b) {
  FMM_TRY(FMM_ALLOCATE(&b->level[0], 1, "root box"));
  b->level_size[0] = 1;
  b->level[0][0] = (node){.end = {b->tree->sources.n, b->tree->targets.n}, .parent = -1, .cluster = -1};
  for (int l = 0; l < FMM_MAX_LEVELS && b->level_size[l]; l++) FMM_TRY(refine_level(b, l));
  return FMM_OK;
}

static fmm_status allocate_boxes(fmm_tree *t) {
  const int64_t n = t->n_boxes;
  FMM_TRY(FMM_ALLOCATE(&t->key, n, "keys of boxes"));
  FMM_TRY(FMM_ALLOCATE(&t->level, n, "levels of boxes"));
  FMM_TRY(FMM_ALLOCATE(&t->parent, n, "parents of boxes"));
  FMM_TRY(FMM_ALLOCATE(&t->first_child, n, "children of boxes"));
  FMM_TRY(FMM_ALLOCATE(&t->n_children, n, "children of boxes"));
  FMM_TRY(FMM_ALLOCATE(&t->octant, n, "octants of boxes"));
  FMM_TRY(FMM_ALLOCATE(&t->source_begin, n, "source ranges of boxes"));
  FMM_TRY(FMM_ALLOCATE(&t->source_end, n, "source ranges of boxes"));
  FMM_TRY(FMM_ALLOCATE(&t->target_begin, n, "target ranges of boxes"));
  FMM_TRY(FMM_ALLOCATE(&t->target_end, n, "target ranges of boxes"));
  FMM_TRY(FMM_ALLOCATE(&t->center_x, n, "centres of boxes"));
  FMM_TRY(FMM_ALLOCATE(&t->center_y, n, "centres of boxes"));
  FMM_TRY(FMM_ALLOCATE(&t->center_z, n, "centres of boxes"));
  return FMM_ALLOCATE(&t->cluster, n, "clusters of boxes");
}

static void fill_box(const building *b, fmm_tree *t, int level, int64_t i) {
  const node *n = &b->level[level][i];
  const int64_t box = t->level_begin[level] + i;
  const double side = ldexp(t->root_side, -level);
  t->key[box] = n->key;
  t->level[box] = (uint8_t)level;
  t->parent[box] = level ? t->level_begin[level - 1] + n->parent : -1;
  t->first_child[box] = n->n_children ? t->level_begin[level + 1] + n->first_child : -1;
  t->n_children[box] = n->n_children;
  t->octant[box] = n->key & 7;
  t->source_begin[box] = n->begin[0], t->source_end[box] = n->end[0];
  t->target_begin[box] = n->begin[1], t->target_end[box] = n->end[1];
  t->center_x[box] = t->root_lo[0] + ((double)fmm_key_compact(n->key) + 0.5) * side;
  t->center_y[box] = t->root_lo[1] + ((double)fmm_key_compact(n->key >> 1) + 0.5) * side;
  t->center_z[box] = t->root_lo[2] + ((double)fmm_key_compact(n->key >> 2) + 0.5) * side;
  t->cluster[box] = n->cluster;
}

static void fill_piece(void *context, int64_t begin, int64_t end) {
  const piece *p = context;
  for (int64_t i = begin; i < end; i++) fill_box(p->b, p->b->tree, p->level, i);
}

static fmm_status flatten(building *b) {
  fmm_tree *t = b->tree;
  int64_t total = 0;
  t->n_levels = b->n_levels;
  for (int l = 0; l < FMM_MAX_LEVELS; l++) t->level_begin[l] = (int32_t)total, total += b->level_size[l];
  t->level_begin[FMM_MAX_LEVELS] = t->n_boxes = (int32_t)total;
  FMM_TRY(allocate_boxes(t));
  for (int l = 0; l < t->n_levels; l++) fmm_team_loop(b->level_size[l], FMM_PARALLEL_MINIMUM / 4, fill_piece, &(piece){b, l}, b->threads);
  return FMM_OK;
}

/* Depth-first order of the leaves: leaves below each box bottom-up, then each box's first position top-down. */
static fmm_status order_leaves(fmm_tree *t) {
  int32_t *below = NULL, *position = NULL;
  fmm_status status;
  FMM_CHECK(FMM_ALLOCATE_ZERO(&below, t->n_boxes, "leaf numbers"));
  FMM_CHECK(FMM_ALLOCATE_ZERO(&position, t->n_boxes, "leaf numbers"));
  for (int32_t i = t->n_boxes - 1; i >= 0; i--) {
    if (!t->n_children[i]) below[i] = 1;
    if (i) below[t->parent[i]] += below[i];
  }
  t->n_leaves = below[0];
  FMM_CHECK(FMM_ALLOCATE(&t->leaf, t->n_leaves, "leaves"));
  for (int32_t i = 0; i < t->n_boxes; i++) {
    if (!t->n_children[i]) t->leaf[position[i]] = i;
    for (int32_t c = t->first_child[i], at = position[i], k = 0; k < t->n_children[i]; k++, c++) position[c] = at, at += below[c];
  }
done:
  FMM_FREE(&below);
  FMM_FREE(&position);
  return status;
}

static fmm_status index_clusters(fmm_tree *t) {
  FMM_TRY(FMM_ALLOCATE_ZERO(&t->cluster_first, t->n_clusters + 1, "clusters"));
  for (int32_t i = 0; t->n_clusters && i < t->n_boxes; i++)
    if (t->cluster[i] >= 0) t->cluster_first[t->cluster[i] + 1]++;
  for (int32_t k = 0; k < t->n_clusters; k++) t->cluster_first[k + 1] += t->cluster_first[k];
  FMM_TRY(FMM_ALLOCATE(&t->cluster_leaf, t->cluster_first[t->n_clusters], "leaves of clusters"));
  for (int32_t i = 0; t->n_clusters && i < t->n_boxes; i++) /* first[k] runs to the end of k, then all move up by one */
    if (t->cluster[i] >= 0) t->cluster_leaf[t->cluster_first[t->cluster[i]]++] = i;
  for (int32_t k = t->n_clusters; k > 0; k--) t->cluster_first[k] = t->cluster_first[k - 1];
  t->cluster_first[0] = 0;
  return FMM_OK;
}

static fmm_status find_clusters(building *b) {
  fmm_tree *t = b->tree;
  if (t->coincident || b->keys[0]->row_bits) return FMM_OK; /* in words no cell is overfull */
  const fmm_sorted_keys set[2] = {{b->keys[0]->word, t->sources.n, b->most[0]}, {b->keys[1]->word, t->targets.n, b->most[1]}};
  return fmm_clusters_of_keys(set, b->threads, &b->cluster_leaf, &b->n_cluster_leaves, &t->n_clusters);
}

static fmm_status build(void *context) {
  building *b = context;
  fmm_status status;
  FMM_CHECK(find_clusters(b));
  FMM_CHECK(refine(b));
  FMM_CHECK(flatten(b));
  FMM_CHECK(order_leaves(b->tree));
  FMM_CHECK(index_clusters(b->tree));
done:
  FMM_FREE(&b->cluster_leaf);
  FMM_FREE(&b->splits);
  for (int l = 0; l < FMM_MAX_LEVELS; l++) FMM_FREE(&b->level[l]);
  return status;
}

fmm_status fmm_tree_refine(fmm_tree *tree, const fmm_sorted_words *sources, const fmm_sorted_words *targets, const int64_t most[2], int threads) {
  const int are_many = tree->sources.n / most[0] > FMM_PARALLEL_MINIMUM || tree->targets.n / most[1] > FMM_PARALLEL_MINIMUM;
  building b = {.tree = tree, .most = most, .threads = are_many || fmm_team_size() > 1 ? threads : 1 /* few boxes are not worth waking a team */, .keys = {sources, targets}};
  return are_many ? fmm_job_run_alone(build, &b, threads) : build(&b);
}
