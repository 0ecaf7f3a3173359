/* Makespan of an assignment on the phase DAG: greedy list scheduling of at most twelve tasks (phase, device) and the copies between
 * them. Deterministic: the task that can start first goes first, ties by fmm_phase_priority, then CPU before GPU.
 * Copies: densities to the GPU once, staged; upward equivalents after up, and check potentials after the last of V and X, to the device that
 * needs them (of a divided phase, its part); results from the GPU once, staged where they are the caller's as they come. Reference: Choi et al. 2014, section 5.2. */
#include <math.h>

#include "sched/sched.h"

typedef enum item { DENSITIES, EQUIVALENTS, CHECKS, N_ITEMS } item;

typedef struct run {
  const fmm_cost_table *costs;
  double share[FMM_N_PHASES][FMM_N_DEVICES], seconds[FMM_N_PHASES][FMM_N_DEVICES]; /* seconds: of the task, 0: no work */
  double end[FMM_N_PHASES][FMM_N_DEVICES];
  int done[FMM_N_PHASES][FMM_N_DEVICES];
  double device_free[FMM_N_DEVICES];
  double bus_free[FMM_N_DEVICES];            /* by destination */
  double arrival[N_ITEMS][FMM_N_DEVICES];    /* of the copy to this device; < 0: not made */
  fmm_makespan *result;
} run;

static void refuse(fmm_makespan *result, const char *reason) {
  result->feasible = 0;
  result->seconds = INFINITY;
  result->reason = reason;
}

/* Shares and durations; 0 when something cannot run (result says why). */
static int prepare(run *r, const fmm_assignment *a) {
  int gpu_works = 0;
  for (int phase = 0; phase < FMM_N_PHASES; phase++) {
    double gpu = a->gpu_fraction[phase];
    if (!(gpu >= 0 && gpu <= 1)) return refuse(r->result, "a fraction is outside 0 .. 1"), 0;
    if (gpu > 0 && gpu < 1 && !fmm_phase_divisible[phase]) return refuse(r->result, "up and down cannot be divided between devices"), 0;
    r->share[phase][FMM_DEVICE_GPU] = gpu, r->share[phase][FMM_DEVICE_CPU] = 1 - gpu;
    for (int d = 0; d < FMM_N_DEVICES; d++) {
      const fmm_cost *cell = &r->costs->total[phase][d][fmm_precision_index(a->precision[phase])];
      if (!(r->share[phase][d] > 0)) continue;
      if (!cell->feasible) return refuse(r->result, cell->reason ? cell->reason : "a phase cannot run on its device"), 0;
      r->seconds[phase][d] = r->share[phase][d] * cell->seconds;
      gpu_works |= d == FMM_DEVICE_GPU && r->seconds[phase][d] > 0;
    }
  }
  for (int phase = 0; gpu_works && phase < FMM_N_PHASES; phase++) r->seconds[phase][FMM_DEVICE_CPU] *= r->costs->driving_slowdown;
  return 1;
}

static double copy_seconds(const run *r, int to, double bytes) {
  double rate = to == FMM_DEVICE_GPU ? r->costs->h2d_bytes_per_s : r->costs->d2h_bytes_per_s;
  return r->costs->transfer_launch_s + bytes / rate;
}

/* Puts a copy on the bus; returns its end. */
static double copy(run *r, int to, double ready, double bytes) {
  double seconds = copy_seconds(r, to, bytes);
  r->result->transfer_s += seconds;
  return r->bus_free[to] = fmax(ready, r->bus_free[to]) + seconds;
}

static int works(const run *r, int phase, int device) { return r->seconds[phase][device] > 0; }

/* When what was made elsewhere of an item of the phases of `makers` is on device `to`: a copy after those phases; 0: nothing was. What ran on that device ended before it is free.
 * The copy is put on the bus only when commit; without, its end is foretold. */
static double fetch(run *r, item what, const int makers[2], int to, double bytes, int commit) {
  int from = 1 - to;
  double there = 0, part = 0;
  for (int i = 0; i < 2; i++)
    if (works(r, makers[i], from)) there = fmax(there, r->end[makers[i]][from]), part = fmax(part, r->share[makers[i]][from]);
  if (part == 0) return 0;
  double arrival = r->arrival[what][to];
  if (arrival < 0) {
    arrival = commit ? copy(r, to, there, part * bytes) : fmax(there, r->bus_free[to]) + copy_seconds(r, to, part * bytes);
    if (commit) r->arrival[what][to] = arrival;
  }
  return arrival;
}

