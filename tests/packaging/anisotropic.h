/* Potential in a medium that conducts differently along z: K = 1/sqrt(dx^2 + dy^2 + (dz/a)^2), the fundamental solution of
 * u_xx + u_yy + a^2 u_zz up to a factor. One component, homogeneous of degree -1, mirror symmetric but not isotropic.
 * Used by the test that adds a pair interaction; kept out of the library so that adding one stays tested.
 * Citation: Carslaw & Jaeger, Conduction of Heat in Solids, 2nd ed., Oxford (1959), section 1.17. */
#ifdef FMM_PAIR_INFO_PASS
FMM_PAIR_INFO(anisotropic) = {
    .name = "anisotropic", .formula = "1/sqrt(x^2 + y^2 + (z/a)^2)", .citation = "Carslaw & Jaeger (1959), section 1.17",
    .components = 1, .equivalent_components = 1, .outputs = 1, .has_degree = 1, .degree = -1, .symmetric = 1,
    .parity = FMM_PARITY_SCALAR, .default_scale = 1,
    .flops = 12, .gradient_flops = 23, .instructions = 8, .gradient_instructions = 15,
    .n_params = 1, .params = {{"a", 1.25, 0.5, 2, "stretch along z", 0}}};
#else
FMM_PAIR_FUNCTION void FMM_PAIR_NAME(anisotropic)(FMM_REAL dx, FMM_REAL dy, FMM_REAL dz, const FMM_REAL *s, const FMM_REAL *normal,
                                                  const FMM_SCALAR *params, int columns, int gradient, FMM_REAL *f) {
  FMM_SCALAR b = 1 / (params[0] * params[0]);
  FMM_REAL r = FMM_RSQRT(dx * dx + dy * dy + dz * dz * b);
  FMM_REAL r3 = gradient ? r * r * r : r;
  for (int c = 0; c < columns; c++) {
    f[c] += s[c] * r;
    if (gradient) {
      FMM_REAL g = s[c] * r3;
      f[columns + c] -= g * dx;
      f[2 * columns + c] -= g * dy;
      f[3 * columns + c] -= g * dz * b;
    }
  }
}
#endif
