/* The analytic model of Choi et al. 2014 for a uniform tree, eqs. 2-6, as the paper has it; what the counts-based model (cost.c) is
 * compared with. b = n/q leaf boxes, n_s = 6(p-1)^2 + 2 surface points, 8-byte values; eq. 2 writes pairs, its constants fit with the 11
 * flops of a pair. f1 = f2 = n_s in eqs. 4 and 5, which leave them undefined. */
#include <math.h>

#include "model/model.h"

static const double pair_flops = 11, value_bytes = 8, v_list_length = 189;

double fmm_choi_peak(double rsqrt_instructions, double hertz, double processors) {
  return pair_flops / (7 + rsqrt_instructions) * hertz * processors;
}

void fmm_choi_predict(const fmm_choi_machine *machine, double n_points, double leaf_size, int order, fmm_choi_times *times) {
  double b = n_points / leaf_size, n_s = fmm_surface_size(order), f1 = n_s, f2 = n_s;
  double edge = 3 * cbrt(b) - 2, pairs = edge * edge * edge * leaf_size * leaf_size;
  times->ulist_s = machine->c_u * pair_flops * pairs / machine->compute_peak_flops_per_s;                                         /* eq. 2 */
  times->vlist_s = machine->c_v * value_bytes * 3 * b * pow(n_s, 1.5) * v_list_length / machine->memory_bytes_per_s;              /* eq. 3 */
  times->up_s = machine->c_up * value_bytes * (4 * n_points + 2 * b * f1 * (f2 + 1)) / machine->memory_bytes_per_s;               /* eq. 4 */
  times->down_s = machine->c_down * value_bytes * (n_points + 2 * b * f1 * f1 + 2 * b * f1) / machine->memory_bytes_per_s;        /* eq. 5 */
}
