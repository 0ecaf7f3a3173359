/* The report of fmm-predict as one JSON object on standard output; its members are those of docs/reference-commands.md. */
#include <math.h>

#include "predict.h"
#include "report.h"

static json_t *machine_object(const fmm_prediction_run *run) {
  const fmm_machine *m = &run->predicted.machine;
  json_t *machine = json_pack("{s:s, s:s, s:i, s:s}", "effort", m->effort, "fingerprint", m->fingerprint, "threads", run->predicted.threads, "cpu",
                              m->device[FMM_DEVICE_CPU].name);
  const fmm_device_rates *gpu = &m->device[FMM_DEVICE_GPU];
  json_object_set_new(machine, "gpu", gpu->present ? json_string(gpu->name) : json_null());
  json_object_set_new(machine, "gpu_sms", json_integer(gpu->present ? gpu->units : 0));
  json_object_set_new(machine, "profile", run->machine.path[0] ? fmm_json_text(run->machine.path) : json_null());
  return machine;
}

static json_t *phases_array(const fmm_prediction_run *run) {
  const fmm_predicted *p = &run->predicted;
  json_t *phases = json_array();
  for (int phase = 0; phase < FMM_N_PHASES; phase++)
    for (int d = 0; d < FMM_N_DEVICES; d++) {
      double s, interval[2];
      fmm_forecast_phase(&p->forecast, (fmm_phase)phase, (fmm_device)d, &s, interval);
      json_t *one = json_pack("{s:s, s:s}", "name", fmm_phase_names[phase], "device", d == FMM_DEVICE_GPU ? "gpu" : "cpu");
      json_object_set_new(one, "precision", fmm_json_choice(FMM_PRECISIONS, p->forecast.tuned.assignment.precision[phase]));
      json_object_set_new(one, "seconds", fmm_json_number(s));
      json_object_set_new(one, "interval", json_pack("[o, o]", fmm_json_number(interval[0]), fmm_json_number(interval[1])));
      json_object_set_new(one, "limit_s", fmm_json_number(isfinite(s) ? p->forecast.costs.total[phase][d][fmm_precision_index(p->forecast.tuned.assignment.precision[phase])].limit_s : NAN));
      json_array_append_new(phases, one);
    }
  return phases;
}

static json_t *schedules_array(const fmm_forecast *f) {
  json_t *schedules = json_array();
  for (int i = 0; i < f->n_schedules; i++) {
    const fmm_schedule_outcome *o = &f->schedule[i];
    json_t *assignment = json_object();
    for (int phase = 0; phase < FMM_N_PHASES; phase++)
      json_object_set_new(assignment, fmm_phase_names[phase], json_string(o->assignment.gpu_fraction[phase] > 0 ? "gpu" : "cpu"));
    json_t *one = json_pack("{s:s, s:o, s:b, s:s?, s:o}", "name", o->schedule->name, "makespan_s", fmm_json_number(o->makespan.seconds), "feasible",
                            o->makespan.feasible, "reason", o->makespan.reason, "assignment", assignment);
    json_array_append_new(schedules, one);
  }
  return schedules;
}

fmm_status fmm_predict_report_json(const fmm_prediction_run *run) {
  const fmm_forecast *f = &run->predicted.forecast;
  json_t *report = json_pack("{s:i, s:o, s:o, s:o, s:o}", "schema_version", 1, "case", fmm_json_case(&run->options.c, &run->data), "machine", machine_object(run), "phases",
                             phases_array(run), "schedules", schedules_array(f));
  json_t *rest = json_pack("{s:s, s:o, s:i, s:i, s:f, s:I, s:i}", "chosen", fmm_schedule_name(f->tuned.assignment.kind), "makespan_s",
                           fmm_json_number(f->tuned.makespan.seconds), "order", run->predicted.order, "leaf_size", f->tuned.leaf_size, "root_scale",
                           f->tuned.root_scale, "leaves", (json_int_t)f->counts.n_leaves, "levels", f->counts.n_levels);
  if (report && rest) json_object_update(report, rest);
  json_decref(rest);
  json_object_set_new(report, "build", fmm_json_build());
  json_object_set_new(report, "memory_bytes", json_pack("{s:I, s:I, s:o}", "host", (json_int_t)f->memory.host, "device", (json_int_t)f->memory.device, "host_has",
                                                               fmm_json_number(fmm_predict_host_memory(run))));
  return fmm_json_print(report);
}
