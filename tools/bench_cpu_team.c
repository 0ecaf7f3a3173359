/* One team of bench-cpu: its plan and its evaluations (bench_cpu_team.h). */
#include "tools/bench_cpu_team.h"

#include <math.h>
#include <string.h>

#include "runtime/memory.h"

static fmm_status execute_as(fmm_bench_team *t, int run) {
  fmm_plan_info info = {.struct_size = sizeof info};
  FMM_TRY(fmm_plan_execute(t->plan, t->what->density, t->potential, t->gradient));
  FMM_TRY(fmm_plan_get_info(t->plan, &info));
  t->total_s[run] = t->around_s[run] = info.last_evaluation_s;
  for (int p = 0; p < FMM_N_PHASES; p++) t->phase_s[p][run] = info.phase_measured_s[p], t->around_s[run] -= info.phase_measured_s[p];
  return FMM_OK;
}

fmm_status fmm_bench_team_execute_alone(fmm_bench_team *team) { return execute_as(team, 0); }

fmm_status fmm_bench_team_begin(fmm_bench_team *team, const fmm_options *options, int threads) {
  fmm_options own = *options;
  own.threads = threads;
  FMM_TRY(fmm_plan_create(&team->plan, &own));
  team->threads = team->plan->threads;
  FMM_TRY(fmm_plan_set_points(team->plan, team->what->n, team->what->points, NULL, 0, NULL));
  return execute_as(team, 0);
}

typedef fmm_status giving(fmm_plan *plan, int64_t n_sources, const double *sources, const double *normals, int64_t n_targets, const double *targets);

/* Moves points and gives them to the plan, so often: the seconds of each time. */
static fmm_status give_moved(fmm_bench_team *team, giving *give, double *x, int moves, double *seconds) {
  const int64_t n = team->what->n;
  for (int k = 0; k < moves; k++) {
    for (int64_t i = 0; i < 3 * n; i++) x[i] += 1e-3 * sin(1e4 * x[i] + k);
    const double begin = fmm_now_s();
    FMM_TRY(give(team->plan, n, x, NULL, 0, NULL));
    seconds[k] = fmm_now_s() - begin;
  }
  return FMM_OK;
}

fmm_status fmm_bench_team_move(fmm_bench_team *team, int moves) {
  const int64_t n = team->what->n;
  double *x = NULL;
  FMM_TRY(FMM_ALLOCATE(&x, 3 * n, "points that move"));
  memcpy(x, team->what->points, 3 * sizeof *x * (size_t)n);
  fmm_status status = give_moved(team, fmm_plan_move_points, x, moves, team->moved_s);
  if (status == FMM_OK) status = give_moved(team, fmm_plan_set_points, x, moves, team->set_s);
  if (status == FMM_OK) team->moves = moves;
  FMM_FREE(&x);
  return status;
}

fmm_pair_sum fmm_bench_team_sum(const fmm_bench_team *team) {
  const fmm_state *state = &team->plan->setup->state;
  fmm_pair_sum sum;
  fmm_pair_sum_prepare(&sum, state->pair, state->params, 1, state->gradient, state->precision[FMM_PHASE_ULIST], state->tolerance);
  fmm_pair_sum_allow_coarse(&sum);
  return sum;
}

fmm_status fmm_bench_team_time_kernels(const fmm_bench_team *team, int both, double seconds, fmm_pair_rate *rate) {
  fmm_pair_sum sum = fmm_bench_team_sum(team);
  fmm_plan_bind(team->plan, team->what->n, team->what->n);
  fmm_status status = fmm_bench_pair_rate(&sum, both, team->rates, team->threads, seconds, rate);
  fmm_binding_end(team->plan->binding);
  return status;
}

/* After a team of another size OpenMP may start threads anew (libgomp does); that is no part of an evaluation. */
static void wake(int threads) {
#pragma omp parallel num_threads(threads)
  {
#pragma omp barrier
  }
}

static fmm_status time_taken_kernels(const fmm_bench_team *team, fmm_pair_rate *rate) {
  const double seconds = 0.004; /* long against waking threads, short against an evaluation */
  fmm_pair_sum sum = fmm_bench_team_sum(team);
  return fmm_bench_team_time_kernels(team, fmm_pair_sum_prefers_both(&sum), seconds, rate);
}

fmm_status fmm_bench_team_execute(fmm_bench_team *team) {
  int run = team->runs;
  fmm_pair_rate before = {0}, after = {0};
  wake(team->threads);
  if (team->rates) FMM_TRY(time_taken_kernels(team, &before));
  FMM_TRY(execute_as(team, run));
  if (team->rates) FMM_TRY(time_taken_kernels(team, &after));
  team->u_rate[run] = team->plan->setup->counts.total[FMM_PHASE_ULIST].pairs / team->phase_s[FMM_PHASE_ULIST][run];
  team->cache_rate[run] = 0.5 * (before.middle + after.middle);
  team->of_cache[run] = team->u_rate[run] / team->cache_rate[run];
  team->runs++;
  return FMM_OK;
}
