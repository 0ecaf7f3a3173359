/* W list on CPU cores: upward equivalent densities of finer, non-adjacent boxes onto a leaf's targets (M2P). A row of lists->w is one
 * piece of work, several of its boxes a call of the pair-sum engine; heavy ones are begun first. Workspace: [thread][box of the call][axis][surface point]. */
#include <omp.h>

#include "kernels/pair/pair_sums.h"
#include "kernels/phase.h"
#include "kernels/row_order.h"

static size_t thread_doubles(const fmm_state *state) { return (size_t)FMM_PAIR_MOST_LATTICES * 3 * (size_t)state->operators->n_surface; }

static fmm_pair_targets targets_of(const fmm_state *state, int32_t box) {
  const fmm_tree *tree = state->tree;
  int64_t begin = tree->target_begin[box];
  return (fmm_pair_targets){.n = tree->target_end[box] - begin, .x = tree->targets.x + begin, .y = tree->targets.y + begin,
                            .z = tree->targets.z + begin, .value = state->potential + begin,
                            .value_stride = state->n_columns * tree->targets.n, .column_stride = tree->targets.n};
}

/* A box's upward equivalent surface as sources; planes: 3 n_surface doubles. */
static fmm_pair_lattice surface_of(const fmm_state *state, int32_t box, double *planes) {
  const fmm_tree *tree = state->tree;
  const fmm_operators *o = state->operators;
  return (fmm_pair_lattice){.surface = &o->shape, .center = {tree->center_x[box], tree->center_y[box], tree->center_z[box]},
                            .radius = FMM_INNER_RADIUS * fmm_half_width(tree, tree->level[box]), .planes = planes,
                            .density = state->up_equivalent + (int64_t)box * state->n_columns * o->n, .component_stride = o->n_surface, .column_stride = o->n};
}

static void sum_row(const fmm_state *state, const fmm_pair_sum *sum, int64_t row, double *planes) {
  const fmm_rows *w = &state->lists->w;
  fmm_pair_targets targets = targets_of(state, w->row[row]);
  fmm_pair_lattice surface[FMM_PAIR_MOST_LATTICES];
  for (int64_t e = w->offset[row]; e < w->offset[row + 1];) {
    int n = 0;
    for (; n < FMM_PAIR_MOST_LATTICES && e < w->offset[row + 1]; n++, e++)
      surface[n] = surface_of(state, w->entry[e], planes + (int64_t)n * 3 * state->operators->n_surface);
    fmm_pair_sum_from_lattices(sum, &targets, n, surface);
  }
}

static fmm_status run(fmm_state *state, int64_t row_begin, int64_t row_end) {
  fmm_pair_sum sum;
  const fmm_row_workspace *own = state->workspace[FMM_PHASE_WLIST];
  fmm_pair_sum_prepare(&sum, state->pair, state->params, state->n_columns, state->gradient, fmm_surface_precision(state, FMM_PHASE_WLIST),
                       fmm_surface_tolerance(state));
  fmm_pair_sum_allow_near(&sum, state->tolerance);
#pragma omp parallel for schedule(dynamic, 1) num_threads(state->threads)
  for (int32_t k = 0; k < state->lists->w.n_rows; k++)
    if (own->order[k] >= row_begin && own->order[k] < row_end) sum_row(state, &sum, own->order[k], own->planes + (size_t)omp_get_thread_num() * thread_doubles(state));
  return FMM_OK;
}

/* Pairs of a row's targets with boxes. */
static double work_of(const fmm_tree *tree, const fmm_rows *w, int32_t row) {
  return (double)(w->offset[row + 1] - w->offset[row]) * (double)(tree->target_end[w->row[row]] - tree->target_begin[w->row[row]]);
}

static fmm_status reserve(fmm_state *state) { return fmm_row_workspace_reserve(state, FMM_PHASE_WLIST, &state->lists->w, work_of, thread_doubles(state)); }
static void release(fmm_state *state) { fmm_row_workspace_release(state, FMM_PHASE_WLIST); }
static size_t bytes(const fmm_state *state) { return fmm_row_workspace_bytes(state, &state->lists->w, thread_doubles(state)); }

const fmm_phase_impl fmm_wlist_cpu = {.phase = FMM_PHASE_WLIST, .device = FMM_DEVICE_CPU, .name = "wlist_cpu", .reserve = reserve,
                                      .release = release, .bytes = bytes, .run = run};
