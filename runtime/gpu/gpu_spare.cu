/* What a plan that is given up leaves to the next (fmm_gpu_spare): for points that move making it anew takes longer than all the rest of the device's plan. The next takes what suits it; what does not is released,
 * blocks of memory not before another is needed, as they count as free until then. */
#include <stdlib.h>

#include "runtime/gpu/gpu_cuda.h"

namespace {
fmm_gpu_taken taken;
void count(int64_t *of) { __atomic_add_fetch(of, 1, __ATOMIC_RELAXED); }
}

void fmm_cuda_spare_free_operators(fmm_gpu_operators *operators) {
  if (!operators->memory) return;
  fmm_cuda_on_device on(operators->device);
  cudaFree(operators->memory);
  operators->memory = NULL;
  cudaGetLastError();
}

void fmm_cuda_spare_free_block(fmm_gpu_spare *spare, int which) {
  if (!spare->block[which].memory) return;
  fmm_cuda_on_device on(spare->device);
  cudaFree(spare->block[which].memory);
  spare->block[which].memory = NULL, spare->block[which].bytes = 0;
  cudaGetLastError();
}

int fmm_cuda_spare_take_operators(fmm_gpu_spare *spare, fmm_gpu_operators *wanted) {
  fmm_gpu_operators *before = spare ? &spare->operators : NULL;
  if (!before || !before->memory) return 0;
  const int same = before->of == wanted->of && before->device == wanted->device && before->bytes == wanted->bytes && !memcmp(before->form, wanted->form, sizeof wanted->form);
  if (!same) return fmm_cuda_spare_free_operators(before), 0;
  wanted->memory = before->memory, before->memory = NULL;
  count(&taken.operators);
  return 1;
}

int fmm_cuda_spare_take_queues(fmm_gpu_spare *spare, fmm_cuda_queues *wanted) {
  const fmm_cuda_queues *before = spare ? spare->queues : NULL;
  if (!before || before->device != wanted->device || before->sms_asked != wanted->sms_asked || before->favours_near != wanted->favours_near) return 0;
  *wanted = *before;
  FMM_FREE(&spare->queues);
  count(&taken.queues);
  return 1;
}

size_t fmm_cuda_spare_bytes(fmm_gpu_spare *spare, int device, int capped) {
  size_t bytes = 0;
  for (int i = 0; spare && i < FMM_GPU_N_BLOCKS; i++) {
    if (capped || spare->device != device) fmm_cuda_spare_free_block(spare, i);
    bytes += spare->block[i].bytes;
  }
  return bytes;
}

int fmm_cuda_spare_block_serves(const fmm_gpu_spare *spare, int which, size_t bytes) {
  const size_t before = spare ? spare->block[which].bytes : 0;
  return before >= bytes && before - bytes <= bytes / 4;
}

fmm_status fmm_cuda_spare_take_block(fmm_gpu_spare *spare, int which, size_t bytes, size_t larger, void **memory, size_t *held) {
  if (fmm_cuda_spare_block_serves(spare, which, bytes)) {
    *memory = spare->block[which].memory, *held = spare->block[which].bytes;
    spare->block[which].memory = NULL, spare->block[which].bytes = 0;
    count(&taken.blocks);
    return FMM_OK;
  }
  if (spare) fmm_cuda_spare_free_block(spare, which);
  *held = larger;
  if (larger > bytes && CUDA_CHECKED(cudaMalloc(memory, larger)) == FMM_OK) return FMM_OK;
  cudaGetLastError();
  *held = bytes;
  const fmm_status status = CUDA_CHECKED(cudaMalloc(memory, bytes));
  if (status == FMM_OK && larger > bytes) fmm_clear_error();
  return status;
}

extern "C" void fmm_gpu_plan_give(fmm_gpu_plan *p, fmm_gpu_spare *spare) {
  fmm_cuda_on_device on(p->device);
  fmm_cuda_queues_wait(p);
  spare->device = p->device;
  spare->operators = p->kept, p->kept.memory = NULL;
  for (int i = 0; i < FMM_GPU_N_BLOCKS; i++) spare->block[i].memory = p->held[i], spare->block[i].bytes = p->held_bytes[i], p->held[i] = NULL, p->held_bytes[i] = 0;
  if (FMM_ALLOCATE(&spare->queues, 1, "streams for the next plan") == FMM_OK) *spare->queues = *p, *(fmm_cuda_queues *)p = fmm_cuda_queues{};
  else fmm_clear_error();
  p->device = spare->device;
  if (spare->stage.memory) return;
  spare->stage = p->locked;
  p->locked.memory = p->stage = NULL;
}

extern "C" void fmm_gpu_spare_free(fmm_gpu_spare *spare) {
  fmm_gpu_stage_free(&spare->stage);
  fmm_cuda_spare_free_operators(&spare->operators);
  for (int i = 0; i < FMM_GPU_N_BLOCKS; i++) fmm_cuda_spare_free_block(spare, i);
  if (!spare->queues) return;
  fmm_cuda_on_device on(spare->queues->device);
  fmm_cuda_queues_free(spare->queues);
  FMM_FREE(&spare->queues);
}

extern "C" fmm_gpu_taken fmm_gpu_spare_taken(void) {
  return fmm_gpu_taken{__atomic_load_n(&taken.operators, __ATOMIC_RELAXED), __atomic_load_n(&taken.queues, __ATOMIC_RELAXED), __atomic_load_n(&taken.blocks, __ATOMIC_RELAXED)};
}
