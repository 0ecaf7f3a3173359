/* Calibration from the first benchmark to the finished profile (calibrate.h). */
#include "calib/calibrate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "calib/bench.h"
#include "calib/frame.h"
#include "calib/gpu.h"
#include "calib/topology.h"
#include "calib/trust.h"
#include "runtime/file.h"
#include "runtime/cores.h"
#include "runtime/node.h"
#include "runtime/trace.h"

/* Seconds in all, and of them for each microbenchmark. */
typedef struct effort_budget { double total_s, bench_s, bench_effort; int gpu_repeats; } effort_budget;
static const effort_budget budgets[FMM_N_EFFORTS] = {{8, 0.12, 0.5, 3}, {90, 1, 1, 5}, {600, 4, 2, 11}};

typedef struct measured_rate { const fmm_bench *bench; fmm_rate *rate; } measured_rate;

/* Full load until clocks have settled: processors at rest need up to half a second for that, and more with wide vectors. */
static fmm_status warm_up(int threads) {
  const double seconds = 0.7;
  fmm_bench_result ignored;
  return fmm_bench_measure(&fmm_bench_pair_double, threads, 1, seconds, &ignored);
}

static fmm_status measure_rates(const effort_budget *budget, int threads, fmm_progress *progress, void *context, fmm_device_rates *cpu) {
  const measured_rate rates[] = {{&fmm_bench_pair_double, &cpu->pair_flops_per_s[0]}, {&fmm_bench_pair_single, &cpu->pair_flops_per_s[1]},
                                 {&fmm_bench_fma_double, &cpu->fma_flops_per_s[0]},   {&fmm_bench_fma_single, &cpu->fma_flops_per_s[1]},
                                 {&fmm_bench_triad, &cpu->memory_bytes_per_s},        {&fmm_bench_region, &cpu->launch_s}};
  const int n = (int)(sizeof rates / sizeof *rates);
  FMM_TRY(warm_up(threads));
  for (int i = 0; i < n; i++) {
    fmm_bench_result result;
    if (progress && progress(context, rates[i].bench->summary, (double)i / n * n * budget->bench_s / budget->total_s))
      return FMM_FAIL(FMM_ERR_INTERRUPTED, "calibration stopped before %s", rates[i].bench->name);
    FMM_TRY(fmm_bench_measure(rates[i].bench, threads, budget->bench_effort, budget->bench_s, &result));
    *rates[i].rate = result.rate;
  }
  return FMM_OK;
}

static void describe(const fmm_topology *topology, fmm_effort effort, int threads, fmm_machine *m) {
  memset(m, 0, sizeof *m);
  m->schema = FMM_PROFILE_SCHEMA;
  fmm_identity_fingerprint(&topology->identity, m->fingerprint);
  snprintf(m->build, sizeof m->build, "%s", topology->identity.build);
  snprintf(m->effort, sizeof m->effort, "%s", fmm_effort_name(effort));
  m->created_unix_s = (double)time(NULL);
  fmm_device_rates *cpu = &m->device[FMM_DEVICE_CPU];
  cpu->present = 1;
  cpu->units = threads;
  cpu->memory_mb = (int)(topology->memory_bytes >> 20);
  cpu->driving_slowdown = 1;
  snprintf(cpu->name, sizeof cpu->name, "%s", topology->identity.cpu_model);
}

/* One sweep's part of the whole progress. */
typedef struct sweep_progress { fmm_progress *progress; void *context; double from, to; } sweep_progress;
static int report_sweep(void *context, const char *what, double fraction) {
  sweep_progress *p = context;
  return p->progress ? p->progress(p->context, what, p->from + (p->to - p->from) * fraction) : 0;
}

/* One calibration under way. */
typedef struct session { const effort_budget *budget; fmm_effort effort; int threads; double start_s; fmm_progress *progress; void *context; } session;

/* Sweep and fit of one device, until `until` seconds of the session. */
static fmm_status fit_device(const session *s, fmm_device device, double until_s, fmm_machine *m) {
  fmm_samples samples = {0};
  double spent = fmm_now_s() - s->start_s;
  sweep_progress report = {s->progress, s->context, fmin(spent / s->budget->total_s, 1), fmin(until_s / s->budget->total_s, 1)};
  fmm_status status = fmm_sweep(m, device, s->effort, s->threads, until_s - spent, report_sweep, &report, &samples);
  if (status == FMM_OK) status = fmm_fit_samples(&samples, device, &m->device[device]);
  fmm_samples_free(&samples);
  return status;
}

