/* Between a machine and its JSON object; private to model/. */
#ifndef FMM_PROFILE_JSON_H
#define FMM_PROFILE_JSON_H
#include <jansson.h>

#include "model/machine.h"

/* NULL when a value is not finite or memory is short. The caller owns the reference. No checksum yet. */
json_t *fmm_machine_to_json(const fmm_machine *machine);
/* path is for error texts. Every field must be there, of its type, and no other. */
fmm_status fmm_machine_from_json(const json_t *root, const char *path, fmm_machine *machine);
/* "fnv1a64:" and 16 hex digits over the canonical text (sorted keys, no spaces, 17 digits) without the key "checksum". */
fmm_status fmm_json_checksum(const json_t *root, char text[32]);
#endif
