/* Estimated work counts from samples at two sizes (estimate.h says how). */
#include "estimate.h"

#include <math.h>
#include <string.h>

#include "even_points.h"
#include "generate.h"
#include "jobs.h"
#include "refine.h"
#include "sample.h"
#include "team_loop.h"

enum { most_steps = 16, most_leaves = 5120 /* N / q beyond which a sample stands for fewer points */, most_to_sort = 3 << 19 /* three times as many as are picked */, few_in_cell = 8 /* rows that share what words tell: leaves mostly have more */ };
enum { most_parts = 2 * FMM_ESTIMATES_AT_ONCE /* trees to count, two for a choice at most */, most_sorted = 2 * most_parts /* of 1 MB a set */, most_drawn = 4 /* kept from call to call, of 3 MB a set */ };

/* How much of a problem a tree stands for: a part 1 / divisor of its points, and boxes an edge in units of its own that all trees of an estimate share. */
typedef struct size { double divisor, edge, root_scale; } size;

/* The sample of a part of so many points, whatever the root scale. last_use 0: none. */
typedef struct drawn { double divisor; int64_t last_use; fmm_sample sample; } drawn;

/* Such a sample as a root scale sorts it; its points are borrowed until it is sorted. */
typedef struct sorted { int is_made; size size; int64_t last_use; fmm_sample sample; fmm_sample_keys keys; } sorted;

/* A tree to count: of a sample, as one root scale sorts it. */
typedef struct part {
  const fmm_estimate *estimate;
  const fmm_count_case *what;
  int step, leaf_size;
  size size;
  sorted *sorted;
  fmm_counts counts;
} part;

struct fmm_estimate {
  fmm_origin origin;
  char distribution[32];
  int dimension;
  int is_even, is_prepared; /* rows that fill a cube evenly are sorted for the first tree that is asked for */
  fmm_sorted_rows all;     /* the caller's rows, where there are not too many */
  fmm_deep_cells deep[2];  /* of each set's */
  fmm_sample_picks picks;  /* for all samples */
  drawn drawn[most_drawn + most_parts];
  sorted sorted[most_sorted];
  int64_t now; /* calls of fmm_estimate_counts */
  part parts[most_parts]; /* of the present call: too much for a stack */
};

static int64_t larger_set(const fmm_estimate *e) { return e->origin.n[0] > e->origin.n[1] ? e->origin.n[0] : e->origin.n[1]; }

static fmm_status find_dimension(fmm_estimate *e) {
  fmm_sample sample;
  fmm_sample_keys keys;
  if (e->is_even || larger_set(e) <= FMM_ESTIMATE_EXACT) return FMM_OK;
  fmm_status status = fmm_sample_make(&sample, &e->origin, fmax(1, (double)larger_set(e) / FMM_SAMPLE_MOST), &e->picks);
  if (status == FMM_OK) status = fmm_sample_sort(&sample, &e->origin, 1, &keys);
  if (status == FMM_OK) {
    e->dimension = fmm_sample_dimension(&sample, &keys, larger_set(e), e->origin.threads);
    fmm_sample_keys_free(&keys);
  }
  fmm_sample_free(&sample);
  return status;
}

int fmm_estimate_dimension(const fmm_estimate *estimate) { return estimate->dimension; }

/* A number, not a measurement, as choices are to be the same every time. Choices for 400,000 to 2,000,000 points took 0.6 to 2 ms an estimate on two Zen 5 cores, 0.7 to 2 on 16 of a Xeon, which have few trees at once to share. */
double fmm_estimate_seconds(const fmm_estimate *e, int cores) {
  const double a_point = 1.6e-8, points = fmin((double)larger_set(e), FMM_SAMPLE_MOST);
  return a_point * points / pow(cores > 1 ? cores : 1, 0.25);
}

/* Sorting all rows takes little longer than sorting those that would be picked, and a tree of that root scale may come of it, whose sort that is. */
static int wants_all(const fmm_estimate *e) { return !e->origin.distribution && larger_set(e) > FMM_SAMPLE_MOST && larger_set(e) <= most_to_sort; }

