/* V list on CPU cores: M2L in Fourier space, parents by parents (vlist_kernels.h), in slabs of target parents so that memory stays bounded (vlist_slabs.h).
 *
 * For each slab and each slice kz of the spectrum, of many threads a few slices at once: transform the slice of every source group, multiply frequency by frequency, parents by parents, transform
 * back and add to the target groups' points. A slice of a slab stays in the outer caches where there is one at once; sources shared by two slabs are transformed for each. For kz = 0
 * half of the frequencies suffice (real data).
 * Homogeneous kernels: a slab may hold rows of several levels, scaled at the end; others: one level a slab.
 * Boxes without targets or whose parent has no row get zero, by the run that starts at row 0. Precision single: transforms and products in float (when that serves: runtime/precision.c).
 * Frequency 0 is apart and in double (vlist_means.h); the spectra have 0 there.
 * Layout: points [group][channel][surface point][lane], spectra [slice at hand][frequency of the slice][group][channel][16]; channel = component*columns + column. */
#include <omp.h>
#include <math.h>
#include <string.h>

#include "kernels/phase.h"
#include "kernels/vlist/vlist_kernels.h"
#include "kernels/vlist/vlist_means.h"

typedef struct workspace {
  fmm_vlist_shape shape;
  const fmm_vlist_kernels *kernels;
  int channels, slices, past; /* slices at once; past: sources' spectra are written past the caches */
  fmm_vlist_slabs slabs;
  uint8_t *covered;       /* a box: it has targets and its parent a row */
  char *memory;           /* of all that follow: a block of its own each would have each one's first page touched by the thread that asks */
  double *source_means, *target_means;
  char *source_points, *target_points, *source_spectra, *target_spectra; /* see Layout */
  char *threads;          /* per thread: expanded sources, matrices, scratch */
  size_t expanded_bytes, matrices_bytes, thread_bytes;
} workspace;

static fmm_count_case case_of(const fmm_state *state) {
  return (fmm_count_case){.pair = state->pair->info, .order = state->operators->order, .n_columns = state->n_columns, .gradient = state->gradient};
}

static int is_single(const fmm_state *state) { return state->precision[FMM_PHASE_VLIST] == FMM_PRECISION_SINGLE; }

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
  const int64_t rows = fmm_vlist_slab_rows(&what, w->kernels->real_bytes);
  const fmm_vlist_limits limits = {.most_groups = 3 * rows, .most_sources = 3 * rows, .one_level = state->operators->n_levels > 1};
  FMM_TRY(fmm_vlist_slabs_create(&w->slabs, state->tree, &state->lists->v, &limits));
  FMM_TRY(FMM_ALLOCATE(&w->covered, state->tree->n_boxes, "V marks"));
  mark_covered(state, w->covered);
  return FMM_OK;
}

/* Fills kernels and shape and slabs; then sizes are known. */
static fmm_status size_workspace(const fmm_state *state, workspace *w) {
  const fmm_operators *o = state->operators;
  w->kernels = fmm_vlist_kernels_find(is_single(state));
  w->channels = o->parity.n_components * state->n_columns;
  FMM_TRY(fmm_vlist_shape_create(&w->shape, &o->shape, is_single(state)));
  FMM_TRY(plan_slabs(state, w));
  size_t real = w->kernels->real_bytes, pair = 2 * (size_t)w->kernels->padded * real, components = (size_t)o->parity.n_components;
  w->expanded_bytes = (size_t)w->slabs.most_sources * (size_t)w->channels * pair;
  w->matrices_bytes = components * components * FMM_DIRECTIONS * pair;
  w->thread_bytes = (w->expanded_bytes + w->matrices_bytes + fmm_vlist_scratch_bytes(&w->shape, w->kernels) + 4095) / 4096 * 4096;
  return FMM_OK;
}

static size_t slice_bytes(const workspace *w) { return (size_t)w->shape.grid * (size_t)w->shape.grid * (size_t)w->channels * 16 * w->kernels->real_bytes; }

/* Of slices at hand, those of more than this leave the caches before they are read (32 MB shared by two cores: at 13 MB nothing was gained by writing past them, from 17 on 5 to 20 % of V). */
static int slices_leave_caches(const workspace *w) {
  const size_t most = 16 << 20;
  return (size_t)(w->slabs.most_source_groups + w->slabs.most_target_groups) * (size_t)w->slices * slice_bytes(w) > most;
}

static void free_workspace(workspace *w) {
  fmm_vlist_shape_free(&w->shape);
  fmm_vlist_slabs_free(&w->slabs);
  FMM_FREE(&w->covered);
  FMM_FREE(&w->memory);
}

static void release(fmm_state *state) {
  workspace *w = state->workspace[FMM_PHASE_VLIST];
  if (!w) return;
  free_workspace(w);
  FMM_FREE(&state->workspace[FMM_PHASE_VLIST]);
}

