/* Whether an array of the caller's lies where it was said to. A device array that is taken for a host one ends the process at the first read, a host array (or another GPU's) that is taken for a device one ends all work of the
 * process on that GPU; either mistake is made easily, and the driver knows. What it does not tell passes. Not through the seam: a driver that fails here fails at the next call. */
#include "runtime/gpu/gpu_cuda.h"

namespace {
int reads_pageable_memory(int device) {
  int reads = 0;
  if (cudaDeviceGetAttribute(&reads, cudaDevAttrPageableMemoryAccess, device) != cudaSuccess) cudaGetLastError();
  return reads;
}

/* Of memory of GPUs the driver tells an address for the present device, if that can reach it. */
fmm_status check_address(int device, const char *name, const void *at, fmm_memory_space space) {
  cudaPointerAttributes a;
  if (cudaPointerGetAttributes(&a, at) != cudaSuccess) return cudaGetLastError(), FMM_OK;
  if (space == FMM_MEMORY_HOST) {
    if (a.type != cudaMemoryTypeDevice) return FMM_OK;
    return FMM_FAIL(FMM_ERR_ARGUMENT, "%s is in the memory of GPU %d, but host memory is expected; pass a host array (densities and results of fmm_plan_execute may be on the GPU with the options densities_space and results_space)", name, a.device);
  }
  if (a.type == cudaMemoryTypeUnregistered) {
    if (reads_pageable_memory(device)) return FMM_OK;
    return FMM_FAIL(FMM_ERR_ARGUMENT, "%s is no memory that GPU %d can reach, but its option says FMM_MEMORY_DEVICE; pass an array of that GPU, or set densities_space or results_space to FMM_MEMORY_HOST", name, device);
  }
  if (a.type == cudaMemoryTypeDevice && a.device != device && !a.devicePointer)
    return FMM_FAIL(FMM_ERR_ARGUMENT, "%s is in the memory of GPU %d, which GPU %d cannot reach; pass an array of GPU %d, or make the plan with the option gpu_device = %d", name, a.device, device, device, a.device);
  return FMM_OK;
}
}

/* Its first and its last byte. */
extern "C" fmm_status fmm_gpu_check_array(int device, const char *name, const void *array, size_t bytes, fmm_memory_space space) {
  if (!array || !bytes) return FMM_OK;
  fmm_cuda_on_device on(device);
  FMM_TRY(check_address(device, name, array, space));
  return check_address(device, name, (const char *)array + bytes - 1, space);
}
