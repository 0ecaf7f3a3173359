/* Fit of one phase's constants: non-negative least squares on relative errors, two unknowns (value of the roofline, seconds an entry), solved
 * exactly over the active sets; errors on the runs that were held out. Reference: Choi et al. 2014, section 4.3 (linear regression over
 * N, q, p); Lawson & Hanson, Solving Least Squares Problems (1974), ch. 23 (non-negativity). */
#include <math.h>
#include <stdlib.h>

#include "model/model.h"

/* Normal equations of  sum ((a value + b entry_s + c) / t - 1)^2  with a, b, c the sample's roofline, entries and launches. */
typedef struct normal { double aa, ab, bb, ay, by; int n; } normal;

static int usable(const fmm_sample *s) { return s->seconds > 0 && isfinite(s->seconds) && s->roofline_s > 0 && isfinite(s->roofline_s); }

static normal accumulate(int n, const fmm_sample *samples) {
  normal m = {0};
  for (int i = 0; i < n; i++) {
    const fmm_sample *s = &samples[i];
    if (s->held_out || !usable(s)) continue;
    double a = s->roofline_s / s->seconds, b = s->entries / s->seconds, y = fmax(1 - s->launches_s / s->seconds, 0);
    m.aa += a * a, m.ab += a * b, m.bb += b * b, m.ay += a * y, m.by += b * y, m.n++;
  }
  return m;
}

double fmm_fit_predict(const fmm_constant *constant, const fmm_sample *sample) {
  return constant->value * sample->roofline_s + constant->entry_s * sample->entries + sample->launches_s;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static fmm_status measure_errors(int n, const fmm_sample *samples, int held_out, fmm_constant *c) {
  double *errors;
  int count = 0;
  FMM_TRY(FMM_ALLOCATE(&errors, n, "errors of a fit"));
  for (int i = 0; i < n; i++)
    if (samples[i].held_out == held_out && usable(&samples[i])) errors[count++] = fabs(fmm_fit_predict(c, &samples[i]) / samples[i].seconds - 1);
  qsort(errors, (size_t)count, sizeof *errors, ascending);
  if (count) {
    c->median_error = (errors[(count - 1) / 2] + errors[count / 2]) / 2;
    c->p90_error = errors[(int)ceil(0.9 * count) - 1]; /* nearest rank */
  }
  if (held_out) c->n_held_out = count;
  FMM_FREE(&errors);
  return FMM_OK;
}

fmm_status fmm_fit_constant(int n, const fmm_sample *samples, fmm_constant *constant) {
  normal m = accumulate(n, samples);
  fmm_constant c = {.n_fit = m.n};
  if (!(m.aa > 0)) return FMM_FAIL(FMM_ERR_ARGUMENT, "none of %d samples has positive seconds and work: nothing to fit", n);
  double determinant = m.aa * m.bb - m.ab * m.ab;
  c.value = m.ay / m.aa; /* active set: entry_s = 0 */
  if (m.n > 2 && determinant > 1e-12 * m.aa * m.bb) {
    double value = (m.ay * m.bb - m.by * m.ab) / determinant, entry_s = (m.by * m.aa - m.ay * m.ab) / determinant;
    if (value > 0 && entry_s > 0) c.value = value, c.entry_s = entry_s; /* else the optimum is on a border; value = 0 is not a roofline's */
  }
  if (!(c.value > 0)) return FMM_FAIL(FMM_ERR_ARGUMENT, "launches alone take longer than all %d runs measured: nothing to fit", m.n);
  FMM_TRY(measure_errors(n, samples, 1, &c));
  if (!c.n_held_out) FMM_TRY(measure_errors(n, samples, 0, &c));
  *constant = c;
  return FMM_OK;
}
