/* U list on CPU cores: direct sums of a leaf's adjacent sources onto its targets (P2P), by the pair-sum engine.
 * A group of rows (ulist_groups.h) is one piece of work. Two leaves that are in each other's lists are summed in both directions at once, by
 * the first of them, for a leaf of another group into this group's halo; all else one-sided, row by row. Then every row adds what the halos
 * hold for it. Source ranges that are neighbours in the sorted points are joined.
 * Layout of a halo: planes [value][its points].
 * Only a leaf with itself can hold coincident points (equal points share a leaf), so only that range is guarded. */
#include <string.h>

#include "kernels/pair/pair_sums.h"
#include "kernels/phase.h"
#include "kernels/ulist/ulist_groups.h"

enum { MAX_RANGES = 64 };
_Static_assert(sizeof(fmm_pair_points) == 120, "as model/footprint.c counts them");

typedef struct workspace {
  fmm_ulist_groups groups;
  int n_values;  /* of a point */
  double *halo;  /* of group g from halo_begin[g] * n_values on; NULL: pairs are not summed in both directions */
  fmm_pair_points *leaf; /* of each row, where they are; their bounds from the beginning */
} workspace;

/* Rows [begin, end) of one group. */
typedef struct work {
  const fmm_state *state;
  const workspace *own;
  const fmm_ulist_groups *groups;
  fmm_pair_sum sum;
  int both;                      /* pairs of rows of [row_begin, row_end) are summed in both directions */
  int64_t row_begin, row_end;    /* asked for */
  int32_t group, begin, end;
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
                           .density = state->density + begin, .component_stride = p->n, .value = state->potential + begin, .value_stride = p->n};
}

static int64_t halo_points(const fmm_ulist_groups *groups, int32_t group) { return groups->halo_begin[group + 1] - groups->halo_begin[group]; }
static double *halo_of(const workspace *own, int32_t group) { return own->halo + own->groups.halo_begin[group] * own->n_values; }

/* The row that this entry is summed with in both directions, or -1. */
static int32_t mate_of(const work *w, int64_t entry) {
  int32_t mate = w->both ? w->groups->mate[entry] : -1;
  return mate >= w->row_begin && mate < w->row_end ? mate : -1;
}

/* The points of an entry with its mate's sums: in place within the group, else in the halo. */
static fmm_pair_points mates_points(const work *w, int64_t entry) {
  fmm_pair_points p = w->own->leaf[w->groups->mate[entry]];
  if (w->groups->place[entry] < 0) return p;
  p.value = halo_of(w->own, w->group) + w->groups->place[entry];
  p.value_stride = halo_points(w->groups, w->group);
  return p;
}

static void sum_one_sided(const work *w, int32_t row) {
  const fmm_rows *u = &w->state->lists->u;
  const fmm_tree *tree = w->state->tree;
  fmm_pair_targets targets = targets_of(w->state, u->row[row]);
  fmm_pair_sources range[MAX_RANGES];
  int n = 0;
  for (int64_t e = u->offset[row]; e < u->offset[row + 1]; e++) {
    if (mate_of(w, e) >= 0) continue;
    int32_t box = u->entry[e];
    int own = box == u->row[row];
    int64_t begin = tree->source_begin[box], end = tree->source_end[box];
    if (n && !own && !range[n - 1].may_coincide && range[n - 1].x + range[n - 1].n == tree->sources.x + begin) {
      range[n - 1].n += end - begin;
      continue;
    }
    if (n == MAX_RANGES) fmm_pair_sum_add(&w->sum, &targets, n, range), n = 0;
    range[n++] = sources_of(w->state, begin, end, own);
  }
  fmm_pair_sum_add(&w->sum, &targets, n, range);
}

/* Joins p to those before it where the one lie behind the other, values included. */
static int join(fmm_pair_points *before, const fmm_pair_points *p) {
  if (before->x + before->n != p->x || before->value + before->n != p->value) return 0;
  before->n += p->n;
  if (p->largest > before->largest) before->largest = p->largest;
  for (int axis = 0; axis < 3; axis++) {
    if (p->bounds[axis][0] < before->bounds[axis][0]) before->bounds[axis][0] = p->bounds[axis][0];
    if (p->bounds[axis][1] > before->bounds[axis][1]) before->bounds[axis][1] = p->bounds[axis][1];
  }
  return 1;
}

