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

int64_t fmm_pair_direct_mates(int64_t points, int64_t tiles) {
  return tiles < FMM_DIRECT_LEAST_TILES || tiles > FMM_DIRECT_MOST_TILES || points > tiles * FMM_DIRECT_LARGEST_TILE ? 0 : (tiles - 1) / 2;
}

/* Groups of lanes take four sources at a time: fours of tiles leave no rest. */
int64_t fmm_pair_direct_mates_a_chunk(int64_t points, int64_t tiles) {
  const int64_t largest = (points + tiles - 1) / tiles, fit = FMM_BOTH_CHUNK / largest, most = (fit < FMM_BOTH_MATES ? fit : FMM_BOTH_MATES) - 2, mates = fmm_pair_direct_mates(points, tiles);
  const int64_t chunks = (mates + most / 4 * 4 - 1) / (most / 4 * 4);
  return ((mates + chunks - 1) / chunks + 3) / 4 * 4;
}

void fmm_pair_shape_tiles(int64_t count, int cap, int most, int64_t *tiles, int *lanes_log2, int *per_lane) {
  double best = INFINITY;
  for (int l = 2; l <= 5; l++) {
    int64_t lanes = (int64_t)1 << l, limit = lanes * most < cap ? lanes * most : cap, n = (count + limit - 1) / limit;
    int64_t each = (count + n - 1) / n, r = (each + lanes - 1) / lanes;
    double cost = (double)n * ((double)lanes * ((double)r + 0.4) + 12);
    if (cost < best) best = cost, *tiles = n, *lanes_log2 = l, *per_lane = (int)r;
  }
}
