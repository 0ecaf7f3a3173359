/* Fit of one phase's constants: non-negative least squares on relative errors, up to six unknowns (of the roofline's two parts, entries, bytes, launches, launches times values of a surface), solved
 * exactly over the active sets; errors on the runs that were held out. Reference: Choi et al. 2014, section 4.3 (linear regression over
 * N, q, p); Lawson & Hanson, Solving Least Squares Problems (1974), ch. 23 (non-negativity). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/model.h"

enum { MAIN, OTHER, ENTRIES, BYTES, LAUNCHES, CHAIN, UNKNOWNS };

/* A run that is mostly launches says nothing of the rest, and on a busy machine launches are measured too long. */
static const double most_launches = 0.5;

/* Of the run that comes nearest to the roofline at least this part is the roofline's. Without it the other unknowns may take all of a narrow sweep's
 * times, and nothing is left that grows with the work of larger ones: 16 cores once gave U in float a constant of 0.02, by which direct sums of 100,000
 * points seemed the fastest way (3 s where the method takes 0.07). */
static const double least_of_roofline = 0.5;

/* Normal equations of  sum (x . features / t - (1 - (launches_s + least * roofline_s) / t))^2, scaled so that the matrix has ones on its diagonal (or
 * zeros); least: of the constants of both parts of the roofline, what is given before. */
typedef struct normal { double a[UNKNOWNS][UNKNOWNS], b[UNKNOWNS], scale[UNKNOWNS], least; int n; } normal;

static int usable(const fmm_sample *s) { return s->seconds > 0 && isfinite(s->seconds) && s->roofline_s > 0 && isfinite(s->roofline_s); }

static int is_for_fit(const fmm_sample *s, int all) { return !s->held_out && usable(s) && (all || s->launches_s <= most_launches * s->seconds); }

/* The part of a run's time that is not launches. */
static double own_part(const fmm_sample *s) { return fmax(1 - s->launches_s / s->seconds, 1 - most_launches); }

static double least_constant(int n, const fmm_sample *samples, int all) {
  double nearest = INFINITY;
  for (int i = 0; i < n; i++)
    if (is_for_fit(&samples[i], all)) nearest = fmin(nearest, own_part(&samples[i]) * samples[i].seconds / samples[i].roofline_s);
  return isfinite(nearest) ? least_of_roofline * nearest : 0;
}

/* Runs that are mostly launches are left out, or all taken with half their time for launches (`all`). `whole`: the roofline is one part, of one constant. */
static normal accumulate(int n, const fmm_sample *samples, int all, int whole) {
  normal m = {.least = least_constant(n, samples, all)};
  for (int i = 0; i < n; i++) {
    const fmm_sample *s = &samples[i];
    if (!is_for_fit(s, all)) continue;
    const double t = s->seconds, other_s = whole ? 0 : s->other_s;
    const double row[UNKNOWNS] = {(s->roofline_s - other_s) / t, other_s / t, s->entries / t, s->bytes / t, s->launches / t, s->chain / t};
    const double y = own_part(s) - m.least * (row[MAIN] + row[OTHER]);
    for (int j = 0; j < UNKNOWNS; j++) {
      for (int k = 0; k < UNKNOWNS; k++) m.a[j][k] += row[j] * row[k];
      m.b[j] += row[j] * y;
    }
    m.n++;
  }
  for (int j = 0; j < UNKNOWNS; j++) m.scale[j] = m.a[j][j] > 0 ? sqrt(m.a[j][j]) : 0;
  for (int j = 0; j < UNKNOWNS; j++) {
    for (int k = 0; k < UNKNOWNS; k++) m.a[j][k] = m.scale[j] > 0 && m.scale[k] > 0 ? m.a[j][k] / (m.scale[j] * m.scale[k]) : 0;
    if (m.scale[j] > 0) m.b[j] /= m.scale[j];
  }
  return m;
}

/* Least squares over the unknowns in `set` (bits) by Cholesky; 0 when they are (nearly) collinear. x is 0 elsewhere. */
static int solve(const normal *m, unsigned set, double x[UNKNOWNS]) {
  const double smallest_pivot = 1e-9;
  double l[UNKNOWNS][UNKNOWNS] = {{0}}, z[UNKNOWNS];
  int index[UNKNOWNS], n = 0;
  for (int j = 0; j < UNKNOWNS; j++) {
    x[j] = 0;
    if (set & 1u << j) index[n++] = j;
  }
  for (int i = 0; i < n; i++) {
    for (int j = 0; j <= i; j++) {
      double sum = m->a[index[i]][index[j]];
      for (int k = 0; k < j; k++) sum -= l[i][k] * l[j][k];
      if (i == j && !(sum > smallest_pivot)) return 0;
      l[i][j] = i == j ? sqrt(sum) : sum / l[j][j];
    }
    z[i] = m->b[index[i]];
    for (int k = 0; k < i; k++) z[i] -= l[i][k] * z[k];
    z[i] /= l[i][i];
  }
  for (int i = n - 1; i >= 0; i--) {
    for (int k = i + 1; k < n; k++) z[i] -= l[k][i] * x[index[k]];
    x[index[i]] = z[i] / l[i][i];
  }
  return 1;
}

