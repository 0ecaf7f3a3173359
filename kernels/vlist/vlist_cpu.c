/* V list on CPU cores: M2L in Fourier space, parents by parents (vlist_kernels.h), in slabs of target parents so that memory stays bounded.
 *
 * A slab is consecutive rows of lists->v with the source parents that they name, as many as fmm_vlist_slab_rows allows for. For each slab and each slice kz of the spectrum:
 * transform the slice of every source parent, multiply frequency by frequency, transform back and add to the targets' points. A slice of a slab
 * stays in the outer caches; sources shared by two slabs are transformed for each. For kz = 0 half of the frequencies suffice (real data).
 * Homogeneous kernels: a slab may hold rows of several levels, scaled at the end; others: one level a slab.
 * Boxes without targets or whose parent has no row get zero, by the run that starts at row 0. Precision single: transforms and products in float (when that serves: runtime/precision.c).
 * Layout: points [parent][channel][surface point][octant], spectra [frequency of the slice][parent][channel][16]; channel = component*columns + column. */
#include <omp.h>
#include <math.h>
#include <string.h>

#include "kernels/phase.h"
#include "kernels/vlist/vlist_kernels.h"

typedef struct slab {
  int64_t row_begin, row_end;
  int64_t source_begin, source_end; /* into workspace.source */
} slab;

typedef struct workspace {
  fmm_vlist_shape shape;
  const fmm_vlist_kernels *kernels;
  int channels, past; /* past: sources' spectra are written past the caches */
  int64_t n_slabs, most_rows, most_sources;
  slab *slabs;
  int32_t *source;        /* source parents of every slab */
  int32_t *place;         /* an entry of lists->v: its source's place in its slab */
  uint8_t *covered;       /* a box: it has targets and its parent a row */
  char *source_points, *target_points, *source_spectra, *target_spectra; /* see Layout */
  char *threads;          /* per thread: expanded sources, matrices, scratch */
  size_t expanded_bytes, matrices_bytes, thread_bytes;
} workspace;

static fmm_count_case case_of(const fmm_state *state) {
  return (fmm_count_case){.pair = state->pair->info, .order = state->operators->order, .n_columns = state->n_columns, .gradient = state->gradient};
}

static int is_single(const fmm_state *state) { return state->precision[FMM_PHASE_VLIST] == FMM_PRECISION_SINGLE; }

/* Sources that a row names and the slab does not have yet: those marked before its first. */
static int64_t new_sources(const fmm_rows *v, int64_t row, const int64_t *mark, int64_t source_begin) {
  int64_t n = 0;
  for (int64_t e = v->offset[row]; e < v->offset[row + 1]; e++) n += mark[v->entry[e]] < source_begin;
  return n;
}

static int fits(const fmm_state *state, const slab *s, int64_t row, int64_t parents, int64_t most) {
  const fmm_rows *v = &state->lists->v;
  return parents <= most && (state->operators->n_levels == 1 || state->tree->level[v->row[row]] == state->tree->level[v->row[s->row_begin]]);
}

/* Cuts rows into slabs of at most `most` parents, rows and sources together, but at least a row. Sources of a slab are in order of first use. Counts
 * slabs and returns the sources of all; `fill` also writes slabs, sources and every entry's place among its slab's. mark: n_boxes, a source's index. */