/* A GPU that is there but fails is left out, with the reason in the profile; only the lack of host memory and interruption end the calibration. */
static fmm_status calibrate_gpu(const session *s, fmm_machine *m) {
  fmm_device_rates *gpu = &m->device[FMM_DEVICE_GPU];
  fmm_status status = fmm_frame_gpu(m, s->threads);
  if (status == FMM_OK) status = fmm_frame_joint(m, s->threads);
  if (status == FMM_OK) status = fit_device(s, FMM_DEVICE_GPU, s->budget->total_s, m);
  if (status == FMM_OK || status == FMM_ERR_INTERRUPTED) return status;
  snprintf(m->source, sizeof m->source, "GPU left out: %.400s", fmm_last_error());
  memset(gpu, 0, sizeof *gpu);
  return FMM_OK;
}

fmm_status fmm_calibrate(fmm_effort effort, int threads, int gpu_sms, fmm_progress *progress, void *context, fmm_machine *machine) {
  const session s = {&budgets[effort], effort, threads, fmm_now_s(), progress, context};
  fmm_topology topology;
  fmm_machine m;
  FMM_TRY(fmm_topology_read(&topology));
  describe(&topology, effort, threads, &m);
  FMM_TRY(measure_rates(s.budget, threads, progress, context, &m.device[FMM_DEVICE_CPU]));
  if (fmm_gpu_rates(s.budget->gpu_repeats, gpu_sms, &m.device[FMM_DEVICE_GPU]) != FMM_OK) m.device[FMM_DEVICE_GPU].present = 0;
  int has_gpu = m.device[FMM_DEVICE_GPU].present;
  FMM_TRY(fmm_frame_cpu(&m, threads));
  double spent = fmm_now_s() - s.start_s, left = fmax(s.budget->total_s - spent, 0);
  FMM_TRY(fit_device(&s, FMM_DEVICE_CPU, spent + (has_gpu ? left / 2 : left), &m));
  if (has_gpu) FMM_TRY(calibrate_gpu(&s, &m));
  *machine = m;
  return FMM_OK;
}

static void say(fmm_announce *announce, void *context, const char *format, const char *value) {
  char line[1024];
  snprintf(line, sizeof line, format, value);
  if (announce) announce(context, line);
}

void fmm_profile_keep(const char *fingerprint, int gpu_sms, fmm_announce *announce, void *context, fmm_machine *machine) {
  char path[512], doubt[512];
  machine->path[0] = 0;
  if (fmm_profile_user_path(fingerprint, gpu_sms, path) == FMM_OK && fmm_file_make_parents(path) == FMM_OK && fmm_profile_save(path, machine) == FMM_OK) {
    snprintf(machine->path, sizeof machine->path, "%s", path);
    say(announce, context, "profile kept in %s", path);
  } else
    say(announce, context, "the profile could not be kept (%s); it is used for this run only", fmm_last_error());
  if (fmm_machine_doubt(machine, doubt, sizeof doubt)) say(announce, context, "%s", doubt);
}

fmm_status fmm_profile_obtain(const char *explicit_path, int gpu_sms, fmm_announce *announce, fmm_progress *progress, void *context, fmm_machine *machine) {
  char fingerprint[FMM_FINGERPRINT_CHARS], path[512];
  int found = 0;
  fmm_machine m;
  gpu_sms = fmm_node_gpu_part(0, gpu_sms);
  fmm_fingerprint(fingerprint);
  FMM_TRY(fmm_profile_find(explicit_path, fingerprint, gpu_sms, path, &found));
  if (found) {
    FMM_TRY(fmm_profile_load(path, &m));
    FMM_TRY(fmm_profile_check_native(&m, fingerprint));
    return *machine = m, FMM_OK;
  }
  say(announce, context, "no profile of this machine yet: measuring it quickly (about 10 s; fmm-calibrate does it thoroughly)%s", "");
  FMM_TRY(fmm_calibrate(FMM_EFFORT_QUICK, fmm_cores_allowed(), gpu_sms, progress, context, &m));
  fmm_profile_keep(fingerprint, gpu_sms, announce, context, &m);
  *machine = m;
  return FMM_OK;
}
