/* Input order <-> sorted order on the device, and small sums of arrays. A unique point's density is the sum over its input rows in sorted order
 * (coincident points are merged); its result goes to all of them. On the way the report is made (gpu_cuda.h): the first density and the first
 * result that are not finite, by integer minima, and the largest density. A density or result at fault leaves the caller's arrays alone. */
#include "runtime/gpu/gpu_cuda.h"

namespace {
enum { THREADS = 256 };

/* Atomic only where it would change something. */
__device__ void lower(unsigned long long *least, unsigned long long value) {
  if (value < *(volatile unsigned long long *)least) atomicMin(least, value);
}

/* The largest of a warp, as its high word. */
__device__ void report_largest(double largest, unsigned long long *report) {
  unsigned size = (unsigned)__double2hiint(largest);
  for (int step = 16; step; step >>= 1) size = max(size, __shfl_xor_sync(0xffffffffu, size, step));
  if (threadIdx.x % 32 == 0) lower(report + FMM_CUDA_LARGEST, ~(unsigned long long)size);
}

/* sized: the largest is wanted. */
__global__ void gather(int64_t n, const uint32_t *row, const int64_t *first, int width, const double *input, double *planes, int sized, unsigned long long *report) {
  int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  double largest = 0;
  if (i < n) {
    int64_t begin = first ? first[i] : i, end = first ? first[i + 1] : i + 1;
    for (int k = 0; k < width; k++) {
      double sum = 0;
      for (int64_t j = begin; j < end; j++) {
        double value = input[(int64_t)row[j] * width + k];
        if (!isfinite(value)) lower(report + FMM_CUDA_BAD_DENSITY, (unsigned long long)row[j] * width + k);
        sum = j == begin ? value : sum + value;
      }
      planes[k * n + i] = sum;
      largest = fmax(largest, fabs(sum));
    }
  }
  if (sized) report_largest(largest, report);
}

/* Rows [begin, end), each the only one of its point. */
__global__ void scatter(int64_t begin, int64_t end, int64_t n, const uint32_t *position, int width, const double *input, double *planes, int sized, unsigned long long *report) {
  int64_t row = begin + (int64_t)blockIdx.x * THREADS + threadIdx.x;
  double largest = 0;
  if (row < end) {
    int64_t i = position[row];
    for (int k = 0; k < width; k++) {
      double value = input[row * width + k];
      if (!isfinite(value)) lower(report + FMM_CUDA_BAD_DENSITY, (unsigned long long)(row * width + k));
      planes[k * n + i] = value;
      largest = fmax(largest, fabs(value));
    }
  }
  if (sized) report_largest(largest, report);
}

/* From the largest density's exponent. */
__global__ void make_scale(const unsigned long long *report, double *scale) {
  int exponent = (int)((unsigned)~report[FMM_CUDA_LARGEST] >> 20) - 1023;
  exponent = exponent < -1000 ? -1000 : exponent > 1000 ? 1000 : exponent;
  scale[0] = exp2(-(double)exponent);
  scale[1] = exp2((double)exponent);
}

/* Columns in units of their own (runtime/column_units.h): the high word of the largest magnitude of each, whose order is that of magnitudes. Planes of n, plane k of column k % columns. */
__global__ void weigh_columns(int64_t n, int columns, const double *planes, unsigned *largest) {
  const double *plane = planes + blockIdx.y * n;
  unsigned size = 0;
  for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < n; i += (int64_t)gridDim.x * THREADS) size = max(size, (unsigned)__double2hiint(fabs(plane[i])));
  for (int step = 16; step; step >>= 1) size = max(size, __shfl_xor_sync(0xffffffffu, size, step));
  if (threadIdx.x % 32 == 0) atomicMax(largest + blockIdx.y % columns, size);
}

/* unit: of each column the power of two that takes it to between 1 and 2, then their inverses; scale as of densities of about 1. */
__global__ void make_units(int columns, const unsigned *largest, double *unit, double *scale) {
  const int column = blockIdx.x * THREADS + threadIdx.x;
  if (column == 0) scale[0] = scale[1] = 1;
  if (column >= columns) return;
  int exponent = (int)(largest[column] >> 20) - 1023;
  exponent = exponent < -1000 ? -1000 : exponent > 1000 ? 1000 : exponent;
  unit[column] = exp2(-(double)exponent);
  unit[columns + column] = exp2((double)exponent);
}

