/* The field of a far shell around its middle: F(z) = sinh(k r)/(k r) at z = (k r)^2, a constant where k = 0, and its slope dF/dz, by their series
 * F = sum over i of z^i / (2 i + 1)!. Of boxes with k h <= FMM_SHELL_MOST alone, whose points have z <= 4, where what is left out is below 1e-16 of either.
 * For host and device; what it is for: kernels/shell_field.h. Reference: modified spherical Bessel function i0, Abramowitz & Stegun 10.2.5. */
#ifndef FMM_SHELL_H
#define FMM_SHELL_H
#ifdef __CUDACC__
#define FMM_SHELL_FUNCTION static __host__ __device__ __forceinline__
#else
#define FMM_SHELL_FUNCTION static inline
#endif
#define FMM_SHELL_MOST 1.0 /* half-widths of a box, in lengths */
#define FMM_SHELL_TERMS 13

FMM_SHELL_FUNCTION double fmm_shell_value(double z) {
  double f = 1;
  for (int i = FMM_SHELL_TERMS - 1; i > 0; i--) f = 1 + f * z * (1.0 / (2 * i * (2 * i + 1)));
  return f;
}

FMM_SHELL_FUNCTION double fmm_shell_slope(double z) {
  double f = 1;
  for (int i = FMM_SHELL_TERMS - 1; i > 1; i--) f = 1 + f * z * (1.0 / ((2 * i - 2) * (2 * i + 1))); /* i / (2 i + 1)! over (i - 1) / (2 i - 1)! */
  return f / 6;
}
#endif
