/* See jobs.h. The text of an error belongs to a thread, so it is taken along. */
#include "jobs.h"

#include "team_loop.h"
#include "trace.h"

typedef struct outcome { fmm_status status; int job; fmm_error error; } outcome;

static _Thread_local int depth; /* of the jobs that this thread runs; tasks stay on their threads */

int fmm_in_job(void) { return depth > 0; }

static void run_one(fmm_job *job, int number, double origin_s, outcome *first) {
  job->begin_s = fmm_now_s() - origin_s;
  depth++;
  fmm_status status = job->run(job->context);
  depth--;
  job->end_s = fmm_now_s() - origin_s;
  if (status == FMM_OK) return;
  fmm_join_begin();
  if (first->status == FMM_OK || number < first->job) {
    first->status = status, first->job = number;
    fmm_error_take(&first->error);
  }
  fmm_join_end();
}

static void make_tasks(fmm_job *jobs, int n, int threads, double origin_s, outcome *first) {
  for (int i = 0; i < n; i++) {
#pragma omp task firstprivate(i) if (threads > 1)
    run_one(&jobs[i], i, origin_s, first);
  }
}

fmm_status fmm_jobs_run(fmm_job *jobs, int n, int threads) {
  outcome first = {.status = FMM_OK};
  const double origin_s = fmm_now_s();
  if (fmm_in_job()) {
#pragma omp taskgroup
    make_tasks(jobs, n, threads, origin_s, &first);
  } else { /* the one that makes them waits at the team's end, where it takes any task: in a group it would take no part of a job's loops */
#pragma omp parallel num_threads(threads) if (threads > 1)
#pragma omp single
    make_tasks(jobs, n, threads, origin_s, &first);
  }
  if (first.status != FMM_OK) fmm_error_give(&first.error);
  return first.status;
}
