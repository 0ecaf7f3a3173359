/* Runs an assignment of phases to devices, both at once. On the CPU the phases follow one another, each with the whole team; on the GPU they are
 * enqueued and return at once, so the driving thread is one of the team. What crosses the bus: densities (all GPU work), upward equivalents and
 * downward check potentials where a phase and its input are on different devices, potentials at the end. A phase may be split: the GPU takes the
 * first rows of its list. The order of the sums into every value is fixed by the assignment alone. */
#include <math.h>
#include <string.h>

#include "column_units.h"
#include "plan.h"
#include "time_shares.h"

const fmm_phase_impl *const fmm_cpu_phases[FMM_N_PHASES] = {&fmm_up_cpu, &fmm_ulist_cpu, &fmm_vlist_cpu, &fmm_wlist_cpu, &fmm_xlist_cpu, &fmm_down_cpu};

static int64_t rows_of(const fmm_setup *s, fmm_phase phase) {
  switch (phase) {
    case FMM_PHASE_ULIST: return s->lists.u.n_rows;
    case FMM_PHASE_VLIST: return s->lists.v.n_rows;
    case FMM_PHASE_WLIST: return s->lists.w.n_rows;
    case FMM_PHASE_XLIST: return s->lists.x.n_rows;
    default: return s->far_field ? s->tree.n_boxes : 0;
  }
}

/* First rows of the list that hold `fraction` of its entries. */
static int64_t part_of(const fmm_rows *rows, double fraction) {
  if (fraction <= 0) return 0;
  if (fraction >= 1) return rows->n_rows;
  double wanted = fraction * (double)rows->n_entries;
  int64_t r = 0;
  while (r < rows->n_rows && (double)rows->offset[r] < wanted) r++;
  return r;
}

void fmm_dispatch_split(fmm_setup *s) {
  const double *f = s->assignment.gpu_fraction;
  s->gpu_rows[FMM_PHASE_ULIST] = part_of(&s->lists.u, f[FMM_PHASE_ULIST]);
  s->gpu_rows[FMM_PHASE_VLIST] = part_of(&s->lists.v, f[FMM_PHASE_VLIST]);
  s->gpu_rows[FMM_PHASE_WLIST] = part_of(&s->lists.w, f[FMM_PHASE_WLIST]);
  s->gpu_rows[FMM_PHASE_XLIST] = part_of(&s->lists.x, f[FMM_PHASE_XLIST]);
  s->gpu_rows[FMM_PHASE_UP] = f[FMM_PHASE_UP] > 0.5 ? rows_of(s, FMM_PHASE_UP) : 0;
  s->gpu_rows[FMM_PHASE_DOWN] = f[FMM_PHASE_DOWN] > 0.5 ? rows_of(s, FMM_PHASE_DOWN) : 0;
}

static int on_gpu(const fmm_setup *s, fmm_phase phase) { return s->gpu_rows[phase] > 0; }
int fmm_dispatch_on_cpu(const fmm_setup *s, fmm_phase phase) { return s->gpu_rows[phase] < rows_of(s, phase); }
static int on_cpu(const fmm_setup *s, fmm_phase phase) { return fmm_dispatch_on_cpu(s, phase); }

int fmm_dispatch_uses(const fmm_setup *s, fmm_device device) {
  for (int phase = 0; phase < FMM_N_PHASES; phase++)
    if (device == FMM_DEVICE_GPU ? on_gpu(s, phase) : on_cpu(s, phase)) return 1;
  return 0;
}

static void add(double *sum, const double *term, size_t n, int threads) {
#pragma omp parallel for num_threads(threads) schedule(static)
  for (size_t i = 0; i < n; i++) sum[i] += term[i];
}

static size_t expansion_values(const fmm_setup *s) {
  return s->far_field ? (size_t)s->tree.n_boxes * (size_t)(s->state.n_columns * s->operators->n) : 0;
}
static size_t result_values(const fmm_setup *s) { return (size_t)s->n_result_planes * (size_t)s->tree.targets.n; }

/* The CPU's rows of a phase. */
static fmm_status run_cpu(fmm_setup *s, fmm_trace *trace, fmm_phase phase) {
  if (!on_cpu(s, phase)) return FMM_OK;
  double begin = fmm_now_s();
  FMM_TRY(fmm_cpu_phases[phase]->run(&s->state, s->gpu_rows[phase], rows_of(s, phase)));
  double end = fmm_now_s();
  s->info.phase_measured_s[phase] = end - begin;
  fmm_trace_add(trace, "cpu", fmm_phase_names[phase], begin, end);
  return FMM_OK;
}

static fmm_status run_gpu(fmm_setup *s, fmm_phase phase) { return on_gpu(s, phase) ? fmm_gpu_run(s->gpu, phase, 0, s->gpu_rows[phase]) : FMM_OK; }

