/* The order for a tolerance: the smallest whose measured far-field error (far_field_error.c) is within it. */
#include "kernels/operators.h"

enum { LEAST_ORDER = 3, MOST_ORDER = 18 };

fmm_status fmm_order_for_tolerance(const fmm_pair *pair, const double params[FMM_MAX_PARAMS], double tolerance, fmm_density_sign sign,
                                   double root_half_width, int *order) {
  int p = LEAST_ORDER;
  for (;; p++) {
    double error;
    FMM_TRY(fmm_far_field_error(pair, params, p, root_half_width, sign, 0, 1, &error));
    if (error <= tolerance || p == MOST_ORDER) break;
  }
  *order = p;
  return FMM_OK;
}
