/* What a thread does between looks at what it waits for: at first next to nothing, then it gives its core to others that wait for one, at last it sleeps, longer and longer. OMP_WAIT_POLICY does not matter here. */
#ifndef FMM_IDLE_H
#define FMM_IDLE_H
#include <sched.h>
#include <time.h>

#ifdef __x86_64__
#include <immintrin.h>
#define FMM_PAUSE() _mm_pause()
#else
#define FMM_PAUSE() ((void)0)
#endif

typedef struct fmm_idle { int looks; } fmm_idle;

static inline void fmm_idle_rest(fmm_idle *idle) {
  enum { pauses = 1 << 12 /* a tenth of a millisecond, or a few */, yields = 1 << 13 /* these take some two milliseconds where nobody else wants the core */, nap = 50000 /* ns */, naps = 20 /* the last is of a millisecond */ };
  if (idle->looks < pauses) FMM_PAUSE();
  else if (idle->looks < yields) sched_yield();
  else {
    const struct timespec time = {0, (idle->looks - yields + 1) * nap};
    nanosleep(&time, NULL);
  }
  if (idle->looks < yields + naps - 1) idle->looks++;
}
#endif
