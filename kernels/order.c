/* The order for a tolerance: the smallest whose expected error (far_field_error.c) is within it. Errors are measured, those of interactions of a degree up to some order once for all (known_errors.c): the search
 * starts low, where measuring is cheap, and goes to where the usual decay has the answer, since the highest orders cost most. Where that one is within the tolerance, it goes down while the next is too; else up, in steps as far as the
 * fastest decay that a surface can have, (inner/outer)^2 an order (operators.c), allows without passing the answer. What was measured is kept for the process. */
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "kernels/known_errors.h"
#include "kernels/operators.h"

enum { LEAST_ORDER = 2, MEMORY = 128, LEVELS = 7, LEVEL_STEP = 3, MOST_WORSE = 2 };

typedef struct measurement {
  const fmm_pair *pair;
  double params[FMM_MAX_PARAMS], half_width;
  int order, kind; /* of the densities: fmm_density_sign, or FMM_DENSITY_SALT */
  double error[FMM_DENSITY_KINDS][2]; /* by kind and gradient; of what matters to this kind */
} measurement;

/* What is asked; the errors of an order are the largest over the levels and kinds that matter to it. */
typedef struct question {
  measurement m;
  int gradient, threads;
  int levels, worst; /* levels that tell all others, and which of them erred most when last measured */
  double root_half_width;
} question;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static measurement memory[MEMORY];
static int n_measured; /* ever; the newest MEMORY are kept */

static int same(const measurement *a, const measurement *b) {
  return a->pair == b->pair && !memcmp(a->params, b->params, sizeof a->params) && a->half_width == b->half_width && a->order == b->order &&
         a->kind == b->kind;
}

static int recall(measurement *m) {
  int found = 0;
  pthread_mutex_lock(&mutex);
  for (int i = 0; i < n_measured && i < MEMORY && !found; i++)
    if (same(&memory[i], m)) *m = memory[i], found = 1;
  pthread_mutex_unlock(&mutex);
  return found;
}

static void keep(const measurement *m) {
  pthread_mutex_lock(&mutex);
  memory[n_measured++ % MEMORY] = *m;
  pthread_mutex_unlock(&mutex);
}

static fmm_status measure(measurement *m, int threads) {
  if (fmm_known_errors(m->pair->info, m->order, m->error) || recall(m)) return FMM_OK;
  FMM_TRY(fmm_far_field_errors(m->pair, m->params, m->order, m->half_width, m->kind, threads, m->error));
  keep(m);
  return FMM_OK;
}

/* On lattices: the mean over ways for boxes to cut them, of which some have twice that: the callers' margin of 2 is for these. */
static double of_lattices(const question *q) {
  const double *salt = q->m.error[FMM_DENSITY_SALT], *crystal = q->m.error[FMM_DENSITY_CRYSTAL];
  double potential = fmax(salt[0], crystal[0]);
  return q->gradient ? fmax(potential, fmax(salt[1], crystal[1])) : potential;
}

/* V boxes of levels 2 to 20, the last but one: where a length in K is short against those of the first levels, finer boxes may be as large as it is. */
static double half_width_of(const question *q, int level) { return q->m.pair->info->has_degree ? 1 : ldexp(q->root_half_width, -(2 + level * LEVEL_STEP)); }

/* How many levels tell all others: one of kernels with a degree. Of those whose lengths are all inverse ones, boxes a 32nd of the shortest length or smaller err alike (Yukawa, orders 5 and 10: potentials
 * less and less, gradients within 1 %), so that the first of these is the last. */
static int levels_of(const question *q) {
  const double alike = 1.0 / 32;
  const fmm_pair_info *info = q->m.pair->info;
  if (info->has_degree) return 1;
  for (int i = 0; i < info->n_params; i++)
    if (info->params[i].length_power > 0) return LEVELS;
  const double decay = fmm_pair_largest_decay(info, q->m.params);
  int levels = 1;
  while (levels < LEVELS && !(decay * half_width_of(q, levels - 1) <= alike)) levels++;
  return levels;
}

/* Larger of potential's and, if asked, gradient's, at one level.
 * Any densities may be one large among zeros, alone at a box's corner. Nothing dilutes its error; but callers ask for a tolerance below their own, by 2
 * at least, since regular points add errors in phase, and this one has nothing to add to: half of it counts. Only potentials of nonnegative
 * densities leave it out (of order 9 by 70 times the error of spread ones): they are for charges of which no few outweigh the rest (fmm.h). */
static fmm_status measure_level(question *q, int level, double *error) {
  measurement *m = &q->m;
  m->half_width = half_width_of(q, level);
  FMM_TRY(measure(m, q->threads));
  const double *spread = m->error[m->kind == FMM_DENSITY_SALT ? FMM_DENSITY_SIGNED : m->kind], *alone = m->error[FMM_DENSITY_ALONE];
  *error = m->kind == FMM_DENSITY_NONNEGATIVE ? spread[0] : fmax(spread[0], alone[0] / 2);
  if (q->gradient) *error = fmax(*error, fmax(spread[1], alone[1] / 2));
  if (m->kind == FMM_DENSITY_SALT) *error = fmax(*error, of_lattices(q));
  return FMM_OK;
}

