/* See team_loop.h. */
#include "team_loop.h"

#include <pthread.h>

#include "jobs.h"

/* Pieces a thread; no two threads are of one speed. Tasks are fewer: libgomp runs a loop on its own thread alone once more than 64 tasks a thread would wait. */
enum { EVEN = 4, UNEVEN = 32, TASKS = 8 };

typedef struct loop { int64_t n, size; fmm_loop_body *body; void *context; } loop;

static void run_piece(const loop *l, int64_t piece) {
  int64_t begin = piece * l->size, end = begin + l->size;
  l->body(l->context, begin, end < l->n ? end : l->n);
}

static void run_loop(int64_t n, int64_t least, int pieces_a_thread, fmm_loop_body *body, void *context, int threads) {
  if (fmm_in_job() && pieces_a_thread > TASKS) pieces_a_thread = TASKS;
  const int64_t share = n / (pieces_a_thread * (int64_t)threads) + 1;
  const loop l = {.n = n, .size = share > least ? share : least, .body = body, .context = context};
  const int64_t pieces = (n + l.size - 1) / l.size;
  if (n <= 0) return;
  if (threads <= 1 || pieces <= 1) body(context, 0, n);
  else if (fmm_in_job()) {
#pragma omp taskloop grainsize(1) shared(l)
    for (int64_t piece = 0; piece < pieces; piece++) run_piece(&l, piece);
  } else {
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
    for (int64_t piece = 0; piece < pieces; piece++) run_piece(&l, piece);
  }
}

void fmm_team_loop(int64_t n, int64_t least, fmm_loop_body *body, void *context, int threads) { run_loop(n, least, EVEN, body, context, threads); }

void fmm_team_loop_uneven(int64_t n, int64_t least, fmm_loop_body *body, void *context, int threads) { run_loop(n, least, UNEVEN, body, context, threads); }

static pthread_mutex_t joining = PTHREAD_MUTEX_INITIALIZER;

void fmm_join_begin(void) { pthread_mutex_lock(&joining); }
void fmm_join_end(void) { pthread_mutex_unlock(&joining); }