static size_t points_bytes(const fmm_state *state, const workspace *w) { return (size_t)state->operators->n * (size_t)state->n_columns * 8 * w->kernels->real_bytes; }

/* The next bytes of the memory, where there is any. */
static char *place(const workspace *w, size_t *used, size_t bytes) {
  char *at = w->memory ? w->memory + *used : NULL;
  *used += (bytes + FMM_ALIGNMENT - 1) / FMM_ALIGNMENT * FMM_ALIGNMENT;
  return at;
}

/* Returns the bytes; without memory only these. */
static size_t lay_out(const fmm_state *state, workspace *w) {
  const size_t sources = (size_t)w->slabs.most_source_groups, targets = (size_t)w->slabs.most_target_groups, mean = (size_t)w->channels * FMM_VLIST_LANES * sizeof(double), slices = (size_t)w->slices * slice_bytes(w);
  size_t used = 0;
  w->source_points = place(w, &used, sources * points_bytes(state, w));
  w->target_points = place(w, &used, targets * points_bytes(state, w));
  w->source_means = (double *)place(w, &used, sources * mean);
  w->target_means = (double *)place(w, &used, targets * mean);
  w->source_spectra = place(w, &used, sources * slices);
  w->target_spectra = place(w, &used, targets * slices);
  w->threads = place(w, &used, (size_t)state->threads * w->thread_bytes);
  return used;
}

static fmm_status reserve(fmm_state *state) {
  workspace *w = NULL;
  fmm_status status = FMM_OK;
  FMM_TRY(FMM_ALLOCATE_ZERO(&w, 1, "V workspace"));
  state->workspace[FMM_PHASE_VLIST] = w;
  FMM_CHECK(size_workspace(state, w));
  w->slices = fmm_vlist_slices(state->operators->order, state->threads);
  w->past = slices_leave_caches(w);
  FMM_CHECK(FMM_ALLOCATE(&w->memory, lay_out(state, w), "V points and spectra"));
  lay_out(state, w);
done:
  if (status != FMM_OK) release(state);
  return status;
}

static size_t bytes(const fmm_state *state) {
  const workspace *w = state->workspace[FMM_PHASE_VLIST];
  const void *const array[] = {w, w->shape.row_first, w->shape.row_count, w->shape.cosine, w->shape.sine, w->covered, w->memory};
  size_t sum = fmm_vlist_slabs_bytes(&w->slabs);
  for (size_t i = 0; i < sizeof array / sizeof *array; i++) sum += fmm_memory_bytes(array[i]);
  return sum;
}

/* ---- one slab, called by every thread of the team ---- */

typedef struct task {
  const fmm_state *state;
  const workspace *w;
  const fmm_vlist_slab *s;
  const fmm_level_operators *set;
  int64_t row_begin, row_end;               /* the slab's rows that are asked for */
  int64_t source_groups, target_groups;     /* of the slab */
  int first_slice;                          /* of those at hand */
  char *expanded, *matrices, *scratch;
} task;

/* A power of two by which equivalent densities are multiplied to fit a float: of densities of about 1. Of doubles 1. */
static double unit_of(const fmm_state *state) {
  enum { MOST = 1000 };
  if (!is_single(state) || !(state->largest_density > 0)) return 1;
  const int exponent = ilogb(state->largest_density);
  return ldexp(1, exponent > MOST ? -MOST : exponent < -MOST ? MOST : -exponent);
}

/* A box's values of one component and column. */
static int64_t values_of(const task *t, int32_t box, int channel) {
  const fmm_state *state = t->state;
  const fmm_operators *o = state->operators;
  const int component = channel / state->n_columns, column = channel % state->n_columns;
  return ((int64_t)box * state->n_columns + column) * o->n + (int64_t)component * o->n_surface;
}

static void load_group(const task *t, int64_t group) {
  const workspace *w = t->w;
  const int n_surface = t->state->operators->n_surface;
  const size_t channel_bytes = (size_t)n_surface * FMM_VLIST_LANES * w->kernels->real_bytes;
  const int32_t *box = w->slabs.source_box + (t->s->source_group_begin + group) * FMM_VLIST_LANES;
  const double unit = unit_of(t->state);
  for (int channel = 0; channel < w->channels; channel++) {
    const double *from[FMM_VLIST_LANES];
    for (int lane = 0; lane < FMM_VLIST_LANES; lane++) from[lane] = box[lane] < 0 ? NULL : t->state->up_equivalent + values_of(t, box[lane], channel);
    fmm_vlist_mean_sources(n_surface, from, unit, w->source_means + (group * w->channels + channel) * FMM_VLIST_LANES);
    w->kernels->load(n_surface, from, unit, w->source_points + (size_t)group * points_bytes(t->state, w) + (size_t)channel * channel_bytes);
  }
}

