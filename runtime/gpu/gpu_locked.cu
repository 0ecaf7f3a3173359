/* Whether a caller's host array is page-locked (cudaHostAlloc, cudaHostRegister): then the device copies from and to it without staging. Asked anew in
 * every execution, as memory may have been unlocked since the last. An entry point comes from the driver at run time, as in gpu_green.cu. */
#include <cuda.h>
#include <cudaTypedefs.h>

#include "runtime/gpu/gpu_cuda.h"

namespace {
typedef CUresult get_attribute(void *, CUpointer_attribute, CUdeviceptr);

/* The one locked piece of memory that holds this address; 0: unknown. */
int locked_piece(const void *at, uintptr_t *begin, size_t *bytes) {
  get_attribute *get = NULL;
  cudaDriverEntryPointQueryResult found;
  CUdeviceptr first = 0;
  if (cudaGetDriverEntryPointByVersion("cuPointerGetAttribute", (void **)&get, 12000, cudaEnableDefault, &found) != cudaSuccess) return 0;
  if (found != cudaDriverEntryPointSuccess || !get) return 0;
  if (get(&first, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, (CUdeviceptr)(uintptr_t)at) != CUDA_SUCCESS) return 0;
  if (get(bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, (CUdeviceptr)(uintptr_t)at) != CUDA_SUCCESS) return 0;
  *begin = (uintptr_t)first;
  return 1;
}
}

/* Not through the seam: whatever fails here, staging serves. */
int fmm_cuda_is_locked(const void *host, size_t bytes) {
  cudaPointerAttributes attributes;
  uintptr_t begin = 0;
  size_t size = 0;
  int locked = bytes > 0 && cudaPointerGetAttributes(&attributes, host) == cudaSuccess && attributes.type == cudaMemoryTypeHost && attributes.devicePointer == host &&
               locked_piece(host, &begin, &size);
  cudaGetLastError();
  return locked && (uintptr_t)host - begin <= size && bytes <= size - ((uintptr_t)host - begin);
}
