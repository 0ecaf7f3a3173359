/* Where tables are made that are to be sent: page-locked memory that a plan has for its densities and results, as long as it has neither. What lies there crosses the bus as it is, and has been touched before, where
 * new memory would be touched first, copied to such memory, and given back. Where there is none, or too little, tables are the host's. Used by several jobs at once. */
#include "runtime/gpu/gpu_cuda.h"

enum { LINE = 256 };

int fmm_cuda_desk_has(const fmm_cuda_desk *d, const void *array) { return d->memory && (const char *)array >= d->memory && (const char *)array < d->memory + d->bytes; }

char *fmm_cuda_desk_room(fmm_cuda_desk *d, size_t bytes) {
  const size_t lines = (bytes + LINE - 1) / LINE * LINE;
  for (size_t used = __atomic_load_n(&d->used, __ATOMIC_RELAXED); d->memory && lines <= d->bytes - used;)
    if (__atomic_compare_exchange_n(&d->used, &used, used + lines, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) return d->memory + used;
  return NULL;
}

fmm_status fmm_cuda_desk_take(fmm_cuda_desk *d, void **array, int64_t count, size_t size, const char *what) {
  char *room = fmm_cuda_desk_room(d, (size_t)(count > 0 ? count : 1) * size);
  if (!room) return fmm_allocate_bytes(array, (size_t)count, size, what);
  *array = room;
  return FMM_OK;
}

void fmm_cuda_desk_drop(const fmm_cuda_desk *d, void **array) {
  if (!fmm_cuda_desk_has(d, *array)) fmm_free_bytes(*array);
  *array = NULL;
}
