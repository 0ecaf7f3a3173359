/* The GPU of the machine that a plan prices with: absent when this process cannot use it, whatever the profile says; measured here and now
 * when the profile has none or is of another number of multiprocessors (rates are then those of what is used, constants stay the profile's). */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "gpu.h"
#include "node.h"

enum { MAX_KEPT = 16 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct { int ordinal, sms; fmm_device_rates rates; } kept[MAX_KEPT]; /* one measurement a process */
static int n_kept;

static void describe(const fmm_gpu_info *info, int sms, fmm_device_rates *d) {
  d->present = 1;
  snprintf(d->name, sizeof d->name, "%s", info->name);
  snprintf(d->id, sizeof d->id, "%s", info->uuid);
  snprintf(d->driver, sizeof d->driver, "%s", info->driver);
  d->units = sms > 0 && sms < info->sms ? sms : info->sms;
  d->memory_mb = (int)(info->memory_bytes >> 20);
}

fmm_rate *fmm_node_gpu_rate(fmm_device_rates *d, fmm_gpu_rate which, double *unit) {
  fmm_rate *const rate[FMM_GPU_N_RATES] = {
      [FMM_GPU_RATE_FMA_DOUBLE] = &d->fma_flops_per_s[0], [FMM_GPU_RATE_FMA_SINGLE] = &d->fma_flops_per_s[1],
      [FMM_GPU_RATE_PAIR_DOUBLE] = &d->pair_flops_per_s[0], [FMM_GPU_RATE_PAIR_SINGLE] = &d->pair_flops_per_s[1],
      [FMM_GPU_RATE_MEMORY] = &d->memory_bytes_per_s, [FMM_GPU_RATE_H2D] = &d->h2d_bytes_per_s,
      [FMM_GPU_RATE_D2H] = &d->d2h_bytes_per_s, [FMM_GPU_RATE_LAUNCH] = &d->launch_s};
  *unit = which == FMM_GPU_RATE_PAIR_DOUBLE || which == FMM_GPU_RATE_PAIR_SINGLE ? FMM_LAPLACE_FLOPS : 1;
  return rate[which];
}

static fmm_status measure_rates(int ordinal, int sms, fmm_device_rates *d) {
  for (int i = 0; i < FMM_GPU_N_RATES; i++) {
    double unit;
    fmm_rate *rate = fmm_node_gpu_rate(d, (fmm_gpu_rate)i, &unit);
    FMM_TRY(fmm_gpu_measure(ordinal, sms, (fmm_gpu_rate)i, &rate->value));
    rate->value *= unit;
  }
  return FMM_OK;
}

static fmm_status measured(int ordinal, int sms, const fmm_gpu_info *info, fmm_device_rates *d) {
  for (int i = 0; i < n_kept; i++)
    if (kept[i].ordinal == ordinal && kept[i].sms == sms) return *d = kept[i].rates, FMM_OK;
  memset(d, 0, sizeof *d);
  describe(info, sms, d);
  d->driving_slowdown = 1;
  fmm_machine_nominal_gpu_constants(d);
  FMM_TRY(measure_rates(ordinal, sms, d));
  if (n_kept < MAX_KEPT) kept[n_kept].ordinal = ordinal, kept[n_kept].sms = sms, kept[n_kept++].rates = *d;
  return FMM_OK;
}

int fmm_node_gpu_part(int ordinal, int gpu_sms) {
  fmm_gpu_info info;
  if (gpu_sms <= 0) return 0;
  fmm_gpu_query(ordinal, &info);
  return info.present && gpu_sms >= info.sms ? 0 : gpu_sms;
}

/* What only a calibration measures: most of the host's copying is hidden behind the bus, and what is not takes about as long as moving each byte once (H200, 16 cores: 100 to 170 GB/s
 * where memory gives 92); a call of the driver takes a launch's time; with work on both devices the calls and waits take some 3.5 times as long (the same: 152 and 43 microseconds). */
static void assume_frame(const fmm_machine *machine, fmm_device_rates *d) {
  d->staging_bytes_per_s.value = machine->device[FMM_DEVICE_CPU].memory_bytes_per_s.value;
  d->evaluation_s.value = FMM_GPU_FRAME_CALLS * d->launch_s.value;
  d->joint_s.value = 3.5 * d->evaluation_s.value;
}

static void forbid(fmm_machine *machine, const char *reason) {
  machine->device[FMM_DEVICE_GPU].present = 0;
  snprintf(machine->no_gpu, sizeof machine->no_gpu, "%s", reason);
}

fmm_status fmm_node_gpu(int ordinal, int sms, fmm_machine *machine) {
  fmm_device_rates *gpu = &machine->device[FMM_DEVICE_GPU], now;
  fmm_gpu_info info;
  fmm_gpu_query(ordinal, &info);
  if (!info.present) return forbid(machine, info.reason), FMM_OK;
  int part = sms > 0 && sms < info.sms, units = part ? sms : info.sms;
  if (gpu->present && gpu->units == units && !strcmp(gpu->id, info.uuid)) return FMM_OK;
  pthread_mutex_lock(&mutex);
  fmm_status status = measured(ordinal, part ? sms : 0, &info, &now);
  pthread_mutex_unlock(&mutex);
  if (status != FMM_OK) return forbid(machine, fmm_last_error()), FMM_OK; /* a device that fails at this is no device to choose */
  if (gpu->present) {
    memcpy(now.constant, gpu->constant, sizeof now.constant);
    now.driving_slowdown = gpu->driving_slowdown, now.staging_bytes_per_s = gpu->staging_bytes_per_s, now.staging_s = gpu->staging_s;
    now.evaluation_s = gpu->evaluation_s, now.joint_s = gpu->joint_s;
  }
  else assume_frame(machine, &now);
  *gpu = now;
  return FMM_OK;
}
