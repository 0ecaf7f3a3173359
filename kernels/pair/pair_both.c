/* See pair_both.h. */
#include "kernels/pair/pair_both.h"

/* What both directions share is the root and most of the other instructions; what they add is a load and a store a value on the sources,
 * and in single precision the conversion of small pieces. On AVX2 and AVX-512 they won in double from 5 instructions a value (Laplace
 * with gradient) and lost at 4.8 (Stokes with gradient), in single won at 10 (Yukawa with gradient) and lost at 8 (Stokes). */
int fmm_pair_prefers_both(const fmm_pair_info *info, int gradient, int n_columns, int single) {
  enum { ROOT_INSTRUCTIONS = 7 };
  double instructions = (gradient ? info->gradient_instructions : info->instructions) + ROOT_INSTRUCTIONS;
  int can = n_columns == 1 && info->symmetric && !info->takes_normals && info->components == info->outputs;
  return can && instructions >= (single ? 9 : 5) * info->outputs * (gradient ? 4 : 1);
}
