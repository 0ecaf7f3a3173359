/* The tuner: leaf size q and root scale s with the smallest predicted makespan, from few estimates of counts (each costs as much as making lists).
 * The first estimates tell where to look. Of sums of a n + b / n, n points a leaf, pairs and boxes, the least is where both are equal, so from the seconds of U and V at n it is
 * at n sqrt(V / U); what else grows with boxes counts as V once more. Where a phase list is on another device, so that both are as long at best, the same holds for all that V's device does.
 *   - Evenly filled boxes (uniform points, spheres), told by leaves that do not halve where q doubles: the tree changes with q in jumps, while s makes the number of boxes an edge nearly
 *     continuous. s that brings n there follows from the dimension of what the points fill, q somewhat above n. The valley of good trees runs along diagonals, q growing with s, so
 *     neighbours that way and in s are tried next, as long as they gain, then in q.
 *     Where it is known beforehand that points fill a cube evenly, counts of full trees tell the first such tree and nothing else is estimated before it.
 *   - Other points: q acts smoothly and s little, so q first, then three scales and the neighbours of the best. Where leaves of what was seen by then do not follow q after all, as even boxes' may by chance, on as above.
 * Where schedules of both devices are about as fast as one another, each is best on a tree of its own, and the smallest over all of them has several valleys: so for each that
 * came near the best the same search is made again. Every pair is estimated once, for all schedules; those that will be asked for whatever the first of them tells are estimated together.
 * Each round of estimates is made only if what such rounds gain on average, over the executions that the tree is for, is worth their seconds. */
#include <limits.h>
#include <math.h>

#include "kernels/pair/pair_both.h"
#include "runtime/estimate.h"
#include "sched/sched.h"

static const double worthwhile = 0.99; /* a gain of 1 % is worth another estimate */
static const double near_best = 1.5;  /* schedules that get a search of their own */
static const double room = 1.6;       /* leaf size over the mean of boxes that shall not be split: unequally filled as random points fill them */
enum { FIRST_LEAF_SIZE = 128, SMALLEST_LEAF = 8, LARGEST_LEAF = 1 << 14, ASKED = 0, GOALS = 1 + FMM_MAX_SCHEDULES, SCALES = 8, MOST_ROUNDS = 6, MOST_JUMPS = 3 };

/* Mean gains of the rounds, as parts of an evaluation, over 90 cases (uniform, ellipsoid, sphere, Plummer, a ball evenly filled, three Gaussian clusters; 400,000 to 2,000,000 points; orders 4, 7, 11; profile of two
 * Zen 5 cores), by exact counts of where a round began and ended: what estimates say they gained is up to twice that, as of several trees that are about as good the one is taken that is estimated too short. A climb's later
 * rounds gain less than its first. */
typedef struct gains { double first, later; } gains;
static const gains of_jump_even = {0.094, 0.017}, of_valley_even = {0.04, 0.013}, of_sizes_even = {0.0002, 0.0002}, of_valley_again = {0.0005, 0.0005};
static const gains of_jump_smooth = {0.077, 0.005}, of_sizes = {0.005, 0.001}, of_scales = {0.011, 0.011}, of_scales_on_surfaces = {0.0015, 0.0015}, of_valley_smooth = {0.0033, 0.0033};
static const gains of_sizes_again = {0.0002, 0.0002};
static const gains of_others = {0.02, 0.01}; /* where few know */
static const double least_executions = 10, least_seconds = 1.5; /* that a tree serves, where nobody says how often: the longer of both */

/* Leaf size 128 * 2^(half/2), root scale 2^(eighth/8): of 2 and of 1 the tree is the same but for its root, so that eighths go in a circle. */
typedef struct spot { int half, eighth; } spot;

/* What was found on an estimate: for each goal the makespan and by what to multiply the points a leaf to come to the best, 0 where that cannot be told. */
typedef struct finding { fmm_tree_options tree; int64_t n_leaves; double seconds[GOALS], factor[GOALS]; } finding;

