/* X list on CPU cores: sources of coarser leaves onto a box's downward check surface (P2L), the dual of the W list. A row of lists->x is
 * one piece of work, heavy ones are begun first; source ranges that are neighbours in the sorted points are joined.
 * Workspace: [thread][axis][surface point].
 * By solid harmonics (kernels/harmonics.h) sources outside a box make harmonics inside, and those of a block of rows check potentials. Workspace then: [thread], check potentials, natural and regrouped, and the
 * harmonics of rows. */
#include <omp.h>
#include <string.h>

#include "kernels/level_items.h"
#include "kernels/pair/pair_sums.h"
#include "kernels/phase.h"
#include "kernels/row_order.h"

enum { MAX_RANGES = 64 };

static size_t block_doubles(const fmm_state *state) { return (size_t)state->operators->n * FMM_LANES; }
static size_t thread_doubles(const fmm_state *state) {
  return fmm_by_harmonics(state) ? 2 * block_doubles(state) + fmm_harmonic_doubles(state, 0) : (size_t)3 * (size_t)state->operators->n_surface;
}

static fmm_pair_sources sources_of(const fmm_state *state, int64_t begin, int64_t end) {
  const fmm_points *p = &state->tree->sources;
  fmm_pair_sources s = {.n = end - begin, .x = p->x + begin, .y = p->y + begin, .z = p->z + begin, .density = state->density + begin,
                        .component_stride = state->n_columns * p->n, .column_stride = p->n};
  for (int k = 0; k < 3 && p->normal[0]; k++) s.normal[k] = p->normal[k] + begin;
  return s;
}

static void sum_row(const fmm_state *state, const fmm_pair_sum *sum, int64_t row, double *planes) {
  const fmm_rows *x = &state->lists->x;
  const fmm_tree *tree = state->tree;
  const fmm_operators *o = state->operators;
  int32_t box = x->row[row];
  fmm_pair_lattice surface = {.surface = &o->shape, .center = {tree->center_x[box], tree->center_y[box], tree->center_z[box]},
                              .radius = FMM_INNER_RADIUS * fmm_half_width(tree, tree->level[box]), .planes = planes};
  double *check = state->down_check + (int64_t)box * state->n_columns * o->n;
  fmm_pair_sources range[MAX_RANGES];
  int n = 0;
  for (int64_t e = x->offset[row]; e < x->offset[row + 1]; e++) {
    int64_t begin = tree->source_begin[x->entry[e]], end = tree->source_end[x->entry[e]];
    if (n && range[n - 1].x + range[n - 1].n == tree->sources.x + begin) {
      range[n - 1].n += end - begin;
      continue;
    }
    if (n == MAX_RANGES) fmm_pair_sum_onto_lattice(sum, &surface, check, o->n_surface, o->n, n, range), n = 0;
    range[n++] = sources_of(state, begin, end);
  }
  fmm_pair_sum_onto_lattice(sum, &surface, check, o->n_surface, o->n, n, range);
}

/* The harmonics inside a row's box that one column of its sources makes, but for weights and factors. */
static void add_moments(const fmm_state *state, const fmm_harmonic_kernels *k, int64_t row, int column, double *to) {
  const fmm_rows *x = &state->lists->x;
  const fmm_tree *tree = state->tree;
  const double *density = state->density + column * tree->sources.n;
  const fmm_harmonic_box box = fmm_harmonic_box_of(tree, x->row[row], 1);
  fmm_harmonic_points range[MAX_RANGES];
  int n = 0;
  for (int64_t e = x->offset[row]; e < x->offset[row + 1]; e++) {
    const int64_t begin = tree->source_begin[x->entry[e]], end = tree->source_end[x->entry[e]];
    if (n == MAX_RANGES) k->moments(&state->operators->harmonics, &box, n, range, to), n = 0;
    range[n++] = (fmm_harmonic_points){.n = end - begin, .at = {tree->sources.x + begin, tree->sources.y + begin, tree->sources.z + begin}, .density = density + begin};
  }
  k->moments(&state->operators->harmonics, &box, n, range, to);
}

/* As many as there are lanes for. */
typedef struct row_block { int n; int64_t row[FMM_LANES]; } row_block;

