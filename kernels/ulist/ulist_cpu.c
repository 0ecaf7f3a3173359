/* U list on CPU cores: direct sums of a leaf's adjacent sources onto its targets (P2P), by the pair-sum engine.
 * A group of rows (ulist_groups.h) is one piece of work. Two leaves that are in each other's lists are summed in both directions at once, by
 * the first of them, for a leaf of another group into this group's halo; all else one-sided, row by row. Then every row adds what the halos
 * hold for it. One-sided source ranges that are neighbours in the sorted points are joined.
 * In single precision a thread that begins a group converts the group's points and those of its halo, once each, into a store of its own: places are the group's points, then
 * its halo's.
 * Layout of a halo: planes [value][its points].
 * Only a leaf with itself can hold coincident points (equal points share a leaf), so only that range is guarded. */
#include <omp.h>
#include <string.h>

#include "kernels/ask_ahead.h"
#include "kernels/pair/pair_block.h"
#include "kernels/pair/pair_sums.h"
#include "kernels/phase.h"
#include "kernels/ulist/ulist_groups.h"
#include "runtime/team_loop.h"

enum { MAX_RANGES = 64, MAX_MATES = 64 };
_Static_assert(sizeof(fmm_pair_points) == 120, "as model/footprint.c counts them");

typedef struct workspace {
  fmm_ulist_groups groups;
  int n_values;  /* of a point */
  double *halo;  /* of group g from halo_begin[g] * n_values on; NULL: pairs are not summed in both directions */
  fmm_pair_points *leaf; /* of each row, where they are; their bounds, where they are wanted, from the beginning */
  int bounded;             /* leaves have bounds */
  int weighed;             /* their densities are looked at before each run */
  int single;              /* pairs in both directions are summed from stores */
  fmm_pair_store store;    /* of thread 0; that of thread t is the t-th of its size */
} workspace;

/* Rows [begin, end) of one group. */
typedef struct work {
  const fmm_state *state;
  const workspace *own;
  const fmm_ulist_groups *groups;
  fmm_pair_sum sum;
  fmm_pair_store store;          /* this thread's */
  int both;                      /* pairs of rows of [row_begin, row_end) are summed in both directions */
  int all_in_both;               /* and there are no others */
  int64_t row_begin, row_end;    /* asked for */
  int32_t group, begin, end;
  int64_t group_points;          /* how many */
} work;

static fmm_pair_sources sources_of(const fmm_state *state, int64_t begin, int64_t end, int may_coincide) {
  const fmm_points *p = &state->tree->sources;
  fmm_pair_sources s = {.n = end - begin, .x = p->x + begin, .y = p->y + begin, .z = p->z + begin, .density = state->density + begin,
                        .component_stride = state->n_columns * p->n, .column_stride = p->n, .may_coincide = may_coincide};
  for (int k = 0; k < 3 && p->normal[0]; k++) s.normal[k] = p->normal[k] + begin;
  return s;
}

static fmm_pair_targets targets_of(const fmm_state *state, int32_t box) {
  const fmm_tree *tree = state->tree;
  int64_t begin = tree->target_begin[box];
  return (fmm_pair_targets){.n = tree->target_end[box] - begin, .x = tree->targets.x + begin, .y = tree->targets.y + begin,
                            .z = tree->targets.z + begin, .value = state->potential + begin,
                            .value_stride = state->n_columns * tree->targets.n, .column_stride = tree->targets.n};
}

/* Points of a row's box that are sources and targets, one column. */
static fmm_pair_points points_of(const fmm_state *state, int32_t row) {
  const fmm_points *p = &state->tree->sources;
  int32_t box = state->lists->u.row[row];
  int64_t begin = state->tree->source_begin[box];
  return (fmm_pair_points){.n = state->tree->source_end[box] - begin, .x = p->x + begin, .y = p->y + begin, .z = p->z + begin,
                           .density = state->density + begin, .component_stride = p->n};
}

static int64_t halo_points(const fmm_ulist_groups *groups, int32_t group) { return groups->halo_begin[group + 1] - groups->halo_begin[group]; }
static double *halo_of(const workspace *own, int32_t group) { return own->halo + own->groups.halo_begin[group] * own->n_values; }

/* The row that this entry is summed with in both directions, or -1. */
static int32_t mate_of(const work *w, int64_t entry) {
  int32_t mate = w->both ? w->groups->mate[entry] : -1;
  return mate >= w->row_begin && mate < w->row_end ? mate : -1;
}

static int64_t first_point(const work *w, int32_t row) { return w->own->leaf[row].x - w->state->tree->sources.x; }

