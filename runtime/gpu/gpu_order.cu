/* Input order <-> sorted order on the device, and small sums of arrays. A unique point's density is the sum over its input rows in sorted order
 * (DESIGN: coincident points are merged); its result goes to all of them. */
#include "runtime/gpu/gpu_cuda.h"

namespace {
enum { THREADS = 256 };

__global__ void gather(int64_t n, const int64_t *row, const int64_t *first, int width, const double *input, double *planes) {
  int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i >= n) return;
  int64_t begin = first ? first[i] : i, end = first ? first[i + 1] : i + 1;
  for (int k = 0; k < width; k++) {
    double sum = input[row[begin] * width + k];
    for (int64_t j = begin + 1; j < end; j++) sum += input[row[j] * width + k];
    planes[k * n + i] = sum;
  }
}

/* potential: [row][output][column]; gradient: [row][output][axis][column]; planes: [(output * derivatives + k) * columns + column]. */
__global__ void scatter(int64_t n, const int64_t *row, const int64_t *first, int outputs, int derivatives, int columns, const double *near, const double *far, double factor,
                        double gradient_factor, double *potential, double *gradient) {
  int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i >= n) return;
  int64_t begin = first ? first[i] : i, end = first ? first[i + 1] : i + 1;
  for (int o = 0; o < outputs; o++)
    for (int k = 0; k < derivatives; k++)
      for (int c = 0; c < columns; c++) {
        int64_t plane = ((int64_t)(o * derivatives + k) * columns + c) * n + i;
        double value = (k ? gradient_factor : factor) * (near[plane] + far[plane]);
        for (int64_t j = begin; j < end; j++) {
          if (k == 0) potential[(row[j] * outputs + o) * columns + c] = value;
          else if (gradient) gradient[((row[j] * outputs + o) * 3 + k - 1) * columns + c] = value;
        }
      }
}

__global__ void add(int64_t n, double *sum, const double *term) {
  for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < n; i += (int64_t)gridDim.x * THREADS) sum[i] += term[i];
}

unsigned blocks_of(int64_t n) { return (unsigned)((n + THREADS - 1) / THREADS); }
}

cudaError_t fmm_cuda_gather(const fmm_gpu_plan *p, const double *d_input, cudaStream_t stream) {
  if (p->n_sources == 0) return cudaSuccess;
  gather<<<blocks_of(p->n_sources), THREADS, 0, stream>>>(p->n_sources, p->d_source_row, p->d_source_first, p->components * p->columns, d_input,
                                                          p->d_density);
  return cudaGetLastError();
}

cudaError_t fmm_cuda_scatter(const fmm_gpu_plan *p, double factor, double gradient_factor, double *d_potential, double *d_gradient, cudaStream_t stream) {
  if (p->n_targets == 0) return cudaSuccess;
  scatter<<<blocks_of(p->n_targets), THREADS, 0, stream>>>(p->n_targets, p->d_target_row, p->d_target_first, p->outputs, p->gradient ? 4 : 1,
                                                           p->columns, p->d_near, p->d_far, factor, gradient_factor, d_potential, d_gradient);
  return cudaGetLastError();
}

cudaError_t fmm_cuda_add(double *d_sum, const double *d_term, int64_t n, cudaStream_t stream) {
  if (n == 0) return cudaSuccess;
  unsigned blocks = blocks_of(n);
  add<<<blocks < 65536 ? blocks : 65536, THREADS, 0, stream>>>(n, d_sum, d_term);
  return cudaGetLastError();
}
