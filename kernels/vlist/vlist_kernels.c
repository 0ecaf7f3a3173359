/* Tables of the V phase's vector code by instruction set, and the shape of the transforms. */
#include "kernels/vlist/vlist_kernels.h"

#include <math.h>
#include <string.h>

extern const fmm_vlist_kernels fmm_vlist_double_plain, fmm_vlist_double_avx2, fmm_vlist_double_avx512;
extern const fmm_vlist_kernels fmm_vlist_float_plain, fmm_vlist_float_avx2, fmm_vlist_float_avx512;

const fmm_vlist_kernels *fmm_vlist_kernels_find(int single) {
  static const fmm_vlist_kernels *const table[2][FMM_N_SIMD] = {{&fmm_vlist_double_plain, &fmm_vlist_double_avx2, &fmm_vlist_double_avx512},
                                                                {&fmm_vlist_float_plain, &fmm_vlist_float_avx2, &fmm_vlist_float_avx512}};
  return table[single != 0][fmm_simd_level()];
}

size_t fmm_vlist_scratch_bytes(const fmm_vlist_shape *s, const fmm_vlist_kernels *k) {
  return (size_t)(16 * s->order * (s->order + s->grid)) * k->real_bytes;
}

static void fill_rows(fmm_vlist_shape *s, const fmm_surface *surface) {
  int p = surface->order;
  memset(s->row_count, 0, (size_t)(p * p));
  for (int i = surface->n_points - 1; i >= 0; i--) {
    int row = surface->lattice[3 * i] * p + surface->lattice[3 * i + 1];
    s->row_first[row] = i;
    s->row_count[row]++;
  }
}

static void fill_tables(fmm_vlist_shape *s, int single) {
  for (int k = 0; k < s->order; k++)
    for (int h = 0; h < s->half; h++) {
      double angle = M_PI * (double)(k * (s->order - 1 - 2 * h)) / s->grid; /* 2 pi k u / grid, u = (p-1)/2 - h */
      int i = k * s->half + h;
      if (single) ((float *)s->cosine)[i] = (float)cos(angle), ((float *)s->sine)[i] = (float)sin(angle);
      else ((double *)s->cosine)[i] = cos(angle), ((double *)s->sine)[i] = sin(angle);
    }
}

fmm_status fmm_vlist_shape_create(fmm_vlist_shape *s, const fmm_surface *surface, int single) {
  int p = surface->order;
  *s = (fmm_vlist_shape){.order = p, .grid = 2 * p - 1, .half = (p + 1) / 2, .n_surface = surface->n_points};
  fmm_status status = FMM_OK;
  size_t values = (size_t)(p * s->half), real = single ? sizeof(float) : sizeof(double);
  FMM_CHECK(FMM_ALLOCATE(&s->row_first, p * p, "lattice rows"));
  FMM_CHECK(FMM_ALLOCATE(&s->row_count, p * p, "lattice rows"));
  FMM_CHECK(fmm_allocate_bytes(&s->cosine, values, real, "cosines"));
  FMM_CHECK(fmm_allocate_bytes(&s->sine, values, real, "sines"));
  fill_rows(s, surface);
  fill_tables(s, single);
done:
  if (status != FMM_OK) fmm_vlist_shape_free(s);
  return status;
}

void fmm_vlist_shape_free(fmm_vlist_shape *s) {
  FMM_FREE(&s->row_first);
  FMM_FREE(&s->row_count);
  FMM_FREE(&s->cosine);
  FMM_FREE(&s->sine);
}