static int64_t cut_slabs(const fmm_state *state, int64_t most, workspace *w, int64_t *mark, int fill) {
  const fmm_rows *v = &state->lists->v;
  int64_t n = 0;
  for (int64_t i = 0; i < state->tree->n_boxes; i++) mark[i] = -1;
  w->n_slabs = 0;
  for (int64_t row = 0; row < v->n_rows; w->n_slabs++) {
    slab s = {.row_begin = row, .source_begin = n};
    while (row < v->n_rows && (row == s.row_begin || fits(state, &s, row, row + 1 - s.row_begin + n - s.source_begin + new_sources(v, row, mark, s.source_begin), most))) {
      for (int64_t e = v->offset[row]; e < v->offset[row + 1]; e++) {
        int32_t q = v->entry[e];
        if (mark[q] < s.source_begin) {
          if (fill) w->source[n] = q;
          mark[q] = n++;
        }
        if (fill) w->place[e] = (int32_t)(mark[q] - s.source_begin);
      }
      row++;
    }
    s.row_end = row, s.source_end = n;
    if (fill) w->slabs[w->n_slabs] = s;
    if (n - s.source_begin > w->most_sources) w->most_sources = n - s.source_begin;
    if (row - s.row_begin > w->most_rows) w->most_rows = row - s.row_begin;
  }
  return n;
}

static void mark_covered(const fmm_state *state, uint8_t *covered) {
  const fmm_tree *tree = state->tree;
  memset(covered, 0, (size_t)tree->n_boxes);
  for (int32_t r = 0; r < state->lists->v.n_rows; r++) {
    int32_t p = state->lists->v.row[r];
    for (int32_t c = tree->first_child[p]; c < tree->first_child[p] + tree->n_children[p]; c++) covered[c] = tree->target_end[c] > tree->target_begin[c];
  }
}

static fmm_status plan_slabs(const fmm_state *state, workspace *w) {
  fmm_count_case what = case_of(state);
  int64_t *mark = NULL, most = 3 * fmm_vlist_slab_rows(&what, w->kernels->real_bytes);
  fmm_status status = FMM_OK;
  FMM_CHECK(FMM_ALLOCATE(&w->place, state->lists->v.n_entries, "V sources"));
  FMM_CHECK(FMM_ALLOCATE(&w->covered, state->tree->n_boxes, "V marks"));
  FMM_CHECK(FMM_ALLOCATE(&mark, state->tree->n_boxes, "V marks"));
  int64_t n = cut_slabs(state, most, w, mark, 0);
  FMM_CHECK(FMM_ALLOCATE(&w->slabs, w->n_slabs, "V slabs"));
  FMM_CHECK(FMM_ALLOCATE(&w->source, n, "V sources"));
  cut_slabs(state, most, w, mark, 1);
  mark_covered(state, w->covered);
done:
  FMM_FREE(&mark);
  return status;
}

/* Fills kernels and shape and slabs; then sizes are known. */
static fmm_status size_workspace(const fmm_state *state, workspace *w) {
  const fmm_operators *o = state->operators;
  w->kernels = fmm_vlist_kernels_find(is_single(state));
  w->channels = o->parity.n_components * state->n_columns;
  FMM_TRY(fmm_vlist_shape_create(&w->shape, &o->shape, is_single(state)));
  FMM_TRY(plan_slabs(state, w));
  size_t real = w->kernels->real_bytes, pair = 2 * (size_t)w->kernels->padded * real, components = (size_t)o->parity.n_components;
  w->expanded_bytes = (size_t)w->most_sources * (size_t)w->channels * pair;
  w->matrices_bytes = components * components * FMM_DIRECTIONS * pair;
  w->thread_bytes = (w->expanded_bytes + w->matrices_bytes + fmm_vlist_scratch_bytes(&w->shape, w->kernels) + 4095) / 4096 * 4096;
  return FMM_OK;
}

static size_t slice_bytes(const workspace *w) { return (size_t)w->shape.grid * (size_t)w->shape.grid * (size_t)w->channels * 16 * w->kernels->real_bytes; }

/* Slices of more than this leave the caches before they are read (32 MB shared by two cores: at 13 MB nothing was gained by writing past them, from 17 on 5 to 20 % of V). */
static int slices_leave_caches(const workspace *w) {
  const size_t most = 16 << 20;
  return (size_t)(w->most_sources + w->most_rows) * slice_bytes(w) > most;
}

