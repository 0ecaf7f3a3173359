/* Finds and reads the machine profile of this node for a plan (see node.h). */
#include "node.h"

#include "cores.h"
#include "identity.h"

fmm_status fmm_node_machine(const char *profile_path, int native_only, int gpu_device, int gpu_sms, fmm_machine *machine) {
  char fingerprint[FMM_FINGERPRINT_CHARS], path[512];
  int found = 0;
  fmm_fingerprint(fingerprint);
  FMM_TRY(fmm_profile_find(profile_path, fingerprint, fmm_node_gpu_part(gpu_device, gpu_sms), path, &found));
  if (found) {
    fmm_machine loaded;
    FMM_TRY(fmm_profile_load(path, &loaded));
    if (native_only) FMM_TRY(fmm_profile_check_native(&loaded, fingerprint));
    return *machine = loaded, FMM_OK;
  }
  fmm_machine_nominal(fmm_cores_allowed(), machine);
  return FMM_OK;
}
