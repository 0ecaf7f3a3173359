/* The arithmetic of each phase: what the options name, or the cheapest that keeps the tolerance. */
#include "plan.h"

/* Single-precision pair sums with double accumulation carry about 1e-7 of the summed magnitudes, and a pair as near as they take at all up to 0.4
 * of the tolerance, twice that in derivatives (pair_sums_single.c): at 1e-6 potentials of molecules and salts err by 1e-7 to 4e-7 in direct sums, and gradients on a sphere, where one
 * near pair can outweigh all others, by up to 1.1e-6. */
static int single_serves_pairs(const fmm_options *options) { return options->tolerance >= (options->gradient ? 1e-5 : 1e-6); }

/* Float transforms and products of the V list err by 2e-7 of cancelling potentials, at any order (measured on uniform and plummer): they serve where
 * the tolerance is five times that. Gradients of densities of one sign cancel more the finer the boxes are: 3e-6 for 20,000 points, some 2e-5
 * for ten million, as the number of boxes an edge. */
static int single_serves_vlist(const fmm_options *options) { return options->tolerance >= (options->gradient ? 1e-4 : 1e-6); }

void fmm_choose_precision(const fmm_options *options, fmm_precision precision[FMM_N_PHASES]) {
  fmm_precision all = options->precision;
  if (all == FMM_PRECISION_AUTO) all = single_serves_pairs(options) ? FMM_PRECISION_MIXED : FMM_PRECISION_DOUBLE;
  for (int phase = 0; phase < FMM_N_PHASES; phase++) precision[phase] = all;
  if (options->precision == FMM_PRECISION_AUTO || options->precision == FMM_PRECISION_MIXED)
    precision[FMM_PHASE_VLIST] = single_serves_vlist(options) ? FMM_PRECISION_SINGLE : FMM_PRECISION_DOUBLE;
}
