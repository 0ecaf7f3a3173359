/* Some points and what lies around them (point_samples.h). A few points, evenly taken, bound how far the samples' neighbours are; tables along the three axes then tell of every
 * point which samples it may be near to: mostly none, whatever the density. Threads share out the points; what they found is joined at the end. */
#include "point_samples.h"

#include <math.h>
#include <string.h>

#include "team_loop.h"

enum { SAMPLES = FMM_POINT_SAMPLES, NEIGHBOURS = FMM_NEIGHBOURS, SOME = 1 << 14, CELLS = 4096 };
typedef fmm_point_sample sample;

static uint64_t mixed(uint64_t z) { /* splitmix64 */
  z = (z + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

static int is_held(const sample *s, double square, const double *place) {
  for (int i = 0; i < NEIGHBOURS && s->square[i] <= square; i++)
    if (s->square[i] == square && s->place[i][0] == place[0] && s->place[i][1] == place[1] && s->place[i][2] == place[2]) return 1;
  return 0;
}

static void insert(sample *s, double square, const double *place) {
  int i = NEIGHBOURS - 1;
  if (is_held(s, square, place)) return;
  for (; i > 0 && s->square[i - 1] > square; i--) s->square[i] = s->square[i - 1], memcpy(s->place[i], s->place[i - 1], sizeof s->place[i]);
  s->square[i] = square;
  memcpy(s->place[i], place, sizeof s->place[i]);
  s->reach = sqrt(s->square[NEIGHBOURS - 1]);
}

static double square_from(const sample *s, const double *point) {
  double dx = (point[0] - s->at[0]) * s->per_unit, dy = (point[1] - s->at[1]) * s->per_unit, dz = (point[2] - s->at[2]) * s->per_unit;
  return dx * dx + dy * dy + dz * dz;
}

static void look(sample *s, const double *point) {
  double square = square_from(s, point);
  if (square > 0 && square < s->square[NEIGHBOURS - 1]) insert(s, square, point);
}

static void bound(sample samples[SAMPLES], int64_t n, const double *points, int threads) {
  const int64_t some = n < SOME ? n : SOME;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int k = 0; k < SAMPLES; k++) {
    for (int64_t i = 0; i < some; i++) look(&samples[k], points + 3 * (int64_t)(((double)i + 0.5) * (double)n / (double)some));
    for (int i = 0; i < NEIGHBOURS; i++) samples[k].square[i] = samples[k].reach * samples[k].reach, samples[k].place[i][0] = NAN; /* not found yet, but not farther */
  }
}

/* Samples that may be near to what lies in a cell: cells of one width between the first and the last sample and their reach; what lies outside counts to the outermost. */
typedef struct axis { double low, cells_a_length; uint64_t near[CELLS]; } axis;

static int cell_of(const axis *a, double x) {
  double cell = (x - a->low) * a->cells_a_length;
  return cell > 0 ? cell < CELLS - 1 ? (int)cell : CELLS - 1 : 0;
}

static void make_axis(axis *a, int which, const sample samples[SAMPLES]) {
  const double unit = 1 / samples[0].per_unit;
  double low = INFINITY, high = -INFINITY;
  for (int k = 0; k < SAMPLES; k++) low = fmin(low, samples[k].at[which] - unit * samples[k].reach), high = fmax(high, samples[k].at[which] + unit * samples[k].reach);
  a->low = low, a->cells_a_length = isfinite(high - low) && high > low ? CELLS / (high - low) : 0;
  memset(a->near, 0, sizeof a->near);
  for (int k = 0; k < SAMPLES; k++) {
    int last = isfinite(high - low) ? cell_of(a, samples[k].at[which] + unit * samples[k].reach) : CELLS - 1;
    for (int cell = isfinite(high - low) ? cell_of(a, samples[k].at[which] - unit * samples[k].reach) : 0; cell <= last; cell++) a->near[cell] |= (uint64_t)1 << k;
  }
}

static void join(sample *to, const sample *from) {
  for (int i = 0; i < NEIGHBOURS; i++)
    if (from->square[i] < to->square[NEIGHBOURS - 1]) insert(to, from->square[i], from->place[i]);
}

/* Samples that a point may be near to. */
static inline uint64_t near_to(const axis axes[3], const double *point) {
  return axes[0].near[cell_of(&axes[0], point[0])] & axes[1].near[cell_of(&axes[1], point[1])] & axes[2].near[cell_of(&axes[2], point[2])];
}

static void find_neighbours(sample samples[SAMPLES], int64_t n, const double *points, int threads) {
  axis axes[3];
  for (int k = 0; k < 3; k++) make_axis(&axes[k], k, samples);
#pragma omp parallel num_threads(threads)
  {
    sample own[SAMPLES];
    memcpy(own, samples, sizeof own);
#pragma omp barrier
#pragma omp for schedule(static) nowait
    for (int64_t i = 0; i < n; i++) {
      for (uint64_t near = near_to(axes, points + 3 * i); near; near &= near - 1) look(&own[__builtin_ctzll(near)], points + 3 * i);
    }
    fmm_join_begin();
    for (int k = 0; k < SAMPLES; k++) join(&samples[k], &own[k]);
    fmm_join_end();
  }
}

/* 1 / the extent of some points, to a power of two that has a reciprocal. */
static double per_unit_of(int64_t n, const double *points) {
  const int64_t some = n < SOME ? n : SOME;
  double extent = 0;
  int exponent;
  for (int64_t i = 0; i < some; i++)
    for (int a = 0; a < 3; a++) extent = fmax(extent, fabs(points[3 * (i * (n / some)) + a] / 2 - points[a] / 2));
  frexp(extent, &exponent);
  return ldexp(1, exponent > 1000 ? -1000 : exponent < -1000 ? 1000 : -exponent);
}

void fmm_point_samples_take(fmm_point_samples *s, int64_t n, const double *points, int threads) {
  *s = (fmm_point_samples){.n_points = n, .points = points, .threads = threads};
  if (n <= NEIGHBOURS) return;
  s->n = SAMPLES;
  const double per_unit = per_unit_of(n, points);
  for (int k = 0; k < SAMPLES; k++) {
    const double *at = points + 3 * (int64_t)(mixed((uint64_t)k) % (uint64_t)n);
    s->sample[k] = (sample){.at = {at[0], at[1], at[2]}, .per_unit = per_unit, .reach = INFINITY};
    for (int i = 0; i < NEIGHBOURS; i++) s->sample[k].square[i] = INFINITY;
  }
  bound(s->sample, n, points, threads);
  find_neighbours(s->sample, n, points, threads);
}

/* What a thread found and has not told yet. */
typedef struct findings { int n; struct { int sample; int64_t point; } of[256]; } findings;

static void tell(findings *f, fmm_point_ball balls[SAMPLES]) {
  fmm_join_begin();
  for (int i = 0; i < f->n; i++) {
    fmm_point_ball *ball = &balls[f->of[i].sample];
    if (ball->n < FMM_BALL) ball->point[ball->n] = f->of[i].point;
    ball->n++;
  }
  fmm_join_end();
  f->n = 0;
}

void fmm_point_samples_gather(const fmm_point_samples *s, double times, fmm_point_ball balls[SAMPLES]) {
  sample wide[SAMPLES];
  axis axes[3];
  for (int k = 0; k < SAMPLES; k++) balls[k].n = 0;
  if (s->n == 0) return;
  memcpy(wide, s->sample, sizeof wide);
  for (int k = 0; k < SAMPLES; k++) wide[k].reach = isfinite(wide[k].reach) ? times * wide[k].reach : 0;
  for (int a = 0; a < 3; a++) make_axis(&axes[a], a, wide);
#pragma omp parallel num_threads(s->threads)
  {
    findings found = {0};
#pragma omp for schedule(static) nowait
    for (int64_t i = 0; i < s->n_points; i++)
      for (uint64_t near = near_to(axes, s->points + 3 * i); near; near &= near - 1) {
        const int k = __builtin_ctzll(near);
        if (!(square_from(&wide[k], s->points + 3 * i) <= wide[k].reach * wide[k].reach) || !(wide[k].reach > 0)) continue;
        found.of[found.n].sample = k, found.of[found.n++].point = i;
        if (found.n == sizeof found.of / sizeof *found.of) tell(&found, balls);
      }
    tell(&found, balls);
  }
}
