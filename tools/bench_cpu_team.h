/* One team of bench-cpu: a plan for a number of threads with the times of its evaluations, each between two timings of U's kernels in cache. Several teams
 * evaluate in turns, so that what changes on the machine meets all of them and the ratios of a turn say how an evaluation scales. */
#ifndef FMM_BENCH_CPU_TEAM_H
#define FMM_BENCH_CPU_TEAM_H
#include "runtime/plan.h"
#include "tools/bench_cpu_case.h"
#include "tools/bench_pair_rates.h"

enum { FMM_BENCH_MOST_RUNS = 101 };

typedef struct fmm_bench_team {
  const fmm_bench_case *what;
  double *potential, *gradient; /* results, which teams share: those of the latest evaluation */
  int rates;                    /* leaf of the timings of kernels; 0: none */
  fmm_plan *plan;
  int threads, runs;            /* runs: evaluations timed so far */
  /* By evaluation, in order: seconds of the whole, of the phases, of gathering, checking and scattering around them; interactions of U a second, those of its
   * kernels in cache (mean of before and after), and the former over the latter. */
  double total_s[FMM_BENCH_MOST_RUNS], phase_s[FMM_N_PHASES][FMM_BENCH_MOST_RUNS], around_s[FMM_BENCH_MOST_RUNS];
  int moves;
  double moved_s[FMM_BENCH_MOST_RUNS], set_s[FMM_BENCH_MOST_RUNS]; /* seconds of fmm_plan_move_points and of fmm_plan_set_points, each of points that moved on */
  double u_rate[FMM_BENCH_MOST_RUNS], cache_rate[FMM_BENCH_MOST_RUNS], of_cache[FMM_BENCH_MOST_RUNS];
} fmm_bench_team;

/* Plan, set-up and a warm-up, whose times stand as those of run 0 until one is timed. The team's first three fields are given; destroy the plan in any case. */
fmm_status fmm_bench_team_begin(fmm_bench_team *team, const fmm_options *options, int threads);
/* One more timed evaluation, at most FMM_BENCH_MOST_RUNS. */
fmm_status fmm_bench_team_execute(fmm_bench_team *team);
/* One whose times take the place of run 0's, without timings of kernels. */
fmm_status fmm_bench_team_execute_alone(fmm_bench_team *team);
/* Moves the case's points so many times by up to a thousandth of their unit, at most FMM_BENCH_MOST_RUNS times, and gives them to the plan by fmm_plan_move_points, then as often on by fmm_plan_set_points. */
fmm_status fmm_bench_team_move(fmm_bench_team *team, int moves);

/* As the U list prepares its sums. */
fmm_pair_sum fmm_bench_team_sum(const fmm_bench_team *team);
/* Of U's kernels in cache, by the evaluation's threads, bound as there. */
fmm_status fmm_bench_team_time_kernels(const fmm_bench_team *team, int both, double seconds, fmm_pair_rate *rate);
#endif
