/* A machine profile as JSON: one table of fields a struct, read and written by the same loops, so that a field is named once.
 * Layout: {schema, fingerprint, build, effort, source, created_unix_s, devices: {cpu, gpu: {present, name, id, driver, units, memory_mb,
 * RATE: {value, spread}, RATE by precision: {double, single}, driving_slowdown, constants: {PHASE: {PRECISION: {...}}}}}, checksum}. */
#include "model/profile_json.h"
#include "runtime/counts.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum kind { TEXT, INTEGER, BOOLEAN, NUMBER } kind;
typedef struct field { const char *key; kind kind; size_t offset, size; } field;

#define FIELD(type, member, kind) {#member, kind, offsetof(type, member), sizeof(((type *)0)->member)}
static const field machine_fields[] = {FIELD(fmm_machine, schema, INTEGER), FIELD(fmm_machine, fingerprint, TEXT), FIELD(fmm_machine, build, TEXT),
                                       FIELD(fmm_machine, effort, TEXT),    FIELD(fmm_machine, source, TEXT),      FIELD(fmm_machine, created_unix_s, NUMBER),
                                       {0}};
static const field device_fields[] = {FIELD(fmm_device_rates, present, BOOLEAN), FIELD(fmm_device_rates, name, TEXT),
                                      FIELD(fmm_device_rates, id, TEXT),         FIELD(fmm_device_rates, driver, TEXT),
                                      FIELD(fmm_device_rates, units, INTEGER),   FIELD(fmm_device_rates, memory_mb, INTEGER),
                                      FIELD(fmm_device_rates, driving_slowdown, NUMBER), {0}};
static const field rate_fields[] = {FIELD(fmm_rate, value, NUMBER), FIELD(fmm_rate, spread, NUMBER), {0}};
static const field constant_fields[] = {FIELD(fmm_constant, value, NUMBER),        FIELD(fmm_constant, other, NUMBER),
                                        FIELD(fmm_constant, entry_s, NUMBER),      FIELD(fmm_constant, byte_s, NUMBER),
                                        FIELD(fmm_constant, launch_s, NUMBER),     FIELD(fmm_constant, chain_s, NUMBER),
                                        FIELD(fmm_constant, gradient, NUMBER),     FIELD(fmm_constant, coarse, NUMBER),
                                        FIELD(fmm_constant, coarse_gradient, NUMBER),
                                        FIELD(fmm_constant, near, NUMBER),         FIELD(fmm_constant, full, NUMBER),
                                        FIELD(fmm_constant, median_error, NUMBER), FIELD(fmm_constant, p90_error, NUMBER),
                                        FIELD(fmm_constant, n_fit, INTEGER),       FIELD(fmm_constant, n_held_out, INTEGER), {0}};
static const field device_rates[] = {FIELD(fmm_device_rates, memory_bytes_per_s, NUMBER), FIELD(fmm_device_rates, launch_s, NUMBER),
                                     FIELD(fmm_device_rates, h2d_bytes_per_s, NUMBER), FIELD(fmm_device_rates, d2h_bytes_per_s, NUMBER),
                                     FIELD(fmm_device_rates, staging_bytes_per_s, NUMBER), FIELD(fmm_device_rates, evaluation_s, NUMBER),
                                     FIELD(fmm_device_rates, staging_s, NUMBER), FIELD(fmm_device_rates, joint_s, NUMBER), {0}};
static const field device_precision_rates[] = {FIELD(fmm_device_rates, pair_flops_per_s, NUMBER), FIELD(fmm_device_rates, fma_flops_per_s, NUMBER), {0}};

static const char *const precision_keys[FMM_N_PRECISIONS] = {"double", "single"};
static const char *const device_keys[FMM_N_DEVICES] = {"cpu", "gpu"};

/* ---- writing ---- */

static json_t *field_to_json(const field *f, const void *at) {
  switch (f->kind) {
  case TEXT: return json_string(at);
  case INTEGER: return json_integer(*(const int *)at);
  case BOOLEAN: return json_boolean(*(const int *)at);
  case NUMBER: return json_real(*(const double *)at);
  }
  return NULL;
}

/* Takes over the value; 0 on success. object may be NULL (an earlier failure). */
static int set(json_t *object, const char *key, json_t *value) { return object ? json_object_set_new(object, key, value) : (json_decref(value), -1); }

static json_t *finish(json_t *object, int failures) {
  if (!failures) return object;
  json_decref(object);
  return NULL;
}

