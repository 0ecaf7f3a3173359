/* Work counts: exact numbers of what each phase must do for an actual tree (features of the model), by phase and level.
 * Flops, bytes and entries are formulas over tree and lists, next to the kernels they price (kernels/PHASE/PHASE_cost.c). */
#ifndef FMM_COUNTS_H
#define FMM_COUNTS_H
#include "kernels/pair/pair_info.h"
#include "lists.h"

/* Flops of a form are those it is written to do, also where it multiplies by zero (V: children that do not exist), so that a fitted
 * constant measures the code and not the tree; what is needed whatever the form is `pairs`. */
typedef struct fmm_work {
  double pairs;   /* kernel evaluations (U: source x target points; up, down, W, X: points x surface points, by solid harmonics points x degrees and orders); V: true M2L pairs of boxes */
  double flops;   /* floating-point operations of the form used: pair flops, 2 per multiply-add of products and of V's transforms, which are plain sums */
  double other;   /* of these, the ones of another kind than most, which have a constant of their own: up, down, W, X: products; V: transforms (which have one on a GPU alone, model/cost.c); else 0 */
  double bytes;   /* fewest bytes moved through memory, in double: inputs read once, outputs written once */
  double entries; /* list entries or boxes handled: the unit of per-item overhead (up, down: boxes; U, W, X: entries; V: values of parents' spectra, as sources and as targets; V on a GPU: fmm_vlist_gpu_work) */
  double longest; /* of the pairs, those that one multiprocessor (X: one warp) does alone after all others have ended, at worst (U and X on a GPU, on one level; else 0) */
} fmm_work;

/* Works that are counted: one a phase, and those of the phases that the GPU does in another form. */
enum { FMM_WORK_UP_GPU = FMM_N_PHASES, FMM_WORK_ULIST_GPU, FMM_WORK_ULIST_GPU_BOTH /* in both directions of a pair */, FMM_WORK_VLIST_GPU, FMM_WORK_WLIST_GPU, FMM_WORK_XLIST_GPU, FMM_WORK_DOWN_GPU, FMM_N_WORKS };

/* Order up to which sums onto and from surfaces follow their phase's precision; above it they are double (kernels/phase.h says why). */
enum { FMM_MOST_ORDER_OF_CHEAP_SUMS = 5 };

typedef struct fmm_counts {
  int order, n_columns, gradient;
  int n_surface;                 /* 6(p-1)^2 + 2 */
  int n_levels;
  int same_points;               /* targets are the sources */
  int third_order;               /* as in the case */
  double tolerance;              /* likewise */
  int both_on_gpu[2];            /* a GPU sums U in both directions of a pair: in double, in single */
  double own_pairs;              /* of U's pairs in both directions on a GPU, those of leaves with themselves; 0 where a GPU is not asked about */
  double tight_share;            /* of U's work, which a GPU sums in double though the phase is in single (kernels/ulist/ulist_tight.c) */
  int64_t n_sources, n_targets, n_leaves, n_boxes, v_pairs;
  fmm_work level[FMM_N_WORKS][FMM_MAX_LEVELS]; /* by phase: [phase] is that of the CPU's form, [fmm_work_on(..)] of either */
  fmm_work total[FMM_N_WORKS];
} fmm_counts;

/* The work of a phase on a device; single: in what precision. */
static inline int fmm_work_on(const fmm_counts *c, fmm_phase phase, fmm_device device, int single) {
  if (device == FMM_DEVICE_CPU) return phase;
  if (phase == FMM_PHASE_ULIST) return c->both_on_gpu[single != 0] ? FMM_WORK_ULIST_GPU_BOTH : FMM_WORK_ULIST_GPU;
  static const int on_gpu[FMM_N_PHASES] = {FMM_WORK_UP_GPU, FMM_WORK_ULIST_GPU, FMM_WORK_VLIST_GPU, FMM_WORK_WLIST_GPU, FMM_WORK_XLIST_GPU, FMM_WORK_DOWN_GPU};
  return on_gpu[phase];
}

typedef struct fmm_count_case {
  const fmm_pair_info *pair;
  int order, n_columns, gradient;
  int no_gpu; /* works of the GPU's forms stay zero */
  int third_order; /* a GPU's sums in double take a third-order step (kernels/pair/pair_both.h) */
  double tolerance; /* what sums must keep, which is priced, and in single on a GPU keep by tiles in double; 0: not known, and nothing is too tight */
  int64_t all_targets; /* of a tree that stands for part of a problem; 0: the tree's */
} fmm_count_case;

static inline int fmm_surface_size(int order) { return 6 * (order - 1) * (order - 1) + 2; }

/* Flops of one pair: the interaction's own for one column, and a multiply-add a column, component and output for each further one. */
static inline double fmm_pair_flops(const fmm_pair_info *pair, int gradient, int n_columns) {
  double one = gradient ? pair->gradient_flops : pair->flops;
  return one + 2.0 * (n_columns - 1) * pair->components * pair->outputs * (gradient ? 4 : 1);
}

