/* Profiles that were measured on a busy node (trust.h). */
#include "calib/trust.h"

#include <math.h>
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

/* What sums of another kind take beside those that a constant is of, by which it is multiplied (0: not measured). On machines left alone 0.6 to 1.9. */
typedef struct odd { double factor; const char *kind; fmm_device device; int phase, precision; } odd;

static double distance(double factor) { return factor > 0 ? fabs(log(factor)) : 0; }

static void look_at_factors(const fmm_machine *m, fmm_device device, odd *o) {
  for (int phase = 0; phase < FMM_N_PHASES; phase++)
    for (int k = 0; k < FMM_N_PRECISIONS; k++) {
      const fmm_constant *c = &m->device[device].constant[phase][k];
      const struct { double factor; const char *kind; } all[] = {{c->gradient, "with gradients as without"}, {c->coarse, "at 3 digits as at 6"}, {c->coarse_gradient, "with gradients at 3 digits as at 6"}, {c->near, "at 9 digits as at 6"}, {c->full, "at 12 digits as at 6"}};
      for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (distance(all[i].factor) > distance(o->factor)) *o = (odd){all[i].factor, all[i].kind, device, phase, k};
    }
}

static const char *name_of(fmm_device device) { return device == FMM_DEVICE_GPU ? "GPU" : "CPU"; }

int fmm_machine_doubt(const fmm_machine *m, char *line, size_t capacity) {
  static const char why[] = "as where other work runs on the node; run fmm-calibrate again";
  const double half = 0.5, most_factor = 4; /* machines left alone: up to 0.32, and 1.9 */
  worst w = {0};
  odd o = {.factor = 1};
  for (int device = 0; device < FMM_N_DEVICES; device++)
    if (m->device[device].present) look_at(m, (fmm_device)device, &w), look_at_factors(m, (fmm_device)device, &o);
  if (w.median > half)
    snprintf(line, capacity, "predicted times are not to be trusted: those of the phase %s in %s on the %s are off by %.0f %% of what was measured (median of held-out runs), %s", fmm_phase_names[w.phase],
             w.precision ? "single" : "double", name_of(w.device), 100 * w.median, why);
  else if (distance(o.factor) > log(most_factor))
    snprintf(line, capacity, "predicted times are not to be trusted: the phase %s in %s on the %s took %.3g times as long %s, beyond what its operations explain, %s", fmm_phase_names[o.phase],
             o.precision ? "single" : "double", name_of(o.device), o.factor, o.kind, why);
  else return 0;
  return 1;
}