/* A row of the group, its sums in place. Sides are written where they are kept: of one that was put together elsewhere whole vectors are copied that have just been written in parts, for which processors wait. */
static inline __attribute__((always_inline)) void set_side_of_row(const work *w, int32_t row, fmm_pair_side *side) {
  const int64_t begin = first_point(w, row);
  side->points = &w->own->leaf[row], side->begin = 0, side->n = w->own->leaf[row].n;
  side->value = w->state->potential + begin, side->value_stride = w->state->tree->targets.n;
  side->at = begin - first_point(w, w->groups->begin[w->group]);
}

/* The points of an entry with its mate's sums: in place within the group, else in the halo. */
static inline __attribute__((always_inline)) void set_mates_side(const work *w, int64_t entry, fmm_pair_side *side) {
  const int32_t mate = w->groups->mate[entry], place = w->groups->place[entry];
  set_side_of_row(w, mate, side);
  if (place >= 0) side->value = halo_of(w->own, w->group) + place, side->value_stride = halo_points(w->groups, w->group), side->at = w->group_points + place;
}

static void sum_one_sided(const work *w, int32_t row) {
  const fmm_rows *u = &w->state->lists->u;
  const fmm_tree *tree = w->state->tree;
  fmm_pair_targets targets = targets_of(w->state, u->row[row]);
  fmm_pair_sources range[MAX_RANGES];
  int n = 0;
  for (int64_t e = u->offset[row]; e < u->offset[row + 1]; e++) {
    int32_t box = u->entry[e];
    int own = box == u->row[row];
    if (own ? w->both : mate_of(w, e) >= 0) continue;
    int64_t begin = tree->source_begin[box], end = tree->source_end[box];
    if (n && !own && !range[n - 1].may_coincide && range[n - 1].x + range[n - 1].n == tree->sources.x + begin) {
      range[n - 1].n += end - begin;
      continue;
    }
    if (n == MAX_RANGES) fmm_pair_sum_add(&w->sum, &targets, n, range), n = 0;
    range[n++] = sources_of(w->state, begin, end, own);
  }
  if (n) fmm_pair_sum_add(&w->sum, &targets, n, range);
}

/* A row with itself, where its list says so (a cluster's inside is summed elsewhere), and in both directions with those of its mates that come behind it. */
static void sum_both_sided(const work *w, int32_t row) {
  const fmm_rows *u = &w->state->lists->u;
  fmm_pair_side own, other[MAX_MATES];
  int n = 0;
  set_side_of_row(w, row, &own);
  for (int64_t e = u->offset[row]; e < u->offset[row + 1]; e++) {
    if (u->entry[e] == u->row[row]) fmm_pair_sum_add_own(&w->sum, &w->store, &own);
    if (mate_of(w, e) <= row) continue; /* none, or done by the other */
    if (n == MAX_MATES) fmm_pair_sum_add_both(&w->sum, &w->store, &own, n, other), n = 0;
    set_mates_side(w, e, &other[n++]);
  }
  fmm_pair_sum_add_both(&w->sum, &w->store, &own, n, other);
}

/* Leaves come to the store from all over the points. While one is put there, the points of some behind it are on their way from memory, and the records of some behind these. */
enum { RECORDS_AHEAD = 8, POINTS_AHEAD = 4, ON_THEIR_WAY = 16 };
_Static_assert(RECORDS_AHEAD > POINTS_AHEAD && RECORDS_AHEAD < ON_THEIR_WAY, "none is put before its points are asked for, nor lost before it is put");
typedef struct way { int64_t n, at[ON_THEIR_WAY]; int32_t row[ON_THEIR_WAY]; } way;

FMM_ASKS void ask_for_points(const work *w, const fmm_pair_points *p) {
  fmm_ask_for(p->x, p->n), fmm_ask_for(p->y, p->n), fmm_ask_for(p->z, p->n);
  for (int k = 0; k < w->sum.pair->info->components; k++) fmm_ask_for(p->density + k * p->component_stride, p->n);
}

/* The step-th leaf has come; there may be none any more. */
static void advance(const work *w, const way *on, int64_t step) {
  const int64_t asked = step - (RECORDS_AHEAD - POINTS_AHEAD), put = step - RECORDS_AHEAD;
  if (asked >= 0 && asked < on->n) ask_for_points(w, &w->own->leaf[on->row[asked % ON_THEIR_WAY]]);
  if (put >= 0 && put < on->n) fmm_pair_store_put(&w->sum, &w->store, &w->own->leaf[on->row[put % ON_THEIR_WAY]], on->at[put % ON_THEIR_WAY]);
}

static void send(const work *w, way *on, int32_t row, int64_t at) {
  fmm_ask_for((const double *)&w->own->leaf[row], sizeof *w->own->leaf / sizeof(double));
  on->row[on->n % ON_THEIR_WAY] = row, on->at[on->n % ON_THEIR_WAY] = at;
  advance(w, on, on->n++);
}

