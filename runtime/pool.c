/* The pool of memory.c: free ranges in a tree by address (a treap, Seidel and Aragon 1996), each described in its own first bytes, joined with their neighbours; of those that are large enough the highest is
 * cut, at its end: what comes back is used before what nobody has had yet, and what is left stays described where it was, so that free memory is touched nowhere else. New memory comes in multiples of 2 MB, any of which can be given back by itself. */
#include "pool.h"

#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>

#include "huge_pages.h"

typedef struct range { size_t bytes, most /* of all below it and its own */; struct range *low, *high; } range;

static const size_t page = FMM_HUGE_PAGE;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static range *ranges;
static atomic_int holders; /* changed under the lock */
static _Thread_local int own_holds, team; /* of the calling thread: how often it holds, and the team that touches what it asks for */
static size_t kept; /* bytes that stay when nobody holds */
static size_t expected; /* by a holder: what its team touches at once when memory comes next */

static char *end_of(range *r) { return (char *)r + r->bytes; }
static char *page_after(char *place) { return place + (page - (uintptr_t)place % page) % page; }
static char *page_before(char *place) { return place - (uintptr_t)place % page; }

static uint64_t priority(const range *r) { return ((uint64_t)(uintptr_t)r >> 6) * 0x9e3779b97f4a7c15u >> 16; }
static size_t most_of(const range *r) { return r ? r->most : 0; }

static void add_up(range *r) {
  const size_t low = most_of(r->low), high = most_of(r->high), below = low > high ? low : high;
  r->most = r->bytes > below ? r->bytes : below;
}

/* Those before a place and the others. */
static void split(range *r, const char *at, range **before, range **others) {
  if (!r) *before = *others = NULL;
  else if ((char *)r < at) split(r->high, at, &r->high, others), add_up(r), *before = r;
  else split(r->low, at, before, &r->low), add_up(r), *others = r;
}

static range *merge(range *before, range *others) {
  if (!before || !others) return before ? before : others;
  if (priority(before) > priority(others)) return before->high = merge(before->high, others), add_up(before), before;
  return others->low = merge(before, others->low), add_up(others), others;
}

enum { LOWEST = 0, HIGHEST = 1 };
static range *take_end(range **of, int end) {
  range *r = *of;
  if (!r) return NULL;
  range **next = end == HIGHEST ? &r->high : &r->low;
  if (!*next) return *of = end == HIGHEST ? r->low : r->high, r;
  range *found = take_end(next, end);
  return add_up(r), found;
}

/* The highest of at least so many bytes. */
static range *take_large(range **of, size_t bytes) {
  range *r = *of;
  if (most_of(r) < bytes) return NULL;
  if (most_of(r->high) < bytes && r->bytes >= bytes) return *of = merge(r->low, r->high), r;
  range *found = take_large(most_of(r->high) >= bytes ? &r->high : &r->low, bytes);
  return add_up(r), found;
}

static void insert(char *begin, size_t bytes) {
  range *before, *behind, *r = (range *)begin;
  if (!bytes) return;
  *r = (range){bytes, bytes, NULL, NULL};
  split(ranges, begin, &before, &behind);
  ranges = merge(merge(before, r), behind);
}

/* With the neighbours that it touches; not in the tree. */
static range *join(char *begin, size_t bytes) {
  range *before, *behind, *last, *first;
  split(ranges, begin, &before, &behind);
  last = take_end(&before, HIGHEST), first = take_end(&behind, LOWEST);
  ranges = merge(before, behind);
  if (last && end_of(last) == begin) begin = (char *)last, bytes += last->bytes;
  else if (last) insert((char *)last, last->bytes);
  if (first && begin + bytes == (char *)first) bytes += first->bytes;
  else if (first) insert((char *)first, first->bytes);
  *(range *)begin = (range){bytes, bytes, NULL, NULL};
  return (range *)begin;
}

/* Ranges that were put aside, in a list by way of `low`. */
static void insert_all(range *aside) {
  while (aside) {
    range *r = aside;
    aside = r->low;
    insert((char *)r, r->bytes);
  }
}

/* The whole pages of a range that is not in the tree to the system, what is left of it into the tree; nonzero if there were any. All of it stays where the system cannot cut its own: then 0 and out of the tree. */
static int give(range *r) {
  char *begin = (char *)r, *end = end_of(r), *first = page_after(begin), *last = page_before(end);
  if (first >= last || munmap(first, (size_t)(last - first))) return 0;
  insert(begin, (size_t)(first - begin)), insert(last, (size_t)(end - last));
  return 1;
}

static int give_back(void) {
  range *others = NULL;
  int some = 0;
  for (range *r; (r = take_large(&ranges, page));)
    if (give(r)) some = 1;
    else r->low = others, others = r;
  insert_all(others);
  return some;
}

static size_t bytes_of(const range *r) { return r ? r->bytes + bytes_of(r->low) + bytes_of(r->high) : 0; }