typedef struct search {
  const fmm_machine *machine;
  const fmm_pair_info *pair;
  const fmm_precision_sets *precisions;
  fmm_schedule_kind kind;
  int leaf_size, dimension; /* leaf_size, root_scale: nonzero where they are not to be chosen */
  double root_scale;
  fmm_tune_effort effort;
  fmm_count_estimate *estimate;
  void *context;
  int most;          /* estimates; the last is kept for the tree of one leaf */
  int n, goal;       /* what is being minimised: what was ASKED for, or the schedules after it one by one */
  finding seen[FMM_MAX_ESTIMATES];
  fmm_counts counts[FMM_ESTIMATES_AT_ONCE]; /* of the latest estimates */
  fmm_tuned best[GOALS];
  spot at;           /* the goal's best since its search began, and what was found there */
  finding found;
} search;

static fmm_tree_options tree_at(const search *s, spot at) {
  return (fmm_tree_options){s->leaf_size ? s->leaf_size : (int)lround(FIRST_LEAF_SIZE * exp2(at.half / 2.0)), s->root_scale > 0 ? s->root_scale : exp2(at.eighth / (double)SCALES)};
}

static int half_of(double leaf_size) {
  const double least = SMALLEST_LEAF, most = LARGEST_LEAF;
  return (int)lround(2 * log2(fmin(fmax(leaf_size, least), most) / FIRST_LEAF_SIZE));
}

static fmm_status price(const search *s, const fmm_cost_table *costs, fmm_tuned *tuned) {
  return fmm_schedule_choose(costs, s->precisions, s->kind, &tuned->assignment, &tuned->makespan);
}

static double seconds_of(const fmm_cost_table *costs, const fmm_assignment *a, fmm_phase phase, fmm_device device) {
  return costs->total[phase][device][fmm_precision_index(a->precision[phase])].seconds;
}

/* By what to multiply the points a leaf, so that U and what grows with the number of boxes are equal. */
static double factor_of(const fmm_cost_table *costs, const fmm_assignment *a) {
  const fmm_device u = a->gpu_fraction[FMM_PHASE_ULIST] > 0.5 ? FMM_DEVICE_GPU : FMM_DEVICE_CPU, v = a->gpu_fraction[FMM_PHASE_VLIST] > 0.5 ? FMM_DEVICE_GPU : FMM_DEVICE_CPU;
  const double near = seconds_of(costs, a, FMM_PHASE_ULIST, u);
  double far = seconds_of(costs, a, FMM_PHASE_VLIST, v);
  if (u == v) far *= 2;
  else
    for (int phase = FMM_PHASE_UP; phase <= FMM_PHASE_DOWN; phase += FMM_PHASE_DOWN - FMM_PHASE_UP)
      if ((a->gpu_fraction[phase] > 0.5) == (v == FMM_DEVICE_GPU)) far += seconds_of(costs, a, (fmm_phase)phase, v);
  return near > 0 && far > 0 && near < INFINITY && far < INFINITY ? sqrt(far / near) : 0;
}

/* The latest candidate for this goal. */
static void keep(search *s, int goal, const fmm_cost_table *costs, const fmm_tuned *candidate) {
  const double seconds = candidate->makespan.seconds;
  s->seen[s->n].seconds[goal] = seconds;
  s->seen[s->n].factor[goal] = seconds < INFINITY ? factor_of(costs, &candidate->assignment) : 0;
  if (s->n == 0 || seconds < s->best[goal].makespan.seconds) s->best[goal] = *candidate;
}

static void keep_each_schedule(search *s, const fmm_cost_table *costs, fmm_tuned *candidate) {
  fmm_schedule_outcome outcome[FMM_MAX_SCHEDULES];
  int n = fmm_schedule_evaluate_all(costs, s->precisions, outcome);
  for (int i = 0; i < FMM_MAX_SCHEDULES; i++) {
    const int runs = i < n && outcome[i].makespan.feasible;
    if (runs) candidate->assignment = outcome[i].assignment, candidate->makespan = outcome[i].makespan;
    else candidate->makespan.seconds = INFINITY;
    keep(s, ASKED + 1 + i, costs, candidate);
  }
}

static int find_seen(const search *s, const fmm_tree_options *tree) {
  int i = 0;
  while (i < s->n && (s->seen[i].tree.leaf_size != tree->leaf_size || s->seen[i].tree.root_scale != tree->root_scale)) i++;
  return i;
}

