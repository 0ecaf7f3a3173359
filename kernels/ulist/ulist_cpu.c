/* U list on CPU cores: direct sums of a leaf's adjacent sources onto its targets (P2P), by the pair-sum engine.
 * A group of rows (ulist_groups.h) is one piece of work. Two leaves of a group that are in each other's lists are summed in both
 * directions at once, by the first of them; all else one-sided, row by row. Source ranges that are neighbours in the sorted points are joined.
 * Only a leaf with itself can hold coincident points (equal points share a leaf), so only that range is guarded. */
#include "kernels/pair/pair_sums.h"
#include "kernels/phase.h"
#include "kernels/ulist/ulist_groups.h"

enum { MAX_RANGES = 64 };

/* Rows [begin, end) of one group; both: pairs inside are summed in both directions. */
typedef struct work {
  const fmm_state *state;
  const fmm_ulist_groups *groups;
  fmm_pair_sum sum;
  int both;
  int32_t begin, end;
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

/* Points that are sources and targets, one column. */
static fmm_pair_points points_of(const fmm_state *state, int64_t begin, int64_t end) {
  const fmm_points *p = &state->tree->sources;
  return (fmm_pair_points){.n = end - begin, .x = p->x + begin, .y = p->y + begin, .z = p->z + begin, .density = state->density + begin,
                           .component_stride = p->n, .value = state->potential + begin, .value_stride = p->n};
}

/* The row that this entry is summed with in both directions, or -1. */
static int32_t mate_of(const work *w, int64_t entry) {
  int32_t mate = w->both ? w->groups->mate[entry] : -1;
  return mate >= w->begin && mate < w->end ? mate : -1;
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

static void sum_both_sided(const work *w, int32_t row) {
  const fmm_rows *u = &w->state->lists->u;
  const fmm_tree *tree = w->state->tree;
  const fmm_pair_points own = points_of(w->state, tree->source_begin[u->row[row]], tree->source_end[u->row[row]]);
  fmm_pair_points other[MAX_RANGES];
  int n = 0;
  for (int64_t e = u->offset[row]; e < u->offset[row + 1]; e++) {
    if (mate_of(w, e) <= row) continue; /* none, or done by the other */
    int64_t begin = tree->source_begin[u->entry[e]], end = tree->source_end[u->entry[e]];
    if (n && other[n - 1].x + other[n - 1].n == tree->sources.x + begin) {
      other[n - 1].n += end - begin;
      continue;
    }
    if (n == MAX_RANGES) fmm_pair_sum_add_both(&w->sum, &own, n, other), n = 0;
    other[n++] = points_of(w->state, begin, end);
  }
  fmm_pair_sum_add_both(&w->sum, &own, n, other);
}

static void sum_group(work w, int32_t group, int64_t row_begin, int64_t row_end) {
  w.begin = w.groups->begin[group] > row_begin ? w.groups->begin[group] : (int32_t)row_begin;
  w.end = w.groups->begin[group + 1] < row_end ? w.groups->begin[group + 1] : (int32_t)row_end;
  for (int32_t row = w.begin; row < w.end; row++) {
    sum_one_sided(&w, row);
    if (w.both) sum_both_sided(&w, row);
  }
}

static fmm_status run(fmm_state *state, int64_t row_begin, int64_t row_end) {
  work w = {.state = state, .groups = state->workspace[FMM_PHASE_ULIST]};
  fmm_pair_sum_prepare(&w.sum, state->pair, state->params, state->n_columns, state->gradient, state->precision[FMM_PHASE_ULIST], state->tolerance);
  fmm_pair_sum_allow_coarse(&w.sum);
  w.both = state->tree->same_points && fmm_pair_sum_prefers_both(&w.sum);
#pragma omp parallel for schedule(dynamic, 1) num_threads(state->threads)
  for (int32_t group = 0; group < w.groups->n_groups; group++) sum_group(w, group, row_begin, row_end);
  return FMM_OK;
}

static void release(fmm_state *state) {
  fmm_ulist_groups *groups = state->workspace[FMM_PHASE_ULIST];
  if (groups) fmm_ulist_groups_free(groups);
  FMM_FREE(&state->workspace[FMM_PHASE_ULIST]);
}

static fmm_status reserve(fmm_state *state) {
  fmm_ulist_groups *groups;
  FMM_TRY(FMM_ALLOCATE_ZERO(&groups, 1, "U list groups"));
  state->workspace[FMM_PHASE_ULIST] = groups;
  fmm_status status = fmm_ulist_groups_create(groups, state->tree, &state->lists->u, state->threads);
  if (status != FMM_OK) release(state);
  return status;
}

static size_t bytes(const fmm_state *state) { return sizeof(fmm_ulist_groups) + fmm_ulist_groups_bytes(&state->lists->u); }

const fmm_phase_impl fmm_ulist_cpu = {.phase = FMM_PHASE_ULIST, .device = FMM_DEVICE_CPU, .name = "ulist_cpu", .reserve = reserve,
                                      .release = release, .bytes = bytes, .run = run};
