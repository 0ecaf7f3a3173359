/* Work of the down phase: L2L from level 2 to the leaves, L2P at leaves.
 * A level reads its check potentials once, adds to its children's, writes its leaves' densities (by surfaces); leaves read and write targets.
 * Reference: Ying, Biros, Zorin 2004, section 3.2; operators and their parity blocks: kernels/operators.h. */
#include "kernels/harmonics.h"
#include "kernels/level_cost.h"

fmm_level_walk fmm_down_walk(const fmm_tree *tree, const fmm_count_case *what) {
  return (fmm_level_walk){.begin = tree->target_begin, .end = tree->target_end, .gradient = what->gradient, .point_bytes = fmm_target_bytes(what), .leaf_passes = 1, .child_passes = 2};
}

/* Leaves' harmonics stay in the caches. */
fmm_status fmm_down_cost(const fmm_tree *tree, const fmm_lists *lists, const fmm_count_case *what, fmm_work level[FMM_MAX_LEVELS]) {
  fmm_level_walk walk = fmm_down_walk(tree, what);
  if (fmm_has_harmonics(what->pair)) walk.harmonics = 1, walk.leaf_passes = 0;
  fmm_level_cost_add(tree, what, &walk, level);
  return FMM_OK;
}
