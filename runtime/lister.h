/* Inside of the lister: the neighbour table every list is read from, and one collector a list.
 *
 * near[27 * b + (dx+1) + 3(dy+1) + 9(dz+1)] is the box of b's own level at that offset, or the coarser leaf that covers the place, or -1
 * where nothing is. A coarser leaf may fill several places. All lists are pulled from it, a target box at a time: no box writes
 * another's row, so rows are made in parallel and do not depend on the number of threads. */
#ifndef FMM_LISTER_H
#define FMM_LISTER_H
#include "lists.h"

typedef struct fmm_lister {
  const fmm_tree *tree;
  int64_t direct_threshold;
  int32_t *near;                /* n_boxes x 27 */
  uint8_t *children;            /* n_boxes: octants that have a child, one bit each */
  uint8_t *source_leaf;         /* n_boxes: whether it is a leaf with sources */
  uint8_t *source_children, *target_children; /* the same with sources, with targets */
  uint8_t *around;              /* n_boxes: what is among the neighbours other than the box itself, FMM_AROUND_... */
  uint8_t far[27][8];           /* [direction][octant of target child]: octants of source children that are not adjacent to it */
  uint8_t facing[27];           /* [direction]: octants of the neighbour there, at any depth below it, that touch the box */
} fmm_lister;

enum { FMM_AROUND_LEAF = 1 /* a leaf with sources */, FMM_AROUND_FINER = 2 /* a box with children */ };

/* Where a collector puts the first `most` entries of one row; n counts all of them. */
typedef struct fmm_emitter { int32_t *entry; uint8_t *direction; int64_t most, n; } fmm_emitter;

static inline int fmm_count_bits(unsigned octants) { /* of eight */
  octants -= octants >> 1 & 0x55;
  octants = (octants & 0x33) + (octants >> 2 & 0x33);
  return (int)((octants + (octants >> 4)) & 15);
}

typedef void fmm_collect(const fmm_lister *lister, int32_t box, fmm_emitter *emitter);
fmm_collect fmm_collect_u, fmm_collect_v, fmm_collect_w, fmm_collect_x;

fmm_status fmm_lister_make(fmm_lister *lister, const fmm_tree *tree, int64_t direct_threshold, int threads);
void fmm_lister_free(fmm_lister *lister);
#endif
