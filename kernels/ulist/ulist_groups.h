/* Groups of U-list rows within which pairs of leaves are summed in both directions at once.
 * A group is a run of neighbouring leaves (rows are in Morton order) with about 1/128 of the points, fixed by the tree alone; one thread
 * sums a group, so that its leaves may write onto each other. Pairs across groups stay one-sided. */
#ifndef FMM_ULIST_GROUPS_H
#define FMM_ULIST_GROUPS_H
#include "runtime/lists.h"

typedef struct fmm_ulist_groups {
  int32_t n_groups;
  int32_t *begin; /* n_groups + 1: first row of each */
  int32_t *mate;  /* one an entry of lists->u: row of the entry's leaf where it is in the same group and has this row's leaf in its list; else -1 */
} fmm_ulist_groups;

/* Where targets are the sources; otherwise there are groups but no mates. Release with fmm_ulist_groups_free. */
fmm_status fmm_ulist_groups_create(fmm_ulist_groups *groups, const fmm_tree *tree, const fmm_rows *u, int threads);
void fmm_ulist_groups_free(fmm_ulist_groups *groups);
size_t fmm_ulist_groups_bytes(const fmm_rows *u);
#endif
