/* Slabs of V's rows on CPU cores, and groups of boxes in a slab.
 *
 * A slab is consecutive rows of lists->v, target parents, with the source parents that they name, in order of first use. What transforms work on is a
 * group: eight boxes side by side, one a lane. The children of a parent that have sources (of a row: targets) stand in one group, in order of octants and
 * without gaps; lanes that they leave go to another parent's children. On surfaces parents have four or five children, so that there are about three groups
 * for four parents. Sources and targets have groups of their own, numbered from 0 in every slab.
 * Which lane a box has never shows in its numbers: lanes do not meet before a parent's octants are together again. */
#ifndef FMM_VLIST_SLABS_H
#define FMM_VLIST_SLABS_H
#include "runtime/lists.h"

enum { FMM_VLIST_LANES = 8, FMM_VLIST_NONE = 255 };

/* An entry of a row: its source among those of its slab, and the direction. Products read two at once, since their loads are what limits them: rows begin at even places, and an odd number of entries is made
 * even by one that adds nothing, in the direction of the row itself, of which no box is far, from the source before it. */
typedef uint32_t fmm_vlist_entry;
enum { FMM_VLIST_DIRECTION_BITS = 5, FMM_VLIST_NO_DIRECTION = 13, FMM_VLIST_MOST_SOURCES = 1 << (32 - FMM_VLIST_DIRECTION_BITS) /* of a slab */, FMM_VLIST_AHEAD = 4 /* entries behind a row that products read without using them */ };
static inline fmm_vlist_entry fmm_vlist_entry_of(int64_t source, int direction) { return (fmm_vlist_entry)(source << FMM_VLIST_DIRECTION_BITS | direction); }
static inline int64_t fmm_vlist_source_of(fmm_vlist_entry e) { return e >> FMM_VLIST_DIRECTION_BITS; }
static inline int fmm_vlist_direction_of(fmm_vlist_entry e) { return (int)(e & ((1u << FMM_VLIST_DIRECTION_BITS) - 1)); }

/* Where a row's entries begin; offset: of the V list's rows. Each row before counts for one more than it has, rounded up: room for what makes an odd number even. */
static inline int64_t fmm_vlist_row_begin(const int64_t *offset, int64_t row) { return (offset[row] + row + 1) / 2 * 2; }

/* Where a parent's children are in a slab's groups. */
typedef struct fmm_vlist_place {
  int32_t group;
  uint8_t first, children;     /* lane of the first child; bit mask of the octants that have lanes, never 0 */
  uint8_t lane[8], octant[8];  /* of each octant, and of each lane; FMM_VLIST_NONE where it has none, or is another parent's */
} fmm_vlist_place;

typedef struct fmm_vlist_slab {
  int64_t row_begin, row_end;
  int64_t source_begin, source_end;             /* into source_place */
  int64_t source_group_begin, source_group_end; /* into source_box, by FMM_VLIST_LANES */
  int64_t target_group_begin, target_group_end; /* into target_rows */
} fmm_vlist_slab;

typedef struct fmm_vlist_slabs {
  int64_t n, most_sources, most_source_groups, most_target_groups; /* most: of a slab */
  fmm_vlist_slab *slab;
  fmm_vlist_entry *entry;        /* of all rows, and FMM_VLIST_AHEAD behind the last */
  fmm_vlist_place *source_place; /* of the sources of all slabs */
  fmm_vlist_place *target_place; /* of every row */
  int32_t *source_box;           /* of every lane of the source groups of all slabs; -1: no box */
  struct { int32_t first, last; } *target_rows; /* of the target groups of all slabs: their first and last row */
} fmm_vlist_slabs;

/* A slab has at most most_groups, sources' and targets' together, and at most most_sources (and FMM_VLIST_MOST_SOURCES), but at least a row. one_level: its rows are of one level. */
typedef struct fmm_vlist_limits { int64_t most_groups, most_sources; int one_level; } fmm_vlist_limits;

/* Every row has a child with targets, every source that it names one with sources: the V list has no others (runtime/lists.h). */
fmm_status fmm_vlist_slabs_create(fmm_vlist_slabs *slabs, const fmm_tree *tree, const fmm_rows *v, const fmm_vlist_limits *limits);
void fmm_vlist_slabs_free(fmm_vlist_slabs *slabs);
size_t fmm_vlist_slabs_bytes(const fmm_vlist_slabs *slabs);
#endif
