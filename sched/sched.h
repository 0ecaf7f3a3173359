/* From a cost table to a choice: the phase DAG, the named schedules (one file each), the makespan of an assignment, the pick.
 * All pure functions. An infeasible cell makes a schedule infeasible, with the reason; it is never chosen.
 * DAG (Choi et al. 2014, fig. 3): up -> V; V, X -> down; U, and W (after up), beside them; one sum at the end. */
#ifndef FMM_SCHED_H
#define FMM_SCHED_H
#include "model/model.h"

/* The arithmetic of each phase, in the sets that keep a tolerance: of a schedule the faster is taken, the first among equals. */
enum { FMM_MAX_PRECISION_SETS = 2 };
typedef struct fmm_precision_sets { int n; fmm_precision set[FMM_MAX_PRECISION_SETS][FMM_N_PHASES]; } fmm_precision_sets;

typedef struct fmm_assignment {
  fmm_schedule_kind kind;
  double gpu_fraction[FMM_N_PHASES]; /* 0: CPU, 1: GPU, between: that part of the phase's work (U, V, W, X only) */
  fmm_precision precision[FMM_N_PHASES];
} fmm_assignment;

typedef struct fmm_makespan {
  int feasible;
  const char *reason;       /* of infeasibility */
  double seconds;
  double phase_start_s[FMM_N_PHASES][FMM_N_DEVICES], phase_end_s[FMM_N_PHASES][FMM_N_DEVICES]; /* NaN: not there */
  double device_busy_s[FMM_N_DEVICES], transfer_s;
} fmm_makespan;

typedef struct fmm_schedule {
  fmm_schedule_kind kind;
  const char *name, *summary;
  void (*assign)(const fmm_cost_table *costs, const fmm_precision precision[FMM_N_PHASES], fmm_assignment *assignment);
} fmm_schedule;

/* Fills an assignment: each phase wholly on one device. For the files under sched/schedules/. */
void fmm_assign_phases(fmm_assignment *assignment, fmm_schedule_kind kind, const fmm_device device[FMM_N_PHASES], const fmm_precision precision[FMM_N_PHASES]);

extern const fmm_schedule *const fmm_schedules[]; /* NULL-terminated, generated from the Meson list `schedules` */
const fmm_schedule *fmm_schedule_find(fmm_schedule_kind kind);
const char *fmm_schedule_name(fmm_schedule_kind kind);

/* Dependencies as data: depends[a][b] nonzero when a needs b's result. */
extern const unsigned char fmm_phase_depends[FMM_N_PHASES][FMM_N_PHASES];
extern const unsigned char fmm_phase_divisible[FMM_N_PHASES];      /* U, V, W, X: by ranges of boxes */
extern const unsigned char fmm_phase_reads_densities[FMM_N_PHASES]; /* up, U, X */
/* Which of the phases that could start first does, on either device: those that others wait for. */
extern const fmm_phase fmm_phase_priority[FMM_N_PHASES];

/* The makespan, by list scheduling: each device runs one phase at a time, whichever can start first, ties by fmm_phase_priority; copies on the bus
 * (one engine each way) overlap with both; densities start on the host, results end there; CPU phases are slowed while a GPU is
 * driven; results of both devices are added at the end; frame_s is added when the CPU takes part (start and end times leave it out). Phases without work and their copies take no part. */
void fmm_makespan_of(const fmm_cost_table *costs, const fmm_assignment *assignment, fmm_makespan *result);

/* The named schedule and the set of precisions with the smallest makespan; ties: the first in the registry, the first set. FMM_ERR_DEVICE when `kind` is
 * named and infeasible. */
fmm_status fmm_schedule_choose(const fmm_cost_table *costs, const fmm_precision_sets *precisions, fmm_schedule_kind kind, fmm_assignment *assignment,
                               fmm_makespan *makespan);

/* Every named schedule on these costs, each with the set that is best for it, in registry order; returns how many. For reports. */
enum { FMM_MAX_SCHEDULES = 16 };
typedef struct fmm_schedule_outcome { const fmm_schedule *schedule; fmm_assignment assignment; fmm_makespan makespan; } fmm_schedule_outcome;
int fmm_schedule_evaluate_all(const fmm_cost_table *costs, const fmm_precision_sets *precisions, fmm_schedule_outcome outcome[FMM_MAX_SCHEDULES]);

/* Tuner: leaf size and root scale with the smallest makespan, over schedules and sets of precisions. Estimated counts come from the caller (sorted keys or a named distribution),
 * of up to FMM_ESTIMATES_AT_ONCE (runtime/estimate.h) trees at once where the next ones are known. */
typedef fmm_status fmm_count_estimate(void *context, int n, const fmm_tree_options *choice, fmm_counts *counts);
typedef struct fmm_tuned { int leaf_size; double root_scale; fmm_assignment assignment; fmm_makespan makespan; int n_estimates; } fmm_tuned;
/* What a search may take: seconds of one estimate (0: nothing, all that gains is tried), and how many evaluations the tree is for (0: nobody knows; then ten, or 1.5 seconds of them where that is
 * more). even: NULL, or, where the points fill a cube evenly, FMM_EVEN_TREES counts of as many in full trees, by rising points a leaf: the search begins at what is best by these. */
typedef struct fmm_tune_effort { double estimate_s, executions; const fmm_counts *even; } fmm_tune_effort;
/* leaf_size or root_scale nonzero: kept. effort: NULL as one of zeros. dimension: of what the points fill, 1, 2 or 3. At most FMM_MAX_ESTIMATES estimates, never twice of the same pair. The tree of one leaf
 * (direct sums) is always among the candidates. AUTO finds about what it finds for each schedule by name, but for those half as slow again as the best on every tree that was looked at; where estimates cost something, what is far behind is mostly given up (up to 14 % were lost of some few cases of small problems, tests/sched/test_tune.c). Errors of estimate are passed on; FMM_ERR_DEVICE when `kind` cannot run. */
enum { FMM_MAX_ESTIMATES = 64 };
fmm_status fmm_tune(const fmm_machine *machine, const fmm_pair_info *pair, const fmm_precision_sets *precisions, fmm_schedule_kind kind, int leaf_size,
                    double root_scale, int dimension, const fmm_tune_effort *effort, fmm_count_estimate *estimate, void *context, fmm_tuned *best);
#endif
