/* GPU measurements (gpu.h). */
#include "calib/gpu.h"

#include <string.h>

#include "calib/bench.h"
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
  for (int i = 0; i < FMM_GPU_N_RATES; i++) {
    double values[MOST_REPEATS], unit;
    int n = repeats < MOST_REPEATS ? repeats : MOST_REPEATS;
    fmm_rate *rate = fmm_node_gpu_rate(gpu, (fmm_gpu_rate)i, &unit);
    for (int r = 0; r < n; r++) FMM_TRY(fmm_gpu_measure(0, sms, (fmm_gpu_rate)i, &values[r]));
    *rate = fmm_median_rate(n, values);
    rate->value *= unit;
  }
  return FMM_OK;
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
