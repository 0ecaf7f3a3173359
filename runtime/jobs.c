/* See jobs.h. The text of an error belongs to a thread, so it is taken along. */
#include "jobs.h"

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

fmm_status fmm_jobs_run(fmm_job *jobs, int n, int threads) {
  outcome first = {.status = FMM_OK};
  const double origin_s = fmm_now_s();
#pragma omp parallel num_threads(threads) if (threads > 1)
#pragma omp single
  for (int i = 0; i < n; i++) {
#pragma omp task firstprivate(i) shared(first)
    run_one(&jobs[i], i, origin_s, &first);
  }
  if (first.status != FMM_OK) fmm_error_give(&first.error);
  return first.status;
}
