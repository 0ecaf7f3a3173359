/* Meeting a machine: topology, microbenchmarks, sweep, fit, hold-out errors; the result is a profile (model/machine.h). */
#ifndef FMM_CALIBRATE_H
#define FMM_CALIBRATE_H
#include "calib/sweep.h"

/* Measures this machine with `threads` threads into *machine (untouched on failure). quick takes at most about 10 s, standard one to two
 * minutes, thorough about ten. gpu_sms above 0: only so many of the GPU's multiprocessors are measured. */
fmm_status fmm_calibrate(fmm_effort effort, int threads, int gpu_sms, fmm_progress *progress, void *context, fmm_machine *machine);

/* The profile that a command should use: found by the rules of fmm_profile_find; with none, a quick calibration that is kept at the user's path
 * (`announce`, if not NULL, is told in one line before and after; a profile that cannot be kept is used all the same). A profile that is found but
 * damaged or of other hardware is an error, never silently replaced. machine->path is where it lies ("" when it could not be kept).
 * gpu_sms above 0: for that part of the GPU, whose own profile is preferred. */
typedef void fmm_announce(void *context, const char *line);
fmm_status fmm_profile_obtain(const char *explicit_path, int gpu_sms, fmm_announce *announce, fmm_progress *progress, void *context, fmm_machine *machine);
#endif
