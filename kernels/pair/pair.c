/* Plain C reference evaluation of every pair interaction, one copy a pair from its header, and their registry. */
#include "kernels/pair/pair.h"

#include <math.h>
#include <string.h>

#include "kernels/pair/environment_host.h"
#include "kernels/fmm_pair_list.h"

enum { MAX_VALUES = 12, MAX_COMPONENTS = 4 };

#define DEFINE_REFERENCE(name)                                                                                                    \
  static void reference_##name(const double target[3], int64_t n, const double *x, const double *y, const double *z,             \
                               const double *const normal[3], const double *const *density, const double *params, int columns,   \
                               int gradient, double *f) {                                                                         \
    const fmm_pair_info *info = &fmm_info_##name;                                                                             \
    int stride = gradient ? 4 : 1, values = info->outputs * stride;                                                               \
    for (int64_t j = 0; j < n; j++)                                                                                               \
      for (int c = 0; c < columns; c++) { /* one column at a time: the reference stays simple */                                  \
        double s[MAX_COMPONENTS], v[3] = {0}, one[MAX_VALUES * 3] = {0};                                                          \
        for (int k = 0; k < info->components; k++) s[k] = density[k * columns + c][j];                                            \
        if (normal && normal[0])                                                                                                  \
          for (int k = 0; k < 3; k++) v[k] = normal[k][j];                                                                        \
        fmm_host_##name(target[0] - x[j], target[1] - y[j], target[2] - z[j], s, v, params, 1, gradient, one);                   \
        for (int k = 0; k < values; k++) f[k * columns + c] += one[k];                                                            \
      }                                                                                                                           \
  }                                                                                                                               \
  static void matrix_##name(const double target[3], const double source[3], const double *params, double *block) {               \
    const fmm_pair_info *info = &fmm_info_##name;                                                                             \
    int n = info->equivalent_components;                                                                                          \
    for (int in = 0; in < n; in++) {                                                                                              \
      double s[MAX_COMPONENTS] = {0}, v[3] = {0}, one[MAX_VALUES] = {0};                                                          \
      s[in] = 1;                                                                                                                  \
      fmm_host_##name(target[0] - source[0], target[1] - source[1], target[2] - source[2], s, v, params, 1, 0, one);             \
      for (int out = 0; out < n; out++) block[out * n + in] = one[out];                                                           \
    }                                                                                                                             \
  }                                                                                                                               \
  static const fmm_pair fmm_pair_##name = {&fmm_info_##name, reference_##name, matrix_##name};

FMM_PAIR_LIST(DEFINE_REFERENCE)

#define PAIR_ENTRY(name) &fmm_pair_##name,
const fmm_pair *const fmm_pairs[] = {FMM_PAIR_LIST(PAIR_ENTRY) NULL};

fmm_status fmm_pair_find(const char *name, const fmm_pair **pair) {
  const fmm_pair_info *info;
  FMM_TRY(fmm_pair_info_find(name, &info));
  for (int i = 0; fmm_pairs[i]; i++)
    if (fmm_pairs[i]->info == info) return *pair = fmm_pairs[i], FMM_OK;
  return FMM_FAIL(FMM_ERR_INTERNAL, "kernel %s has an info but no evaluation", name);
}
