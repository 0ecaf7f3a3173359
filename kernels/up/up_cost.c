/* Work of the up phase: P2M at leaves, M2M from children, from the finest level to level 2 (coarser equivalents are in no list).
 * A level reads its sources and its children's densities once, and writes its own densities.
 * Reference: Ying, Biros, Zorin 2004, section 3.2; operators and their parity blocks: kernels/operators.h. */
#include "kernels/harmonics.h"
#include "kernels/level_cost.h"

fmm_level_walk fmm_up_walk(const fmm_tree *tree, const fmm_count_case *what) {
  return (fmm_level_walk){.begin = tree->source_begin, .end = tree->source_end, .point_bytes = fmm_source_bytes(what), .child_passes = 1};
}

fmm_status fmm_up_cost(const fmm_tree *tree, const fmm_lists *lists, const fmm_count_case *what, fmm_work level[FMM_MAX_LEVELS]) {
  fmm_level_walk walk = fmm_up_walk(tree, what);
  walk.harmonics = fmm_has_harmonics(what->pair);
  fmm_level_cost_add(tree, what, &walk, level);
  return FMM_OK;
}
