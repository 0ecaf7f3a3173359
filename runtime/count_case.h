/* The case that works are counted for (counts.h), from a plan's options. */
#ifndef FMM_COUNT_CASE_H
#define FMM_COUNT_CASE_H
#include "model/machine.h"
#include "runtime/counts.h"

/* order: of the surfaces; of a search that has none yet, whatever is set later. */
fmm_count_case fmm_count_case_of(const fmm_options *options, const fmm_pair_info *pair, const fmm_machine *machine, int order);
#endif
