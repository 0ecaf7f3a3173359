/* Evenly spaced points told from random ones (regular_points.h). Some points, evenly taken, bound how far the samples' neighbours are; tables along the three axes then tell of more of
 * them, and with closer bounds of every point, which samples it may be near to: mostly none, whatever the density. Threads share out the points; what they found is joined at the end. */
#include "regular_points.h"

#include <math.h>
#include <string.h>

#include "generate.h"
#include "kernels/simd.h"
#include "team_loop.h"

enum { SAMPLES = 64 /* bits of a mask */, NEIGHBOURS = 6, SOME = 1 << 12, MORE = 1 << 15, CELLS = 4096, BLOCK = 64 /* points whose cells are found together */ };

/* Between 0.50 of random points, whose mean over the samples varies by 0.02, and 0.65 of moved lattices, by 0.01. */
static const double least_ratio = 0.58;

/* Of its nearest so far: squared distances, ascending, and places (points in one place count once); root of the last. In units of 1 / per_unit, so that no square over- or underflows. */
typedef struct sample { double at[3], per_unit, square[NEIGHBOURS], reach, place[NEIGHBOURS][3]; } sample;

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

static void look(sample *s, const double *point) {
  double dx = (point[0] - s->at[0]) * s->per_unit, dy = (point[1] - s->at[1]) * s->per_unit, dz = (point[2] - s->at[2]) * s->per_unit, square = dx * dx + dy * dy + dz * dz;
  if (square > 0 && square < s->square[NEIGHBOURS - 1]) insert(s, square, point);
}

/* No farther than now, but not found yet. */
static void keep_bound(sample *s) {
  for (int i = 0; i < NEIGHBOURS; i++) s->square[i] = s->reach * s->reach, s->place[i][0] = NAN;
}

typedef struct bounding { sample *samples; int64_t n; const double *points; } bounding;

static void bound(void *context, int64_t begin, int64_t end) {
  const bounding *b = context;
  const int64_t some = b->n < SOME ? b->n : SOME;
  for (int64_t k = begin; k < end; k++) {
    for (int64_t i = 0; i < some; i++) look(&b->samples[k], b->points + 3 * (int64_t)(((double)i + 0.5) * (double)b->n / (double)some));
    keep_bound(&b->samples[k]);
  }
}

/* Samples that may be near to what lies in a cell: cells of one width between the first and the last sample and their reach; what lies outside counts to the outermost. */
typedef struct axis { double low, cells_a_length; uint64_t near[CELLS]; } axis;

static inline __attribute__((always_inline)) int cell_at(double low, double cells_a_length, double x) {
  const double cell = (x - low) * cells_a_length, most = CELLS - 1, inside = cell < most ? cell : most;
  return (int)(inside > 0 ? inside : 0); /* also of NaN */
}

static int cell_of(const axis *a, double x) { return cell_at(a->low, a->cells_a_length, x); }

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

/* All three axes' cells of points that follow one another, in the order of their coordinates, so that vectors serve: a pattern of lows and scales repeats every eight points. */
enum { PATTERN = 24 };
typedef struct pattern { double low[PATTERN], cells_a_length[PATTERN]; } pattern;

static inline __attribute__((always_inline)) void find_cells(const pattern *t, const double *points, int cell[3 * BLOCK]) {
  for (int i = 0; i < 3 * BLOCK; i += PATTERN)
    for (int k = 0; k < PATTERN; k++) cell[i + k] = cell_at(t->low[k], t->cells_a_length[k], points[i + k]);
}

#ifdef __x86_64__
FMM_TARGET_AVX2 static void find_cells_avx2(const pattern *t, const double *points, int cell[3 * BLOCK]) { find_cells(t, points, cell); }
FMM_TARGET_AVX512 static void find_cells_avx512(const pattern *t, const double *points, int cell[3 * BLOCK]) { find_cells(t, points, cell); }
#else
#define find_cells_avx2 find_cells
#define find_cells_avx512 find_cells
#endif

static void cells_of_block(const pattern *t, const double *points, int cell[3 * BLOCK]) {
  if (fmm_simd_level() >= FMM_SIMD_AVX512) find_cells_avx512(t, points, cell);
  else if (fmm_simd_level() >= FMM_SIMD_AVX2) find_cells_avx2(t, points, cell);
  else find_cells(t, points, cell);
}

