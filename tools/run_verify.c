/* --verify: errors against direct sums at sampled targets, and how small they can be at all in double precision (cancellation). */
#include <math.h>
#include <string.h>

#include "kernels/pair/pair.h"
#include "run.h"
#include "runtime/direct.h"
#include "runtime/memory.h"

/* Sums over the samples of one column: of e^2, f^2, m^2 (m = sum |K s|), and the largest |e|, |f|; all in `unit`, the largest |f| of all
 * columns, so that squares of values like 1e200 do not overflow. */
typedef struct sums { double unit, error2, value2, magnitude2, largest_error, largest_value; } sums;

/* Of one column. */
static double largest(int64_t n, const double *values, int column, int columns) {
  double most = 0;
  for (int64_t i = column; i < n; i += columns) most = fabs(values[i]) > most ? fabs(values[i]) : most;
  return most > 0 ? most : 1;
}

static void add(sums *s, double computed, double exact, double magnitude) {
  double e = fabs(computed - exact) / s->unit, f = fabs(exact) / s->unit;
  magnitude /= s->unit;
  s->error2 += e * e, s->value2 += f * f, s->magnitude2 += magnitude * magnitude;
  if (!(e <= s->largest_error)) s->largest_error = e; /* NaN stays */
  if (f > s->largest_value) s->largest_value = f;
}

/* a / b; where the exact result is zero the error counts as it is, in units. */
static double ratio(double a, double b) { return b > 0 ? a / b : a; }
static double worse(double a, double b) { return b <= a ? a : b; }

/* What the verification holds: rows, exact results there, and sum |K s| there in the units of the results. */
typedef struct reference {
  int64_t n, *rows;
  double *potential, *gradient; /* public layout, n rows */
  double *magnitudes;           /* n x direct width, unscaled */
} reference;

static void free_reference(reference *r) {
  FMM_FREE(&r->rows);
  FMM_FREE(&r->potential);
  FMM_FREE(&r->gradient);
  FMM_FREE(&r->magnitudes);
}

static fmm_status allocate_reference(const fmm_run *run, reference *r) {
  int64_t targets = run->data.n_targets, n = run->options.verify < targets ? run->options.verify : targets;
  int64_t values = n * run->data.pair->outputs * run->data.columns;
  FMM_TRY(FMM_ALLOCATE(&r->rows, n, "sampled rows"));
  FMM_TRY(FMM_ALLOCATE(&r->potential, values, "direct sums"));
  FMM_TRY(FMM_ALLOCATE(&r->gradient, 3 * values, "direct sums"));
  FMM_TRY(FMM_ALLOCATE_ZERO(&r->magnitudes, 4 * values, "direct sums"));
  r->n = fmm_sample_rows(targets, n, (uint64_t)run->options.c.seed, r->rows);
  return FMM_OK;
}

/* planes: x, y, z, then a plane a density. */
static fmm_status transpose_sources(const fmm_case *d, double **planes) {
  int n_densities = d->pair->components * d->columns;
  FMM_TRY(FMM_ALLOCATE(planes, (3 + n_densities) * (d->n + 1), "planes of the sources"));
  for (int64_t i = 0; i < d->n; i++) {
    for (int k = 0; k < 3; k++) (*planes)[k * d->n + i] = d->points[3 * i + k];
    for (int k = 0; k < n_densities; k++) (*planes)[(3 + k) * d->n + i] = d->densities[i * n_densities + k];
  }
  return FMM_OK;
}

static fmm_status sum_magnitudes(const fmm_run *run, reference *r) {
  const fmm_case *d = &run->data;
  const fmm_pair *pair;
  const double *points = d->targets ? d->targets : d->points;
  double params[FMM_MAX_PARAMS], *planes = NULL, *targets = NULL, *values = NULL;
  fmm_options o;
  fmm_status status;
  FMM_TRY(fmm_pair_find(d->pair->name, &pair));
  FMM_TRY(fmm_case_to_options(&run->options.c, &o));
  FMM_TRY(fmm_pair_resolve_params(d->pair, o.n_params, o.params, params));
  FMM_CHECK(transpose_sources(d, &planes));
  FMM_CHECK(FMM_ALLOCATE(&targets, 3 * r->n, "sampled targets"));
  FMM_CHECK(FMM_ALLOCATE(&values, r->n * 4 * d->pair->outputs * d->columns, "direct sums"));
  for (int64_t i = 0; i < r->n; i++) memcpy(targets + 3 * i, points + 3 * r->rows[i], 3 * sizeof *targets);
  fmm_direct_case what = {pair, params, d->columns, run->options.c.gradient, d->n, planes, planes + d->n, planes + 2 * d->n, NULL, planes + 3 * d->n, d->n};
  fmm_direct_sums(&what, r->n, targets, run->info.threads, values, r->magnitudes);
done:
  FMM_FREE(&planes);
  FMM_FREE(&targets);
  FMM_FREE(&values);
  return status;
}