static double inputs_ready(run *r, int phase, int device, int commit) {
  static const int up[2] = {FMM_PHASE_UP, FMM_PHASE_UP}, far[2] = {FMM_PHASE_VLIST, FMM_PHASE_XLIST};
  double ready = 0;
  if (fmm_phase_reads_densities[phase] && device == FMM_DEVICE_GPU) ready = r->arrival[DENSITIES][device];
  if (fmm_phase_depends[phase][FMM_PHASE_UP]) ready = fmax(ready, fetch(r, EQUIVALENTS, up, device, r->costs->up_equivalent_bytes, commit));
  if (fmm_phase_depends[phase][FMM_PHASE_VLIST]) ready = fmax(ready, fetch(r, CHECKS, far, device, r->costs->down_check_bytes, commit));
  return ready;
}

static int dependencies_done(const run *r, int phase) {
  for (int q = 0; q < FMM_N_PHASES; q++)
    for (int d = 0; d < FMM_N_DEVICES; d++)
      if (fmm_phase_depends[phase][q] && works(r, q, d) && !r->done[q][d]) return 0;
  return 1;
}

/* The next task to start, or 0. */
static int pick(run *r, int *phase, int *device) {
  double first = INFINITY;
  for (int i = 0; i < FMM_N_PHASES; i++)
    for (int d = 0; d < FMM_N_DEVICES; d++) {
      int p = fmm_phase_priority[i];
      if (!works(r, p, d) || r->done[p][d] || !dependencies_done(r, p)) continue;
      double start = fmax(r->device_free[d], inputs_ready(r, p, d, 0));
      if (start < first) first = start, *phase = p, *device = d;
    }
  return first < INFINITY;
}

static void place(run *r, int phase, int device) {
  double start = fmax(r->device_free[device], inputs_ready(r, phase, device, 1));
  r->end[phase][device] = r->device_free[device] = start + r->seconds[phase][device];
  r->done[phase][device] = 1;
  r->result->phase_start_s[phase][device] = start;
  r->result->phase_end_s[phase][device] = r->end[phase][device];
  r->result->device_busy_s[device] += r->seconds[phase][device];
}

static double staging_seconds(const run *r, double bytes) {
  return bytes * r->costs->staging_s_per_byte + (bytes > r->costs->team_bytes ? r->costs->staging_s : 0);
}

static void upload_densities(run *r) {
  for (int phase = 0; phase < FMM_N_PHASES; phase++)
    if (fmm_phase_reads_densities[phase] && works(r, phase, FMM_DEVICE_GPU) && r->arrival[DENSITIES][FMM_DEVICE_GPU] < 0)
      r->arrival[DENSITIES][FMM_DEVICE_GPU] = copy(r, FMM_DEVICE_GPU, staging_seconds(r, r->costs->density_bytes), r->costs->density_bytes);
}

/* All results on the host, added where both devices made some, and what is around the phases of either device. */
static double finish(run *r) {
  double end = 0, gpu_results = 0;
  int made[FMM_N_DEVICES] = {0}, cpu_works = 0, gpu_works = 0;
  for (int phase = 0; phase < FMM_N_PHASES; phase++)
    for (int d = 0; d < FMM_N_DEVICES; d++) {
      if (!works(r, phase, d)) continue;
      end = fmax(end, r->end[phase][d]);
      cpu_works |= d == FMM_DEVICE_CPU, gpu_works |= d == FMM_DEVICE_GPU;
      made[d] |= fmm_phase_makes_results[phase];
      if (d == FMM_DEVICE_GPU && fmm_phase_makes_results[phase]) gpu_results = fmax(gpu_results, r->end[phase][d]);
    }
  if (made[FMM_DEVICE_GPU]) end = fmax(end, copy(r, FMM_DEVICE_CPU, gpu_results, r->costs->potential_bytes));
  if (made[FMM_DEVICE_GPU] && made[FMM_DEVICE_CPU]) end += r->costs->sum_s;
  if (made[FMM_DEVICE_GPU] && !cpu_works) end += staging_seconds(r, r->costs->potential_bytes);
  if (gpu_works) end += cpu_works ? r->costs->joint_s : r->costs->evaluation_s;
  return cpu_works ? end + r->costs->frame_s : end;
}

void fmm_makespan_of(const fmm_cost_table *costs, const fmm_assignment *assignment, fmm_makespan *result) {
  run r = {.costs = costs, .result = result};
  int phase, device;
  *result = (fmm_makespan){.feasible = 1};
  for (int p = 0; p < FMM_N_PHASES; p++)
    for (int d = 0; d < FMM_N_DEVICES; d++) result->phase_start_s[p][d] = result->phase_end_s[p][d] = NAN;
  for (int i = 0; i < N_ITEMS; i++)
    for (int d = 0; d < FMM_N_DEVICES; d++) r.arrival[i][d] = -1;
  if (!prepare(&r, assignment)) return;
  upload_densities(&r);
  while (pick(&r, &phase, &device)) place(&r, phase, device);
  result->seconds = finish(&r);
}
