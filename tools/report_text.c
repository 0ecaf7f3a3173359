/* Numbers for people; see report.h. */
#include <math.h>
#include <stdio.h>

#include "report.h"

const char *fmm_text_seconds(double s, char text[32]) {
  if (!isfinite(s)) snprintf(text, 32, "-");
  else if (s >= 1 || s == 0) snprintf(text, 32, "%.3g s", s);
  else if (s >= 1e-3) snprintf(text, 32, "%.3g ms", s * 1e3);
  else snprintf(text, 32, "%.3g us", s * 1e6);
  return text;
}

const char *fmm_text_bytes(double bytes, char text[32]) {
  if (bytes >= 1e10) snprintf(text, 32, "%.1f GB", bytes / 1e9);
  else if (bytes >= 1e6) snprintf(text, 32, "%.1f MB", bytes / 1e6);
  else if (bytes >= 1e3) snprintf(text, 32, "%.1f kB", bytes / 1e3);
  else snprintf(text, 32, "%.0f bytes", bytes);
  return text;
}

void fmm_report_parameters(const fmm_case_options *o, const fmm_case *data, double value[FMM_MAX_PARAMS]) {
  fmm_options options;
  for (int i = 0; i < data->pair->n_params; i++) value[i] = data->pair->params[i].default_value;
  if (fmm_case_to_options(o, &options) == FMM_OK) fmm_pair_resolve_params(data->pair, options.n_params, options.params, value); /* which the plan has done as well */
}

void fmm_text_kernel(const fmm_case_options *o, const fmm_case *data) {
  const char *before = " (";
  double value[FMM_MAX_PARAMS];
  fmm_report_parameters(o, data, value);
  printf("%s", data->pair->name);
  for (int i = 0; i < data->pair->n_params; i++, before = ", ") printf("%s%s %g", before, data->pair->params[i].name, value[i]);
  if (!isnan(o->scale)) printf("%sscale %g", before, o->scale), before = ", ";
  if (*before == ',') printf(")");
}

void fmm_text_targets(const fmm_case_options *o, const fmm_case *data) {
  if (o->targets) printf(" at %lld targets", (long long)data->n_targets);
  else if (data->targets) printf(", %lld of them with density, the others targets alone", (long long)data->n);
}
