/* The report of fmm-predict for people, on standard output. */
#include <math.h>
#include <stdio.h>

#include "predict.h"
#include "report.h"

static void print_case(const fmm_prediction_run *run) {
  const fmm_case_options *o = &run->options.c;
  const fmm_device_rates *cpu = &run->predicted.machine.device[FMM_DEVICE_CPU], *gpu = &run->predicted.machine.device[FMM_DEVICE_GPU];
  char name[32];
  printf("case        ");
  fmm_text_kernel(o, &run->data);
  printf(" %s of %lld points (%s)", o->gradient ? "potential and gradient" : "potential", (long long)run->data.n_points,
         o->file ? o->file : fmm_cli_choice(FMM_DISTRIBUTIONS, o->generate, name));
  fmm_text_targets(o, &run->data);
  if (run->data.columns > 1) printf(", %d density columns", run->data.columns);
  printf(", relative error %.1e asked\n", fmm_case_tolerance(o));
  printf("machine     %s, %d of %d core%s", cpu->name, run->predicted.threads, run->machine.device[FMM_DEVICE_CPU].units,
         run->machine.device[FMM_DEVICE_CPU].units == 1 ? "" : "s");
  if (gpu->present) printf("; %s, %d multiprocessors", gpu->name, gpu->units);
  else printf("; no GPU");
  printf("\nprofile     %s (%s)\n", run->machine.path[0] ? run->machine.path : "not kept", run->machine.effort);
}

/* Below so many runs nine of ten are all of them: how many there were is told. */
enum { ENOUGH_RUNS = 10 };

static void print_phases(const fmm_prediction_run *run) {
  const fmm_predicted *p = &run->predicted;
  int few = 0;
  int devices = 1 + p->machine.device[FMM_DEVICE_GPU].present;
  printf("\n%-8s %-9s", "phase", "precision");
  for (int d = 0; d < devices; d++) printf(" %10s %23s", d == FMM_DEVICE_GPU ? "gpu" : "cpu", "9 of 10 runs within");
  printf("\n");
  for (int phase = 0; phase < FMM_N_PHASES; phase++) {
    char a[32], b[32], c[32], range[80];
    printf("%-8s %-9s", fmm_phase_names[phase], fmm_cli_choice(FMM_PRECISIONS, p->forecast.tuned.assignment.precision[phase], a));
    for (int d = 0; d < devices; d++) {
      double s, interval[2];
      fmm_forecast_phase(&p->forecast, (fmm_phase)phase, (fmm_device)d, &s, interval);
      int checked = s > 0 && interval[0] < interval[1];
      const fmm_precision precision = p->forecast.tuned.assignment.precision[phase];
      const int runs = p->machine.device[d].constant[phase][fmm_precision_index(precision)].n_held_out, shown = checked && runs < ENOUGH_RUNS;
      if (isfinite(interval[1])) snprintf(range, sizeof range, shown ? "%s .. %s (%d)" : "%s .. %s", fmm_text_seconds(interval[0], b), fmm_text_seconds(interval[1], c), runs);
      else snprintf(range, sizeof range, shown ? "%s and more (%d)" : "%s and more", fmm_text_seconds(interval[0], b), runs); /* foretold twice as long */
      few |= shown;
      printf(" %10s %23s", fmm_text_seconds(s, a), s == 0 ? "" : checked ? range : isfinite(s) ? "never checked" : "");
    }
    printf("\n");
  }
  if (few) printf("(n): of only so many runs that calibration held against predictions; fmm-calibrate --effort standard or thorough has more\n");
}

static void print_schedules(const fmm_prediction_run *run) {
  const fmm_forecast *f = &run->predicted.forecast;
  char text[32];
  printf("\n%-9s %10s\n", "schedule", "evaluation");
  for (int i = 0; i < f->n_schedules; i++) {
    const fmm_schedule_outcome *o = &f->schedule[i];
    if (o->makespan.feasible)
      printf("%-9s %10s%s\n", o->schedule->name, fmm_text_seconds(o->makespan.seconds, text), o->schedule->kind == f->tuned.assignment.kind ? "  <- chosen" : "");
    else printf("%-9s %10s  cannot run: %s\n", o->schedule->name, "-", o->makespan.reason);
  }
}

fmm_status fmm_predict_report(const fmm_prediction_run *run) {
  const fmm_forecast *f = &run->predicted.forecast;
  char text[32], order[32] = "direct sums only";
  if (run->predicted.order) snprintf(order, sizeof order, "order %d", run->predicted.order);
  print_case(run);
  printf("evaluation  %s by schedule %s: %s, leaf size %d, root scale %.3g, about %lld lea%s on %d level%s\n", fmm_text_seconds(f->tuned.makespan.seconds, text),
         fmm_schedule_name(f->tuned.assignment.kind), order, f->tuned.leaf_size, f->tuned.root_scale, (long long)f->counts.n_leaves, f->counts.n_leaves == 1 ? "f" : "ves",
         f->counts.n_levels, f->counts.n_levels == 1 ? "" : "s");
  print_phases(run);
  print_schedules(run);
  printf("\nmemory      %s", fmm_text_bytes(f->memory.host, text));
  if (f->memory.device > 0) printf(", %s on the GPU", fmm_text_bytes(f->memory.device, text));
  printf(" of the plan's own");
  if (f->memory.host > fmm_predict_host_memory(run)) printf(": more than the machine's %s, so it cannot run there", fmm_text_bytes(fmm_predict_host_memory(run), text));
  printf("\n");
  return FMM_OK;
}
