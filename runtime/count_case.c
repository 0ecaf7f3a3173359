/* What works are counted for, from options: the same whether a tree is chosen, a case foretold or a plan priced. */
#include "count_case.h"

#include "kernels/pair/pair_both.h"

fmm_count_case fmm_count_case_of(const fmm_options *o, const fmm_pair_info *pair, const fmm_machine *machine, int order) {
  return (fmm_count_case){.pair = pair,
                          .order = order,
                          .n_columns = o->n_columns,
                          .gradient = o->gradient != 0,
                          .no_gpu = !machine->device[FMM_DEVICE_GPU].present,
                          .third_order = !fmm_pair_newton_on_gpu(o->tolerance),
                          .tolerance = o->tolerance};
}
