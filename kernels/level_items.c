/* Items of up and down by level, and the moves between arrays of boxes and blocks of lanes. See level_items.h. */
#include "kernels/level_items.h"

#include <string.h>

static void fill(fmm_level_items *items, const fmm_tree *tree, const int64_t *begin, const int64_t *end, int parents, int64_t *level_begin, int64_t *n) {
  for (int l = 0; l <= FMM_MAX_LEVELS; l++) {
    level_begin[l] = *n;
    if (l < FMM_FIRST_FAR_LEVEL || l >= tree->n_levels) continue;
    for (int32_t box = tree->level_begin[l]; box < tree->level_begin[l + 1]; box++)
      if (end[box] > begin[box] && (tree->first_child[box] >= 0) == parents) items->box[(*n)++] = box;
  }
}

fmm_status fmm_level_items_create(fmm_level_items *items, const fmm_tree *tree, const int64_t *begin, const int64_t *end) {
  int64_t n = 0;
  FMM_TRY(FMM_ALLOCATE(&items->box, tree->n_boxes, "boxes by level"));
  fill(items, tree, begin, end, 0, items->leaf_begin, &n);
  fill(items, tree, begin, end, 1, items->parent_begin, &n);
  return FMM_OK;
}

void fmm_level_items_free(fmm_level_items *items) { FMM_FREE(&items->box); }

void fmm_lane_block_of(fmm_lane_block *block, const int32_t *item, int64_t n_items, int n_columns, int64_t b) {
  block->n_lanes = 0;
  for (int64_t i = b * FMM_LANES; i < (b + 1) * FMM_LANES && i < n_items * n_columns; i++) {
    block->box[block->n_lanes] = item[i / n_columns];
    block->column[block->n_lanes++] = (int)(i % n_columns);
  }
}

void fmm_lanes_gather(const fmm_lane_block *block, int n, int n_columns, const double *array, double factor, double *lanes) {
  if (block->n_lanes < FMM_LANES) memset(lanes, 0, (size_t)n * FMM_LANES * sizeof *lanes);
  for (int l = 0; l < block->n_lanes; l++) {
    if (block->box[l] < 0) {
      for (int i = 0; i < n; i++) lanes[(int64_t)i * FMM_LANES + l] = 0;
      continue;
    }
    const double *from = array + ((int64_t)block->box[l] * n_columns + block->column[l]) * n;
    for (int i = 0; i < n; i++) lanes[(int64_t)i * FMM_LANES + l] = factor * from[i];
  }
}

void fmm_lanes_scatter(const fmm_lane_block *block, int n, int n_columns, const double *lanes, double factor, int add, double *array) {
  for (int l = 0; l < block->n_lanes; l++) {
    if (block->box[l] < 0) continue;
    double *to = array + ((int64_t)block->box[l] * n_columns + block->column[l]) * n;
    if (add)
      for (int i = 0; i < n; i++) to[i] += factor * lanes[(int64_t)i * FMM_LANES + l];
    else
      for (int i = 0; i < n; i++) to[i] = factor * lanes[(int64_t)i * FMM_LANES + l];
  }
}
