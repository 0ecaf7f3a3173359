/* What evaluations take beside their phases (frame.h). All are medians of evaluations that follow one another, as a caller's do, not the fastest: what makes threads wake late is
 * part of what is asked. */
#include "calib/frame.h"

#include <math.h>
#include <string.h>

#include "calib/bench.h"
#include "model/model.h"
#include "runtime/generate.h"
#include "runtime/plan.h"
#include "runtime/trace.h"

enum { RUNS = 11, MOST_IN_TURNS = 2 };

/* Uniform points with densities and room for their potentials. */
typedef struct arrays { double *points, *densities, *potential; } arrays;

static void free_arrays(arrays *a) {
  FMM_FREE(&a->points);
  FMM_FREE(&a->densities);
  FMM_FREE(&a->potential);
}

static fmm_status make_arrays(int64_t n, int threads, arrays *a) {
  FMM_TRY(FMM_ALLOCATE(&a->points, 3 * n, "the points of the calibration"));
  FMM_TRY(FMM_ALLOCATE(&a->densities, n, "the densities of the calibration"));
  FMM_TRY(FMM_ALLOCATE(&a->potential, n, "the potentials of the calibration"));
  FMM_TRY(fmm_generate_points("uniform", n, 1, a->points, threads));
  return fmm_generate_densities("unit", n, 1, a->densities, threads);
}

/* What is evaluated: by which schedule, on which tree. */
typedef struct what { fmm_schedule_kind schedule; int64_t n; int order, leaf_size; } what;

/* One run: seconds of all phases but U on the CPU, and of all that is beside phases. */
typedef struct run { double far_s, beside_s; } run;

/* Of a plan, by the model: bytes moved around the CPU's phases, seconds to add the results of two devices. */
typedef struct priced { double frame_bytes, sum_s; } priced;

static fmm_status make_plan(const fmm_machine *machine, int threads, const what *w, const arrays *a, fmm_plan **plan) {
  fmm_options o;
  FMM_TRY(fmm_options_init(&o));
  o.order = w->order, o.leaf_size = w->leaf_size, o.root_scale = 1, o.precision = FMM_PRECISION_DOUBLE, o.schedule = w->schedule;
  o.threads = threads, o.oversubscribe = 1, o.gpu_sms = machine->device[FMM_DEVICE_GPU].units;
  FMM_TRY(fmm_plan_create_with(plan, &o, machine));
  return fmm_plan_set_points(*plan, w->n, a->points, NULL, 0, NULL);
}

/* From the first phase's begin to the last one's end, on the GPU. */
static fmm_status span_on_gpu(const fmm_plan *plan, double *seconds) {
  double first = INFINITY, last = 0;
  for (int phase = 0; phase < FMM_N_PHASES; phase++) {
    double begin = 0, end = 0;
    FMM_TRY(fmm_gpu_phase_span(plan->setup->gpu, (fmm_phase)phase, &begin, &end));
    if (end > begin) first = fmin(first, begin), last = fmax(last, end);
  }
  *seconds = last > first ? last - first : 0;
  return FMM_OK;
}

/* Where both devices work the CPU's phases are to be the longer ones. */
static fmm_status run_once(fmm_plan *plan, const arrays *a, run *r) {
  const fmm_plan_info *info = &plan->setup->info;
  double begin = fmm_now_s(), on_cpu = 0, on_gpu = 0;
  FMM_TRY(fmm_plan_execute(plan, a->densities, a->potential, NULL));
  const double took = fmm_now_s() - begin;
  for (int phase = 0; phase < FMM_N_PHASES; phase++) on_cpu += info->device[phase] == FMM_DEVICE_CPU ? info->phase_measured_s[phase] : 0;
  if (info->schedule == FMM_SCHEDULE_GPU) FMM_TRY(span_on_gpu(plan, &on_gpu));
  r->far_s = on_cpu - (info->device[FMM_PHASE_ULIST] == FMM_DEVICE_CPU ? info->phase_measured_s[FMM_PHASE_ULIST] : 0);
  r->beside_s = took - on_cpu - on_gpu;
  return FMM_OK;
}

/* Each kind of evaluation in turns, runs[kind][turn], after one of each to warm up. *first: of the first kind. */
static fmm_status run_in_turns(const fmm_machine *machine, int threads, int n, const what *w, const arrays *a, run runs[MOST_IN_TURNS][RUNS], priced *first) {
  fmm_plan *plan[MOST_IN_TURNS] = {NULL};
  fmm_status status = FMM_OK;
  for (int k = 0; k < n && status == FMM_OK; k++) status = make_plan(machine, threads, &w[k], a, &plan[k]);
  for (int turn = -1; turn < RUNS; turn++)
    for (int k = 0; k < n && status == FMM_OK; k++) status = run_once(plan[k], a, &runs[k][turn < 0 ? 0 : turn]);
  if (status == FMM_OK) *first = (priced){fmm_frame_bytes(&plan[0]->setup->costs, &plan[0]->setup->counts), plan[0]->setup->costs.sum_s};
  for (int k = 0; k < n; k++) fmm_plan_destroy(&plan[k]);
  return status;
}

static fmm_rate median_beside(const run *runs) {
  double seconds[RUNS];
  for (int i = 0; i < RUNS; i++) seconds[i] = runs[i].beside_s;
  return fmm_median_rate(RUNS, seconds);
}

