/* Instruction sets of one build: each vector source is compiled once a set (plain, AVX2+FMA, AVX-512) and picked at run time. */
#ifndef FMM_SIMD_H
#define FMM_SIMD_H
typedef enum fmm_simd { FMM_SIMD_PLAIN, FMM_SIMD_AVX2, FMM_SIMD_AVX512, FMM_N_SIMD } fmm_simd;
/* Best set of this CPU, not above the cap. Environment FMM_SIMD=plain|avx2|avx512 lowers it (read once). */
fmm_simd fmm_simd_level(void);
void fmm_simd_cap(fmm_simd cap); /* for tests */
const char *fmm_simd_name(fmm_simd level);
#endif
