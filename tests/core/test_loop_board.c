/* A team's board (runtime/team_loop.c) when those who look at a loop are slow: between seeing it and claiming a piece of it a thread sleeps now and then, so that its owner would be gone if it did not wait. */
#include <stdatomic.h>
#include <time.h>

static void be_slow_sometimes(void) {
  static atomic_uint looks;
  if (atomic_fetch_add(&looks, 1) % 64 == 0) nanosleep(&(struct timespec){0, 50000}, NULL);
}
#define FMM_LOOKED() be_slow_sometimes()
#include "runtime/team_loop.c"

#include "runtime/jobs.h"
#include "tests/test.h"

/* Loops and jobs in whatever order and depth, with more threads than cores, whose memory is gone when they return: each item is visited once. A thread whose memory others still looked at would come to harm sooner or later. */
typedef struct tangle { uint64_t seed; int depth; uint8_t visits[64]; } tangle;
static uint64_t mixed(uint64_t x) {
  x = (x ^ x >> 33) * 0xff51afd7ed558ccdu;
  return x ^ x >> 33;
}

enum { TANGLED = 16 };
static atomic_int harmed;
static void run_tangle(uint64_t seed, int depth);
static void visit_tangle(void *context, int64_t begin, int64_t end) {
  tangle *t = context;
  for (int64_t i = begin; i < end; i++) {
    const uint64_t seed = mixed(t->seed + 977 * (uint64_t)i);
    t->visits[i]++;
    if (t->depth < 3 && seed % 7 < 3) run_tangle(seed, t->depth + 1);
    else if (seed % 97 == 0) nanosleep(&(struct timespec){0, 20000}, NULL);
  }
}

static fmm_status tangle_job(void *context) {
  run_tangle(*(uint64_t *)context, 2);
  return FMM_OK;
}

static void run_tangle(uint64_t seed, int depth) {
  tangle t = {.seed = seed, .depth = depth};
  const int64_t n = 1 + (int64_t)(mixed(seed) % (depth < 2 ? 64 : 12));
  if (mixed(seed + 1) % 9 == 0 && depth < 3) {
    uint64_t seeds[4];
    fmm_job jobs[4];
    for (int i = 0; i < 4; i++) seeds[i] = mixed(seed + 31 * (uint64_t)i), jobs[i] = (fmm_job){.run = tangle_job, .context = &seeds[i]};
    if (fmm_jobs_run(jobs, 4, TANGLED) != FMM_OK) atomic_store(&harmed, 1);
    return;
  }
  switch (mixed(seed + 2) % 3) {
    case 0: fmm_team_loop(n, 1, visit_tangle, &t, TANGLED); break;
    case 1: fmm_team_loop_uneven(n, 1, visit_tangle, &t, TANGLED); break;
    default: fmm_team_loop_each(n, visit_tangle, &t, TANGLED);
  }
  for (int64_t i = 0; i < 64; i++)
    if (t.visits[i] != (i < n)) atomic_store(&harmed, 1);
}

static void tangled_loops_and_jobs_harm_nobody(void **state) {
  struct timespec begin, now;
  uint64_t seed = 1;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  do {
    run_tangle(mixed(seed++), 0);
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while (!atomic_load(&harmed) && (double)(now.tv_sec - begin.tv_sec) + 1e-9 * (double)(now.tv_nsec - begin.tv_nsec) < 2);
  assert_false(atomic_load(&harmed));
  assert_int_equal(fmm_team_size(), 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(tangled_loops_and_jobs_harm_nobody)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
