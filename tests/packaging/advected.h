/* Concentration downstream of sources in a medium that flows along e = (2,3,6)/7: K = exp(-u (r - e.d) / 2) / r, d = target - source, the fundamental
 * solution of -Laplace(c) + u e.grad(c) up to a factor. One component; not symmetric (downstream is not upstream), no mirror symmetry, not
 * homogeneous: whatever the operators do for a pair without any of these is in whole evaluations of this one.
 * Used by the test that adds pair interactions. Citation: Carslaw & Jaeger, Conduction of Heat in Solids, 2nd ed., Oxford (1959), section 10.7. */
#ifdef FMM_PAIR_INFO_PASS
FMM_PAIR_INFO(advected) = {
    .name = "advected", .formula = "exp(-u (r - e.d) / 2) / r", .citation = "Carslaw & Jaeger (1959), section 10.7",
    .components = 1, .equivalent_components = 1, .outputs = 1, .has_degree = 0, .degree = -1, .symmetric = 0,
    .parity = FMM_PARITY_NONE, .default_scale = 0.079577471545947668, /* 1/(4 pi) */
    .flops = 28, .gradient_flops = 44, .instructions = 24, .gradient_instructions = 36,
    .n_params = 1, .params = {{"u", 1, 0, 1e100, "speed over diffusivity", -1}}};
#else
FMM_PAIR_FUNCTION void FMM_PAIR_NAME(advected)(FMM_REAL dx, FMM_REAL dy, FMM_REAL dz, const FMM_REAL *s, const FMM_REAL *normal,
                                               const FMM_SCALAR *params, int columns, int gradient, FMM_REAL *f) {
  FMM_SCALAR half = params[0] / 2, ex = half * 2 / 7, ey = half * 3 / 7, ez = half * 6 / 7;
  FMM_REAL r2 = dx * dx + dy * dy + dz * dz;
  FMM_REAL inverse = FMM_RSQRT(r2);
  FMM_REAL k = FMM_EXP(ex * dx + ey * dy + ez * dz - half * r2 * inverse) * inverse;
  FMM_REAL radial = half * inverse + inverse * inverse; /* gradient: k (u e / 2 - radial d) */
  for (int c = 0; c < columns; c++) {
    FMM_REAL value = s[c] * k;
    f[c] += value;
    if (gradient) {
      f[columns + c] += value * (ex - radial * dx);
      f[2 * columns + c] += value * (ey - radial * dy);
      f[3 * columns + c] += value * (ez - radial * dz);
    }
  }
}
#endif
