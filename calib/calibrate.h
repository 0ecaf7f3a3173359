/* Meeting a machine: topology, microbenchmarks, sweep, fit, hold-out errors; the result is a profile (model/machine.h). */
#ifndef FMM_CALIBRATE_H
#define FMM_CALIBRATE_H
#include "calib/sweep.h"

/* Measures this machine with `threads` threads into *machine (untouched on failure). quick takes at most about 10 s, standard one to two
 * minutes, thorough about ten. gpu_sms above 0: only so many of the GPU's multiprocessors are measured. */
fmm_status fmm_calibrate(fmm_effort effort, int threads, int gpu_sms, fmm_progress *progress, void *context, fmm_machine *machine);

typedef void fmm_announce(void *context, const char *line);
/* Keeps a profile that nobody asked for at the user's path, and tells in one line where, or why not, and in another if it is not to be trusted (trust.h): what cannot be kept is for
 * this run only. machine->path is where it lies, "" when it was not kept. */
void fmm_profile_keep(const char *fingerprint, int gpu_sms, fmm_announce *announce, void *context, fmm_machine *machine);

/* The profile that a command should use: found by the rules of fmm_profile_find; with none, a quick calibration that fmm_profile_keep keeps
 * (`announce`, if not NULL, is told in one line before and after; a profile that is not kept is used all the same). A profile that is found but
 * damaged or of other hardware is an error, never silently replaced.
 * gpu_sms above 0: for that part of the GPU, whose own profile is preferred. */
fmm_status fmm_profile_obtain(const char *explicit_path, int gpu_sms, fmm_announce *announce, fmm_progress *progress, void *context, fmm_machine *machine);
#endif
