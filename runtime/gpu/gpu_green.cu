/* A part of the GPU: green contexts (CUDA driver API 12.5 and later), whose streams run on a subset of the multiprocessors and share the
 * memory of the device's primary context. Entry points come from the driver at run time, so that libcuda is no load-time dependency. */
#include <cuda.h>
#include <cudaTypedefs.h>

#include "runtime/gpu/gpu_cuda.h"

namespace {
struct driver {
  CUresult (*device_get)(CUdevice *, int);
  CUresult (*get_resource)(CUdevice, CUdevResource *, CUdevResourceType);
  CUresult (*split)(CUdevResource *, unsigned *, const CUdevResource *, CUdevResource *, unsigned, unsigned);
  CUresult (*describe)(CUdevResourceDesc *, CUdevResource *, unsigned);
  CUresult (*create)(CUgreenCtx *, CUdevResourceDesc, CUdevice, unsigned);
  CUresult (*destroy)(CUgreenCtx);
  CUresult (*stream)(CUstream *, CUgreenCtx, unsigned, int);
};

fmm_status entry(const char *name, void **function) {
  cudaDriverEntryPointQueryResult found;
  CUDA_TRY(cudaGetDriverEntryPointByVersion(name, function, 12050, cudaEnableDefault, &found));
  if (found != cudaDriverEntryPointSuccess || !*function)
    return FMM_FAIL(FMM_ERR_DEVICE, "this driver cannot limit the GPU to some multiprocessors (%s is missing): it must be of CUDA 12.5 or later", name);
  return FMM_OK;
}

fmm_status load(driver *d) {
  FMM_TRY(entry("cuDeviceGet", (void **)&d->device_get));
  FMM_TRY(entry("cuDeviceGetDevResource", (void **)&d->get_resource));
  FMM_TRY(entry("cuDevSmResourceSplitByCount", (void **)&d->split));
  FMM_TRY(entry("cuDevResourceGenerateDesc", (void **)&d->describe));
  FMM_TRY(entry("cuGreenCtxCreate", (void **)&d->create));
  FMM_TRY(entry("cuGreenCtxDestroy", (void **)&d->destroy));
  return entry("cuGreenCtxStreamCreate", (void **)&d->stream);
}

fmm_status check(CUresult result, const char *call, int sms) {
  if (result == CUDA_SUCCESS) return FMM_OK;
  return FMM_FAIL(FMM_ERR_DEVICE, "limiting the GPU to %d multiprocessors failed: %s returned %d", sms, call, (int)result);
}

fmm_status green_fail(cudaError_t injected, int sms) {
  return FMM_FAIL(FMM_ERR_DEVICE, "limiting the GPU to %d multiprocessors failed: %s", sms, cudaGetErrorString(injected));
}
}

fmm_status fmm_cuda_green_create(int device, int sms, void **green, int *real_sms) {
  driver d;
  CUdevice ordinal;
  CUdevResource all, part, rest;
  CUdevResourceDesc description;
  CUgreenCtx context;
  unsigned groups = 1;
  FMM_TRY(load(&d));
  cudaError_t injected = fmm_cuda_gate();
  if (injected != cudaSuccess) return green_fail(injected, sms);
  FMM_TRY(check(d.device_get(&ordinal, device), "cuDeviceGet", sms));
  FMM_TRY(check(d.get_resource(ordinal, &all, CU_DEV_RESOURCE_TYPE_SM), "cuDeviceGetDevResource", sms));
  FMM_TRY(check(d.split(&part, &groups, &all, &rest, 0, (unsigned)sms), "cuDevSmResourceSplitByCount", sms));
  if (groups < 1) return FMM_FAIL(FMM_ERR_DEVICE, "the GPU cannot be limited to %d multiprocessors; it has %u", sms, all.sm.smCount);
  FMM_TRY(check(d.describe(&description, &part, 1), "cuDevResourceGenerateDesc", sms));
  FMM_TRY(check(d.create(&context, description, ordinal, CU_GREEN_CTX_DEFAULT_STREAM), "cuGreenCtxCreate", sms));
  *green = context;
  *real_sms = (int)part.sm.smCount;
  return FMM_OK;
}

fmm_status fmm_cuda_green_stream(void *green, int priority, cudaStream_t *stream) {
  driver d;
  CUstream made;
  FMM_TRY(load(&d));
  FMM_TRY(check(d.stream(&made, (CUgreenCtx)green, CU_STREAM_NON_BLOCKING, priority), "cuGreenCtxStreamCreate", 0));
  *stream = (cudaStream_t)made;
  return FMM_OK;
}

void fmm_cuda_green_destroy(void *green) {
  driver d;
  if (green && load(&d) == FMM_OK) d.destroy((CUgreenCtx)green);
}
