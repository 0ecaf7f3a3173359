/* The report of fmm-run for people, on standard output. */
#include <math.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

#include "report.h"
#include "run.h"
#include "runtime/memory.h"
#include "sched/sched.h"

static void print_case(const fmm_run *run) {
  const fmm_case_options *o = &run->options.c;
  char name[32];
  printf("case        ");
  fmm_text_kernel(o, &run->data);
  printf(" %s of %lld points", o->gradient ? "potential and gradient" : "potential", (long long)run->data.n_points);
  if (o->file) printf(" (%s)", o->file);
  else printf(" (%s, seed %lld)", fmm_cli_choice(FMM_DISTRIBUTIONS, o->generate, name), (long long)o->seed);
  fmm_text_targets(o, &run->data);
  printf(", densities: %s", run->data.densities_from);
  if (run->data.columns > 1) printf(" (%d columns)", run->data.columns);
  printf(", relative error %.1e asked\n", fmm_case_tolerance(o));
}

static void print_plan(const fmm_run *run) {
  const fmm_plan_info *i = &run->info;
  char schedule[32], order[32] = "direct sums only";
  if (i->order) snprintf(order, sizeof order, "order %d", i->order);
  printf("plan        %s: schedule %s, %s, leaf size %d, %lld lea%s on %d level%s, %d thread%s\n", i->plan_id,
         fmm_cli_choice(FMM_SCHEDULES, i->schedule, schedule), order, i->leaf_size, (long long)i->n_leaves, i->n_leaves == 1 ? "f" : "ves", i->n_levels, i->n_levels == 1 ? "" : "s", i->threads, i->threads == 1 ? "" : "s");
}

static void print_times(const fmm_run *run) {
  char a[32], b[32], c[32], d[32];
  printf("set-up      %s\n", fmm_text_seconds(run->info.setup_s, a));
  printf("evaluation  %s, predicted %s", fmm_text_seconds(run->median_s, a), fmm_text_seconds(run->predicted_s, b));
  if (run->runs > 1) printf(" (median of %lld runs, %s to %s)", (long long)run->runs, fmm_text_seconds(run->min_s, c), fmm_text_seconds(run->max_s, d));
  printf("\n\n%-8s %-7s %-9s %12s %12s %12s\n", "phase", "device", "precision", "predicted", "measured", "limit");
  for (int p = 0; p < FMM_N_PHASES; p++) {
    char precision[32];
    printf("%-8s %-7s %-9s %12s %12s %12s\n", fmm_phase_names[p], run->info.device[p] == FMM_DEVICE_GPU ? "gpu" : "cpu",
           fmm_cli_choice(FMM_PRECISIONS, run->info.precision[p], precision), fmm_text_seconds(run->phase_predicted_s[p], a), fmm_text_seconds(run->phase_s[p], b),
           fmm_text_seconds(run->info.phase_limit_s[p], c));
  }
  if (run->info.n_clusters) printf("%-8s %-7s %-9s %12s %12s\n", "clusters", "cpu", "", fmm_text_seconds(run->info.clusters_predicted_s, a), fmm_text_seconds(run->clusters_s, b));
}

static void print_check(const fmm_run *run) {
  const fmm_run_check *c = &run->check;
  char a[32];
  if (!c->rounds) return;
  if (isnan(c->error)) printf("check       error not known, direct sums were not possible, in %s", fmm_text_seconds(c->seconds, a));
  else printf("check       error of about %.1e, %s, by a few direct sums in %s", c->error, c->error <= fmm_case_tolerance(&run->options.c) ? "as asked" : "more than asked", fmm_text_seconds(c->seconds, a));
  if (run->info.tightened > 1) printf("; planned for %.1e", fmm_case_tolerance(&run->options.c) / run->info.tightened);
  printf("\n");
}

static void print_error(const fmm_run *run) {
  const fmm_run_error *e = &run->error;
  printf("error       %.2e relative L2", e->relative_l2);
  if (run->options.c.gradient) printf(", gradient %.2e", e->gradient_relative_l2);
  printf(", largest %.2e of the largest value; direct sums at %lld of %lld targets\n", e->max_relative, (long long)e->samples, (long long)run->data.n_targets);
}

static void print_resources(const fmm_run *run) {
  struct rusage usage = {0};
  char a[32], b[32];
  getrusage(RUSAGE_SELF, &usage);
  printf("memory      %s peak, %s of it the plan's", fmm_text_bytes((double)usage.ru_maxrss * 1024, a), fmm_text_bytes((double)run->info.host_bytes, b));
  if (run->info.device_bytes) printf(", %s on the GPU", fmm_text_bytes((double)run->info.device_bytes, a));
  printf("\nprofile     %s (%s", run->machine.path[0] ? run->machine.path : "not kept", run->machine.effort);
  const double age_s = difftime(time(NULL), 0) - run->machine.created_unix_s;
  if (run->machine.created_unix_s > 0 && age_s < -60) printf(", dated in the future");
  else if (run->machine.created_unix_s > 0) printf(", %.1f days old", age_s / 86400);
  printf(")\n");
}

fmm_status fmm_run_report(const fmm_run *run) {
  print_case(run);
  print_plan(run);
  print_times(run);
  printf("\n");
  print_check(run);
  if (run->options.verify) print_error(run);
  print_resources(run);
  if (run->options.output) printf("output      %s\n", run->options.output);
  return FMM_OK;
}

fmm_status fmm_run_explanation(const fmm_run *run, char **text) {
  size_t needed = 0;
  char *buffer;
  char none[1];
  FMM_TRY(fmm_plan_explain(run->plan, none, sizeof none, &needed));
  FMM_TRY(FMM_ALLOCATE(&buffer, needed, "the explanation"));
  fmm_status status = fmm_plan_explain(run->plan, buffer, needed, NULL);
  if (status == FMM_OK) *text = buffer;
  else FMM_FREE(&buffer);
  return status;
}
