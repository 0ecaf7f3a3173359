/* Inside of the lister: the neighbour table every list is read from, and the collectors.
 *
 * near[(dx+1) + 3(dy+1) + 9(dz+1)] of a box with children is the box of its own level at that offset, or the coarser leaf that covers the place, or -1
 * where nothing is. Neighbours of leaves are found by those of their parents when they are asked for. A coarser leaf may fill several places. All lists are pulled from it, a target box at a time: no box writes
 * another's row, so rows are made in parallel and do not depend on the number of threads. */
#ifndef FMM_LISTER_H
#define FMM_LISTER_H
#include "lists.h"

/* Children of a box, octants one bit each. */
typedef struct fmm_children {
  int32_t first;     /* the first of them, -1 without */
  uint32_t place;    /* of the child in an octant among them, four bits each */
  int32_t table;     /* the box's own among the lister's, -1 without children */
  uint8_t there, parents /* have children themselves */, sources, targets /* have some */, leaves /* have none, but sources */;
  uint8_t is_leaf;   /* of the box: it has no children, but sources */
} fmm_children;

/* What is around a box with children, and the directions (0 .. 26, the box itself among them) in which there is a leaf with sources, a box of the same level with children; one bit each. */
typedef struct fmm_around { int32_t near[27]; uint32_t leaves, parents; } fmm_around;

/* Of the neighbours of a child in some octant, those that lie in one of its parent's neighbours: for each its direction from the child, and which of that box's octants it is. */
typedef struct fmm_reach { uint8_t from /* direction of that box from the parent */, n, direction[8], octant[8], octants, direction_of[8] /* by octant */; uint32_t directions; } fmm_reach;

typedef struct fmm_lister {
  const fmm_tree *tree;
  int64_t direct_threshold;
  fmm_children *children;       /* n_boxes */
  fmm_around *around;           /* a table for each box with children */
  uint64_t far[27];             /* lists.h */
  fmm_reach reach[8][8];        /* [octant of a child][which of the eight boxes around it: half an axis, one bit each] */
  uint8_t facing[27];           /* [direction]: octants of the neighbour there, at any depth below it, that touch the box */
  uint32_t touching[8];         /* [octant of a child]: directions from its parent in which it lies at the parent's face, edge or corner */
} fmm_lister;

/* Where a collector puts the first `most` entries of one row; n counts all of them. */
typedef struct fmm_emitter { int32_t *entry; uint8_t *direction; int64_t most, n; } fmm_emitter;

static inline fmm_around *fmm_around_of(const fmm_lister *l, int32_t box) { return &l->around[l->children[box].table]; }

static inline int32_t fmm_child_in(const fmm_children *c, int octant) { return c->first + (int32_t)(c->place >> 4 * octant & 15); }

/* Of one box the entries of one list, or of the first of two U's and of the second W's. */
typedef void fmm_collect(const fmm_lister *lister, int32_t box, fmm_emitter *emitters);
fmm_collect fmm_collect_near /* U, W */, fmm_collect_v, fmm_collect_x;

fmm_status fmm_lister_make(fmm_lister *lister, const fmm_tree *tree, int64_t direct_threshold, int threads);
void fmm_lister_free(fmm_lister *lister);
#endif
