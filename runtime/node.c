/* Finds and reads the machine profile of this node for a plan (see node.h). */
#include "node.h"

#include "cores.h"
#include "identity.h"

fmm_status fmm_node_machine(const char *profile_path, fmm_machine *machine) {
  char fingerprint[FMM_FINGERPRINT_CHARS], path[512];
  int found = 0;
  fmm_fingerprint(fingerprint);
  FMM_TRY(fmm_profile_find(profile_path, fingerprint, path, &found));
  if (found) return fmm_profile_load(path, machine);
  fmm_machine_nominal(fmm_cores_allowed(), machine);
  return FMM_OK;
}
