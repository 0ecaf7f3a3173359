/* Host allocation behind one seam. A 64-byte header before each block keeps its size for the accounting; large blocks ask
 * for huge pages, which halves the page faults of first touch, but not for a last one that would be used by less than half: the system clears all of it. */
#include "memory.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef struct header { size_t bytes, capacity; char pad[FMM_ALIGNMENT - 2 * sizeof(size_t)]; } header; /* capacity: header included */

static atomic_size_t bytes_now, bytes_peak;
static atomic_llong allocations, fail_at; /* fail_at: allocation number that fails, 0 none */

static const size_t huge_page_bytes = (size_t)2 << 20;

enum { MOST_HELD = 64 };
static struct { pthread_mutex_t lock; atomic_int holders; int n; header *block[MOST_HELD]; } held = {.lock = PTHREAD_MUTEX_INITIALIZER}; /* large blocks that were freed */

/* Nonzero: it is held. */
static int keep(header *h) {
  int kept = 0;
  if (h->capacity < huge_page_bytes || !atomic_load(&held.holders)) return 0;
  pthread_mutex_lock(&held.lock);
  if (atomic_load(&held.holders) && held.n < MOST_HELD) held.block[held.n++] = h, kept = 1;
  pthread_mutex_unlock(&held.lock);
  return kept;
}

/* The smallest one held that has room and wastes little, or NULL. */
static header *take_held(size_t bytes) {
  header *found = NULL;
  if (bytes < huge_page_bytes || !atomic_load(&held.holders)) return NULL;
  pthread_mutex_lock(&held.lock);
  int best = -1;
  for (int i = 0; i < held.n; i++) {
    const size_t capacity = held.block[i]->capacity;
    if (capacity >= bytes && capacity - bytes <= bytes / 4 && (best < 0 || capacity < held.block[best]->capacity)) best = i;
  }
  if (best >= 0) found = held.block[best], held.block[best] = held.block[--held.n];
  pthread_mutex_unlock(&held.lock);
  const size_t pages = (bytes + huge_page_bytes - 1) / huge_page_bytes * huge_page_bytes;
  if (found && found->capacity > pages) madvise((char *)found + pages, found->capacity - pages, MADV_DONTNEED); /* what is not asked for is the system's again */
  return found;
}

/* Nonzero: there were some. */
static int give_back(void) {
  const int n = held.n;
  while (held.n > 0) free(held.block[--held.n]);
  return n > 0;
}

int fmm_memory_give_back(void) {
  pthread_mutex_lock(&held.lock);
  const int some = give_back();
  pthread_mutex_unlock(&held.lock);
  return some;
}

void fmm_memory_hold(void) {
  pthread_mutex_lock(&held.lock);
  atomic_fetch_add(&held.holders, 1);
  pthread_mutex_unlock(&held.lock);
}

void fmm_memory_release(void) {
  pthread_mutex_lock(&held.lock);
  if (atomic_fetch_sub(&held.holders, 1) == 1) give_back();
  pthread_mutex_unlock(&held.lock);
}

static void account(size_t bytes) {
  size_t now = atomic_fetch_add(&bytes_now, bytes) + bytes, peak = atomic_load(&bytes_peak);
  while (now > peak && !atomic_compare_exchange_weak(&bytes_peak, &peak, now)) {}
}

fmm_status fmm_allocate_bytes(void **pointer, size_t count, size_t size, const char *what) {
  long long number = atomic_fetch_add(&allocations, 1) + 1;
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX / 2)
    return FMM_FAIL(FMM_ERR_MEMORY, "%s: %zu x %zu bytes is more than can be addressed; use fewer points", what, count, size);
  size_t total = (bytes + sizeof(header) + FMM_ALIGNMENT - 1) / FMM_ALIGNMENT * FMM_ALIGNMENT;
  size_t alignment = total >= huge_page_bytes ? huge_page_bytes : FMM_ALIGNMENT;
  header *h = NULL;
  if (number != atomic_load(&fail_at)) {
    if (alignment > FMM_ALIGNMENT) total = (total + alignment - 1) / alignment * alignment;
    h = take_held(total);
    if (h) alignment = FMM_ALIGNMENT; /* asked for huge pages before */
    else if ((h = aligned_alloc(alignment, total)) || (fmm_memory_give_back() && (h = aligned_alloc(alignment, total)))) h->capacity = total;
  }
  if (!h) return FMM_FAIL(FMM_ERR_MEMORY, "no memory for %s (%zu bytes); use fewer points, a larger tolerance or a bigger machine", what, bytes);
  if (alignment > FMM_ALIGNMENT) madvise(h, (bytes + sizeof(header) + huge_page_bytes / 2) / huge_page_bytes * huge_page_bytes, MADV_HUGEPAGE);
  h->bytes = bytes;
  account(bytes);
  *pointer = h + 1;
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
  if (!keep(h)) free(h);
}

size_t fmm_memory_now(void) { return atomic_load(&bytes_now); }
size_t fmm_memory_peak(void) { return atomic_load(&bytes_peak); }
size_t fmm_memory_bytes(const void *pointer) { return pointer ? ((const header *)pointer - 1)->bytes : 0; }
int64_t fmm_memory_count(void) { return atomic_load(&allocations); }
void fmm_memory_fail_at(int64_t nth) { atomic_store(&fail_at, nth ? atomic_load(&allocations) + nth : 0); }