/* The same until no more than so many bytes are left, but for parts of pages: the lowest goes first, as the highest is used first. */
static int give_back_to(size_t most) {
  range *others = NULL;
  size_t all = bytes_of(ranges);
  int some = 0;
  if (!most) return give_back();
  if (all < most + page) return 0;
  for (range *r; all > most && (r = take_end(&ranges, LOWEST));) {
    char *begin = (char *)r, *end = end_of(r), *first = page_after(begin), *last = page_before(end);
    if (last > first && (size_t)(last - first) > all - most) last = page_before(first + (all - most));
    if (last > first && !munmap(first, (size_t)(last - first))) {
      some = 1, all -= (size_t)(last - first);
      if (end > last) *(range *)last = (range){(size_t)(end - last), 0, others, NULL}, others = (range *)last;
      r = first > begin ? r : NULL, end = first;
    }
    if (r) *r = (range){(size_t)(end - begin), 0, others, NULL}, others = r;
  }
  insert_all(others);
  return some;
}

/* The system's memory at a multiple of a page: right below what it gave before, so that they join, where that place is free; else by asking for one page more and returning what sticks out. */
static char *map(size_t bytes) {
  static uintptr_t before;
  char *got = mmap((void *)(before > bytes ? before - bytes : 0), bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (got != MAP_FAILED && got == page_after(got)) return before = (uintptr_t)got, got;
  if (got != MAP_FAILED) munmap(got, bytes);
  got = mmap(NULL, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (got == MAP_FAILED) return NULL;
  char *first = page_after(got), *end = first + bytes;
  if (first > got) munmap(got, (size_t)(first - got));
  if (got + bytes + page > end) munmap(end, (size_t)(got + bytes + page - end));
  return before = (uintptr_t)first, first;
}

/* The asking holder's team touches all huge pages beside one another; in a team's own work, as in jobs, or where who asks does not hold, a few tell whether they come soon. There more is taken
 * from the system than is asked for, since other blocks will be, and each that comes by itself would have such pages touched by one thread. */
static int grow(size_t bytes) {
  enum { ahead = 32 /* pages */ };
  const int by_team = own_holds && !omp_in_parallel();
  size_t wanted = (bytes + page - 1) / page * page;
  char *first = NULL;
  if (wanted < bytes || wanted > SIZE_MAX - page) return 0;
  const size_t more = by_team ? expected / page * page : ahead * page;
  if (by_team) expected = 0;
  if (wanted < more && (first = map(more))) wanted = more;
  if (!first && !(first = map(wanted))) return 0;
  fmm_huge_pages_ask(first, wanted, by_team ? team : 0, 1);
  range *r = join(first, wanted);
  insert((char *)r, r->bytes);
  return 1;
}

static void *cut(size_t bytes) {
  range *r = take_large(&ranges, bytes);
  if (!r) return NULL;
  char *block = end_of(r) - bytes;
  insert((char *)r, r->bytes - bytes);
  return block;
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
  range *r = join(block, bytes);
  if (holders || kept || !give(r)) insert((char *)r, r->bytes);
  if (!holders && kept) give_back_to(kept);
  pthread_mutex_unlock(&lock);
}

/* A child of fork has one thread, which holds nothing. */
static void before_fork(void) { pthread_mutex_lock(&lock); }
static void in_parent(void) { pthread_mutex_unlock(&lock); }
static void in_child(void) {
  holders = own_holds = 0;
  expected = kept = 0;
  give_back();
  pthread_mutex_unlock(&lock);
}
static void follow_forks(void) { pthread_atfork(before_fork, in_parent, in_child); }

void fmm_pool_hold(int threads) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, follow_forks);
  pthread_mutex_lock(&lock);
  holders++;
  if (!own_holds++) team = threads;
  pthread_mutex_unlock(&lock);
}

void fmm_pool_expect(size_t bytes) {
  pthread_mutex_lock(&lock);
  if (own_holds && most_of(ranges) < page) expected = bytes;
  pthread_mutex_unlock(&lock);
}

void fmm_pool_release(void) {
  pthread_mutex_lock(&lock);
  expected = 0;
  if (own_holds > 0) own_holds--;
  if (holders > 0 && !--holders) give_back_to(kept); /* none: held before a fork, in the child */
  pthread_mutex_unlock(&lock);
}

size_t fmm_pool_unused(void) {
  pthread_mutex_lock(&lock);
  const size_t bytes = bytes_of(ranges);
  pthread_mutex_unlock(&lock);
  return bytes;
}

size_t fmm_pool_keep(size_t before, size_t most) {
  pthread_mutex_lock(&lock);
  kept -= before < kept ? before : kept; /* what was kept before a fork is not, in the child */
  const size_t all = bytes_of(ranges), unclaimed = all > kept ? all - kept : 0, more = (unclaimed < most ? unclaimed : most) / page * page;
  kept += more;
  if (!holders) give_back_to(kept);
  pthread_mutex_unlock(&lock);
  return more;
}

int fmm_pool_is_held(void) { return atomic_load(&holders) > 0; }

int fmm_pool_give_back(void) {
  pthread_mutex_lock(&lock);
  const int some = give_back();
  pthread_mutex_unlock(&lock);
  return some;
}
