/* Host allocation behind one seam. A 64-byte header before each block keeps its size for the accounting. Large blocks ask for
 * huge pages (huge_pages.h). While somebody holds, all but small ones come from the pool (pool.h). */
#include "memory.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "huge_pages.h"
#include "pool.h"

typedef struct header { size_t bytes, pooled; char pad[FMM_ALIGNMENT - 2 * sizeof(size_t)]; } header; /* pooled: header included, 0 where it is not the pool's */

static atomic_size_t bytes_now, bytes_peak;
static atomic_llong allocations, fail_at; /* fail_at: allocation number that fails, 0 none */

static const size_t least_pooled = (size_t)64 << 10;

/* Under AddressSanitizer and Valgrind none does: blocks of the pool lie side by side and keep what was in them, which hides what is written past an end or read before it is set. */
#if defined(__SANITIZE_ADDRESS__)
#define IS_WATCHED 1
#elif __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#define IS_WATCHED RUNNING_ON_VALGRIND
#else
#define IS_WATCHED 0
#endif
static int uses_pool(size_t bytes) { return bytes >= least_pooled && fmm_pool_is_held() && !IS_WATCHED; }

void fmm_memory_hold(int threads) { fmm_pool_hold(threads); }
void fmm_memory_expect(size_t bytes) { fmm_pool_expect(bytes); }
void fmm_memory_release(void) { fmm_pool_release(); }
void fmm_memory_keep(size_t *own, size_t most) {
  if (*own || most) *own = fmm_pool_keep(*own, IS_WATCHED ? 0 : most);
}
int fmm_memory_give_back(void) { return fmm_pool_give_back(); }

static void account(size_t bytes) {
  size_t now = atomic_fetch_add(&bytes_now, bytes) + bytes, peak = atomic_load(&bytes_peak);
  while (now > peak && !atomic_compare_exchange_weak(&bytes_peak, &peak, now)) {}
}

static size_t alignment_of(size_t total) { return total >= FMM_HUGE_PAGE ? FMM_HUGE_PAGE : FMM_ALIGNMENT; }

static header *from_heap(size_t total) {
  const size_t alignment = alignment_of(total);
  return aligned_alloc(alignment, (total + alignment - 1) / alignment * alignment);
}

/* Of a large block, but for a last one that would be used by less than half. */
static header *in_huge_pages(header *h, size_t total) {
  if (h && alignment_of(total) > FMM_ALIGNMENT) fmm_huge_pages_ask((char *)h, (total + FMM_HUGE_PAGE / 2) / FMM_HUGE_PAGE * FMM_HUGE_PAGE, 0, 0);
  return h;
}

fmm_status fmm_allocate_bytes(void **pointer, size_t count, size_t size, const char *what) {
  long long number = atomic_fetch_add(&allocations, 1) + 1;
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX / 2)
    return FMM_FAIL(FMM_ERR_MEMORY, "%s: %zu x %zu bytes is more than can be addressed; use fewer points", what, count, size);
  size_t total = (bytes + sizeof(header) + FMM_ALIGNMENT - 1) / FMM_ALIGNMENT * FMM_ALIGNMENT;
  header *h = NULL;
  if (number != atomic_load(&fail_at)) {
    if (uses_pool(total) && (h = fmm_pool_take(total))) h->pooled = total;
    if (!h && ((h = in_huge_pages(from_heap(total), total)) || (fmm_memory_give_back() && (h = in_huge_pages(from_heap(total), total))))) h->pooled = 0;
  }
  if (!h) return FMM_FAIL(FMM_ERR_MEMORY, "no memory for %s (%zu bytes); use fewer points, a larger tolerance or a bigger machine", what, bytes);
  h->bytes = bytes;
  account(bytes);
  *pointer = h + 1;
  return FMM_OK;
}

fmm_status fmm_memory_spare(size_t bytes, const char *what) {
  const long long number = atomic_fetch_add(&allocations, 1) + 1;
  header *h = number == atomic_load(&fail_at) ? NULL : from_heap(bytes);
  if (!h && number != atomic_load(&fail_at) && fmm_memory_give_back()) h = from_heap(bytes);
  if (!h) return FMM_FAIL(FMM_ERR_MEMORY, "no memory for %s (%zu bytes); use fewer points, a larger tolerance or a bigger machine", what, bytes);
  free(h);
  return FMM_OK;
}

fmm_status fmm_allocate_zero_bytes(void **pointer, size_t count, size_t size, const char *what) {
  FMM_TRY(fmm_allocate_bytes(pointer, count, size, what));
  memset(*pointer, 0, count * size);
  return FMM_OK;
}

void fmm_free_bytes(void *pointer) {
  if (!pointer) return;
  header *h = (header *)pointer - 1;
  atomic_fetch_sub(&bytes_now, h->bytes);
  if (h->pooled) fmm_pool_put(h, h->pooled);
  else free(h);
}

size_t fmm_memory_now(void) { return atomic_load(&bytes_now); }
size_t fmm_memory_peak(void) { return atomic_load(&bytes_peak); }
size_t fmm_memory_bytes(const void *pointer) { return pointer ? ((const header *)pointer - 1)->bytes : 0; }
int64_t fmm_memory_count(void) { return atomic_load(&allocations); }
void fmm_memory_fail_at(int64_t nth) { atomic_store(&fail_at, nth ? atomic_load(&allocations) + nth : 0); }
