/* Clusters: groups of overfull leaves that the octree cannot refine (below the finest cell), left to nested plans.
 *
 * A cluster's leaves have one level and lie in one block of 2 x 2 x 2 cells, so all are mutually adjacent and the pairs inside are
 * exactly those the U list would have: it leaves them out, the nested plan adds them. No two clusters are adjacent. A connected group of
 * overfull finest cells that is wider than that becomes leaves of the coarsest level where it fits (a leaf is then not split further). */
#ifndef FMM_CLUSTER_H
#define FMM_CLUSTER_H
#include "memory.h"

typedef struct fmm_cluster_leaf { uint64_t key; int32_t level, cluster; } fmm_cluster_leaf; /* key at its own level */

/* Coarsest level of a cluster: the nested root is then at most a quarter of this one, so nesting ends. A group that does not fit
 * there (more than 2^17 overfull cells long) stays plain leaves: right, but slow. */
enum { FMM_CLUSTER_MIN_LEVEL = 4 };

/* keys: n finest-level keys of overfull cells, ascending and distinct. *leaves: *n_leaves entries by (level, key); release with FMM_FREE. */
fmm_status fmm_clusters_find(int64_t n, const uint64_t *keys, fmm_cluster_leaf **leaves, int64_t *n_leaves, int32_t *n_clusters);

typedef struct fmm_sorted_keys { const uint64_t *key; int64_t n, most; } fmm_sorted_keys; /* finest-level keys; more than `most` in a cell are too many */

/* The clusters worth a nested plan: as long as all pairs inside the smaller ones together are no more than a few times a whole U list's
 * they stay plain leaves, so that many small clusters do not cost a plan each. set: sources, targets (the same arrays when they are the same).
 * *leaves NULL when there are none. */
fmm_status fmm_clusters_of_keys(const fmm_sorted_keys set[2], int threads, fmm_cluster_leaf **leaves, int64_t *n_leaves, int32_t *n_clusters);
/* Index of a leaf, or -1. */
int64_t fmm_cluster_search(int64_t n, const fmm_cluster_leaf *leaves, int level, uint64_t key);
#endif