static fmm_status see(search *s, const fmm_tree_options *choice, const fmm_counts *counts) {
  fmm_tuned candidate = {.leaf_size = choice->leaf_size, .root_scale = choice->root_scale};
  fmm_cost_table costs;
  fmm_cost_table_make(s->machine, counts, s->pair, &costs);
  FMM_TRY(price(s, &costs, &candidate));
  s->seen[s->n].tree = *choice, s->seen[s->n].n_leaves = counts->n_leaves;
  keep(s, ASKED, &costs, &candidate);
  if (s->kind == FMM_SCHEDULE_AUTO) keep_each_schedule(s, &costs, &candidate);
  s->n++;
  return FMM_OK;
}

/* Estimates those that were not seen, all at once, while there are estimates left. */
static fmm_status look_at(search *s, int n, const fmm_tree_options *choice) {
  fmm_tree_options fresh[FMM_ESTIMATES_AT_ONCE];
  int n_fresh = 0;
  for (int i = 0; i < n && s->n + n_fresh < s->most; i++)
    if (find_seen(s, &choice[i]) == s->n) fresh[n_fresh++] = choice[i];
  if (!n_fresh) return FMM_OK;
  FMM_TRY(s->estimate(s->context, n_fresh, fresh, s->counts));
  for (int i = 0; i < n_fresh; i++) FMM_TRY(see(s, &fresh[i], &s->counts[i]));
  return FMM_OK;
}

static const double without_fail = INFINITY;

static const double leap = 0.03; /* rounds that gain so much on average lead to other valleys, where a schedule that is behind here may be ahead */
static const double lost = 0.03; /* so far behind the chance to catch up by smaller steps is taken for 1 in e */

/* Whether n estimates for this goal are worth their time. With small steps it must also catch up with the best of all, which is the less likely the more it is behind: not impossible, as rounds follow one another. */
static int pays(const search *s, double gain, int n) {
  const double best = s->best[ASKED].makespan.seconds, behind = gain < leap ? s->found.seconds[s->goal] / best - 1 : 0, executions = s->effort.executions;
  if (gain == without_fail || !(s->effort.estimate_s > 0)) return 1;
  const double served = executions > 0 ? executions * best : fmax(least_executions * best, least_seconds);
  return gain * exp(-behind / lost) * served > n * s->effort.estimate_s;
}

/* Those of the spots that can be, each once. */
typedef struct candidates { int n, n_fresh; spot at[FMM_ESTIMATES_AT_ONCE]; fmm_tree_options tree[FMM_ESTIMATES_AT_ONCE]; } candidates;

static candidates candidates_of(const search *s, int n, const spot *spots) {
  candidates c = {0};
  for (int i = 0; i < n; i++) {
    const spot there = {spots[i].half, (spots[i].eighth % SCALES + SCALES) % SCALES};
    const fmm_tree_options t = tree_at(s, there);
    int known = 0;
    for (int k = 0; k < c.n; k++) known |= c.tree[k].leaf_size == t.leaf_size && c.tree[k].root_scale == t.root_scale;
    if (known || (!s->leaf_size && (t.leaf_size < SMALLEST_LEAF || t.leaf_size > LARGEST_LEAF))) continue;
    c.n_fresh += find_seen(s, &t) == s->n;
    c.tree[c.n] = t, c.at[c.n++] = there;
  }
  return c;
}

/* Estimates these spots unless seen, if that pays, and goes to the best of them if it is better. Those that cannot be, or for which no estimate is left, are passed over. */
static fmm_status try_spots(search *s, int n, const spot *spots, double gain) {
  const candidates c = candidates_of(s, n, spots);
  if (c.n_fresh && !pays(s, gain, c.n_fresh)) return FMM_OK;
  FMM_TRY(look_at(s, c.n, c.tree));
  for (int i = 0; i < c.n; i++) {
    const int k = find_seen(s, &c.tree[i]);
    if (k < s->n && s->seen[k].seconds[s->goal] < s->found.seconds[s->goal]) s->found = s->seen[k], s->at = c.at[i];
  }
  return FMM_OK;
}

