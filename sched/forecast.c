/* See forecast.h. The chosen tree's counts are asked for once more at the end, as the tuner keeps none. */
#include "sched/forecast.h"

#include <math.h>

fmm_status fmm_forecast_make(const fmm_forecast_case *what, fmm_forecast *forecast) {
  fmm_forecast f;
  FMM_TRY(fmm_tune(what->machine, what->pair, what->precision, what->kind, what->leaf_size, what->root_scale, what->estimate, what->context, &f.tuned));
  FMM_TRY(what->estimate(what->context, f.tuned.leaf_size, f.tuned.root_scale, &f.counts));
  fmm_cost_table_make(what->machine, &f.counts, what->pair, &f.costs);
  f.n_schedules = fmm_schedule_evaluate_all(&f.costs, what->precision, f.schedule);
  fmm_footprint_of(&f.counts, what->pair, what->threads, f.tuned.assignment.gpu_fraction, &f.memory);
  *forecast = f;
  return FMM_OK;
}

void fmm_forecast_phase(const fmm_forecast *forecast, const fmm_precision precision[FMM_N_PHASES], fmm_phase phase, fmm_device device, double *seconds,
                        double interval[2]) {
  const fmm_cost *cost = &forecast->costs.total[phase][device][fmm_precision_index(precision[phase])];
  *seconds = cost->feasible ? cost->seconds : NAN;
  interval[0] = *seconds * fmax(0, 1 - cost->p90_error);
  interval[1] = *seconds * (1 + cost->p90_error);
}
