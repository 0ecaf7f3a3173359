/* Loops over boxes or points that are shared out: by a team of their own, or, inside a job (jobs.h), as tasks of the team that runs the jobs, so that loops of several
 * jobs fill it together. A body is called for pieces that lie beside one another and make up the whole; how many depends on the number of threads, so no result may depend on them. */
#ifndef FMM_TEAM_LOOP_H
#define FMM_TEAM_LOOP_H
#include <omp.h>
#include <stdint.h>

typedef void fmm_loop_body(void *context, int64_t begin, int64_t end);

/* [0, n) in pieces of at least `least` (but for the last); returns when all are done. */
void fmm_team_loop(int64_t n, int64_t least, fmm_loop_body *body, void *context, int threads);
/* The same in more and smaller pieces, for items of very different work. */
void fmm_team_loop_uneven(int64_t n, int64_t least, fmm_loop_body *body, void *context, int threads);

/* For `omp taskloop num_tasks(..)` in a job, over n items of which a task has at least `least`: few, as libgomp runs a loop on its own thread alone where with it more than 64 tasks a thread
 * would wait, and jobs have loops of their own beside one another. */
static inline int fmm_task_count(int64_t n, int64_t least) {
  const int64_t tasks = (n + least - 1) / least, most = 8 * (int64_t)omp_get_num_threads();
  return (int)(tasks < 1 ? 1 : tasks < most ? tasks : most);
}

/* Around what joins the results of pieces, for moments: one lock of this library's own. (All unnamed critical sections of a process share one, which a caller may hold.) */
void fmm_join_begin(void);
void fmm_join_end(void);
#endif