/* What is summed from a store: the group's rows and its halo's. The rows' sums come too. */
static void fill_store(const work *w) {
  const fmm_ulist_groups *groups = w->groups;
  way on = {.n = 0};
  int64_t next = w->group_points;
  for (int32_t row = w->begin; row < w->end; row++) {
    fmm_pair_side own;
    set_side_of_row(w, row, &own);
    for (int v = 0; v < w->own->n_values; v++) fmm_ask_for(own.value + v * own.value_stride, own.n);
    send(w, &on, row, own.at);
  }
  for (int64_t k = groups->halo_row_begin[w->group]; k < groups->halo_row_begin[w->group + 1]; next += w->own->leaf[groups->halo_row[k++]].n)
    if (groups->halo_row[k] < w->row_end) send(w, &on, groups->halo_row[k], next);
  for (int64_t step = on.n; step < on.n + RECORDS_AHEAD; step++) advance(w, &on, step);
}

/* Points of a group's rows. */
static int64_t points_of_group(const fmm_state *state, const fmm_ulist_groups *groups, int32_t group) {
  const fmm_rows *u = &state->lists->u;
  return state->tree->source_end[u->row[groups->begin[group + 1] - 1]] - state->tree->source_begin[u->row[groups->begin[group]]];
}

static void sum_group(work w, int32_t group) {
  w.group = group;
  w.begin = w.groups->begin[group] > w.row_begin ? w.groups->begin[group] : (int32_t)w.row_begin;
  w.end = w.groups->begin[group + 1] < w.row_end ? w.groups->begin[group + 1] : (int32_t)w.row_end;
  if (w.begin >= w.end) return;
  w.group_points = points_of_group(w.state, w.groups, group);
  if (w.both) memset(halo_of(w.own, group), 0, (size_t)(halo_points(w.groups, group) * w.own->n_values) * sizeof(double));
  if (w.both && w.own->single) fill_store(&w);
  for (int32_t row = w.begin; row < w.end; row++) {
    if (!w.all_in_both) sum_one_sided(&w, row);
    if (w.both) sum_both_sided(&w, row);
  }
}

/* Where a part of a group's halo is, or NULL where the group was not summed. */
static const double *part_in_halo(const work *w, fmm_ulist_part part, int value) {
  return w->groups->begin[part.group + 1] <= w->row_begin ? NULL : halo_of(w->own, part.group) + value * halo_points(w->groups, part.group) + part.place;
}

/* Adds what the halos of the groups that were summed hold for a row, and asks for what they hold for the next. */
static void add_halos(const work *w, int32_t row) {
  const fmm_tree *tree = w->state->tree;
  const fmm_ulist_groups *groups = w->groups;
  const int64_t begin = first_point(w, row), n = w->own->leaf[row].n;
  if (row + 1 < w->row_end)
    for (int64_t k = groups->part_offset[row + 1]; k < groups->part_offset[row + 2]; k++)
      for (int v = 0; v < w->own->n_values; v++)
        if (part_in_halo(w, groups->part[k], v)) fmm_ask_for(part_in_halo(w, groups->part[k], v), w->own->leaf[row + 1].n);
  for (int64_t k = groups->part_offset[row]; k < groups->part_offset[row + 1]; k++)
    for (int v = 0; v < w->own->n_values; v++)
      if (part_in_halo(w, groups->part[k], v)) fmm_pair_arrays()->add(n, 1, part_in_halo(w, groups->part[k], v), w->state->potential + v * tree->targets.n + begin);
}

static fmm_pair_store store_of_thread(const workspace *own, int components, int thread) {
  fmm_pair_store s = own->store;
  if (own->single) s.quanta += 3 * s.capacity * thread, s.density += components * s.capacity * thread;
  return s;
}

static fmm_status run(fmm_state *state, int64_t row_begin, int64_t row_end) {
  const workspace *own = state->workspace[FMM_PHASE_ULIST];
  work w = {.state = state, .own = own, .groups = &own->groups, .row_begin = row_begin, .row_end = row_end};
  fmm_pair_sum_prepare(&w.sum, state->pair, state->params, state->n_columns, state->gradient, state->precision[FMM_PHASE_ULIST], fmm_tolerance_of_roots(state));
  fmm_pair_sum_allow_coarse(&w.sum);
  w.both = own->halo && fmm_pair_sum_prefers_both(&w.sum) && (own->single || !w.sum.single_kernels);
  w.all_in_both = w.both && own->groups.all_have_mates && row_begin == 0 && row_end >= state->lists->u.n_rows;
#pragma omp parallel num_threads(state->threads) firstprivate(w)
  {
    w.store = store_of_thread(own, state->pair->info->components, omp_get_thread_num());
    if (w.both && own->weighed) {
#pragma omp for schedule(static)
      for (int64_t row = row_begin; row < row_end; row++) fmm_pair_points_weigh(&w.sum, &own->leaf[row]);
    }
#pragma omp for schedule(dynamic, 1)
    for (int32_t k = 0; k < w.groups->n_groups; k++) sum_group(w, w.groups->order[k]);
    if (w.both) {
#pragma omp for schedule(static)
      for (int64_t row = row_begin; row < row_end; row++) add_halos(&w, (int32_t)row);
    }
  }
  return FMM_OK;
}

