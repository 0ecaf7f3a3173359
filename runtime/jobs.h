/* A few independent jobs of a set-up beside each other: each is a task of one OpenMP team, so that jobs which wait (for a driver, for the bus) leave the other threads to those
 * that compute, and a job's own loops and jobs may be shared out (team_loop.h, `omp taskloop`, fmm_jobs_run; a parallel region inside a job would have one thread). Nothing is cancelled: when one fails the others
 * end as they would, and the first failure in the order of the jobs is what the caller gets, with its text. With one thread they run one after the other, in their order.
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

/* Whether the calling thread runs a job: then loops and jobs are tasks of its team. (A parallel region of the library's caller is no such team.) */
int fmm_in_job(void);

/* Returns when all have ended. */
fmm_status fmm_jobs_run(fmm_job *jobs, int n, int threads);
#endif
