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

/* one: room for all samples. Nothing to fit is no failure. */
static fmm_status fit_cell(const fmm_samples *samples, fmm_device device, int phase, int precision, fmm_sample *one, fmm_constant *constant) {
  fmm_constant fitted = {0};
  double *const factors[FMM_N_SWEEP_KINDS] = {[FMM_SWEEP_GRADIENT] = fmm_phase_makes_results[phase] ? &fitted.gradient : NULL, [FMM_SWEEP_COARSE] = &fitted.coarse, [FMM_SWEEP_NEAR] = &fitted.near, [FMM_SWEEP_FULL] = &fitted.full};
  fmm_status status = fmm_fit_constant(select_samples(samples, device, phase, precision, FMM_SWEEP_USUAL, one), one, &fitted);
  for (int kind = 0; kind < FMM_N_SWEEP_KINDS && phase != FMM_PHASE_VLIST && status == FMM_OK; kind++) /* V has no sums over points */
    if (factors[kind]) status = fmm_fit_factor(select_samples(samples, device, phase, precision, (fmm_sweep_kind)kind, one), one, &fitted, factors[kind]);
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
