/* Input row order <-> sorted order of densities and results. Merged points: densities are summed in ascending row order, results copied. */
#include "tree.h"

void fmm_gather_densities(const fmm_points *p, int n_planes, const double *input, double *planes, int threads) {
#pragma omp parallel for num_threads(threads) schedule(static) if (p->n > FMM_PARALLEL_MINIMUM)
  for (int64_t i = 0; i < p->n; i++) {
    int64_t begin = p->first ? p->first[i] : i, end = p->first ? p->first[i + 1] : i + 1;
    for (int k = 0; k < n_planes; k++) {
      double sum = input[p->input_row[begin] * n_planes + k];
      for (int64_t j = begin + 1; j < end; j++) sum += input[p->input_row[j] * n_planes + k];
      planes[(int64_t)k * p->n + i] = sum;
    }
  }
}

static void scatter_point(const fmm_points *p, int64_t i, int n_planes, const double *const *planes, double factor, double *output) {
  int64_t begin = p->first ? p->first[i] : i, end = p->first ? p->first[i + 1] : i + 1;
  for (int64_t j = begin; j < end; j++)
    for (int k = 0; k < n_planes; k++) output[p->input_row[j] * n_planes + k] = factor * planes[k][i];
}

void fmm_scatter_planes(const fmm_points *p, int n_planes, const double *const *planes, double factor, double *output, int threads) {
#pragma omp parallel for num_threads(threads) schedule(static) if (p->n > FMM_PARALLEL_MINIMUM)
  for (int64_t i = 0; i < p->n; i++) scatter_point(p, i, n_planes, planes, factor, output);
}

void fmm_scatter_results(const fmm_points *p, int n_planes, const double *planes, double factor, double *output, int threads) {
#pragma omp parallel for num_threads(threads) schedule(static) if (p->n > FMM_PARALLEL_MINIMUM)
  for (int64_t i = 0; i < p->n; i++) {
    int64_t begin = p->first ? p->first[i] : i, end = p->first ? p->first[i + 1] : i + 1;
    for (int64_t j = begin; j < end; j++)
      for (int k = 0; k < n_planes; k++) output[p->input_row[j] * n_planes + k] = factor * planes[(int64_t)k * p->n + i];
  }
}
