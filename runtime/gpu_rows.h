/* A caller's points brought to the device while the host still looks at them: there their words are made and sorted as the host would (points.h), and a plan takes its points from them, so that no points are sent
 * after tree and lists.
 * It only saves time: where a device, memory or calls of the driver fail, the host sorts, and sends what it sorted. Used by one thread at a time. Two implementations, as of gpu.h. */
#ifndef FMM_GPU_ROWS_H
#define FMM_GPU_ROWS_H
#include "runtime/points.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fmm_gpu_rows fmm_gpu_rows;

typedef struct fmm_gpu_rows_request {
  int device, threads;     /* CUDA ordinal; of the team that copies */
  int n_sets;              /* one, or two */
  fmm_input_points set[2]; /* the caller's arrays, which must stay until fmm_gpu_rows_end; normals are not brought */
  char *stage;             /* page-locked memory by way of which they come, in use until words have been taken, and freed, or the end */
  size_t stage_bytes;      /* some MB, better as many as the rows have */
} fmm_gpu_rows_request;

/* Brings them; returns when all are on their way. *rows: NULL where that cannot be. */
void fmm_gpu_rows_begin(fmm_gpu_rows **rows, const fmm_gpu_rows_request *request);
/* Sorts for this frame, and has words on their way when it returns; those asked for before are dropped. */
void fmm_gpu_rows_ask(fmm_gpu_rows *rows, const fmm_frame *frame, double root_scale);
/* Waits for words for this frame, which are sorted now if others, or none, were asked for: as by fmm_rows_sort. They may lie in the page-locked memory, which is in use then until
 * they are freed, and must be freed before others are asked for; else it is no longer. Where the device cannot, *sorted has no sets. */
void fmm_gpu_rows_take(fmm_gpu_rows *rows, const fmm_frame *frame, double root_scale, fmm_sorted_rows *sorted);
/* The same without words. */
void fmm_gpu_rows_settle(fmm_gpu_rows *rows);
/* Whether a plan can take its points from them: not after a failure, nor when they were given up. NULL: no. */
int fmm_gpu_rows_serve(const fmm_gpu_rows *rows);
/* The device's memory is given back. NULL is allowed. */
void fmm_gpu_rows_give_up(fmm_gpu_rows *rows);
/* Waits until arrays and page-locked memory are no longer in use. NULL is allowed. */
void fmm_gpu_rows_end(fmm_gpu_rows **rows);

/* 0: nothing is begun from now on; else as before. For tests and benchmarks. Returns what it was. */
int fmm_gpu_rows_allow(int allowed);
/* Sets that plans of this process have taken from rows so far. For tests. */
int64_t fmm_gpu_rows_count(void);

#ifdef __cplusplus
}
#endif
#endif
