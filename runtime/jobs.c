/* See jobs.h. The text of an error belongs to a thread, so it is taken along. */
#include "jobs.h"

#include <omp.h>

#include "trace.h"

typedef struct outcome { fmm_status status; int job; fmm_error error; } outcome;

static void run_one(fmm_job *job, int number, double origin_s, outcome *first) {
  job->begin_s = fmm_now_s() - origin_s;
  fmm_status status = job->run(job->context);
  job->end_s = fmm_now_s() - origin_s;
  if (status == FMM_OK) return;
#pragma omp critical
  if (first->status == FMM_OK || number < first->job) {
    first->status = status, first->job = number;
    fmm_error_take(&first->error);
  }
}

/* As tasks of the team that the caller is in. */
static void run_all(fmm_job *jobs, int n, int threads, double origin_s, outcome *first) {
#pragma omp taskgroup
  for (int i = 0; i < n; i++) {
#pragma omp task firstprivate(i) if (threads > 1)
    run_one(&jobs[i], i, origin_s, first);
  }
}

fmm_status fmm_jobs_run(fmm_job *jobs, int n, int threads) {
  outcome first = {.status = FMM_OK};
  const double origin_s = fmm_now_s();
  if (omp_in_parallel()) run_all(jobs, n, threads, origin_s, &first);
  else {
#pragma omp parallel num_threads(threads) if (threads > 1)
#pragma omp single
    run_all(jobs, n, threads, origin_s, &first);
  }
  if (first.status != FMM_OK) fmm_error_give(&first.error);
  return first.status;
}
