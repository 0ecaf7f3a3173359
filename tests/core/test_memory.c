/* What is freed while somebody holds serves again, joined and cut, and goes to the system afterwards; without a holder there is no pool. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <omp.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/huge_pages.h"
#include "runtime/jobs.h"
#include "runtime/memory.h"
#include "runtime/pool.h"
#include "tests/test.h"

enum { MB = 1 << 20, HEADER = FMM_ALIGNMENT };

/* Not where memory is watched. */
static int is_pooled(void) {
#ifdef __SANITIZE_ADDRESS__
  return 0;
#else
  const char *loaded = getenv("LD_PRELOAD");
  return !loaded || !strstr(loaded, "vgpreload");
#endif
}

static long long address_space(void) { /* pages of the process */
  long long pages = -1;
  FILE *f = fopen("/proc/self/statm", "r");
  if (!f) return -1;
  if (fscanf(f, "%lld", &pages) != 1) pages = -1;
  fclose(f);
  return pages;
}

static void held_memory_serves_again(void **state) {
  const size_t before = fmm_memory_now();
  char *whole = NULL, *a = NULL, *b = NULL;
  if (!is_pooled()) skip();
  fmm_memory_hold(1);
  fmm_memory_hold(1);
  assert_ok(FMM_ALLOCATE(&whole, 8 * MB - HEADER, "whole huge pages"));
  memset(whole, 1, 8 * MB - HEADER);
  char *const first = whole;
  FMM_FREE(&whole);
  assert_int_equal(fmm_memory_now(), before); /* what is kept is nobody's */
  fmm_memory_release();
  assert_ok(FMM_ALLOCATE(&a, 5 * MB - HEADER, "a part, still held by the other"));
  assert_ok(FMM_ALLOCATE(&b, 3 * MB - HEADER, "the rest"));
  assert_ptr_equal(a, first + 3 * MB);
  assert_ptr_equal(b, first);
  assert_int_equal(fmm_memory_bytes(b), 3 * MB - HEADER);
  memset(a, 2, 5 * MB - HEADER), memset(b, 3, 3 * MB - HEADER);
  FMM_FREE(&a);
  FMM_FREE(&b);
  assert_ok(FMM_ALLOCATE(&whole, 8 * MB - HEADER, "both"));
  assert_ptr_equal(whole, first);
  memset(whole, 4, 8 * MB - HEADER);
  FMM_FREE(&whole);
  assert_true(fmm_memory_give_back());
  assert_false(fmm_memory_give_back());
  fmm_memory_release();
  assert_int_equal(fmm_memory_now(), before);
}

static fmm_status do_nothing(void *context) { return FMM_OK; }

/* In pages of 4 kB. */
static long long grown_since(long long before) { return address_space() - before; }

/* What is expected comes with the first block, once, and only where there is nothing yet. */
static void what_a_holder_expects_comes_at_once(void **state) {
  const long long a_mb = MB / 4096;
  char *a = NULL, *b = NULL, *c = NULL;
  if (!is_pooled() || address_space() < 0) skip();
  fmm_memory_hold(1);
  fmm_memory_expect(64 * MB);
  long long before = address_space();
  assert_ok(FMM_ALLOCATE(&a, 10 * MB, "the first"));
  assert_in_range(grown_since(before), 64 * a_mb, 70 * a_mb);
  memset(a, 1, 10 * MB);
  before = address_space();
  assert_ok(FMM_ALLOCATE(&b, 50 * MB, "of what came"));
  assert_int_equal(grown_since(before), 0);
  fmm_memory_expect(64 * MB); /* but for the rest of 4 MB: that serves */
  assert_ok(FMM_ALLOCATE(&c, 20 * MB, "another"));
  assert_in_range(grown_since(before), 20 * a_mb, 26 * a_mb);
  FMM_FREE(&a);
  FMM_FREE(&b);
  FMM_FREE(&c);
  fmm_memory_release();
  fmm_memory_expect(64 * MB); /* by nobody who holds */
  fmm_memory_hold(1);
  before = address_space();
  assert_ok(FMM_ALLOCATE(&a, 10 * MB, "what is asked for"));
  assert_in_range(grown_since(before), 10 * a_mb, 16 * a_mb);
  FMM_FREE(&a);
  fmm_memory_release();
}