/* Goes on to the best neighbour as long as that gains. */
static fmm_status climb(search *s, int n, const spot *moves, int rounds, gains gain) {
  for (int round = 0; round < rounds; round++) {
    const double here = s->found.seconds[s->goal];
    spot next[FMM_ESTIMATES_AT_ONCE];
    for (int i = 0; i < n; i++) next[i] = (spot){s->at.half + moves[i].half, s->at.eighth + moves[i].eighth};
    FMM_TRY(try_spots(s, n, next, round ? gain.later : gain.first));
    if (!(s->found.seconds[s->goal] < worthwhile * here)) break;
  }
  return FMM_OK;
}

static const spot sizes[] = {{1, 0}, {-1, 0}}, far_sizes[] = {{2, 0}, {-2, 0}}, scales[] = {{0, 1}, {0, -1}}, valley[] = {{1, 1}, {-1, -1}, {0, 1}, {0, -1}};

static double points_a_leaf(const search *s) {
  const fmm_counts *c = &s->counts[0];
  return (double)(c->n_sources > c->n_targets ? c->n_sources : c->n_targets) / fmax(1, s->found.n_leaves);
}

/* Where evenly filled boxes have as many points as is best: by the root scale. */
static spot best_scale(const search *s) {
  const double factor = s->found.factor[s->goal];
  return (spot){half_of(room * factor * points_a_leaf(s)), s->at.eighth + (int)lround(SCALES * log2(factor) / s->dimension)};
}

static spot best_size(const search *s) { return (spot){half_of(tree_at(s, s->at).leaf_size * s->found.factor[s->goal]), s->at.eighth}; }

/* To where the latest finding says that it is best, as long as that gains. */
static fmm_status jump(search *s, spot (*best)(const search *), gains gain) {
  for (int k = 0; k < MOST_JUMPS && s->found.factor[s->goal] > 0; k++) {
    const spot from = s->at, to = best(s);
    FMM_TRY(try_spots(s, 1, &to, k ? gain.later : gain.first));
    if (s->at.half == from.half && s->at.eighth == from.eighth) break;
  }
  return s->found.factor[s->goal] > 0 ? FMM_OK : climb(s, 2, far_sizes, MOST_ROUNDS, of_others);
}

/* Whether leaves are about half as many where the leaf size is twice as large, as where points scatter over boxes of all sizes: by one of the first two trees and those seen at their scale within a factor of two. */
static int is_smooth(const search *s) {
  const double most = 0.35;
  int pairs = 0;
  for (int twice = 0; twice < 2; twice++) {
    const fmm_tree_options first = tree_at(s, (spot){2 * twice, 0});
    const int k = find_seen(s, &first);
    for (int i = 0; i < s->n && k < s->n; i++) {
      const finding *other = &s->seen[i];
      const double steps = log2((double)other->tree.leaf_size / first.leaf_size), leaves = log2((double)s->seen[k].n_leaves / fmax(1, (double)other->n_leaves));
      if (i == k || other->tree.root_scale != first.root_scale || fabs(steps) > 1) continue;
      if (fabs(leaves - steps) > most) return 0;
      pairs++;
    }
  }
  return pairs > 0;
}

/* Three scales a quarter of the range apart, then the neighbours of the best of them. */
static fmm_status search_scales(search *s, gains far, int n, const spot *moves, gains near) {
  const int half = s->at.half;
  FMM_TRY(try_spots(s, 3, (const spot[]){{half, 2}, {half, 4}, {half, 6}}, far.first));
  return climb(s, n, moves, 1, near);
}

static fmm_status search_even(search *s) {
  FMM_TRY(jump(s, best_scale, of_jump_even));
  FMM_TRY(climb(s, 4, valley, MOST_ROUNDS, of_valley_even));
  FMM_TRY(climb(s, 2, sizes, 2, of_sizes_even));
  return climb(s, 4, valley, MOST_ROUNDS, of_valley_again);
}

