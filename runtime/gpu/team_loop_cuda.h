/* Loops of the host's tables, inside jobs (runtime/jobs.h): what is done for each item, in pieces of at least `least` that the jobs' team shares (runtime/team_loop.h). */
#ifndef FMM_TEAM_LOOP_CUDA_H
#define FMM_TEAM_LOOP_CUDA_H
extern "C" {
#include "runtime/team_loop.h"
}

template <typename F>
void fmm_cuda_for_each(int64_t n, int64_t least, const F &item) {
  fmm_team_loop_uneven(
      n, least,
      [](void *context, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) (*(const F *)context)(i);
      },
      (void *)&item, fmm_team_size());
}
#endif