static void what_is_expected_is_forgotten_by_the_next_holder(void **state) {
  const long long a_mb = MB / 4096;
  char *a = NULL;
  if (!is_pooled() || address_space() < 0) skip();
  fmm_memory_hold(1);
  fmm_memory_expect(64 * MB);
  fmm_memory_release();
  fmm_memory_hold(1);
  const long long before = address_space();
  assert_ok(FMM_ALLOCATE(&a, 10 * MB, "what is asked for"));
  assert_in_range(grown_since(before), 10 * a_mb, 16 * a_mb);
  FMM_FREE(&a);
  fmm_memory_release();
}

/* What came back last to the highest place is used before what nobody has had. */
static void the_highest_free_place_serves_first(void **state) {
  char *block[3] = {NULL}, *first, *again = NULL;
  if (!is_pooled()) skip();
  fmm_memory_hold(1);
  fmm_memory_expect(32 * MB);
  for (int i = 0; i < 3; i++) assert_ok(FMM_ALLOCATE(&block[i], 4 * MB, "a block"));
  assert_true(block[0] > block[1] && block[1] > block[2]);
  first = block[0];
  FMM_FREE(&block[2]);
  FMM_FREE(&block[0]);
  assert_ok(FMM_ALLOCATE(&again, 4 * MB, "another"));
  assert_ptr_equal(again, first);
  FMM_FREE(&again);
  FMM_FREE(&block[1]);
  fmm_memory_release();
}

/* In a team's own work much comes at once, so that what is asked for next is there; where the system has not so much, what is asked for. */
typedef struct growth { long long first, second; fmm_status little; } growth;
static fmm_status grow_in_a_job(void *context) {
  growth *g = context;
  char *a = NULL, *b = NULL, *c = NULL;
  struct rlimit limit, less;
  const long long before = address_space();
  FMM_TRY(FMM_ALLOCATE(&a, 1 * MB, "a little"));
  g->first = grown_since(before);
  FMM_TRY(FMM_ALLOCATE(&b, 40 * MB, "of what came"));
  g->second = grown_since(before);
  getrlimit(RLIMIT_AS, &limit);
  less = limit, less.rlim_cur = (rlim_t)(address_space() * 4096 + 40 * MB);
  setrlimit(RLIMIT_AS, &less);
  g->little = FMM_ALLOCATE(&c, 30 * MB, "more than is left of it");
  setrlimit(RLIMIT_AS, &limit);
  FMM_FREE(&a);
  FMM_FREE(&b);
  FMM_FREE(&c);
  return FMM_OK;
}

static void in_a_job_much_comes_at_once(void **state) {
  const long long a_mb = MB / 4096;
  growth g = {0};
  fmm_job nothing[2] = {{.run = do_nothing}, {.run = do_nothing}};
  if (!is_pooled() || address_space() < 0) skip();
  assert_ok(fmm_jobs_run(nothing, 2, 2)); /* the team's threads are there */
  fmm_memory_hold(2);
  assert_ok(fmm_job_run_alone(grow_in_a_job, &g, 2));
  fmm_memory_release();
  assert_in_range(g.first, 64 * a_mb, 68 * a_mb);
  assert_int_equal(g.second, g.first);
  assert_ok(g.little);
}

static void without_a_holder_or_for_little_there_is_no_pool(void **state) {
  char *a = NULL;
  assert_ok(FMM_ALLOCATE(&a, 5 * MB, "a"));
  FMM_FREE(&a);
  fmm_memory_hold(1);
  assert_ok(FMM_ALLOCATE(&a, 1000, "a little"));
  FMM_FREE(&a);
  assert_false(fmm_memory_give_back());
  fmm_memory_release();
}

