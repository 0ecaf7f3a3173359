/* The tables of the pair sums on the device: records that the host makes (gpu_tables.cu, gpu_both.cu, gpu_direct.cu) and the kernels read (kernels/pair/pair_*_cuda.cu). Names d_... are
 * device pointers. */
#ifndef FMM_GPU_SUMS_CUDA_H
#define FMM_GPU_SUMS_CUDA_H
#include <stdint.h>

/* A tile: up to 32 * per-lane targets of one row and the row's source ranges. 128 threads: groups of 2^lanes_log2 lanes hold `per_lane` targets a
 * lane; the groups share the sources among them and are summed at the end, in a fixed order. */
typedef struct fmm_cuda_tile {
  int64_t range_begin, target_begin; /* target_begin: first point, or first surface point */
  int64_t partial;                   /* where its sums go in d_partial, [value and column][target], as one of several parts; -1: they are whole */
  int32_t range_count, target_count;
  int32_t box;                       /* target box */
  int32_t slot;                      /* surface targets: index of the output expansion */
  int32_t lanes_log2, per_lane;
  int32_t precise;                   /* too tight for float */
} fmm_cuda_tile;

/* Targets whose sums come in parts, one behind the other in d_partial. */
typedef struct fmm_cuda_joint { int64_t target_begin, partial; int32_t target_count, parts; } fmm_cuda_joint;

typedef struct fmm_cuda_range { int64_t begin; int32_t count, guard; } fmm_cuda_range; /* points; guard: zero distances may occur */

/* What a lane of the sums from surfaces onto points does: some targets of a tile, one after the other. */
typedef struct fmm_cuda_unit {
  uint32_t target, partial; /* the first; where its sums go in d_partial, all ones: they are whole */
  int32_t first;            /* the tile's box (L2P), or where its first one stands in d_box */
  uint32_t boxes : 2, targets : 2, stride : 28; /* stride: of a point's values in d_partial, the tile's targets */
} fmm_cuda_unit;
/* Points of a surface that share two coordinates: where the two squares stand among a source's, the axis along which they lie and the first's place there, and the points, -1: none. */
typedef struct fmm_cuda_run { uint8_t a, b, axis, begin; int16_t point[6]; } fmm_cuda_run;

/* U where the sums of two leaves onto one another are made together (kernels/pair/pair_both_cuda.cu): a tile's sources are chunks, a chunk's some leaves or parts of them, first
 * those that are summed onto the tile alone: the leaf itself. */
typedef struct fmm_cuda_mate {
  int64_t begin, partial; /* first source; where the tile's sums onto them go in d_partial, in points, -1: nowhere */
  int32_t row;            /* the leaf's */
  uint16_t count, place;  /* place: of the first in the chunk */
} fmm_cuda_mate;
typedef struct fmm_cuda_chunk { /* with what is the same for all of the tile's */
  int64_t mate_begin, target_begin;
  int64_t own;                   /* where sums onto the tile go in d_partial, as one of several tiles for the same targets; -1: to the results, as of the first of them, which has all that get no sums */
  int32_t row, next;             /* next: the tile's next chunk, -1: none */
  int32_t target_count, mates, filled, alone; /* mates: one or more; alone: sources that come first and get no sums */
  uint8_t lanes_log2, per_lane, precise; /* precise: what of the tile is too tight for float, the same in all of its chunks */
  int32_t box;                   /* the leaf */
} fmm_cuda_chunk;

enum { FMM_BOTH_ALONE_PRECISE = 1 /* those alone: a kernel of their own sums them in double */, FMM_BOTH_ALL_PRECISE /* it is left to the kernel in double */ };

/* The pair sums of one phase: tiles by row, and their ranges (of points, or boxes whose surfaces are the sources). */
typedef struct fmm_cuda_sums {
  int64_t n_rows, n_tiles, n_ranges;
  int64_t *row_tile, *row_joint;     /* host: tiles of row r are row_tile[r] .. row_tile[r + 1]), of U in both directions so many; joints likewise */
  fmm_cuda_tile *tile, *d_tile;      /* host copies are freed after the upload */
  fmm_cuda_range *range, *d_range;
  int32_t *box, *d_box;
  int32_t *order, *d_order;          /* in which all tiles together are begun; NULL: as they are */
  int64_t n_joints, n_partial;
  int32_t most_joined;               /* targets of the largest joint of U in both directions */
  fmm_cuda_joint *joint, *d_joint;
  double *d_partial;                 /* of U in both directions in single: floats; all values of a point side by side */
  int lattice;                       /* by the kernels for points and surfaces (kernels/pair/pair_lattice_cuda.cu): a tile a row, or a part of one */
  int shared_rows;                   /* those onto surfaces: tiles that four warps take (lanes_log2 is 7, else 5), the first in the order */
  int64_t n_units;                   /* those from surfaces: FMM_LATTICE_TARGETS targets of one tile each, a lane's; tile by tile */
  int32_t *unit_end, *d_unit_end;    /* past each tile's last unit; the host's is kept */
  fmm_cuda_unit *d_unit;
  int both;                          /* U in both directions at once: chunks instead of tiles and ranges, first those that tiles begin with, then others */
  int direct, near;                  /* that of a leaf that is the whole tree; pairs of its points may be so near that their squared distance vanishes */
  int64_t n_chunks, n_mates;
  fmm_cuda_chunk *chunk, *d_chunk;
  fmm_cuda_mate *mate, *d_mate;
  int single;                        /* in float, but the precise tiles */
  int64_t n_precise, n_alone_precise;
  int32_t *d_precise;                /* (U) which they are, and behind them those whose own leaf alone is; NULL: looked for among all */
} fmm_cuda_sums;

typedef enum fmm_cuda_sum { FMM_SUM_P2M, FMM_SUM_U, FMM_SUM_W, FMM_SUM_X, FMM_SUM_L2P, FMM_N_SUMS } fmm_cuda_sum;
#endif
