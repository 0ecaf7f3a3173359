/* Work counts: exact numbers of what each phase must do for an actual tree (features of the model), by phase and level.
 * Flops, bytes and entries are formulas over tree and lists, next to the kernels they price (kernels/PHASE/PHASE_cost.c). */
#ifndef FMM_COUNTS_H
#define FMM_COUNTS_H
#include "kernels/pair/pair_info.h"
#include "lists.h"

typedef struct fmm_work {
  double pairs;   /* kernel evaluations (U: source x target points; P2M, L2P, W, X: points x surface points) */
  double flops;   /* floating-point operations of the form used: pair flops, 2 per multiply-add of products, FFT 2.5 n log2 n per real transform */
  double bytes;   /* fewest bytes moved through memory: inputs read once, outputs written once */
  double entries; /* list entries or boxes handled: the unit of per-item overhead */
} fmm_work;

typedef struct fmm_counts {
  int order, n_columns, gradient;
  int n_surface;                 /* 6(p-1)^2 + 2 */
  int n_levels;
  int64_t n_sources, n_targets, n_leaves, n_boxes, v_pairs;
  fmm_work level[FMM_N_PHASES][FMM_MAX_LEVELS];
  fmm_work total[FMM_N_PHASES];
} fmm_counts;

typedef struct fmm_count_case { const fmm_pair_info *pair; int order, n_columns, gradient; } fmm_count_case;

static inline int fmm_surface_size(int order) { return 6 * (order - 1) * (order - 1) + 2; }

/* Exact counts. Never fails. */
void fmm_count_work(const fmm_tree *tree, const fmm_lists *lists, const fmm_count_case *what, fmm_counts *counts);

/* One function a phase, in kernels/PHASE/PHASE_cost.c: fills counts->level[phase]. */
typedef void fmm_phase_cost(const fmm_tree *tree, const fmm_lists *lists, const fmm_count_case *what, fmm_work level[FMM_MAX_LEVELS]);
fmm_phase_cost fmm_up_cost, fmm_ulist_cost, fmm_vlist_cost, fmm_wlist_cost, fmm_xlist_cost, fmm_down_cost;
#endif