__global__ void scale_columns(int64_t n, int columns, const double *unit, double *planes) {
  double *plane = planes + blockIdx.y * n;
  for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < n; i += (int64_t)gridDim.x * THREADS) plane[i] *= unit[blockIdx.y % columns];
}

struct results {
  int64_t rows, n;           /* rows in the caller's order; n unique targets */
  const uint32_t *position;  /* of a row: its target */
  const uint32_t *row;       /* as in fmm_points */
  const int64_t *first;
  int outputs, derivatives, columns;
  const double *near, *far;
  double factor, gradient_factor;
  const double *unit;        /* that a column's values are multiplied by, too; NULL: none */
  unsigned long long *report;
};
__device__ __forceinline__ double result_of(const results &a, int64_t i, int output, int k, int column) {
  int64_t plane = ((int64_t)(output * a.derivatives + k) * a.columns + column) * a.n + i;
  const double value = (k ? a.gradient_factor : a.factor) * (a.near[plane] + a.far[plane]);
  return a.unit ? value * a.unit[column] : value;
}

/* The first row with a result that is not finite, before anything is written: by targets as they are sorted, whose rows are looked up where needed. sum: potentials
 * are put there, planes as near's. */
__global__ void inspect(const results a, double *sum) {
  int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i >= a.n) return;
  bool finite = true;
  for (int o = 0; o < a.outputs; o++)
    for (int k = 0; k < a.derivatives; k++)
      for (int c = 0; c < a.columns; c++) {
        double value = result_of(a, i, o, k, c);
        finite = finite && isfinite(value);
        if (sum) sum[((int64_t)o * a.columns + c) * a.n + i] = value; /* without derivatives */
      }
  if (finite) return;
  for (int64_t j = a.first ? a.first[i] : i; j < (a.first ? a.first[i + 1] : i + 1); j++) lower(a.report + FMM_CUDA_BAD_RESULT, (unsigned long long)a.row[j]);
}

/* [row][output][column] from planes. */
__global__ void place(int64_t rows, int64_t n, int width, const uint32_t *position, const double *planes, double *result) {
  int64_t row = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (row >= rows) return;
  int64_t i = position[row];
  for (int k = 0; k < width; k++) result[row * width + k] = planes[k * n + i];
}

/* potential: [row][output][column]; gradient: [row][output][axis][column], a thread a value, as they follow one another there: they may lie beyond the bus, which
 * wants whole lines: values [begin, end). planes: [(output * derivatives + k) * columns + column]. inspected: nothing is written when a value is not finite; else such rows
 * are reported on the way. */
__global__ void deliver(const results a, int64_t begin, int64_t end, double *potential, double *gradient, int inspected) {
  if (a.report[FMM_CUDA_BAD_DENSITY] != ~0ull || (inspected && a.report[FMM_CUDA_BAD_RESULT] != ~0ull)) return;
  int64_t at = begin + (int64_t)blockIdx.x * THREADS + threadIdx.x, potentials = a.rows * a.outputs * a.columns;
  if (at >= end) return;
  int slope = at >= potentials, columns = slope ? 3 * a.columns : a.columns, width = a.outputs * columns;
  if (slope) at -= potentials;
  int64_t row = at / width;
  int in_row = (int)(at - row * width), output = in_row / columns, k = slope ? in_row % columns / a.columns + 1 : 0;
  double value = result_of(a, a.position[row], output, k, in_row % a.columns);
  (slope ? gradient : potential)[at] = value;
  if (!isfinite(value)) lower(a.report + FMM_CUDA_BAD_RESULT, (unsigned long long)row);
}

/* row, first: as in fmm_points. */
__global__ void invert(int64_t n, const uint32_t *row, const int64_t *first, uint32_t *position) {
  int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i >= n) return;
  int64_t begin = first ? first[i] : i, end = first ? first[i + 1] : i + 1;
  for (int64_t j = begin; j < end; j++) position[row[j]] = (uint32_t)i;
}

