/* See pair_tiles.h. A lane's loop over a source costs about 0.4 of a pair beside its pairs, a tile about 12 targets' worth of staging, start and end (both from
 * counting instructions). */
#include "kernels/pair/pair_tiles.h"

#include <math.h>

enum { LEAST_CAP = 32, MOST_CAP = 512, ENOUGH_TILES = 1024 };

int fmm_pair_tile_cap(int64_t targets) {
  int cap = LEAST_CAP;
  while (cap < MOST_CAP && (int64_t)2 * cap * ENOUGH_TILES <= targets) cap *= 2;
  return cap;
}

int64_t fmm_pair_seats(int64_t tiles, int lanes_log2, int per_lane, int beside) { return (tiles << lanes_log2) * (10 * per_lane + beside); }

void fmm_pair_shape_tiles(int64_t count, int cap, int most, int64_t *tiles, int *lanes_log2, int *per_lane) {
  double best = INFINITY;
  for (int l = 2; l <= 5; l++) {
    int64_t lanes = (int64_t)1 << l, limit = lanes * most < cap ? lanes * most : cap, n = (count + limit - 1) / limit;
    int64_t each = (count + n - 1) / n, r = (each + lanes - 1) / lanes;
    double cost = (double)n * ((double)lanes * ((double)r + 0.4) + 12);
    if (cost < best) best = cost, *tiles = n, *lanes_log2 = l, *per_lane = (int)r;
  }
}
