/* Measured rates of the device for calibration: multiply-adds, Laplace pairs as the U list sums them, memory, bus, launches. Each is the fastest of a few
 * runs timed by events: other work only adds time. */
#include "kernels/pair/root_cuda.h"
#include "runtime/gpu/gpu_cuda.h"

namespace {
enum { THREADS = 256, RUNS = 5, CHAINS = 8, STEPS = 1 << 14, TARGETS = 8, SOURCES = 1024 };

template <typename Real>
__global__ void multiply_add(Real *out, Real x, int steps) {
  Real v[CHAINS];
  for (int i = 0; i < CHAINS; i++) v[i] = (Real)(threadIdx.x + i);
  for (int s = 0; s < steps; s++)
#pragma unroll
    for (int i = 0; i < CHAINS; i++) v[i] = v[i] * x + x;
  Real sum = 0;
  for (int i = 0; i < CHAINS; i++) sum += v[i];
  if (sum == (Real)-1) *out = sum; /* never: keeps the work */
}

__device__ __forceinline__ void add_pair(double &sum, double q, double r2) { fmm_add_twice(sum, q, r2); }
__device__ __forceinline__ void add_pair(float &sum, float q, float r2) { sum += q * rsqrtf(r2); }

template <typename Real>
__global__ void pairs(Real *out, int repeats) {
  __shared__ __align__(16) Real source[SOURCES][4];
  for (int i = threadIdx.x; i < SOURCES * 4; i += THREADS) source[i / 4][i % 4] = (Real)(1 + i * 0.37);
  __syncthreads();
  Real at[TARGETS][3], sum[TARGETS] = {};
  for (int r = 0; r < TARGETS; r++)
    for (int k = 0; k < 3; k++) at[r][k] = (Real)(threadIdx.x * 0.11 + r + k + blockIdx.x);
  for (int n = 0; n < repeats; n++)
    for (int j = 0; j < SOURCES; j++) {
      Real x = source[j][0], y = source[j][1], z = source[j][2], q = source[j][3];
#pragma unroll
      for (int r = 0; r < TARGETS; r++) {
        Real dx = at[r][0] - x, dy = at[r][1] - y, dz = at[r][2] - z;
        add_pair(sum[r], q, dx * dx + dy * dy + dz * dz);
      }
    }
  Real total = 0;
  for (int r = 0; r < TARGETS; r++) total += sum[r];
  if (total == (Real)-1) *out = total;
}

__global__ void triad(int64_t n, double *a, const double *b, const double *c) {
  for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < n; i += (int64_t)gridDim.x * THREADS) a[i] = b[i] + 3.0 * c[i];
}

__global__ void nothing() {}

struct bench {
  cudaStream_t stream;
  cudaEvent_t begin, end;
  void *green;
  double *d_memory, *host;
  int sms;
  int64_t n; /* doubles an array */
};

fmm_status open_bench(bench *b, int device, int sms, fmm_gpu_rate rate) {
  cudaDeviceProp properties;
  CUDA_TRY(cudaGetDeviceProperties(&properties, device));
  b->sms = properties.multiProcessorCount;
  if (sms > 0 && sms < b->sms) {
    FMM_TRY(fmm_cuda_green_create(device, sms, &b->green, &b->sms));
    FMM_TRY(fmm_cuda_green_stream(b->green, 0, &b->stream));
  } else CUDA_TRY(cudaStreamCreateWithFlags(&b->stream, cudaStreamNonBlocking));
  CUDA_TRY(cudaEventCreate(&b->begin));
  CUDA_TRY(cudaEventCreate(&b->end));
  b->n = rate == FMM_GPU_RATE_MEMORY || rate == FMM_GPU_RATE_H2D || rate == FMM_GPU_RATE_D2H ? (int64_t)1 << 23 : 1;
  CUDA_TRY(cudaMalloc((void **)&b->d_memory, (size_t)(3 * b->n) * sizeof(double)));
  CUDA_TRY(cudaMemset(b->d_memory, 0, (size_t)(3 * b->n) * sizeof(double)));
  if (rate == FMM_GPU_RATE_H2D || rate == FMM_GPU_RATE_D2H) {
    CUDA_TRY(cudaMallocHost((void **)&b->host, (size_t)b->n * sizeof(double)));
    memset(b->host, 0, (size_t)b->n * sizeof(double));
  }
  return FMM_OK;
}

