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

void fmm_text_targets(const fmm_case_options *o, const fmm_case *data) {
  if (o->targets) printf(" at %lld targets", (long long)data->n_targets);
  else if (data->targets) printf(", %lld of them with density, the others targets alone", (long long)data->n);
}
