/* See jobs.h. The text of an error belongs to a thread, so it is taken along. */
#include "jobs.h"

#include "team_loop.h"
#include "trace.h"

typedef struct outcome { fmm_status status; int64_t job; fmm_error error; } outcome;
typedef struct running { fmm_job *jobs; double origin_s; outcome first; } running;

static void run_one(running *r, int64_t number) {
  fmm_job *job = &r->jobs[number];
  outcome *first = &r->first;
  job->begin_s = fmm_now_s() - r->origin_s;
  const fmm_status status = job->run(job->context);
  job->end_s = fmm_now_s() - r->origin_s;
  if (status == FMM_OK) return;
  fmm_join_begin();
  if (first->status == FMM_OK || number < first->job) {
    first->status = status, first->job = number;
    fmm_error_take(&first->error);
  }
  fmm_join_end();
}

static void run_some(void *context, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; i++) run_one(context, i);
}

fmm_status fmm_jobs_run(fmm_job *jobs, int n, int threads) {
  running r = {jobs, fmm_now_s(), {.status = FMM_OK}};
  fmm_team_loop_each(n, run_some, &r, threads);
  if (r.first.status != FMM_OK) fmm_error_give(&r.first.error);
  return r.first.status;
}

fmm_status fmm_job_run_alone(fmm_job_run *run, void *context, int threads) {
  fmm_job job = {.run = run, .context = context};
  return fmm_jobs_run(&job, 1, threads);
}