static void save_row(const task *t, int64_t row) {
  const fmm_state *state = t->state;
  const workspace *w = t->w;
  const fmm_tree *tree = state->tree;
  const fmm_vlist_place *place = &w->slabs.target_place[row];
  const char *points = w->target_points + (size_t)place->group * points_bytes(state, w);
  const int n_surface = state->operators->n_surface;
  const size_t channel_bytes = (size_t)n_surface * FMM_VLIST_LANES * w->kernels->real_bytes;
  const int32_t parent = state->lists->v.row[row];
  const double factor = fmm_operators_scale(state->operators, fmm_half_width(tree, tree->level[parent] + 1)) / unit_of(state);
  for (int channel = 0; channel < w->channels; channel++) {
    double *to[FMM_VLIST_LANES] = {NULL};
    for (int32_t c = tree->first_child[parent]; c < tree->first_child[parent] + tree->n_children[parent]; c++) {
      const uint8_t lane = place->lane[tree->octant[c]];
      if (lane != FMM_VLIST_NONE) to[lane] = state->down_check + values_of(t, c, channel);
    }
    const double *mean = w->target_means + ((int64_t)place->group * w->channels + channel) * FMM_VLIST_LANES;
    w->kernels->save(n_surface, points + (size_t)channel * channel_bytes, mean, factor, to);
  }
}

/* Frequencies of a slice; for kz = 0 half of them. */
static int64_t frequencies_of(const task *t, int kz) { return (int64_t)(kz ? t->w->shape.grid : t->w->shape.order) * t->w->shape.grid; }

/* Spectrum values of a slice, one of those at hand, of so many groups. */
static size_t slice_place(const task *t, int kz, int64_t groups) { return (size_t)(kz - t->first_slice) * (size_t)groups * slice_bytes(t->w); }
static char *source_spectra(const task *t, int kz) { return t->w->source_spectra + slice_place(t, kz, t->source_groups); }
static char *target_spectra(const task *t, int kz) { return t->w->target_spectra + slice_place(t, kz, t->target_groups); }

/* Item i = group * channels + channel of the slab's. */
static void transform_source(const task *t, int kz, int64_t i) {
  const workspace *w = t->w;
  size_t real = w->kernels->real_bytes;
  int64_t stride = t->source_groups * w->channels * 16;
  w->kernels->forward(&w->shape, w->source_points + (size_t)i * (size_t)w->shape.n_surface * FMM_VLIST_LANES * real, kz, source_spectra(t, kz) + (size_t)i * 16 * real, stride, w->past, t->scratch);
}

/* Of groups that rows which are asked for have lanes in, and of some between. */
static void transform_target(const task *t, int kz, int64_t i) {
  const workspace *w = t->w;
  size_t real = w->kernels->real_bytes;
  int64_t stride = t->target_groups * w->channels * 16, group = t->s->target_group_begin + i / w->channels;
  if (w->slabs.target_rows[group].last < t->row_begin || w->slabs.target_rows[group].first >= t->row_end) return;
  w->kernels->inverse(&w->shape, target_spectra(t, kz) + (size_t)i * 16 * real, stride, kz, w->target_points + (size_t)i * (size_t)w->shape.n_surface * FMM_VLIST_LANES * real, t->scratch);
}

/* Frequency 0: the means of the rows, and zeros in the spectra. */
static void multiply_means(const task *t) {
  const fmm_state *state = t->state;
  const workspace *w = t->w;
  const int nc = state->operators->parity.n_components;
  const fmm_vlist_mean_product product = {&state->lists->v, &w->slabs, t->s, (int64_t)w->channels * FMM_VLIST_LANES};
  fmm_vlist_mean_matrices m;
  memset(target_spectra(t, 0), 0, (size_t)(t->target_groups * w->channels) * 16 * w->kernels->real_bytes);
  for (int k = 0; k < nc * nc; k++) {
    const int out = k / nc, in = k % nc;
    fmm_vlist_mean_matrices_fill(state->operators, t->set, out, in, &m);
    for (int column = 0; column < state->n_columns; column++)
      for (int64_t row = t->row_begin; row < t->row_end; row++)
        fmm_vlist_mean_multiply(&product, &m, row, w->source_means + (in * state->n_columns + column) * FMM_VLIST_LANES, w->target_means + (out * state->n_columns + column) * FMM_VLIST_LANES, in > 0);
  }
}

