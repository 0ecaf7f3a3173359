/* Arrays of the caller's that a GPU reads and writes without a copy on the host: page-locked where the plan may use one, for programs that know nothing of CUDA. */
#include "gpu.h"
#include "memory.h"
#include "plan.h"

typedef struct head { int locked; char pad[FMM_ALIGNMENT - sizeof(int)]; } head; /* before the values */

/* What the system will not lock serves as it is. */
static int lock(head *h) {
  fmm_error before;
  fmm_error_take(&before);
  const int locked = fmm_gpu_register(h, fmm_memory_bytes(h)) == FMM_OK;
  if (!locked) fmm_error_give(&before);
  return locked;
}

fmm_status fmm_array_create(const fmm_plan *plan, int64_t n, double **array) {
  head *h = NULL;
  if (!plan || !array) return FMM_FAIL(FMM_ERR_ARGUMENT, "fmm_array_create: %s is NULL", plan ? "array" : "plan");
  if (n < 0 || (uint64_t)n > (SIZE_MAX - sizeof *h) / sizeof(double))
    return FMM_FAIL(FMM_ERR_ARGUMENT, "an array of %lld values; give a number from 0 to what memory holds", (long long)n);
  const size_t bytes = sizeof *h + (size_t)n * sizeof(double);
  FMM_TRY(fmm_allocate_zero_bytes((void **)&h, bytes, 1, "an array of densities or results")); /* memory that was touched is locked sooner */
  h->locked = fmm_plan_may_use_gpu(plan) && lock(h);
  *array = (double *)(h + 1);
  return FMM_OK;
}

void fmm_array_destroy(double **array) {
  if (!array || !*array) return;
  head *h = (head *)*array - 1;
  if (h->locked) fmm_gpu_unregister(h);
  FMM_FREE(&h);
  *array = NULL;
}