/* Blocks of all sizes come and go, some outlive the holder, none overlaps another, and in the end the system has everything. */
static void blocks_are_whole_whatever_comes_and_goes(void **state) {
  enum { BLOCKS = 64, STEPS = 20000, MOST = 3 * MB };
  static unsigned char *block[BLOCKS];
  static size_t size[BLOCKS];
  unsigned random = 1;
  free(malloc(4 * MB)); /* the heap's own first steps */
  const long long before = address_space();
  for (int round = 0; round < 2; round++) {
    fmm_memory_hold(1);
    for (int step = 0; step < STEPS; step++) {
      random = random * 1664525u + 1013904223u;
      const int k = (int)(random >> 16) % BLOCKS;
      if (block[k]) {
        for (size_t i = 0; i < size[k]; i += size[k] / 7 + 1) assert_int_equal(block[k][i], (unsigned char)(k + 1));
        assert_int_equal(block[k][size[k] - 1], (unsigned char)(k + 1));
        FMM_FREE(&block[k]);
      } else {
        size[k] = 70000 + (size_t)random % (step % 3 ? MOST / 16 : MOST);
        assert_ok(FMM_ALLOCATE(&block[k], size[k], "a block"));
        assert_int_equal((size_t)block[k] % FMM_ALIGNMENT, 0);
        for (size_t i = 0; i < size[k]; i += size[k] / 7 + 1) block[k][i] = (unsigned char)(k + 1);
        block[k][size[k] - 1] = (unsigned char)(k + 1);
      }
      if (step % 1000 == 999) fmm_memory_give_back();
    }
    fmm_memory_release();
    for (int k = round ? 0 : BLOCKS / 2; k < BLOCKS; k++) FMM_FREE(&block[k]); /* the others live on into the next round */
  }
  assert_int_equal(fmm_memory_now(), 0);
  assert_false(fmm_memory_give_back());
  if (is_pooled() && before > 0) assert_true(address_space() - before <= 2 * MB / 4096); /* whole huge pages are all the pool asks for */
}

/* Where address space ends, what is kept serves the rest of the process. */
static void kept_memory_is_given_back_for_want_of_address_space(void **state) {
  char *a = NULL, *b = NULL;
  struct rlimit limit, less;
  if (!is_pooled()) skip();
  getrlimit(RLIMIT_AS, &limit);
  fmm_memory_hold(1);
  assert_ok(FMM_ALLOCATE(&a, 64 * MB, "a"));
  FMM_FREE(&a);
  assert_ok(FMM_ALLOCATE(&b, 80000, "a rest in the way")); /* of the 64 MB */
  less = limit, less.rlim_cur = (rlim_t)(address_space() * 4096 + 30 * MB);
  assert_int_equal(setrlimit(RLIMIT_AS, &less), 0);
  const fmm_status status = FMM_ALLOCATE(&a, 80 * MB, "more than is left unless what is kept is given back");
  setrlimit(RLIMIT_AS, &limit);
  assert_ok(status);
  memset(a, 1, 80 * MB);
  FMM_FREE(&a);
  FMM_FREE(&b);
  fmm_memory_release();
}

/* A child has one thread, which holds nothing, whoever held in its parent: what is free there is the system's, and what comes and goes does so. */
static void a_child_holds_nothing(void **state) {
  char *a = NULL, *b = NULL;
  int result;
  if (!is_pooled()) skip();
  fmm_memory_hold(1);
  assert_ok(FMM_ALLOCATE(&a, 8 * MB - HEADER, "kept in the parent"));
  assert_ok(FMM_ALLOCATE(&b, 4 * MB, "alive in both"));
  FMM_FREE(&a);
  size_t own = 0;
  fmm_memory_keep(&own, 4 * MB);
  assert_int_equal(own, 4 * MB);
  const pid_t child = fork();
  if (!child) {
    int faults = fmm_pool_is_held() != 0;
    faults |= (fmm_memory_give_back() != 0) << 1;
    fmm_memory_keep(&own, 0); /* as who kept would */
    FMM_FREE(&b);
    faults |= (fmm_memory_give_back() != 0) << 2;
    fmm_memory_release(); /* as who held would */
    fmm_memory_hold(1);
    faults |= (FMM_ALLOCATE(&a, 8 * MB, "anew") != FMM_OK) << 3 | !fmm_pool_is_held() << 4;
    FMM_FREE(&a);
    fmm_memory_release();
    faults |= (fmm_memory_give_back() != 0) << 5;
    _exit(faults);
  }
  assert_true(child > 0 && waitpid(child, &result, 0) == child && WIFEXITED(result));
  assert_int_equal(WEXITSTATUS(result), 0);
  assert_true(fmm_memory_give_back()); /* the parent's own is still there */
  fmm_memory_keep(&own, 0);
  FMM_FREE(&b);
  fmm_memory_release();
}

