/* The tuner: leaf size q and root scale s with the smallest predicted makespan, from few estimates of counts (each costs as much as
 * making lists). A uniform tree changes with q in factors of 8 only, while s between 1 and 2 makes the number of boxes an edge nearly
 * continuous; on other points q acts smoothly and s little. So: walk q by factors of 2 at s = 1 until it gets no better, then try three scales
 * and the neighbours of the best, then refine q by factors of sqrt 2 at the best scale. Where 2 q gave the same tree as q, boxes of larger scales would be
 * split at q but not at 4 q: then scales are walked up at 4 q, and, if that gained nothing, down at q.
 * Where schedules of both devices are about as fast as one another, each is best on a tree of its own, and the smallest over all of them has several valleys: so for each that
 * came near the best the same search is made again. Every pair is estimated once, for all schedules; those that will be asked for whatever the first of them tells, or most likely (the smaller leaf size of the last step), are estimated together. */
#include <limits.h>
#include <math.h>

#include "runtime/estimate.h"
#include "sched/sched.h"

static const double worthwhile = 0.99; /* a gain of 1 % is worth another estimate */
static const double near_best = 1.5;  /* schedules that get a search of their own */
enum { FIRST_LEAF_SIZE = 128, SMALLEST_LEAF = 8, LARGEST_LEAF = 1 << 14, ASKED = 0, GOALS = 1 + FMM_MAX_SCHEDULES };

typedef struct search {
  const fmm_machine *machine;
  const fmm_pair_info *pair;
  const fmm_precision_sets *precisions;
  fmm_schedule_kind kind;
  fmm_count_estimate *estimate;
  void *context;
  int most;          /* estimates; the last is kept for the tree of one leaf */
  int n, goal;       /* what is being minimised: what was ASKED for, or the schedules after it one by one */
  struct { int leaf_size; double root_scale, seconds[GOALS]; } seen[FMM_MAX_ESTIMATES];
  fmm_counts counts[FMM_ESTIMATES_AT_ONCE]; /* of the latest estimates */
  fmm_tuned best[GOALS];
  struct { int leaf_size; double root_scale, seconds; } at; /* the goal's best since its search began */
} search;

static fmm_status price(const search *s, const fmm_cost_table *costs, fmm_tuned *tuned) {
  return fmm_schedule_choose(costs, s->precisions, s->kind, &tuned->assignment, &tuned->makespan);
}

/* The latest candidate for this goal. */
static void keep(search *s, int goal, const fmm_tuned *candidate) {
  const double seconds = candidate->makespan.seconds;
  s->seen[s->n].seconds[goal] = seconds;
  if (s->n == 0 || seconds < s->best[goal].makespan.seconds) s->best[goal] = *candidate;
}

static void keep_each_schedule(search *s, const fmm_cost_table *costs, fmm_tuned *candidate) {
  fmm_schedule_outcome outcome[FMM_MAX_SCHEDULES];
  int n = fmm_schedule_evaluate_all(costs, s->precisions, outcome);
  for (int i = 0; i < FMM_MAX_SCHEDULES; i++) {
    const int runs = i < n && outcome[i].makespan.feasible;
    if (runs) candidate->assignment = outcome[i].assignment, candidate->makespan = outcome[i].makespan;
    else candidate->makespan.seconds = INFINITY;
    keep(s, ASKED + 1 + i, candidate);
  }
}

static int find_seen(const search *s, int leaf_size, double root_scale) {
  int i = 0;
  while (i < s->n && (s->seen[i].leaf_size != leaf_size || s->seen[i].root_scale != root_scale)) i++;
  return i;
}

static fmm_status see(search *s, const fmm_tree_options *choice, const fmm_counts *counts) {
  fmm_tuned candidate = {.leaf_size = choice->leaf_size, .root_scale = choice->root_scale};
  fmm_cost_table costs;
  fmm_cost_table_make(s->machine, counts, s->pair, &costs);
  FMM_TRY(price(s, &costs, &candidate));
  s->seen[s->n].leaf_size = choice->leaf_size, s->seen[s->n].root_scale = choice->root_scale;
  keep(s, ASKED, &candidate);
  if (s->kind == FMM_SCHEDULE_AUTO) keep_each_schedule(s, &costs, &candidate);
  s->n++;
  return FMM_OK;
}

