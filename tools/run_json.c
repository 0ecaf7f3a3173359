/* The report of fmm-run as one JSON object on standard output; its members are those of docs/reference-commands.md. */
#include <math.h>
#include <sys/resource.h>
#include <time.h>

#include "report.h"
#include "run.h"
#include "sched/sched.h"

static json_t *plan_object(const fmm_run *run) {
  const fmm_plan_info *i = &run->info;
  json_t *precision = json_object();
  for (int p = 0; p < FMM_N_PHASES; p++) json_object_set_new(precision, fmm_phase_names[p], fmm_json_choice(FMM_PRECISIONS, i->precision[p]));
  json_t *plan = json_pack("{s:s, s:i, s:i, s:f, s:o, s:i, s:i, s:I, s:i}", "plan_id", i->plan_id, "order", i->order, "leaf_size", i->leaf_size,
                           "root_scale", i->root_scale, "precision", precision, "threads", i->threads, "gpu_sms", i->gpu_sms, "leaves",
                           (json_int_t)i->n_leaves, "levels", i->n_levels);
  json_object_set_new(plan, "schedule", fmm_json_choice(FMM_SCHEDULES, i->schedule));
  return plan;
}

static json_t *phases_array(const fmm_run *run) {
  const fmm_plan_info *i = &run->info;
  json_t *phases = json_array();
  for (int p = 0; p < FMM_N_PHASES; p++) {
    double gpu = i->gpu_fraction[p];
    json_t *phase = json_pack("{s:s, s:s, s:f}", "name", fmm_phase_names[p], "device", i->device[p] == FMM_DEVICE_GPU ? "gpu" : "cpu", "fraction",
                              i->device[p] == FMM_DEVICE_GPU ? gpu : 1 - gpu);
    json_object_set_new(phase, "predicted_s", fmm_json_number(run->phase_predicted_s[p]));
    json_object_set_new(phase, "measured_s", fmm_json_number(run->phase_s[p]));
    json_object_set_new(phase, "limit_s", fmm_json_number(i->phase_limit_s[p]));
    json_array_append_new(phases, phase);
  }
  if (i->n_clusters)
    json_array_append_new(phases, json_pack("{s:s, s:s, s:f, s:o, s:o, s:o}", "name", "clusters", "device", "cpu", "fraction", 1.0, "predicted_s",
                                            fmm_json_number(i->clusters_predicted_s), "measured_s", fmm_json_number(run->clusters_s), "limit_s", json_null()));
  return phases;
}

static json_t *error_object(const fmm_run *run) {
  const fmm_run_error *e = &run->error;
  json_t *error = json_pack("{s:I}", "samples", (json_int_t)e->samples);
  json_object_set_new(error, "relative_l2", fmm_json_number(e->relative_l2));
  json_object_set_new(error, "max_relative", fmm_json_number(e->max_relative));
  if (isfinite(e->reachable)) json_object_set_new(error, "reachable", fmm_json_number(e->reachable));
  if (!run->options.c.gradient) return error;
  json_object_set_new(error, "gradient_relative_l2", fmm_json_number(e->gradient_relative_l2));
  if (isfinite(e->gradient_reachable)) json_object_set_new(error, "gradient_reachable", fmm_json_number(e->gradient_reachable));
  return error;
}

static json_t *check_object(const fmm_run *run) {
  const fmm_run_check *c = &run->check;
  return json_pack("{s:o, s:f, s:i, s:f}", "estimated_error", fmm_json_number(c->error), "tightened", run->info.tightened, "rounds", c->rounds, "seconds", c->seconds);
}

static json_t *memory_object(const fmm_run *run) {
  struct rusage usage = {0};
  getrusage(RUSAGE_SELF, &usage);
  return json_pack("{s:I, s:I}", "host_peak", (json_int_t)usage.ru_maxrss * 1024, "device_peak", (json_int_t)run->info.device_bytes);
}

static json_t *profile_object(const fmm_run *run) {
  const fmm_machine *m = &run->machine;
  json_t *profile = json_pack("{s:s, s:o}", "effort", m->effort, "age_s", fmm_json_number(difftime(time(NULL), 0) - m->created_unix_s));
  json_object_set_new(profile, "path", m->path[0] ? fmm_json_text(m->path) : json_null());
  return profile;
}

fmm_status fmm_run_report_json(const fmm_run *run) {
  json_t *report = json_pack("{s:i, s:o, s:o, s:f, s:o}", "schema_version", 1, "case", fmm_json_case(&run->options.c, &run->data), "plan", plan_object(run), "setup_s",
                             run->info.setup_s, "predicted_s", fmm_json_number(run->predicted_s));
  json_object_set_new(report, "evaluation_s", json_pack("{s:f, s:f, s:f, s:I}", "median", run->median_s, "min", run->min_s, "max", run->max_s, "runs",
                                                        (json_int_t)run->runs));
  json_object_set_new(report, "phases", phases_array(run));
  if (run->check.rounds) json_object_set_new(report, "check", check_object(run));
  if (run->options.verify) json_object_set_new(report, "error", error_object(run));
  json_object_set_new(report, "build", fmm_json_build());
  json_object_set_new(report, "memory_bytes", memory_object(run));
  json_object_set_new(report, "profile", profile_object(run));
  return fmm_json_print(report);
}
