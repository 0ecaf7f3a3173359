/* The GPU's part of a calibration: rates with their spread, and phases timed apart. */
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
#endif
