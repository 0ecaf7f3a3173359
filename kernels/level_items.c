/* Items of up and down by level, and the moves between arrays of boxes and blocks of lanes. See level_items.h. */
#include "kernels/level_items.h"

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

void fmm_lane_block_of(fmm_lane_block *block, const int32_t *item, int64_t n_items, int n_columns, int width, int64_t b) {
  block->n_lanes = 0;
  for (int64_t i = b * width; i < (b + 1) * width && i < n_items * n_columns; i++) {
    block->box[block->n_lanes] = item[i / n_columns];
    block->column[block->n_lanes++] = (int)(i % n_columns);
  }
}

void fmm_lanes_gather(const fmm_translate_kernels *k, const fmm_lane_block *block, int n, int n_columns, const double *array, double factor, double *lanes) {
  const double *lane[FMM_LANES] = {NULL};
  for (int l = 0; l < block->n_lanes; l++)
    if (block->box[l] >= 0) lane[l] = array + ((int64_t)block->box[l] * n_columns + block->column[l]) * n;
  k->put(n, NULL, lane, factor, lanes);
}

void fmm_lanes_scatter(const fmm_translate_kernels *k, const fmm_lane_block *block, int n, int n_columns, const double *lanes, int add, double *array) {
  double *lane[FMM_LANES] = {NULL};
  for (int l = 0; l < block->n_lanes; l++)
    if (block->box[l] >= 0) lane[l] = array + ((int64_t)block->box[l] * n_columns + block->column[l]) * n;
  k->take(n, NULL, lanes, add, lane);
}
