/* The arithmetic of each phase: what the options name, or the cheapest that keeps the tolerance. Single-precision pair sums with double
 * accumulation carry about 1e-7 of the summed magnitudes; cancelling densities leave less of it, so the margin is larger for them. */
#include "plan.h"

void fmm_choose_precision(const fmm_options *options, fmm_precision precision[FMM_N_PHASES]) {
  fmm_precision all = options->precision;
  if (all == FMM_PRECISION_AUTO) all = options->tolerance >= 1e-5 ? FMM_PRECISION_MIXED : FMM_PRECISION_DOUBLE;
  for (int phase = 0; phase < FMM_N_PHASES; phase++) precision[phase] = all;
}
