/* fmm-run: evaluates the sums of a case by a plan that the model chooses, and reports. The steps are in run_*.c; see run.h. */
#include <stdio.h>
#include <string.h>

#include "run.h"
#include "runtime/cores.h"
#include "runtime/file.h"
#include "runtime/io/input.h"
#include "runtime/io/output.h"
#include "runtime/memory.h"

#define AT(member) offsetof(fmm_run_options, member)

static const fmm_cli_option run_table[] = {
    FMM_CLI_INT("repeat", AT(repeat), "R", 1, 1000000, "timed executions after one warm-up (1, without warm-up)"),
    FMM_CLI_INT("verify", AT(verify), "S", 1, 1e15, "compare with direct sums at S targets"),
    FMM_CLI_FLAG("no-check", 0, AT(unchecked), "do not hold a few results against direct sums, and plan anew where they err too much"),
    FMM_CLI_TEXT("output", AT(output), "FILE", "results as .npy, .csv or .vtk: a row a target, for each density potential[, gx, gy, gz]"),
    FMM_CLI_FLAG("explain", 0, AT(explain), "say what was chosen, and why"),
    FMM_CLI_TEXT("trace", AT(trace), "FILE", "timeline of the last execution as Chrome trace JSON (Perfetto opens it)"),
    FMM_CLI_FLAG("adapt", 0, AT(adapt), "learn from the measured times and, if that gives another plan, run it too"),
    FMM_CLI_FLAG("json", 0, AT(json), "the report as one JSON object"),
    FMM_CLI_FLAG("quiet", 'q', AT(quiet), "no report and no remarks, errors only"),
    FMM_CLI_FLAG("verbose", 'v', AT(verbose), "say more"), FMM_CLI_END};

static const fmm_cli_table tables[] = {{"What is evaluated", fmm_case_table}, {"How (the plan chooses what is not given)", fmm_plan_table},
                                       {"What comes out", run_table}, {0}};

static const fmm_cli cli = {
    "fmm-run", "fmm-run (FILE | --generate " FMM_DISTRIBUTIONS " --points N) [options]",
    "Sums f(x_i) = sum_j K(x_i, y_j) s(y_j) over the points of FILE (.pqr, .npy, .csv, .xyz) or of a generated case.",
    tables, offsetof(fmm_run_options, c) + offsetof(fmm_case_options, file), 1};

static fmm_status check_written(const fmm_run_options *o) {
  if (o->output) FMM_TRY(fmm_case_check_written(&o->c, "output", o->output));
  if (o->trace) FMM_TRY(fmm_case_check_written(&o->c, "trace", o->trace));
  if (o->output && o->trace && fmm_file_same(o->output, o->trace))
    return FMM_FAIL(FMM_ERR_ARGUMENT, "--output '%s' and --trace '%s' are one file; give each its own", o->output, o->trace);
  if (o->output) FMM_TRY(fmm_output_check(o->output));
  return o->trace ? fmm_file_check_writable(o->trace) : FMM_OK;
}

/* What can be refused before any work. */
static fmm_status check(const fmm_run_options *o, int *threads) {
  FMM_TRY(fmm_case_check(&o->c));
  if (o->c.file) FMM_TRY(fmm_input_check_suffix(o->c.file));
  FMM_TRY(check_written(o));
  return fmm_cores_grant((int)o->c.threads, o->c.oversubscribe, threads);
}

static fmm_status write_output(const fmm_run *run) {
  const fmm_case *d = &run->data;
  fmm_results results = {d->n_targets, d->targets ? d->targets : d->points, d->pair->outputs, d->columns, run->potential, run->gradient};
  return fmm_output_write(run->options.output, &results);
}

/* With --json standard output is the report's alone. */
static fmm_status explain(const fmm_run *run) {
  char *text;
  FMM_TRY(fmm_run_explanation(run, &text));
  fprintf(run->options.json ? stderr : stdout, "%s\n", text);
  FMM_FREE(&text);
  return FMM_OK;
}

static fmm_status do_run(fmm_run *run) {
  const fmm_run_options *o = &run->options;
  int threads;
  FMM_TRY(check(o, &threads));
  FMM_TRY(fmm_case_load(&o->c, threads, &run->data));
  if (o->verbose) fmm_cli_say("%lld points, %lld sources, %lld targets, %d density column(s)", (long long)run->data.n_points, (long long)run->data.n, (long long)run->data.n_targets, run->data.columns);
  FMM_TRY(fmm_run_plan(run));
  FMM_TRY(fmm_run_execute(run));
  if (o->verify) FMM_TRY(fmm_run_verify(run));
  if (o->trace) FMM_TRY(fmm_plan_write_trace(run->plan, o->trace));
  if (o->output) FMM_TRY(write_output(run));
  if (o->explain) FMM_TRY(explain(run));
  if (o->json) return fmm_run_report_json(run);
  return o->quiet ? FMM_OK : fmm_run_report(run);
}

int main(int argc, char **argv) {
  fmm_run run;
  int done;
  memset(&run, 0, sizeof run);
  fmm_case_defaults(&run.options.c);
  run.options.repeat = 1;
  fmm_cli_begin(cli.command);
  fmm_status status = fmm_cli_parse(&cli, argc, argv, &run.options, &done);
  if (status == FMM_OK && !done) status = do_run(&run);
  fmm_plan_destroy(&run.plan);
  FMM_FREE(&run.potential);
  FMM_FREE(&run.gradient);
  fmm_case_free(&run.data);
  return fmm_cli_end(status, run.options.verbose);
}
