/* U list on CPU cores: direct sums of a leaf's adjacent sources onto its targets (P2P). A row of lists->u is one piece of work: its
 * entries' source ranges, joined where they are neighbours in the sorted points, are given to the pair-sum engine.
 * Only a leaf with itself can hold coincident points (equal points share a leaf), so only that range is guarded. */
#include "kernels/pair/pair_sums.h"
#include "kernels/phase.h"

enum { MAX_RANGES = 64 };

typedef struct work {
  const fmm_state *state;
  fmm_pair_sum sum;
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

static void sum_row(const work *w, int64_t row) {
  const fmm_rows *u = &w->state->lists->u;
  const fmm_tree *tree = w->state->tree;
  fmm_pair_targets targets = targets_of(w->state, u->row[row]);
  fmm_pair_sources range[MAX_RANGES];
  int n = 0;
  for (int64_t e = u->offset[row]; e < u->offset[row + 1]; e++) {
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

static fmm_status run(fmm_state *state, int64_t row_begin, int64_t row_end) {
  work w = {.state = state};
  fmm_pair_sum_prepare(&w.sum, state->pair, state->params, state->n_columns, state->gradient, state->precision[FMM_PHASE_ULIST], state->tolerance);
#pragma omp parallel for schedule(dynamic, 1) num_threads(state->threads)
  for (int64_t row = row_begin; row < row_end; row++) sum_row(&w, row);
  return FMM_OK;
}

const fmm_phase_impl fmm_ulist_cpu = {.phase = FMM_PHASE_ULIST, .device = FMM_DEVICE_CPU, .name = "ulist_cpu", .run = run};