static fmm_status search_smooth(search *s) {
  FMM_TRY(jump(s, best_size, of_jump_smooth));
  FMM_TRY(climb(s, 2, sizes, MOST_ROUNDS, of_sizes));
  if (s->root_scale > 0) return is_smooth(s) ? FMM_OK : climb(s, 2, far_sizes, MOST_ROUNDS, of_others); /* over sizes that make the same tree */
  if (!is_smooth(s)) return search_even(s); /* the first two seemed so by chance */
  FMM_TRY(search_scales(s, s->dimension < 3 ? of_scales_on_surfaces : of_scales, 4, valley, of_valley_smooth));
  return climb(s, 2, sizes, 1, of_sizes_again);
}

/* Few points, whose counts are exact and cheap: the far field ends within a few leaf sizes, behind which a tree may be best that no step from its neighbours leads to. */
static fmm_status search_large_leaves(search *s) {
  const double n = points_a_leaf(s) * fmax(1, s->found.n_leaves);
  if (s->leaf_size || n > FMM_ESTIMATE_EXACT * 9 / 16) return FMM_OK;
  for (int half = 2; tree_at(s, (spot){half, 0}).leaf_size < n; half += 4)
    FMM_TRY(try_spots(s, 4, (const spot[]){{half, 0}, {half + 2, 0}, {half, 1}, {half + 2, 1}}, of_others.first));
  if (!(s->root_scale > 0)) FMM_TRY(climb(s, 4, valley, MOST_ROUNDS, of_others));
  return climb(s, 2, sizes, MOST_ROUNDS, of_others);
}

/* Points a leaf of the least makespan by three full trees: of a n + b / n + c through these, n points a leaf; 0 where there is none. */
static double best_of_full(const double a_leaf[FMM_EVEN_TREES], const double seconds[FMM_EVEN_TREES]) {
  double rise[2], inverse[2], gain[2];
  for (int k = 0; k < 2; k++) rise[k] = a_leaf[k + 1] - a_leaf[k], inverse[k] = 1 / a_leaf[k + 1] - 1 / a_leaf[k], gain[k] = seconds[k + 1] - seconds[k];
  const double determinant = rise[0] * inverse[1] - rise[1] * inverse[0];
  const double a = (gain[0] * inverse[1] - gain[1] * inverse[0]) / determinant, b = (rise[0] * gain[1] - rise[1] * gain[0]) / determinant;
  return a > 0 && b > 0 && isfinite(b / a) ? sqrt(b / a) : 0;
}

/* Of the goal that is searched for. */
static double seconds_of_goal(const search *s, const fmm_cost_table *costs) {
  fmm_schedule_outcome outcome[FMM_MAX_SCHEDULES];
  fmm_tuned tuned;
  if (s->goal == ASKED) return price(s, costs, &tuned) == FMM_OK ? tuned.makespan.seconds : INFINITY;
  const int n = fmm_schedule_evaluate_all(costs, s->precisions, outcome), i = s->goal - ASKED - 1;
  return i < n && outcome[i].makespan.feasible ? outcome[i].makespan.seconds : INFINITY;
}

/* Where the search of points that fill a cube evenly begins; 0 where their counts do not tell. */
static int find_even(const search *s, spot *first) {
  double a_leaf[FMM_EVEN_TREES], seconds[FMM_EVEN_TREES];
  const double n = (double)s->effort.even->n_sources;
  for (int k = 0; k < FMM_EVEN_TREES; k++) {
    const fmm_counts *c = &s->effort.even[k];
    fmm_cost_table costs;
    fmm_cost_table_make(s->machine, c, s->pair, &costs);
    a_leaf[k] = n / fmax(1, (double)c->n_leaves), seconds[k] = seconds_of_goal(s, &costs);
  }
  const double best = best_of_full(a_leaf, seconds), level = log2(n / best) / 3;
  if (!(best > 0 && level > 1)) return 0;
  *first = (spot){half_of(room * best), (int)lround(SCALES * (ceil(level) - level)) % SCALES};
  return 1;
}

