/* GPU measurements (gpu.h). */
#include "calib/gpu.h"

#include <math.h>
#include <string.h>

#include "calib/bench.h"
#include "runtime/generate.h"
#include "runtime/node.h"

enum { MOST_REPEATS = 15 };

/* ---- rates ---- */

fmm_status fmm_gpu_rates(int repeats, int sms, fmm_device_rates *gpu) {
  fmm_machine m;
  memset(&m, 0, sizeof m);
  FMM_TRY(fmm_node_gpu(0, sms, &m));
  *gpu = m.device[FMM_DEVICE_GPU];
  memset(gpu->constant, 0, sizeof gpu->constant);
  if (!gpu->present) return FMM_OK;
  const double pair_flops = fmm_pair_infos[0]->flops; /* laplace's */
  fmm_rate *const rate[FMM_GPU_N_RATES] = {
      [FMM_GPU_RATE_FMA_DOUBLE] = &gpu->fma_flops_per_s[0], [FMM_GPU_RATE_FMA_SINGLE] = &gpu->fma_flops_per_s[1],
      [FMM_GPU_RATE_PAIR_DOUBLE] = &gpu->pair_flops_per_s[0], [FMM_GPU_RATE_PAIR_SINGLE] = &gpu->pair_flops_per_s[1],
      [FMM_GPU_RATE_MEMORY] = &gpu->memory_bytes_per_s, [FMM_GPU_RATE_H2D] = &gpu->h2d_bytes_per_s,
      [FMM_GPU_RATE_D2H] = &gpu->d2h_bytes_per_s, [FMM_GPU_RATE_LAUNCH] = &gpu->launch_s};
  for (int i = 0; i < FMM_GPU_N_RATES; i++) {
    double values[MOST_REPEATS];
    int n = repeats < MOST_REPEATS ? repeats : MOST_REPEATS;
    for (int r = 0; r < n; r++) FMM_TRY(fmm_gpu_measure(0, sms, (fmm_gpu_rate)i, &values[r]));
    *rate[i] = fmm_median_rate(n, values);
    if (i == FMM_GPU_RATE_PAIR_DOUBLE || i == FMM_GPU_RATE_PAIR_SINGLE) rate[i]->value *= pair_flops;
  }
  return FMM_OK;
}

/* ---- cases ---- */

/* Uniform points with densities and room for their potentials. */
typedef struct gpu_case { double *points, *densities, *potential; } gpu_case;

static void free_case(gpu_case *c) {
  FMM_FREE(&c->points);
  FMM_FREE(&c->densities);
  FMM_FREE(&c->potential);
}

static fmm_status make_case(int64_t n, int threads, gpu_case *c) {
  FMM_TRY(FMM_ALLOCATE(&c->points, 3 * n, "the points of the calibration"));
  FMM_TRY(FMM_ALLOCATE(&c->densities, n, "the densities of the calibration"));
  FMM_TRY(FMM_ALLOCATE(&c->potential, n, "the potentials of the calibration"));
  FMM_TRY(fmm_generate_points("uniform", n, 1, c->points, threads));
  return fmm_generate_densities("unit", n, 1, c->densities, threads);
}

/* ---- phases ---- */

static fmm_status run(fmm_setup *s, fmm_phase phase) { return s->gpu_rows[phase] > 0 ? fmm_gpu_run(s->gpu, phase, 0, s->gpu_rows[phase]) : FMM_OK; }

fmm_status fmm_gpu_phases_apart(fmm_setup *s, const double *densities, double *results, double seconds[FMM_N_PHASES]) {
  static const fmm_phase first[] = {FMM_PHASE_UP, FMM_PHASE_XLIST, FMM_PHASE_VLIST, FMM_PHASE_DOWN}; /* one stream, one after the other */
  FMM_TRY(fmm_gpu_begin(s->gpu, densities, FMM_MEMORY_HOST));
  for (int i = 0; i < 4; i++) FMM_TRY(run(s, first[i]));
  FMM_TRY(fmm_gpu_fetch(s->gpu, FMM_GPU_POTENTIAL, results)); /* nothing of it is wanted but its end */
  FMM_TRY(fmm_gpu_wait(s->gpu, FMM_GPU_POTENTIAL));
  FMM_TRY(run(s, FMM_PHASE_WLIST));
  FMM_TRY(run(s, FMM_PHASE_ULIST));
  FMM_TRY(fmm_gpu_finish(s->gpu));
  for (int phase = 0; phase < FMM_N_PHASES; phase++) {
    double begin = 0, end = 0;
    FMM_TRY(fmm_gpu_phase_span(s->gpu, (fmm_phase)phase, &begin, &end));
    seconds[phase] = end > begin ? end - begin : 0;
  }
  return FMM_OK;
}

/* ---- what is beside the phases ---- */