/* Instructions of one pair besides the reciprocal square root, likewise (the mix that Choi et al. 2014, eq. 6, prices). */
static inline double fmm_pair_instructions(const fmm_pair_info *pair, int gradient, int n_columns) {
  double one = gradient ? pair->gradient_instructions : pair->instructions;
  return one + (double)(n_columns - 1) * pair->components * pair->outputs * (gradient ? 4 : 1);
}

/* Values of one equivalent or check surface: components x points. */
static inline double fmm_count_unknowns(const fmm_count_case *what) {
  return (double)what->pair->equivalent_components * fmm_surface_size(what->order);
}

/* Bytes of one source point and its densities, of one target point and its results, in double. */
static inline double fmm_source_bytes(const fmm_count_case *what) {
  return 8.0 * (3 + 3 * (what->pair->takes_normals != 0) + what->pair->components * what->n_columns);
}
static inline double fmm_target_bytes(const fmm_count_case *what) {
  return 8.0 * (3 + what->pair->outputs * (what->gradient ? 4 : 1) * what->n_columns);
}

/* Exact counts; they do not depend on the threads, who share out the works. FMM_ERR_MEMORY only (V marks boxes). */
fmm_status fmm_count_work(const fmm_tree *tree, const fmm_lists *lists, const fmm_count_case *what, int threads, fmm_counts *counts);
extern const char *const fmm_phase_names[FMM_N_PHASES]; /* "up", "ulist", ... */

/* counts->total from counts->level: for those who fill levels themselves. */
void fmm_counts_add_up(fmm_counts *counts);

/* One function a phase, in kernels/PHASE/PHASE_cost.c: fills level[] of its phase; level is zero on entry. */
typedef fmm_status fmm_phase_cost(const fmm_tree *tree, const fmm_lists *lists, const fmm_count_case *what, fmm_work level[FMM_MAX_LEVELS]);
fmm_phase_cost fmm_up_cost, fmm_ulist_cost, fmm_vlist_cost, fmm_wlist_cost, fmm_xlist_cost, fmm_down_cost;
fmm_phase_cost fmm_up_gpu_cost, fmm_ulist_gpu_cost, fmm_ulist_gpu_both_cost, fmm_vlist_gpu_cost, fmm_wlist_gpu_cost, fmm_xlist_gpu_cost, fmm_down_gpu_cost;
extern fmm_phase_cost *const fmm_phase_costs[FMM_N_WORKS];

/* Whether a GPU sums this tree's U in both directions of a pair (where there is room for it), in double or in single. */
int fmm_ulist_both_on_gpu(const fmm_tree *tree, const fmm_count_case *what, int single);
/* Pairs of leaves with themselves, as they are counted then. */
double fmm_ulist_gpu_own_pairs(const fmm_tree *tree, const fmm_count_case *what);
/* Of direct sums alone, one way, on a GPU; bytes are left out. And in both directions, of a pair for which fmm_pair_both_on_gpu is true; no pairs where they go one way. */
fmm_work fmm_ulist_gpu_direct(const fmm_pair_info *pair, int gradient, int n_columns, int64_t n_sources, int64_t n_targets);
fmm_work fmm_ulist_gpu_direct_both(const fmm_pair_info *pair, int gradient, int64_t points);

/* Share of U's work that is too tight for float on a GPU at this tolerance; all_targets: as in the case. FMM_ERR_MEMORY only. */
fmm_status fmm_tight_share(const fmm_tree *tree, const fmm_rows *u, int64_t all_targets, double tolerance, double *share);

/* First level whose boxes have equivalent densities: boxes of coarser levels are all adjacent and are in no list. */
enum { FMM_FIRST_FAR_LEVEL = 2 };

/* Work of one box of up or down, of one V box and of one V block, shared by the exact counts and by tests. */
typedef struct fmm_box_work { double leaf_flops, parent_flops, box_bytes, leaf_operator_bytes, parent_operator_bytes; } fmm_box_work;
fmm_box_work fmm_box_work_of(const fmm_count_case *what);
typedef struct fmm_vlist_work { double frequencies, transform_flops, block_flops, spectrum_values, spectrum_bytes, operator_bytes; } fmm_vlist_work;
fmm_vlist_work fmm_vlist_work_of(const fmm_count_case *what);
/* Pairs of parents of V's list, of what was counted of its products on CPU cores. */
static inline double fmm_vlist_parent_pairs(const fmm_count_case *what, const fmm_work *work) { return (work->flops - work->other) / fmm_vlist_work_of(what).block_flops; }
/* The same on the GPU: of a parent's transforms, one way, and of eight parents' products in one direction. entries: blocks of a window and a frequency. */
typedef struct fmm_vlist_gpu_work { double parent_flops, parent_bytes, product_flops; } fmm_vlist_gpu_work;
fmm_vlist_gpu_work fmm_vlist_gpu_work_of(const fmm_count_case *what);
/* V on CPU cores: how many slices of spectra are in memory at once. */
int fmm_vlist_slices(int order, int threads);
/* A third of a slab's groups of eight boxes, targets' and sources', for values of real_bytes; bytes of its workspace for this many parent boxes with rows. */
int64_t fmm_vlist_slab_rows(const fmm_count_case *what, size_t real_bytes);
double fmm_vlist_workspace_bytes(const fmm_count_case *what, size_t real_bytes, double n_parents, double children_a_parent, int threads);
#endif
