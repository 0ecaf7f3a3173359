/* Whether a team of so many threads can be started. Where libgomp cannot make one (a limit on a user's or a container's processes, or on address space) it ends the process, which a library must not do:
 * so all are made once beforehand, alive at the same time, with stacks as large as OpenMP's by default, and end at once. What has been shown is not tried again. */
#include <pthread.h>
#include <string.h>

#include "cores.h"
#include "memory.h"

typedef struct gate { pthread_mutex_t mutex; pthread_cond_t opened; int is_open; } gate;

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
static int started; /* at once, beside the caller */

static void *wait_at(void *the_gate) {
  gate *g = the_gate;
  pthread_mutex_lock(&g->mutex);
  while (!g->is_open) pthread_cond_wait(&g->opened, &g->mutex);
  pthread_mutex_unlock(&g->mutex);
  return NULL;
}

static void open_gate(gate *g) {
  pthread_mutex_lock(&g->mutex);
  g->is_open = 1;
  pthread_cond_broadcast(&g->opened);
  pthread_mutex_unlock(&g->mutex);
}

static fmm_status start(int others) {
  gate g = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
  pthread_t *thread = NULL;
  int made = 0, error = 0;
  FMM_TRY(FMM_ALLOCATE(&thread, others, "threads"));
  while (made < others && !(error = pthread_create(&thread[made], NULL, wait_at, &g))) made++;
  open_gate(&g);
  for (int t = 0; t < made; t++) pthread_join(thread[t], NULL);
  FMM_FREE(&thread);
  if (error)
    return FMM_FAIL(FMM_ERR_MEMORY, "only %d of %d threads can be started (%s); use fewer (of commands --threads), or raise what limits them: processes of a user (ulimit -u) or of a container, or address space (ulimit -v)",
                    made + 1, others + 1, strerror(error));
  return FMM_OK;
}

fmm_status fmm_threads_can_start(int threads) {
  fmm_status status = FMM_OK;
  pthread_mutex_lock(&one_at_a_time);
  if (threads - 1 > started) {
    status = start(threads - 1);
    if (status == FMM_OK) started = threads - 1;
  }
  pthread_mutex_unlock(&one_at_a_time);
  return status;
}