static void free_workspace(workspace *w) {
  fmm_vlist_shape_free(&w->shape);
  FMM_FREE(&w->slabs);
  FMM_FREE(&w->source);
  FMM_FREE(&w->place);
  FMM_FREE(&w->covered);
  FMM_FREE(&w->source_points);
  FMM_FREE(&w->target_points);
  FMM_FREE(&w->source_spectra);
  FMM_FREE(&w->target_spectra);
  FMM_FREE(&w->threads);
}

static void release(fmm_state *state) {
  workspace *w = state->workspace[FMM_PHASE_VLIST];
  if (!w) return;
  free_workspace(w);
  FMM_FREE(&state->workspace[FMM_PHASE_VLIST]);
}

static size_t points_bytes(const fmm_state *state, const workspace *w) { return (size_t)state->operators->n * (size_t)state->n_columns * 8 * w->kernels->real_bytes; }

static fmm_status reserve(fmm_state *state) {
  workspace *w = NULL;
  fmm_status status = FMM_OK;
  FMM_TRY(FMM_ALLOCATE_ZERO(&w, 1, "V workspace"));
  state->workspace[FMM_PHASE_VLIST] = w;
  FMM_CHECK(size_workspace(state, w));
  w->past = slices_leave_caches(w);
  FMM_CHECK(FMM_ALLOCATE(&w->source_points, (size_t)w->most_sources * points_bytes(state, w), "V source points"));
  FMM_CHECK(FMM_ALLOCATE(&w->target_points, (size_t)w->most_rows * points_bytes(state, w), "V target points"));
  FMM_CHECK(FMM_ALLOCATE(&w->source_spectra, (size_t)w->most_sources * slice_bytes(w), "V source spectra"));
  FMM_CHECK(FMM_ALLOCATE(&w->target_spectra, (size_t)w->most_rows * slice_bytes(w), "V target spectra"));
  FMM_CHECK(FMM_ALLOCATE(&w->threads, (size_t)state->threads * w->thread_bytes, "V thread workspace"));
done:
  if (status != FMM_OK) release(state);
  return status;
}

/* What reserve takes, near enough: see vlist_cost.c. */
static size_t bytes(const fmm_state *state) {
  fmm_count_case what = case_of(state);
  size_t real = is_single(state) ? sizeof(float) : sizeof(double);
  return (size_t)fmm_vlist_workspace_bytes(&what, real, state->lists->v.n_rows, state->threads) + (size_t)state->lists->v.n_entries * 8 + (size_t)state->tree->n_boxes;
}

/* ---- one slab, called by every thread of the team ---- */

typedef struct task {
  const fmm_state *state;
  const workspace *w;
  const slab *s;
  const fmm_level_operators *set;
  int64_t row_begin, row_end; /* the slab's rows that are asked for */
  char *expanded, *matrices, *scratch;
} task;

/* A power of two by which equivalent densities are multiplied to fit a float: of densities of about 1. Of doubles 1. */
static double unit_of(const fmm_state *state) {
  enum { MOST = 1000 };
  if (!is_single(state) || !(state->largest_density > 0)) return 1;
  const int exponent = ilogb(state->largest_density);
  return ldexp(1, exponent > MOST ? -MOST : exponent < -MOST ? MOST : -exponent);
}

static void children_of(const fmm_tree *tree, int32_t parent, int32_t child[8]) {
  for (int o = 0; o < 8; o++) child[o] = -1;
  for (int32_t c = tree->first_child[parent]; c < tree->first_child[parent] + tree->n_children[parent]; c++) child[tree->octant[c]] = c;
}