/* Two numbers below 2^53 s in size differ by s at the least, or by less than s only where one is such a small one and not zero; squares of less than 2^-511 are
 * subnormal. In two leaves no points are so near: cells are told from the rounded distance to the root's corner (runtime/points.c), which is a
 * multiple of far more. */
__global__ void find_tiny(int64_t n, const double *x, int *tiny) {
  int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i < n && x[i] != 0 && fabs(x[i]) < 0x1p-457) *tiny = 1;
}

__global__ void publish(const unsigned long long *report, unsigned long long *host_report) { host_report[threadIdx.x] = report[threadIdx.x]; }

__global__ void note(unsigned *arrived) {
  __threadfence_system();
  *(volatile unsigned *)arrived = 1;
}

/* One block a joint; each value by one thread, its parts in their order. */
__global__ void join(const fmm_cuda_joint *joint, const double *partial, int64_t n_targets, int planes, double *sum) {
  const fmm_cuda_joint j = joint[blockIdx.x];
  int64_t part = (int64_t)j.target_count * planes;
  for (int64_t i = threadIdx.x; i < part; i += THREADS) {
    double *to = sum + i / j.target_count * n_targets + j.target_begin + i % j.target_count, all = *to;
#pragma unroll 8
    for (int k = 0; k < j.parts; k++) all += partial[j.partial + k * part + i];
    *to = all;
  }
}

__global__ void add(int64_t n, double *sum, const double *term) {
  for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < n; i += (int64_t)gridDim.x * THREADS) sum[i] += term[i];
}

unsigned blocks_of(int64_t n) { return (unsigned)((n + THREADS - 1) / THREADS); }
}

/* Whether some sums are in float: then densities are scaled. */
static int has_single(const fmm_gpu_plan *p) {
  int single = p->v_single;
  for (int i = 0; i < FMM_N_SUMS; i++) single |= p->sums[i].row_tile && p->sums[i].single;
  return single;
}

cudaError_t fmm_cuda_gather(const fmm_gpu_plan *p, const double *d_input, cudaStream_t stream) {
  if (p->n_sources == 0) return cudaSuccess;
  gather<<<blocks_of(p->n_sources), THREADS, 0, stream>>>(p->n_sources, p->d_source_row, p->d_source_first, p->components * p->columns, d_input,
                                                          p->d_density, has_single(p), p->d_report);
  return cudaGetLastError();
}

/* Sources that are the targets have their places, too, in d_target_position. */
int fmm_cuda_can_scatter(const fmm_gpu_plan *p) { return p->same_points && !p->merged_sources; }
cudaError_t fmm_cuda_scatter(const fmm_gpu_plan *p, int64_t begin, int64_t end, cudaStream_t stream) {
  if (begin >= end) return cudaSuccess;
  scatter<<<blocks_of(end - begin), THREADS, 0, stream>>>(begin, end, p->n_sources, p->d_target_position, p->components * p->columns, p->d_density_input, p->d_density,
                                                          has_single(p), p->d_report);
  return cudaGetLastError();
}

static cudaError_t scale_all_columns(const fmm_gpu_plan *p, cudaStream_t stream) {
  enum { BLOCKS = 64 };
  const unsigned planes = (unsigned)(p->components * p->columns), blocks = blocks_of(p->n_sources) < BLOCKS ? blocks_of(p->n_sources) : BLOCKS;
  cudaError_t error = cudaMemsetAsync(p->d_column_largest, 0, (size_t)p->columns * sizeof *p->d_column_largest, stream);
  if (error != cudaSuccess) return error;
  weigh_columns<<<dim3(blocks, planes), THREADS, 0, stream>>>(p->n_sources, p->columns, p->d_density, p->d_column_largest);
  make_units<<<blocks_of(p->columns), THREADS, 0, stream>>>(p->columns, p->d_column_largest, p->d_column_unit, p->d_scale);
  scale_columns<<<dim3(blocks, planes), THREADS, 0, stream>>>(p->n_sources, p->columns, p->d_column_unit, p->d_density);
  return cudaGetLastError();
}

cudaError_t fmm_cuda_scale(const fmm_gpu_plan *p, cudaStream_t stream) {
  if (p->n_sources == 0) return cudaSuccess;
  if (p->d_column_unit) return scale_all_columns(p, stream);
  if (!has_single(p)) return cudaSuccess;
  make_scale<<<1, 1, 0, stream>>>(p->d_report, p->d_scale);
  return cudaGetLastError();
}

