/* A machine as data: what a profile file holds. JSON with a schema version, fingerprint, rates with spread, constants with
 * errors, checksum. Loaded and saved by profile.c; measured by calib/; recorded ones in tests/machines/.
 * Rates are named after Choi et al. 2014: effective compute peak for the actual instruction mix (eq. 6), memory bandwidth. */
#ifndef FMM_MACHINE_H
#define FMM_MACHINE_H
#include "kernels/pair/accuracy_steps.h"
#include "runtime/status.h"

enum { FMM_PROFILE_SCHEMA = 12, FMM_MAX_NAME = 128, FMM_N_PRECISIONS = 2, FMM_LAPLACE_FLOPS = 11 /* Choi et al. 2014, eq. 6 */ }; /* double, single (mixed uses single's rates) */

/* The host's whole team copies pageable densities or results of a GPU of more than so many bytes; fewer are not worth waking it. */
enum { FMM_GPU_TEAM_BYTES = 1 << 18 };

typedef struct fmm_rate { double value, spread; } fmm_rate; /* spread: (max - min) / median over repeats */
/* Fitted per phase, device and precision: seconds = value * main + other * other part + entry_s * entries + byte_s * bytes + (launch + launch_s + chain_s * unknowns) * launches
 * (model/cost.c), main and other being the two parts of the roofline: pairs, of V products; and products of up, down, W and X, transforms of V on a GPU (fmm_work). value: 1 is ideal,
 * 0: not measured yet; other: likewise, 0: as value. What the roofline leaves out: overhead of a list entry or box, memory traffic that arithmetic does not hide, overhead of a
 * level, and of a level and unknown (values of a surface), as with these grow the operators that a level reads and what of a level's work is one after the other; 0 where the fit
 * found none. Factors measured after the fit; 0: not measured, taken for 1: gradient, on all but the launches, where results have gradients; coarse (with gradients coarse_gradient, besides), near and full, on
 * `value`, where a tolerance asks for sums that are less or more exact than those of the fit (fmm_constant_at). errors: |predicted - measured| /
 * measured over the n_held_out runs kept out of the fit. */
typedef struct fmm_constant { double value, other, entry_s, byte_s, launch_s, chain_s, gradient, coarse, coarse_gradient, near, full, median_error, p90_error; int n_fit, n_held_out; } fmm_constant;
/* The fit's runs are in single at 1e-4 and in double at 1e-6, where one Newton step does; the others by the steps of CPUs with AVX-512 (kernels/pair/accuracy_steps.h; a GPU's sums change at 1e-10).
 * tolerance 0: not known. Returns the factor. */
static inline double fmm_constant_at(const fmm_constant *c, int precision, double tolerance, int gradient) {
  double factor = 1;
  if (precision && tolerance >= FMM_COARSE_FROM) factor = gradient && c->coarse_gradient > 0 ? c->coarse_gradient : c->coarse;
  else if (!precision && tolerance > 0 && tolerance < FMM_NEWTON_FROM) factor = tolerance >= FMM_SERIES_FROM ? c->near : c->full;
  return factor > 0 ? factor : 1;
}
static inline double fmm_constant_other(const fmm_constant *c) { return c->other > 0 ? c->other : c->value; }

typedef struct fmm_device_rates {
  int present;
  char name[FMM_MAX_NAME];             /* CPU model or GPU name */
  char id[FMM_MAX_NAME];               /* GPU UUID; "" for the CPU */
  char driver[FMM_MAX_NAME];
  int units;                           /* cores used, or multiprocessors */
  int memory_mb;
  fmm_rate pair_flops_per_s[FMM_N_PRECISIONS]; /* effective peak of the laplace pair sum, FMM_LAPLACE_FLOPS a pair */
  fmm_rate fma_flops_per_s[FMM_N_PRECISIONS];  /* multiply-add peak: operators, M2L products */
  fmm_rate memory_bytes_per_s;         /* triad */
  fmm_rate launch_s;                   /* cost of one launch (GPU) or one parallel region (CPU) */
  fmm_rate h2d_bytes_per_s, d2h_bytes_per_s; /* GPU only: pinned */
  /* of an evaluation beside its phases. CPU: bytes checked, sorted, cleared and unsorted a second, and what that takes however few they are; 0: not measured yet, by the memory's rate.
   * GPU: bytes of densities or results, each way, that the host copies to and from page-locked memory, beyond the bus, and what that takes besides where the team wakes for it;
   * calls of the driver and waits where the GPU has all phases, and where both devices have some (0: not measured yet, the former). */
  fmm_rate staging_bytes_per_s, staging_s, evaluation_s, joint_s;
  double driving_slowdown;             /* factor (>= 1) on CPU phases while this device is driven; GPU only */
  fmm_constant constant[FMM_N_PHASES][FMM_N_PRECISIONS];
} fmm_device_rates;

typedef struct fmm_machine {
  int schema;
  char path[512];                      /* where it was read; "" when nominal */
  char fingerprint[FMM_MAX_NAME];      /* hash of CPU model, allowed cores, GPU UUID, driver, build */
  char build[FMM_MAX_NAME];            /* library version and instruction set */
  char effort[16];                     /* quick, standard, thorough, nominal, hand */
  char source[512];                    /* where the numbers come from, in words; "" for calibrate's own */
  double created_unix_s;
  fmm_device_rates device[FMM_N_DEVICES];
  char no_gpu[256];                    /* why this process can use none, in words; "" where it can or was not asked. No part of a profile */
} fmm_machine;

/* Every failure is FMM_ERR_PROFILE (writing: FMM_ERR_FILE) and says why and what to do; *machine is untouched then. */
fmm_status fmm_profile_load(const char *path, fmm_machine *machine);
fmm_status fmm_profile_save(const char *path, const fmm_machine *machine); /* whole or not at all; its directory must exist */
fmm_status fmm_profile_seal(const char *path);                             /* checks a hand-written profile, adds its checksum */
/* Refuses a profile of other hardware or another build than `fingerprint` (this machine's). */
fmm_status fmm_profile_check_native(const fmm_machine *machine, const char *fingerprint);
/* What a profile must satisfy: finite positive rates of every device present, constants in range, names not empty. */
fmm_status fmm_machine_check(const fmm_machine *machine);
/* Path by these rules: explicit, $FMM_PROFILE, $XDG_STATE_HOME/hybridfmm/FINGERPRINT.json (default ~/.local/state),
 * /etc/hybridfmm/FINGERPRINT.json; *found 0: none. The first two must exist when given. gpu_sms above 0: a part of the GPU; its own profile,
 * FINGERPRINT-SMS.json in the same two places, goes before those of the whole. */
fmm_status fmm_profile_find(const char *explicit_path, const char *fingerprint, int gpu_sms, char path[512], int *found);
fmm_status fmm_profile_user_path(const char *fingerprint, int gpu_sms, char path[512]);
/* Made-up rates for `cores` usual cores and no GPU, effort "nominal": used where no profile is and calibration is not wanted. Their ratios, by which trees are chosen, are rounded from measured ones. */
void fmm_machine_nominal(int cores, fmm_machine *machine);
/* The like for a GPU that was not calibrated, by its d->units: its rates are measured where they are needed (runtime/node_gpu.c). */
void fmm_machine_nominal_gpu_constants(fmm_device_rates *d);

/* The same machine with `units` of the device's cores or multiprocessors (no more than there are): compute, bandwidth and overheads in proportion
 * (bandwidth is a lower bound: a part of the units can draw more than its share). Path and fingerprint stay: it is that machine. */
void fmm_machine_use_units(fmm_machine *machine, fmm_device device, int units);
#endif
