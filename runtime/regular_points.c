/* Evenly spaced points told from random ones (regular_points.h). Every sample looks at all points, a block at a time that stays in cache: n x SAMPLES comparisons,
 * some 20 ms a million points on two cores. */
#include "regular_points.h"

#include <math.h>

enum { SAMPLES = 32, GROUP = 8, NEIGHBOURS = 6, BLOCK = 1024, WIDTH = 8 };

/* Between 0.50 of random points, whose mean over the samples varies by 0.03, and 0.65 of moved lattices, by 0.015. */
static const double least_ratio = 0.58;

typedef struct sample { double at[3], square[NEIGHBOURS], reach; } sample; /* of its nearest so far: squared distances, ascending; root of the last */

static uint64_t mixed(uint64_t z) { /* splitmix64 */
  z = (z + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

static void insert(sample *s, double square) {
  int i = NEIGHBOURS - 1;
  for (; i > 0 && s->square[i - 1] > square; i--) s->square[i] = s->square[i - 1];
  s->square[i] = square;
  s->reach = sqrt(s->square[NEIGHBOURS - 1]);
}

/* Most points are too far along the first axis: told of eight at once. x: the block's first coordinates, padded with infinities. */
static void look(sample *s, int64_t n, const double *points, const double x[BLOCK]) {
  for (int64_t i = 0; i < n; i += WIDTH) {
    int64_t n_near = 0;
    for (int j = 0; j < WIDTH; j++) n_near += fabs(x[i + j] - s->at[0]) < s->reach;
    if (!n_near) continue;
    for (int64_t j = i; j < i + WIDTH && j < n; j++) {
      double dx = x[j] - s->at[0], dy = points[3 * j + 1] - s->at[1], dz = points[3 * j + 2] - s->at[2], square = dx * dx + dy * dy + dz * dz;
      if (square > 0 && square < s->square[NEIGHBOURS - 1]) insert(s, square);
    }
  }
}

static void look_at_all(sample *samples, int n_samples, int64_t n, const double *points) {
  double x[BLOCK];
  for (int64_t begin = 0; begin < n; begin += BLOCK) {
    int64_t m = n - begin < BLOCK ? n - begin : BLOCK;
    for (int64_t i = 0; i < BLOCK; i++) x[i] = i < m ? points[3 * (begin + i)] : INFINITY;
    for (int k = 0; k < n_samples; k++) look(&samples[k], m, points + 3 * begin, x);
  }
}

int fmm_points_are_regular(int64_t n, const double *points, int threads) {
  sample samples[SAMPLES];
  double sum = 0;
  int found = 0;
  if (n <= NEIGHBOURS) return 0;
  for (int k = 0; k < SAMPLES; k++) {
    const double *at = points + 3 * (int64_t)(mixed((uint64_t)k) % (uint64_t)n);
    samples[k] = (sample){.at = {at[0], at[1], at[2]}, .reach = INFINITY};
    for (int i = 0; i < NEIGHBOURS; i++) samples[k].square[i] = INFINITY;
  }
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int first = 0; first < SAMPLES; first += GROUP) look_at_all(samples + first, GROUP, n, points);
  for (int k = 0; k < SAMPLES; k++) {
    const double *square = samples[k].square;
    if (!isfinite(square[NEIGHBOURS - 1])) continue; /* fewer different places than that, or too far apart for squares */
    sum += sqrt(square[0] / square[NEIGHBOURS - 1]);
    found++;
  }
  return found > 0 && sum >= least_ratio * found;
}
