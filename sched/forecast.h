/* Everything that is foretold of a case before it runs: best leaf size and root scale, counts, cost table, every named schedule, the one
 * chosen, memory. A pure function over a machine and a source of estimated counts; fmm_predict, fmm-predict and tests call it. */
#ifndef FMM_FORECAST_H
#define FMM_FORECAST_H
#include "model/footprint.h"
#include "sched/sched.h"

typedef struct fmm_forecast_case {
  const fmm_machine *machine;
  const fmm_pair_info *pair;
  fmm_precision_sets precisions;
  fmm_schedule_kind kind;
  int leaf_size;             /* 0: from the model */
  double root_scale;         /* 0: from the model */
  int threads;               /* of the CPU team (0: every core): fewer than the machine's cores take longer, but change no choice (bits may not depend on them) */
  double device_memory_bytes; /* the plan may hold on the GPU (0: the whole memory of the machine's) */
  int dimension;             /* of what the points fill: 1, 2 or 3 */
  fmm_tune_effort effort;    /* what choosing may take */
  fmm_count_estimate *estimate;
  void *context;
} fmm_forecast_case;

typedef struct fmm_forecast {
  fmm_tuned tuned;           /* leaf size, root scale, assignment (with the precisions) and makespan of the choice */
  fmm_counts counts;
  fmm_cost_table costs;
  int n_schedules;
  fmm_schedule_outcome schedule[FMM_MAX_SCHEDULES];
  fmm_footprint memory;
} fmm_forecast;

/* Errors of estimate; FMM_ERR_DEVICE when the schedule asked for cannot run, FMM_ERR_MEMORY when its arrays do not fit on the GPU. AUTO then
 * takes the CPU, and the GPU's cells say so. */
fmm_status fmm_forecast_make(const fmm_forecast_case *what, fmm_forecast *forecast);

/* Seconds of a phase on a device in the precision chosen for it, and where the time it takes lies if it was foretold as well as 90 % of the held-out runs of its fit (NaN: never checked; to infinity where these were foretold twice as long and more). NaN: cannot run there. */
void fmm_forecast_phase(const fmm_forecast *forecast, fmm_phase phase, fmm_device device, double *seconds, double interval[2]);
#endif
