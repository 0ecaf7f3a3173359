/* The order of a case (choose_order.h). */
#include "choose_order.h"
#include "regular_points.h"

#include <math.h>
#include <string.h>

enum { FEW_POINTS = 1 << 13 }; /* one leaf of more is never the best, and trees of fewer are tuned in milliseconds */

/* Half the bounding cube's side, 1 when the points are one or none. */
static double half_width(int64_t n, const double *points, int64_t m, const double *more) {
  double low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY}, side = 0;
  for (int64_t i = 0; i < n + m; i++)
    for (int axis = 0; axis < 3; axis++) {
      double x = i < n ? points[3 * i + axis] : more[3 * (i - n) + axis];
      if (x < low[axis]) low[axis] = x;
      if (x > high[axis]) high[axis] = x;
    }
  for (int axis = 0; axis < 3 && n + m > 0; axis++) side = fmax(side, high[axis] - low[axis]);
  return side > 0 && isfinite(side) ? side / 2 : 1;
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

void fmm_order_search_for(fmm_order_search *search, const fmm_options *options, const fmm_pair *pair, const double params[FMM_MAX_PARAMS], int64_t n_sources,
                          const double *sources, int64_t n_targets, const double *targets, int threads) {
  *search = (fmm_order_search){.options = options, .pair = pair, .half_width = 1, .margin = targets ? FMM_APART_MARGIN : FMM_STRUCTURE_MARGIN,
                               .n_points = n_sources > n_targets ? n_sources : n_targets, .threads = threads, .kind = options->density_sign, .expected_error = NAN};
  memcpy(search->params, params, sizeof search->params);
  search->cancels = targets && options->density_sign == FMM_DENSITY_SIGNED;
  if (!pair->info->has_degree) {
    /* In units of half the bounding cube's side, so that nothing overflows on the way; see scale_units of setup.c. */
    double a = 1 / half_width(n_sources, sources, targets ? n_targets : 0, targets);
    for (int i = 0; i < pair->info->n_params; i++) search->params[i] *= pow(a, pair->info->params[i].length_power);
    if (search->n_points > 0) search->steps = largest_decay(pair->info, search->params) * farthest_source(n_sources, targets != NULL);
  }
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