static json_t *struct_to_json(const field *fields, const void *base) {
  json_t *object = json_object();
  int failures = 0;
  for (const field *f = fields; f->key; f++) failures += set(object, f->key, field_to_json(f, (const char *)base + f->offset)) != 0;
  return finish(object, failures);
}

static json_t *constants_to_json(const fmm_device_rates *d) {
  json_t *constants = json_object();
  int failures = 0;
  for (int phase = 0; phase < FMM_N_PHASES; phase++) {
    json_t *by_precision = json_object();
    for (int p = 0; p < FMM_N_PRECISIONS; p++)
      failures += set(by_precision, precision_keys[p], struct_to_json(constant_fields, &d->constant[phase][p])) != 0;
    failures += set(constants, fmm_phase_names[phase], by_precision) != 0;
  }
  return finish(constants, failures);
}

static json_t *device_to_json(const fmm_device_rates *d) {
  json_t *object = struct_to_json(device_fields, d);
  int failures = object == NULL;
  for (const field *f = device_rates; f->key; f++) failures += set(object, f->key, struct_to_json(rate_fields, (const char *)d + f->offset)) != 0;
  for (const field *f = device_precision_rates; f->key; f++) {
    const fmm_rate *rates = (const fmm_rate *)((const char *)d + f->offset);
    json_t *by_precision = json_object();
    for (int p = 0; p < FMM_N_PRECISIONS; p++) failures += set(by_precision, precision_keys[p], struct_to_json(rate_fields, &rates[p])) != 0;
    failures += set(object, f->key, by_precision) != 0;
  }
  failures += set(object, "constants", constants_to_json(d)) != 0;
  return finish(object, failures);
}

json_t *fmm_machine_to_json(const fmm_machine *machine) {
  json_t *root = struct_to_json(machine_fields, machine), *devices = json_object();
  int failures = root == NULL;
  for (int d = 0; d < FMM_N_DEVICES; d++) failures += set(devices, device_keys[d], device_to_json(&machine->device[d])) != 0;
  failures += set(root, "devices", devices) != 0;
  return finish(root, failures);
}

/* ---- reading ---- */

typedef struct reader { const char *path; char where[96]; } reader; /* where: "devices.cpu", for error texts */

static reader inside(const reader *r, const char *key) {
  reader inner = {.path = r->path};
  snprintf(inner.where, sizeof inner.where, "%.40s%s%.50s", r->where, *r->where ? "." : "", key);
  return inner;
}

static fmm_status wrong(const reader *r, const char *key, const char *wanted) {
  return FMM_FAIL(FMM_ERR_PROFILE, "%s: %s%s%s must be %s; mend it and run fmm-calibrate --seal, or calibrate anew", r->path, r->where, *r->where ? "." : "",
                  key, wanted);
}

static fmm_status text_from_json(const json_t *value, const reader *r, const field *f, char *at) {
  if (!json_is_string(value) || json_string_length(value) >= f->size) return wrong(r, f->key, "a text that is not too long");
  memcpy(at, json_string_value(value), json_string_length(value)); /* the struct was zeroed: same bytes for equal machines */
  return FMM_OK;
}

static fmm_status field_from_json(const json_t *value, const reader *r, const field *f, void *at) {
  json_int_t whole = json_integer_value(value);
  switch (f->kind) {
  case TEXT: return text_from_json(value, r, f, at);
  case INTEGER:
    if (!json_is_integer(value) || whole < INT32_MIN || whole > INT32_MAX) return wrong(r, f->key, "a whole number");
    return *(int *)at = (int)whole, FMM_OK;
  case BOOLEAN:
    if (!json_is_boolean(value)) return wrong(r, f->key, "true or false");
    return *(int *)at = json_is_true(value), FMM_OK;
  case NUMBER:
    if (!json_is_number(value)) return wrong(r, f->key, "a number");
    return *(double *)at = json_number_value(value), FMM_OK;
  }
  return FMM_OK;
}

static fmm_status struct_from_json(const json_t *object, const reader *r, const field *fields, void *base) {
  for (const field *f = fields; f->key; f++)
    FMM_TRY(field_from_json(json_object_get(object, f->key), r, f, (char *)base + f->offset));
  return FMM_OK;
}

static fmm_status leaf_from_json(const json_t *object, const reader *r, const char *key, const field *fields, void *base) {
  const reader inner = inside(r, key);
  return json_is_object(object) ? struct_from_json(object, &inner, fields, base) : wrong(r, key, "an object");
}

