/* The JSON report of the command that ran last (command.h). */
#ifndef FMM_TEST_RUN_REPORT_H
#define FMM_TEST_RUN_REPORT_H
#include <jansson.h>

#include "command.h"

static inline json_t *report(void) {
  json_error_t error;
  json_t *r = json_loads(out, 0, &error);
  if (!r || !json_is_object(r)) fail_msg("not one JSON object: line %d: %s", error.line, error.text);
  return r;
}

/* The number at "a.b" of the report. */
static inline double number_at(json_t *r, const char *outer, const char *inner) {
  json_t *v = json_object_get(r, outer);
  if (inner) v = json_object_get(v, inner);
  if (!json_is_number(v)) fail_msg("%s.%s is no number", outer, inner ? inner : "");
  return json_number_value(v);
}
#endif