/* Whole keys where many rows share what words tell; *serve: 0 where that is so of too many. */
static fmm_status deepen(fmm_estimate *e, int set, int *serve) {
  const fmm_origin *o = &e->origin;
  const int64_t n = e->all.n[set];
  fmm_frame frame;
  fmm_cell_list cells;
  fmm_frame_place(&frame, &o->bounds, o->root_scale);
  FMM_TRY(fmm_deep_cells_find(&cells, &e->all.set[set], n, few_in_cell, o->threads));
  fmm_status status = FMM_OK;
  *serve = !cells.n;
  if (cells.n && cells.n * few_in_cell <= n / FMM_DEEP_PART) status = fmm_deep_cells_make(&e->deep[set], &cells, &e->all.set[set], n, &frame, o->rows[set], o->threads, serve);
  FMM_FREE(&cells.cell);
  return status;
}

static fmm_status sort_all(fmm_estimate *e) {
  const fmm_origin *o = &e->origin;
  const fmm_input_points input[2] = {{o->n[0], o->rows[0], NULL}, {o->n[1], o->rows[1], NULL}};
  int serve = wants_all(e);
  if (!serve) return FMM_OK;
  FMM_TRY(fmm_rows_sort(&e->all, &o->bounds, o->root_scale, 2 - o->same_points, input, o->threads));
  for (int k = 0; k < 2 - o->same_points && serve; k++) FMM_TRY(deepen(e, k, &serve));
  if (serve) e->origin.sorted = &e->all, e->origin.deep = e->deep;
  return FMM_OK;
}

void fmm_estimate_take_sorted(fmm_estimate *e, fmm_sorted_rows *taken) {
  *taken = e->all;
  e->all = (fmm_sorted_rows){0};
}

/* All but those used last. */
static void drop_drawn(fmm_estimate *e, int kept) {
  const int n = (int)(sizeof e->drawn / sizeof *e->drawn);
  for (int64_t use = e->now; use > 0 && kept > 0; use--)
    for (int i = 0; i < n && kept > 0; i++)
      if (e->drawn[i].last_use == use) e->drawn[i].last_use = -use, kept--; /* marked */
  for (int i = 0; i < n; i++) {
    drawn *d = &e->drawn[i];
    if (d->last_use > 0) fmm_sample_free(&d->sample);
    d->last_use = d->last_use < 0 ? -d->last_use : 0;
  }
}

static void forget_samples(fmm_estimate *e) {
  fmm_sample_picks_free(&e->picks);
  fmm_rows_free(&e->all);
  for (int k = 0; k < 2; k++) fmm_deep_cells_free(&e->deep[k]);
  drop_drawn(e, 0);
  for (int k = 0; k < most_sorted; k++) {
    fmm_sample_keys_free(&e->sorted[k].keys);
    e->sorted[k] = (sorted){0};
  }
  e->origin.sorted = NULL, e->is_prepared = 0;
}

/* Samples for one root scale as it is, for others by new keys. */
static fmm_status prepare(fmm_estimate *e, double root_scale) {
  forget_samples(e); /* of a call that failed */
  e->origin.root_scale = root_scale;
  fmm_status status = sort_all(e);
  if (status == FMM_OK) status = fmm_sample_pick(&e->picks, &e->origin);
  if (status == FMM_OK) status = find_dimension(e);
  e->is_prepared = status == FMM_OK;
  return status;
}

