/* Machine profiles on disk: load, save, seal. A profile is taken whole or refused: unreadable, not JSON, another schema, a checksum that
 * does not match, a field missing or out of range. Layout: profile_json.c. */
#include <stdlib.h>
#include <string.h>

#include "model/profile_json.h"
#include "runtime/file.h"

enum { MOST_BYTES = 1 << 20 /* of a profile, which has some 30,000 */ };

static fmm_status parse(const char *path, json_t **root) {
  char *text = NULL;
  size_t length = 0;
  json_error_t error;
  fmm_status status = fmm_file_read_at_most(path, MOST_BYTES, &text, &length);
  if (status == FMM_ERR_MEMORY) return status;
  if (status != FMM_OK) return FMM_FAIL(FMM_ERR_PROFILE, "%s; name another profile, or run fmm-calibrate", fmm_last_error());
  status = fmm_memory_spare(4 * MOST_BYTES, "reading a machine profile"); /* jansson may blame the text, or leave something out, where there is none */
  json_t *parsed = status == FMM_OK ? json_loadb(text, length, JSON_REJECT_DUPLICATES, &error) : NULL;
  FMM_FREE(&text);
  FMM_TRY(status);
  if (!parsed && json_error_code(&error) == json_error_out_of_memory) return FMM_FAIL(FMM_ERR_MEMORY, "no memory to read the profile %s", path);
  if (!parsed)
    return FMM_FAIL(FMM_ERR_PROFILE, "%s:%d: damaged profile: %s; run fmm-calibrate to make a new one", path, error.line, error.text);
  if (!json_is_object(parsed)) {
    json_decref(parsed);
    return FMM_FAIL(FMM_ERR_PROFILE, "%s: not a machine profile (no JSON object); run fmm-calibrate to make one", path);
  }
  *root = parsed;
  return FMM_OK;
}

static fmm_status check_schema(const json_t *root, const char *path) {
  const json_t *schema = json_object_get(root, "schema");
  if (!json_is_integer(schema))
    return FMM_FAIL(FMM_ERR_PROFILE, "%s: not a machine profile (no schema number); run fmm-calibrate to make one", path);
  long long number = json_integer_value(schema);
  if (number > FMM_PROFILE_SCHEMA)
    return FMM_FAIL(FMM_ERR_PROFILE, "%s: schema %lld is newer than this version's %d; update hybridfmm or run fmm-calibrate", path, number,
                    FMM_PROFILE_SCHEMA);
  if (number < FMM_PROFILE_SCHEMA)
    return FMM_FAIL(FMM_ERR_PROFILE, "%s: schema %lld is older than this version's %d, which keeps other constants; run fmm-calibrate --profile %s (with the --gpu-sms it was made for) to measure it anew", path, number,
                    FMM_PROFILE_SCHEMA, path);
  return FMM_OK;
}

static fmm_status check_sum(const json_t *root, const char *path) {
  const char *kept = json_string_value(json_object_get(root, "checksum"));
  char computed[32];
  if (!kept)
    return FMM_FAIL(FMM_ERR_PROFILE, "%s: no checksum; if you wrote it by hand, run fmm-calibrate --seal %s", path, path);
  FMM_TRY(fmm_json_checksum(root, computed));
  if (strcmp(kept, computed))
    return FMM_FAIL(FMM_ERR_PROFILE, "%s: damaged or edited: its checksum is %s, its contents give %s; run fmm-calibrate, or --seal if you meant the change",
                    path, kept, computed);
  return FMM_OK;
}

static fmm_status read_machine(const json_t *root, const char *path, fmm_machine *machine) {
  fmm_machine m;
  FMM_TRY(fmm_machine_from_json(root, path, &m));
  if (fmm_machine_check(&m) != FMM_OK)
    return FMM_FAIL(FMM_ERR_PROFILE, "%s: %s; run fmm-calibrate, or mend it and --seal", path, fmm_last_error());
  snprintf(m.path, sizeof m.path, "%s", path);
  *machine = m;
  return FMM_OK;
}

fmm_status fmm_profile_load(const char *path, fmm_machine *machine) {
  json_t *root = NULL;
  fmm_machine m;
  fmm_status status = FMM_OK;
  FMM_TRY(parse(path, &root));
  FMM_CHECK(check_schema(root, path));
  FMM_CHECK(check_sum(root, path));
  FMM_CHECK(read_machine(root, path, &m));
  *machine = m;
done:
  json_decref(root);
  return status;
}

/* Adds the checksum to the object and writes it. */
static fmm_status write_sealed(const char *path, json_t *root) {
  char checksum[32];
  FMM_TRY(fmm_json_checksum(root, checksum));
  char *text = json_object_set_new(root, "checksum", json_string(checksum)) ? NULL : json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
  if (!text) return FMM_FAIL(FMM_ERR_MEMORY, "no memory for the text of a machine profile");
  fmm_status status = fmm_file_replace(path, text, strlen(text));
  free(text);
  return status;
}

fmm_status fmm_profile_save(const char *path, const fmm_machine *machine) {
  FMM_TRY(fmm_machine_check(machine));
  json_t *root = fmm_machine_to_json(machine);
  if (!root) return FMM_FAIL(FMM_ERR_MEMORY, "no memory for a machine profile, or a text in it is not UTF-8");
  fmm_status status = write_sealed(path, root);
  json_decref(root);
  return status;
}

fmm_status fmm_profile_seal(const char *path) {
  json_t *root = NULL;
  fmm_machine m;
  fmm_status status = FMM_OK;
  FMM_TRY(parse(path, &root));
  FMM_CHECK(check_schema(root, path));
  FMM_CHECK(read_machine(root, path, &m));
  FMM_CHECK(write_sealed(path, root));
done:
  json_decref(root);
  return status;
}
