/* Leaf size and root scale: what the options name. Until counts can be estimated before a tree is built: 64 points a leaf otherwise. */
#include "plan.h"
fmm_status fmm_choose_tree(const fmm_plan *plan, int order, const fmm_precision precision[FMM_N_PHASES], int64_t n_sources, const double *sources,
                           int64_t n_targets, const double *targets, fmm_tree_options *choice) {
  *choice = (fmm_tree_options){plan->options.leaf_size ? plan->options.leaf_size : 64, plan->options.root_scale > 0 ? plan->options.root_scale : 1.0};
  return FMM_OK;
}
