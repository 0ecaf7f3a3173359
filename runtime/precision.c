/* The arithmetic of each phase: what the options name, or what keeps the tolerance, of which the model chooses with the tree and the schedule. */
#include <math.h>

#include "kernels/harmonics.h"
#include "plan.h"

/* Single-precision pair sums with double accumulation carry about 1e-7 of the summed magnitudes, and a pair as near as they take at all up to 0.4
 * of the tolerance, in derivatives a sixteenth of that (fmm_pair_near_tolerance): at 1e-6 potentials of molecules and salts err by 1e-7 to 4e-7 in direct sums, and gradients, of which one
 * near pair can outweigh all others, by up to 3.6e-7. Values that die away within a length, as exponentials, err by the rounding of as many such lengths (20,000 random points,
 * of which the few nearest pairs are all that is left: 1.2e-7, 1.6e-6 and 6.4e-6 at 37, 330 and 1,100 lengths between points): those of regular points by as many times 6e-8. */
static int single_serves_pairs(const fmm_options *options, double steps) {
  const double a_step = 2e-7, most_steps = 60; /* what is left after more lengths leaves a float's range */
  return steps <= most_steps && options->tolerance >= fmax(1e-6, a_step * steps);
}

/* Densities of both signs cancel at targets of their own as far as one likes (with single precision, at 1e-6: around random charges 1.7e-6, around a neutral lattice 2e-2), and
 * on lattices (1.2e-6): there all is in double unless it is named (cancels). So it is with gradients at targets of their own, which cancel inside of a shell of charges of one sign (2.4e-4 at 1e-4). */

/* Float transforms and products of the V list err by up to 5e-8 of cancelling potentials, at any order, of several components by 2.5e-7 (on CPU cores their mean over a box is in double:
 * vlist_means.h; a GPU multiplies that one in double and keeps it in float, products of halves and all else err by as much as floats: 6e-8 to 1e-7 of V's sums of signed densities, of which they are a part). Gradients of densities of one sign err by 1.4e-7 to 3.5e-7 (20,000 to 10,000,000 points), a lone charge's by 2.8e-7; those of
 * several components by up to 7e-7 and 1.9e-6. Where few points on a shell carry all densities and very many inside have none, the error is relative to less: 4.2e-6 (500 and 100,000). */
static int single_serves_vlist(const fmm_options *options, const fmm_pair_info *pair) {
  const double potentials[2] = {2.5e-7, 1e-6}, spread[2] = {8e-7, 1e-5}, any[2] = {2e-5, 1e-4}; /* [several components] */
  return options->tolerance >= (!options->gradient ? potentials : options->densities_spread ? spread : any)[pair->components > 1];
}

/* far: of the V list, and of up, down, W and X where these go by solid harmonics, whose sums in float err as its transforms do. */
static void fill_set(fmm_precision_sets *sets, const fmm_pair_info *pair, fmm_precision all, fmm_precision far) {
  fmm_precision *set = sets->set[sets->n++];
  for (int phase = 0; phase < FMM_N_PHASES; phase++) {
    const int harmonics = fmm_has_harmonics(pair) && phase != FMM_PHASE_ULIST;
    set[phase] = phase == FMM_PHASE_VLIST || (harmonics && far == FMM_PRECISION_DOUBLE) ? far : all;
  }
}

/* Single precision comes first, as it is the faster on CPU cores and mostly on a GPU: of schedules that are foretold alike it is taken. */
void fmm_choose_precisions(const fmm_options *options, const fmm_pair_info *pair, int cancels, double steps, fmm_precision_sets *sets) {
  fmm_precision all = options->precision, vlist = single_serves_vlist(options, pair) && !cancels ? FMM_PRECISION_SINGLE : FMM_PRECISION_DOUBLE;
  sets->n = 0;
  if (all == FMM_PRECISION_DOUBLE || all == FMM_PRECISION_SINGLE) return fill_set(sets, pair, all, all);
  if (all == FMM_PRECISION_MIXED || (single_serves_pairs(options, steps) && !cancels)) fill_set(sets, pair, FMM_PRECISION_MIXED, vlist);
  if (all == FMM_PRECISION_AUTO) fill_set(sets, pair, FMM_PRECISION_DOUBLE, vlist);
}
