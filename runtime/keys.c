/* Morton keys: three interleaved fields of 21 bits, x lowest (points.h). Of many rows they are made in blocks: coordinates into planes, then cells and their bits, many at once where the
 * processor can. Everything is exact or rounded once an operation, so that every processor makes the same keys. */
#include <float.h>

#include "kernels/simd.h"
#include "key_bits.h"
#include "points.h"

enum { a_block = 256 };

uint64_t fmm_key_of(uint32_t i, uint32_t j, uint32_t k) { return fmm_key_spread(i) | fmm_key_spread(j) << 1 | fmm_key_spread(k) << 2; }

static inline uint64_t compact(uint64_t v) {
  v &= 0x1249249249249249;
  v = (v | v >> 2) & 0x10c30c30c30c30c3;
  v = (v | v >> 4) & 0x100f00f00f00f00f;
  v = (v | v >> 8) & 0x1f0000ff0000ff;
  v = (v | v >> 16) & 0x1f00000000ffff;
  return (v | v >> 32) & 0x1fffff;
}

uint64_t fmm_key_compact(uint64_t key) { return compact(key); }

typedef struct planes { double at[3][a_block]; } planes;

static inline __attribute__((always_inline)) void keys_of_block(const fmm_frame *frame, int n, const planes *p, uint64_t *key) {
  const fmm_frame f = *frame;
  for (int i = 0; i < n; i++) {
    uint64_t cell[3];
    for (int a = 0; a < 3; a++) cell[a] = fmm_key_cell(fmm_frame_scaled(&f, p->at[a][i], a), f.lo[a], f.cells_per_unit);
    key[i] = fmm_key_spread(cell[0]) | fmm_key_spread(cell[1]) << 1 | fmm_key_spread(cell[2]) << 2;
  }
}

#ifdef __x86_64__
FMM_TARGET_AVX2 static void keys_avx2(const fmm_frame *f, int n, const planes *p, uint64_t *key) { keys_of_block(f, n, p, key); }
FMM_TARGET_AVX512 static void keys_avx512(const fmm_frame *f, int n, const planes *p, uint64_t *key) { keys_of_block(f, n, p, key); }
#else
#define keys_avx2 keys_of_block
#define keys_avx512 keys_of_block
#endif

static void keys_of(const fmm_frame *f, int n, const planes *p, uint64_t *key) {
  if (f->coincident)
    for (int i = 0; i < n; i++) key[i] = 0;
  else if (fmm_simd_level() >= FMM_SIMD_AVX512) keys_avx512(f, n, p, key);
  else if (fmm_simd_level() >= FMM_SIMD_AVX2) keys_avx2(f, n, p, key);
  else keys_of_block(f, n, p, key);
}

static inline __attribute__((always_inline)) void block_of_keys(const fmm_frame *f, int n, const uint64_t *key, planes *p) {
  const double cell = f->side / (1 << FMM_KEY_LEVEL), unit = 1 / f->scale; /* all powers of two but the side */
  for (int a = 0; a < 3; a++) {
    const double lo = f->lo[a], shift = f->shift[a];
    for (int i = 0; i < n; i++) {
      const double at = (lo + ((double)(int32_t)compact(key[i] >> a) + 0.5) * cell) * unit + shift, below = at < DBL_MAX ? at : DBL_MAX; /* the outermost may lie past all numbers */
      p->at[a][i] = below > -DBL_MAX ? below : -DBL_MAX;
    }
  }
}

#ifdef __x86_64__
FMM_TARGET_AVX2 static void block_avx2(const fmm_frame *f, int n, const uint64_t *key, planes *p) { block_of_keys(f, n, key, p); }
FMM_TARGET_AVX512 static void block_avx512(const fmm_frame *f, int n, const uint64_t *key, planes *p) { block_of_keys(f, n, key, p); }
#else
#define block_avx2 block_of_keys
#define block_avx512 block_of_keys
#endif

void fmm_rows_of_keys(double *rows, const fmm_frame *frame, int64_t n, const uint64_t *keys) {
  planes p;
  for (int64_t b = 0; b < n; b += a_block) {
    const int some = n - b < a_block ? (int)(n - b) : a_block;
    if (fmm_simd_level() >= FMM_SIMD_AVX512) block_avx512(frame, some, keys + b, &p);
    else if (fmm_simd_level() >= FMM_SIMD_AVX2) block_avx2(frame, some, keys + b, &p);
    else block_of_keys(frame, some, keys + b, &p);
    for (int i = 0; i < some; i++)
      for (int a = 0; a < 3; a++) rows[3 * (b + i) + a] = p.at[a][i];
  }
}

void fmm_keys_of_rows(uint64_t *keys, const fmm_frame *frame, int64_t n, const double *rows, const uint64_t *row) {
  planes p;
  for (int64_t b = 0; b < n; b += a_block) {
    const int some = n - b < a_block ? (int)(n - b) : a_block;
    for (int i = 0; i < some; i++) {
      const double *at = rows + 3 * (row ? (int64_t)row[b + i] : b + i);
      for (int a = 0; a < 3; a++) p.at[a][i] = at[a];
    }
    keys_of(frame, some, &p, keys + b);
  }
}