static void sum_rows_by_harmonics(const fmm_state *state, const row_block *rows, int column, double *room) {
  const fmm_operators *o = state->operators;
  const fmm_harmonics *h = &o->harmonics;
  const fmm_translate_kernels *k = fmm_translate_find();
  const fmm_harmonic_kernels *kernels = fmm_phase_harmonics(state, FMM_PHASE_XLIST);
  const fmm_harmonic_lanes of = fmm_harmonic_lanes_at(state, 0, room + 2 * block_doubles(state));
  const double *moments[FMM_LANES] = {NULL};
  double *natural = room, *regrouped = room + block_doubles(state);
  fmm_lane_block lanes = {.n_lanes = rows->n};
  for (int l = 0; l < rows->n; l++) {
    double *to = of.values + l * of.stride, scale;
    lanes.box[l] = state->lists->x.row[rows->row[l]], lanes.column[l] = column;
    scale = fmm_operators_scale(o, fmm_half_width(state->tree, state->tree->level[lanes.box[l]]));
    memset(to, 0, (size_t)of.stride * sizeof *to);
    add_moments(state, kernels, rows->row[l], column, to);
    for (int i = 0; i < of.stride; i++) to[i] *= 0.5 * scale * h->weight[i / 2];
    moments[l] = to;
  }
  k->put(of.stride, h->row[0], moments, 1, of.terms);
  fmm_translate_blocks(k, fmm_operators_at(o, 0)->x_moments, h->begin, o->parity.begin, of.terms, regrouped);
  k->spread(o, regrouped, natural);
  fmm_lanes_scatter(k, &lanes, o->n, state->n_columns, natural, 1, state->down_check);
}

static fmm_status run_by_harmonics(fmm_state *state, int64_t row_begin, int64_t row_end) {
  const fmm_row_workspace *own = state->workspace[FMM_PHASE_XLIST];
  const fmm_row_pieces pieces = fmm_row_pieces_of(own, &state->lists->x, state->threads);
#pragma omp parallel for schedule(dynamic, 1) num_threads(state->threads)
  for (int32_t piece = 0; piece < pieces.n; piece++) {
    row_block rows = {.n = 0};
    int32_t begin, end;
    fmm_row_piece(&pieces, piece, &begin, &end);
    for (int32_t i = begin; i < end; i++)
      if (own->order[i] >= row_begin && own->order[i] < row_end) rows.row[rows.n++] = own->order[i];
    for (int c = 0; c < state->n_columns && rows.n; c++) sum_rows_by_harmonics(state, &rows, c, own->planes + (size_t)omp_get_thread_num() * thread_doubles(state));
  }
  return FMM_OK;
}

static fmm_status run(fmm_state *state, int64_t row_begin, int64_t row_end) {
  fmm_pair_sum sum;
  const fmm_row_workspace *own = state->workspace[FMM_PHASE_XLIST];
  if (fmm_by_harmonics(state)) return run_by_harmonics(state, row_begin, row_end);
  fmm_pair_sum_prepare(&sum, state->pair, state->params, state->n_columns, 0, fmm_surface_precision(state, FMM_PHASE_XLIST),
                       fmm_surface_tolerance(state));
  fmm_pair_sum_allow_near(&sum, state->tolerance);
#pragma omp parallel for schedule(dynamic, 1) num_threads(state->threads)
  for (int32_t k = 0; k < state->lists->x.n_rows; k++)
    if (own->order[k] >= row_begin && own->order[k] < row_end) sum_row(state, &sum, own->order[k], own->planes + (size_t)omp_get_thread_num() * thread_doubles(state));
  return FMM_OK;
}

/* A row's sources. */
static double work_of(const fmm_tree *tree, const fmm_rows *x, int32_t row) {
  double sources = 0;
  for (int64_t e = x->offset[row]; e < x->offset[row + 1]; e++) sources += (double)(tree->source_end[x->entry[e]] - tree->source_begin[x->entry[e]]);
  return sources;
}

static fmm_status reserve(fmm_state *state) { return fmm_row_workspace_reserve(state, FMM_PHASE_XLIST, &state->lists->x, work_of, thread_doubles(state)); }
static void release(fmm_state *state) { fmm_row_workspace_release(state, FMM_PHASE_XLIST); }
static size_t bytes(const fmm_state *state) { return fmm_row_workspace_bytes(state, &state->lists->x, thread_doubles(state)); }

const fmm_phase_impl fmm_xlist_cpu = {.phase = FMM_PHASE_XLIST, .device = FMM_DEVICE_CPU, .name = "xlist_cpu", .reserve = reserve,
                                      .release = release, .bytes = bytes, .run = run};