/* Estimates those that were not seen, all at once, while there are estimates left. */
static fmm_status look_at(search *s, int n, const fmm_tree_options *choice) {
  fmm_tree_options fresh[FMM_ESTIMATES_AT_ONCE];
  int n_fresh = 0;
  for (int i = 0; i < n && s->n + n_fresh < s->most; i++)
    if (find_seen(s, choice[i].leaf_size, choice[i].root_scale) == s->n) fresh[n_fresh++] = choice[i];
  if (!n_fresh) return FMM_OK;
  FMM_TRY(s->estimate(s->context, n_fresh, fresh, s->counts));
  for (int i = 0; i < n_fresh; i++) FMM_TRY(see(s, &fresh[i], &s->counts[i]));
  return FMM_OK;
}

/* *seconds of this candidate, estimated unless seen; INFINITY when no estimate is left. Keeps the best. */
static fmm_status try_candidate(search *s, int leaf_size, double root_scale, double *seconds) {
  *seconds = INFINITY;
  FMM_TRY(look_at(s, 1, &(fmm_tree_options){leaf_size, root_scale}));
  const int i = find_seen(s, leaf_size, root_scale);
  if (i == s->n) return FMM_OK;
  *seconds = s->seen[i].seconds[s->goal];
  if (*seconds < s->at.seconds) s->at.leaf_size = leaf_size, s->at.root_scale = root_scale, s->at.seconds = *seconds;
  return FMM_OK;
}

/* From the best leaf size by a factor, as long as it gets better by something worthwhile. */
static fmm_status walk(search *s, double factor, double root_scale) {
  double here = s->at.seconds, next;
  for (double q = s->at.leaf_size * factor; q >= SMALLEST_LEAF && q <= LARGEST_LEAF; q *= factor) {
    FMM_TRY(try_candidate(s, (int)lround(q), root_scale, &next));
    if (!(next < worthwhile * here)) break;
    here = next;
  }
  return FMM_OK;
}

static fmm_status search_leaf_sizes(search *s, double root_scale) {
  double seconds;
  FMM_TRY(look_at(s, 2, (const fmm_tree_options[]){{FIRST_LEAF_SIZE, root_scale}, {2 * FIRST_LEAF_SIZE, root_scale}}));
  FMM_TRY(try_candidate(s, FIRST_LEAF_SIZE, root_scale, &seconds));
  FMM_TRY(walk(s, 2, root_scale));
  if (s->at.leaf_size == FIRST_LEAF_SIZE) FMM_TRY(walk(s, 0.5, root_scale));
  return FMM_OK;
}

/* Whether twice the best leaf size was found to take the same time, as the same tree does. */
static int is_flat_above_best(const search *s) {
  for (int i = 0; i < s->n; i++)
    if (s->seen[i].leaf_size == 2 * s->at.leaf_size && s->seen[i].root_scale == s->at.root_scale && fabs(s->seen[i].seconds[s->goal] - s->at.seconds) <= 1e-3 * s->at.seconds) return 1;
  return 0;
}

typedef struct scale { int leaf_size, eighth; double seconds; } scale; /* 2^(eighth/8) */

static double scale_of(int eighth) { return exp2(eighth / 8.0); }

static fmm_status try_scale(search *s, int leaf_size, int eighth, scale *best) {
  double seconds;
  FMM_TRY(try_candidate(s, leaf_size, scale_of(eighth), &seconds));
  if (seconds < best->seconds) *best = (scale){leaf_size, eighth, seconds};
  return FMM_OK;
}

/* Larger scales of the same boxes, from the smallest on, as long as it gets better; if none was, smaller boxes, which fill from the largest scale on. */
static fmm_status walk_scales(search *s, int leaf_size, scale *best) {
  *best = (scale){4 * leaf_size, 0, s->at.seconds};
  for (int eighth = 2; eighth <= 6 && best->eighth == eighth - 2; eighth += 2) FMM_TRY(try_scale(s, 4 * leaf_size, eighth, best));
  if (best->eighth > 0) return FMM_OK;
  for (int eighth = 6; eighth >= 2 && (best->eighth == (eighth + 2) % 8); eighth -= 2) FMM_TRY(try_scale(s, leaf_size, eighth, best));
  return FMM_OK;
}

/* Three scales a quarter of the range apart, then the neighbours of the best of them. */
static fmm_status search_scales(search *s) {
  const int leaf_size = s->at.leaf_size;
  scale best = {.seconds = INFINITY};
  if (is_flat_above_best(s)) FMM_TRY(walk_scales(s, leaf_size, &best));
  else {
    FMM_TRY(look_at(s, 3, (const fmm_tree_options[]){{leaf_size, scale_of(2)}, {leaf_size, scale_of(4)}, {leaf_size, scale_of(6)}}));
    for (int eighth = 2; eighth <= 6; eighth += 2) FMM_TRY(try_scale(s, leaf_size, eighth, &best));
  }
  scale ignored = best;
  const int below = (best.eighth + 7) % 8, above = best.eighth + 1, leaf_below = best.eighth ? best.leaf_size : leaf_size;
  FMM_TRY(look_at(s, 2, (const fmm_tree_options[]){{leaf_below, scale_of(below)}, {best.leaf_size, scale_of(above)}}));
  FMM_TRY(try_scale(s, leaf_below, below, &ignored));
  return try_scale(s, best.leaf_size, above, &ignored);
}