static void multiply_frequency(const task *t, int kz, int64_t f) {
  const fmm_state *state = t->state;
  const workspace *w = t->w;
  const fmm_rows *v = &state->lists->v;
  double full[343][2];
  int nc = state->operators->parity.n_components, grid = w->shape.grid;
  size_t real = w->kernels->real_bytes, value = (size_t)w->channels * 16 * real, matrix = FMM_DIRECTIONS * 2 * (size_t)w->kernels->padded * real;
  for (int k = 0; k < nc * nc; k++) {
    fmm_m2l_gather(state->operators, t->set, (int)f / grid, (int)f % grid, kz, k / nc, k % nc, full);
    w->kernels->matrices(full, t->matrices + (size_t)k * matrix);
  }
  w->kernels->expand(t->s->source_end - t->s->source_begin, w->channels, w->slabs.source_place + t->s->source_begin,
                     source_spectra(t, kz) + (size_t)(f * t->source_groups) * value, t->expanded);
  fmm_vlist_product product = {.row_begin = t->row_begin, .row_end = t->row_end, .offset = v->offset, .entry = w->slabs.entry,
                               .matrices = t->matrices, .expanded = t->expanded, .n_components = nc, .n_columns = state->n_columns,
                               .target = w->slabs.target_place, .out = target_spectra(t, kz) + (size_t)(f * t->target_groups) * value};
  w->kernels->product(&product);
}

/* Transforms that a thread takes at once, fewer where they would not go round: each asks for what the next one reads (of several slices at once, the next group's), which for the first nobody did. */
static int chunk_of(int64_t n, int threads) {
  enum { MOST = 32 };
  const int64_t share = n / (8 * threads); /* eight turns each, so that nobody waits long for the last */
  return share > MOST ? MOST : share < 1 ? 1 : (int)share;
}

/* Where the slab's first rows are not asked for, their lanes hold what was there: numbers that nobody reads, but not any bits. */
static void clear_target_spectra(const task *t) {
  const int64_t grid = t->w->shape.grid, n = grid * grid * t->w->slices;
  const size_t value = (size_t)(t->target_groups * t->w->channels) * 16 * t->w->kernels->real_bytes;
  if (t->row_begin == t->s->row_begin) return;
#pragma omp for schedule(static)
  for (int64_t f = 0; f < n; f++) memset(t->w->target_spectra + (size_t)f * value, 0, value);
}

/* Slices from t->first_slice to before `after`, of which all frequencies are dealt out together. */
static void run_slices(const task *t, int after) {
  const int first = t->first_slice, n = after - first;
  const int64_t sources = t->source_groups * t->w->channels, targets = t->target_groups * t->w->channels;
  const int source_chunk = chunk_of(sources * n, t->state->threads), target_chunk = chunk_of(targets, t->state->threads);
  const int64_t of_first = frequencies_of(t, first), of_others = frequencies_of(t, 1), frequencies = of_first + (n - 1) * of_others;
#pragma omp for schedule(dynamic, source_chunk)
  for (int64_t i = 0; i < sources * n; i++) transform_source(t, first + (int)(i % n), i / n);
#pragma omp for schedule(dynamic, 1)
  for (int64_t i = 0; i < frequencies; i++) {
    const int64_t more = i - of_first;
    if (more >= 0) multiply_frequency(t, first + 1 + (int)(more / of_others), more % of_others);
    else if (first || i) multiply_frequency(t, first, i);
    else multiply_means(t);
  }
#pragma omp for schedule(dynamic, target_chunk) nowait /* the next slices' sources need none of it, and their products begin when they are done */
  for (int64_t i = 0; i < targets; i++)
    for (int kz = first; kz < after; kz++) transform_target(t, kz, i);
}

static void run_slab(task *t) {
  const int order = t->w->shape.order, slices = t->w->slices;
  clear_target_spectra(t);
#pragma omp for schedule(static)
  for (int64_t group = 0; group < t->source_groups; group++) load_group(t, group);
  for (t->first_slice = 0; t->first_slice < order; t->first_slice += slices) run_slices(t, t->first_slice + slices < order ? t->first_slice + slices : order);
#pragma omp barrier
#pragma omp for schedule(static)
  for (int64_t row = t->row_begin; row < t->row_end; row++) save_row(t, row);
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
    for (int64_t k = 0; k < w->slabs.n; k++) {
      t.s = &w->slabs.slab[k];
      t.row_begin = row_begin > t.s->row_begin ? row_begin : t.s->row_begin;
      t.row_end = row_end < t.s->row_end ? row_end : t.s->row_end;
      t.source_groups = t.s->source_group_end - t.s->source_group_begin, t.target_groups = t.s->target_group_end - t.s->target_group_begin;
      t.set = fmm_operators_at(state->operators, state->tree->level[state->lists->v.row[t.s->row_begin]] + 1);
      if (t.row_begin < t.row_end) run_slab(&t);
    }
  }
  return FMM_OK;
}

const fmm_phase_impl fmm_vlist_cpu = {.phase = FMM_PHASE_VLIST, .device = FMM_DEVICE_CPU, .name = "vlist_cpu", .reserve = reserve, .release = release,
                                      .bytes = bytes, .run = run};
