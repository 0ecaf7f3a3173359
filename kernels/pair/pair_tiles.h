/* Shapes of the tiles in which a GPU sums onto a leaf's points (runtime/gpu/gpu_tables.cu), in plain C, as the memory that the U list takes there depends on them. */
#ifndef FMM_PAIR_TILES_H
#define FMM_PAIR_TILES_H
#include <stdint.h>

enum { FMM_TILE_MOST = 10 /* targets a lane, where each has one value */ };
/* Most targets a tile may have where there are so many in all. */
int fmm_pair_tile_cap(int64_t targets);
/* The cheapest tiles for `count` targets, all of one shape: 2^lanes_log2 lanes of per_lane targets, at most `cap` targets each and `most` a lane. */
void fmm_pair_shape_tiles(int64_t count, int cap, int most, int64_t *tiles, int *lanes_log2, int *per_lane);
#endif