/* One leaf: n x m pairs at once. Estimated only if pairs alone, priced like any other counts, beat the best. */
static fmm_status try_one_leaf(search *s, double root_scale) {
  const fmm_counts *c = &s->counts[0];
  int64_t larger = c->n_sources > c->n_targets ? c->n_sources : c->n_targets;
  if (larger < 1 || larger > INT_MAX) return FMM_OK;
  fmm_counts direct = {.order = c->order, .n_columns = c->n_columns, .gradient = c->gradient, .n_surface = c->n_surface, .n_levels = 1,
                       .n_sources = c->n_sources, .n_targets = c->n_targets, .n_leaves = 1, .n_boxes = 1};
  fmm_work *u = &direct.level[FMM_PHASE_ULIST][0];
  u->pairs = (double)c->n_sources * (double)c->n_targets, u->flops = u->pairs * fmm_pair_flops(s->pair, c->gradient, c->n_columns), u->entries = 1;
  direct.level[FMM_WORK_ULIST_GPU][0] = fmm_ulist_gpu_direct(s->pair, c->gradient, c->n_columns, c->n_sources, c->n_targets);
  fmm_counts_add_up(&direct);
  fmm_tuned candidate;
  fmm_cost_table costs;
  double seconds;
  fmm_cost_table_make(s->machine, &direct, s->pair, &costs);
  FMM_TRY(price(s, &costs, &candidate));
  if (!(candidate.makespan.seconds < s->best[ASKED].makespan.seconds)) return FMM_OK;
  s->most = FMM_MAX_ESTIMATES;
  return try_candidate(s, (int)larger, root_scale, &seconds);
}

/* By factors of sqrt 2 at the best scale, upwards, then downwards from the best. */
static fmm_status refine_leaf_size(search *s) {
  const double larger = s->at.leaf_size * M_SQRT2, smaller = s->at.leaf_size * M_SQRT1_2, root_scale = s->at.root_scale;
  if (smaller >= SMALLEST_LEAF && larger <= LARGEST_LEAF) FMM_TRY(look_at(s, 2, (const fmm_tree_options[]){{(int)lround(larger), root_scale}, {(int)lround(smaller), root_scale}}));
  FMM_TRY(walk(s, M_SQRT2, root_scale));
  return walk(s, M_SQRT1_2, s->at.root_scale);
}

static fmm_status search_for(search *s, int goal, int leaf_size, double root_scale) {
  double first_scale = root_scale > 0 ? root_scale : 1, seconds;
  s->goal = goal, s->at.leaf_size = leaf_size > 0 ? leaf_size : FIRST_LEAF_SIZE, s->at.root_scale = first_scale, s->at.seconds = INFINITY;
  if (leaf_size > 0) FMM_TRY(try_candidate(s, leaf_size, first_scale, &seconds));
  else FMM_TRY(search_leaf_sizes(s, first_scale));
  if (!(root_scale > 0)) FMM_TRY(search_scales(s));
  return leaf_size > 0 ? FMM_OK : refine_leaf_size(s);
}

/* Whether a schedule came near the best. The best one too: the search over all may have left its valley. */
static int is_near(const search *s, int goal) { return s->best[goal].makespan.seconds < near_best * s->best[ASKED].makespan.seconds; }

fmm_status fmm_tune(const fmm_machine *machine, const fmm_pair_info *pair, const fmm_precision_sets *precisions, fmm_schedule_kind kind, int leaf_size,
                    double root_scale, fmm_count_estimate *estimate, void *context, fmm_tuned *best) {
  search s = {.machine = machine, .pair = pair, .precisions = precisions, .kind = kind, .estimate = estimate, .context = context, .most = FMM_MAX_ESTIMATES - 1};
  FMM_TRY(search_for(&s, ASKED, leaf_size, root_scale));
  for (int goal = ASKED + 1; kind == FMM_SCHEDULE_AUTO && goal < GOALS; goal++)
    if (is_near(&s, goal)) FMM_TRY(search_for(&s, goal, leaf_size, root_scale));
  s.goal = ASKED;
  if (leaf_size <= 0) FMM_TRY(try_one_leaf(&s, root_scale > 0 ? root_scale : 1));
  s.best[ASKED].n_estimates = s.n;
  *best = s.best[ASKED];
  return FMM_OK;
}
