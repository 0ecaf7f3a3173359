/* Profiles as text (report.h). */
#include "calib/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "runtime/counts.h"

typedef struct writer { char *buffer; size_t capacity, length; } writer;

__attribute__((format(printf, 2, 3))) static void add(writer *w, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  size_t room = w->length < w->capacity ? w->capacity - w->length : 0;
  int n = vsnprintf(room ? w->buffer + w->length : NULL, room, format, arguments);
  va_end(arguments);
  if (n > 0) w->length += (size_t)n;
}

/* Value with a decimal prefix: 23.9 G. */
static void add_quantity(writer *w, const char *what, fmm_rate rate, const char *unit) {
  static const struct { double factor; const char *prefix; } scales[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1, ""}, {1e-3, "m"}, {1e-6, "u"}, {1e-9, "n"}};
  int i = 0;
  while (i < 6 && rate.value < scales[i].factor) i++;
  add(w, "  %-34s %9.3g %s%-8s %5.0f %%\n", what, rate.value / scales[i].factor, scales[i].prefix, unit, 100 * rate.spread);
}

static void add_rates(writer *w, const fmm_device_rates *d, int is_gpu) {
  add(w, "  %-34s %9s %-9s %7s\n", "rate", "measured", "", "spread");
  add_quantity(w, "Laplace pair sum, double (11 flops)", d->pair_flops_per_s[0], "flop/s");
  add_quantity(w, "Laplace pair sum, single (11 flops)", d->pair_flops_per_s[1], "flop/s");
  add_quantity(w, "multiply-add, double", d->fma_flops_per_s[0], "flop/s");
  add_quantity(w, "multiply-add, single", d->fma_flops_per_s[1], "flop/s");
  add_quantity(w, "memory, triad", d->memory_bytes_per_s, "B/s");
  add_quantity(w, is_gpu ? "one launch" : "one parallel region", d->launch_s, "s");
  if (!is_gpu) {
    add_quantity(w, "sorting in and out, a byte moved", d->staging_bytes_per_s, "B/s");
    add_quantity(w, "an evaluation, beside its phases", d->evaluation_s, "s");
    return;
  }
  add_quantity(w, "bus, host to device, pinned", d->h2d_bytes_per_s, "B/s");
  add_quantity(w, "bus, device to host, pinned", d->d2h_bytes_per_s, "B/s");
  add_quantity(w, "staging on the host, beyond the bus", d->staging_bytes_per_s, "B/s");
  add_quantity(w, "the same, however few (by the team)", d->staging_s, "s");
  add_quantity(w, "an evaluation, beside its phases", d->evaluation_s, "s");
  add_quantity(w, "one of both devices, the same", d->joint_s, "s");
  add(w, "  CPU phases take %.2f times as long while it is driven\n", d->driving_slowdown);
}

static void add_constants(writer *w, const fmm_device_rates *d) {
  static const char *const precisions[FMM_N_PRECISIONS] = {"double", "single"};
  add(w, "\n  %-6s %-9s %9s %7s %12s %10s %11s %12s %9s %16s   %-28s %5s %9s\n", "phase", "precision", "constant", "other", "ns an entry", "ns a KiB", "us a level", "ns an unknown", "gradient", "other accuracies",
      "error on held-out runs", "fit", "held out");
  for (int phase = 0; phase < FMM_N_PHASES; phase++)
    for (int k = 0; k < FMM_N_PRECISIONS; k++) {
      const fmm_constant *c = &d->constant[phase][k];
      double gradient = c->gradient > 0 ? c->gradient : 1;
      add(w, "  %-6s %-9s ", fmm_phase_names[phase], precisions[k]);
      if (!(c->value > 0)) add(w, "%9s\n", "not measured");
      else {
        char other[16] = "-", accuracies[32] = "-"; /* as the constant, or the phase has no such part */
        if (k && c->coarse > 0 && c->coarse_gradient > 0) snprintf(accuracies, sizeof accuracies, "%.2f, %.2f", c->coarse, c->coarse_gradient);
        else if (k && c->coarse > 0) snprintf(accuracies, sizeof accuracies, "%.2f", c->coarse);
        else if (!k && c->near > 0 && c->full > 0) snprintf(accuracies, sizeof accuracies, "%.2f, %.2f", c->near, c->full);
        if (c->other > 0) snprintf(other, sizeof other, "%.2f", c->other);
        add(w, "%9.2f %7s %12.1f %10.1f %11.1f %13.1f %9.2f %16s   ", c->value, other, 1e9 * c->entry_s, 1024e9 * c->byte_s, 1e6 * c->launch_s, 1e9 * c->chain_s, gradient, accuracies);
        if (!c->n_fit) add(w, "not fitted\n");
        else add(w, "median %4.1f %%, 90th %5.1f %% %6d %9d\n", 100 * c->median_error, 100 * c->p90_error, c->n_fit, c->n_held_out);
      }
    }
}

static void add_device(writer *w, const fmm_device_rates *d, int is_gpu) {
  add(w, "\n%s: %s, %d %s", is_gpu ? "GPU" : "CPU", d->name, d->units, is_gpu ? "multiprocessors" : d->units == 1 ? "core" : "cores");
  if (d->memory_mb) add(w, ", %.1f GiB", d->memory_mb / 1024.0);
  if (is_gpu) add(w, ", %s, driver %s", d->id, d->driver);
  add(w, "\n");
  add_rates(w, d, is_gpu);
  add_constants(w, d);
}

size_t fmm_machine_text(const fmm_machine *m, char *buffer, size_t capacity) {
  writer w = {buffer, capacity, 0};
  char when[32] = "";
  time_t created = (time_t)m->created_unix_s;
  struct tm utc;
  if (m->created_unix_s > 0 && gmtime_r(&created, &utc)) strftime(when, sizeof when, "%Y-%m-%d %H:%M UTC", &utc);
  if (capacity) buffer[0] = 0;
  add(&w, "profile     %s\n", m->path[0] ? m->path : "(not in a file)");
  add(&w, "effort      %s%s%s\n", m->effort, *when ? ", " : "", when);
  if (m->source[0]) add(&w, "source      %s\n", m->source);
  add(&w, "fingerprint %s\nbuild       %s\n", m->fingerprint[0] ? m->fingerprint : "(none)", m->build[0] ? m->build : "(unknown)");
  for (int device = 0; device < FMM_N_DEVICES; device++)
    if (m->device[device].present) add_device(&w, &m->device[device], device == FMM_DEVICE_GPU);
  add(&w, "\nPredicted time = constant x what the rates allow + entries + bytes + levels + unknowns of levels; a constant of 1 is ideal. Other: of up, down, W and X the products, of V on a GPU the transforms.\n");
  return w.length;
}