/* Of one set whose trees are estimated from samples. */
static fmm_status look_whether_even(fmm_estimate *e) {
  const int64_t some = FMM_SAMPLE_MOST;
  const fmm_origin *o = &e->origin;
  double *rows = NULL;
  fmm_bounds bounds;
  fmm_status status = FMM_OK;
  if (!o->same_points || larger_set(e) <= FMM_SAMPLE_MOST) return FMM_OK;
  if (!o->distribution) return fmm_points_look_even(o->n[0], o->rows[0], &o->bounds, o->threads, &e->is_even);
  FMM_CHECK(FMM_ALLOCATE(&rows, 3 * some, "points of a distribution"));
  FMM_CHECK(fmm_generate_points(o->distribution, some, 1, rows, o->threads));
  FMM_CHECK(fmm_bounds_of(&bounds, some, rows, 0, NULL, o->threads));
  FMM_CHECK(fmm_points_look_even(some, rows, &bounds, o->threads, &e->is_even));
done:
  FMM_FREE(&rows);
  return status;
}

static fmm_status create(fmm_estimate **estimate, const fmm_origin *origin) {
  fmm_estimate *e = NULL;
  FMM_TRY(FMM_ALLOCATE_ZERO(&e, 1, "estimate of counts"));
  e->origin = *origin;
  e->dimension = 3;
  if (origin->distribution) {
    strncpy(e->distribution, origin->distribution, sizeof e->distribution - 1);
    e->origin.distribution = e->distribution;
  }
  fmm_status status = look_whether_even(e);
  if (status == FMM_OK && !e->is_even) status = prepare(e, 1);
  if (status == FMM_OK) *estimate = e;
  else fmm_estimate_destroy(&e);
  return status;
}

fmm_status fmm_estimate_create(fmm_estimate **estimate, int64_t n_sources, const double *sources, int64_t n_targets, const double *targets,
                               int threads) {
  fmm_bounds bounds; /* checks every row: samples see only some */
  FMM_TRY(fmm_bounds_of(&bounds, n_sources, sources, n_targets, targets, threads));
  return fmm_estimate_create_within(estimate, &bounds, n_sources, sources, n_targets, targets, threads);
}

fmm_status fmm_estimate_create_within(fmm_estimate **estimate, const fmm_bounds *bounds, int64_t n_sources, const double *sources, int64_t n_targets, const double *targets,
                                      int threads) {
  return create(estimate, &(fmm_origin){.rows = {sources, targets}, .n = {n_sources, n_targets}, .bounds = *bounds, .same_points = !targets, .threads = threads});
}

fmm_status fmm_estimate_create_named(fmm_estimate **estimate, const char *distribution, int64_t n, int threads) {
  if (n < 0) return FMM_FAIL(FMM_ERR_ARGUMENT, "%lld points of %s; a count cannot be negative", (long long)n, distribution);
  FMM_TRY(fmm_generate_points(distribution, 0, 1, NULL, threads)); /* is the name known? */
  return create(estimate, &(fmm_origin){.distribution = distribution, .n = {n, 0}, .same_points = 1, .threads = threads});
}

typedef struct scaling { double weight; int64_t *begin, *end; } scaling;

static void scale_piece(void *context, int64_t begin, int64_t end) {
  const scaling *s = context;
  for (int64_t i = begin; i < end; i++) s->begin[i] = llround((double)s->begin[i] * s->weight), s->end[i] = llround((double)s->end[i] * s->weight);
}

/* From ranges of samples to ranges of the points they stand for. */
static void scale_ranges(double weight, int64_t n_boxes, int64_t *begin, int64_t *end, int threads) {
  fmm_team_loop(n_boxes, 4 * FMM_PARALLEL_MINIMUM, scale_piece, &(scaling){weight, begin, end}, threads); /* a few nanoseconds a box */
}

static int64_t most_samples_in(const fmm_sample_set *s, int leaf_size) {
  double most = floor(leaf_size / fmm_sample_weight(s));
  return most > 1 ? (int64_t)most : 1;
}

