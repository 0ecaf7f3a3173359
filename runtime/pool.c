/* The pool of memory.c: free ranges in a list by address, each described in its own first bytes, joined with their neighbours; the smallest one that fits is cut. New memory comes in
 * whole huge pages, any of which can be given back by itself; that it be in such is left to the system's own rule. Asking for them gains an evaluation some 1 % and costs a set-up on a virtual
 * machine whose host takes free huge pages back up to three times its time (docs/notes-cpu-trials.md). */
#include "pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>

typedef struct range { size_t bytes; struct range *next; } range;

static const size_t page = (size_t)2 << 20;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static range *ranges;
static atomic_int holders; /* changed under the lock */

static char *end_of(range *r) { return (char *)r + r->bytes; }
static char *page_after(char *place) { return place + (page - (uintptr_t)place % page) % page; }
static char *page_before(char *place) { return place - (uintptr_t)place % page; }

/* Between those before and behind it, joined with them where they touch. */
static void insert(void *block, size_t bytes) {
  range **link = &ranges, *before = NULL, *fresh = block;
  for (; *link && (char *)*link < (char *)block; link = &(*link)->next) before = *link;
  *fresh = (range){bytes, *link};
  *link = fresh;
  if (fresh->next && end_of(fresh) == (char *)fresh->next) fresh->bytes += fresh->next->bytes, fresh->next = fresh->next->next;
  if (before && end_of(before) == (char *)fresh) before->bytes += fresh->bytes, before->next = fresh->next;
}

/* The whole huge pages of all ranges; what is left of a range stays in the list, and all of it where the system cannot cut its own. */
static int give_back(void) {
  int some = 0;
  for (range **link = &ranges; *link;) {
    range *r = *link, *next = r->next;
    char *begin = (char *)r, *end = end_of(r), *first = page_after(begin), *last = page_before(end);
    if (first >= last || munmap(first, (size_t)(last - first))) {
      link = &r->next;
      continue;
    }
    some = 1;
    if (last < end) *(range *)last = (range){(size_t)(end - last), next}, next = (range *)last;
    if (first > begin) *r = (range){(size_t)(first - begin), next};
    else *link = next;
  }
  return some;
}

/* The system's memory at a multiple of a huge page: right below what it gave before, so that they join, where that place is free; else by asking for one page more and returning what sticks out. */
static char *map(size_t bytes) {
  static char *before;
  char *got = mmap(before ? before - bytes : NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (got != MAP_FAILED && got == page_after(got)) return before = got;
  if (got != MAP_FAILED) munmap(got, bytes);
  got = mmap(NULL, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (got == MAP_FAILED) return NULL;
  char *first = page_after(got), *end = first + bytes;
  if (first > got) munmap(got, (size_t)(first - got));
  if (got + bytes + page > end) munmap(end, (size_t)(got + bytes + page - end));
  return before = first;
}

static int grow(size_t bytes) {
  const size_t wanted = (bytes + page - 1) / page * page;
  char *first = wanted >= bytes && wanted <= SIZE_MAX - page ? map(wanted) : NULL;
  if (first) insert(first, wanted);
  return first != NULL;
}

static void *cut(size_t bytes) {
  range **best = NULL;
  for (range **link = &ranges; *link; link = &(*link)->next)
    if ((*link)->bytes >= bytes && (!best || (*link)->bytes < (*best)->bytes)) best = link;
  if (!best) return NULL;
  range *r = *best;
  if (r->bytes == bytes) return *best = r->next, r;
  range *rest = (range *)((char *)r + bytes);
  *rest = (range){r->bytes - bytes, r->next};
  *best = rest;
  return r;
}

void *fmm_pool_take(size_t bytes) {
  pthread_mutex_lock(&lock);
  void *block = cut(bytes);
  if (!block && grow(bytes)) block = cut(bytes);
  pthread_mutex_unlock(&lock);
  return block;
}

void fmm_pool_put(void *block, size_t bytes) {
  pthread_mutex_lock(&lock);
  insert(block, bytes);
  if (!holders) give_back();
  pthread_mutex_unlock(&lock);
}

void fmm_pool_hold(void) {
  pthread_mutex_lock(&lock);
  holders++;
  pthread_mutex_unlock(&lock);
}

void fmm_pool_release(void) {
  pthread_mutex_lock(&lock);
  if (!--holders) give_back();
  pthread_mutex_unlock(&lock);
}

int fmm_pool_is_held(void) { return atomic_load(&holders) > 0; }

int fmm_pool_give_back(void) {
  pthread_mutex_lock(&lock);
  const int some = give_back();
  pthread_mutex_unlock(&lock);
  return some;
}