static results results_of(const fmm_gpu_plan *p) {
  return results{p->n_input_targets, p->n_targets, p->d_target_position, p->d_target_row, p->merged_targets ? p->d_target_first : NULL, p->outputs, p->gradient ? 4 : 1,
                 p->columns, p->d_near, p->d_far, p->results.factor, p->results.gradient_factor,
                 p->d_column_unit ? p->d_column_unit + p->columns : NULL, p->d_report};
}

cudaError_t fmm_cuda_inspect(const fmm_gpu_plan *p, int place, cudaStream_t stream) {
  if (p->n_targets == 0) return cudaSuccess;
  inspect<<<blocks_of(p->n_targets), THREADS, 0, stream>>>(results_of(p), place ? p->d_near : NULL);
  return cudaGetLastError();
}

cudaError_t fmm_cuda_place(const fmm_gpu_plan *p, cudaStream_t stream) {
  if (p->n_input_targets == 0) return cudaSuccess;
  place<<<blocks_of(p->n_input_targets), THREADS, 0, stream>>>(p->n_input_targets, p->n_targets, p->outputs * p->columns, p->d_target_position, p->d_near, p->d_result);
  return cudaGetLastError();
}

cudaError_t fmm_cuda_deliver(const fmm_gpu_plan *p, int64_t begin, int64_t end, int inspected, cudaStream_t stream) {
  if (begin >= end) return cudaSuccess;
  deliver<<<blocks_of(end - begin), THREADS, 0, stream>>>(results_of(p), begin, end, p->results.potential, p->results.gradient, inspected);
  return cudaGetLastError();
}

cudaError_t fmm_cuda_invert_rows(const fmm_gpu_plan *p, const uint32_t *d_row, const int64_t *d_first, cudaStream_t stream) {
  if (p->n_targets == 0) return cudaSuccess;
  invert<<<blocks_of(p->n_targets), THREADS, 0, stream>>>(p->n_targets, d_row, d_first, p->d_target_position);
  return cudaGetLastError();
}

cudaError_t fmm_cuda_find_tiny(const fmm_gpu_plan *p, cudaStream_t stream) {
  cudaError_t error = cudaMemsetAsync(p->d_tiny, 0, sizeof *p->d_tiny, stream);
  for (int k = 0; k < 3 && error == cudaSuccess; k++) {
    if (p->n_sources) find_tiny<<<blocks_of(p->n_sources), THREADS, 0, stream>>>(p->n_sources, p->d_source[k], p->d_tiny);
    if (p->n_targets && !p->same_points) find_tiny<<<blocks_of(p->n_targets), THREADS, 0, stream>>>(p->n_targets, p->d_target[k], p->d_tiny);
    error = cudaGetLastError();
  }
  return error;
}

cudaError_t fmm_cuda_publish_report(const fmm_gpu_plan *p, cudaStream_t stream) {
  publish<<<1, FMM_CUDA_N_REPORT, 0, stream>>>(p->d_report, p->report);
  return cudaGetLastError();
}

cudaError_t fmm_cuda_note_arrival(const fmm_gpu_plan *p, int piece, cudaStream_t stream) {
  note<<<1, 1, 0, stream>>>(p->arrived + piece);
  return cudaGetLastError();
}

cudaError_t fmm_cuda_join(const fmm_gpu_plan *p, fmm_cuda_sum sum, int64_t begin, int64_t end, double *d_sum, cudaStream_t stream) {
  const fmm_cuda_sums *s = &p->sums[sum];
  if (begin >= end) return cudaSuccess;
  join<<<(unsigned)(end - begin), THREADS, 0, stream>>>(s->d_joint + begin, s->d_partial, p->n_targets, p->values * p->columns, d_sum);
  return cudaGetLastError();
}

cudaError_t fmm_cuda_add(double *d_sum, const double *d_term, int64_t n, cudaStream_t stream) {
  if (n == 0) return cudaSuccess;
  unsigned blocks = blocks_of(n);
  add<<<blocks < 65536 ? blocks : 65536, THREADS, 0, stream>>>(n, d_sum, d_term);
  return cudaGetLastError();
}
