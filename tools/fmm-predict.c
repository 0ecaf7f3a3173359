/* fmm-predict: what an evaluation will take on this machine or another, before it runs: phases, schedules, leaf size, memory. */
#include <string.h>
#include <strings.h>

#include "calib/calibrate.h"
#include "predict.h"
#include "runtime/cores.h"
#include "runtime/file.h"
#include "runtime/node.h"

#define AT(member) offsetof(fmm_predict_options, member)

static const fmm_cli_option predict_table[] = {
    FMM_CLI_TEXT("machine", AT(machine), "FILE", "predict for the machine of this profile; this one is not touched"),
    FMM_CLI_TEXT("plot", AT(plot), "FILE.svg", "draw phases and schedules"),
    FMM_CLI_FLAG("json", 0, AT(json), "the report as one JSON object"),
    FMM_CLI_FLAG("quiet", 'q', AT(quiet), "no report and no remarks, errors only"),
    FMM_CLI_FLAG("verbose", 'v', AT(verbose), "say more"), FMM_CLI_END};

static const fmm_cli_table tables[] = {{"What is predicted", fmm_case_table}, {"How (the model chooses what is not given)", fmm_plan_table},
                                       {"For what, and what comes out", predict_table}, {0}};

static const fmm_cli cli = {
    "fmm-predict", "fmm-predict (FILE | --generate " FMM_DISTRIBUTIONS " --points N) [options]",
    "Predicts the time of every phase on every device, of every schedule, the best leaf size and the memory; generated points are not made.",
    tables, offsetof(fmm_predict_options, c) + offsetof(fmm_case_options, file), 1};

static void announce(void *context, const char *line) {
  if (!((const fmm_prediction_run *)context)->options.quiet) fmm_cli_say("%s", line);
}

static fmm_status check(const fmm_predict_options *o) {
  if (o->machine && o->c.profile)
    return FMM_FAIL(FMM_ERR_ARGUMENT, "both --machine '%s' and --profile '%s'; give one", o->machine, o->c.profile);
  if (!o->plot) return FMM_OK;
  const char *suffix = strrchr(o->plot, '.');
  if (!suffix || strcasecmp(suffix, ".svg")) return FMM_FAIL(FMM_ERR_ARGUMENT, "--plot '%s': pictures are written to .svg", o->plot);
  if (o->machine && fmm_file_same(o->plot, o->machine))
    return FMM_FAIL(FMM_ERR_ARGUMENT, "--plot '%s' would replace '%s', which is read; name another file", o->plot, o->machine);
  FMM_TRY(fmm_case_check_written(&o->c, "plot", o->plot));
  return fmm_file_check_writable(o->plot);
}

/* Another machine: none of its hardware is here to ask. */
static fmm_status load_machine(const fmm_predict_options *o, fmm_machine *machine) {
  FMM_TRY(fmm_profile_load(o->machine, machine));
  int cores = machine->device[FMM_DEVICE_CPU].units;
  if (o->c.threads > cores && !o->c.oversubscribe)
    return FMM_FAIL(FMM_ERR_ARGUMENT, "--threads %lld: the machine of '%s' has %d core%s; ask for at most %d, or allow more threads than cores (--oversubscribe)",
                    (long long)o->c.threads, o->machine, cores, cores == 1 ? "" : "s", cores);
  return FMM_OK;
}

static fmm_status take_machine(fmm_prediction_run *run) {
  const fmm_predict_options *o = &run->options;
  run->threads = (int)o->c.threads;
  if (o->machine) return load_machine(o, &run->machine);
  FMM_TRY(fmm_cores_grant((int)o->c.threads, o->c.oversubscribe, &run->threads));
  FMM_TRY(fmm_profile_obtain(o->c.profile, (int)o->c.gpu_sms, announce, NULL, run, &run->machine));
  return fmm_node_gpu(0, (int)o->c.gpu_sms, &run->machine); /* as a plan of this process will find it */
}

static fmm_status predict(fmm_prediction_run *run) {
  const fmm_case *d = &run->data;
  char name[32];
  fmm_predict_points points = {.n_sources = d->n, .sources = d->points, .n_targets = d->targets ? d->n_targets : 0, .targets = d->targets};
  if (!run->options.c.file) points.distribution = fmm_cli_choice(FMM_DISTRIBUTIONS, run->options.c.generate, name);
  return fmm_predict_case(&run->plan, &run->machine, &points, run->threads, &run->predicted);
}

static fmm_status do_predict(fmm_prediction_run *run) {
  const fmm_predict_options *o = &run->options;
  FMM_TRY(check(o));
  FMM_TRY(fmm_predict_take_case(run));
  FMM_TRY(take_machine(run));
  FMM_TRY(predict(run));
  if (!o->quiet) fmm_case_say_reach(&o->c, run->predicted.expected_error);
  if (o->plot) FMM_TRY(fmm_predict_plot(run, o->plot));
  if (o->json) return fmm_predict_report_json(run);
  return o->quiet ? FMM_OK : fmm_predict_report(run);
}

int main(int argc, char **argv) {
  fmm_prediction_run run;
  int done;
  memset(&run, 0, sizeof run);
  fmm_case_defaults(&run.options.c);
  fmm_cli_begin(cli.command);
  fmm_status status = fmm_cli_parse(&cli, argc, argv, &run.options, &done);
  if (status == FMM_OK && !done) status = do_predict(&run);
  fmm_case_free(&run.data);
  return fmm_cli_end(status, run.options.verbose);
}
