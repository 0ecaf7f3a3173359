/* Schedule gpu: every phase on the GPU. */
#include "sched/sched.h"

static void assign(const fmm_cost_table *costs, const fmm_precision precision[FMM_N_PHASES], fmm_assignment *assignment) {
  static const fmm_device device[FMM_N_PHASES] = {
      [FMM_PHASE_UP] = FMM_DEVICE_GPU,
      [FMM_PHASE_ULIST] = FMM_DEVICE_GPU,
      [FMM_PHASE_VLIST] = FMM_DEVICE_GPU,
      [FMM_PHASE_WLIST] = FMM_DEVICE_GPU,
      [FMM_PHASE_XLIST] = FMM_DEVICE_GPU,
      [FMM_PHASE_DOWN] = FMM_DEVICE_GPU};
  fmm_assign_phases(assignment, FMM_SCHEDULE_GPU, device, precision);
}

const fmm_schedule fmm_schedule_gpu = {FMM_SCHEDULE_GPU, "gpu", "every phase on the GPU", assign};