/* The tree of a sample, in numbers of the points it stands for. */
static fmm_status refine(const part *p, fmm_tree *t) {
  const fmm_origin *o = &p->estimate->origin;
  const fmm_sample *sample = &p->sorted->sample;
  const fmm_sample_keys *keys = &p->sorted->keys;
  const int threads = o->threads, second = !o->same_points;
  const fmm_sample_set *s = &sample->set[0], *targets = &sample->set[second];
  const int64_t most[2] = {most_samples_in(s, p->leaf_size), most_samples_in(targets, p->leaf_size)};
  *t = (fmm_tree){.leaf_size = p->leaf_size, .root_scale = p->size.root_scale, .same_points = o->same_points, .scale = keys->frame.scale,
                  .root_side = keys->frame.side, .coincident = keys->frame.coincident, .sources.n = s->n, .targets.n = targets->n};
  FMM_TRY(fmm_tree_refine(t, &(fmm_sorted_words){.word = keys->keys[0]}, &(fmm_sorted_words){.word = keys->keys[second]}, most, threads));
  scale_ranges(fmm_sample_weight(s), t->n_boxes, t->source_begin, t->source_end, threads);
  scale_ranges(fmm_sample_weight(targets), t->n_boxes, t->target_begin, t->target_end, threads);
  t->sources.n = s->n_points, t->targets.n = targets->n_points;
  if (!p->what->no_gpu && p->what->tolerance > 0) {
    t->filling = fmm_filling_of_keys(s->n, keys->keys[0]);
    t->filling.log_density += log(fmm_sample_weight(s));
  }
  return FMM_OK;
}

static fmm_status count_part(void *context) {
  part *p = context;
  const fmm_origin *o = &p->estimate->origin;
  const int threads = o->threads;
  fmm_count_case what = *p->what;
  fmm_tree tree = {0};
  fmm_lists lists = {0};
  fmm_status status;
  FMM_CHECK(refine(p, &tree));
  FMM_CHECK(fmm_lists_build(&lists, &tree, fmm_surface_size(p->what->order), FMM_LISTS_TO_COUNT, threads));
  what.all_targets = o->n[!o->same_points];
  FMM_CHECK(fmm_count_work(&tree, &lists, &what, threads, &p->counts));
done:
  fmm_lists_free(&lists);
  fmm_tree_free(&tree);
  return status;
}

static fmm_status sort_part(void *context) {
  part *p = context;
  fmm_status status = fmm_sample_sort(&p->sorted->sample, &p->estimate->origin, p->size.root_scale, &p->sorted->keys);
  p->sorted->is_made = status == FMM_OK;
  return status;
}

/* Where these are, or the place of those that were not used for longest. */
static sorted *place_of(fmm_estimate *e, size wanted) {
  sorted *oldest = &e->sorted[0];
  for (int i = 0; i < most_sorted; i++) {
    sorted *s = &e->sorted[i];
    if (s->last_use && s->size.divisor == wanted.divisor && s->size.root_scale == wanted.root_scale) return s;
    if (s->last_use < oldest->last_use) oldest = s;
  }
  fmm_sample_keys_free(&oldest->keys);
  *oldest = (sorted){.size = wanted};
  return oldest;
}

/* Surfaces have samples of few sizes for all their trees. */
static fmm_status draw(fmm_estimate *e, double divisor, fmm_sample *borrowed) {
  drawn *empty = NULL;
  for (size_t i = 0; i < sizeof e->drawn / sizeof *e->drawn; i++) {
    drawn *d = &e->drawn[i];
    if (d->last_use && d->divisor == divisor) return d->last_use = e->now, *borrowed = d->sample, FMM_OK;
    if (!d->last_use) empty = d;
  }
  if (!empty) return FMM_FAIL(FMM_ERR_INTERNAL, "more than %d samples for %d trees", (int)most_drawn + most_parts, (int)most_parts);
  fmm_status status = fmm_sample_make(&empty->sample, &e->origin, divisor, &e->picks);
  if (status != FMM_OK) return fmm_sample_free(&empty->sample), status;
  empty->divisor = divisor, empty->last_use = e->now;
  return *borrowed = empty->sample, FMM_OK;
}

