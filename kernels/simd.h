/* Instruction sets of one build: each vector source is compiled once a set (plain, AVX2+FMA, AVX-512) and picked at run time. */
#ifndef FMM_SIMD_H
#define FMM_SIMD_H
typedef enum fmm_simd { FMM_SIMD_PLAIN, FMM_SIMD_AVX2, FMM_SIMD_AVX512, FMM_N_SIMD } fmm_simd;
/* Best set of this CPU, not above the cap. Environment FMM_SIMD=plain|avx2|avx512 lowers it (read once). */
fmm_simd fmm_simd_level(void);
void fmm_simd_cap(fmm_simd cap); /* for tests */
/* Whether a core adds vectors of 512 bits on units of their own, beside those that multiply, as AMD's do (Zen 4 and 5: two of 256 bits each, or two of 512); for tests: what it says. */
enum { FMM_SIMD_AS_FOUND = -1 };
int fmm_simd_adds_beside(void);
void fmm_simd_let_add_beside(int yes_or_as_found);
const char *fmm_simd_name(fmm_simd level);
/* Of single functions in sources that are compiled once, for processors of that level. */
#ifdef __x86_64__
#define FMM_TARGET_AVX2 __attribute__((target("avx2")))
#define FMM_TARGET_AVX512 __attribute__((target("avx512f,avx512vl,avx512dq,avx512bw,prefer-vector-width=512")))
#endif
#endif
