/* A machine as data: what a profile file holds. JSON with a schema version, fingerprint, rates with spread, constants with
 * errors, checksum. Loaded and saved by profile.c; measured by calib/; recorded ones in tests/machines/.
 * Rates are named after Choi et al. 2014: effective compute peak for the actual instruction mix (eq. 6), memory bandwidth. */
#ifndef FMM_MACHINE_H
#define FMM_MACHINE_H
#include "runtime/status.h"

enum { FMM_PROFILE_SCHEMA = 1, FMM_MAX_NAME = 128, FMM_N_PRECISIONS = 2 }; /* double, single (mixed uses single's rates) */

typedef struct fmm_rate { double value, spread; } fmm_rate; /* spread: (max - min) / median over repeats */
typedef struct fmm_constant { double value, median_error, p90_error; int n_fit, n_held_out; } fmm_constant; /* 1 is ideal; relative errors on held-out runs */

typedef struct fmm_device_rates {
  int present;
  char name[FMM_MAX_NAME];             /* CPU model or GPU name */
  char id[FMM_MAX_NAME];               /* GPU UUID; "" for the CPU */
  char driver[FMM_MAX_NAME];
  int units;                           /* cores used, or multiprocessors */
  int memory_mb;
  fmm_rate pair_flops_per_s[FMM_N_PRECISIONS]; /* effective peak of the laplace pair sum, 11 flops a pair */
  fmm_rate fma_flops_per_s[FMM_N_PRECISIONS];  /* multiply-add peak: operators, M2L products */
  fmm_rate memory_bytes_per_s;         /* triad */
  fmm_rate launch_s;                   /* cost of one launch (GPU) or one parallel region (CPU) */
  fmm_rate h2d_bytes_per_s, d2h_bytes_per_s; /* GPU only: pinned */
  double driving_slowdown;             /* factor (>= 1) on CPU phases while this device is driven; GPU only */
  fmm_constant constant[FMM_N_PHASES][FMM_N_PRECISIONS];
} fmm_device_rates;

typedef struct fmm_machine {
  int schema;
  char path[512];                      /* where it was read; "" when nominal */
  char fingerprint[FMM_MAX_NAME];      /* hash of CPU model, allowed cores, GPU UUID, driver, build */
  char build[FMM_MAX_NAME];            /* library version and instruction set */
  char effort[16];                     /* quick, standard, thorough, nominal, hand */
  double created_unix_s;
  fmm_device_rates device[FMM_N_DEVICES];
} fmm_machine;

fmm_status fmm_profile_load(const char *path, fmm_machine *machine);       /* FMM_ERR_PROFILE: reason, way out */
fmm_status fmm_profile_save(const char *path, const fmm_machine *machine); /* whole or not at all */
fmm_status fmm_profile_seal(const char *path);                             /* checks a hand-written profile, adds its checksum */
/* Path by the rules of DESIGN 6: explicit, $FMM_PROFILE, $XDG_STATE_HOME/hybridfmm/FINGERPRINT.json, /etc/hybridfmm/...; *found 0: none. */
fmm_status fmm_profile_find(const char *explicit_path, const char *fingerprint, char path[512], int *found);
fmm_status fmm_profile_user_path(const char *fingerprint, char path[512]);
/* Conservative made-up rates for `cores` cores and no GPU, effort "nominal": used where no profile is and calibration is not wanted. */
void fmm_machine_nominal(int cores, fmm_machine *machine);
#endif
