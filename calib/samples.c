/* The samples of a sweep as a growing array, and the fit of one device's constants to them (sweep.h). */
#include <string.h>

#include "calib/sweep.h"
#include "runtime/memory.h"

fmm_status fmm_samples_add(fmm_samples *samples, const fmm_sweep_sample *sample) {
  if (samples->n == samples->room) {
    int room = samples->room ? 2 * samples->room : 256;
    fmm_sweep_sample *more = NULL;
    FMM_TRY(FMM_ALLOCATE(&more, room, "the samples of the sweep"));
    if (samples->n) memcpy(more, samples->sample, (size_t)samples->n * sizeof *more);
    FMM_FREE(&samples->sample);
    samples->sample = more;
    samples->room = room;
  }
  samples->sample[samples->n++] = *sample;
  return FMM_OK;
}

void fmm_samples_free(fmm_samples *samples) {
  FMM_FREE(&samples->sample);
  *samples = (fmm_samples){0};
}

/* The samples of one phase, precision and kind, into one[]; how many. */
static int select_samples(const fmm_samples *samples, fmm_device device, int phase, int precision, fmm_sweep_kind kind, fmm_sample *one) {
  int n = 0;
  for (int i = 0; i < samples->n; i++) {
    const fmm_sweep_sample *s = &samples->sample[i];
    if ((int)s->phase == phase && s->device == device && s->precision == precision && s->kind == kind) one[n++] = s->sample;
  }
  return n;
}

/* Whether a phase of the sweep has sums whose accuracy the tolerance tells. On CPU cores only U has: points meet surfaces by solid harmonics. */
static int has_accuracies(fmm_device device, int phase) { return phase == FMM_PHASE_ULIST || (device == FMM_DEVICE_GPU && phase != FMM_PHASE_VLIST); }

/* one: room for all samples. Nothing to fit is no failure. */
static fmm_status fit_cell(const fmm_samples *samples, fmm_device device, int phase, int precision, fmm_sample *one, fmm_constant *constant) {
  fmm_constant fitted = {0};
  const int gradients = fmm_phase_makes_results[phase], accuracies = has_accuracies(device, phase);
  double *const factors[FMM_N_SWEEP_KINDS] = {[FMM_SWEEP_GRADIENT] = gradients ? &fitted.gradient : NULL, /* before the one with both */
                                              [FMM_SWEEP_COARSE] = accuracies ? &fitted.coarse : NULL, [FMM_SWEEP_COARSE_GRADIENT] = gradients && accuracies ? &fitted.coarse_gradient : NULL,
                                              [FMM_SWEEP_NEAR] = accuracies ? &fitted.near : NULL, [FMM_SWEEP_FULL] = accuracies ? &fitted.full : NULL};
  fmm_status status = fmm_fit_constant(select_samples(samples, device, phase, precision, FMM_SWEEP_USUAL, one), one, &fitted);
  for (int kind = 0; kind < FMM_N_SWEEP_KINDS && status == FMM_OK; kind++)
    if (factors[kind]) {
      const int n = select_samples(samples, device, phase, precision, (fmm_sweep_kind)kind, one);
      status = fmm_fit_factor(n, one, &fitted, kind == FMM_SWEEP_GRADIENT ? FMM_FACTOR_OF_ALL : FMM_FACTOR_OF_SUMS, kind == FMM_SWEEP_COARSE_GRADIENT && fitted.gradient > 0 ? fitted.gradient : 1, factors[kind]);
    }
  if (status != FMM_OK && status != FMM_ERR_ARGUMENT) return status;
  *constant = status == FMM_OK ? fitted : (fmm_constant){0};
  return FMM_OK;
}

fmm_status fmm_fit_samples(const fmm_samples *samples, fmm_device device, fmm_device_rates *rates) {
  fmm_sample *one = NULL;
  fmm_status status = FMM_ALLOCATE(&one, samples->n, "the samples of one phase");
  for (int phase = 0; status == FMM_OK && phase < FMM_N_PHASES; phase++)
    for (int k = 0; status == FMM_OK && k < FMM_N_PRECISIONS; k++) status = fit_cell(samples, device, phase, k, one, &rates->constant[phase][k]);
  FMM_FREE(&one);
  return status;
}
