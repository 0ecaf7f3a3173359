/* Schedule hybrid1: U on the GPU; up, V, W, X, down on the CPU (the compute-bound phase goes to the device with more flops).
 * Reference: Choi et al. 2014, section 5.2, which has no W and X: they go with V. */
#include "sched/sched.h"

static void assign(const fmm_cost_table *costs, const fmm_precision precision[FMM_N_PHASES], fmm_assignment *assignment) {
  static const fmm_device device[FMM_N_PHASES] = {
      [FMM_PHASE_UP] = FMM_DEVICE_CPU,
      [FMM_PHASE_ULIST] = FMM_DEVICE_GPU,
      [FMM_PHASE_VLIST] = FMM_DEVICE_CPU,
      [FMM_PHASE_WLIST] = FMM_DEVICE_CPU,
      [FMM_PHASE_XLIST] = FMM_DEVICE_CPU,
      [FMM_PHASE_DOWN] = FMM_DEVICE_CPU};
  fmm_assign_phases(assignment, FMM_SCHEDULE_HYBRID1, device, precision);
}

const fmm_schedule fmm_schedule_hybrid1 = {FMM_SCHEDULE_HYBRID1, "hybrid1", "U on the GPU; up, V, W, X, down on the CPU", assign};
