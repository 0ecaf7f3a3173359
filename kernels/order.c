/* The order for a tolerance: the smallest whose expected error (far_field_error.c) is within it. Orders are measured, not tabulated: the search
 * starts low, where measuring is cheap, and steps as far as the fastest decay that a surface can have, (inner/outer)^2 an order (operators.c),
 * allows without passing the answer. What was measured is kept for the process. */
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "kernels/operators.h"

enum { LEAST_ORDER = 2, MEMORY = 128, LEVELS = 5, LEVEL_STEP = 3, MOST_WORSE = 2 };

typedef struct measurement {
  const fmm_pair *pair;
  double params[FMM_MAX_PARAMS], half_width;
  int order, gradient;
  fmm_density_sign sign;
  double error;
} measurement;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static measurement memory[MEMORY];
static int n_measured; /* ever; the newest MEMORY are kept */

static int same(const measurement *a, const measurement *b) {
  return a->pair == b->pair && !memcmp(a->params, b->params, sizeof a->params) && a->half_width == b->half_width && a->order == b->order &&
         a->gradient == b->gradient && a->sign == b->sign;
}

static int recall(measurement *m) {
  int found = 0;
  pthread_mutex_lock(&mutex);
  for (int i = 0; i < n_measured && i < MEMORY && !found; i++)
    if (same(&memory[i], m)) m->error = memory[i].error, found = 1;
  pthread_mutex_unlock(&mutex);
  return found;
}

static void keep(const measurement *m) {
  pthread_mutex_lock(&mutex);
  memory[n_measured++ % MEMORY] = *m;
  pthread_mutex_unlock(&mutex);
}

static fmm_status measure(measurement *m) {
  if (recall(m)) return FMM_OK;
  FMM_TRY(fmm_far_field_error(m->pair, m->params, m->order, m->half_width, m->sign, m->gradient, 1, &m->error));
  keep(m);
  return FMM_OK;
}

static fmm_status measure_one(measurement m, int gradient, fmm_density_sign sign, double *error) {
  m.gradient = gradient, m.sign = sign;
  FMM_TRY(measure(&m));
  *error = fmax(*error, m.error);
  return FMM_OK;
}

/* Larger of potential's and, if asked, gradient's; kernels without a degree: of boxes at several levels from the first with far boxes.
 * Nonnegative densities may be few large ones among zeros: then nothing adds in phase, and the gradient's error, unlike the potential's, is that of
 * signed ones (a charge alone at a box's corner: 3.5e-9 where 1e-9 was asked and spread ones gave 1e-10). */
static fmm_status measure_all(measurement m, double root_half_width, int gradient, double *error) {
  int levels = m.pair->info->has_degree ? 1 : LEVELS;
  *error = 0;
  for (int l = 0; l < levels; l++) {
    m.half_width = levels == 1 ? 1 : ldexp(root_half_width, -(2 + l * LEVEL_STEP)); /* V boxes of levels 2 to 14: some are short against any length in K */
    FMM_TRY(measure_one(m, 0, m.sign, error));
    if (gradient) FMM_TRY(measure_one(m, 1, m.sign, error));
    if (gradient && m.sign != FMM_DENSITY_SIGNED) FMM_TRY(measure_one(m, 1, FMM_DENSITY_SIGNED, error));
  }
  return FMM_OK;
}

static measurement first_of(const fmm_pair *pair, const double params[FMM_MAX_PARAMS], fmm_density_sign sign) {
  measurement m = {.pair = pair, .order = LEAST_ORDER, .sign = sign};
  for (int i = 0; i < pair->info->n_params; i++) m.params[i] = params[i];
  return m;
}

/* As far as the fastest decay allows. Surfaces come nearer with the order, so that of this order is the fastest of all that follow. */
static int next_order(const measurement *m, double error, double tolerance) {
  const double fastest = 2 * log(FMM_INNER_RADIUS / fmm_outer_radius(m->pair->info, m->order));
  double step = floor(log(tolerance / error) / fastest);
  return step < FMM_MAX_ORDER - m->order ? m->order + (step > 1 ? (int)step : 1) : FMM_MAX_ORDER;
}

fmm_status fmm_order_bound(const fmm_pair *pair, const double params[FMM_MAX_PARAMS], double tolerance, fmm_density_sign sign, int gradient,
                           double root_half_width, int *bound) {
  measurement m = first_of(pair, params, sign);
  double error;
  FMM_TRY(measure_all(m, root_half_width, gradient, &error));
  *bound = error <= tolerance ? m.order : next_order(&m, error, tolerance);
  return FMM_OK;
}

fmm_status fmm_order_for_tolerance(const fmm_pair *pair, const double params[FMM_MAX_PARAMS], double tolerance, fmm_density_sign sign, int gradient,
                                   double root_half_width, int *order, double *expected) {
  measurement m = first_of(pair, params, sign);
  double error, least = INFINITY;
  int best = m.order;
  for (int worse = 0;; m.order = next_order(&m, error, tolerance)) {
    FMM_TRY(measure_all(m, root_half_width, gradient, &error));
    worse = error < least ? 0 : worse + 1;
    if (error < least) least = error, best = m.order;
    if (error <= tolerance || m.order == FMM_MAX_ORDER || worse == MOST_WORSE) break; /* rounding takes over where orders no longer help */
  }
  *order = best;
  *expected = least;
  return FMM_OK;
}
