/* See pair_both.h. */
#include "kernels/pair/pair_both.h"
#include "kernels/pair/pair_tiles.h"

int fmm_pair_can_both(const fmm_pair_info *info, int n_columns) {
  return n_columns == 1 && info->symmetric && !info->takes_normals && info->components == info->outputs;
}

double fmm_pair_instructions_a_value(const fmm_pair_info *info, int gradient) {
  enum { ROOT_INSTRUCTIONS = 7 };
  return ((gradient ? info->gradient_instructions : info->instructions) + ROOT_INSTRUCTIONS) / (info->outputs * (gradient ? 4 : 1));
}

/* What both directions share is the root and most of the other instructions; what they add is a load and a store a value on the sources. In double and
 * single they won from 5 instructions a value (Laplace with gradient) and lost at 4.8 (Stokes with gradient), on AVX2 and AVX-512. */
int fmm_pair_prefers_both(const fmm_pair_info *info, int gradient, int n_columns) {
  enum { LEAST = 5 };
  return fmm_pair_can_both(info, n_columns) && fmm_pair_instructions_a_value(info, gradient) >= LEAST;
}

int fmm_pair_newton_on_gpu(double tolerance) { return tolerance > 1e-10; }

int fmm_pair_both_on_gpu(const fmm_pair_info *info, int gradient, int n_columns, int third_order, int single) {
  return info->inverse_distance && n_columns == 1 && (single || !gradient) && !third_order;
}

int fmm_pair_lattice_on_gpu(const fmm_pair_info *info, int order, int n_columns, int third_order) {
  return info->inverse_distance && n_columns == 1 && !third_order && order >= FMM_LATTICE_LEAST_ORDER && order <= FMM_LATTICE_MOST_ORDER;
}
