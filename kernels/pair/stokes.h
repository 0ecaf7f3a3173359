/* Stokes single layer (Stokeslet): K_ij = (delta_ij / r + r_i r_j / r^3) / mu, default scale 1/(8 pi). Three components, degree -1.
 * Citation: Pozrikidis, Boundary Integral and Singularity Methods for Linearized Viscous Flow, Cambridge (1992), eq. 2.2.8. */
#ifdef FMM_PAIR_INFO_PASS
FMM_PAIR_INFO(stokes) = {
    .name = "stokes", .formula = "(delta_ij/r + r_i r_j/r^3)/mu", .citation = "Pozrikidis (1992), eq. 2.2.8",
    .components = 3, .equivalent_components = 3, .outputs = 3, .has_degree = 1, .degree = -1, .symmetric = 1, .radial = 1, .shell_field = 1,
    .parity = FMM_PARITY_VECTOR, .default_scale = 0.039788735772973836 /* 1/(8 pi) */,
    .flops = 27, .gradient_flops = 72, .instructions = 18, .gradient_instructions = 50,
    .n_params = 1, .params = {{"viscosity", 1, 1e-100, 1e100, "dynamic viscosity mu", 0, 1}}};
#else
FMM_PAIR_FUNCTION void FMM_PAIR_NAME(stokes)(FMM_REAL dx, FMM_REAL dy, FMM_REAL dz, const FMM_REAL *s, const FMM_REAL *normal,
                                             const FMM_SCALAR *params, int columns, int gradient, FMM_REAL *f) {
  const FMM_REAL d[3] = {dx, dy, dz};
  FMM_REAL r = FMM_RSQRT(dx * dx + dy * dy + dz * dz);
  FMM_REAL r2 = r * r, ru = r * (FMM_SCALAR)(1 / params[0]);
  int stride = gradient ? 4 * columns : columns;
  for (int c = 0; c < columns; c++) {
    const FMM_REAL v[3] = {s[c], s[columns + c], s[2 * columns + c]};
    FMM_REAL dot = (dx * v[0] + dy * v[1] + dz * v[2]) * r2; /* (r.v)/r^2 */
    for (int i = 0; i < 3; i++) {
      FMM_REAL *o = f + i * stride + c;
      o[0] += ru * (v[i] + dot * d[i]);
      if (gradient) { /* d/dx_k of v_i/r + d_i (d.v)/r^3 */
        FMM_REAL g = ru * r2;
        for (int k = 0; k < 3; k++) {
          FMM_REAL t = d[i] * v[k] - d[k] * v[i] - dot * (FMM_SCALAR)3 * d[i] * d[k];
          o[(1 + k) * columns] += g * t;
        }
        o[(1 + i) * columns] += g * dot * (dx * dx + dy * dy + dz * dz);
      }
    }
  }
}
#endif