/* Errors of one column, the worse of them and those of the columns before kept in *e. */
static void compare_column(const fmm_run *run, const reference *r, int column, fmm_run_error *e) {
  int outputs = run->data.pair->outputs, columns = run->data.columns, gradient = run->options.c.gradient, stride = gradient ? 4 : 1;
  double scale = fabs(isnan(run->options.c.scale) ? run->data.pair->default_scale : run->options.c.scale);
  int64_t values = r->n * outputs * columns;
  sums potential = {.unit = largest(values, r->potential, column, columns)}, slope = {.unit = gradient ? largest(3 * values, r->gradient, column, columns) : 1};
  for (int64_t i = 0; i < r->n; i++)
    for (int o = 0; o < outputs; o++) {
      const double *m = r->magnitudes + (i * outputs + o) * stride * columns + column;
      int64_t at = (r->rows[i] * outputs + o) * columns + column, here = (i * outputs + o) * columns + column;
      add(&potential, run->potential[at], r->potential[here], scale * m[0]);
      for (int k = 0; gradient && k < 3; k++) {
        int64_t at3 = ((r->rows[i] * outputs + o) * 3 + k) * columns + column, here3 = ((i * outputs + o) * 3 + k) * columns + column;
        add(&slope, run->gradient[at3], r->gradient[here3], scale * m[(1 + k) * columns]);
      }
    }
  const double unit = 0x1p-52;
  e->relative_l2 = worse(e->relative_l2, sqrt(ratio(potential.error2, potential.value2)));
  e->max_relative = worse(e->max_relative, ratio(potential.largest_error, potential.largest_value));
  e->reachable = worse(e->reachable, unit * sqrt(ratio(potential.magnitude2, potential.value2)));
  if (!gradient) return;
  e->gradient_relative_l2 = worse(e->gradient_relative_l2, sqrt(ratio(slope.error2, slope.value2)));
  e->gradient_reachable = worse(e->gradient_reachable, unit * sqrt(ratio(slope.magnitude2, slope.value2)));
}

static void compare(fmm_run *run, const reference *r) {
  run->error = (fmm_run_error){.samples = r->n};
  for (int c = 0; c < run->data.columns; c++) compare_column(run, r, c, &run->error);
  if (!run->options.c.gradient) run->error.gradient_relative_l2 = run->error.gradient_reachable = NAN;
}

static int above_tolerance(const fmm_run *run) {
  double tolerance = fmm_case_tolerance(&run->options.c);
  return !(run->error.relative_l2 <= tolerance) || (run->options.c.gradient && !(run->error.gradient_relative_l2 <= tolerance));
}

/* What the user decided in the plan's place, or NULL. */
static const char *overridden(const fmm_run *run) {
  const fmm_case_options *o = &run->options.c;
  if (o->order) return "--order";
  return o->precision != FMM_PRECISION_AUTO && o->precision != FMM_PRECISION_DOUBLE ? "--precision" : NULL;
}

/* Why the error of the potential or the gradient is above the tolerance, if it is, and what to do. */
static void say_verdict(const fmm_run *run, const char *of, double error, double reachable) {
  double tolerance = fmm_case_tolerance(&run->options.c), expected = run->info.expected_error;
  if (error <= tolerance) return;
  if (reachable > tolerance)
    fmm_cli_say("the densities cancel: in double precision rounding alone may leave a relative error of up to %.1e in the %s, whatever is asked", reachable, of);
  else if (overridden(run))
    fmm_cli_say("the error of the %s is above the tolerance of %.1e; leave out %s, so that the plan chooses what the tolerance needs", of, tolerance, overridden(run));
  else if (expected > tolerance)
    fmm_cli_say("the error of the %s is above the tolerance of %.1e, as was expected (up to %.1e); ask for fewer digits", of, tolerance, expected);
  else
    fmm_cli_say("the error of the %s is above the tolerance of %.1e, by what the plan chose itself; ask for more digits, and please report this case", of, tolerance);
}

fmm_status fmm_run_verify(fmm_run *run) {
  reference r = {0};
  fmm_status status;
  int gradient = run->options.c.gradient;
  FMM_CHECK(allocate_reference(run, &r));
  FMM_CHECK(fmm_plan_direct(run->plan, run->data.densities, r.n, r.rows, r.potential, gradient ? r.gradient : NULL));
  compare(run, &r);
  if (above_tolerance(run)) { /* the method's fault or the data's? */
    FMM_CHECK(sum_magnitudes(run, &r));
    compare(run, &r);
    if (!run->options.quiet) say_verdict(run, "potential", run->error.relative_l2, run->error.reachable);
    if (!run->options.quiet && gradient) say_verdict(run, "gradient", run->error.gradient_relative_l2, run->error.gradient_reachable);
  } else
    run->error.reachable = run->error.gradient_reachable = NAN;
done:
  free_reference(&r);
  return status;
}
