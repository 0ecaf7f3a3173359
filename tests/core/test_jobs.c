/* Jobs beside one another: all run, errors are joined, loops inside them are shared out. */
#include "runtime/jobs.h"
#include "runtime/memory.h"
#include "tests/test.h"

enum { JOBS = 5, ITEMS = 10000 };
typedef struct count { int job, fails, *order, *n; int64_t items[ITEMS]; } count;

static fmm_status work(void *context) {
  count *c = context;
  int place;
#pragma omp atomic capture
  place = (*c->n)++;
  c->order[place] = c->job;
#pragma omp taskloop grainsize(100)
  for (int i = 0; i < ITEMS; i++) c->items[i] += i;
  return c->fails ? FMM_FAIL(FMM_ERR_DEVICE + (c->job > 2), "job %d failed", c->job) : FMM_OK;
}

static void make(fmm_job *jobs, count **counts, int *order, int *n) {
  *n = 0;
  assert_ok(FMM_ALLOCATE_ZERO(counts, JOBS, "jobs"));
  for (int i = 0; i < JOBS; i++) {
    (*counts)[i].job = i, (*counts)[i].order = order, (*counts)[i].n = n;
    jobs[i] = (fmm_job){.name = "work", .run = work, .context = &(*counts)[i]};
  }
}

static void every_job_runs_once_and_its_loop_as_a_whole(void **state) {
  for (int threads = 1; threads <= 4; threads++) {
    fmm_job jobs[JOBS];
    count *counts;
    int order[JOBS], n;
    make(jobs, &counts, order, &n);
    assert_ok(fmm_jobs_run(jobs, JOBS, threads));
    assert_int_equal(n, JOBS);
    for (int i = 0; i < JOBS; i++) {
      for (int k = 0; k < ITEMS; k++) assert_int_equal(counts[i].items[k], k);
      assert_true(jobs[i].begin_s >= 0 && jobs[i].end_s >= jobs[i].begin_s);
    }
    FMM_FREE(&counts);
  }
}

static void one_thread_runs_them_in_their_order(void **state) {
  fmm_job jobs[JOBS];
  count *counts;
  int order[JOBS], n;
  make(jobs, &counts, order, &n);
  assert_ok(fmm_jobs_run(jobs, JOBS, 1));
  for (int i = 0; i < JOBS; i++) assert_int_equal(order[i], i);
  FMM_FREE(&counts);
}

/* Whatever thread it was: the caller's last error is the first failing job's. */
static void the_first_failure_in_the_order_of_the_jobs_is_reported_and_the_others_end(void **state) {
  for (int threads = 1; threads <= 4; threads++)
    for (int first = 0; first < JOBS; first++) {
      fmm_job jobs[JOBS];
      count *counts;
      int order[JOBS], n;
      char text[32];
      make(jobs, &counts, order, &n);
      for (int i = first; i < JOBS; i += 2) counts[i].fails = 1;
      fmm_clear_error();
      assert_int_equal(fmm_jobs_run(jobs, JOBS, threads), FMM_ERR_DEVICE + (first > 2));
      snprintf(text, sizeof text, "job %d failed", first);
      assert_string_equal(fmm_last_error(), text);
      assert_non_null(strstr(fmm_last_error_where(), "test_jobs.c:"));
      assert_int_equal(n, JOBS);
      FMM_FREE(&counts);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_job_runs_once_and_its_loop_as_a_whole),
      cmocka_unit_test(one_thread_runs_them_in_their_order),
      cmocka_unit_test(the_first_failure_in_the_order_of_the_jobs_is_reported_and_the_others_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