/* New memory is touched by the holder's team, or, where that is at work, by whoever asks for it: whole either way. */
static void a_team_and_each_of_a_team_get_whole_blocks(void **state) {
  if (!is_pooled()) skip();
  for (int threads = 1; threads <= 4; threads++) {
    char *whole = NULL;
    int faults = 0;
    fmm_memory_hold(threads);
    assert_ok(FMM_ALLOCATE(&whole, 21 * MB, "several huge pages"));
    memset(whole, threads, 21 * MB);
#pragma omp parallel num_threads(4) reduction(+ : faults)
    {
      unsigned char *own = NULL;
      const int mark = 100 + omp_get_thread_num();
      faults += FMM_ALLOCATE(&own, 9 * MB, "a thread's") != FMM_OK;
      if (own) memset(own, mark, 9 * MB);
#pragma omp barrier
      for (int i = 0; own && i < 9 * MB; i += 4000) faults += own[i] != mark;
      FMM_FREE(&own);
    }
    assert_int_equal(faults, 0);
    for (int i = 0; i < 21 * MB; i += 4000) assert_int_equal(whole[i], threads);
    FMM_FREE(&whole);
    assert_true(fmm_memory_give_back());
    fmm_memory_release();
  }
}

static int threads_of_process(void) {
  char line[256];
  int n = -1;
  FILE *f = fopen("/proc/self/status", "r");
  while (f && fgets(line, sizeof line, f)) sscanf(line, "Threads: %d", &n);
  if (f) fclose(f);
  return n;
}

/* Whether more of a block's huge pages are there than the first, which has its header: all, or those that came before it was clear that they come late. */
static int was_touched(char *block, size_t bytes) {
  for (size_t at = 2 * MB; at < bytes; at += 2 * MB) {
    unsigned char there = 0;
    mincore((void *)((uintptr_t)(block + at) / 4096 * 4096), 1, &there);
    if (there & 1) return 1;
  }
  return 0;
}

/* Of a holder of one thread, beside one of four. */
typedef struct alone { int faults, touched; } alone;

static void *take_alone(void *result) {
  alone *r = result;
  char *a = NULL;
  fmm_memory_hold(1);
  const int before = threads_of_process();
  r->faults += FMM_ALLOCATE(&a, 64 * MB, "a lot") != FMM_OK;
  r->faults += threads_of_process() != before;
  r->touched |= a && was_touched(a, 64 * MB);
  FMM_FREE(&a);
  fmm_memory_release();
  return NULL;
}

/* Where the first page comes late no other is touched; the next time it comes soon. */
static void each_holder_has_a_team_of_its_own(void **state) {
  enum { TRIES = 10 };
  alone r = {0, 0};
  if (!is_pooled() || threads_of_process() < 0) skip();
  for (int k = 0; k < TRIES && !r.touched; k++) {
    pthread_t other;
    fmm_huge_pages_forget();
    fmm_memory_hold(4);
    assert_int_equal(pthread_create(&other, NULL, take_alone, &r), 0);
    assert_int_equal(pthread_join(other, NULL), 0);
    fmm_memory_release();
    assert_int_equal(r.faults, 0);
  }
  assert_true(r.touched);
}

/* Thousands of rests, as of plans that live on, are joined in whatever order the blocks between them go. */
static void many_rests_are_joined(void **state) {
  enum { MANY = 20000, BYTES = 70000 };
  static char *block[MANY];
  if (!is_pooled()) skip();
  fmm_memory_hold(1);
  for (int k = 0; k < MANY; k++) assert_ok(FMM_ALLOCATE(&block[k], BYTES, "a block"));
  for (int k = 1; k < MANY; k += 2) FMM_FREE(&block[k]); /* every other one is a rest now */
  fmm_memory_release();
  const long long before = address_space();
  for (int k = 0; k < MANY; k += 2) FMM_FREE(&block[(k / 2 * 7919 % (MANY / 2)) * 2]);
  assert_false(fmm_memory_give_back());
  if (before > 0) assert_true(before - address_space() >= (long long)MANY * BYTES / 4096 - 2 * MB / 4096);
}