/* Kernels without a degree: the largest of boxes at several levels from the first with far boxes. The level that erred most comes first, and where it errs by more than `enough` the others
 * need not be known. */
static fmm_status measure_all(question *q, double enough, double *error) {
  const int first = q->worst;
  *error = 0;
  for (int i = 0; i < q->levels && *error <= enough; i++) {
    const int level = i == 0 ? first : i <= first ? i - 1 : i;
    double one;
    FMM_TRY(measure_level(q, level, &one));
    if (one > *error) *error = one, q->worst = level;
  }
  return FMM_OK;
}

static question first_of(const fmm_pair *pair, const double params[FMM_MAX_PARAMS], int kind, int gradient, double root_half_width, int threads) {
  question q = {.m = {.pair = pair, .order = LEAST_ORDER, .kind = kind}, .gradient = gradient != 0, .threads = threads, .root_half_width = root_half_width};
  for (int i = 0; i < pair->info->n_params; i++) q.m.params[i] = params[i];
  q.levels = levels_of(&q);
  return q;
}

/* As far as the fastest decay allows. Surfaces come nearer with the order, so that of this order is the fastest of all that follow. */
static int next_order(const measurement *m, double error, double tolerance) {
  const double fastest = 2 * log(FMM_INNER_RADIUS / fmm_outer_radius(m->pair->info, m->order));
  double step = floor(log(tolerance / error) / fastest);
  return step < FMM_MAX_ORDER - m->order ? m->order + (step > 1 ? (int)step : 1) : FMM_MAX_ORDER;
}

/* Where errors that fall as they mostly do (1/r, orders 2 to 11: 0.95 decimal digits an order, with gradients 0.85) come within the tolerance; no order that cannot be the answer, and of kernels without a degree, of which
 * several levels have to be measured, the first of those that can be. */
static int likely_order(const question *q, double error, double tolerance) {
  const double digits = q->gradient ? 0.85 : 0.95;
  const int least = next_order(&q->m, error, tolerance), likely = q->m.order + (int)fmin(round(log10(error / tolerance) / digits), FMM_MAX_ORDER - q->m.order);
  return q->levels == 1 && likely > least ? likely : least;
}

/* From an order that is within the tolerance to the last of those below that are; not as low as `least`, which cannot be. */
static fmm_status go_down(question *q, int least, double tolerance, int *best, double *error) {
  while (q->m.order > least) {
    double below;
    q->m.order--;
    FMM_TRY(measure_all(q, tolerance, &below));
    if (!(below <= tolerance)) break;
    *best = q->m.order, *error = below;
  }
  return FMM_OK;
}

fmm_status fmm_order_bound(const fmm_pair *pair, const double params[FMM_MAX_PARAMS], double tolerance, int kind, int gradient,
                           double root_half_width, int threads, int *bound) {
  question q = first_of(pair, params, kind, gradient, root_half_width, threads);
  double error;
  FMM_TRY(measure_all(&q, INFINITY, &error));
  *bound = error <= tolerance ? q.m.order : next_order(&q.m, error, tolerance);
  return FMM_OK;
}

fmm_status fmm_order_for_tolerance(const fmm_pair *pair, const double params[FMM_MAX_PARAMS], double tolerance, int kind, int gradient,
                                   double root_half_width, int threads, int *order, double *expected) {
  question q = first_of(pair, params, kind, gradient, root_half_width, threads);
  double error, least = INFINITY;
  int best = q.m.order, bound = LEAST_ORDER; /* no lower order than this can be the answer */
  for (int worse = 0;; q.m.order = q.m.order == LEAST_ORDER ? likely_order(&q, error, tolerance) : next_order(&q.m, error, tolerance)) {
    const int before = q.worst;
    FMM_TRY(measure_all(&q, q.m.order == LEAST_ORDER ? INFINITY : tolerance, &error));
    if (error > tolerance) bound = next_order(&q.m, error, tolerance);
    if (q.worst != before) least = INFINITY; /* what is known of lower orders is of another level */
    worse = error < least ? 0 : worse + 1;
    if (error < least) least = error, best = q.m.order;
    if (error <= tolerance || q.m.order == FMM_MAX_ORDER || worse == MOST_WORSE) break; /* rounding takes over where orders no longer help */
  }
  if (least <= tolerance) FMM_TRY(go_down(&q, bound, tolerance, &best, &least));
  if (least > tolerance) { /* so its other levels may err by more */
    q.m.order = best;
    FMM_TRY(measure_all(&q, INFINITY, &least));
  }
  *order = best;
  *expected = least;
  return FMM_OK;
}
