/* What a device plan's making takes from rows that are on the device already, and settled (gpu_rows.h), where these serve. */
#ifndef FMM_GPU_ROWS_CUDA_H
#define FMM_GPU_ROWS_CUDA_H
#include "runtime/gpu/gpu_cuda.h"
extern "C" {
#include "runtime/gpu_rows.h"
}

/* A set's n points, scaled as in the tree, from rows in sorted order and the first of each point (NULL: each row is one). */
cudaError_t fmm_cuda_rows_gather(const fmm_gpu_rows *rows, int set, const fmm_tree *tree, int64_t n, const uint32_t *d_row, const int64_t *d_first, double *const d_to[3], cudaStream_t stream);
/* Of the device; none where they do not serve. */
size_t fmm_cuda_rows_bytes(const fmm_gpu_rows *rows);
#endif
