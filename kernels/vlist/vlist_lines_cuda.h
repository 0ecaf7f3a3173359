/* What a warp of V's products (vlist_cuda.cu) reads for one direction: where its 32 rows' neighbours are, and besides, in bits that places leave free, which of its four groups of
 * eight rows have any and where the direction's operators are. Made on the host (runtime/gpu/gpu_vlist.cu); a warp's lines end with one of zeros. */
#ifndef FMM_VLIST_LINES_CUDA_H
#define FMM_VLIST_LINES_CUDA_H
#include <stdint.h>

extern "C" {
#include "kernels/vlist/vlist_windows.h"
}

enum {
  FMM_V_DIRECTIONS = 26, /* numbered as those of fmm_rows without the 13th, the box itself */
  FMM_V_LINES = FMM_V_DIRECTIONS + 1, /* of a warp, with the one of zeros */
  FMM_V_MOST_SLOTS = 1 << 25, /* a slot's number is less: places are 32 bits, and a slot 128 bytes in double */
  FMM_V_FREE = 6 /* low bits of a place, 0 as slots have 64 bytes in single precision and 128 in double; there bit 6 tells which half of the children comes first */
};

/* The table of operators of 7^3 offsets between children: strides such that the eight lanes of a quarter warp read different banks. */
enum { FMM_V_TABLE_Y = 11, FMM_V_TABLE_X = 81, FMM_V_TABLE = 7 * FMM_V_TABLE_X };
static __host__ __device__ constexpr int fmm_vlist_table_at(int x, int y, int z) { return FMM_V_TABLE_X * x + FMM_V_TABLE_Y * y + z; }

/* Row i's place, bytes behind the first slot, is place[4 (i % 8) + i / 8]: lane 4 g + t takes the four of rows g, g + 8, g + 16, g + 24 at once. */
typedef struct alignas(16) fmm_cuda_v_line { uint32_t place[32]; } fmm_cuda_v_line;

static_assert((int)FMM_V_A_WARP == 32 && (int)FMM_V_TOGETHER == 8 && (uint64_t)FMM_V_MOST_SLOTS * 128 <= (uint64_t)1 << 32 && 2 * fmm_vlist_table_at(2, 2, 2) < 1 << 2 * FMM_V_FREE,
              "a line is one warp's, and what it holds fits");

static __host__ __device__ inline int fmm_cuda_v_place(int row) { return 4 * (row % 8) + row / 8; }

/* groups: a bit each. The operators of direction (x, y, z), -1 to 1 each, begin at that of offset 2 (x + 1, y + 1, z + 1). */
static inline fmm_cuda_v_line fmm_cuda_v_line_of(const fmm_cuda_v_line *places, unsigned groups, int direction) {
  const int d = direction < 13 ? direction : direction + 1;
  const uint32_t base = 2 * (uint32_t)fmm_vlist_table_at(d % 3, d / 3 % 3, d / 9), low = (1u << FMM_V_FREE) - 1;
  fmm_cuda_v_line line = *places;
  for (int g = 0; g < 8; g++) line.place[4 * g] |= groups, line.place[4 * g + 1] |= base & low, line.place[4 * g + 2] |= base >> FMM_V_FREE;
  return line;
}

static __device__ __forceinline__ uint32_t fmm_vlist_place(uint32_t place) { return place & ~((1u << FMM_V_FREE) - 1); }
static __device__ __forceinline__ int fmm_vlist_table_base(const uint4 &line) {
  const uint32_t low = (1u << FMM_V_FREE) - 1;
  return (int)((line.y & low) | (line.z & low) << FMM_V_FREE);
}
#endif
