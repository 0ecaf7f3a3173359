/* The loop that the plain C references of ulist, wlist and xlist share: sources onto targets by pair->reference, in double. */
#ifndef FMM_PAIR_REFERENCE_H
#define FMM_PAIR_REFERENCE_H
#include "kernels/pair/pair.h"

typedef struct fmm_reference_points { int64_t n; const double *x, *y, *z; } fmm_reference_points;
/* Plane k (component or value), column c, point i: data[k*plane_stride + c*column_stride + i]. */
typedef struct fmm_reference_planes { double *data; int64_t plane_stride, column_stride; } fmm_reference_planes;

static inline void fmm_reference_add(const fmm_pair *pair, const double *params, int n_columns, int gradient, const fmm_reference_points *source,
                                     const double *const normal[3], const fmm_reference_planes *density, const fmm_reference_points *target,
                                     const fmm_reference_planes *value) {
  int n_values = pair->info->outputs * (gradient ? 4 : 1);
  for (int c = 0; c < n_columns; c++)
    for (int64_t i = 0; i < target->n; i++) {
      double f[12] = {0}, at[3] = {target->x[i], target->y[i], target->z[i]};
      const double *planes[4] = {NULL};
      for (int k = 0; k < pair->info->components; k++) planes[k] = density->data + k * density->plane_stride + c * density->column_stride;
      pair->reference(at, source->n, source->x, source->y, source->z, normal, planes, params, 1, gradient, f);
      for (int v = 0; v < n_values; v++) value->data[v * value->plane_stride + c * value->column_stride + i] += f[v];
    }
}
#endif
