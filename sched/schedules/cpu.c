/* Schedule cpu: every phase on the CPU cores. */
#include "sched/sched.h"

static void assign(const fmm_cost_table *costs, const fmm_precision precision[FMM_N_PHASES], fmm_assignment *assignment) {
  static const fmm_device device[FMM_N_PHASES] = {
      [FMM_PHASE_UP] = FMM_DEVICE_CPU,
      [FMM_PHASE_ULIST] = FMM_DEVICE_CPU,
      [FMM_PHASE_VLIST] = FMM_DEVICE_CPU,
      [FMM_PHASE_WLIST] = FMM_DEVICE_CPU,
      [FMM_PHASE_XLIST] = FMM_DEVICE_CPU,
      [FMM_PHASE_DOWN] = FMM_DEVICE_CPU};
  fmm_assign_phases(assignment, FMM_SCHEDULE_CPU, device, precision);
}

const fmm_schedule fmm_schedule_cpu = {FMM_SCHEDULE_CPU, "cpu", "every phase on the CPU cores", assign};