/* The largest trees first, so that no thread is left with one of them when the others have ended. */
static void put_largest_first(int n, part **parts) {
  for (int i = 1; i < n; i++)
    for (int k = i; k > 0 && parts[k]->size.divisor * parts[k]->leaf_size < parts[k - 1]->size.divisor * parts[k - 1]->leaf_size; k--) {
      part *larger = parts[k];
      parts[k] = parts[k - 1], parts[k - 1] = larger;
    }
}

static fmm_status run_parts(fmm_estimate *e, int n, part **parts, fmm_job_run *run) {
  fmm_job jobs[most_parts];
  for (int i = 0; i < n; i++) jobs[i] = (fmm_job){.name = "estimate", .run = run, .context = parts[i]};
  return n ? fmm_jobs_run(jobs, n, e->origin.threads) : FMM_OK;
}

static fmm_status count_parts(fmm_estimate *e, int n) {
  part *parts = e->parts, *all[most_parts];
  part *unsorted[most_parts];
  int n_unsorted = 0;
  drop_drawn(e, most_drawn); /* of a call that failed there may be more */
  e->now++;
  for (int i = 0; i < n; i++) {
    sorted *s = parts[i].sorted = place_of(e, parts[i].size);
    if (!s->is_made && s->last_use != e->now) {
      FMM_TRY(draw(e, s->size.divisor, &s->sample));
      unsorted[n_unsorted++] = &parts[i];
    }
    s->last_use = e->now;
    all[i] = &parts[i];
  }
  FMM_TRY(run_parts(e, n_unsorted, unsorted, sort_part));
  drop_drawn(e, most_drawn);
  put_largest_first(n, all);
  return run_parts(e, n, all, count_part);
}

/* By what to multiply a number counted of a[0] to have it for all points, a[1] being the smaller tree. Work a point is limit x (1 - border / boxes an edge). */
static double growth(double more, double less, const size a[2]) {
  const double e = a[0].edge, f = a[1].edge, all = a[0].divisor, at = more * a[0].divisor, next = less * a[1].divisor;
  if (!(at > 0) || !(next > 0)) return all;
  const double limit = fmin(fmax((at * e - next * f) / (e - f), 0.5 * at), 1.5 * at); /* more is irregular */
  const double border = e * (1 - at / limit);
  return all * (1 - border) / (1 - border / e);
}

/* The same for a number with a constant part (operators read once): a straight line through both. */
static double line_growth(double more, double less, const size a[2]) {
  double slope = (more - less) / (1 - a[0].divisor / a[1].divisor);
  return more > 0 && slope > 0 ? 1 + (a[0].divisor - 1) * slope / more : a[0].divisor;
}

/* W and X are where leaves of different sizes meet. Of points that fill space these become fewer a point as boxes become smaller than what the density changes over: of Plummer models and Gaussian clusters, of eight times the
 * points, to 0.12 to 0.45 of what they were, half of that part or less at the next step; where the density jumps, a border, to a half. So: to half the root of what it was a step before. 0: there are none. */
static double fading(double more, double less, const size a[2]) {
  const double e = a[0].edge, f = a[1].edge, all = a[0].divisor, at = more * a[0].divisor, next = less * a[1].divisor;
  if (!(at > 0)) return 0;
  const double steps = log2(1 / e) / log2(e / f), each = next > at ? sqrt(at / next) / 2 : 0.5;
  return all * pow(each, steps);
}

static int is_between_sizes(int work) { return work == FMM_PHASE_WLIST || work == FMM_PHASE_XLIST || work == FMM_WORK_WLIST_GPU || work == FMM_WORK_XLIST_GPU; }

