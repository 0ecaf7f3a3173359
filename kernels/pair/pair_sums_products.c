/* Sums in both directions by products of densities: the pair is evaluated for s(x) s(y), so that what it adds to the one point is what it adds to the other, or its negative, and sums
 * are divided by their own point's density at the end. Of a potential with gradient that is 14 operations on the units that multiply, fused ones and the root's estimate among them, a pair instead of 19 (double, one Newton step), but 11
 * additions instead of 3: it pays where a core adds beside its multiplications, on units of their own.
 * Exact but for a rounding more, as long as no density is zero and products stay within the numbers that have all their digits; others go the usual way. */
#include <math.h>

#include "kernels/pair/pair_block.h"
#include "kernels/pair/pair_both.h"

/* In double products of densities and 1/r^3 up to 2^720 remain. In single densities come to at most 2^40 and 1/r^3 is 2^-96 at least (pair_sums_single.c), so that the smallest products of all are normal numbers. */
static const double least_double = 0x1p-240, most_double = 0x1p240, least_single = 0x1p-15;

int fmm_pair_sum_wants_weights(const fmm_pair_sum *sum) { return sum->single_kernels || sum->by_products; }

int fmm_pair_products_pay(const fmm_pair_info *info, int gradient, int n_columns) {
  return gradient && info->inverse_distance && fmm_pair_can_both(info, n_columns) && fmm_simd_level() == FMM_SIMD_AVX512 && fmm_simd_adds_beside();
}

static int serve_double(const fmm_pair_points *p) { return p->least_density >= least_double && p->density_factor >= 0x1p40 / most_double; }

int fmm_pair_products_serve(const fmm_pair_sum *sum, const fmm_pair_crowd *crowd, const fmm_pair_side *a) {
  int serve = sum->by_products && serve_double(a->points);
  for (int k = 0; serve && k < crowd->n; k++) serve = serve_double(crowd->part[k].points);
  return serve;
}

int fmm_pair_products_serve_single(const fmm_pair_sum *sum, const fmm_pair_crowd *crowd, const fmm_pair_side *a, double crowd_factor) {
  int serve = sum->by_products && a->points->least_density * a->points->density_factor >= least_single;
  for (int k = 0; serve && k < crowd->n; k++) serve = crowd->part[k].points->least_density * crowd_factor >= least_single;
  return serve;
}
