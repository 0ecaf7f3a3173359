/* A few independent jobs of a set-up beside each other, each on a thread of one team (team_loop.h), so that jobs which wait (for a driver, for the bus) leave the other threads to those
 * that compute; a job's own loops and jobs are shared by the team (a parallel region inside a job would mostly have one thread). They are begun in their order. Nothing is cancelled: when one fails the others
 * end as they would, and the first failure in the order of the jobs is what the caller gets, with its text. With one thread they run one after the other.
 * A job owns what it writes; what two of them need is made before. */
#ifndef FMM_JOBS_H
#define FMM_JOBS_H
#include "status.h"

typedef fmm_status fmm_job_run(void *context);
typedef struct fmm_job {
  const char *name;        /* for reports */
  fmm_job_run *run;
  void *context;
  double begin_s, end_s;   /* when it ran, in seconds since fmm_jobs_run was called */
} fmm_job;

/* Returns when all have ended. */
fmm_status fmm_jobs_run(fmm_job *jobs, int n, int threads);
/* One of them, for the sake of the loops in it: they share one team instead of starting one each. */
fmm_status fmm_job_run_alone(fmm_job_run *run, void *context, int threads);
#endif
