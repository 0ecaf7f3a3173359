/* Work of the two phases that go through the tree level by level, up and down: the same walk, over boxes with sources or with targets. */
#ifndef FMM_LEVEL_COST_H
#define FMM_LEVEL_COST_H
#include "kernels/parity_block.h"
#include "runtime/counts.h"

/* Boxes of one octant that the GPU's products take together (kernels/product_cuda.cu): its columns are filled up to multiples of them. */
enum { FMM_GPU_TILE_BOXES = 64 };

typedef struct fmm_level_walk {
  const int64_t *begin, *end; /* points of a box: boxes without any are passed over */
  int gradient;               /* pairs of points and surface with the gradient */
  double point_bytes;         /* of a leaf's point */
  double leaf_passes;         /* times that a leaf's surface values are moved, besides once a box */
  double child_passes;        /* times that each child's are, at its parent */
  int harmonics;              /* leaves' points by solid harmonics (kernels/harmonics.h), not by surfaces */
} fmm_level_walk;

/* Of up and down by surfaces. */
fmm_level_walk fmm_up_walk(const fmm_tree *tree, const fmm_count_case *what);
fmm_level_walk fmm_down_walk(const fmm_tree *tree, const fmm_count_case *what);

/* Adds to level[FMM_FIRST_FAR_LEVEL ...]. */
void fmm_level_cost_add(const fmm_tree *tree, const fmm_count_case *what, const fmm_level_walk *walk, fmm_work level[FMM_MAX_LEVELS]);
#endif
