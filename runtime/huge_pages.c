/* Huge pages make an evaluation of four million points 4 to 5 % faster and their first touch cheap. But a host that has taken free ones back from a virtual machine, or a system that has to compact its memory, takes ten times as
 * long, 3 to 9 ms for 2 MB: then small pages are cheaper, which the system has in store. It is told by the time that the first touches take (huge_pages.h). */
#include "huge_pages.h"

#include <stdatomic.h>
#include <sys/mman.h>

#include "trace.h"

/* Of many one may be late for other reasons; one of the first counts as two, and so is enough. */
enum { MANY = 16, FEW_LATE = 1 };
static const double remembered = 3; /* seconds after the last late one: as long as hosts mostly leave to a system what it has freed */
static atomic_int n_touched, n_late; /* huge pages, and those that were long in coming, since what was known before was forgotten */
static _Atomic double last_late;

static int are_dear(void) { return atomic_load(&n_late) > FEW_LATE; }

void fmm_huge_pages_forget(void) { atomic_store(&n_late, 0), atomic_store(&n_touched, 0); }

/* Late ones count for some seconds; when they have kept others from being asked for, the next are first ones again. */
static void forget_old(void) {
  if (!atomic_load(&n_late) || fmm_now_s() - atomic_load(&last_late) <= remembered) return;
  if (are_dear()) fmm_huge_pages_forget();
  else atomic_store(&n_late, 0);
}

/* Touches n places `step` apart, each thread of the team those that a static loop would give it, until pages are dear. */
static void touch(char *first, size_t n, size_t step, int threads) {
  const double soon = 1e-3 + 1e-4 * (threads < 20 ? threads : 20); /* 2 MB are cleared in 0.1 to 0.6 ms, by sixteen threads at once in 0.8 */
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
  for (size_t i = 0; i < n; i++) {
    if (are_dear()) continue;
    const double begin = fmm_now_s();
    *(volatile char *)(first + i * step) = 0;
    const double end = fmm_now_s();
    const int touched = atomic_fetch_add(&n_touched, 1);
    if (end - begin > soon) atomic_store(&last_late, end), atomic_fetch_add(&n_late, touched < MANY ? 2 : 1);
  }
}

/* A few, asked for one by one, before the others are; where many have come soon and none late, one. */
static void ask_few(char *first, size_t n) {
  const size_t most = atomic_load(&n_touched) >= MANY && !atomic_load(&n_late) ? 1 : 3;
  const size_t few = n < most ? n : most, step = n > 3 ? (n - 1) / 2 : 1;
  for (size_t i = 0; i < few && !are_dear(); i++) {
    char *one = first + i * step * FMM_HUGE_PAGE;
    madvise(one, FMM_HUGE_PAGE, MADV_HUGEPAGE);
    touch(one, 1, 0, 1);
  }
  if (!are_dear()) madvise(first, n * FMM_HUGE_PAGE, MADV_HUGEPAGE);
}

/* With a team all are touched: by one thread, one after the other, they were a third of a set-up on 16 cores. */
void fmm_huge_pages_ask(char *first, size_t bytes, int team, int is_mapped) {
  const size_t n = bytes / FMM_HUGE_PAGE;
  forget_old();
  if (!n || are_dear()) return;
  if (team) {
    madvise(first, bytes, MADV_HUGEPAGE);
    touch(first, n, FMM_HUGE_PAGE, n > 1 ? team : 1);
  } else {
    ask_few(first, n);
  }
  if (are_dear() && is_mapped) madvise(first, bytes, MADV_NOHUGEPAGE); /* but for those that are there; not in malloc's memory, whose later blocks are not ours to say */
}
