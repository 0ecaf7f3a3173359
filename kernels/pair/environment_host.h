/* The plain C, double-precision environment in which pair headers are compiled as references (see pair.h). */
#define FMM_REAL double
#define FMM_SCALAR double
#define FMM_PAIR_FUNCTION static inline __attribute__((always_inline, unused))
#define FMM_PAIR_NAME(name) fmm_host_##name
#define FMM_RSQRT(r2) ((r2) > 0 ? 1 / sqrt(r2) : 0)
#define FMM_EXP(x) exp(x)
#define FMM_SQUARE(dx, dy, dz) ((dx) * (dx) + (dy) * (dy) + (dz) * (dz))
#define FMM_CONSTANT(c) (c)
