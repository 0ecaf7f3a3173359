/* How many CPU cores this process may really use, and why: the smallest of the affinity mask, the cgroup CPU quota (v1 or v2), what a
 * batch system granted, and OpenMP's own thread limit. More threads than that only take turns, which ruins both speed and predictions.
 * "Core" is what the operating system schedules on (a hardware thread where there are several a physical core).
 * References: Linux Documentation/admin-guide/cgroup-v2.rst (cpu.max), scheduler/sched-bwc.rst (cpu.cfs_quota_us), sched_setaffinity(2). */
#ifndef FMM_CORES_H
#define FMM_CORES_H
#include "status.h"

typedef struct fmm_cores {
  int affinity;     /* cores in the calling thread's affinity mask */
  double quota;     /* cgroup CPU time in cores, INFINITY without a limit */
  int batch;        /* granted by a batch system, 0: none runs */
  int openmp_limit; /* OMP_THREAD_LIMIT, 0: not set */
  int allowed;      /* the largest useful thread count, at least 1 */
  char why[160];    /* what set `allowed`, for people: "affinity mask of 2 cores" */
} fmm_cores;

/* Cores of the calling thread, now: not cached, since masks and quotas change and threads of one process may have different masks. */
void fmm_cores_read(fmm_cores *cores);
int fmm_cores_allowed(void);

/* The parts that tests feed: files below `root` ("" for the real ones), variables from `get`, the mask's size. */
typedef const char *fmm_get_variable(const char *name);
void fmm_cores_from(const char *root, fmm_get_variable *get, int affinity, fmm_cores *cores);
/* CPU quota in cores from root/proc/self/cgroup and root/sys/fs/cgroup: the tightest on the way up; INFINITY when there is none. */
double fmm_cgroup_quota(const char *root);

/* FMM_ERR_MEMORY where a team of so many threads cannot be started (can_start.c). */
fmm_status fmm_threads_can_start(int threads);

/* Threads to use for an asked number (0: all allowed), which can be started. More than allowed is FMM_ERR_ARGUMENT, which says what the limit is and where it
 * comes from, unless oversubscribe is set; FMM_ERR_MEMORY. *threads is untouched on failure. */
fmm_status fmm_cores_grant(int asked, int oversubscribe, int *threads);
fmm_status fmm_cores_grant_from(const fmm_cores *cores, int asked, int oversubscribe, int *threads);
#endif