static void sum_both_sided(const work *w, int32_t row) {
  const fmm_rows *u = &w->state->lists->u;
  const fmm_pair_points *own = &w->own->leaf[row];
  fmm_pair_points other[MAX_RANGES];
  int n = 0;
  for (int64_t e = u->offset[row]; e < u->offset[row + 1]; e++) {
    if (mate_of(w, e) <= row) continue; /* none, or done by the other */
    fmm_pair_points p = mates_points(w, e);
    if (n && join(&other[n - 1], &p)) continue;
    if (n == MAX_RANGES) fmm_pair_sum_add_both(&w->sum, own, n, other), n = 0;
    other[n++] = p;
  }
  fmm_pair_sum_add_both(&w->sum, own, n, other);
}

static void sum_group(work w, int32_t group) {
  w.group = group;
  w.begin = w.groups->begin[group] > w.row_begin ? w.groups->begin[group] : (int32_t)w.row_begin;
  w.end = w.groups->begin[group + 1] < w.row_end ? w.groups->begin[group + 1] : (int32_t)w.row_end;
  if (w.begin >= w.end) return;
  if (w.both) memset(halo_of(w.own, group), 0, (size_t)(halo_points(w.groups, group) * w.own->n_values) * sizeof(double));
  for (int32_t row = w.begin; row < w.end; row++) {
    sum_one_sided(&w, row);
    if (w.both) sum_both_sided(&w, row);
  }
}

/* Adds what the halos of the groups that were summed hold for a row. */
static void add_halos(const work *w, int32_t row) {
  const fmm_tree *tree = w->state->tree;
  const fmm_ulist_groups *groups = w->groups;
  int64_t begin = tree->target_begin[w->state->lists->u.row[row]], n = tree->target_end[w->state->lists->u.row[row]] - begin;
  for (int64_t k = groups->part_offset[row]; k < groups->part_offset[row + 1]; k++) {
    const fmm_ulist_part part = groups->part[k];
    if (groups->begin[part.group + 1] <= w->row_begin) continue;
    for (int v = 0; v < w->own->n_values; v++) {
      const double *from = halo_of(w->own, part.group) + v * halo_points(groups, part.group) + part.place;
      double *to = w->state->potential + v * tree->targets.n + begin;
      for (int64_t i = 0; i < n; i++) to[i] += from[i];
    }
  }
}

static void find_leaf(const work *w, int32_t row) {
  fmm_pair_points leaf = points_of(w->state, row);
  memcpy(leaf.bounds, w->own->leaf[row].bounds, sizeof leaf.bounds);
  if (w->sum.single_kernels) fmm_pair_points_weigh(&w->sum, &leaf);
  w->own->leaf[row] = leaf;
}

static fmm_status run(fmm_state *state, int64_t row_begin, int64_t row_end) {
  const workspace *own = state->workspace[FMM_PHASE_ULIST];
  work w = {.state = state, .own = own, .groups = &own->groups, .row_begin = row_begin, .row_end = row_end};
  fmm_pair_sum_prepare(&w.sum, state->pair, state->params, state->n_columns, state->gradient, state->precision[FMM_PHASE_ULIST], state->tolerance);
  fmm_pair_sum_allow_coarse(&w.sum);
  w.both = own->halo && fmm_pair_sum_prefers_both(&w.sum);
#pragma omp parallel num_threads(state->threads)
  {
    if (w.both) {
#pragma omp for schedule(static)
      for (int64_t row = row_begin; row < row_end; row++) find_leaf(&w, (int32_t)row);
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
  fmm_pair_sum_prepare(&sum, state->pair, state->params, state->n_columns, state->gradient, state->precision[FMM_PHASE_ULIST], state->tolerance);
  int both = state->tree->same_points && fmm_pair_sum_prefers_both(&sum);
  FMM_TRY(fmm_ulist_groups_create(&own->groups, state->tree, &state->lists->u, both, state->threads));
  *n_halo = both ? own->groups.halo_begin[own->groups.n_groups] * own->n_values + 1 : 0;
  return FMM_OK;
}

static void bound_leaves(const fmm_state *state, workspace *own) {
#pragma omp parallel for schedule(static) num_threads(state->threads)
  for (int32_t row = 0; row < state->lists->u.n_rows; row++) {
    own->leaf[row] = points_of(state, row);
    fmm_pair_points_bound(&own->leaf[row]);
  }
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
  if (n_halo) bound_leaves(state, own);
done:
  if (status != FMM_OK) release(state);
  return status;
}

static size_t bytes(const fmm_state *state) {
  const workspace *own = state->workspace[FMM_PHASE_ULIST];
  return own ? sizeof *own + fmm_ulist_groups_bytes(&own->groups) + fmm_memory_bytes(own->halo) + fmm_memory_bytes(own->leaf) : 0;
}

const fmm_phase_impl fmm_ulist_cpu = {.phase = FMM_PHASE_ULIST, .device = FMM_DEVICE_CPU, .name = "ulist_cpu", .reserve = reserve,
                                      .release = release, .bytes = bytes, .run = run};
