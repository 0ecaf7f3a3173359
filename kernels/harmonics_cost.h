/* What sums of points with solid harmonics (kernels/harmonics.h) take, for the cost formulas of the phases that go by them. */
#ifndef FMM_HARMONICS_COST_H
#define FMM_HARMONICS_COST_H
#include "kernels/harmonics.h"
#include "kernels/pair/pair_tiles.h"
#include "runtime/counts.h"

/* Values that a point is summed with, surface points or pairs of degree and order, and the flops of each. */
typedef struct fmm_point_form { double with_a_point, flops; } fmm_point_form;
static inline fmm_point_form fmm_point_form_of(const fmm_count_case *what, int gradient, int harmonics) {
  if (!harmonics) return (fmm_point_form){fmm_surface_size(what->order), fmm_pair_flops(what->pair, gradient, what->n_columns)};
  return (fmm_point_form){fmm_harmonic_pairs(fmm_harmonic_degree(what->order)), 2.0 * fmm_harmonic_instructions(gradient) * what->n_columns};
}

_Static_assert((int)FMM_LATTICE_MOST_ORDER <= (int)FMM_MOST_ORDER_OF_WHOLE_MOMENTS, "leaves on a GPU have one matrix of moments");

/* Whether a GPU goes from points to so many leaves by moments (kernels/up/up_moments_cuda.cu). */
static inline int fmm_moments_on_gpu(const fmm_pair_info *pair, int order, int n_columns, int64_t leaves) {
  return fmm_has_harmonics(pair) && n_columns == 1 && order >= FMM_LATTICE_LEAST_ORDER && order <= FMM_LATTICE_MOST_ORDER && leaves >= FMM_MOMENTS_MANY;
}

/* Entries of the parity blocks between a box's surface and its harmonics. */
static inline double fmm_harmonic_entries(const fmm_count_case *what) {
  const double terms = fmm_harmonic_degree(what->order) + 1;
  return fmm_count_unknowns(what) * terms * terms / FMM_MIRRORS;
}
#endif
