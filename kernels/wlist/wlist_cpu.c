/* W list on CPU cores: upward equivalent densities of finer, non-adjacent boxes onto a leaf's targets (M2P). A row of lists->w is one
 * piece of work, several of its boxes a call of the pair-sum engine; heavy ones are begun first. Workspace: [thread][box of the call][axis][surface point].
 * By solid harmonics (kernels/harmonics.h) a block of lanes has boxes of a few rows, whose densities become moments, and these potentials and gradients at the targets outside. Workspace then: [thread], the boxes'
 * densities, natural and regrouped, and their harmonics. */
#include <omp.h>

#include "kernels/level_items.h"
#include "kernels/pair/pair_sums.h"
#include "kernels/phase.h"
#include "kernels/row_order.h"

static size_t block_doubles(const fmm_state *state) { return (size_t)state->operators->n * FMM_LANES; }
static size_t thread_doubles(const fmm_state *state) {
  return fmm_by_harmonics(state) ? 2 * block_doubles(state) + fmm_harmonic_doubles(state, state->gradient) : (size_t)FMM_PAIR_MOST_LATTICES * 3 * (size_t)state->operators->n_surface;
}

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

/* Up to FMM_LANES boxes and columns, each with the leaf at whose targets it is summed. */
typedef struct pending { fmm_lane_block lanes; int32_t leaf[FMM_LANES]; double *room; } pending;

/* Coefficients are of boxes of half-width 1, and slopes of their side: brought to this box's. */
static void scale_moments(int n, int outputs, double scale, double per_side, double *value) {
  const double by[FMM_HARMONIC_OUTPUTS] = {scale, scale * per_side, scale * per_side, scale * per_side};
  if (outputs == 1)
    for (int i = 0; i < n; i++) value[i] *= scale;
  else
    for (int i = 0; i < n; i++) value[i] *= by[i % FMM_HARMONIC_OUTPUTS];
}

static void sum_pending(const fmm_state *state, pending *p) {
  const fmm_operators *o = state->operators;
  const fmm_harmonics *h = &o->harmonics;
  const fmm_translate_kernels *k = fmm_translate_find();
  const fmm_harmonic_kernels *kernels = fmm_phase_harmonics(state, FMM_PHASE_WLIST);
  const fmm_harmonic_lanes of = fmm_harmonic_lanes_at(state, state->gradient, p->room + 2 * block_doubles(state));
  const int outputs = state->gradient ? FMM_HARMONIC_OUTPUTS : 1;
  double *natural = p->room, *regrouped = p->room + block_doubles(state), *of_box[FMM_LANES] = {NULL};
  fmm_lanes_gather(k, &p->lanes, o->n, state->n_columns, state->up_equivalent, 1, natural);
  k->regroup(o, natural, regrouped);
  fmm_translate_blocks(k, fmm_operators_at(o, 0)->w_moments, o->parity.begin, h->begin, regrouped, of.terms);
  if (state->gradient) k->slopes(h, 1, of.terms, of.terms + (int64_t)h->n_terms * FMM_LANES);
  for (int l = 0; l < p->lanes.n_lanes; l++) of_box[l] = of.values + l * of.stride;
  k->take(of.stride, h->row[state->gradient != 0], of.terms, 0, of_box);
  for (int l = 0; l < p->lanes.n_lanes; l++) {
    const int32_t box = p->lanes.box[l];
    const fmm_pair_targets targets = targets_of(state, p->leaf[l]);
    const fmm_harmonic_points points = {.n = targets.n, .at = {targets.x, targets.y, targets.z}};
    const fmm_harmonic_box frame = fmm_harmonic_box_of(state->tree, box, 1);
    scale_moments(of.stride, outputs, fmm_operators_scale(o, fmm_half_width(state->tree, state->tree->level[box])), frame.per_side, of_box[l]);
    kernels->values(h, &frame, &points, outputs, of_box[l], of.values + FMM_LANES * of.stride, targets.value + p->lanes.column[l] * targets.column_stride, targets.value_stride);
  }
  p->lanes.n_lanes = 0;
}

static void add_row(const fmm_state *state, int64_t row, pending *p) {
  const fmm_rows *w = &state->lists->w;
  for (int64_t e = w->offset[row]; e < w->offset[row + 1]; e++)
    for (int c = 0; c < state->n_columns; c++) {
      const int lane = p->lanes.n_lanes++;
      p->lanes.box[lane] = w->entry[e], p->lanes.column[lane] = c, p->leaf[lane] = w->row[row];
      if (p->lanes.n_lanes == FMM_LANES) sum_pending(state, p);
    }
}

/* Rows in pieces that fill the lanes together; one thread has all of a row, in its order. */
static fmm_status run_by_harmonics(fmm_state *state, int64_t row_begin, int64_t row_end) {
  const fmm_row_workspace *own = state->workspace[FMM_PHASE_WLIST];
  const fmm_row_pieces pieces = fmm_row_pieces_of(own, &state->lists->w, state->threads);
#pragma omp parallel for schedule(dynamic, 1) num_threads(state->threads)
  for (int32_t piece = 0; piece < pieces.n; piece++) {
    pending p = {.room = own->planes + (size_t)omp_get_thread_num() * thread_doubles(state)};
    int32_t begin, end;
    fmm_row_piece(&pieces, piece, &begin, &end);
    for (int32_t i = begin; i < end; i++)
      if (own->order[i] >= row_begin && own->order[i] < row_end) add_row(state, own->order[i], &p);
    if (p.lanes.n_lanes) sum_pending(state, &p);
  }
  return FMM_OK;
}

static fmm_status run(fmm_state *state, int64_t row_begin, int64_t row_end) {
  fmm_pair_sum sum;
  const fmm_row_workspace *own = state->workspace[FMM_PHASE_WLIST];
  if (fmm_by_harmonics(state)) return run_by_harmonics(state, row_begin, row_end);
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