static void load_source(const task *t, int64_t i) {
  const fmm_state *state = t->state;
  const fmm_operators *o = state->operators;
  size_t channel_bytes = (size_t)o->n_surface * 8 * t->w->kernels->real_bytes;
  const double unit = unit_of(state);
  int32_t child[8];
  children_of(state->tree, t->w->source[t->s->source_begin + i], child);
  for (int channel = 0; channel < t->w->channels; channel++) {
    const double *from[8];
    int component = channel / state->n_columns, column = channel % state->n_columns;
    for (int k = 0; k < 8; k++)
      from[k] = child[k] < 0 || state->tree->source_end[child[k]] == state->tree->source_begin[child[k]] ? NULL
                : state->up_equivalent + ((int64_t)child[k] * state->n_columns + column) * o->n + (int64_t)component * o->n_surface;
    t->w->kernels->load(o->n_surface, from, unit, t->w->source_points + (size_t)i * points_bytes(state, t->w) + (size_t)channel * channel_bytes);
  }
}

static void save_target(const task *t, int64_t row) {
  const fmm_state *state = t->state;
  const fmm_operators *o = state->operators;
  const char *points = t->w->target_points + (size_t)(row - t->s->row_begin) * points_bytes(state, t->w);
  size_t channel_bytes = (size_t)o->n_surface * 8 * t->w->kernels->real_bytes;
  int32_t child[8], parent = state->lists->v.row[row];
  double factor = fmm_operators_scale(o, fmm_half_width(state->tree, state->tree->level[parent] + 1)) / unit_of(state);
  children_of(state->tree, parent, child);
  for (int channel = 0; channel < t->w->channels; channel++) {
    double *to[8];
    int component = channel / state->n_columns, column = channel % state->n_columns;
    for (int k = 0; k < 8; k++)
      to[k] = child[k] < 0 || !t->w->covered[child[k]] ? NULL
              : state->down_check + ((int64_t)child[k] * state->n_columns + column) * o->n + (int64_t)component * o->n_surface;
    t->w->kernels->save(o->n_surface, points + (size_t)channel * channel_bytes, factor, to);
  }
}

/* Item i = parent * channels + channel of the slab's sources. */
static void transform_source(const task *t, int kz, int64_t i) {
  const workspace *w = t->w;
  size_t real = w->kernels->real_bytes;
  int64_t stride = (t->s->source_end - t->s->source_begin) * w->channels * 16;
  w->kernels->forward(&w->shape, w->source_points + (size_t)i * (size_t)w->shape.n_surface * 8 * real, kz, w->source_spectra + (size_t)i * 16 * real, stride, w->past, t->scratch);
}

static void transform_target(const task *t, int kz, int64_t i) {
  const workspace *w = t->w;
  size_t real = w->kernels->real_bytes;
  int64_t stride = (t->row_end - t->row_begin) * w->channels * 16, place = (t->row_begin - t->s->row_begin) * w->channels + i;
  w->kernels->inverse(&w->shape, w->target_spectra + (size_t)i * 16 * real, stride, kz, w->target_points + (size_t)place * (size_t)w->shape.n_surface * 8 * real, t->scratch);
}

static void multiply_frequency(const task *t, int kz, int64_t f) {
  const fmm_state *state = t->state;
  const workspace *w = t->w;
  const fmm_rows *v = &state->lists->v;
  double full[343][2];
  int nc = state->operators->parity.n_components, grid = w->shape.grid;
  int64_t sources = t->s->source_end - t->s->source_begin;
  size_t real = w->kernels->real_bytes, value = (size_t)w->channels * 16 * real, matrix = FMM_DIRECTIONS * 2 * (size_t)w->kernels->padded * real;
  for (int k = 0; k < nc * nc; k++) {
    fmm_m2l_gather(state->operators, t->set, (int)f / grid, (int)f % grid, kz, k / nc, k % nc, full);
    w->kernels->matrices(full, t->matrices + (size_t)k * matrix);
  }
  w->kernels->expand(sources * w->channels, w->source_spectra + (size_t)(f * sources) * value, t->expanded);
  fmm_vlist_product product = {.row_begin = t->row_begin, .row_end = t->row_end, .offset = v->offset, .direction = v->direction, .source = w->place,
                               .matrices = t->matrices, .expanded = t->expanded, .n_components = nc, .n_columns = state->n_columns,
                               .out = w->target_spectra + (size_t)(f * (t->row_end - t->row_begin)) * value};
  w->kernels->product(&product);
}