/* What the GPU can do before the CPU has done anything. */
static fmm_status start_gpu(fmm_setup *s, const fmm_call *call) {
  int up = on_gpu(s, FMM_PHASE_UP);
  FMM_TRY(fmm_gpu_begin(s->gpu, call->densities, call->densities_space));
  FMM_TRY(run_gpu(s, FMM_PHASE_UP));
  if (up && (on_cpu(s, FMM_PHASE_VLIST) || on_cpu(s, FMM_PHASE_WLIST))) FMM_TRY(fmm_gpu_fetch(s->gpu, FMM_GPU_UP_EQUIVALENT, s->up_equivalent));
  FMM_TRY(run_gpu(s, FMM_PHASE_ULIST));
  FMM_TRY(run_gpu(s, FMM_PHASE_XLIST));
  if (up) {
    FMM_TRY(run_gpu(s, FMM_PHASE_VLIST));
    FMM_TRY(run_gpu(s, FMM_PHASE_WLIST));
    if (!on_cpu(s, FMM_PHASE_VLIST) && !on_cpu(s, FMM_PHASE_XLIST)) FMM_TRY(run_gpu(s, FMM_PHASE_DOWN));
  }
  return FMM_OK;
}

/* Upward equivalents where they are needed: made here and sent, or made there and awaited behind work that needs none. */
static fmm_status exchange_up(fmm_setup *s, fmm_trace *trace) {
  FMM_TRY(run_cpu(s, trace, FMM_PHASE_UP));
  if (on_cpu(s, FMM_PHASE_UP) && (on_gpu(s, FMM_PHASE_VLIST) || on_gpu(s, FMM_PHASE_WLIST))) {
    FMM_TRY(fmm_gpu_send(s->gpu, FMM_GPU_UP_EQUIVALENT, s->up_equivalent, 0, s->tree.n_boxes));
    FMM_TRY(run_gpu(s, FMM_PHASE_VLIST));
    FMM_TRY(run_gpu(s, FMM_PHASE_WLIST));
  }
  if (!on_gpu(s, FMM_PHASE_UP) || (!on_cpu(s, FMM_PHASE_VLIST) && !on_cpu(s, FMM_PHASE_WLIST))) return FMM_OK;
  FMM_TRY(run_cpu(s, trace, FMM_PHASE_ULIST));
  return fmm_gpu_wait(s->gpu, FMM_GPU_UP_EQUIVALENT);
}

/* Check potentials to where down runs. */
static fmm_status exchange_check(fmm_setup *s, fmm_trace *trace) {
  int gpu_part = on_gpu(s, FMM_PHASE_VLIST) || on_gpu(s, FMM_PHASE_XLIST), cpu_part = on_cpu(s, FMM_PHASE_VLIST) || on_cpu(s, FMM_PHASE_XLIST);
  int fetches = on_cpu(s, FMM_PHASE_DOWN) && gpu_part;
  if (fetches) FMM_TRY(fmm_gpu_fetch(s->gpu, FMM_GPU_DOWN_CHECK, s->gpu_check));
  FMM_TRY(run_cpu(s, trace, FMM_PHASE_VLIST));
  FMM_TRY(run_cpu(s, trace, FMM_PHASE_XLIST)); /* adds to what V wrote */
  if (on_gpu(s, FMM_PHASE_DOWN)) {
    if (cpu_part) FMM_TRY(fmm_gpu_send(s->gpu, FMM_GPU_DOWN_CHECK, s->down_check, 0, s->tree.n_boxes));
    return cpu_part || on_cpu(s, FMM_PHASE_UP) ? run_gpu(s, FMM_PHASE_DOWN) : FMM_OK; /* else it was enqueued at the start */
  }
  FMM_TRY(run_cpu(s, trace, FMM_PHASE_WLIST));
  if (fetches) {
    FMM_TRY(fmm_gpu_wait(s->gpu, FMM_GPU_DOWN_CHECK));
    add(s->down_check, s->gpu_check, expansion_values(s), s->state.threads);
  }
  return run_cpu(s, trace, FMM_PHASE_DOWN);
}

/* Phases of two streams share the device, and what both have of it was not measured apart. */
static fmm_status time_gpu(fmm_setup *s, fmm_trace *trace, double zero_s) {
  fmm_under_way work[FMM_N_PHASES];
  double share_s[FMM_N_PHASES];
  _Static_assert((int)FMM_N_PHASES <= (int)FMM_MOST_UNDER_WAY, "all of them at once");
  for (int phase = 0; phase < FMM_N_PHASES; phase++) {
    fmm_under_way *w = &work[phase];
    FMM_TRY(fmm_gpu_phase_span(s->gpu, phase, &w->begin, &w->end));
    w->foretold = s->info.phase_predicted_s[phase];
    if (w->end > 0) fmm_trace_add(trace, phase == FMM_PHASE_ULIST || phase == FMM_PHASE_WLIST ? "gpu near" : "gpu far", fmm_phase_names[phase], zero_s + w->begin, zero_s + w->end);
  }
  fmm_time_shares(FMM_N_PHASES, work, share_s);
  for (int phase = 0; phase < FMM_N_PHASES; phase++)
    if (on_gpu(s, phase)) s->info.phase_measured_s[phase] = fmax(s->info.phase_measured_s[phase], share_s[phase]); /* of both devices' parts the longer */
  return FMM_OK;
}

