/* The order of a case (choose_order.h). */
#include "choose_order.h"
#include "tree.h"

#include <math.h>
#include <string.h>

enum { FEW_POINTS = 1 << 13 }; /* one leaf of more is never the best, and trees of fewer are tuned in milliseconds */

/* High orders of kernels without a degree take seconds to find, as targets apart from all sources need, if any is enough, and direct sums of so few pairs hundredths of one: there the bound comes first too. (200
 * sources and 20,000 targets, Yukawa with gradient, 1000 lengths a side, 6 digits: 5 s to know that none is, direct sums take 3 to 9 ms.) */
static const double few_pairs = 1 << 26;

typedef struct box { double low[3], high[3]; } box;

static box box_of(int64_t n, const double *points) {
  box b = {{INFINITY, INFINITY, INFINITY}, {-INFINITY, -INFINITY, -INFINITY}};
  for (int64_t i = 0; i < n; i++)
    for (int axis = 0; axis < 3; axis++) b.low[axis] = fmin(b.low[axis], points[3 * i + axis]), b.high[axis] = fmax(b.high[axis], points[3 * i + axis]);
  return b;
}

/* Half the side of the cube around both, 1 when the points are one or none. */
static double half_width(const box *a, const box *b) {
  double side = 0;
  for (int axis = 0; axis < 3; axis++) side = fmax(side, fmax(a->high[axis], b->high[axis]) - fmin(a->low[axis], b->low[axis]));
  return side > 0 && isfinite(side) ? side / 2 : 1;
}

/* Of some targets, evenly picked: the least of their distances from their nearest sources, in units of `unit`, and, where targets are sources, whether some share their places with others. */
typedef struct neighbors { double nearest; int twins; } neighbors;

/* To all sources, for a box around them says nothing of targets in a hollow. The loudest targets, which are those that lie nearest, are what a relative error is measured by. Sources in
 * the target's place do not count. */
static neighbors look_around(int64_t n_sources, const double *sources, int64_t n_targets, const double *targets, double unit, int threads) {
  enum { MOST = 64, LEAST = 8, PAIRS = 1 << 26 };
  const int64_t wanted = n_sources > PAIRS / MOST ? (PAIRS / n_sources > LEAST ? PAIRS / n_sources : LEAST) : MOST;
  const int n = (int)(wanted < n_targets ? wanted : n_targets);
  double at[3][MOST], square[MOST];
  int here[MOST];
  for (int k = 0; k < n; k++) {
    const double *row = targets + 3 * (n_targets * k / n);
    for (int axis = 0; axis < 3; axis++) at[axis][k] = row[axis] / unit;
    square[k] = INFINITY, here[k] = 0;
  }
#pragma omp parallel for num_threads(threads) schedule(static) reduction(min : square[:n]) reduction(+ : here[:n]) if (n_sources > FMM_PARALLEL_MINIMUM)
  for (int64_t i = 0; i < n_sources; i++) {
    const double x = sources[3 * i] / unit, y = sources[3 * i + 1] / unit, z = sources[3 * i + 2] / unit;
    for (int k = 0; k < n; k++) {
      const double dx = at[0][k] - x, dy = at[1][k] - y, dz = at[2][k] - z, r2 = dx * dx + dy * dy + dz * dz;
      square[k] = r2 > 0 && r2 < square[k] ? r2 : square[k];
      here[k] += r2 == 0;
    }
  }
  neighbors all = {INFINITY, 0};
  for (int k = 0; k < n; k++) all.nearest = fmin(all.nearest, square[k]), all.twins |= targets == sources && here[k] > 1;
  all.nearest = isfinite(all.nearest) ? sqrt(all.nearest) : 0;
  return all;
}

/* In units of half the bounding cube's side: from one point to the next where they fill the cube, or, of targets of their own, as far as there is. */
static double farthest_source(int64_t n, int own_targets) { return own_targets ? 2 * sqrt(3) : 2 / cbrt((double)n); }

/* One Newton step of AVX2 errs by up to 2e-7 a root: gradients at 20,000 points two by two around a circle err by 1.4e-6 with it, by 4e-8 with the next roots. */
static const double usual_cancelled = 8;

/* Parameters in units of half the bounding cube's side, so that nothing overflows on the way (see scale_units of setup.c), and what follows from them where values die away. Targets that lie
 * apart from all sources see fields that are smaller than those of the far field's errors nearer by, by the exponential of 0.4 to 0.6 of the lengths between (Yukawa, uniform cubes, 5 to 20 lengths, orders 6 to 16).
 * So do sources whose nearest neighbours are in their own places, which give them nothing: boxes around such a place are as small as they come, and its next ones are far from them; and all sources, where leaves of few points are
 * asked for, so that on lattices the nearest may not be in the leaves beside (seen with up to 12 points a leaf, not with 20). */