static fmm_status search_for(search *s, int goal) {
  spot even;
  s->goal = goal, s->at = (spot){0, 0}, s->found = (finding){.n_leaves = 1};
  s->found.seconds[goal] = INFINITY;
  if (s->effort.even && !s->leaf_size && !(s->root_scale > 0) && find_even(s, &even)) {
    FMM_TRY(try_spots(s, 1, &even, without_fail));
    return search_even(s);
  }
  FMM_TRY(try_spots(s, s->leaf_size ? 1 : 2, (const spot[]){{0, 0}, {2, 0}}, without_fail));
  if (s->leaf_size) return s->root_scale > 0 ? FMM_OK : search_scales(s, of_others, 2, scales, of_others);
  FMM_TRY(s->root_scale > 0 || is_smooth(s) ? search_smooth(s) : search_even(s));
  return search_large_leaves(s);
}

/* One leaf: n x m pairs at once. Estimated only if pairs alone, priced like any other counts, beat the best. */
static fmm_status try_one_leaf(search *s) {
  const fmm_counts *c = &s->counts[0];
  int64_t larger = c->n_sources > c->n_targets ? c->n_sources : c->n_targets;
  if (larger < 1 || larger > INT_MAX) return FMM_OK;
  fmm_counts direct = {.order = c->order, .n_columns = c->n_columns, .gradient = c->gradient, .n_surface = c->n_surface, .third_order = c->third_order, .tolerance = c->tolerance, .n_levels = 1,
                       .n_sources = c->n_sources, .n_targets = c->n_targets, .n_leaves = 1, .n_boxes = 1, .same_points = c->same_points};
  fmm_work *u = &direct.level[FMM_PHASE_ULIST][0];
  u->pairs = (double)c->n_sources * (double)c->n_targets, u->flops = u->pairs * fmm_pair_flops(s->pair, c->gradient, c->n_columns), u->entries = 1;
  direct.level[FMM_WORK_ULIST_GPU][0] = fmm_ulist_gpu_direct(s->pair, c->gradient, c->n_columns, c->n_sources, c->n_targets);
  for (int single = 0; single < 2 && c->same_points; single++) {
    if (!fmm_pair_both_on_gpu(s->pair, c->gradient, c->n_columns, c->third_order, single)) continue;
    const fmm_work both = fmm_ulist_gpu_direct_both(s->pair, c->gradient, larger);
    if (both.pairs > 0) direct.level[FMM_WORK_ULIST_GPU_BOTH][0] = both, direct.both_on_gpu[single] = 1;
  }
  fmm_counts_add_up(&direct);
  fmm_tuned candidate;
  fmm_cost_table costs;
  fmm_cost_table_make(s->machine, &direct, s->pair, &costs);
  FMM_TRY(price(s, &costs, &candidate));
  if (!(candidate.makespan.seconds < s->best[ASKED].makespan.seconds)) return FMM_OK;
  s->most = FMM_MAX_ESTIMATES;
  return look_at(s, 1, &(fmm_tree_options){(int)larger, tree_at(s, (spot){0, 0}).root_scale});
}

/* Whether a schedule came near the best. The best one too: the search over all may have left its valley. */
static int is_near(const search *s, int goal) { return s->best[goal].makespan.seconds < near_best * s->best[ASKED].makespan.seconds; }

fmm_status fmm_tune(const fmm_machine *machine, const fmm_pair_info *pair, const fmm_precision_sets *precisions, fmm_schedule_kind kind, int leaf_size,
                    double root_scale, int dimension, const fmm_tune_effort *effort, fmm_count_estimate *estimate, void *context, fmm_tuned *best) {
  search s = {.machine = machine, .pair = pair, .precisions = precisions, .kind = kind, .leaf_size = leaf_size > 0 ? leaf_size : 0, .root_scale = root_scale,
              .dimension = dimension, .effort = effort ? *effort : (fmm_tune_effort){0}, .estimate = estimate, .context = context, .most = FMM_MAX_ESTIMATES - 1};
  FMM_TRY(search_for(&s, ASKED));
  for (int goal = ASKED + 1; kind == FMM_SCHEDULE_AUTO && goal < GOALS; goal++)
    if (is_near(&s, goal)) FMM_TRY(search_for(&s, goal));
  s.goal = ASKED;
  if (leaf_size <= 0) FMM_TRY(try_one_leaf(&s));
  s.best[ASKED].n_estimates = s.n;
  *best = s.best[ASKED];
  return FMM_OK;
}