static fmm_status trace_copies(fmm_setup *s, fmm_trace *trace, double zero_s) {
  static const char *const copies[FMM_GPU_N_COPIES] = {"densities to gpu", "expansions to gpu", "expansions from gpu", "results from gpu"};
  for (int copy = 0; copy < FMM_GPU_N_COPIES; copy++) {
    double begin, end;
    FMM_TRY(fmm_gpu_copy_span(s->gpu, copy, &begin, &end));
    if (end > 0) fmm_trace_add(trace, copy == FMM_GPU_COPY_DENSITIES || copy == FMM_GPU_COPY_SEND ? "copy in" : "copy out", copies[copy], zero_s + begin, zero_s + end);
  }
  return FMM_OK;
}

/* The GPU's results: to the caller when they are all, else added to the CPU's. */
static fmm_status collect(fmm_setup *s, fmm_call *call) {
  if (!fmm_dispatch_uses(s, FMM_DEVICE_CPU) && !s->n_nested) {
    FMM_TRY(fmm_gpu_results(s->gpu, s->factor, s->gradient_factor, call->potential, call->gradient, call->results_space));
    call->delivered = 1;
    return fmm_gpu_finish(s->gpu);
  }
  FMM_TRY(fmm_gpu_fetch(s->gpu, FMM_GPU_POTENTIAL, s->gpu_potential));
  return FMM_OK;
}

static fmm_status run_all(fmm_setup *s, fmm_call *call, fmm_trace *trace) {
  FMM_TRY(exchange_up(s, trace));
  FMM_TRY(exchange_check(s, trace));
  if (on_gpu(s, FMM_PHASE_DOWN)) FMM_TRY(run_cpu(s, trace, FMM_PHASE_WLIST));
  int near_done = on_gpu(s, FMM_PHASE_UP) && (on_cpu(s, FMM_PHASE_VLIST) || on_cpu(s, FMM_PHASE_WLIST));
  if (s->gpu) FMM_TRY(collect(s, call));
  if (!near_done) FMM_TRY(run_cpu(s, trace, FMM_PHASE_ULIST));
  if (!s->gpu || call->delivered) return FMM_OK;
  FMM_TRY(fmm_gpu_finish(s->gpu));
  double begin = fmm_now_s();
  add(s->potential, s->gpu_potential, result_values(s), s->state.threads);
  fmm_trace_add(trace, "cpu", "sum of both devices", begin, fmm_now_s());
  return FMM_OK;
}

/* Whether the host has densities to gather and results to deliver: where the CPU takes part, or nobody does. */
static int on_host(const fmm_setup *s) { return fmm_dispatch_uses(s, FMM_DEVICE_CPU) || s->n_nested || !s->gpu; }

/* Densities in, all that phases add to cleared. A density that is not finite is an error that does not say which. */
static fmm_status start_host(fmm_setup *s, const fmm_call *call, fmm_trace *trace) {
  const int checks = on_cpu(s, FMM_PHASE_VLIST) || on_cpu(s, FMM_PHASE_XLIST) || on_cpu(s, FMM_PHASE_DOWN);
  const fmm_planes cleared[] = {{s->potential, s->n_result_planes, s->tree.targets.n}, {s->down_check, checks, (int64_t)expansion_values(s)}};
  double begin = fmm_now_s();
  s->state.largest_density = fmm_gather_densities(&s->tree.sources, s->n_density_planes, call->densities, s->density, 2, cleared, s->state.threads);
  if (s->column_exponent && isfinite(s->state.largest_density)) {
    fmm_column_exponents(s->density, s->n_density_planes, s->tree.sources.n, s->state.n_columns, s->column_exponent, s->state.threads);
    fmm_scale_columns(s->density, s->n_density_planes, s->tree.sources.n, s->state.n_columns, s->column_exponent, -1, s->state.threads);
    s->state.largest_density = 1;
  }
  fmm_trace_add(trace, "cpu", "gather densities", begin, fmm_now_s());
  return isfinite(s->state.largest_density) ? FMM_OK : FMM_FAIL(FMM_ERR_INPUT, "a density is not finite");
}

static fmm_status dispatch(fmm_setup *s, fmm_call *call, fmm_trace *trace) {
  double zero_s = fmm_now_s();
  if (s->gpu) FMM_TRY(start_gpu(s, call));
  if (on_host(s)) FMM_TRY(start_host(s, call, trace));
  FMM_TRY(run_all(s, call, trace));
  if (s->gpu) FMM_TRY(time_gpu(s, trace, zero_s));
  return s->gpu ? trace_copies(s, trace, zero_s) : FMM_OK;
}

fmm_status fmm_dispatch(fmm_setup *s, fmm_call *call, fmm_trace *trace) {
  memset(s->info.phase_measured_s, 0, sizeof s->info.phase_measured_s);
  call->delivered = 0;
  fmm_status status = dispatch(s, call, trace);
  if (status != FMM_OK && s->gpu) fmm_gpu_abandon(s->gpu); /* nothing of the caller's is in use when this returns */
  return status;
}
