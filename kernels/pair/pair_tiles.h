/* Shapes of the tiles in which a GPU sums onto a leaf's points (runtime/gpu/gpu_tables.cu), and in what its other sums are cut; in plain C, as the memory that they take
 * there depends on them (model/footprint.c). */
#ifndef FMM_PAIR_TILES_H
#define FMM_PAIR_TILES_H
#include <stdint.h>

enum { FMM_TILE_MOST = 10 /* targets a lane, where each has one value */ };
/* Sums between points and surfaces as lattices (kernels/pair/pair_lattice_cuda.cu): the orders that they serve, targets a lane, and boxes of W's lists that a lane takes before
 * another takes over. */
enum { FMM_LATTICE_LEAST_ORDER = 3, FMM_LATTICE_MOST_ORDER = 8, FMM_LATTICE_TARGETS = 2, FMM_LATTICE_BOXES = 2 };
/* Otherwise W's tiles have at most one of so many shares of all its pairs of target and box, but at least so many pairs. */
enum { FMM_W_SHARES = 4096, FMM_W_LEAST_SHARE = 256 };
/* Most targets a tile may have where there are so many in all. */
int fmm_pair_tile_cap(int64_t targets);
/* The cheapest tiles for `count` targets, all of one shape: 2^lanes_log2 lanes of per_lane targets, at most `cap` targets each and `most` a lane. */
void fmm_pair_shape_tiles(int64_t count, int cap, int most, int64_t *tiles, int *lanes_log2, int *per_lane);
#endif
