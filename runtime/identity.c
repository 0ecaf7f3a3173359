/* Fingerprint of machine and build (identity.h). */
#include "identity.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "cores.h"
#include "gpu.h"
#include "kernels/simd.h"

void fmm_build_name(char build[FMM_MAX_NAME]) { snprintf(build, FMM_MAX_NAME, "%s %s", fmm_version(), fmm_simd_name(fmm_simd_level())); }

/* The value of "key : value" when line starts with key. */
static const char *value_of(char *line, const char *key) {
  char *colon = strchr(line, ':');
  if (strncmp(line, key, strlen(key)) || !colon) return NULL;
  line[strcspn(line, "\n")] = 0;
  colon++;
  return colon + strspn(colon, " \t");
}

void fmm_cpu_model_from(const char *path, char model[FMM_MAX_NAME]) {
  char line[512], implementer[32] = "", part[32] = "";
  struct utsname system;
  snprintf(model, FMM_MAX_NAME, "%s", uname(&system) ? "unknown" : system.machine);
  FILE *f = fopen(path, "re");
  while (f && fgets(line, sizeof line, f)) {
    const char *value;
    if ((value = value_of(line, "model name"))) {
      snprintf(model, FMM_MAX_NAME, "%.*s", FMM_MAX_NAME - 1, value);
      break;
    }
    if ((value = value_of(line, "CPU implementer"))) snprintf(implementer, sizeof implementer, "%.31s", value);
    if ((value = value_of(line, "CPU part"))) snprintf(part, sizeof part, "%.31s", value);
    if (*implementer && *part) { /* Arm names no model */
      snprintf(model, FMM_MAX_NAME, "implementer %s part %s", implementer, part);
      break;
    }
  }
  if (f) fclose(f);
}

void fmm_identity_read(fmm_identity *identity) {
  memset(identity, 0, sizeof *identity);
  fmm_cpu_model_from("/proc/cpuinfo", identity->cpu_model);
  identity->cores = fmm_cores_allowed();
  fmm_build_name(identity->build);
  fmm_gpu_info gpu;
  fmm_gpu_query(0, &gpu);
  if (!gpu.present) return;
  snprintf(identity->gpu_uuid, FMM_MAX_NAME, "%s", gpu.uuid);
  snprintf(identity->gpu_driver, FMM_MAX_NAME, "%s", gpu.driver);
}

static uint64_t mix(uint64_t hash, const void *bytes, size_t n) {
  const unsigned char *b = bytes;
  for (size_t i = 0; i < n; i++) hash = (hash ^ b[i]) * UINT64_C(1099511628211);
  return hash;
}

static uint64_t mix_text(uint64_t hash, const char *text) {
  uint32_t n = (uint32_t)strlen(text);
  return mix(mix(hash, &n, sizeof n), text, n);
}

void fmm_identity_fingerprint(const fmm_identity *identity, char fingerprint[FMM_FINGERPRINT_CHARS]) {
  int32_t cores = identity->cores;
  uint64_t hash = UINT64_C(14695981039346656037);
  hash = mix_text(hash, identity->cpu_model);
  hash = mix(hash, &cores, sizeof cores);
  hash = mix_text(hash, identity->gpu_uuid);
  hash = mix_text(hash, identity->gpu_driver);
  hash = mix_text(hash, identity->build);
  snprintf(fingerprint, FMM_FINGERPRINT_CHARS, "%016" PRIx64, hash);
}

void fmm_fingerprint(char fingerprint[FMM_FINGERPRINT_CHARS]) {
  fmm_identity identity;
  fmm_identity_read(&identity);
  fmm_identity_fingerprint(&identity, fingerprint);
}