/* As much as is asked to be kept, of what there is, the highest; until it is given up, or there is no more memory for others. */
static void what_is_kept_serves_the_next_holder(void **state) {
  enum { LOW, MIDDLE, HIGH };
  const long long a_mb = MB / 4096;
  char *block[3] = {NULL}, *high;
  size_t own = 0, other = 0;
  if (!is_pooled() || address_space() < 0) skip();
  assert_false(fmm_memory_give_back());
  fmm_memory_hold(1);
  fmm_memory_expect(32 * MB);
  const long long before = address_space();
  for (int k = HIGH; k >= LOW; k--) {
    assert_ok(FMM_ALLOCATE(&block[k], 8 * MB - HEADER, "a block"));
    memset(block[k], k, 8 * MB - HEADER);
  }
  assert_int_equal(grown_since(before), 32 * a_mb);
  high = block[HIGH];
  FMM_FREE(&block[HIGH]);
  FMM_FREE(&block[LOW]);
  fmm_memory_keep(&own, 100 * MB); /* no more than there is: two blocks of 8 and what was not asked for */
  assert_int_equal(own, 24 * MB);
  fmm_memory_keep(&own, 12 * MB);
  assert_int_equal(own, 12 * MB);
  fmm_memory_release();
  assert_int_equal(grown_since(before), (8 + 12) * a_mb);
  assert_int_equal(fmm_pool_unused(), 12 * MB);
  fmm_memory_hold(1);
  assert_ok(FMM_ALLOCATE(&block[HIGH], 8 * MB - HEADER, "the highest once more"));
  assert_ptr_equal(block[HIGH], high);
  assert_int_equal(block[HIGH][100], HIGH);
  fmm_memory_keep(&other, 6 * MB);
  assert_int_equal(other, 0); /* all that is free is somebody's */
  fmm_memory_release();
  assert_int_equal(grown_since(before), (8 + 8 + 4) * a_mb);
  FMM_FREE(&block[HIGH]);
  assert_int_equal(fmm_pool_unused(), 12 * MB);
  fmm_memory_hold(1);
  FMM_FREE(&block[MIDDLE]);
  fmm_memory_keep(&other, 6 * MB + 5);
  assert_int_equal(other, 6 * MB);
  fmm_memory_release();
  assert_int_equal(fmm_pool_unused(), 18 * MB);
  assert_ok(FMM_ALLOCATE(&block[MIDDLE], 8 * MB, "of the heap, as nobody holds"));
  assert_int_equal(fmm_pool_unused(), 18 * MB);
  FMM_FREE(&block[MIDDLE]);
  fmm_memory_hold(1);
  assert_ok(FMM_ALLOCATE(&block[MIDDLE], 8 * MB - HEADER, "of what is kept"));
  fmm_memory_release();
  FMM_FREE(&block[MIDDLE]); /* by nobody who holds */
  assert_int_equal(fmm_pool_unused(), 18 * MB);
  fmm_memory_keep(&other, 0);
  assert_int_equal(fmm_pool_unused(), 12 * MB);
  assert_int_equal(grown_since(before), 12 * a_mb);
  assert_true(fmm_memory_give_back());
  assert_int_equal(grown_since(before), 0);
  fmm_memory_keep(&own, 0);
  fmm_memory_hold(1);
  assert_ok(FMM_ALLOCATE(&block[LOW], 8 * MB, "anew"));
  FMM_FREE(&block[LOW]);
  fmm_memory_release();
  assert_int_equal(fmm_pool_unused(), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(held_memory_serves_again), cmocka_unit_test(what_a_holder_expects_comes_at_once), cmocka_unit_test(what_is_expected_is_forgotten_by_the_next_holder),
                                     cmocka_unit_test(the_highest_free_place_serves_first), cmocka_unit_test(in_a_job_much_comes_at_once), cmocka_unit_test(without_a_holder_or_for_little_there_is_no_pool),
                                     cmocka_unit_test(blocks_are_whole_whatever_comes_and_goes), cmocka_unit_test(kept_memory_is_given_back_for_want_of_address_space),
                                     cmocka_unit_test(a_child_holds_nothing), cmocka_unit_test(each_holder_has_a_team_of_its_own), cmocka_unit_test(a_team_and_each_of_a_team_get_whole_blocks),
                                     cmocka_unit_test(what_is_kept_serves_the_next_holder), cmocka_unit_test(many_rests_are_joined)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
