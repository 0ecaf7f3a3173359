/* Pieces of loops, and the board on which a team finds them (team_loop.h). A thread that has a loop puts it up and takes piece after piece, as does any other that has nothing else to do, until none is left; then
 * it waits for those that others still have. libgomp's tasks do the same behind one lock: with 16 threads and pieces of some microseconds three to four times as long
 * (docs/notes-cpu-trials.md, "Loops that a team shares").
 *
 * Who looks at a loop that is up holds it by its place's guard until a piece is claimed or none is left: the owner returns, and the loop with its stack, only when nobody looks and `left` pieces are none. What
 * a thread has claimed it takes off `left` at once when it claims no more, and looks at the loop no longer. Waiting cannot go round in a circle: whom one waits for began its piece later than one's own loop was put up. */
#include "team_loop.h"

#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>

#include "idle.h"

#ifndef FMM_LOOKED
#define FMM_LOOKED() ((void)0) /* a test lets time go by there */
#endif

/* Pieces a thread; no two threads are of one speed. Loops that find no place among those of their kind are their owner's alone. */
enum { EVEN = 4, UNEVEN = 32, PLACES = 32 /* of a kind */, SHORT = 0, LONG = 1 /* what one piece takes */, KINDS = 2, LINE = 64 /* bytes of memory that threads take from one another */, LOOKS = 256 /* before another loop's piece is taken */ };

typedef struct loop { int64_t n, size, pieces; fmm_loop_body *body; void *context; int kind; _Alignas(LINE) _Atomic int64_t next; _Atomic int64_t left; } loop;
typedef struct place { _Alignas(LINE) _Atomic(loop *) loop; atomic_int guard; } place;
/* up: loops that are, or some that a thread is about to put up or has just taken down. */
typedef struct board { place place[PLACES]; _Alignas(LINE) atomic_int up; } board;
typedef struct team { board board[KINDS]; int threads; _Alignas(LINE) atomic_int ends; } team;

static _Thread_local team *own_team;

int fmm_team_size(void) { return own_team ? own_team->threads : 1; }

static void run_piece(const loop *l, int64_t piece) {
  const int64_t begin = piece * l->size, end = begin + l->size;
  l->body(l->context, begin, end < l->n ? end : l->n);
}

static void take_down(team *t, place *p, loop *l) {
  loop *expected = l;
  if (atomic_compare_exchange_strong(&p->loop, &expected, NULL)) atomic_fetch_sub(&t->board[l->kind].up, 1);
}

/* From a piece that is claimed on, at most so many. */
static void run_from(team *t, place *p, loop *l, int64_t piece, int64_t most) {
  int64_t done = 0;
  for (;;) {
    run_piece(l, piece);
    if (++done == most) break;
    piece = atomic_fetch_add(&l->next, 1);
    if (piece < l->pieces) continue;
    take_down(t, p, l);
    break;
  }
  atomic_fetch_sub(&l->left, done);
}

/* Pieces of the first loop of a kind that has some, at most so many; 0: there is none. */
static int help_with(team *t, int kind, int64_t most) {
  board *b = &t->board[kind];
  if (!atomic_load_explicit(&b->up, memory_order_relaxed)) return 0;
  for (place *p = b->place; p < b->place + PLACES; p++) {
    if (!atomic_load_explicit(&p->loop, memory_order_relaxed)) continue;
    atomic_fetch_add(&p->guard, 1);
    loop *l = atomic_load(&p->loop);
    FMM_LOOKED();
    const int64_t piece = l ? atomic_fetch_add(&l->next, 1) : 0;
    const int is_claimed = l && piece < l->pieces;
    if (l && !is_claimed) take_down(t, p, l);
    atomic_fetch_sub(&p->guard, 1);
    if (is_claimed) return run_from(t, p, l, piece, most), 1;
  }
  return 0;
}

/* Short ones first, which others wait for. */
static int help(team *t) { return help_with(t, SHORT, INT64_MAX) || help_with(t, LONG, INT64_MAX); }

