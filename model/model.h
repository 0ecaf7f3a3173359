/* From counts and rates to a cost table: time of every phase at every level on every device in every precision.
 * t = C * max(flops / peak, bytes / bandwidth) + overheads (launch, levels); C fitted a phase, device and precision; transfers are apart.
 * Pure functions over plain structs; no hardware is touched. Reference: Choi et al. 2014, section 4. */
#ifndef FMM_MODEL_H
#define FMM_MODEL_H
#include "model/machine.h"
#include "runtime/counts.h"

typedef struct fmm_cost {
  double seconds;    /* predicted; INFINITY when infeasible */
  double limit_s;    /* what the hardware allows: the same with C = 1 and no overheads */
  int feasible;
  const char *reason;/* why not feasible (static text), or NULL */
} fmm_cost;

typedef struct fmm_cost_table {
  fmm_cost total[FMM_N_PHASES][FMM_N_DEVICES][FMM_N_PRECISIONS];
  double level_s[FMM_N_PHASES][FMM_MAX_LEVELS][FMM_N_DEVICES][FMM_N_PRECISIONS];
  /* bytes that must cross the bus when a phase runs on the other device than its input or output (each way) */
  double density_bytes, potential_bytes, up_equivalent_bytes, down_check_bytes;
  double h2d_bytes_per_s, d2h_bytes_per_s, transfer_launch_s, driving_slowdown;
} fmm_cost_table;

void fmm_cost_table_make(const fmm_machine *machine, const fmm_counts *counts, const fmm_pair_info *pair, fmm_cost_table *table);

/* Analytic counts of a uniform tree, Choi et al. 2014 eqs. 2-5: b = n/q leaves. */
typedef struct fmm_choi_times { double up_s, ulist_s, vlist_s, down_s; } fmm_choi_times;
typedef struct fmm_choi_machine { double compute_peak_flops_per_s, memory_bytes_per_s, c_up, c_u, c_v, c_down; } fmm_choi_machine;
void fmm_choi_predict(const fmm_choi_machine *machine, double n_points, double leaf_size, int order, fmm_choi_times *times);

/* Which precision index (0 double, 1 single) a plan's precision uses. */
static inline int fmm_precision_index(fmm_precision p) { return p == FMM_PRECISION_MIXED || p == FMM_PRECISION_SINGLE; }
#endif
