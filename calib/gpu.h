/* The GPU's part of a calibration: rates with their spread, phases timed apart, and how much driving it slows the CPU. */
#ifndef FMM_CALIB_GPU_H
#define FMM_CALIB_GPU_H
#include "model/machine.h"
#include "runtime/plan.h"

/* Describes and measures device 0, or `sms` (above 0) of its multiprocessors, into *gpu: median and spread of `repeats` measurements a rate, constants not fitted. gpu->present is 0 when this
 * process has no usable GPU. */
fmm_status fmm_gpu_rates(int repeats, int sms, fmm_device_rates *gpu);

/* One execution of a plan that has everything on the GPU: seconds of each phase, the two that may run beside the others (U, W) apart from them.
 * results: room for the sorted results (scratch). */
fmm_status fmm_gpu_phases_apart(fmm_setup *setup, const double *densities, double *results, double seconds[FMM_N_PHASES]);

/* Seconds of an evaluation on the GPU beside its phases and copies, and the rate at which the host stages densities and results, beyond the bus: from
 * what evaluations of few and of many points take beyond their phases. machine: with the GPU's rates; both are set in it. */
fmm_status fmm_gpu_frame(fmm_machine *machine, int threads);

/* Factor (at least 1) by which the CPU's phases take longer while the GPU works (schedule hybrid1 against cpu, same tree). */
fmm_status fmm_gpu_driving_slowdown(const fmm_machine *machine, int threads, double *factor);
#endif