/* Median seconds of an evaluation wholly on the GPU that are outside of its phases. */
static fmm_status beside_phases(const fmm_machine *machine, int threads, int64_t n, int leaf_size, const gpu_case *c, fmm_rate *seconds) {
  enum { RUNS = 11 };
  double beside[RUNS];
  fmm_options o;
  fmm_plan *plan = NULL;
  fmm_status status = fmm_options_init(&o);
  o.order = 4, o.leaf_size = leaf_size, o.root_scale = 1, o.precision = FMM_PRECISION_DOUBLE, o.schedule = FMM_SCHEDULE_GPU, o.threads = threads, o.gpu_sms = machine->device[FMM_DEVICE_GPU].units;
  if (status == FMM_OK) status = fmm_plan_create_with(&plan, &o, machine);
  if (status == FMM_OK) status = fmm_plan_set_points(plan, n, c->points, NULL, 0, NULL);
  for (int run_number = -1; status == FMM_OK && run_number < RUNS; run_number++) { /* the first to warm up */
    double first = INFINITY, last = 0, start = fmm_now_s();
    status = fmm_plan_execute(plan, c->densities, c->potential, NULL);
    double took = fmm_now_s() - start;
    for (int phase = 0; status == FMM_OK && phase < FMM_N_PHASES; phase++) {
      double begin = 0, end = 0;
      status = fmm_gpu_phase_span(plan->setup->gpu, (fmm_phase)phase, &begin, &end);
      if (end > begin) first = fmin(first, begin), last = fmax(last, end);
    }
    if (run_number >= 0) beside[run_number] = took - (last - first);
  }
  if (status == FMM_OK) *seconds = fmm_median_rate(RUNS, beside);
  fmm_plan_destroy(&plan);
  return status;
}

/* The makespan counts a launch for each copy by itself: an evaluation has two, of densities and of results. What the host's copying takes beyond the bus, which hides most of it, is
 * a small difference of two measured times; first and last parts, which nothing hides, take a tenth of the bus's time at least. */
fmm_status fmm_gpu_frame(fmm_machine *machine, int threads) {
  enum { FEW = 1000, MANY = 1 << 20, LEAF = 128, COPIES = 2 };
  fmm_device_rates *gpu = &machine->device[FMM_DEVICE_GPU];
  gpu_case c = {0};
  double bytes = sizeof(double) * (double)MANY;
  fmm_rate few, many;
  fmm_status status;
  FMM_CHECK(make_case(MANY, threads, &c));
  FMM_CHECK(beside_phases(machine, threads, FEW, FEW, &c, &few));
  FMM_CHECK(beside_phases(machine, threads, MANY, LEAF, &c, &many));
  double on_bus = bytes / gpu->h2d_bytes_per_s.value + bytes / gpu->d2h_bytes_per_s.value, staging = many.value - few.value - on_bus;
  gpu->evaluation_s = (fmm_rate){fmax(few.value - COPIES * gpu->launch_s.value, gpu->launch_s.value), few.spread};
  gpu->staging_bytes_per_s = (fmm_rate){2 * bytes / fmax(staging, 0.1 * on_bus), many.spread};
done:
  free_case(&c);
  return status;
}

/* ---- slowdown ---- */

/* Fastest of some executions: seconds of the phases that hybrid1 leaves on the CPU. */
static fmm_status cpu_seconds(const fmm_machine *machine, int threads, fmm_schedule_kind schedule, int64_t n, const gpu_case *c, double *seconds) {
  enum { RUNS = 5 };
  fmm_options o;
  fmm_plan *plan = NULL;
  fmm_status status = fmm_options_init(&o);
  o.order = 6, o.leaf_size = 200, o.root_scale = 1, o.precision = FMM_PRECISION_DOUBLE, o.schedule = schedule, o.threads = threads, o.gpu_sms = machine->device[FMM_DEVICE_GPU].units;
  *seconds = INFINITY;
  if (status == FMM_OK) status = fmm_plan_create_with(&plan, &o, machine);
  if (status == FMM_OK) status = fmm_plan_set_points(plan, n, c->points, NULL, 0, NULL);
  for (int run_number = 0; status == FMM_OK && run_number < RUNS; run_number++) {
    status = fmm_plan_execute(plan, c->densities, c->potential, NULL);
    if (status != FMM_OK) break;
    const double *t = plan->setup->info.phase_measured_s;
    *seconds = fmin(*seconds, t[FMM_PHASE_UP] + t[FMM_PHASE_VLIST] + t[FMM_PHASE_DOWN]);
  }
  fmm_plan_destroy(&plan);
  return status;
}

fmm_status fmm_gpu_driving_slowdown(const fmm_machine *machine, int threads, double *factor) {
  enum { N = 200000 };
  gpu_case c = {0};
  double alone, driving;
  fmm_status status;
  FMM_CHECK(make_case(N, threads, &c));
  FMM_CHECK(cpu_seconds(machine, threads, FMM_SCHEDULE_CPU, N, &c, &alone));
  FMM_CHECK(cpu_seconds(machine, threads, FMM_SCHEDULE_HYBRID1, N, &c, &driving));
  *factor = fmax(1, driving / alone);
done:
  free_case(&c);
  return status;
}
