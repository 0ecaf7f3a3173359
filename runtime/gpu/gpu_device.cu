/* The seam of CUDA calls with its fault injection, errors in the library's words, and what device there is. */
#include "runtime/gpu/gpu_cuda.h"

static int64_t calls, fail_in; /* tests are single-threaded where they inject */
static int for_memory;

cudaError_t fmm_cuda_gate(void) {
  __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
  if (__atomic_load_n(&fail_in, __ATOMIC_RELAXED) > 0 && __atomic_sub_fetch(&fail_in, 1, __ATOMIC_RELAXED) == 0) return __atomic_load_n(&for_memory, __ATOMIC_RELAXED) ? cudaErrorMemoryAllocation : cudaErrorUnknown;
  return cudaSuccess;
}
extern "C" void fmm_gpu_fail_at(int64_t nth) { __atomic_store_n(&fail_in, nth, __ATOMIC_RELAXED); }
extern "C" void fmm_gpu_fail_for_memory(int yes) { __atomic_store_n(&for_memory, yes, __ATOMIC_RELAXED); }
extern "C" int64_t fmm_gpu_call_count(void) { return __atomic_load_n(&calls, __ATOMIC_RELAXED); }

fmm_status fmm_cuda_failed(cudaError_t error, const char *call, const char *file, int line) {
  cudaGetLastError(); /* an error that is not sticky is forgotten, so that the next execution works */
  if (error == cudaErrorMemoryAllocation)
    return fmm_fail(FMM_ERR_MEMORY, file, line, "not enough memory on the GPU, or of the host's that can be page-locked (%s): choose fewer points a GPU, schedule cpu or a hybrid one", call);
  return fmm_fail(FMM_ERR_DEVICE, file, line, "the GPU failed: %s (%s) in %s", cudaGetErrorString(error), cudaGetErrorName(error), call);
}

/* Out of a driver version as CUDA counts it: 1000 * major + 10 * minor. */
static void name_driver(char text[32]) {
  int version = 0;
  if (cudaDriverGetVersion(&version) != cudaSuccess) version = 0;
  snprintf(text, 32, "CUDA %d.%d", version / 1000, version % 1000 / 10);
}

static void fill(const cudaDeviceProp *p, fmm_gpu_info *info) {
  snprintf(info->name, sizeof info->name, "%.127s", p->name);
  const unsigned char *u = (const unsigned char *)p->uuid.bytes;
  snprintf(info->uuid, sizeof info->uuid, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1], u[2], u[3], u[4], u[5],
           u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]);
  info->sms = p->multiProcessorCount;
  info->compute_capability = 10 * p->major + p->minor;
  info->memory_bytes = p->totalGlobalMem;
}

extern "C" void fmm_gpu_query(int ordinal, fmm_gpu_info *info) {
  memset(info, 0, sizeof *info);
  int n = 0, before = 0; /* with no driver the count stays unset */
  name_driver(info->driver);
  cudaError_t error = fmm_cuda_gate();
  if (error == cudaSuccess) error = cudaGetDeviceCount(&n);
  if (error != cudaSuccess || n == 0) {
    snprintf(info->reason, sizeof info->reason, "no usable GPU (%s)", error != cudaSuccess ? cudaGetErrorString(error) : "no CUDA device");
    cudaGetLastError();
    return;
  }
  if (ordinal < 0 || ordinal >= n) {
    snprintf(info->reason, sizeof info->reason, "there is no GPU %d, only 0 .. %d", ordinal, n - 1);
    return;
  }
  cudaDeviceProp properties;
  if (cudaGetDevice(&before) != cudaSuccess) before = ordinal;
  error = cudaSetDevice(ordinal);
  if (error == cudaSuccess) error = cudaGetDeviceProperties(&properties, ordinal);
  size_t available = 0, total = 0;
  if (error == cudaSuccess) error = cudaMemGetInfo(&available, &total); /* makes the context: a device that cannot have one cannot be used */
  cudaSetDevice(before);
  if (error != cudaSuccess) {
    snprintf(info->reason, sizeof info->reason, "GPU %d cannot be used (%s)", ordinal, cudaGetErrorString(error));
    cudaGetLastError();
    return;
  }
  fill(&properties, info);
  if (info->compute_capability < 75) {
    snprintf(info->reason, sizeof info->reason, "%s has compute capability %d.%d; 7.5 (Turing) or later is needed", info->name, info->compute_capability / 10,
             info->compute_capability % 10);
    return;
  }
  info->present = 1;
}

extern "C" fmm_status fmm_gpu_register(void *host, size_t bytes) {
  if (bytes) CUDA_TRY(cudaHostRegister(host, bytes, cudaHostRegisterDefault));
  return FMM_OK;
}
extern "C" void fmm_gpu_unregister(void *host) {
  if (host && cudaHostUnregister(host) != cudaSuccess) cudaGetLastError();
}
extern "C" fmm_status fmm_gpu_copy_now(int device, void *to, const void *from, size_t bytes, void *stream) {
  if (!bytes) return FMM_OK;
  fmm_cuda_on_device on(device);
  CUDA_TRY(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, (cudaStream_t)stream));
  return CUDA_CHECKED(cudaStreamSynchronize((cudaStream_t)stream));
}
extern "C" fmm_status fmm_gpu_allocate(int device, void **d_pointer, size_t bytes) {
  fmm_cuda_on_device on(device);
  CUDA_TRY(cudaMalloc(d_pointer, bytes));
  return FMM_OK;
}
extern "C" void fmm_gpu_free(void *d_pointer) { cudaFree(d_pointer); }
