/* Where a plan's tables are made. */
#ifndef FMM_GPU_DESK_CUDA_H
#define FMM_GPU_DESK_CUDA_H
#include "runtime/status.h"

/* Page-locked memory in which tables are made, to be sent from there; what does not fit is the host's (runtime/gpu/gpu_desk.cu). */
typedef struct fmm_cuda_desk { char *memory; size_t bytes, used; } fmm_cuda_desk;
char *fmm_cuda_desk_room(fmm_cuda_desk *desk, size_t bytes); /* NULL: there is not enough */
fmm_status fmm_cuda_desk_take(fmm_cuda_desk *desk, void **array, int64_t count, size_t size, const char *what);
#define DESK_TAKE(desk, array, count, what) fmm_cuda_desk_take((desk), (void **)(array), (count), sizeof **(array), (what))
int fmm_cuda_desk_has(const fmm_cuda_desk *desk, const void *array);
void fmm_cuda_desk_drop(const fmm_cuda_desk *desk, void **array);
#define DESK_DROP(desk, array) fmm_cuda_desk_drop((desk), (void **)(array))
#endif
