/* The report of fmm-run as one JSON object on standard output; its members are those of the contract. */
#include <jansson.h>
#include <math.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "run.h"
#include "sched/sched.h"

/* Numbers that are not finite are null: JSON has no others. */
static json_t *number(double value) { return isfinite(value) ? json_real(value) : json_null(); }
static json_t *choice(const char *choices, int index) {
  char text[32];
  return json_string(fmm_cli_choice(choices, index, text));
}
/* File names need not be UTF-8; others must not make the report fail. */
static json_t *text(const char *value) {
  json_t *string = json_string(value);
  if (string) return string;
  char plain[512];
  snprintf(plain, sizeof plain, "%s", value);
  for (char *p = plain; *p; p++)
    if ((unsigned char)*p > 126) *p = '?';
  return json_string(plain);
}

static json_t *case_object(const fmm_run *run) {
  const fmm_case_options *o = &run->options.c;
  double tolerance = fmm_case_tolerance(o);
  json_t *c = json_pack("{s:I, s:I, s:i, s:s, s:f, s:f, s:b, s:I}", "points", (json_int_t)run->data.n, "targets", (json_int_t)run->data.n_targets,
                        "density_columns", run->data.columns, "kernel", run->data.pair->name, "digits", -log10(tolerance), "tolerance", tolerance,
                        "gradient", o->gradient, "seed", (json_int_t)o->seed);
  if (o->file) json_object_set_new(c, "file", text(o->file));
  else json_object_set_new(c, "distribution", choice(FMM_DISTRIBUTIONS, o->generate));
  json_object_set_new(c, "densities", text(run->data.densities_from));
  return c;
}

static json_t *plan_object(const fmm_run *run) {
  const fmm_plan_info *i = &run->info;
  json_t *precision = json_object();
  for (int p = 0; p < FMM_N_PHASES; p++) json_object_set_new(precision, fmm_phase_names[p], choice(FMM_PRECISIONS, i->precision[p]));
  json_t *plan = json_pack("{s:s, s:i, s:i, s:f, s:o, s:i, s:i, s:I, s:i}", "plan_id", i->plan_id, "order", i->order, "leaf_size", i->leaf_size,
                           "root_scale", i->root_scale, "precision", precision, "threads", i->threads, "gpu_sms", i->gpu_sms, "leaves",
                           (json_int_t)i->n_leaves, "levels", i->n_levels);
  json_object_set_new(plan, "schedule", choice(FMM_SCHEDULES, i->schedule));
  return plan;
}

static json_t *phases_array(const fmm_run *run) {
  const fmm_plan_info *i = &run->info;
  json_t *phases = json_array();
  for (int p = 0; p < FMM_N_PHASES; p++) {
    double gpu = i->gpu_fraction[p];
    json_t *phase = json_pack("{s:s, s:s, s:f}", "name", fmm_phase_names[p], "device", i->device[p] == FMM_DEVICE_GPU ? "gpu" : "cpu", "fraction",
                              i->device[p] == FMM_DEVICE_GPU ? gpu : 1 - gpu);
    json_object_set_new(phase, "predicted_s", number(run->phase_predicted_s[p]));
    json_object_set_new(phase, "measured_s", number(run->phase_s[p]));
    json_object_set_new(phase, "limit_s", number(i->phase_limit_s[p]));
    json_array_append_new(phases, phase);
  }
  return phases;
}

static json_t *error_object(const fmm_run *run) {
  const fmm_run_error *e = &run->error;
  json_t *error = json_pack("{s:I}", "samples", (json_int_t)e->samples);
  json_object_set_new(error, "relative_l2", number(e->relative_l2));
  json_object_set_new(error, "max_relative", number(e->max_relative));
  if (isfinite(e->reachable)) json_object_set_new(error, "reachable", number(e->reachable));
  if (!run->options.c.gradient) return error;
  json_object_set_new(error, "gradient_relative_l2", number(e->gradient_relative_l2));
  if (isfinite(e->gradient_reachable)) json_object_set_new(error, "gradient_reachable", number(e->gradient_reachable));
  return error;
}

static json_t *memory_object(const fmm_run *run) {
  struct rusage usage = {0};
  getrusage(RUSAGE_SELF, &usage);
  return json_pack("{s:I, s:I}", "host_peak", (json_int_t)usage.ru_maxrss * 1024, "device_peak", (json_int_t)run->info.device_bytes);
}

static json_t *profile_object(const fmm_run *run) {
  const fmm_machine *m = &run->machine;
  json_t *profile = json_pack("{s:s, s:o}", "effort", m->effort, "age_s", number(difftime(time(NULL), 0) - m->created_unix_s));
  json_object_set_new(profile, "path", m->path[0] ? text(m->path) : json_null());
  return profile;
}

fmm_status fmm_run_report_json(const fmm_run *run) {
  json_t *report = json_pack("{s:i, s:o, s:o, s:f, s:o}", "schema_version", 1, "case", case_object(run), "plan", plan_object(run), "setup_s",
                             run->info.setup_s, "predicted_s", number(run->predicted_s));
  json_object_set_new(report, "evaluation_s", json_pack("{s:f, s:f, s:f, s:I}", "median", run->median_s, "min", run->min_s, "max", run->max_s, "runs",
                                                        (json_int_t)run->runs));
  json_object_set_new(report, "phases", phases_array(run));
  if (run->options.verify) json_object_set_new(report, "error", error_object(run));
  json_object_set_new(report, "memory_bytes", memory_object(run));
  json_object_set_new(report, "profile", profile_object(run));
  char *line = json_dumps(report, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
  json_decref(report);
  if (!line) return FMM_FAIL(FMM_ERR_MEMORY, "no memory for the report");
  puts(line); /* a failing standard output is noticed at the end */
  free(line);
  return FMM_OK;
}
