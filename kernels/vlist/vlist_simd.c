/* The V phase's vector code, double and float, for the instruction set this file is compiled for. See vlist_kernels.h, vlist_body.h (transforms), vlist_product_body.h. */
#include <string.h>
#if defined(FMM_SIMD_AVX512_BUILD) || defined(FMM_SIMD_AVX2_BUILD)
#include <immintrin.h>
#endif

#include "kernels/vlist/vlist_kernels.h"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#if defined(FMM_SIMD_AVX512_BUILD)
#define VECTOR_BYTES 64
#define APART 1
#elif defined(FMM_SIMD_AVX2_BUILD)
#define VECTOR_BYTES 32
#define APART 0
#else
#define VECTOR_BYTES 16
#define APART 0
#endif
/* sum += a * b and sum -= a * b with all three in registers, and a value once loaded kept there: else GCC loads what is used twice again, for the
 * multiply-adds' sake or to spare registers, though loads are what limits them, and puts sums into other operands, with moves. */
#if defined(__FMA__)
#define ADD_PRODUCT(sum, a, b) __asm__("vfmadd231" REAL_SUFFIX " %1, %2, %0" : "+v"(sum) : "v"(a), "v"(b))
#define SUBTRACT_PRODUCT(sum, a, b) __asm__("vfnmadd231" REAL_SUFFIX " %1, %2, %0" : "+v"(sum) : "v"(a), "v"(b))
#define KEEP_IN_REGISTER(x) __asm__("" : "+v"(x))
#else
#define ADD_PRODUCT(sum, a, b) ((sum) += (a) * (b))
#define SUBTRACT_PRODUCT(sum, a, b) ((sum) -= (a) * (b))
#define KEEP_IN_REGISTER(x) (void)0
#endif
#define INLINE static inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))

#define REAL double
#define REAL_BYTES 8
#define REAL_SUFFIX "pd"
#define NAME(name) JOIN(name, _double)
#include "kernels/vlist/vlist_body.h"
#include "kernels/vlist/vlist_product_body.h"
#undef REAL
#undef REAL_BYTES
#undef REAL_SUFFIX
#undef NAME

#define REAL float
#define REAL_BYTES 4
#define REAL_SUFFIX "ps"
#define NAME(name) JOIN(name, _float)
#include "kernels/vlist/vlist_body.h"
#include "kernels/vlist/vlist_product_body.h"

extern const fmm_vlist_kernels JOIN(fmm_vlist_double_, FMM_SIMD_SUFFIX), JOIN(fmm_vlist_float_, FMM_SIMD_SUFFIX);
const fmm_vlist_kernels JOIN(fmm_vlist_double_, FMM_SIMD_SUFFIX) = {8, PADDED_double, load_double, save_double, forward_double, inverse_double,
                                                                    expand_double, matrices_double, product_double};
const fmm_vlist_kernels JOIN(fmm_vlist_float_, FMM_SIMD_SUFFIX) = {4, PADDED_float, load_float, save_float, forward_float, inverse_float,
                                                                   expand_float, matrices_float, product_float};
