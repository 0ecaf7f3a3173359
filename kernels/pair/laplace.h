/* Laplace single layer: K = 1/r (times 1/(4 pi) as default scale). One component, homogeneous of degree -1.
 * Electrostatics and gravity. Citation: Greengard & Rokhlin, J. Comput. Phys. 73 (1987) 325. */
#ifdef FMM_PAIR_INFO_PASS
FMM_PAIR_INFO(laplace) = {
    .name = "laplace", .formula = "1/r", .citation = "Greengard & Rokhlin, J. Comput. Phys. 73 (1987) 325",
    .components = 1, .equivalent_components = 1, .outputs = 1, .has_degree = 1, .degree = -1, .symmetric = 1, .radial = 1, .inverse_distance = 1, .harmonic = 1, .shell_field = 1,
    .parity = FMM_PARITY_SCALAR, .default_scale = 0.07957747154594767 /* 1/(4 pi) */,
    .flops = 11, .gradient_flops = 20, .instructions = 7, .gradient_instructions = 13};
#else
FMM_PAIR_FUNCTION void FMM_PAIR_NAME(laplace)(FMM_REAL dx, FMM_REAL dy, FMM_REAL dz, const FMM_REAL *s, const FMM_REAL *normal,
                                              const FMM_SCALAR *params, int columns, int gradient, FMM_REAL *f) {
  FMM_REAL r = FMM_RSQRT(FMM_SQUARE(dx, dy, dz));
  FMM_REAL r3 = gradient ? r * r * r : r;
  for (int c = 0; c < columns; c++) {
    f[c] += s[c] * r;
    if (gradient) {
      FMM_REAL g = s[c] * r3;
      f[columns + c] -= g * dx;
      f[2 * columns + c] -= g * dy;
      f[3 * columns + c] -= g * dz;
    }
  }
}
#endif
