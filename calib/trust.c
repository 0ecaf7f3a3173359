/* Profiles that were measured on a busy node (trust.h). */
#include "calib/trust.h"

#include <stdio.h>

#include "runtime/counts.h"

typedef struct worst { double median; fmm_device device; int phase, precision; } worst;

static int most_held_out(const fmm_device_rates *d) {
  int most = 0;
  for (int phase = 0; phase < FMM_N_PHASES; phase++)
    for (int k = 0; k < FMM_N_PRECISIONS; k++)
      if (d->constant[phase][k].n_held_out > most) most = d->constant[phase][k].n_held_out;
  return most;
}

static void look_at(const fmm_machine *m, fmm_device device, worst *w) {
  const fmm_device_rates *d = &m->device[device];
  const int most = most_held_out(d), enough = most < 3 ? most : 3;
  for (int phase = 0; phase < FMM_N_PHASES; phase++)
    for (int k = 0; k < FMM_N_PRECISIONS; k++) {
      const fmm_constant *c = &d->constant[phase][k];
      if (c->n_held_out && c->n_held_out >= enough && c->median_error > w->median) *w = (worst){c->median_error, device, phase, k};
    }
}

int fmm_machine_doubt(const fmm_machine *m, char *line, size_t capacity) {
  const double half = 0.5; /* machines left alone: up to 0.32 */
  worst w = {0};
  for (int device = 0; device < FMM_N_DEVICES; device++)
    if (m->device[device].present) look_at(m, (fmm_device)device, &w);
  if (!(w.median > half)) return 0;
  snprintf(line, capacity, "predicted times are not to be trusted: the phase %s in %s on the %s took %.0f %% more or less than predicted (median of held-out runs), as where other work "
           "runs on the node; fmm-calibrate measures again", fmm_phase_names[w.phase], w.precision ? "single" : "double", w.device == FMM_DEVICE_GPU ? "GPU" : "CPU", 100 * w.median);
  return 1;
}
