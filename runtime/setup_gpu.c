/* The GPU's part of a plan's set-up: its device plan, and on the host the page-locked arrays that cross the bus and the copies of a caller's
 * device arrays where the CPU takes part. */
#include "plan.h"
#include "team_array.h"

static unsigned gpu_phases(const fmm_setup *s) {
  unsigned phases = 0;
  for (int phase = 0; phase < FMM_N_PHASES; phase++)
    if (s->gpu_rows[phase] > 0) phases |= 1u << phase;
  return phases;
}

static fmm_status lock(double *values) { return values ? fmm_gpu_register(values, fmm_memory_bytes(values)) : FMM_OK; }
static void unlock(double *values) {
  if (values) fmm_gpu_unregister(values);
}

/* Results and check potentials of the GPU that are added on the host. */
static fmm_status reserve_shared(fmm_setup *s) {
  if (!fmm_dispatch_uses(s, FMM_DEVICE_CPU) && !s->tree.n_clusters) return FMM_OK;
  int threads = s->state.threads;
  FMM_TRY(fmm_team_allocate(&s->gpu_potential, (size_t)s->n_result_planes, (size_t)s->tree.targets.n, threads, "the GPU's results"));
  if (s->far_field) FMM_TRY(fmm_team_allocate(&s->gpu_check, 1, (size_t)s->tree.n_boxes * (size_t)(s->state.n_columns * s->operators->n), threads, "the GPU's check potentials"));
  s->registered = 1;
  FMM_TRY(lock(s->gpu_potential));
  FMM_TRY(lock(s->gpu_check));
  if (!s->far_field) return FMM_OK;
  FMM_TRY(lock(s->up_equivalent));
  return lock(s->down_check);
}

static fmm_status reserve_copies(fmm_setup *s, const fmm_plan *plan) {
  int cpu = fmm_dispatch_uses(s, FMM_DEVICE_CPU) || s->tree.n_clusters;
  size_t values = (size_t)s->tree.targets.n_input * (size_t)(plan->pair->info->outputs * s->state.n_columns);
  if (cpu && plan->options.densities_space == FMM_MEMORY_DEVICE)
    FMM_TRY(FMM_ALLOCATE(&s->host_density, (size_t)s->tree.sources.n_input * (size_t)s->n_density_planes, "the host's copy of the densities"));
  if (!cpu || plan->options.results_space != FMM_MEMORY_DEVICE) return FMM_OK;
  FMM_TRY(FMM_ALLOCATE(&s->host_potential, values, "the host's copy of the potentials"));
  return s->state.gradient ? FMM_ALLOCATE(&s->host_gradient, 3 * values, "the host's copy of the gradients") : FMM_OK;
}

static fmm_status create(fmm_setup *s, const fmm_plan *plan) {
  FMM_TRY(reserve_copies(s, plan));
  if (!fmm_dispatch_uses(s, FMM_DEVICE_GPU)) return FMM_OK;
  const fmm_options *o = &plan->options;
  fmm_gpu_request request = {.state = &s->state, .device = o->gpu_device, .sms = o->gpu_sms, .phases = gpu_phases(s), .memory_cap = o->device_memory_cap,
                             .stream = o->cuda_stream, .threads = plan->threads, .stage = plan->spare_stage,
                             .densities_space = s->host_density ? FMM_MEMORY_HOST : o->densities_space, .results_space = o->results_space};
  FMM_TRY(fmm_gpu_plan_create(&s->gpu, &request));
  return reserve_shared(s);
}

fmm_status fmm_setup_gpu_create(fmm_setup *s, const fmm_plan *plan) {
  fmm_status status = create(s, plan);
  if (status != FMM_OK) fmm_setup_gpu_destroy(s);
  return status;
}

void fmm_setup_gpu_destroy(fmm_setup *s) {
  if (s->gpu) fmm_gpu_plan_destroy(&s->gpu);
  if (s->registered) {
    unlock(s->gpu_potential);
    unlock(s->gpu_check);
    if (s->far_field) unlock(s->up_equivalent), unlock(s->down_check);
    s->registered = 0;
  }
  FMM_FREE(&s->gpu_potential);
  FMM_FREE(&s->gpu_check);
  FMM_FREE(&s->host_density);
  FMM_FREE(&s->host_potential);
  FMM_FREE(&s->host_gradient);
}
