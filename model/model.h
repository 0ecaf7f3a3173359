/* From counts and rates to a cost table: time of every phase at every level on every device in every precision.
 * t = C * max(compute, memory) a level + entry_s * entries + byte_s * bytes + (launch_s + chain_s * unknowns) * launches; constants fitted a phase, device and precision, C one
 * for each of two parts of the work; transfers are apart.
 * Pure functions over plain structs; no hardware is touched. Reference: Choi et al. 2014, section 4. */
#ifndef FMM_MODEL_H
#define FMM_MODEL_H
#include "model/machine.h"
#include "runtime/counts.h"

typedef struct fmm_cost {
  double seconds;    /* predicted; INFINITY when infeasible */
  double p90_error;  /* |predicted / measured - 1| of the ninth in ten of the held-out runs of this cell's fit; 0: never checked */
  double limit_s;    /* what the hardware allows: the same with C = 1 and no overheads, on a GPU with products by its tensor cores */
  int feasible;
  const char *reason;/* why not feasible (static text), or NULL */
} fmm_cost;

typedef struct fmm_cost_table {
  fmm_cost total[FMM_N_PHASES][FMM_N_DEVICES][FMM_N_PRECISIONS];
  double level_s[FMM_N_PHASES][FMM_MAX_LEVELS][FMM_N_DEVICES][FMM_N_PRECISIONS];
  /* bytes that must cross the bus when a phase runs on the other device than its input or output (each way) */
  double density_bytes, potential_bytes, up_equivalent_bytes, down_check_bytes;
  double h2d_bytes_per_s, d2h_bytes_per_s, transfer_launch_s, driving_slowdown;
  double staging_s_per_byte, staging_s, team_bytes; /* of densities, and of results that the GPU delivers, besides; of more than team_bytes staging_s in addition */
  double evaluation_s, joint_s; /* of the driver's calls and waits, where the GPU has all phases, and where both devices have some */
  double frame_s;    /* CPU seconds before and after the phases, wherever the CPU takes part: check, sort, clear, unsort */
  double sum_s;      /* CPU seconds to add the two devices' results: two read, one written, and a parallel region */
} fmm_cost_table;

extern const unsigned char fmm_phase_makes_results[FMM_N_PHASES]; /* U, W, down: those that gradients concern */
/* Seconds that the hardware allows for a phase (C = 1), with what a GPU's longest tile of U takes alone: the features that constants are fitted to. Of each level the larger of compute and memory. Compute is pairs at the pair rate and other flops at
 * the multiply-add peak, one after the other; the pair rate of a kernel follows from Laplace's by instructions a pair (eq. 6), as does that of sums along the rows of surfaces on a GPU. Single: half the bytes; what is in
 * single besides are pairs (onto and from surfaces up to the order where that serves) and V's products on the CPU; all other products are double. */
typedef struct fmm_roofline { double seconds, other_s /* of these, the part of the other kind: fmm_work */; } fmm_roofline;
fmm_roofline fmm_phase_roofline(const fmm_machine *machine, fmm_device device, const fmm_pair_info *pair, const fmm_counts *counts, fmm_phase phase, int precision_index);
/* Values of one surface, where the phase has surfaces. */
double fmm_phase_unknowns(const fmm_counts *counts, const fmm_pair_info *pair, fmm_phase phase);
/* Launches (GPU) or parallel regions (CPU): one a level with work for up and down, one for all levels of a list. */
int fmm_phase_launches(const fmm_counts *counts, fmm_phase phase);

/* Marks every cell of a device infeasible; reason is static text ("not enough device memory"). */
void fmm_cost_table_forbid(fmm_cost_table *table, fmm_device device, const char *reason);

/* Bytes that the CPU moves before and after its phases (runtime/gather.c): densities looked at, gathered by an index, results cleared, looked at and scattered by one, check potentials cleared.
 * The table's bytes that cross a bus are set. */
double fmm_frame_bytes(const fmm_cost_table *table, const fmm_counts *counts);
void fmm_cost_table_make(const fmm_machine *machine, const fmm_counts *counts, const fmm_pair_info *pair, fmm_cost_table *table);
/* Multiplies the constants of a phase's work by measured over foretold time; where part of U in single is done in double, the constant of that too, as one time cannot tell which was wrong. */
void fmm_cost_learn(fmm_machine *machine, const fmm_counts *counts, fmm_phase phase, fmm_device device, int precision, double ratio);

/* Times of a uniform tree by Choi et al. 2014, eqs. 2-5, as written there: b = n/q leaves, 11 flops a pair, 8 bytes a value. The paper leaves f1 and f2
 * of eqs. 4 and 5 undefined: both are taken as the surface points n_s = 6(p-1)^2 + 2 (operators are n_s x n_s). */
typedef struct fmm_choi_times { double up_s, ulist_s, vlist_s, down_s; } fmm_choi_times;
typedef struct fmm_choi_machine { double compute_peak_flops_per_s, memory_bytes_per_s, c_up, c_u, c_v, c_down; } fmm_choi_machine;
void fmm_choi_predict(const fmm_choi_machine *machine, double n_points, double leaf_size, int order, fmm_choi_times *times);

/* Effective peak of the Laplace pair sum, eq. 6: 11 flops in 7 + rsqrt_instructions. */
double fmm_choi_peak(double rsqrt_instructions, double hertz, double processors);

/* One measured run of one phase on one device in one precision, as features of the fit. other_s: part of roofline_s; bytes: in that precision; chain: launches times unknowns;
 * launches_s: what the profile's launch cost makes of `launches`, part of every prediction. */
typedef struct fmm_sample { double roofline_s, other_s, entries, bytes, launches, chain, launches_s, seconds; int held_out; } fmm_sample;
/* value > 0 and other, entry_s, byte_s, launch_s, chain_s >= 0 that minimise the squared relative error over the samples not held out; the errors over the held-out
 * ones (over all, when none is). other is 0, as value, where samples are eight or fewer, have no such part or nothing else, or are not told better so. Few samples fit fewer constants: up to
 * two value alone, up to five one more, up to eight two more, up to sixteen three more.
 * Runs that are launches for more than half are left out where others are. FMM_ERR_ARGUMENT without usable samples. */
fmm_status fmm_fit_constant(int n, const fmm_sample *samples, fmm_constant *constant);
/* A factor for runs of another kind than those of the fit, with gradients of all but launches, of another accuracy of the main part of the roofline, the sums: the median of measured over foretold, what it does not
 * multiply left out on both sides, over samples of such runs that are not launches for more than half and of which what it multiplies is at least half; 0 (not measured) without any. beside: a factor of all but
 * launches that such runs have besides, or 1. */
typedef enum fmm_factor_of { FMM_FACTOR_OF_ALL, FMM_FACTOR_OF_SUMS } fmm_factor_of;
fmm_status fmm_fit_factor(int n, const fmm_sample *samples, const fmm_constant *constant, fmm_factor_of of, double beside, double *factor);
/* What the model says for a sample, without such factors. */
double fmm_fit_predict(const fmm_constant *constant, const fmm_sample *sample);

/* Which precision index (0 double, 1 single) a plan's precision uses. */
static inline int fmm_precision_index(fmm_precision p) { return p == FMM_PRECISION_MIXED || p == FMM_PRECISION_SINGLE; }
#endif
