/* Jobs beside one another: all run, errors are joined, loops inside them are shared out. */
#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "runtime/jobs.h"
#include "runtime/memory.h"
#include "runtime/team_loop.h"
#include "tests/test.h"

enum { JOBS = 5, ITEMS = 10000, LEAST = 10 };
typedef struct count { int job, fails, *order, *n; int64_t items[ITEMS]; } count;

static void add_numbers(void *context, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; i++) ((int64_t *)context)[i] += i;
}

static fmm_status work(void *context) {
  count *c = context;
  int place;
#pragma omp atomic capture
  place = (*c->n)++;
  c->order[place] = c->job;
  fmm_team_loop(ITEMS, 100, add_numbers, c->items, 4);
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

typedef struct visits { int64_t n; int threads, uneven, *of; } visits;

static void visit(void *context, int64_t begin, int64_t end) {
  const visits *v = context;
  if (begin >= end || end > v->n || (end - begin < LEAST && end < v->n)) v->of[ITEMS] = 1; /* told by the caller: an assertion must not leave a team */
  for (int64_t i = begin; i < end && i < v->n; i++) v->of[i]++; /* no two pieces share one */
}

static fmm_status visit_all(void *context) {
  visits *v = context;
  (v->uneven ? fmm_team_loop_uneven : fmm_team_loop)(v->n, LEAST, visit, v, v->threads);
  return FMM_OK;
}

/* By a team of its own, and inside several jobs. */
static void a_team_loop_visits_everything_once(void **state) {
  static const int64_t sizes[JOBS] = {0, 1, 11, 640, ITEMS};
  for (int threads = 1; threads <= 4; threads++)
    for (int uneven = 0; uneven <= 1; uneven++)
      for (int in_jobs = 0; in_jobs <= 1; in_jobs++) {
        visits v[JOBS];
        fmm_job jobs[JOBS];
        for (int i = 0; i < JOBS; i++) {
          v[i] = (visits){.n = sizes[i], .threads = threads, .uneven = uneven};
          assert_ok(FMM_ALLOCATE_ZERO(&v[i].of, ITEMS + 1, "visits"));
          jobs[i] = (fmm_job){.name = "visit", .run = visit_all, .context = &v[i]};
          if (!in_jobs) visit_all(&v[i]);
        }
        if (in_jobs) assert_ok(fmm_jobs_run(jobs, JOBS, threads));
        for (int i = 0; i < JOBS; i++) {
          for (int64_t k = 0; k < ITEMS; k++) assert_int_equal(v[i].of[k], k < sizes[i]);
          assert_int_equal(v[i].of[ITEMS], 0);
          FMM_FREE(&v[i].of);
        }
      }
}

static fmm_status run_inner_jobs(void *context) {
  count *c = context;
  fmm_job jobs[JOBS];
  for (int i = 0; i < JOBS; i++) jobs[i] = (fmm_job){.name = "inner", .run = work, .context = &c[i]};
  return fmm_jobs_run(jobs, JOBS, 3);
}

static void jobs_of_a_job_run_once_and_the_first_failure_is_reported(void **state) {
  for (int threads = 1; threads <= 4; threads++) {
    fmm_job outer[2], unused[JOBS];
    count *counts[2];
    int order[2][JOBS], n[2];
    for (int k = 0; k < 2; k++) {
      make(unused, &counts[k], order[k], &n[k]);
      outer[k] = (fmm_job){.name = "outer", .run = run_inner_jobs, .context = counts[k]};
    }
    counts[1][3].fails = 1;
    assert_int_equal(fmm_jobs_run(outer, 2, threads), FMM_ERR_DEVICE + 1);
    assert_string_equal(fmm_last_error(), "job 3 failed");
    for (int k = 0; k < 2; k++) {
      assert_int_equal(n[k], JOBS);
      for (int i = 0; i < JOBS; i++)
        for (int item = 0; item < ITEMS; item++) assert_int_equal(counts[k][i].items[item], item);
      FMM_FREE(&counts[k]);
    }
  }
}

/* Loops within pieces of loops. */
enum { OUTER = 70, INNER = 300 };
typedef struct nested { int of[OUTER][INNER], outer, threads; } nested;
typedef struct row { nested *all; int64_t outer; } row;

static void visit_inner(void *context, int64_t begin, int64_t end) {
  const row *r = context;
  for (int64_t i = begin; i < end; i++) r->all->of[r->outer][i]++;
}

static void visit_outer(void *context, int64_t begin, int64_t end) {
  nested *all = context;
  for (int64_t o = begin; o < end; o++) fmm_team_loop_uneven(INNER, 1, visit_inner, &(row){all, o}, all->threads);
}

static void loops_within_loops_visit_everything_once(void **state) {
  for (int threads = 1; threads <= 8; threads += threads < 4 ? 1 : 4) {
    static nested all;
    memset(&all, 0, sizeof all);
    all.threads = threads;
    for (int round = 1; round <= 30; round++) {
      fmm_team_loop_each(OUTER, visit_outer, &all, threads);
      for (int o = 0; o < OUTER; o++)
        for (int i = 0; i < INNER; i++) assert_int_equal(all.of[o][i], round);
    }
  }
}

/* Begun in their order, whoever takes them. */
typedef struct beginnings { int n, at[OUTER]; } beginnings;
static void note_order(void *context, int64_t begin, int64_t end) {
  beginnings *o = context;
  for (int64_t i = begin; i < end; i++) {
    int place;
#pragma omp atomic capture
    place = o->n++;
    o->at[i] = place;
  }
}

static void items_of_their_own_are_begun_in_about_their_order(void **state) {
  enum { threads = 4 };
  beginnings o = {0};
  fmm_team_loop_each(OUTER, note_order, &o, threads);
  assert_int_equal(o.n, OUTER);
  for (int i = 0; i < OUTER; i++) assert_true(o.at[i] >= i - (threads - 1)); /* of those before it each other thread may have one that it has claimed and not begun */
  fmm_team_loop_each(0, note_order, &o, threads);
  assert_int_equal(o.n, OUTER);
}

static void nap(long ms) { nanosleep(&(struct timespec){0, ms * 1000000}, NULL); }

/* What others have of a loop is waited for: here they take longer than its owner, whose pieces are next to nothing. */
typedef struct slow { pthread_t owner; int64_t done[64]; } slow;
static void be_slow(void *context, int64_t begin, int64_t end) {
  slow *s = context;
  if (!pthread_equal(pthread_self(), s->owner)) nap(3);
  for (int64_t i = begin; i < end; i++) s->done[i] = 1;
}

static fmm_status own_a_slow_loop(void *context) {
  slow s = {.owner = pthread_self()};
  int64_t done = 0;
  nap(1); /* until others look for work */
  fmm_team_loop_uneven(64, 1, be_slow, &s, 4);
  for (int i = 0; i < 64; i++) done += s.done[i];
  *(int64_t *)context = done;
  return FMM_OK;
}

static void pieces_of_others_are_waited_for(void **state) {
  int64_t done[2] = {0, 0};
  fmm_job jobs[2] = {{.run = own_a_slow_loop, .context = &done[0]}, {.run = own_a_slow_loop, .context = &done[1]}};
  for (int round = 0; round < 10; round++) {
    assert_ok(fmm_jobs_run(jobs, 2, 4));
    assert_int_equal(done[0], 64);
    assert_int_equal(done[1], 64);
  }
}

/* More loops at once than a board has places for: those that find none are their owner's alone. */
enum { CROWD = 48, EACH = 8 };
static void count_slowly(void *context, int64_t begin, int64_t end) {
  nap(1);
  for (int64_t i = begin; i < end; i++) ((int64_t *)context)[i]++;
}

static void crowd_in(void *context, int64_t begin, int64_t end) {
  int64_t *all = context;
  for (int64_t i = begin; i < end; i++) {
    int64_t own[EACH] = {0};
    nap(5); /* until all are here */
    fmm_team_loop_uneven(EACH, 1, count_slowly, own, CROWD);
    for (int k = 0; k < EACH; k++) all[i] += own[k];
  }
}

static void loops_that_find_no_place_are_run_all_the_same(void **state) {
  int64_t all[CROWD] = {0};
  fmm_team_loop_each(CROWD, crowd_in, all, CROWD);
  for (int i = 0; i < CROWD; i++) assert_int_equal(all[i], EACH);
}

/* With one thread everything inside is that thread's, whatever loops ask for. */
typedef struct alone { pthread_t caller; int others, size; } alone;
static void note_others(void *context, int64_t begin, int64_t end) {
  alone *a = context;
  a->others += !pthread_equal(pthread_self(), a->caller);
  nap(1);
}

static fmm_status loop_of_four(void *context) {
  alone *a = context;
  a->size = fmm_team_size();
  fmm_team_loop_uneven(8, 1, note_others, a, 4);
  fmm_team_loop_each(8, note_others, a, 4);
  return FMM_OK;
}

static void jobs_of_one_thread_share_nothing(void **state) {
  alone a = {.caller = pthread_self()};
  fmm_job jobs[2] = {{.run = loop_of_four, .context = &a}, {.run = loop_of_four, .context = &a}};
  assert_ok(fmm_jobs_run(jobs, 2, 1));
  assert_int_equal(a.size, 1);
  assert_int_equal(a.others, 0);
}

/* Jobs run beside one another: each of two waits for the other, up to five seconds. */
typedef struct meeting { atomic_int here; int met[2]; } meeting;
typedef struct guest { meeting *meeting; int number; } guest;
static fmm_status meet(void *context) {
  const guest *g = context;
  atomic_fetch_add(&g->meeting->here, 1);
  for (int i = 0; i < 5000 && atomic_load(&g->meeting->here) < 2; i++) nap(1);
  g->meeting->met[g->number] = atomic_load(&g->meeting->here) == 2;
  return FMM_OK;
}

static fmm_status meet_inside(void *context) {
  meeting m = {0};
  guest guests[2] = {{&m, 0}, {&m, 1}};
  fmm_job jobs[2] = {{.run = meet, .context = &guests[0]}, {.run = meet, .context = &guests[1]}};
  FMM_TRY(fmm_jobs_run(jobs, 2, 2));
  *(int *)context = m.met[0] && m.met[1];
  return FMM_OK;
}

static void jobs_run_beside_one_another(void **state) {
  int met[2] = {0, 0};
  assert_ok(meet_inside(&met[0])); /* a team of their own */
  assert_ok(fmm_job_run_alone(meet_inside, &met[1], 2)); /* another job's */
  assert_true(met[0] && met[1]);
}

/* One long job's loop is shared out by the whole team, the thread that made the jobs among them, and not where a caller's own region is all there is. */
typedef struct helpers { int threads[4], team; } helpers;

static void note_thread(void *context, int64_t begin, int64_t end) {
  helpers *h = context;
  h->threads[omp_get_thread_num()] = 1;
  nap(10);
}

static fmm_status note_threads(void *context) {
  helpers *h = context;
  h->team = fmm_team_size();
  fmm_team_loop_uneven(40, 1, note_thread, h, 4);
  return FMM_OK;
}

static void all_threads_help_with_the_loop_of_one_job(void **state) {
  helpers h = {{0}, 0};
  fmm_job job = {.name = "note", .run = note_threads, .context = &h};
  int inside = 0;
  assert_int_equal(fmm_team_size(), 1);
  assert_ok(fmm_jobs_run(&job, 1, 4));
  assert_int_equal(h.team, 4);
  assert_int_equal(fmm_team_size(), 1);
  for (int t = 0; t < 4; t++) assert_int_equal(h.threads[t], 1);
#pragma omp parallel num_threads(2)
#pragma omp master
  inside = fmm_team_size();
  assert_int_equal(inside, 1);
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
      cmocka_unit_test(all_threads_help_with_the_loop_of_one_job),
      cmocka_unit_test(a_team_loop_visits_everything_once),
      cmocka_unit_test(loops_within_loops_visit_everything_once),
      cmocka_unit_test(items_of_their_own_are_begun_in_about_their_order),
      cmocka_unit_test(pieces_of_others_are_waited_for),
      cmocka_unit_test(loops_that_find_no_place_are_run_all_the_same),
      cmocka_unit_test(jobs_of_one_thread_share_nothing),
      cmocka_unit_test(jobs_run_beside_one_another),
      cmocka_unit_test(jobs_of_a_job_run_once_and_the_first_failure_is_reported),
      cmocka_unit_test(the_first_failure_in_the_order_of_the_jobs_is_reported_and_the_others_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
