/* Work counts of an actual tree: calls the cost formula of every phase (kernels/PHASE/PHASE_cost.c) and adds up its levels.
 * The formulas stand beside the kernels they price, as the planner's costs do in FFTW. */
#include "counts.h"

#include <math.h>
#include <string.h>

#include "jobs.h"

fmm_phase_cost *const fmm_phase_costs[FMM_N_WORKS] = {
    [FMM_PHASE_UP] = fmm_up_cost,       [FMM_PHASE_ULIST] = fmm_ulist_cost, [FMM_PHASE_VLIST] = fmm_vlist_cost,
    [FMM_PHASE_WLIST] = fmm_wlist_cost, [FMM_PHASE_XLIST] = fmm_xlist_cost, [FMM_PHASE_DOWN] = fmm_down_cost,
    [FMM_WORK_UP_GPU] = fmm_up_gpu_cost, [FMM_WORK_ULIST_GPU] = fmm_ulist_gpu_cost, [FMM_WORK_ULIST_GPU_BOTH] = fmm_ulist_gpu_both_cost,
    [FMM_WORK_VLIST_GPU] = fmm_vlist_gpu_cost, [FMM_WORK_WLIST_GPU] = fmm_wlist_gpu_cost, [FMM_WORK_XLIST_GPU] = fmm_xlist_gpu_cost, [FMM_WORK_DOWN_GPU] = fmm_down_gpu_cost};

const char *const fmm_phase_names[FMM_N_PHASES] = {"up", "ulist", "vlist", "wlist", "xlist", "down"};

void fmm_counts_add_up(fmm_counts *counts) {
  for (int work = 0; work < FMM_N_WORKS; work++) {
    fmm_work total = {0};
    for (int level = 0; level < FMM_MAX_LEVELS; level++) {
      const fmm_work *w = &counts->level[work][level];
      total.pairs += w->pairs;
      total.flops += w->flops;
      total.other += w->other;
      total.bytes += w->bytes;
      total.entries += w->entries;
      total.longest += w->longest;
    }
    counts->total[work] = total;
  }
}

typedef struct formula { fmm_phase_cost *cost; const fmm_tree *tree; const fmm_lists *lists; const fmm_count_case *what; fmm_work *level; fmm_counts *counts; } formula;

static fmm_status evaluate(void *context) {
  const formula *f = context;
  return f->cost(f->tree, f->lists, f->what, f->level);
}

static fmm_status count_own_pairs(void *context) {
  const formula *f = context;
  f->counts->own_pairs = fmm_ulist_gpu_own_pairs(f->tree, f->what);
  return FMM_OK;
}

static fmm_status foretell_tight_share(void *context) {
  const formula *f = context;
  const int64_t targets = f->what->all_targets ? f->what->all_targets : f->tree->targets.n;
  return fmm_tight_share(f->tree, &f->lists->u, targets, f->what->tolerance, &f->counts->tight_share);
}

fmm_status fmm_count_work(const fmm_tree *tree, const fmm_lists *lists, const fmm_count_case *what, int threads, fmm_counts *counts) {
  fmm_counts c = {.order = what->order,
                  .n_columns = what->n_columns,
                  .gradient = what->gradient,
                  .n_surface = fmm_surface_size(what->order),
                  .n_levels = tree->n_levels,
                  .same_points = tree->same_points,
                  .third_order = what->third_order,
                  .tolerance = what->tolerance,
                  .both_on_gpu = {fmm_ulist_both_on_gpu(tree, what, 0), fmm_ulist_both_on_gpu(tree, what, 1)},
                  .n_sources = tree->sources.n,
                  .n_targets = tree->targets.n,
                  .n_leaves = tree->n_leaves,
                  .n_boxes = tree->n_boxes};
  const int large = what->no_gpu ? 1 << 13 : 1 << 11; /* trees of fewer boxes are not worth waking others */
  formula formulas[FMM_N_WORKS], all = {NULL, tree, lists, what, NULL, &c};
  fmm_job jobs[FMM_N_WORKS + 2];
  int n = what->no_gpu ? (int)FMM_N_PHASES : (int)FMM_N_WORKS;
  for (int work = 0; work < n; work++) {
    formulas[work] = (formula){fmm_phase_costs[work], tree, lists, what, c.level[work], &c};
    jobs[work] = (fmm_job){.name = "work", .run = evaluate, .context = &formulas[work]};
  }
  if (!what->no_gpu && c.both_on_gpu[1]) jobs[n++] = (fmm_job){.name = "own pairs", .run = count_own_pairs, .context = &all};
  if (!what->no_gpu && what->tolerance > 0) jobs[n++] = (fmm_job){.name = "tight tiles", .run = foretell_tight_share, .context = &all};
  FMM_TRY(fmm_jobs_run(jobs, n, tree->n_boxes < large ? 1 : threads));
  fmm_counts_add_up(&c);
  c.v_pairs = llround(c.total[FMM_PHASE_VLIST].pairs);
  *counts = c;
  return FMM_OK;
}

/* n x n operators; with parity check-to-equivalent factors are eight blocks of n/8, and the products of all eight children cost one n x n
 * (kernels/operators.h); without, eight. Up and down do the same, transposed. */
fmm_box_work fmm_box_work_of(const fmm_count_case *what) {
  double n = fmm_count_unknowns(what), product = 2 * n * n * what->n_columns;
  int parity = what->pair->parity != FMM_PARITY_NONE;
  double factor = parity ? 1.0 / 8 : 1, children = parity ? 1 : 8;
  return (fmm_box_work){.leaf_flops = 2 * factor * product,
                        .parent_flops = (children + factor) * product,
                        .box_bytes = 8 * n * what->n_columns,
                        .leaf_operator_bytes = 2 * factor * 8 * n * n,
                        .parent_operator_bytes = (children + factor) * 8 * n * n};
}
