/* Which blocks are multiplied with which, for first and second, M2M and L2L in the regrouped basis (see operators.h). */
#include "kernels/translate.h"

extern const fmm_translate_kernels fmm_translate_plain, fmm_translate_avx2, fmm_translate_avx512;

const fmm_translate_kernels *fmm_translate_find(void) {
  static const fmm_translate_kernels *const table[FMM_N_SIMD] = {&fmm_translate_plain, &fmm_translate_avx2, &fmm_translate_avx512};
  return table[fmm_simd_level()];
}

static int64_t at(const fmm_operators *o, int chi) { return (int64_t)o->parity.begin[chi] * FMM_LANES; }
static int size(const fmm_operators *o, int chi) { return o->parity.begin[chi + 1] - o->parity.begin[chi]; }

void fmm_translate_blocks(const fmm_translate_kernels *k, const fmm_panels blocks[8], const int column_begin[FMM_MIRRORS + 1], const int row_begin[FMM_MIRRORS + 1], const double *in, double *out) {
  for (int chi = 0; chi < FMM_MIRRORS; chi++) {
    const double *segment = in + (int64_t)column_begin[chi] * FMM_LANES;
    int length = column_begin[chi + 1] - column_begin[chi];
    k->product(&blocks[chi], 0, 1, &segment, &length, out + (int64_t)row_begin[chi] * FMM_LANES);
  }
}

void fmm_translate_square(const fmm_translate_kernels *k, const fmm_operators *o, const fmm_panels blocks[8], const double *in, double *out) {
  for (int chi = 0; chi < o->parity.n_blocks; chi++) {
    const double *segment = in + at(o, chi);
    int length = size(o, chi);
    k->product(&blocks[chi], 0, 1, &segment, &length, out + at(o, chi));
  }
}

/* Block chi of the coefficients: sum over c of sign(chi, c) sum over psi of M[chi][psi] sign(psi, c) child_c[psi], the sum over c first. */
void fmm_translate_m2m(const fmm_translate_kernels *k, const fmm_operators *o, const fmm_level_operators *set, double *z, double *out) {
  int64_t n = (int64_t)o->n * FMM_LANES;
  const double *segment[FMM_MIRRORS];
  int length[FMM_MIRRORS];
  if (o->parity.n_blocks == 1) { /* columns of eight matrices, one after another, into the place of the children */
    for (int c = 0; c < FMM_MIRRORS; c++) {
      const double *child = z + c * n;
      k->product(&set->m2m[c], 0, 1, &child, &o->n, out);
      for (int64_t i = 0; i < n; i++) z[i] = (c ? z[i] : 0) + out[i];
    }
    for (int64_t i = 0; i < n; i++) out[i] = z[i];
    return;
  }
  k->hadamard(z, n);
  for (int chi = 0; chi < FMM_MIRRORS; chi++) {
    for (int psi = 0; psi < FMM_MIRRORS; psi++) segment[psi] = z + (chi ^ psi) * n + at(o, psi), length[psi] = size(o, psi);
    k->product(&set->m2m[chi], 0, FMM_MIRRORS, segment, length, out + at(o, chi));
  }
}

void fmm_translate_l2l(const fmm_translate_kernels *k, const fmm_operators *o, const fmm_level_operators *set, const double *in, double *z) {
  int64_t n = (int64_t)o->n * FMM_LANES;
  if (o->parity.n_blocks == 1) {
    for (int c = 0; c < FMM_MIRRORS; c++) k->product(&set->l2l[c], 0, 1, &in, &o->n, z + c * n);
    return;
  }
  for (int chi = 0; chi < FMM_MIRRORS; chi++)
    for (int psi = 0; psi < FMM_MIRRORS; psi++) {
      const double *segment = in + at(o, psi);
      int length = size(o, psi);
      k->product(&set->l2l[chi], o->parity.begin[psi], 1, &segment, &length, z + (chi ^ psi) * n + at(o, chi));
    }
  k->hadamard(z, n);
}
