/* Schedule hybrid3: up and V on the CPU; U, W, X, down on the GPU (for non-uniform points, where W and X weigh).
 * Reference: Choi et al. 2014, fig. 3 (non-uniform). */
#include "sched/sched.h"

static void assign(const fmm_cost_table *costs, const fmm_precision precision[FMM_N_PHASES], fmm_assignment *assignment) {
  static const fmm_device device[FMM_N_PHASES] = {
      [FMM_PHASE_UP] = FMM_DEVICE_CPU,
      [FMM_PHASE_ULIST] = FMM_DEVICE_GPU,
      [FMM_PHASE_VLIST] = FMM_DEVICE_CPU,
      [FMM_PHASE_WLIST] = FMM_DEVICE_GPU,
      [FMM_PHASE_XLIST] = FMM_DEVICE_GPU,
      [FMM_PHASE_DOWN] = FMM_DEVICE_GPU};
  fmm_assign_phases(assignment, FMM_SCHEDULE_HYBRID3, device, precision);
}

const fmm_schedule fmm_schedule_hybrid3 = {FMM_SCHEDULE_HYBRID3, "hybrid3", "up and V on the CPU; U, W, X, down on the GPU", assign};
