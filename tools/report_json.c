/* Members of the JSON reports; see report.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/simd.h"
#include "report.h"
#include "revision.h"

json_t *fmm_json_number(double value) { return isfinite(value) ? json_real(value) : json_null(); }

json_t *fmm_json_choice(const char *choices, int index) {
  char text[32];
  return json_string(fmm_cli_choice(choices, index, text));
}

json_t *fmm_json_text(const char *value) {
  json_t *string = json_string(value);
  if (string) return string;
  char plain[512];
  snprintf(plain, sizeof plain, "%s", value);
  for (char *p = plain; *p; p++)
    if ((unsigned char)*p > 126) *p = '?';
  return json_string(plain);
}

json_t *fmm_json_case(const fmm_case_options *o, const fmm_case *data) {
  double tolerance = fmm_case_tolerance(o);
  json_t *c = json_pack("{s:I, s:I, s:I, s:i, s:s, s:f, s:f, s:b, s:I}", "points", (json_int_t)data->n_points, "sources", (json_int_t)data->n, "targets", (json_int_t)data->n_targets,
                        "density_columns", data->columns, "kernel", data->pair->name, "digits", -log10(tolerance), "tolerance", tolerance,
                        "gradient", o->gradient, "seed", (json_int_t)o->seed);
  double value[FMM_MAX_PARAMS];
  json_t *parameters = json_object();
  fmm_report_parameters(o, data, value);
  for (int i = 0; i < data->pair->n_params; i++) json_object_set_new(parameters, data->pair->params[i].name, fmm_json_number(value[i]));
  json_object_set_new(c, "parameters", parameters);
  json_object_set_new(c, "scale", json_real(isnan(o->scale) ? data->pair->default_scale : o->scale));
  json_object_set_new(c, "targets_file", o->targets ? fmm_json_text(o->targets) : json_null());
  if (o->file) json_object_set_new(c, "file", fmm_json_text(o->file));
  else json_object_set_new(c, "distribution", fmm_json_choice(FMM_DISTRIBUTIONS, o->generate));
  json_object_set_new(c, "densities", fmm_json_text(data->densities_from ? data->densities_from : "unit"));
  return c;
}

json_t *fmm_json_build(void) { return json_pack("{s:s, s:s, s:s}", "version", fmm_version(), "revision", FMM_REVISION, "simd", fmm_simd_name(fmm_simd_level())); }

fmm_status fmm_json_print(json_t *report) {
  char *line = json_dumps(report, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
  json_decref(report);
  if (!line) return FMM_FAIL(FMM_ERR_MEMORY, "no memory for the report");
  puts(line);
  free(line);
  return FMM_OK;
}
