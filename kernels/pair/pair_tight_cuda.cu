/* Which tiles of the U list are too tight for float, once a plan. A coordinate relative to the target box's centre (half-width h) is rounded by up to
 * 2^-24 of itself, 2^-25 or less in the mean square, so a pair at distance d moves by about 2^-25 (1 + 2 h / d) of its value (twice that for derivatives). Densities are not known yet: all
 * count alike, without cancellation of values nor of errors; the sums of molecules' and salts' charges are up to four times smaller than that. The tiles with the largest errors are marked until
 * those of the rest are within a quarter of the tolerance, in the relative L2 norm over all targets. Pairs of all kernels are taken as 1/r. */
#include <stdlib.h>

#include "runtime/gpu/gpu_cuda.h"

namespace {
enum { THREADS = 128, TARGETS = 128, MEASURES = 4 /* squares of values and of errors, of potentials and of derivatives */ };

constexpr double PART = 0.25; /* of the tolerance */

struct job {
  const fmm_cuda_tile *tile;
  const fmm_cuda_range *range;
  const double *source[3], *target[3], *half;
  double *measure;
};

__device__ __forceinline__ void add_pair(double dx, double dy, double dz, double h2, double (&m)[MEASURES]) {
  double d2 = fma(dx, dx, fma(dy, dy, dz * dz)), r;
  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(d2));
  if (!(d2 > 1e-300)) { /* a point with itself or one in the same place; else two that float, and the seed, take for one */
    if (dx != 0 || dy != 0 || dz != 0) m[1] = m[3] = INFINITY;
    return;
  }
  double r2 = r * r, e = fma(h2, r, 1.0), error = e * e * r2;
  m[0] += r2, m[1] += error;
  m[2] = fma(r2, r2, m[2]), m[3] = fma(error, r2, m[3]);
}

__global__ void __launch_bounds__(THREADS) measure_tiles(const job a) {
  __shared__ double at[TARGETS][3], part[THREADS / 32][MEASURES];
  const fmm_cuda_tile tile = a.tile[blockIdx.x];
  double m[MEASURES] = {}, h2 = 2 * a.half[tile.box];
  for (int first = 0; first < tile.target_count; first += TARGETS) {
    int count = min(TARGETS, tile.target_count - first);
    __syncthreads();
    for (int i = threadIdx.x; i < 3 * count; i += THREADS) at[i / 3][i % 3] = a.target[i % 3][tile.target_begin + first + i / 3];
    __syncthreads();
    for (int r = 0; r < tile.range_count; r++) {
      fmm_cuda_range range = a.range[tile.range_begin + r];
      for (int64_t j = range.begin + threadIdx.x; j < range.begin + range.count; j += THREADS) {
        double x = a.source[0][j], y = a.source[1][j], z = a.source[2][j];
#pragma unroll 4
        for (int i = 0; i < count; i++) add_pair(at[i][0] - x, at[i][1] - y, at[i][2] - z, h2, m);
      }
    }
  }
  for (int k = 0; k < MEASURES; k++) {
    for (int step = 16; step; step >>= 1) m[k] += __shfl_xor_sync(0xffffffffu, m[k], step);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32][k] = m[k];
  }
  __syncthreads();
  if (threadIdx.x >= MEASURES) return;
  double sum = 0;
  for (int w = 0; w < THREADS / 32; w++) sum += part[w][threadIdx.x];
  a.measure[(int64_t)blockIdx.x * MEASURES + threadIdx.x] = sum;
}

/* Marks the tiles with the largest errors (measure k + 1) against the values (measure k). `order`: n doubles of room. */
void mark(fmm_cuda_sums *s, const double *measure, int k, double factor, double tolerance, double *order) {
  double values = 0, kept = 0, limit = INFINITY;
  for (int64_t i = 0; i < s->n_tiles; i++) values += measure[i * MEASURES + k], order[i] = measure[i * MEASURES + k + 1];
  qsort(order, (size_t)s->n_tiles, sizeof *order, [](const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
  });
  for (int64_t i = 0; i < s->n_tiles && limit == INFINITY; i++) {
    kept += factor * order[i];
    if (!(kept <= PART * PART * tolerance * tolerance * values)) limit = order[i];
  }
  for (int64_t i = 0; i < s->n_tiles; i++)
    if (!(measure[i * MEASURES + k + 1] < limit)) s->tile[i].precise = 1;
}
}

/* The tiles are on both sides; those of the device get their marks. */
fmm_status fmm_cuda_mark_tight(fmm_gpu_plan *p) {
  fmm_cuda_sums *s = &p->sums[FMM_SUM_U];
  double *measure = NULL, *order = NULL;
  fmm_status status = FMM_OK;
  cudaStream_t stream = p->stream[FMM_CUDA_NEAR];
  if (!s->single || s->n_tiles == 0) return FMM_OK;
  job a = {s->d_tile, s->d_range, {p->d_source[0], p->d_source[1], p->d_source[2]}, {p->d_target[0], p->d_target[1], p->d_target[2]}, p->d_half, p->d_tight};
  const size_t bytes = (size_t)s->n_tiles * MEASURES * sizeof(double);
  FMM_CHECK(FMM_ALLOCATE(&measure, s->n_tiles * MEASURES, "measures of the U list"));
  FMM_CHECK(FMM_ALLOCATE(&order, s->n_tiles, "measures of the U list"));
  measure_tiles<<<(unsigned)s->n_tiles, THREADS, 0, stream>>>(a);
  FMM_CHECK(CUDA_CHECKED(cudaGetLastError()));
  FMM_CHECK(CUDA_CHECKED(cudaMemcpyAsync(measure, p->d_tight, bytes, cudaMemcpyDeviceToHost, stream)));
  FMM_CHECK(CUDA_CHECKED(cudaStreamSynchronize(stream)));
  mark(s, measure, 0, 0x1p-50, p->tolerance, order);
  if (p->gradient) mark(s, measure, 2, 0x1p-48, p->tolerance, order);
  for (int64_t i = 0; i < s->n_tiles; i++) s->n_precise += s->tile[i].precise;
  if (s->n_precise) FMM_CHECK(CUDA_CHECKED(cudaMemcpy(s->d_tile, s->tile, (size_t)s->n_tiles * sizeof *s->tile, cudaMemcpyHostToDevice)));
done:
  FMM_FREE(&measure);
  FMM_FREE(&order);
  return status;
}