/* Where nobody looks any more: who was there waits for that. */
static place *put_up(team *t, loop *l) {
  board *b = &t->board[l->kind];
  for (place *p = b->place; p < b->place + PLACES; p++) {
    loop *none = NULL;
    if (atomic_load_explicit(&p->loop, memory_order_relaxed) || atomic_load_explicit(&p->guard, memory_order_relaxed)) continue;
    if (atomic_compare_exchange_strong(&p->loop, &none, l)) return atomic_fetch_add(&b->up, 1), p;
  }
  return NULL;
}

static void wait_for(team *t, const place *p, const loop *l) {
  fmm_idle idle = {0};
  while (atomic_load(&p->guard)) fmm_idle_rest(&idle);
  while (atomic_load(&l->left) > 0)
    if (idle.looks >= LOOKS && help_with(t, SHORT, 1)) idle = (fmm_idle){0}; /* a long piece may take longer than what it waits for */
    else fmm_idle_rest(&idle);
}

static void share(team *t, loop *l) {
  place *p = put_up(t, l);
  if (!p) {
    for (int64_t piece = 0; piece < l->pieces; piece++) run_piece(l, piece);
    return;
  }
  const int64_t piece = atomic_fetch_add(&l->next, 1);
  if (piece < l->pieces) run_from(t, p, l, piece, INT64_MAX);
  else take_down(t, p, l);
  wait_for(t, p, l);
}

/* By a team of its own, of which the calling thread is the first. Of one thread, loops inside are its alone, whatever they ask for. */
static void share_in_new_team(loop *l, int threads) {
  team t = {.threads = threads};
  if (threads == 1) {
    own_team = &t;
    for (int64_t piece = 0; piece < l->pieces; piece++) run_piece(l, piece);
    own_team = NULL;
    return;
  }
#pragma omp parallel num_threads(threads)
  {
    fmm_idle idle = {0};
    own_team = &t;
    if (omp_get_thread_num() == 0) share(&t, l), atomic_store(&t.ends, 1);
    else
      while (!atomic_load(&t.ends))
        if (help(&t)) idle = (fmm_idle){0};
        else fmm_idle_rest(&idle);
    own_team = NULL;
  }
}

static void run_pieces(int64_t n, int64_t size, int kind, fmm_loop_body *body, void *context, int threads) {
  loop l = {.n = n, .size = size, .pieces = (n + size - 1) / size, .body = body, .context = context, .kind = kind};
  atomic_init(&l.left, l.pieces);
  if (own_team) share(own_team, &l);
  else share_in_new_team(&l, threads);
}

static void run_loop(int64_t n, int64_t size, fmm_loop_body *body, void *context, int threads) {
  if (n <= 0) return;
  if (threads <= 1 || size >= n || (own_team && own_team->threads == 1)) body(context, 0, n);
  else run_pieces(n, size, SHORT, body, context, threads);
}

static int64_t size_of_piece(int64_t n, int64_t least, int pieces_a_thread, int threads) {
  const int64_t share = n / (pieces_a_thread * (int64_t)(threads > 1 ? threads : 1)) + 1;
  return share > least ? share : least;
}

void fmm_team_loop(int64_t n, int64_t least, fmm_loop_body *body, void *context, int threads) { run_loop(n, size_of_piece(n, least, EVEN, threads), body, context, threads); }

void fmm_team_loop_uneven(int64_t n, int64_t least, fmm_loop_body *body, void *context, int threads) { run_loop(n, size_of_piece(n, least, UNEVEN, threads), body, context, threads); }

void fmm_team_loop_each(int64_t n, fmm_loop_body *body, void *context, int threads) {
  if (n <= 0) return;
  if (own_team && (n == 1 || own_team->threads == 1)) body(context, 0, n);
  else run_pieces(n, 1, LONG, body, context, threads > 1 ? threads : 1);
}

static pthread_mutex_t joining = PTHREAD_MUTEX_INITIALIZER;

void fmm_join_begin(void) { pthread_mutex_lock(&joining); }
void fmm_join_end(void) { pthread_mutex_unlock(&joining); }
