/* Runs an assignment of phases to devices. On the CPU the phases follow one another in one fixed order, each with the whole team, so
 * that sums into the same potentials always come in the same order. */
#include <string.h>

#include "plan.h"

static const fmm_phase_impl *const cpu_phases[FMM_N_PHASES] = {&fmm_up_cpu, &fmm_ulist_cpu, &fmm_vlist_reference, &fmm_wlist_cpu, &fmm_xlist_cpu, &fmm_down_cpu};
static const fmm_phase cpu_order[FMM_N_PHASES] = {FMM_PHASE_UP, FMM_PHASE_VLIST, FMM_PHASE_XLIST, FMM_PHASE_WLIST, FMM_PHASE_ULIST, FMM_PHASE_DOWN};

static void clear(double *values, size_t n, int threads) {
#pragma omp parallel for num_threads(threads) schedule(static)
  for (size_t i = 0; i < n; i++) values[i] = 0;
}

static int64_t rows_of(const fmm_setup *s, fmm_phase phase) {
  switch (phase) {
    case FMM_PHASE_ULIST: return s->lists.u.n_rows;
    case FMM_PHASE_VLIST: return s->lists.v.n_rows;
    case FMM_PHASE_WLIST: return s->lists.w.n_rows;
    case FMM_PHASE_XLIST: return s->lists.x.n_rows;
    default: return s->far_field ? s->tree.n_boxes : 0;
  }
}

fmm_status fmm_dispatch(fmm_setup *s, fmm_trace *trace) {
  fmm_state *state = &s->state;
  clear(s->potential, (size_t)s->n_result_planes * (size_t)s->tree.targets.n, state->threads);
  if (s->far_field) clear(s->down_check, (size_t)s->tree.n_boxes * (size_t)(state->n_columns * state->operators->n), state->threads);
  for (int i = 0; i < FMM_N_PHASES; i++) {
    fmm_phase phase = cpu_order[i];
    if (!rows_of(s, phase)) continue;
    double begin = fmm_now_s();
    FMM_TRY(cpu_phases[phase]->run(state, 0, rows_of(s, phase)));
    double end = fmm_now_s();
    s->info.phase_measured_s[phase] = end - begin;
    fmm_trace_add(trace, "cpu", fmm_phase_names[phase], begin, end);
  }
  return FMM_OK;
}
