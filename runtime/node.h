/* The machine a plan prices with: the profile found by the rules of model/machine.h, or nominal rates when there is none. */
#ifndef FMM_NODE_H
#define FMM_NODE_H
#include "model/machine.h"
#include "runtime/gpu.h"

/* profile_path NULL: $FMM_PROFILE, the user's by fingerprint, the system's; none of them: nominal rates (machine->path is "").
 * gpu_device, gpu_sms: the profile of that part of that GPU, if there is one; 0: of the whole. A profile that is damaged is an error; so is, with native_only, one of another machine (a plan runs here; a prediction may be for elsewhere). */
fmm_status fmm_node_machine(const char *profile_path, int native_only, int gpu_device, int gpu_sms, fmm_machine *machine);
/* node_gpu.c: how many multiprocessors a part of the GPU has: gpu_sms, or 0 where that is the whole of it. */
int fmm_node_gpu_part(int ordinal, int gpu_sms);
/* node_gpu.c: the GPU's part of *machine as this process finds it: absent, the profile's when it is of this device and as many multiprocessors, else with rates
 * measured now and the profile's constants. */
fmm_status fmm_node_gpu(int ordinal, int sms, fmm_machine *machine);
/* node_gpu.c: the one of the rates that this is, and by what a measured value is multiplied for it (pairs: their flops). */
fmm_rate *fmm_node_gpu_rate(fmm_device_rates *d, fmm_gpu_rate which, double *unit);
#endif