static void extrapolate(const fmm_counts *a, const fmm_counts *b, int step, int dimension, const size *sizes, fmm_counts *c) {
  for (int work = 0; work < FMM_N_WORKS; work++) {
    const fmm_work *p = &a->total[work], *q = &b->total[work];
    double pairs = growth(p->pairs, q->pairs, sizes), main = growth(p->flops - p->other, q->flops - q->other, sizes), other = growth(p->other, q->other, sizes);
    double entries = growth(p->entries, q->entries, sizes), bytes = line_growth(p->bytes, q->bytes, sizes);
    const double faded = dimension == 3 && is_between_sizes(work) ? fading(p->pairs, q->pairs, sizes) : 0;
    if (faded > 0) pairs = main = other = entries = bytes = faded;
    memset(c->level[work], 0, sizeof c->level[work]);
    for (int l = 0; l < FMM_MAX_LEVELS; l++) { /* boxes move down by `step` levels; what falls below the last stays there */
      fmm_work *to = &c->level[work][l + step < FMM_MAX_LEVELS ? l + step : FMM_MAX_LEVELS - 1];
      const fmm_work *from = &a->level[work][l];
      to->pairs += pairs * from->pairs, to->other += other * from->other, to->flops += main * (from->flops - from->other) + other * from->other;
      to->bytes += bytes * from->bytes, to->entries += entries * from->entries;
      to->longest += from->longest; /* leaves are as large */
    }
  }
  c->n_levels = a->n_levels + step < FMM_MAX_LEVELS ? a->n_levels + step : FMM_MAX_LEVELS;
  c->n_leaves = llround((double)a->n_leaves * growth((double)a->n_leaves, (double)b->n_leaves, sizes));
  c->n_boxes = llround((double)a->n_boxes * growth((double)a->n_boxes, (double)b->n_boxes, sizes));
  c->own_pairs = a->own_pairs * growth(a->own_pairs, b->own_pairs, sizes);
  c->v_pairs = llround((double)a->v_pairs * growth((double)a->v_pairs, (double)b->v_pairs, sizes));
  fmm_counts_add_up(c);
}

static fmm_status check(const fmm_tree_options *choice) {
  if (choice->leaf_size < 1) return FMM_FAIL(FMM_ERR_ARGUMENT, "leaf size is %d; it must be at least 1", choice->leaf_size);
  if (!(choice->root_scale >= 1 && choice->root_scale <= 2)) return FMM_FAIL(FMM_ERR_ARGUMENT, "root scale is %g; it must be in [1, 2]", choice->root_scale);
  return FMM_OK;
}

static int step_for(const fmm_estimate *e, int leaf_size) {
  int step = 0;
  for (double n = (double)larger_set(e); n > FMM_ESTIMATE_EXACT && n / leaf_size > most_leaves && step < most_steps - 2; step++) n = ldexp(n, -e->dimension);
  return step;
}

/* Step k of a tree: a part 1 / 2^(k dimension) of the points, whose boxes an edge are halved k times. Cubes are told by what sticks out of the last whole box, so of points that fill space boxes an edge, 2^level / root scale
 * on the level of the leaves, keep their remainder by two, which is what parents see, and points and scale follow. */
static size size_at(const fmm_estimate *e, const fmm_tree_options *choice, int step) {
  const double scale = choice->root_scale, n = (double)larger_set(e);
  size plain = {ldexp(1, step * e->dimension), ldexp(1, -step), scale};
  if (!step || e->dimension < 3) return plain;
  const double level = ceil(log2(n * scale * scale * scale / choice->leaf_size) / 3), edge = exp2(level) / scale, half = ldexp(edge, -step);
  const double alike = half + remainder(edge - half, 2), alike_scale = exp2(level - step) / alike;
  if (!(alike > 2) || !(alike_scale >= 1 && alike_scale <= 2)) return plain;
  const double smaller = edge / alike;
  return (size){smaller * smaller * smaller, 1 / smaller, alike_scale};
}

