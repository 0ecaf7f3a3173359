/* The order of a case (choose_order.h). */
#include "choose_order.h"
#include "regular_points.h"

#include <math.h>
#include <string.h>

enum { FEW_POINTS = 1 << 13 }; /* one leaf of more is never the best, and trees of fewer are tuned in milliseconds */

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

/* From one to the other; 0 where they overlap or one is empty. */
static double gap(const box *a, const box *b) {
  double square = 0;
  for (int axis = 0; axis < 3; axis++) {
    const double apart = fmax(a->low[axis] - b->high[axis], b->low[axis] - a->high[axis]);
    if (apart > 0 && isfinite(apart)) square += apart * apart;
  }
  return sqrt(square);
}

/* The largest inverse length among parameters, in units of half the bounding cube's side. */
static double largest_decay(const fmm_pair_info *info, const double *params) {
  double decay = 0;
  for (int i = 0; i < info->n_params; i++)
    if (info->params[i].length_power < 0) decay = fmax(decay, pow(params[i], -1.0 / info->params[i].length_power));
  return decay;
}

/* In the same units: from one point to the next where they fill the cube, or, of targets of their own, as far as there is. */
static double farthest_source(int64_t n, int own_targets) { return own_targets ? 2 * sqrt(3) : 2 / cbrt((double)n); }

/* Parameters in units of half the bounding cube's side, so that nothing overflows on the way (see scale_units of setup.c), and what follows from them where values die away. Targets that lie
 * apart from all sources see fields that are smaller than those of the far field's errors nearer by, by the exponential of 0.4 to 0.6 of the lengths between (Yukawa, uniform cubes, 5 to 20 lengths, orders 6 to 16). */
static void measure_lengths(fmm_order_search *s, int64_t n_sources, const double *sources, int64_t n_targets, const double *targets) {
  const double a_length = 0.7, most_lengths = 600; /* so that nothing overflows */
  const box of_sources = box_of(n_sources, sources), of_targets = box_of(n_targets, targets);
  const double unit = half_width(&of_sources, &of_targets);
  for (int i = 0; i < s->pair->info->n_params; i++) s->params[i] *= pow(1 / unit, s->pair->info->params[i].length_power);
  const double decay = largest_decay(s->pair->info, s->params), lengths = fmin(decay * gap(&of_sources, &of_targets) / unit, most_lengths);
  if (s->n_points > 0) s->steps = decay * farthest_source(n_sources, targets != NULL);
  s->margin *= exp(a_length * lengths);
  s->cancels |= lengths > 1;
}

void fmm_order_search_for(fmm_order_search *search, const fmm_options *options, const fmm_pair *pair, const double params[FMM_MAX_PARAMS], int64_t n_sources,
                          const double *sources, int64_t n_targets, const double *targets, int threads) {
  *search = (fmm_order_search){.options = options, .pair = pair, .half_width = 1, .margin = targets ? FMM_APART_MARGIN : FMM_STRUCTURE_MARGIN,
                               .n_points = n_sources > n_targets ? n_sources : n_targets, .threads = threads, .kind = options->density_sign, .expected_error = NAN};
  memcpy(search->params, params, sizeof search->params);
  search->cancels = targets && options->density_sign == FMM_DENSITY_SIGNED;
  if (!pair->info->has_degree) measure_lengths(search, n_sources, sources, targets ? n_targets : 0, targets);
  if (options->order) return;
  if (options->density_sign == FMM_DENSITY_SIGNED && fmm_points_are_regular(n_sources, sources, threads)) search->kind = FMM_DENSITY_SALT, search->cancels = 1;
}

fmm_status fmm_order_first(fmm_order_search *s, int *order) {
  const fmm_options *o = s->options;
  if (o->order) return *order = o->order, s->settled = 1, FMM_OK;
  if (s->n_points > FEW_POINTS) return fmm_order_settle(s, order);
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
