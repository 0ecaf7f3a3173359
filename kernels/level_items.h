/* Boxes that a phase handles, sorted by kind and level: what up and down cut into blocks of lanes. The cut depends on the tree alone. */
#ifndef FMM_LEVEL_ITEMS_H
#define FMM_LEVEL_ITEMS_H
#include "kernels/translate.h"
#include "runtime/counts.h"

typedef struct fmm_level_items {
  int32_t *box;                       /* leaves from FMM_FIRST_FAR_LEVEL on by level, then parents by level */
  int64_t leaf_begin[FMM_MAX_LEVELS + 1], parent_begin[FMM_MAX_LEVELS + 1];
} fmm_level_items;

/* Boxes with begin[box] < end[box] (sources or targets). */
fmm_status fmm_level_items_create(fmm_level_items *items, const fmm_tree *tree, const int64_t *begin, const int64_t *end);
void fmm_level_items_free(fmm_level_items *items);

/* Lanes are pairs (box, column), column fastest. Moves n unknowns of up to FMM_LANES of them between [box][column][n] arrays and a block;
 * lanes without a box (box[i] < 0, or beyond n_lanes) are zero, or not stored. */
typedef struct fmm_lane_block { int n_lanes; int32_t box[FMM_LANES]; int column[FMM_LANES]; } fmm_lane_block;

/* Number of blocks of `width` lanes (1 .. FMM_LANES) for a range of items, and the lanes of block b. A lane's values do not depend on the others. */
static inline int64_t fmm_n_lane_blocks(int64_t n_items, int n_columns, int width) { return (n_items * n_columns + width - 1) / width; }
void fmm_lane_block_of(fmm_lane_block *block, const int32_t *item, int64_t n_items, int n_columns, int width, int64_t b);
void fmm_lanes_gather(const fmm_translate_kernels *k, const fmm_lane_block *block, int n, int n_columns, const double *array, double factor, double *lanes);
void fmm_lanes_scatter(const fmm_translate_kernels *k, const fmm_lane_block *block, int n, int n_columns, const double *lanes, int add, double *array);
#endif