static fmm_status beside(const fmm_machine *machine, int threads, const what *w, const arrays *a, fmm_rate *seconds, priced *p) {
  run runs[MOST_IN_TURNS][RUNS];
  FMM_TRY(run_in_turns(machine, threads, 1, w, a, runs, p));
  *seconds = median_beside(runs[0]);
  return FMM_OK;
}

fmm_status fmm_frame_cpu(fmm_machine *machine, int threads) {
  static const what few = {FMM_SCHEDULE_CPU, 1 << 14, 4, 128}, many = {FMM_SCHEDULE_CPU, 1 << 18, 4, 128};
  fmm_device_rates *cpu = &machine->device[FMM_DEVICE_CPU];
  const double least_s_a_byte = 0.25 / cpu->memory_bytes_per_s.value; /* what fits into caches moves faster than memory */
  arrays a = {0};
  fmm_rate with_few, with_many;
  priced at_few, at_many;
  fmm_status status;
  FMM_CHECK(make_arrays(many.n, threads, &a));
  FMM_CHECK(beside(machine, threads, &few, &a, &with_few, &at_few));
  FMM_CHECK(beside(machine, threads, &many, &a, &with_many, &at_many));
  const double s_a_byte = fmax((with_many.value - with_few.value) / (at_many.frame_bytes - at_few.frame_bytes), least_s_a_byte);
  cpu->staging_bytes_per_s = (fmm_rate){1 / s_a_byte, with_many.spread};
  cpu->evaluation_s = (fmm_rate){fmax(with_few.value - at_few.frame_bytes * s_a_byte, 0), with_few.spread};
done:
  free_arrays(&a);
  return status;
}

/* The makespan counts a launch for each copy by itself: an evaluation has two, of densities and of results. What the host's copying takes beyond the bus, which hides most of it, is
 * a small difference of measured times; first and last parts, which nothing hides, take a tenth of the bus's time at least. */
fmm_status fmm_frame_gpu(fmm_machine *machine, int threads) {
  enum { FEW = 1000, SOME = 1 << 18, MANY = 1 << 21, COPIES = 2 };
  static const what few = {FMM_SCHEDULE_GPU, FEW, 4, FEW}, some = {FMM_SCHEDULE_GPU, SOME, 4, 128}, many = {FMM_SCHEDULE_GPU, MANY, 4, 128};
  fmm_device_rates *gpu = &machine->device[FMM_DEVICE_GPU];
  const double on_bus = sizeof(double) * (1 / gpu->h2d_bytes_per_s.value + 1 / gpu->d2h_bytes_per_s.value); /* seconds a point */
  arrays a = {0};
  fmm_rate with_few, with_some, with_many;
  priced ignored;
  fmm_status status;
  FMM_CHECK(make_arrays(MANY, threads, &a));
  FMM_CHECK(beside(machine, threads, &few, &a, &with_few, &ignored));
  FMM_CHECK(beside(machine, threads, &some, &a, &with_some, &ignored));
  FMM_CHECK(beside(machine, threads, &many, &a, &with_many, &ignored));
  const double s_a_point = fmax((with_many.value - with_some.value) / (MANY - SOME) - on_bus, 0.1 * on_bus);
  gpu->evaluation_s = (fmm_rate){fmax(with_few.value - COPIES * gpu->launch_s.value, gpu->launch_s.value), with_few.spread};
  gpu->staging_bytes_per_s = (fmm_rate){COPIES * sizeof(double) / s_a_point, with_many.spread};
  gpu->staging_s = (fmm_rate){fmax(with_some.value - with_few.value - SOME * (on_bus + s_a_point), 0) / COPIES, with_some.spread};
done:
  free_arrays(&a);
  return status;
}

static fmm_status measure_joint(fmm_machine *machine, int threads, const arrays *a) {
  static const what few[] = {{FMM_SCHEDULE_CPU, 1 << 14, 4, 32}, {FMM_SCHEDULE_HYBRID1, 1 << 14, 4, 32}}; /* small leaves: U on the GPU ends before the CPU's phases */
  run runs[MOST_IN_TURNS][RUNS];
  priced p;
  FMM_TRY(run_in_turns(machine, threads, 2, few, a, runs, &p));
  const fmm_rate alone = median_beside(runs[0]), joint = median_beside(runs[1]);
  machine->device[FMM_DEVICE_GPU].joint_s = (fmm_rate){fmax(joint.value - alone.value - p.sum_s, machine->device[FMM_DEVICE_GPU].launch_s.value), joint.spread};
  return FMM_OK;
}

static fmm_status measure_slowdown(fmm_machine *machine, int threads, int64_t n, const arrays *a) {
  const what many[] = {{FMM_SCHEDULE_CPU, n, 6, 200}, {FMM_SCHEDULE_HYBRID1, n, 6, 200}};
  run runs[MOST_IN_TURNS][RUNS];
  double ratio[RUNS];
  priced ignored;
  FMM_TRY(run_in_turns(machine, threads, 2, many, a, runs, &ignored));
  for (int i = 0; i < RUNS; i++) ratio[i] = runs[1][i].far_s / runs[0][i].far_s;
  machine->device[FMM_DEVICE_GPU].driving_slowdown = fmax(1, fmm_median_rate(RUNS, ratio).value);
  return FMM_OK;
}

fmm_status fmm_frame_joint(fmm_machine *machine, int threads) {
  enum { N = 200000 };
  arrays a = {0};
  fmm_status status;
  FMM_CHECK(make_arrays(N, threads, &a));
  FMM_CHECK(measure_joint(machine, threads, &a));
  FMM_CHECK(measure_slowdown(machine, threads, N, &a));
done:
  free_arrays(&a);
  return status;
}