static void free_workspace(workspace *own) {
  fmm_ulist_groups_free(&own->groups);
  FMM_FREE(&own->halo);
  FMM_FREE(&own->leaf);
  FMM_FREE(&own->store.quanta);
  FMM_FREE(&own->store.density);
}

static void release(fmm_state *state) {
  workspace *own = state->workspace[FMM_PHASE_ULIST];
  if (own) free_workspace(own);
  FMM_FREE(&state->workspace[FMM_PHASE_ULIST]);
}

/* Groups, and how many doubles their halos take (0: none). */
static fmm_status plan_groups(const fmm_state *state, workspace *own, int64_t *n_halo) {
  const fmm_pair_info *info = state->pair->info;
  fmm_pair_sum sum;
  own->n_values = info->outputs * (state->gradient ? 4 : 1);
  fmm_pair_sum_prepare(&sum, state->pair, state->params, state->n_columns, state->gradient, state->precision[FMM_PHASE_ULIST], fmm_tolerance_of_roots(state));
  int both = state->tree->same_points && fmm_pair_sum_prefers_both(&sum);
  own->single = sum.single_kernels != NULL, own->bounded = fmm_pair_sum_wants_bounds(&sum), own->weighed = fmm_pair_sum_wants_weights(&sum);
  FMM_TRY(fmm_ulist_groups_create(&own->groups, state->tree, &state->lists->u, both, state->threads));
  *n_halo = both ? own->groups.halo_begin[own->groups.n_groups] * own->n_values + 1 : 0;
  return FMM_OK;
}

static void bound_leaves(void *context, int64_t begin, int64_t end) {
  const fmm_state *state = context;
  const workspace *own = state->workspace[FMM_PHASE_ULIST];
  for (int64_t row = begin; row < end; row++) {
    own->leaf[row] = points_of(state, (int32_t)row);
    if (own->bounded) fmm_pair_points_bound(&own->leaf[row]);
  }
}

/* A store a thread, each large enough for any group. */
static fmm_status reserve_stores(const fmm_state *state, workspace *own) {
  int64_t most = 0, components = state->pair->info->components;
  for (int32_t g = 0; g < own->groups.n_groups; g++) {
    int64_t points = points_of_group(state, &own->groups, g) + halo_points(&own->groups, g);
    most = points > most ? points : most;
  }
  own->store.capacity = most + FMM_PAIR_STORE_PADDING;
  FMM_TRY(FMM_ALLOCATE(&own->store.quanta, 3 * own->store.capacity * state->threads, "U list points in single precision"));
  return FMM_ALLOCATE(&own->store.density, components * own->store.capacity * state->threads, "U list densities in single precision");
}

static fmm_status reserve(fmm_state *state) {
  workspace *own;
  int64_t n_halo;
  fmm_status status = FMM_OK;
  FMM_TRY(FMM_ALLOCATE_ZERO(&own, 1, "U list workspace"));
  state->workspace[FMM_PHASE_ULIST] = own;
  FMM_CHECK(plan_groups(state, own, &n_halo));
  if (n_halo) FMM_CHECK(FMM_ALLOCATE(&own->halo, n_halo, "U list halos"));
  if (n_halo) FMM_CHECK(FMM_ALLOCATE(&own->leaf, state->lists->u.n_rows, "U list leaves"));
  if (n_halo && own->single) FMM_CHECK(reserve_stores(state, own));
  if (n_halo) fmm_team_loop(state->lists->u.n_rows, FMM_PARALLEL_MINIMUM / 16, bound_leaves, state, state->threads);
done:
  if (status != FMM_OK) release(state);
  return status;
}

static size_t bytes(const fmm_state *state) {
  const workspace *own = state->workspace[FMM_PHASE_ULIST];
  return own ? sizeof *own + fmm_ulist_groups_bytes(&own->groups) + fmm_memory_bytes(own->halo) + fmm_memory_bytes(own->leaf) + fmm_memory_bytes(own->store.quanta) +
                   fmm_memory_bytes(own->store.density)
             : 0;
}

const fmm_phase_impl fmm_ulist_cpu = {.phase = FMM_PHASE_ULIST, .device = FMM_DEVICE_CPU, .name = "ulist_cpu", .reserve = reserve,
                                      .release = release, .bytes = bytes, .run = run};