/* The best set of at most `most` unknowns, the roofline's counted, with those of `wanted` (bits) among them, and only positive values. What a set explains of the sum of squares is
 * x . b: returned, below 0 where no set has a solution. */
static double best_of_sets(const normal *m, int most, unsigned wanted, double best[UNKNOWNS]) {
  double explained = -1;
  for (unsigned set = 1; set < 1u << UNKNOWNS; set++) {
    double x[UNKNOWNS], gain = 0;
    if ((set & wanted) != wanted || __builtin_popcount(set | 1u << MAIN) > most || !solve(m, set, x)) continue;
    int positive = 1;
    for (int j = 0; j < UNKNOWNS; j++) {
      if (set & 1u << j) positive &= x[j] > 0;
      gain += x[j] * m->b[j];
    }
    if (!positive || gain <= explained) continue;
    explained = gain;
    memcpy(best, x, UNKNOWNS * sizeof *best);
  }
  return explained;
}

double fmm_fit_predict(const fmm_constant *constant, const fmm_sample *sample) {
  return constant->value * (sample->roofline_s - sample->other_s) + fmm_constant_other(constant) * sample->other_s + constant->entry_s * sample->entries +
         constant->byte_s * sample->bytes + constant->launch_s * sample->launches + constant->chain_s * sample->chain + sample->launches_s;
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

/* Runs that tell the roofline's parts apart: enough of them, and neither part is what rounding leaves of the other. */
static int tells_parts_apart(const normal *m) {
  enum { LEAST_RUNS = 9 };
  const double rounding = 1e-6, main = m->scale[MAIN], other = m->scale[OTHER];
  return m->n >= LEAST_RUNS && main > rounding * other && other > rounding * main;
}

fmm_status fmm_fit_constant(int n, const fmm_sample *samples, fmm_constant *constant) {
  int all = 0;
  normal m = accumulate(n, samples, all, 1);
  if (!m.n) m = accumulate(n, samples, all = 1, 1);
  fmm_constant c = {.n_fit = m.n};
  double x[UNKNOWNS] = {0}, apart[UNKNOWNS] = {0};
  if (!m.n) return FMM_FAIL(FMM_ERR_ARGUMENT, "none of %d samples has positive seconds and work: nothing to fit", n);
  const int most = m.n <= 2 ? 1 : m.n <= 5 ? 2 : m.n <= 8 ? 3 : m.n <= 16 ? 4 : UNKNOWNS;
  const double explained = best_of_sets(&m, most, 0, x);
  const normal in_parts = accumulate(n, samples, all, 0);
  const int parts = tells_parts_apart(&in_parts) && best_of_sets(&in_parts, most, 1u << MAIN | 1u << OTHER, apart) > explained; /* a part that was left out would be at its floor, and the other have all of its time */
  if (parts) m = in_parts, memcpy(x, apart, sizeof x);
  for (int j = 0; j < UNKNOWNS; j++) x[j] = m.scale[j] > 0 ? x[j] / m.scale[j] : 0;
  c.value = m.least + x[MAIN], c.other = parts ? m.least + x[OTHER] : 0;
  c.entry_s = x[ENTRIES], c.byte_s = x[BYTES], c.launch_s = x[LAUNCHES], c.chain_s = x[CHAIN];
  FMM_TRY(measure_errors(n, samples, 1, &c));
  if (!c.n_held_out) FMM_TRY(measure_errors(n, samples, 0, &c));
  *constant = c;
  return FMM_OK;
}

/* Runs that tell what a part takes are those of whose time, as it is foretold, at least half is that part's. */
static const double least_of_sums = 0.5;

fmm_status fmm_fit_factor(int n, const fmm_sample *samples, const fmm_constant *constant, fmm_factor_of of, double beside, double *factor) {
  double *ratio;
  int count = 0;
  FMM_TRY(FMM_ALLOCATE(&ratio, n, "the runs of a kind of their own"));
  for (int i = 0; i < n; i++) {
    const fmm_sample *s = &samples[i];
    const double launches = s->launches_s + constant->launch_s * s->launches + constant->chain_s * s->chain, own = fmm_fit_predict(constant, s) - launches;
    const double part = of == FMM_FACTOR_OF_SUMS ? constant->value * (s->roofline_s - s->other_s) : own;
    if (usable(s) && part > 0 && part >= least_of_sums * own && launches <= most_launches * s->seconds) ratio[count++] = ((s->seconds - launches) / beside - (own - part)) / part;
  }
  qsort(ratio, (size_t)count, sizeof *ratio, ascending);
  *factor = count ? fmax(0, (ratio[(count - 1) / 2] + ratio[count / 2]) / 2) : 0;
  FMM_FREE(&ratio);
  return FMM_OK;
}
