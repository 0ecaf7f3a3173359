/* Machines as plain values: what a valid one satisfies, a nominal one for when nothing was measured, and parts of one. */
#include "model/machine.h"
#include "runtime/counts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- validity ---- */

static fmm_status check_rate(const char *device, const char *what, fmm_rate rate) {
  if (!(rate.value > 0 && isfinite(rate.value) && rate.spread >= 0 && isfinite(rate.spread)))
    return FMM_FAIL(FMM_ERR_PROFILE, "%s: %s is %g with spread %g; a rate must be positive and finite", device, what, rate.value, rate.spread);
  return FMM_OK;
}

/* What need not have been measured. */
static fmm_status check_beside(const char *device, const char *what, fmm_rate rate) {
  if (rate.value >= 0 && isfinite(rate.value) && rate.spread >= 0 && isfinite(rate.spread)) return FMM_OK;
  return FMM_FAIL(FMM_ERR_PROFILE, "%s: %s is %g with spread %g; it must be 0 or positive, and finite", device, what, rate.value, rate.spread);
}

static int in_range(double value, double lo, double hi) { return value >= lo && value <= hi; }

static fmm_status check_constant(const char *device, int phase, const fmm_constant *c) {
  const double factor = 1e6, a_unit_s = 1, a_level_s = 10;
  const struct { const char *name; double value, most; } all[] = {
      {"value", c->value, factor}, {"other", c->other, factor}, {"entry_s", c->entry_s, a_unit_s}, {"byte_s", c->byte_s, a_unit_s}, {"launch_s", c->launch_s, a_level_s}, {"chain_s", c->chain_s, a_unit_s},
      {"gradient", c->gradient, factor}, {"coarse", c->coarse, factor}, {"coarse_gradient", c->coarse_gradient, factor}, {"near", c->near, factor}, {"full", c->full, factor}, {"median_error", c->median_error, factor}, {"p90_error", c->p90_error, factor},
      {"n_fit", c->n_fit, INT32_MAX}, {"n_held_out", c->n_held_out, INT32_MAX}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (!in_range(all[i].value, 0, all[i].most)) return FMM_FAIL(FMM_ERR_PROFILE, "%s: %s of the constants of %s is %g; it must be 0 .. %g", device, all[i].name, fmm_phase_names[phase], all[i].value, all[i].most);
  return FMM_OK;
}

static fmm_status check_effort(const fmm_machine *machine) {
  static const char *const efforts[] = {"quick", "standard", "thorough", "hand", "nominal"};
  for (size_t i = 0; i < sizeof efforts / sizeof *efforts; i++)
    if (!strcmp(machine->effort, efforts[i])) return FMM_OK;
  return FMM_FAIL(FMM_ERR_PROFILE, "effort is '%s'; it must be quick, standard, thorough, hand or nominal", machine->effort);
}

static fmm_status check_device(const fmm_device_rates *d, const char *device, int is_gpu) {
  if (!d->present) return FMM_OK;
  if (d->units < 1 || d->memory_mb < 0) return FMM_FAIL(FMM_ERR_PROFILE, "%s: %d units, %d MB; at least 1 and 0", device, d->units, d->memory_mb);
  for (int p = 0; p < FMM_N_PRECISIONS; p++) {
    FMM_TRY(check_rate(device, "pair_flops_per_s", d->pair_flops_per_s[p]));
    FMM_TRY(check_rate(device, "fma_flops_per_s", d->fma_flops_per_s[p]));
    for (int phase = 0; phase < FMM_N_PHASES; phase++) FMM_TRY(check_constant(device, phase, &d->constant[phase][p]));
  }
  FMM_TRY(check_rate(device, "memory_bytes_per_s", d->memory_bytes_per_s));
  FMM_TRY(check_rate(device, "launch_s", d->launch_s));
  FMM_TRY(check_beside(device, "staging_s", d->staging_s));
  FMM_TRY(check_beside(device, "joint_s", d->joint_s));
  if (!is_gpu) {
    FMM_TRY(check_beside(device, "staging_bytes_per_s", d->staging_bytes_per_s));
    return check_beside(device, "evaluation_s", d->evaluation_s);
  }
  FMM_TRY(check_rate(device, "h2d_bytes_per_s", d->h2d_bytes_per_s));
  FMM_TRY(check_rate(device, "d2h_bytes_per_s", d->d2h_bytes_per_s));
  FMM_TRY(check_rate(device, "staging_bytes_per_s", d->staging_bytes_per_s));
  FMM_TRY(check_rate(device, "evaluation_s", d->evaluation_s));
  if (!in_range(d->driving_slowdown, 1, 100))
    return FMM_FAIL(FMM_ERR_PROFILE, "%s: driving_slowdown is %g; it must be 1 .. 100", device, d->driving_slowdown);
  return FMM_OK;
}

fmm_status fmm_machine_check(const fmm_machine *machine) {
  if (!machine->device[FMM_DEVICE_CPU].present) return FMM_FAIL(FMM_ERR_PROFILE, "the profile has no CPU");
  if (!(machine->created_unix_s >= 0 && isfinite(machine->created_unix_s))) return FMM_FAIL(FMM_ERR_PROFILE, "created_unix_s is %g; it must be 0 or positive, and finite", machine->created_unix_s);
  FMM_TRY(check_effort(machine));
  FMM_TRY(check_device(&machine->device[FMM_DEVICE_CPU], "cpu", 0));
  return check_device(&machine->device[FMM_DEVICE_GPU], "gpu", 1);
}

fmm_status fmm_profile_check_native(const fmm_machine *machine, const char *fingerprint) {
  if (!strcmp(machine->fingerprint, fingerprint)) return FMM_OK;
  const fmm_device_rates *cpu = &machine->device[FMM_DEVICE_CPU], *gpu = &machine->device[FMM_DEVICE_GPU];
  return FMM_FAIL(FMM_ERR_PROFILE,
                  "%s was made for other hardware, other cores or another build (fingerprint %s, here %s): on %d cores of '%s', %s, build '%s'; run fmm-calibrate here, or use it with fmm-predict --machine",
                  machine->path[0] ? machine->path : "the profile", machine->fingerprint[0] ? machine->fingerprint : "(none)", fingerprint, cpu->units, cpu->name, gpu->present ? gpu->name : "no GPU",
                  machine->build);
}

/* ---- nominal ---- */

/* Rates of an AVX2 core and, over them, what the code takes, rounded from calibrations of an AMD EPYC (Zen 5) with AVX2 and AVX-512 code. Where they differ, V (1.2 to 1.5; 1.8 to 2.2) and U at 3 digits (0.94;
 * 0.63), nearer to the latter: with AVX2 trees are 5 % worse at most then, with AVX-512 better. */
typedef struct nominal_constant { double value, other, entry_s, coarse; } nominal_constant;
static const nominal_constant nominal_constants[FMM_N_PHASES] = {[FMM_PHASE_UP] = {1.2, 1.9, 2e-7, 0},  [FMM_PHASE_ULIST] = {0.85, 0, 4e-8, 0.7}, [FMM_PHASE_VLIST] = {2, 0, 1.4e-8, 0},
                                                                 [FMM_PHASE_WLIST] = {1.5, 0, 1e-7, 0}, [FMM_PHASE_XLIST] = {1.6, 0, 1e-7, 0},   [FMM_PHASE_DOWN] = {1.2, 1.9, 2e-7, 0}};

void fmm_machine_nominal(int cores, fmm_machine *machine) {
  const double cycles_per_s = 2.5e9, lanes = 4, fma_a_cycle = 2;
  const double pair_part[FMM_N_PRECISIONS] = {0.43, 0.5}; /* of multiply-adds, as flops are counted */
  const double core_bytes_per_s = 8e9;
  const int cores_to_saturate = 8;
  fmm_machine m;
  memset(&m, 0, sizeof m);
  m.schema = FMM_PROFILE_SCHEMA;
  snprintf(m.effort, sizeof m.effort, "nominal");
  snprintf(m.source, sizeof m.source, "made up: a usual AVX2 core, nothing was measured here");
  fmm_device_rates *d = &m.device[FMM_DEVICE_CPU];
  d->present = 1, d->units = cores, d->driving_slowdown = 1;
  snprintf(d->name, sizeof d->name, "nominal CPU");
  for (int p = 0; p < FMM_N_PRECISIONS; p++) {
    d->fma_flops_per_s[p].value = 2 * cores * cycles_per_s * lanes * (p + 1) * fma_a_cycle;
    d->pair_flops_per_s[p].value = pair_part[p] * d->fma_flops_per_s[p].value;
    for (int phase = 0; phase < FMM_N_PHASES; phase++) {
      const nominal_constant *c = &nominal_constants[phase];
      d->constant[phase][p] = (fmm_constant){.value = c->value, .other = c->other, .entry_s = c->entry_s / cores, .coarse = p ? c->coarse : 0, .median_error = 1, .p90_error = 1};
    }
  }
  d->memory_bytes_per_s.value = core_bytes_per_s * (cores < cores_to_saturate ? cores : cores_to_saturate);
  d->launch_s.value = 5e-6;
  *machine = m;
}

/* What the code takes over a GPU's measured rates, rounded from a calibration of an H200, and beside them: an entry, on as many multiprocessors as that has; a level; an unknown of a level. */
typedef struct nominal_gpu_constant { double value[FMM_N_PRECISIONS], other[FMM_N_PRECISIONS], entry_s, launch_s, chain_s; } nominal_gpu_constant;
static const nominal_gpu_constant nominal_gpu_constants[FMM_N_PHASES] = {
    [FMM_PHASE_UP] = {{1.4, 1.5}, {2.5, 2.3}, 0, 2e-6, 2e-8},        [FMM_PHASE_ULIST] = {{0.9, 0.8}, {0, 0}, 7e-9, 1.3e-5, 0}, [FMM_PHASE_VLIST] = {{0.5, 0.33}, {1.5, 3.2}, 2e-8, 1.4e-5, 6e-8},
    [FMM_PHASE_WLIST] = {{1, 0.8}, {0, 0}, 0, 7e-6, 3e-8}, [FMM_PHASE_XLIST] = {{1.45, 1.45}, {0, 0}, 1e-9, 4e-6, 2e-9}, [FMM_PHASE_DOWN] = {{1.35, 1.3}, {2, 1.8}, 0, 1e-6, 2e-8}};

void fmm_machine_nominal_gpu_constants(fmm_device_rates *d) {
  const double units = 132;
  for (int phase = 0; phase < FMM_N_PHASES; phase++)
    for (int p = 0; p < FMM_N_PRECISIONS; p++) {
      const nominal_gpu_constant *c = &nominal_gpu_constants[phase];
      d->constant[phase][p] = (fmm_constant){.value = c->value[p], .other = c->other[p], .entry_s = c->entry_s * units / d->units, .launch_s = c->launch_s, .chain_s = c->chain_s, .median_error = 1, .p90_error = 1};
    }
}

/* ---- a part of it ---- */

static void scale_compute(fmm_device_rates *d, double factor) {
  for (int p = 0; p < FMM_N_PRECISIONS; p++) d->pair_flops_per_s[p].value *= factor, d->fma_flops_per_s[p].value *= factor;
}

void fmm_machine_use_units(fmm_machine *machine, fmm_device device, int units) {
  fmm_device_rates *d = &machine->device[device];
  if (!d->present || units < 1 || units >= d->units) return;
  double part = (double)units / d->units;
  scale_compute(d, part);
  d->memory_bytes_per_s.value *= part;
  if (device == FMM_DEVICE_CPU) d->staging_bytes_per_s.value *= part;
  for (int phase = 0; phase < FMM_N_PHASES; phase++)
    for (int p = 0; p < FMM_N_PRECISIONS; p++) d->constant[phase][p].entry_s /= part, d->constant[phase][p].byte_s /= part;
  d->units = units;
}
