/* What the nearest pairs give to gradients (crowding.h): around each sample its nearest points are targets of all that lie in a wider ball. Sums are in units of the side of a box that
 * has as many points as those targets: so are the errors of boxes, and by its fourth power both weigh in the whole, where densities differ. */
#include "crowding.h"

#include <math.h>
#include <stdlib.h>

#include "memory.h"

enum { SAMPLES = FMM_POINT_SAMPLES, TARGETS = 96 /* charges of a box in far_field_error.c */, SUMS = SAMPLES * TARGETS };

static const double ball = 4; /* times the distance to the sixth neighbour: of points that fill space 380, on surfaces 96 */

typedef struct near_field {
  double side;           /* of the box; 0: too few points, or too many for their room */
  double sum[TARGETS];   /* of (side / r)^4 */
} near_field;

typedef struct neighbour { double square, at[3]; int64_t point; } neighbour;

static double square_between(const double a[3], const double b[3]) {
  const double x = a[0] - b[0], y = a[1] - b[1], z = a[2] - b[2];
  return x * x + y * y + z * z;
}

/* Equally far ones by their numbers, so that the order is one whatever that in which they were found. */
static int by_distance(const void *a, const void *b) {
  const neighbour *x = a, *y = b;
  if (x->square != y->square) return x->square > y->square ? 1 : -1;
  return (x->point > y->point) - (x->point < y->point);
}

static void sum_around(const fmm_point_samples *s, int k, const fmm_point_ball *b, neighbour *p, near_field *field) {
  const fmm_point_sample *centre = &s->sample[k];
  field->side = 0;
  if (b->n < TARGETS || b->n > FMM_BALL) return;
  const int n = (int)b->n;
  for (int i = 0; i < n; i++) {
    p[i].point = b->point[i];
    for (int a = 0; a < 3; a++) p[i].at[a] = (s->points[3 * p[i].point + a] - centre->at[a]) * centre->per_unit;
    p[i].square = p[i].at[0] * p[i].at[0] + p[i].at[1] * p[i].at[1] + p[i].at[2] * p[i].at[2];
  }
  qsort(p, (size_t)n, sizeof *p, by_distance);
  field->side = cbrt(4 * M_PI / 3) * sqrt(p[TARGETS - 1].square);
  const double side2 = field->side * field->side;
  for (int t = 0; t < TARGETS; t++) {
    double sum = 0;
    for (int i = 0; i < n; i++) {
      const double square = square_between(p[t].at, p[i].at);
      if (square > 0) sum += (side2 / square) * (side2 / square);
    }
    field->sum[t] = sum;
  }
}

/* Of the same number of points a box, on a lattice with the target in the middle of a cell, as far as the next boxes: near_square of far_field_error.c. */
static double lattice_sum(void) {
  enum { EDGE = 4, REACH = 3 * EDGE };
  double sum = 0;
  for (int i = 0; i < REACH * REACH * REACH; i++) {
    const double at[3] = {(i / (REACH * REACH) - REACH / 2 + 0.5) / EDGE, (i / REACH % REACH - REACH / 2 + 0.5) / EDGE, (i % REACH - REACH / 2 + 0.5) / EDGE};
    const double square = at[0] * at[0] + at[1] * at[1] + at[2] * at[2];
    sum += 1 / (square * square);
  }
  return sum * TARGETS / (EDGE * EDGE * EDGE);
}

static int descending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x < y) - (x > y);
}

/* All sums, the largest first; returns how many. */
static int sort_sums(const near_field fields[SAMPLES], double sums[SUMS]) {
  int n = 0;
  for (int k = 0; k < SAMPLES; k++)
    for (int t = 0; t < TARGETS && fields[k].side > 0; t++) sums[n++] = fields[k].sum[t];
  qsort(sums, (size_t)n, sizeof *sums, descending);
  return n;
}

/* Mean in units of that of a lattice, no sum counted for more than `cap`. */
static double capped_mean(const near_field fields[SAMPLES], double cap) {
  double least = INFINITY, sum = 0, weights = 0;
  for (int k = 0; k < SAMPLES; k++)
    if (fields[k].side > 0) least = fmin(least, fields[k].side);
  for (int k = 0; k < SAMPLES; k++) {
    if (!(fields[k].side > 0)) continue;
    const double weight = pow(least / fields[k].side, 4);
    double mean = 0;
    for (int t = 0; t < TARGETS; t++) mean += fmin(fields[k].sum[t], cap) / TARGETS;
    sum += weight * mean, weights += weight;
  }
  return sum / (weights * lattice_sum());
}

/* The mean without a 48th of the sums hardly depends on luck; that without a 192nd tells how it grows with more of them, for random points by 4^(1/3) at most, and another step is taken likewise. */
static double extrapolate(const near_field fields[SAMPLES], const double *sums, int n) {
  const double most = 1e6, most_step = cbrt(4);
  const double few = capped_mean(fields, fmin(sums[n / 48], most * most)), more = capped_mean(fields, fmin(sums[n / 192], most * most));
  const double step = fmin(more / few, most_step);
  return fmin(few * step * step, most);
}

fmm_status fmm_points_crowding(const fmm_point_samples *s, double *crowding) {
  struct { fmm_point_ball ball[SAMPLES]; near_field field[SAMPLES]; neighbour around[SAMPLES][FMM_BALL]; double sums[SUMS]; } *w = NULL;
  *crowding = 1;
  if (s->n == 0) return FMM_OK;
  FMM_TRY(FMM_ALLOCATE(&w, 1, "neighbours of sampled points"));
  fmm_point_samples_gather(s, ball, w->ball);
#pragma omp parallel for num_threads(s->threads) schedule(static)
  for (int k = 0; k < SAMPLES; k++) sum_around(s, k, &w->ball[k], w->around[k], &w->field[k]);
  const int n = sort_sums(w->field, w->sums);
  if (n > 0) *crowding = extrapolate(w->field, w->sums, n);
  FMM_FREE(&w);
  return FMM_OK;
}
