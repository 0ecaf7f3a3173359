/* See forecast.h. The chosen tree's counts are asked for once more at the end, as the tuner keeps none. */
#include "sched/forecast.h"

#include <math.h>

static int uses_gpu(const fmm_assignment *a) {
  for (int phase = 0; phase < FMM_N_PHASES; phase++)
    if (a->gpu_fraction[phase] > 0) return 1;
  return 0;
}

static fmm_status tune(const fmm_forecast_case *what, fmm_schedule_kind kind, fmm_forecast *f) {
  FMM_TRY(fmm_tune(what->machine, what->pair, &what->precisions, kind, what->leaf_size, what->root_scale, what->dimension, &what->effort, what->estimate, what->context, &f->tuned));
  FMM_TRY(what->estimate(what->context, 1, &(fmm_tree_options){f->tuned.leaf_size, f->tuned.root_scale}, &f->counts));
  int threads = what->threads > 0 ? what->threads : what->machine->device[FMM_DEVICE_CPU].units;
  fmm_footprint_of(&f->counts, what->pair, threads, f->tuned.assignment.precision, f->tuned.assignment.gpu_fraction, &f->memory);
  return FMM_OK;
}

/* Nonzero when the choice needs more of the GPU's memory than there is. */
static int too_large(const fmm_forecast_case *what, const fmm_forecast *f) {
  double memory = what->machine->device[FMM_DEVICE_GPU].memory_mb * 1048576.0, cap = what->device_memory_bytes;
  if (cap > 0 && (cap < memory || memory == 0)) memory = cap;
  return uses_gpu(&f->tuned.assignment) && memory > 0 && f->memory.device_least > memory;
}

static void make_costs(const fmm_forecast_case *what, int threads, int gpu_fits, fmm_forecast *f) {
  fmm_machine machine = *what->machine;
  if (threads) fmm_machine_use_units(&machine, FMM_DEVICE_CPU, threads);
  fmm_cost_table_make(&machine, &f->counts, what->pair, &f->costs);
  if (!gpu_fits) fmm_cost_table_forbid(&f->costs, FMM_DEVICE_GPU, "the GPU has not enough memory");
}

/* Prices what is chosen for all cores for the threads that there will be. */
static void price(const fmm_forecast_case *what, int gpu_fits, fmm_forecast *f) {
  make_costs(what, 0, gpu_fits, f);
  f->n_schedules = fmm_schedule_evaluate_all(&f->costs, &what->precisions, f->schedule);
  make_costs(what, what->threads, gpu_fits, f);
  for (int i = 0; i < f->n_schedules; i++) fmm_makespan_of(&f->costs, &f->schedule[i].assignment, &f->schedule[i].makespan);
  fmm_makespan_of(&f->costs, &f->tuned.assignment, &f->tuned.makespan);
}

fmm_status fmm_forecast_make(const fmm_forecast_case *what, fmm_forecast *forecast) {
  fmm_forecast f;
  FMM_TRY(tune(what, what->kind, &f));
  int gpu_fits = !too_large(what, &f);
  if (!gpu_fits && what->kind != FMM_SCHEDULE_AUTO)
    return FMM_FAIL(FMM_ERR_MEMORY, "schedule %s needs at least %.0f MB on the GPU, more than it has or may use; choose auto or cpu, or fewer points",
                    fmm_schedule_name(what->kind), f.memory.device_least / 1e6);
  if (!gpu_fits) FMM_TRY(tune(what, FMM_SCHEDULE_CPU, &f));
  price(what, gpu_fits, &f);
  *forecast = f;
  return FMM_OK;
}

void fmm_forecast_phase(const fmm_forecast *forecast, fmm_phase phase, fmm_device device, double *seconds, double interval[2]) {
  const fmm_cost *cost = &forecast->costs.total[phase][device][fmm_precision_index(forecast->tuned.assignment.precision[phase])];
  *seconds = cost->feasible ? cost->seconds : NAN;
  const double error = cost->p90_error; /* of what is foretold, relative to what is measured */
  interval[0] = error > 0 ? *seconds / (1 + error) : NAN;
  interval[1] = error > 0 ? error < 1 ? *seconds / (1 - error) : INFINITY : NAN;
}
