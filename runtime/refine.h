/* From sorted keys to boxes: the part of tree building that the estimates share (there the points are a sample, so a box is split at another
 * number of points). */
#ifndef FMM_REFINE_H
#define FMM_REFINE_H
#include "points.h"
#include "tree.h"

/* Makes the boxes, leaves and clusters of a tree whose root cube, numbers of points, same_points and coincident are set. A box with more than
 * most[0] sources or most[1] targets is split. What was made before a failure is released by fmm_tree_free. */
fmm_status fmm_tree_refine(fmm_tree *tree, const fmm_sorted_words *sources, const fmm_sorted_words *targets, const int64_t most[2], int threads);
#endif