static fmm_status precisions_from_json(const json_t *object, const reader *r, const char *key, const field *fields, char *base, size_t stride) {
  const reader inner = inside(r, key);
  if (!json_is_object(object)) return wrong(r, key, "an object of double and single");
  for (int p = 0; p < FMM_N_PRECISIONS; p++)
    FMM_TRY(leaf_from_json(json_object_get(object, precision_keys[p]), &inner, precision_keys[p], fields, base + (size_t)p * stride));
  return FMM_OK;
}

static fmm_status constants_from_json(const json_t *object, const reader *r, fmm_device_rates *d) {
  const reader inner = inside(r, "constants");
  if (!json_is_object(object)) return wrong(r, "constants", "an object");
  for (int phase = 0; phase < FMM_N_PHASES; phase++)
    FMM_TRY(precisions_from_json(json_object_get(object, fmm_phase_names[phase]), &inner, fmm_phase_names[phase], constant_fields, (char *)d->constant[phase],
                                 sizeof(fmm_constant)));
  return FMM_OK;
}

static fmm_status device_from_json(const json_t *object, const reader *r, const char *key, fmm_device_rates *d) {
  const reader inner = inside(r, key);
  if (!json_is_object(object)) return wrong(r, key, "an object");
  FMM_TRY(struct_from_json(object, &inner, device_fields, d));
  for (const field *f = device_rates; f->key; f++)
    FMM_TRY(leaf_from_json(json_object_get(object, f->key), &inner, f->key, rate_fields, (char *)d + f->offset));
  for (const field *f = device_precision_rates; f->key; f++)
    FMM_TRY(precisions_from_json(json_object_get(object, f->key), &inner, f->key, rate_fields, (char *)d + f->offset, sizeof(fmm_rate)));
  return constants_from_json(json_object_get(object, "constants"), &inner, d);
}

/* Every key of object, and of the objects in it, is one of known. */
static fmm_status no_other_keys(const json_t *object, const json_t *known, const reader *r) {
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)(uintptr_t)object, key, value) {
    const json_t *as_known = json_object_get(known, key);
    const reader inner = inside(r, key);
    if (!as_known) return FMM_FAIL(FMM_ERR_PROFILE, "%s: %s is no key of a profile; take it out and run fmm-calibrate --seal, or calibrate anew", r->path, inner.where);
    if (json_is_object(value)) FMM_TRY(no_other_keys(value, as_known, &inner));
  }
  return FMM_OK;
}

/* What is known is what would be written. */
static fmm_status no_unknown_keys(const json_t *root, const reader *r, const fmm_machine *machine) {
  json_t *known = fmm_machine_to_json(machine);
  if (!known || json_object_set_new(known, "checksum", json_null())) {
    json_decref(known);
    return FMM_FAIL(FMM_ERR_MEMORY, "no memory for the keys of a machine profile");
  }
  fmm_status status = no_other_keys(root, known, r);
  json_decref(known);
  return status;
}

fmm_status fmm_machine_from_json(const json_t *root, const char *path, fmm_machine *machine) {
  fmm_machine m;
  memset(&m, 0, sizeof m); /* padding too: machines compare by bytes */
  const reader r = {path, ""}, in_devices = inside(&r, "devices");
  FMM_TRY(struct_from_json(root, &r, machine_fields, &m));
  const json_t *devices = json_object_get(root, "devices");
  if (!json_is_object(devices)) return wrong(&r, "devices", "an object");
  for (int d = 0; d < FMM_N_DEVICES; d++) FMM_TRY(device_from_json(json_object_get(devices, device_keys[d]), &in_devices, device_keys[d], &m.device[d]));
  FMM_TRY(no_unknown_keys(root, &r, &m));
  *machine = m;
  return FMM_OK;
}

/* ---- checksum ---- */

/* FNV-1a, 64 bits: every step is a bijection of the state, so a change of one byte always shows (Fowler, Noll, Vo). */
static uint64_t fnv1a64(const char *text) {
  uint64_t hash = UINT64_C(14695981039346656037);
  for (; *text; text++) hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
  return hash;
}

fmm_status fmm_json_checksum(const json_t *root, char text[32]) {
  json_t *copy = json_copy((json_t *)(uintptr_t)root); /* shallow */
  if (copy) json_object_del(copy, "checksum");
  char *canonical = copy ? json_dumps(copy, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(17)) : NULL;
  json_decref(copy);
  if (!canonical) return FMM_FAIL(FMM_ERR_MEMORY, "no memory for the text of a machine profile");
  snprintf(text, 32, "fnv1a64:%016" PRIx64, fnv1a64(canonical));
  free(canonical);
  return FMM_OK;
}
