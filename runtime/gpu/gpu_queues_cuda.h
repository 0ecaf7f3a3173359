/* Streams and events of a plan, and what else of an earlier plan may serve another. */
#ifndef FMM_GPU_QUEUES_CUDA_H
#define FMM_GPU_QUEUES_CUDA_H
#include <cuda_runtime.h>

#include "runtime/gpu.h"

enum { FMM_CUDA_FAR, FMM_CUDA_NEAR, FMM_CUDA_TIGHT /* precise tiles, beside those in float */, FMM_CUDA_IN, FMM_CUDA_OUT, FMM_CUDA_N_STREAMS };
enum { FMM_CUDA_PIECES_IN = 4 /* of densities, each sorted while the next arrives */, FMM_CUDA_PIECES_OUT = 6 /* of results, each copied out while the next arrives */ };

/* Streams and events, on all multiprocessors of a device or on some (runtime/gpu/gpu_queues.cu). */
struct fmm_cuda_queues {
  int device, sms_asked, sms;        /* asked 0: all */
  int favours_near;                  /* nonzero: blocks of U find room among others */
  void *green;                       /* green context when limited to some multiprocessors */
  cudaStream_t stream[FMM_CUDA_N_STREAMS];
  cudaEvent_t origin, ready, inspected, tight_ready, tight_done, rest_done, up_done, check_sent, far_done, near_done;
  cudaEvent_t phase_event[FMM_N_PHASES][2], copy_event[FMM_GPU_N_COPIES][2], fetched[FMM_GPU_N_ARRAYS], piece_sent[FMM_CUDA_PIECES_IN];
};
/* An earlier plan's, if they are of this kind (others stay where they are), or new ones. What was made of them is there after a failure. */
fmm_status fmm_cuda_queues_make(fmm_cuda_queues *queues, fmm_gpu_spare *spare, int device, int sms, int favours_near);
void fmm_cuda_queues_wait(const fmm_cuda_queues *queues); /* until nothing is under way, whatever has become of it */
void fmm_cuda_queues_free(fmm_cuda_queues *queues);

/* What an earlier plan has left (runtime/gpu/gpu_spare.cu; spare NULL: nothing). Operators that are the same as the wanted ones, which get their memory then, or queues: nonzero if they were taken. Operators that are others are released. */
int fmm_cuda_spare_take_operators(fmm_gpu_spare *spare, fmm_gpu_operators *wanted);
int fmm_cuda_spare_take_queues(fmm_gpu_spare *spare, fmm_cuda_queues *wanted);
/* Bytes of its blocks. Where there is a cap, which what is larger than it has to be counts against, or on another device they are released. */
size_t fmm_cuda_spare_bytes(fmm_gpu_spare *spare, int device, int capped);
/* Whether such a block is neither too small nor a quarter too large; it, if it is so, else another, of `larger` bytes where so many are free. */
int fmm_cuda_spare_block_serves(const fmm_gpu_spare *spare, int which, size_t bytes);
fmm_status fmm_cuda_spare_take_block(fmm_gpu_spare *spare, int which, size_t bytes, size_t larger, void **memory, size_t *held);
void fmm_cuda_spare_free_block(fmm_gpu_spare *spare, int which);
void fmm_cuda_spare_free_operators(fmm_gpu_operators *operators);
#endif
