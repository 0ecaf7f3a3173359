/* Groups of U-list rows, and the pairs of leaves that are summed in both directions at once.
 * A group is a run of neighbouring leaves (rows are in Morton order) with about 1/128 of the points (the last quarter's a quarter of that; so there are up to some 220), fixed by the tree alone; one thread
 * sums a group, so that its leaves may write onto each other. Of two leaves in different groups the one with the lower row sums both
 * directions too, and puts what it has for the other into its group's halo: a copy of the values of all outside leaves that the group
 * reaches so. Groups are begun in the order of their work, the largest first, so that threads end together: the first of the curve do more of the pairs than the last. When all groups are done, every leaf adds what the halos hold for it, in the order of the groups: the same bits for any number of threads. */
#ifndef FMM_ULIST_GROUPS_H
#define FMM_ULIST_GROUPS_H
#include "runtime/lists.h"

/* Enough groups for tens of threads; enough points that most neighbours are inside (a cube of m^3 leaves holds ((3m-2)/3m)^3 of its pairs).
 * The last quarter of the points comes in groups a quarter as large: begun last, they let many threads, no two of one speed, end together. */
enum { FMM_GROUPS_OF_ALL = 128, FMM_GROUP_LEAST = 2048, FMM_SMALL_GROUPS = 4 };
/* Points that a group has at least (but the last), where so many come before it of n in all. */
static inline int64_t fmm_ulist_group_points(int64_t n, int64_t before) {
  const int64_t most = n / FMM_GROUPS_OF_ALL / (before < n - n / FMM_SMALL_GROUPS ? 1 : FMM_SMALL_GROUPS);
  return most > FMM_GROUP_LEAST ? most : FMM_GROUP_LEAST;
}

/* A leaf's part of a group's halo. */
typedef struct fmm_ulist_part { int32_t group, place; /* its first point among the halo's */ } fmm_ulist_part;

typedef struct fmm_ulist_groups {
  int32_t n_groups;
  int32_t *begin;       /* n_groups + 1: first row of each */
  int32_t *order;       /* n_groups: by falling work */
  int32_t *mate;        /* one an entry of lists->u: row of the entry's leaf where that has this row's leaf in its list; else -1 */
  int all_have_mates;   /* nonzero: but for leaves with themselves */
  int32_t *place;       /* one an entry: the mate's first point in the halo of this row's group, where it is in a later group */
  int64_t *halo_begin;  /* n_groups + 1: first halo point of each group */
  int32_t *halo_row;    /* rows of the leaves in the groups' halos, in the order of their places */
  int64_t *halo_row_begin; /* n_groups + 1: first of those of each group */
  int64_t *part_offset; /* n_rows + 1: parts of a row, by ascending group */
  fmm_ulist_part *part;
} fmm_ulist_groups;

/* with_mates only where targets are the sources; without, there are groups but no mates and no halos. Release with fmm_ulist_groups_free. */
fmm_status fmm_ulist_groups_create(fmm_ulist_groups *groups, const fmm_tree *tree, const fmm_rows *u, int with_mates, int threads);
void fmm_ulist_groups_free(fmm_ulist_groups *groups);
size_t fmm_ulist_groups_bytes(const fmm_ulist_groups *groups);
#endif