static void measure_lengths(fmm_order_search *s, int64_t n_sources, const double *sources, int64_t n_targets, const double *targets) {
  enum { FEW_A_LEAF = 16 };
  const double a_length = 0.7, most_lengths = 600; /* so that nothing overflows */
  const int small_leaves = s->options->leaf_size > 0 && s->options->leaf_size <= FEW_A_LEAF;
  double lengths = 0;
  const box of_sources = box_of(n_sources, sources), of_targets = box_of(n_targets, targets);
  const double unit = half_width(&of_sources, &of_targets);
  for (int i = 0; i < s->pair->info->n_params; i++) s->params[i] *= pow(1 / unit, s->pair->info->params[i].length_power);
  const double decay = fmm_pair_largest_decay(s->pair->info, s->params);
  if (n_sources > 0 && (!targets || n_targets > 0) && decay * farthest_source(n_sources, 1) > 1) {
    const neighbors near = look_around(n_sources, sources, targets ? n_targets : n_sources, targets ? targets : sources, unit, s->threads);
    if (targets || near.twins || small_leaves) lengths = fmin(decay * near.nearest, most_lengths);
  }
  if (s->n_points > 0) s->steps = fmax(lengths, decay * farthest_source(n_sources, targets != NULL));
  s->margin *= exp(a_length * lengths);
  s->apart = lengths;
  if (lengths > 1) s->cancelled = usual_cancelled;
}

/* Along a curve neighbours are the nearer the more they are, and what is left of their gradients the less a part of them: a ring of 1e5 and 1e6 points errs 9 and 60 times as much as one of 2e4. Even planes of
 * 2e4 to 1e5 points of one sign err up to 1.25 times the tolerance without a margin. */
static const double points_on_curve = 1e4, plane_margin = 1.5;

int fmm_order_asks_regularity(const fmm_options *o) { return !o->order && (o->density_sign == FMM_DENSITY_SIGNED || o->gradient); }

static void use_regularity(fmm_order_search *search, int64_t n_sources, fmm_regularity regularity) {
  const fmm_options *options = search->options;
  const int one_sign = options->density_sign != FMM_DENSITY_SIGNED;
  if (regularity == FMM_POINTS_ON_LATTICE ? !one_sign : regularity == FMM_POINTS_ON_CURVES && options->gradient) search->kind = FMM_DENSITY_SALT, search->cancelled = usual_cancelled;
  const double growth = regularity == FMM_POINTS_ON_CURVES && options->gradient ? fmax(1, (double)n_sources / points_on_curve) : 1;
  search->margin *= growth, search->cancelled *= growth;
  if (regularity == FMM_POINTS_ON_LATTICE || options->gradient) search->regularity = regularity; /* curves change nothing else */
  if (regularity == FMM_POINTS_ON_LATTICE && one_sign) search->margin *= plane_margin; /* with gradient: even planes */
}

void fmm_order_search_for(fmm_order_search *search, const fmm_options *options, const fmm_pair *pair, const double params[FMM_MAX_PARAMS], int64_t n_sources,
                          const double *sources, int64_t n_targets, const double *targets, const fmm_regularity *regularity, int threads) {
  *search = (fmm_order_search){.options = options, .pair = pair, .half_width = 1, .margin = targets ? FMM_APART_MARGIN : FMM_STRUCTURE_MARGIN,
                               .n_points = n_sources > n_targets ? n_sources : n_targets, .pairs = (double)n_sources * (double)(targets ? n_targets : n_sources), .threads = threads, .kind = options->density_sign, .expected_error = NAN};
  memcpy(search->params, params, sizeof search->params);
  search->cancelled = targets && (options->density_sign == FMM_DENSITY_SIGNED || options->gradient) ? usual_cancelled : 1; /* inside a shell of one sign gradients cancel */
  if (!pair->info->has_degree) measure_lengths(search, n_sources, sources, targets ? n_targets : 0, targets);
  if (fmm_order_asks_regularity(options)) use_regularity(search, n_sources, regularity ? *regularity : fmm_points_regularity(n_sources, sources, threads));
}

fmm_status fmm_order_first(fmm_order_search *s, int *order) {
  const fmm_options *o = s->options;
  if (o->order) return *order = o->order, s->settled = 1, FMM_OK;
  if (s->n_points > FEW_POINTS && !(s->apart > 1 && s->pairs <= few_pairs)) return fmm_order_settle(s, order);
  return fmm_order_bound(s->pair, s->params, o->tolerance / s->margin, s->kind, o->gradient, s->half_width, s->threads, order);
}

fmm_status fmm_order_settle(fmm_order_search *s, int *order) {
  const fmm_options *o = s->options;
  double expected;
  FMM_TRY(fmm_order_for_tolerance(s->pair, s->params, o->tolerance / s->margin, s->kind, o->gradient, s->half_width, s->threads, order, &expected));
  s->expected_error = s->margin * expected;
  s->settled = 1;
  return FMM_OK;
}