/* Some points, of which whole blocks are looked up: those of others lie in `some`. */
static const double *block_of(int64_t n, const double *points, int64_t every, int64_t block, double some[3 * BLOCK]) {
  if (every == 1 && (block + 1) * BLOCK <= n) return points + 3 * block * BLOCK;
  for (int i = 0; i < BLOCK; i++) {
    const int64_t row = (block * BLOCK + i) * every;
    memcpy(some + 3 * i, points + 3 * (row < n ? row : 0), 3 * sizeof *some); /* the first once more, which changes nothing */
  }
  return some;
}

/* Of a block, with what its threads found so far. */
static void look_at_block(const axis axes[3], const pattern *t, const double *points, sample own[SAMPLES]) {
  int cell[3 * BLOCK];
  cells_of_block(t, points, cell);
  for (int i = 0; i < BLOCK; i++) {
    uint64_t near = axes[0].near[cell[3 * i]] & axes[1].near[cell[3 * i + 1]] & axes[2].near[cell[3 * i + 2]];
    for (; near; near &= near - 1) look(&own[__builtin_ctzll(near)], points + 3 * i);
  }
}

typedef struct finding { sample *samples, before[SAMPLES]; int64_t n, every; const double *points; axis axes[3]; pattern pattern; } finding;

static void find_some(void *context, int64_t begin, int64_t end) {
  finding *f = context;
  sample own[SAMPLES];
  double some[3 * BLOCK];
  memcpy(own, f->before, sizeof own);
  for (int64_t b = begin; b < end; b++) look_at_block(f->axes, &f->pattern, block_of(f->n, f->points, f->every, b, some), own);
  fmm_join_begin();
  for (int k = 0; k < SAMPLES; k++) join(&f->samples[k], &own[k]);
  fmm_join_end();
}

/* Among every so many-th point. */
static void find_neighbours(sample samples[SAMPLES], int64_t n, const double *points, int64_t every, int threads) {
  enum { LEAST = 1 << 10 /* blocks that are worth samples of their own */ };
  finding f = {.samples = samples, .n = n, .every = every, .points = points};
  memcpy(f.before, samples, sizeof f.before);
  for (int k = 0; k < 3; k++) make_axis(&f.axes[k], k, samples);
  for (int k = 0; k < PATTERN; k++) f.pattern.low[k] = f.axes[k % 3].low, f.pattern.cells_a_length[k] = f.axes[k % 3].cells_a_length;
  fmm_team_loop(((n + every - 1) / every + BLOCK - 1) / BLOCK, LEAST, find_some, &f, threads);
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

/* Whether the six lie in pairs at one, two and three steps. */
static int is_on_curve(const sample *s) {
  const double alike = 0.64 /* of squares */, off = 0.2, step = sqrt(s->square[0]);
  for (int pair = 0; pair < NEIGHBOURS / 2; pair++) {
    if (!(s->square[2 * pair] >= alike * s->square[2 * pair + 1])) return 0;
    if (!(fabs(sqrt(s->square[2 * pair]) / ((pair + 1) * step) - 1) <= off)) return 0;
  }
  return 1;
}

fmm_regularity fmm_points_regularity(int64_t n, const double *points, int threads) {
  sample samples[SAMPLES];
  double sum = 0;
  int found = 0, on_curves = 0;
  if (n <= NEIGHBOURS) return FMM_POINTS_IRREGULAR;
  const double per_unit = per_unit_of(n, points);
  for (int k = 0; k < SAMPLES; k++) {
    const double *at = points + 3 * (int64_t)(fmm_split_mix(0, (uint64_t)k + 1) % (uint64_t)n);
    samples[k] = (sample){.at = {at[0], at[1], at[2]}, .per_unit = per_unit, .reach = INFINITY};
    for (int i = 0; i < NEIGHBOURS; i++) samples[k].square[i] = INFINITY;
  }
  fmm_team_loop(SAMPLES, 1, bound, &(bounding){samples, n, points}, threads);
  if (n > 2 * MORE) {
    find_neighbours(samples, n, points, n / MORE, threads);
    for (int k = 0; k < SAMPLES; k++) keep_bound(&samples[k]);
  }
  find_neighbours(samples, n, points, 1, threads);
  for (int k = 0; k < SAMPLES; k++) {
    const double *square = samples[k].square;
    if (!isfinite(square[NEIGHBOURS - 1])) continue; /* fewer different places than that, or too far apart for squares */
    sum += sqrt(square[0] / square[NEIGHBOURS - 1]);
    on_curves += is_on_curve(&samples[k]);
    found++;
  }
  if (found == 0) return FMM_POINTS_IRREGULAR;
  return sum >= least_ratio * found ? FMM_POINTS_ON_LATTICE : 2 * on_curves >= found ? FMM_POINTS_ON_CURVES : FMM_POINTS_IRREGULAR;
}
