/* From sorted keys to the clusters worth a nested plan: overfull finest cells, their groups (cluster.c), and which groups are left to
 * direct sums. The pairs of a group left direct are at most its sources x targets, as all its leaves are mutually adjacent. */
#include "cluster.h"

#include <stdlib.h>

#include "points.h"
#include "team_loop.h"

/* Direct pairs allowed inside overfull cells: a U list of leaves of this many points, or fewer where leaves hold fewer. A group left direct is the
 * work of one thread, in one direction: a million points at most some seconds. */
enum { allowed_leaf = 64, neighbours = 27 };

static double allowed_pairs(const fmm_sorted_keys set[2]) {
  double n = (double)(set[0].n > set[1].n ? set[0].n : set[1].n), most = (double)(set[0].most > set[1].most ? set[0].most : set[1].most);
  return neighbours * (most < allowed_leaf ? most : allowed_leaf) * n;
}

typedef struct cell_count { const fmm_sorted_keys *set; int64_t cells; } cell_count;

static int begins_overfull_cell(const fmm_sorted_keys *set, int64_t i) {
  const uint64_t *key = set->key;
  return key[i] == key[i + set->most] && (i == 0 || key[i - 1] != key[i]);
}

static void count_cells(void *context, int64_t begin, int64_t end) {
  cell_count *c = context;
  int64_t cells = 0;
  for (int64_t i = begin; i < end; i++) cells += begins_overfull_cell(c->set, i);
  fmm_join_begin();
  c->cells += cells;
  fmm_join_end();
}

/* Overfull cells of one set: *count, and their keys into out unless it is NULL. */
static void overfull_cells(const fmm_sorted_keys *set, int threads, int64_t *count, uint64_t *out) {
  const int64_t last = set->n - set->most;
  cell_count c = {set, 0};
  if (!out) fmm_team_loop(last, 4 * FMM_PARALLEL_MINIMUM, count_cells, &c, threads); /* a nanosecond a key */
  for (int64_t i = 0; out && i < last; i++)
    if (begins_overfull_cell(set, i)) out[c.cells++] = set->key[i];
  *count = c.cells;
}

/* Points of one set in a box. */
static double points_in(const fmm_sorted_keys *set, int level, uint64_t key) {
  const int shift = 3 * (FMM_KEY_LEVEL - level);
  int64_t begin = fmm_keys_lower_bound(set->key, 0, set->n, key << shift);
  return (double)(fmm_keys_lower_bound(set->key, begin, set->n, (key + 1) << shift) - begin);
}

/* An upper bound of all pairs between touching overfull cells: a b <= (a^2 + b^2) / 2. */
static double most_pairs(const fmm_sorted_keys set[2], int64_t n, const uint64_t *cells) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) {
    double s = points_in(&set[0], FMM_KEY_LEVEL, cells[i]), t = points_in(&set[1], FMM_KEY_LEVEL, cells[i]);
    sum += neighbours * (s * s + t * t) / 2;
  }
  return sum;
}

/* Cells of a and b, both ascending and distinct, into out. */
static int64_t unite(const uint64_t *a, int64_t na, const uint64_t *b, int64_t nb, uint64_t *out) {
  int64_t i = 0, j = 0, n = 0;
  while (i < na || j < nb) {
    uint64_t key = j >= nb || (i < na && a[i] <= b[j]) ? a[i] : b[j];
    i += i < na && a[i] == key, j += j < nb && b[j] == key;
    out[n++] = key;
  }
  return n;
}

typedef struct group { double sources, targets, pairs; int32_t number, kept; } group;

static int by_pairs(const void *a, const void *b) {
  const group *p = a, *q = b;
  if (p->pairs != q->pairs) return p->pairs < q->pairs ? -1 : 1;
  return p->number < q->number ? -1 : p->number > q->number;
}

static int by_number(const void *a, const void *b) {
  const group *p = a, *q = b;
  return p->number < q->number ? -1 : p->number > q->number;
}

/* Drops the groups with the fewest pairs while those of all dropped ones are allowed; renumbers the rest. */
static fmm_status drop_cheap_groups(const fmm_sorted_keys set[2], fmm_cluster_leaf *leaves, int64_t *n_leaves, int32_t *n_clusters) {
  group *g = NULL;
  FMM_TRY(FMM_ALLOCATE_ZERO(&g, *n_clusters, "groups of overfull cells"));
  for (int64_t i = 0; i < *n_leaves; i++) {
    g[leaves[i].cluster].sources += points_in(&set[0], leaves[i].level, leaves[i].key);
    g[leaves[i].cluster].targets += points_in(&set[1], leaves[i].level, leaves[i].key);
  }
  for (int32_t k = 0; k < *n_clusters; k++) g[k].number = k, g[k].pairs = g[k].sources * g[k].targets;
  qsort(g, (size_t)*n_clusters, sizeof *g, by_pairs);
  double pairs = 0, allowed = allowed_pairs(set);
  for (int32_t k = 0; k < *n_clusters; k++) g[k].kept = (pairs += g[k].pairs) > allowed;
  qsort(g, (size_t)*n_clusters, sizeof *g, by_number);
  int32_t kept = 0;
  int64_t kept_leaves = 0;
  for (int32_t k = 0; k < *n_clusters; k++) g[k].number = g[k].kept ? kept++ : -1;
  for (int64_t i = 0; i < *n_leaves; i++) {
    fmm_cluster_leaf leaf = leaves[i];
    leaf.cluster = g[leaf.cluster].number;
    if (leaf.cluster >= 0) leaves[kept_leaves++] = leaf;
  }
  *n_leaves = kept_leaves, *n_clusters = kept;
  FMM_FREE(&g);
  return FMM_OK;
}

static fmm_status group_cells(const fmm_sorted_keys set[2], int64_t n, const uint64_t *cells, fmm_cluster_leaf **leaves, int64_t *n_leaves,
                              int32_t *n_clusters) {
  if (most_pairs(set, n, cells) <= allowed_pairs(set)) return FMM_OK;
  FMM_TRY(fmm_clusters_find(n, cells, leaves, n_leaves, n_clusters));
  fmm_status status = drop_cheap_groups(set, *leaves, n_leaves, n_clusters);
  if (status != FMM_OK) FMM_FREE(leaves);
  return status;
}

fmm_status fmm_clusters_of_keys(const fmm_sorted_keys set[2], int threads, fmm_cluster_leaf **leaves, int64_t *n_leaves, int32_t *n_clusters) {
  int64_t ns, nt = 0;
  const int same = set[0].key == set[1].key;
  *leaves = NULL, *n_leaves = 0, *n_clusters = 0;
  overfull_cells(&set[0], threads, &ns, NULL);
  if (!same) overfull_cells(&set[1], threads, &nt, NULL);
  if (!ns && !nt) return FMM_OK;
  uint64_t *cells = NULL;
  FMM_TRY(FMM_ALLOCATE(&cells, 2 * (ns + nt), "overfull cells"));
  overfull_cells(&set[0], threads, &ns, cells);
  if (nt) overfull_cells(&set[1], threads, &nt, cells + ns);
  uint64_t *all = cells + ns + nt;
  fmm_status status = group_cells(set, unite(cells, ns, cells + ns, nt, all), all, leaves, n_leaves, n_clusters);
  FMM_FREE(&cells);
  return status;
}
