/* Shapes of the tiles in which a GPU sums onto a leaf's points (runtime/gpu/gpu_tables.cu), and in what its other sums are cut; in plain C, as the memory that they take
 * there depends on them (model/footprint.c). */
#ifndef FMM_PAIR_TILES_H
#define FMM_PAIR_TILES_H
#include <stdint.h>

enum { FMM_TILE_MOST = 10 /* targets a lane, where each has one value */ };
/* Targets that a lane can hold without spilling, of as many values each; `points`: sums of points onto points. Columns that go together where there are several: they share a
 * pair's distance and root. Macros, as kernels are compiled for them. */
#define FMM_TILE_TARGETS_A_LANE(values, points) ((values) == 1 ? ((points) ? FMM_TILE_MOST : 5) : (values) <= 4 ? ((points) ? 5 : 4) : 2)
#define FMM_TILE_COLUMNS(values_a_column) (4 * (values_a_column) <= 8 ? 4 : 2 * (values_a_column) <= 8 ? 2 : 1)
/* U in both directions of a pair (kernels/pair/pair_both_cuda.cu): sources that a tile stages at once, and of how many leaves or parts of them, a lane each; of how many such chunks of
 * all tiles one tile has at most one, before others take the rest of its sources (runtime/gpu/gpu_both.cu). */
enum { FMM_BOTH_CHUNK = 992, FMM_BOTH_MATES = 32, FMM_BOTH_PIECES = 8192 };
/* Sums between points and surfaces as lattices (kernels/pair/pair_lattice_cuda.cu): the orders that they serve, targets a lane, and boxes of W's lists that a lane takes before
 * another takes over; from how many leaves on P2M goes by moments, and L2P by harmonics, with the leaves' products in one launch (kernels/up/up_moments_cuda.cu, kernels/down/down_leaves_cuda.cu). */
enum { FMM_LATTICE_LEAST_ORDER = 3, FMM_LATTICE_MOST_ORDER = 8, FMM_LATTICE_TARGETS = 2, FMM_LATTICE_BOXES = 2, FMM_MOMENTS_MANY = 4096, FMM_LEAVES_MANY = 8192 };
enum { FMM_LATTICE_MANY_ROWS = 4096 /* surfaces from which on a warp sums onto one of them alone */ };
/* Of X's rows so many warps share one that has more than this part of all sources. */
enum { FMM_X_WARPS = 4, FMM_X_SHARES = 2 * FMM_LATTICE_MANY_ROWS };
/* Otherwise W's tiles have at most one of so many shares of all its pairs of target and box, but at least so many pairs. */
enum { FMM_W_SHARES = 4096, FMM_W_LEAST_SHARE = 256 };
/* Most targets a tile may have where there are so many in all. */
int fmm_pair_tile_cap(int64_t targets);
/* The cheapest tiles for `count` targets, all of one shape: 2^lanes_log2 lanes of per_lane targets, at most `cap` targets each and `most` a lane. */
void fmm_pair_shape_tiles(int64_t count, int cap, int most, int64_t *tiles, int *lanes_log2, int *per_lane);
/* What a source costs these tiles, in tenths of a pair: lanes without a target take as long, and each lane's loop over a source costs beside its pairs `beside` tenths more: */
enum { FMM_BESIDE_PAIRS = 4, FMM_BESIDE_BOTH = 8 /* in both directions, with what lanes exchange */ };
int64_t fmm_pair_seats(int64_t tiles, int lanes_log2, int per_lane, int beside);
/* One leaf onto itself in both directions (runtime/gpu/gpu_direct.cu): of so many tiles each takes those that follow it in a circle, half of the others. How many; 0: one way, where tiles are too few for a
 * gain or what they give to one another takes too much memory. And how many of them a chunk of its sources has at most, beside two tiles that it sums one way. */
enum { FMM_DIRECT_LEAST_TILES = 128, FMM_DIRECT_MOST_TILES = 1023, FMM_DIRECT_LARGEST_TILE = 64 };
int64_t fmm_pair_direct_mates(int64_t points, int64_t tiles);
int64_t fmm_pair_direct_mates_a_chunk(int64_t points, int64_t tiles);
#endif
