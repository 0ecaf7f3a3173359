/* Which tiles of the U list are too tight for float, once a plan. A coordinate relative to the target box's centre (half-width h) is rounded by up to
 * 2^-24 of itself, 2^-25 or less in the mean square, so a pair at distance d moves by about 2^-25 (1 + 2 h / d) of its value (twice that for derivatives). Densities are not known yet: all
 * count alike, without cancellation of values nor of errors; the sums of molecules' and salts' charges are up to four times smaller than that. The tiles with the largest errors are marked until
 * those of the rest are within a quarter of the tolerance, in the relative L2 norm over all targets. Pairs of all kernels are taken as 1/r. */
#include <stdlib.h>

#include "runtime/gpu/gpu_cuda.h"

namespace {
enum { THREADS = 128, TARGETS = 128, TOGETHER = 8, MEASURES = 4 /* squares of values and of errors, of potentials and of derivatives */ };

constexpr double PART = 0.25; /* of the tolerance */
constexpr float NEAR = 0.25f; /* half-widths: nearer pairs are measured in double; a float errs by a millionth of that and so of others' distances */

struct job {
  const fmm_cuda_tile *tile;
  const fmm_cuda_range *range;
  const double *source[3], *target[3], *center[3], *half;
  double *measure;
};

__device__ __forceinline__ void add_near(double dx, double dy, double dz, double h2, double (&m)[MEASURES]) {
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

/* The same in half-widths. */
template <int GRADIENT>
__device__ __forceinline__ void add_far(float d2, float (&m)[MEASURES]) {
  float r;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(d2));
  const float r2 = r * r, e = fmaf(2, r, 1), error = e * e * r2;
  m[0] += r2, m[1] += error;
  if (GRADIENT) m[2] = fmaf(r2, r2, m[2]), m[3] = fmaf(error, r2, m[3]);
}

template <int GRADIENT>
__global__ void __launch_bounds__(THREADS) measure_tiles(const job a) {
  __shared__ float4 place[TARGETS]; /* in half-widths, from the box's centre */
  __shared__ double part[THREADS / 32][MEASURES];
  const fmm_cuda_tile tile = a.tile[blockIdx.x];
  const double h = a.half[tile.box], unit = 1 / h, center[3] = {a.center[0][tile.box], a.center[1][tile.box], a.center[2][tile.box]};
  double m[MEASURES] = {};
  for (int first = 0; first < tile.target_count; first += TARGETS) {
    const int count = min(TARGETS, tile.target_count - first);
    const int64_t begin = tile.target_begin + first;
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += THREADS)
      place[i] = make_float4((float)((a.target[0][begin + i] - center[0]) * unit), (float)((a.target[1][begin + i] - center[1]) * unit), (float)((a.target[2][begin + i] - center[2]) * unit), 0);
    __syncthreads();
    for (int r = 0; r < tile.range_count; r++) {
      const fmm_cuda_range range = a.range[tile.range_begin + r];
      for (int64_t j = range.begin + threadIdx.x; j < range.begin + range.count; j += THREADS) {
        const double x = a.source[0][j], y = a.source[1][j], z = a.source[2][j];
        const float u = (float)((x - center[0]) * unit), v = (float)((y - center[1]) * unit), w = (float)((z - center[2]) * unit);
        float far[MEASURES] = {};
        for (int i = 0; i < count; i += TOGETHER) { /* mostly none of them is near: one branch for all */
          float d2[TOGETHER], least = INFINITY;
#pragma unroll
          for (int q = 0; q < TOGETHER; q++) {
            const float4 at = place[min(i + q, count - 1)];
            const float du = at.x - u, dv = at.y - v, dw = at.z - w;
            d2[q] = i + q < count ? fmaf(du, du, fmaf(dv, dv, dw * dw)) : INFINITY; /* of which nothing comes */
            least = fminf(least, d2[q]);
          }
          if (least < NEAR * NEAR)
            for (int q = 0; q < TOGETHER && i + q < count; q++) {
              const float4 at = place[i + q];
              const float du = at.x - u, dv = at.y - v, dw = at.z - w, one = fmaf(du, du, fmaf(dv, dv, dw * dw));
              if (one < NEAR * NEAR) add_near(a.target[0][begin + i + q] - x, a.target[1][begin + i + q] - y, a.target[2][begin + i + q] - z, 2 * h, m);
              else add_far<GRADIENT>(one, far);
            }
          else
#pragma unroll
            for (int q = 0; q < TOGETHER; q++) add_far<GRADIENT>(d2[q], far);
        }
        for (int k = 0; k < MEASURES; k++) m[k] += far[k] * (k < 2 ? unit * unit : unit * unit * unit * unit);
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

/* Numbers from zero on by their first bits: sign, exponent and two more. */
enum { CLASSES = 1 << 14 };
int class_of(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return (int)(bits >> 50);
}

/* The least of n errors that must go, taken from the largest on, for the others' sum to be within `most`; INFINITY: none. Classes are summed first, so that only one has to be sorted. `room`: CLASSES + n. */
double limit_of(int64_t n, const double *error, int64_t stride, double most, double *room) {
  double *sum = room, *order = room + CLASSES, kept = 0;
  int64_t last = 0;
  int c = 0;
  memset(sum, 0, CLASSES * sizeof *sum);
  for (int64_t i = 0; i < n; i++) sum[class_of(error[i * stride])] += error[i * stride];
  while (c < CLASSES && kept + sum[c] <= most) kept += sum[c++];
  if (c == CLASSES) return INFINITY;
  for (int64_t i = 0; i < n; i++)
    if (class_of(error[i * stride]) == c) order[last++] = error[i * stride];
  qsort(order, (size_t)last, sizeof *order, [](const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
  });
  for (int64_t i = 0; i < last; i++)
    if (!((kept += order[i]) <= most)) return order[i];
  return order[last - 1]; /* but for rounding */
}

/* Marks the tiles with the largest errors (measure k + 1) against the values (measure k). */
void mark(fmm_cuda_sums *s, const double *measure, int k, double factor, double tolerance, double *room) {
  double values = 0;
  for (int64_t i = 0; i < s->n_tiles; i++) values += measure[i * MEASURES + k];
  const double limit = limit_of(s->n_tiles, measure + k + 1, MEASURES, PART * PART * tolerance * tolerance * values / factor, room);
  for (int64_t i = 0; i < s->n_tiles; i++)
    if (!(measure[i * MEASURES + k + 1] < limit)) s->tile[i].precise = 1;
}
}

/* The tiles are on both sides; those of the device get their marks, and which they are. */
fmm_status fmm_cuda_mark_tight(fmm_gpu_plan *p) {
  fmm_cuda_sums *s = &p->sums[FMM_SUM_U];
  double *measure = NULL, *room = NULL;
  int32_t *precise = NULL;
  fmm_status status = FMM_OK;
  cudaStream_t stream = p->stream[FMM_CUDA_NEAR];
  if (!s->single || s->n_tiles == 0) return FMM_OK;
  job a = {s->d_tile, s->d_range, {p->d_source[0], p->d_source[1], p->d_source[2]}, {p->d_target[0], p->d_target[1], p->d_target[2]}, {p->d_center[0], p->d_center[1], p->d_center[2]}, p->d_half, p->d_tight};
  const size_t bytes = (size_t)s->n_tiles * MEASURES * sizeof(double);
  FMM_CHECK(FMM_ALLOCATE(&measure, s->n_tiles * MEASURES, "measures of the U list"));
  FMM_CHECK(FMM_ALLOCATE(&room, CLASSES + s->n_tiles, "measures of the U list"));
  if (p->gradient) measure_tiles<1><<<(unsigned)s->n_tiles, THREADS, 0, stream>>>(a);
  else measure_tiles<0><<<(unsigned)s->n_tiles, THREADS, 0, stream>>>(a);
  FMM_CHECK(CUDA_CHECKED(cudaGetLastError()));
  FMM_CHECK(CUDA_CHECKED(cudaMemcpyAsync(measure, p->d_tight, bytes, cudaMemcpyDeviceToHost, stream)));
  FMM_CHECK(CUDA_CHECKED(cudaStreamSynchronize(stream)));
  mark(s, measure, 0, 0x1p-50, p->tolerance, room);
  if (p->gradient) mark(s, measure, 2, 0x1p-48, p->tolerance, room);
  FMM_CHECK(FMM_ALLOCATE(&precise, s->n_tiles, "tiles too tight for float"));
  for (int64_t i = 0; i < s->n_tiles; i++)
    if (s->tile[i].precise) precise[s->n_precise++] = (int32_t)i;
  if (s->n_precise) {
    FMM_CHECK(CUDA_CHECKED(cudaMemcpy(s->d_tile, s->tile, (size_t)s->n_tiles * sizeof *s->tile, cudaMemcpyHostToDevice)));
    FMM_CHECK(CUDA_CHECKED(cudaMemcpy(s->d_precise, precise, (size_t)s->n_precise * sizeof *precise, cudaMemcpyHostToDevice)));
  }
done:
  FMM_FREE(&precise);
  FMM_FREE(&measure);
  FMM_FREE(&room);
  return status;
}
