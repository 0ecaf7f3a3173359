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
  if (bytes >= 1024 * 1024) snprintf(text, 32, "%.1f MB", bytes / (1024 * 1024));
  else if (bytes >= 1024) snprintf(text, 32, "%.1f kB", bytes / 1024);
  else snprintf(text, 32, "%.0f bytes", bytes);
  return text;
}
