/* Yukawa (screened Coulomb, modified Helmholtz): K = exp(-lambda r) / r, default scale 1/(4 pi). One component, not homogeneous.
 * lambda is an inverse length in the caller's units. Citation: Greengard & Huang, J. Comput. Phys. 180 (2002) 642. */
#ifdef FMM_PAIR_INFO_PASS
FMM_PAIR_INFO(yukawa) = {
    .name = "yukawa", .formula = "exp(-lambda r)/r", .citation = "Greengard & Huang, J. Comput. Phys. 180 (2002) 642",
    .components = 1, .equivalent_components = 1, .outputs = 1, .has_degree = 0, .degree = -1, .symmetric = 1, .radial = 1, .shell_field = 1,
    .parity = FMM_PARITY_SCALAR, .default_scale = 0.07957747154594767 /* 1/(4 pi) */,
    .flops = 14, .gradient_flops = 25, .instructions = 25, .gradient_instructions = 33,
    .n_params = 1, .params = {{"lambda", 1, 0, 1e100, "inverse screening length", -1}}};
#else
FMM_PAIR_FUNCTION void FMM_PAIR_NAME(yukawa)(FMM_REAL dx, FMM_REAL dy, FMM_REAL dz, const FMM_REAL *s, const FMM_REAL *normal,
                                             const FMM_SCALAR *params, int columns, int gradient, FMM_REAL *f) {
  FMM_REAL r2 = FMM_SQUARE(dx, dy, dz);
  FMM_REAL ir = FMM_RSQRT(r2);
  FMM_REAL kr = params[0] * (r2 * ir);
  FMM_REAL k = ir * FMM_EXP(-kr);
  FMM_REAL g3 = gradient ? k * (kr + FMM_CONSTANT(1)) * ir * ir : k;
  for (int c = 0; c < columns; c++) {
    f[c] += s[c] * k;
    if (gradient) {
      FMM_REAL g = s[c] * g3;
      f[columns + c] -= g * dx;
      f[2 * columns + c] -= g * dy;
      f[3 * columns + c] -= g * dz;
    }
  }
}
#endif
