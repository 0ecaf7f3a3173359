/* The phase DAG as data. Reference: Choi et al. 2014, fig. 3: up -> V; V, X -> down; W after up; U beside them. */
#include "sched/sched.h"

const unsigned char fmm_phase_depends[FMM_N_PHASES][FMM_N_PHASES] = {
    [FMM_PHASE_VLIST] = {[FMM_PHASE_UP] = 1},
    [FMM_PHASE_WLIST] = {[FMM_PHASE_UP] = 1},
    [FMM_PHASE_DOWN] = {[FMM_PHASE_VLIST] = 1, [FMM_PHASE_XLIST] = 1}};

const unsigned char fmm_phase_divisible[FMM_N_PHASES] = {
    [FMM_PHASE_ULIST] = 1, [FMM_PHASE_VLIST] = 1, [FMM_PHASE_WLIST] = 1, [FMM_PHASE_XLIST] = 1};
const unsigned char fmm_phase_reads_densities[FMM_N_PHASES] = {[FMM_PHASE_UP] = 1, [FMM_PHASE_ULIST] = 1, [FMM_PHASE_XLIST] = 1};
const fmm_phase fmm_phase_priority[FMM_N_PHASES] = {FMM_PHASE_UP,   FMM_PHASE_VLIST, FMM_PHASE_XLIST,
                                                    FMM_PHASE_DOWN, FMM_PHASE_WLIST, FMM_PHASE_ULIST};

void fmm_assign_phases(fmm_assignment *assignment, fmm_schedule_kind kind, const fmm_device device[FMM_N_PHASES],
                       const fmm_precision precision[FMM_N_PHASES]) {
  assignment->kind = kind;
  for (int phase = 0; phase < FMM_N_PHASES; phase++) {
    assignment->gpu_fraction[phase] = device[phase] == FMM_DEVICE_GPU;
    assignment->precision[phase] = precision[phase];
  }
}