fmm_status fmm_estimate_counts(fmm_estimate *e, int n, const fmm_tree_options *choice, const fmm_count_case *what, fmm_counts *counts) {
  part *parts = e->parts;
  int n_parts = 0, k = 0;
  if (n > FMM_ESTIMATES_AT_ONCE) return FMM_FAIL(FMM_ERR_INTERNAL, "%d trees to estimate at once, more than %d", n, FMM_ESTIMATES_AT_ONCE);
  for (int i = 0; i < n; i++) FMM_TRY(check(&choice[i]));
  if (!e->is_prepared && n) FMM_TRY(prepare(e, choice[0].root_scale));
  for (int i = 0; i < n; i++) {
    const int step = step_for(e, choice[i].leaf_size);
    for (int j = 0; j <= (step > 0); j++) parts[n_parts++] = (part){.estimate = e, .what = what, .step = step + j, .leaf_size = choice[i].leaf_size, .size = size_at(e, &choice[i], step + j)};
  }
  FMM_TRY(count_parts(e, n_parts));
  for (int i = 0; i < n; i++) {
    const part *more = &parts[k++];
    counts[i] = more->counts;
    if (more->step) {
      const part *less = &parts[k++];
      extrapolate(&more->counts, &less->counts, more->step, e->dimension, (const size[]){more->size, less->size}, &counts[i]);
    }
    counts[i].n_sources = e->origin.n[0], counts[i].n_targets = e->origin.n[!e->origin.same_points];
  }
  return FMM_OK;
}

/* Full trees of two sizes without samples, for each number of points a leaf: a cell of the level of the leaves is one key, which stands for so many. */
static fmm_status count_even(fmm_estimate *e, const fmm_count_case *what, uint64_t *const keys[2], fmm_counts counts[FMM_EVEN_TREES]) {
  enum { level = 4 };
  static const int a_leaf[FMM_EVEN_TREES] = {32, 90, 256};
  sorted full[2 * FMM_EVEN_TREES];
  part *parts[2 * FMM_EVEN_TREES];
  for (int i = 0; i < 2 * FMM_EVEN_TREES; i++) {
    const int smaller = i % 2, many = a_leaf[i / 2];
    const int64_t cells = (int64_t)1 << 3 * (level - smaller);
    const double n = (double)larger_set(e), edge = cbrt(n / many); /* boxes of so many points an edge */
    full[i] = (sorted){.is_made = 1, .sample.set[0] = {.n = cells, .n_points = many * cells}, .keys.keys[0] = keys[smaller]};
    fmm_frame_place(&full[i].keys.frame, &(fmm_bounds){{0, 0, 0}, {1, 1, 1}, 1}, 1);
    e->parts[i] = (part){.estimate = e, .what = what, .leaf_size = many, .size = {n / (double)(many * cells), ldexp(1, level - smaller) / edge, 1}, .sorted = &full[i]};
    parts[i] = &e->parts[i];
    if (i < 2) fmm_even_keys(level - smaller, keys[smaller]);
  }
  FMM_TRY(run_parts(e, 2 * FMM_EVEN_TREES, parts, count_part));
  for (int k = 0; k < FMM_EVEN_TREES; k++) {
    const part *more = &e->parts[2 * k], *less = &e->parts[2 * k + 1];
    counts[k] = more->counts;
    extrapolate(&more->counts, &less->counts, 0, 3, (const size[]){more->size, less->size}, &counts[k]);
    counts[k].n_sources = counts[k].n_targets = e->origin.n[0];
  }
  return FMM_OK;
}

fmm_status fmm_estimate_even(fmm_estimate *e, const fmm_count_case *what, fmm_counts counts[FMM_EVEN_TREES], int *is_even) {
  enum { most_keys = 1 << 12 };
  uint64_t *keys[2] = {NULL, NULL};
  fmm_status status = FMM_OK;
  *is_even = e->is_even;
  if (!e->is_even) return FMM_OK;
  forget_samples(e);
  for (int k = 0; k < 2; k++) FMM_CHECK(FMM_ALLOCATE(&keys[k], most_keys >> 3 * k, "keys of a full tree"));
  FMM_CHECK(count_even(e, what, keys, counts));
done:
  for (int k = 0; k < 2; k++) FMM_FREE(&keys[k]);
  return status;
}

void fmm_estimate_destroy(fmm_estimate **estimate) {
  if (!*estimate) return;
  forget_samples(*estimate);
  FMM_FREE(estimate);
}
