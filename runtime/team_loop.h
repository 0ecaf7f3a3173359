/* Loops over boxes or points that a team of threads shares. A body is called for pieces that lie beside one another and make up the whole; how many depends on the number of threads, so no result may
 * depend on them. A loop inside a body of another, as in a job (jobs.h), is shared by the same team, so that loops of several jobs fill it together: threads without work take pieces of any of them, in
 * a tenth of a microsecond each; `threads` tells only how many pieces there are then, and 1 that it is not shared. Elsewhere (also in a parallel region of the library's caller) a loop of several pieces starts a team of its own.
 * A thread that waits for the pieces that others have of its loop takes pieces of other loops meanwhile: what a body keeps for its thread must not be in use across a loop inside it. */
#ifndef FMM_TEAM_LOOP_H
#define FMM_TEAM_LOOP_H
#include <stdint.h>

typedef void fmm_loop_body(void *context, int64_t begin, int64_t end);

/* [0, n) in pieces of at least `least` (but for the last); returns when all are done. */
void fmm_team_loop(int64_t n, int64_t least, fmm_loop_body *body, void *context, int threads);
/* The same in more and smaller pieces, for items of very different work. */
void fmm_team_loop_uneven(int64_t n, int64_t least, fmm_loop_body *body, void *context, int threads);
/* The same one by one, in about their order: few long items, of which one thread should not have two beside an idle one. Inside a team `threads` does not matter; elsewhere there is a team even for one item,
 * and of one thread if that is asked for, and then loops inside are not shared. */
void fmm_team_loop_each(int64_t n, fmm_loop_body *body, void *context, int threads);

/* How many threads share loops with the calling one: 1 outside of loops and jobs, and where these have one thread. */
int fmm_team_size(void);

/* Around what joins the results of pieces, for moments: one lock of this library's own. (All unnamed critical sections of a process share one, which a caller may hold.) */
void fmm_join_begin(void);
void fmm_join_end(void);
#endif
