/* Interaction lists as data: compressed rows per operator, made by a lister; kernels assume no more than what is said here.
 *
 * Entries that are cheaper directly are moved by the lister: a W pair whose source box has at most direct_threshold sources, and an X
 * pair whose target box has at most that many targets, become U entries (of the leaf, or of the target box's leaves). Where targets are the sources, a U entry is a leaf: the leaves of
 * such a W pair's source box, which have its leaf in their rows: two leaves hold one another or neither the other, and can be summed onto one another at once.
 * Boxes without sources are never in a list as sources, boxes without targets have no rows as targets, and a row has at least one entry.
 * Together with the pairs inside clusters (tree.h) the lists cover every pair of a target and a source exactly once; a tree whose points are
 * all at one place has none. */
#ifndef FMM_LISTS_H
#define FMM_LISTS_H
#include "tree.h"

typedef struct fmm_rows {
  int32_t n_rows;
  int64_t n_entries;
  int32_t *row;     /* n_rows: target box of each row */
  int64_t *offset;  /* n_rows + 1 */
  int32_t *entry;   /* n_entries: source box */
  uint8_t *direction; /* n_entries, or NULL; vlist: see below */
} fmm_rows;

typedef struct fmm_lists {
  fmm_rows u; /* rows: leaves with targets, in tree->leaf order; entries: boxes of any level (leaves, where targets are the sources) whose sources are summed directly onto the
                 leaf's targets, by ascending first source (FMM_LISTS_TO_SUM; else in any order); the leaf itself is among them (except in a cluster: its leaves are left out) */
  fmm_rows v; /* M2L by parents: rows: non-leaf boxes P, by ascending box (so level by level); entries: non-leaf boxes Q of the same level
                 adjacent to P (never P itself); direction = (dx+1) + 3(dy+1) + 9(dz+1) with d = Q - P in box units. Every pair (child of
                 P, child of Q) that is not adjacent is one M2L. Only rows and entries with at least one such pair with targets and sources. */
  fmm_rows w; /* rows: leaves; entries: finer boxes not adjacent whose parent is adjacent: M2P */
  fmm_rows x; /* rows: boxes; entries: coarser leaves: P2L (dual of W) */
} fmm_lists;

typedef enum fmm_lists_use { FMM_LISTS_TO_SUM, FMM_LISTS_TO_COUNT /* U's entries in any order */ } fmm_lists_use;

fmm_status fmm_lists_build(fmm_lists *lists, const fmm_tree *tree, int64_t direct_threshold, fmm_lists_use use, int threads);
void fmm_lists_free(fmm_lists *lists);
size_t fmm_lists_bytes(const fmm_lists *lists);
/* Of the pairs behind an entry of V: byte t of far[direction] has those octants of Q's children that are not adjacent to P's child t. */
void fmm_lists_far(uint64_t far[27]);
/* True M2L pairs behind v. */
int64_t fmm_lists_v_pairs(const fmm_lists *lists, const fmm_tree *tree);
/* Of such pairs those of the children of P that targets, a mask as bytes, has, and of those of Q that are in a mask of octants. */
static inline uint64_t fmm_far_pairs(uint64_t far, uint64_t targets, unsigned sources) { return far & targets & sources * (uint64_t)0x0101010101010101; }
/* A mask of octants as bytes: 255 in those whose octant is in it. */
static inline uint64_t fmm_octant_bytes(unsigned octants) {
  const uint64_t ones = 0x0101010101010101u, own_bit = octants * ones & 0x8040201008040201u;
  return ((own_bit + 0x7f * ones) >> 7 & ones) * 0xff;
}
static inline int fmm_count_bits(uint64_t v) {
  v -= v >> 1 & 0x5555555555555555u;
  v = (v & 0x3333333333333333u) + (v >> 2 & 0x3333333333333333u);
  return (int)(((v + (v >> 4)) & 0x0f0f0f0f0f0f0f0fu) * 0x0101010101010101u >> 56);
}
/* The entry of `box` in a row of U, or -1, of lists that were built FMM_LISTS_TO_SUM: entries ascend by their first source, and boxes that share it hold one another. */
int64_t fmm_lists_find(const fmm_rows *u, const fmm_tree *tree, int32_t row, int32_t box);
#endif