void close_bench(bench *b) {
  if (b->stream) cudaStreamSynchronize(b->stream), cudaStreamDestroy(b->stream);
  fmm_cuda_green_destroy(b->green);
  if (b->begin) cudaEventDestroy(b->begin);
  if (b->end) cudaEventDestroy(b->end);
  if (b->d_memory) cudaFree(b->d_memory);
  if (b->host) cudaFreeHost(b->host);
  cudaGetLastError();
}

/* Enqueues one run and says how much it does. */
fmm_status enqueue(bench *b, fmm_gpu_rate rate, double *amount) {
  int blocks = 8 * b->sms;
  size_t bytes = (size_t)b->n * sizeof(double);
  double threads = (double)(blocks * (int)THREADS);
  switch (rate) {
    case FMM_GPU_RATE_FMA_DOUBLE:
      multiply_add<double><<<blocks, THREADS, 0, b->stream>>>(b->d_memory, 0.5, STEPS);
      *amount = 2.0 * (double)((int64_t)CHAINS * (int64_t)STEPS) * threads;
      break;
    case FMM_GPU_RATE_FMA_SINGLE:
      multiply_add<float><<<blocks, THREADS, 0, b->stream>>>((float *)b->d_memory, 0.5f, STEPS);
      *amount = 2.0 * (double)((int64_t)CHAINS * (int64_t)STEPS) * threads;
      break;
    case FMM_GPU_RATE_PAIR_DOUBLE:
      pairs<double><<<blocks, THREADS, 0, b->stream>>>(b->d_memory, 4);
      *amount = 4.0 * (double)(TARGETS * SOURCES) * threads;
      break;
    case FMM_GPU_RATE_PAIR_SINGLE:
      pairs<float><<<blocks, THREADS, 0, b->stream>>>((float *)b->d_memory, 4);
      *amount = 4.0 * (double)(TARGETS * SOURCES) * threads;
      break;
    case FMM_GPU_RATE_MEMORY:
      triad<<<blocks, THREADS, 0, b->stream>>>(b->n, b->d_memory, b->d_memory + b->n, b->d_memory + 2 * b->n);
      *amount = 3.0 * (double)bytes;
      break;
    case FMM_GPU_RATE_H2D:
      CUDA_TRY(cudaMemcpyAsync(b->d_memory, b->host, bytes, cudaMemcpyHostToDevice, b->stream));
      *amount = (double)bytes;
      break;
    case FMM_GPU_RATE_D2H:
      CUDA_TRY(cudaMemcpyAsync(b->host, b->d_memory, bytes, cudaMemcpyDeviceToHost, b->stream));
      *amount = (double)bytes;
      break;
    default:
      for (int i = 0; i < 1000; i++) nothing<<<1, 32, 0, b->stream>>>();
      *amount = 1000;
  }
  CUDA_LAUNCHED();
  return FMM_OK;
}

fmm_status time_runs(bench *b, fmm_gpu_rate rate, double *value) {
  double amount = 0, least = INFINITY;
  for (int i = 0; i < RUNS; i++) {
    float ms = 0;
    CUDA_TRY(cudaEventRecord(b->begin, b->stream));
    FMM_TRY(enqueue(b, rate, &amount));
    CUDA_TRY(cudaEventRecord(b->end, b->stream));
    CUDA_TRY(cudaEventSynchronize(b->end));
    CUDA_TRY(cudaEventElapsedTime(&ms, b->begin, b->end));
    if (i > 0 && 1e-3 * ms < least) least = 1e-3 * ms; /* the first loads the code */
  }
  *value = rate == FMM_GPU_RATE_LAUNCH ? least / amount : amount / least;
  return FMM_OK;
}
}

extern "C" fmm_status fmm_gpu_measure(int device, int sms, fmm_gpu_rate rate, double *value) {
  fmm_gpu_info info;
  fmm_gpu_query(device, &info);
  if (!info.present) return FMM_FAIL(FMM_ERR_DEVICE, "%s", info.reason);
  fmm_cuda_on_device on(device);
  bench b = {};
  fmm_status status = open_bench(&b, device, sms, rate);
  if (status == FMM_OK) status = time_runs(&b, rate, value);
  close_bench(&b);
  return status;
}