/* Transforms that a thread takes at once: eight, fewer where they would not go round. */
static int chunk_of(int64_t n, int threads) {
  const int64_t share = n / (4 * threads);
  return share > 8 ? 8 : share < 1 ? 1 : (int)share;
}

static void run_slab(const task *t) {
  const workspace *w = t->w;
  const fmm_vlist_shape *shape = &w->shape;
  int64_t sources = t->s->source_end - t->s->source_begin, rows = t->row_end - t->row_begin;
  size_t target_bytes = points_bytes(t->state, w);
  const int source_chunk = chunk_of(sources * w->channels, t->state->threads), target_chunk = chunk_of(rows * w->channels, t->state->threads);
#pragma omp for schedule(static) nowait
  for (int64_t r = t->row_begin - t->s->row_begin; r < t->row_end - t->s->row_begin; r++) memset(w->target_points + (size_t)r * target_bytes, 0, target_bytes);
#pragma omp for schedule(static)
  for (int64_t i = 0; i < sources; i++) load_source(t, i);
  for (int kz = 0; kz < shape->order; kz++) {
    int64_t n_frequencies = (int64_t)(kz ? shape->grid : shape->order) * shape->grid;
#pragma omp for schedule(dynamic, source_chunk)
    for (int64_t i = 0; i < sources * w->channels; i++) transform_source(t, kz, i);
#pragma omp for schedule(dynamic, 1)
    for (int64_t f = 0; f < n_frequencies; f++) multiply_frequency(t, kz, f);
#pragma omp for schedule(dynamic, target_chunk) nowait /* the next slice's sources need none of it, and its products begin when they are done */
    for (int64_t i = 0; i < rows * w->channels; i++) transform_target(t, kz, i);
  }
#pragma omp barrier
#pragma omp for schedule(static)
  for (int64_t row = t->row_begin; row < t->row_end; row++) save_target(t, row);
}

static void zero_uncovered(const fmm_state *state, const workspace *w) {
  size_t values = (size_t)state->n_columns * (size_t)state->operators->n;
#pragma omp for schedule(static) nowait
  for (int32_t box = 0; box < state->tree->n_boxes; box++)
    if (!w->covered[box]) memset(state->down_check + (size_t)box * values, 0, values * sizeof *state->down_check);
}

static fmm_status run(fmm_state *state, int64_t row_begin, int64_t row_end) {
  const workspace *w = state->workspace[FMM_PHASE_VLIST];
#pragma omp parallel num_threads(state->threads)
  {
    char *own = w->threads + (size_t)omp_get_thread_num() * w->thread_bytes;
    task t = {.state = state, .w = w, .expanded = own, .matrices = own + w->expanded_bytes, .scratch = own + w->expanded_bytes + w->matrices_bytes};
    if (row_begin == 0) zero_uncovered(state, w);
    for (int64_t k = 0; k < w->n_slabs; k++) {
      t.s = &w->slabs[k];
      t.row_begin = row_begin > t.s->row_begin ? row_begin : t.s->row_begin;
      t.row_end = row_end < t.s->row_end ? row_end : t.s->row_end;
      t.set = fmm_operators_at(state->operators, state->tree->level[state->lists->v.row[t.s->row_begin]] + 1);
      if (t.row_begin < t.row_end) run_slab(&t);
    }
  }
  return FMM_OK;
}

const fmm_phase_impl fmm_vlist_cpu = {.phase = FMM_PHASE_VLIST, .device = FMM_DEVICE_CPU, .name = "vlist_cpu", .reserve = reserve, .release = release,
                                      .bytes = bytes, .run = run};
