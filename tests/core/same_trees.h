/* Two trees bit for bit the same: points, boxes, leaves and clusters. */
#ifndef FMM_TESTS_SAME_TREES_H
#define FMM_TESTS_SAME_TREES_H
#include <string.h>

#include "test.h"
#include "runtime/tree.h"

static inline int same_points(const fmm_points *a, const fmm_points *b) {
  for (int axis = 0; axis < 3 && a->n == b->n; axis++)
    if (!a->normal[axis] != !b->normal[axis] || (a->normal[axis] && memcmp(a->normal[axis], b->normal[axis], (size_t)a->n * 8))) return 0;
  return a->n == b->n && !memcmp(a->x, b->x, (size_t)a->n * 8) && !memcmp(a->y, b->y, (size_t)a->n * 8) && !memcmp(a->z, b->z, (size_t)a->n * 8) && !a->first == !b->first &&
         !memcmp(a->input_row, b->input_row, (size_t)a->n_input * sizeof *a->input_row) && (!a->first || !memcmp(a->first, b->first, (size_t)(a->n + 1) * 8));
}

static inline void check_same_trees(const fmm_tree *a, const fmm_tree *b) {
  assert_true(same_points(&a->sources, &b->sources) && same_points(&a->targets, &b->targets));
  assert_true(a->n_boxes == b->n_boxes && a->n_leaves == b->n_leaves && a->n_clusters == b->n_clusters);
  assert_memory_equal(a->key, b->key, (size_t)a->n_boxes * 8);
  assert_memory_equal(a->level, b->level, (size_t)a->n_boxes);
  assert_memory_equal(a->parent, b->parent, (size_t)a->n_boxes * 4);
  assert_memory_equal(a->center_x, b->center_x, (size_t)a->n_boxes * 8);
  assert_memory_equal(a->center_y, b->center_y, (size_t)a->n_boxes * 8);
  assert_memory_equal(a->center_z, b->center_z, (size_t)a->n_boxes * 8);
  assert_memory_equal(a->source_begin, b->source_begin, (size_t)a->n_boxes * 8);
  assert_memory_equal(a->target_begin, b->target_begin, (size_t)a->n_boxes * 8);
  assert_memory_equal(a->source_end, b->source_end, (size_t)a->n_boxes * 8);
  assert_memory_equal(a->target_end, b->target_end, (size_t)a->n_boxes * 8);
  assert_memory_equal(a->cluster, b->cluster, (size_t)a->n_boxes * 4);
  assert_memory_equal(a->leaf, b->leaf, (size_t)a->n_leaves * 4);
}
#endif
