/* Names the instruction set a vector library was compiled for, so that a test can see that all three are in the build. */
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
extern const char *const JOIN(fmm_simd_built_, FMM_SIMD_SUFFIX);
#define TEXT_(a) #a
#define TEXT(a) TEXT_(a)
const char *const JOIN(fmm_simd_built_, FMM_SIMD_SUFFIX) = TEXT(FMM_SIMD_SUFFIX);
