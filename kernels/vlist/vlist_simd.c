/* The V phase's vector code, double and float, for the instruction set this file is compiled for. See vlist_kernels.h, vlist_body.h. */
#include <string.h>

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
/* Loads once what is used twice: else GCC folds two loads of each operand into the multiply-adds, and loads are what limits them. */
#if defined(__x86_64__)
#define KEEP_IN_REGISTERS(a, b, c, d) __asm__("" : "+v"(a), "+v"(b), "+v"(c), "+v"(d))
#else
#define KEEP_IN_REGISTERS(a, b, c, d) (void)0
#endif
#define INLINE static inline __attribute__((always_inline))

#define REAL double
#define REAL_BYTES 8
#define NAME(name) JOIN(name, _double)
#include "kernels/vlist/vlist_body.h"
#undef REAL
#undef REAL_BYTES
#undef NAME

#define REAL float
#define REAL_BYTES 4
#define NAME(name) JOIN(name, _float)
#include "kernels/vlist/vlist_body.h"

extern const fmm_vlist_kernels JOIN(fmm_vlist_double_, FMM_SIMD_SUFFIX), JOIN(fmm_vlist_float_, FMM_SIMD_SUFFIX);
const fmm_vlist_kernels JOIN(fmm_vlist_double_, FMM_SIMD_SUFFIX) = {8, PADDED_double, load_double, save_double, forward_double, inverse_double,
                                                                    expand_double, matrices_double, product_double};
const fmm_vlist_kernels JOIN(fmm_vlist_float_, FMM_SIMD_SUFFIX) = {4, PADDED_float, load_float, save_float, forward_float, inverse_float,
                                                                   expand_float, matrices_float, product_float};
