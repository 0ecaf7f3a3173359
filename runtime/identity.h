/* Which machine and build this is: the ingredients of a profile's fingerprint (model/machine.h). Rates measured under one fingerprint do
 * not hold under another. Cheap (two small reads, and on a GPU node the device's query), so that every plan can ask; the full topology is calib/topology.h. */
#ifndef FMM_IDENTITY_H
#define FMM_IDENTITY_H
#include "model/machine.h"

typedef struct fmm_identity {
  char cpu_model[FMM_MAX_NAME];
  int cores;                         /* this process may use (runtime/cores.h) */
  char gpu_uuid[FMM_MAX_NAME];       /* of device 0; "" without a usable GPU */
  char gpu_driver[FMM_MAX_NAME];
  char build[FMM_MAX_NAME];          /* library version and instruction set: "0.1.0 avx2" */
} fmm_identity;

enum { FMM_FINGERPRINT_CHARS = 17 }; /* 16 hexadecimal digits and the end */

void fmm_identity_read(fmm_identity *identity);
/* 64-bit FNV-1a over all fields, each with its length, so that no two splits of the same text meet. Safe as a file name. */
void fmm_identity_fingerprint(const fmm_identity *identity, char fingerprint[FMM_FINGERPRINT_CHARS]);
/* Both at once: what fmm_profile_find wants. */
void fmm_fingerprint(char fingerprint[FMM_FINGERPRINT_CHARS]);
void fmm_build_name(char build[FMM_MAX_NAME]);

/* The processor's name from the text of /proc/cpuinfo; the architecture's name when it has none (for tests too). */
void fmm_cpu_model_from(const char *path, char model[FMM_MAX_NAME]);
#endif
