/* Multiply-add chains with GCC vector extensions (fma_simd.h). -ffp-contract=fast makes each a * f + c one instruction where there is one. */
#include "calib/fma_simd.h"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#if defined(FMM_SIMD_AVX512_BUILD)
#define VECTOR_BYTES 64
#elif defined(FMM_SIMD_AVX2_BUILD)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif

#define EACH_CHAIN(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)

/* Values stay near add / (1 - factor): neither overflow nor denormals. */
#define DEFINE_CHAIN(REAL)                                                                   \
  typedef REAL REAL##_vector __attribute__((vector_size(VECTOR_BYTES)));                    \
  static REAL chain_##REAL(int64_t iterations, REAL factor, REAL add) {                      \
    enum { LANES = VECTOR_BYTES / sizeof(REAL) };                                            \
    REAL##_vector zero = {0}, f = zero + factor, c = zero + add;                             \
    EACH_CHAIN(DECLARE_##REAL)                                                               \
    for (int64_t i = 0; i < iterations; i++) { EACH_CHAIN(STEP) }                            \
    REAL##_vector sum = zero;                                                                \
    EACH_CHAIN(ADD)                                                                          \
    REAL total = 0;                                                                          \
    for (int l = 0; l < LANES; l++) total += sum[l];                                         \
    return total;                                                                            \
  }
#define DECLARE_double(k) double_vector a##k = zero + (double)(k);
#define DECLARE_float(k) float_vector a##k = zero + (float)(k);
#define STEP(k) a##k = a##k * f + c;
#define ADD(k) sum += a##k;

DEFINE_CHAIN(double)
DEFINE_CHAIN(float)

const fmm_fma_kernel JOIN(fmm_fma_, FMM_SIMD_SUFFIX) = {VECTOR_BYTES / sizeof(double), VECTOR_BYTES / sizeof(float), chain_double, chain_float};
