/* See sort_network.h: for vectors of eight keys (AVX-512) and of four (AVX2). */
#include "sort_network.h"

#include "kernels/simd.h"

#ifdef __x86_64__
#include <immintrin.h>
#include <string.h>

enum { ROWS = 16 }; /* that stay in registers, or nearly */
#define NETWORK_INLINE NETWORK_TARGET static inline __attribute__((always_inline))
typedef int64_t eight_keys __attribute__((vector_size(64)));
typedef int64_t four_keys __attribute__((vector_size(32)));

#define NETWORK_TARGET FMM_TARGET_AVX512
#define V eight_keys
#define FITS(name) name##_by_eight
#define LANES 8
NETWORK_INLINE V load_by_eight(const uint64_t *from, int left) { return (V)_mm512_mask_loadu_epi64(_mm512_set1_epi64(-1), left >= LANES ? 0xff : left > 0 ? (__mmask8)((1 << left) - 1) : 0, from); }
NETWORK_INLINE V as_keys_by_eight(V x) { return x; }
NETWORK_INLINE void sort_two_by_eight(V *a, V *b) {
  const __m512i x = (__m512i)*a, y = (__m512i)*b;
  *a = (V)_mm512_min_epu64(x, y), *b = (V)_mm512_max_epu64(x, y);
}
#include "sort_network_body.h"
#undef NETWORK_TARGET
#undef V
#undef FITS
#undef LANES

#define NETWORK_TARGET FMM_TARGET_AVX2
#define V four_keys
#define FITS(name) name##_by_four
#define LANES 4
/* With the highest bit turned over, as what is compared has a sign. */
NETWORK_INLINE V as_keys_by_four(V x) { return x ^ INT64_MIN; }
NETWORK_INLINE V load_by_four(const uint64_t *from, int left) {
  const V lane = {0, 1, 2, 3}, is_there = lane < left;
  return as_keys_by_four((V)_mm256_maskload_epi64((const long long *)from, (__m256i)is_there) | ~is_there);
}
NETWORK_INLINE void sort_two_by_four(V *a, V *b) {
  const __m256i x = (__m256i)*a, y = (__m256i)*b, greater = _mm256_cmpgt_epi64(x, y);
  *a = (V)_mm256_blendv_epi8(x, y, greater), *b = (V)_mm256_blendv_epi8(y, x, greater);
}
#include "sort_network_body.h"

int fmm_sort_network_most(void) {
  const fmm_simd level = fmm_simd_level();
  return level >= FMM_SIMD_AVX512 ? 8 * ROWS : level >= FMM_SIMD_AVX2 ? 4 * ROWS : 0;
}

void fmm_sort_network(const uint64_t *from, uint64_t *to, int n) {
  if (fmm_simd_level() >= FMM_SIMD_AVX512) sort_few_rows_by_eight(from, to, n);
  else sort_few_rows_by_four(from, to, n);
}
#else
int fmm_sort_network_most(void) { return 0; }
void fmm_sort_network(const uint64_t *from, uint64_t *to, int n) { (void)from, (void)to, (void)n; }
#endif
