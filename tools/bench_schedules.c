/* How good the choice of the schedule is: for each case, every named schedule with a tree tuned for it, and auto; all timed in turn (one execution each,
 * round after round, each round beginning with another, so that neighbours and drifts hit all alike), medians, and the regret: time of auto's plan over that
 * of the best, minus 1; 0 when the best is the very plan that auto made (same plan_id).
 * bench-schedules KEY=VALUE ...: sms (multiprocessors, 0: all), rounds, profile, threads, only (a number of the list below, from 0), phases (1: the phases'
 * predicted and measured times too, the latter medians).
 * The profile is the one of fmm-calibrate; predicted times come from it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/generate.h"
#include "runtime/gpu.h"
#include "runtime/memory.h"
#include "runtime/trace.h"
#include "tools/bench_options.h"

enum { N_PLANS = 6, MOST_ROUNDS = 25 };
static const char *const names[N_PLANS] = {"auto", "cpu", "gpu", "hybrid1", "hybrid2", "hybrid3"};
static const fmm_schedule_kind kinds[N_PLANS] = {FMM_SCHEDULE_AUTO, FMM_SCHEDULE_CPU, FMM_SCHEDULE_GPU, FMM_SCHEDULE_HYBRID1, FMM_SCHEDULE_HYBRID2, FMM_SCHEDULE_HYBRID3};

typedef struct standard_case { const char *distribution, *densities; int64_t n; int digits, gradient; } standard_case;
static const standard_case cases[] = {
    {"uniform", "unit", 20000, 6, 0},   {"uniform", "unit", 200000, 6, 0},  {"ellipsoid", "unit", 200000, 6, 0}, {"plummer", "signed", 200000, 3, 0},
    {"uniform", "unit", 200000, 9, 0},  {"uniform", "unit", 1000000, 6, 0}, {"ellipsoid", "unit", 1000000, 6, 0},
};
enum { N_CASES = sizeof cases / sizeof *cases };

typedef struct contest {
  const standard_case *what;
  int sms, rounds, threads, phases;
  const char *profile;
  double *points, *densities, *potential, *gradient;
  fmm_plan *plan[N_PLANS];
  fmm_plan_info info[N_PLANS];
  double seconds[N_PLANS][MOST_ROUNDS], phase_s[N_PLANS][FMM_N_PHASES][MOST_ROUNDS];
} contest;

static fmm_status make_case(contest *c) {
  int64_t n = c->what->n;
  FMM_TRY(FMM_ALLOCATE(&c->points, 3 * n, "points"));
  FMM_TRY(FMM_ALLOCATE(&c->densities, n, "densities"));
  FMM_TRY(FMM_ALLOCATE(&c->potential, n, "potentials"));
  FMM_TRY(FMM_ALLOCATE(&c->gradient, 3 * n, "gradients"));
  FMM_TRY(fmm_generate_points(c->what->distribution, n, 1, c->points, c->threads));
  return fmm_generate_densities(c->what->densities, n, 2, c->densities, c->threads);
}

static fmm_status make_plan(contest *c, int k) {
  fmm_options o;
  FMM_TRY(fmm_options_init(&o));
  o.densities_spread = 1;
  o.tolerance = pow(10, -c->what->digits), o.gradient = c->what->gradient, o.schedule = kinds[k], o.gpu_sms = c->sms, o.threads = c->threads, o.profile_path = c->profile;
  o.density_sign = strcmp(c->what->densities, "unit") ? FMM_DENSITY_SIGNED : FMM_DENSITY_NONNEGATIVE;
  FMM_TRY(fmm_plan_create(&c->plan[k], &o));
  FMM_TRY(fmm_plan_set_points(c->plan[k], c->what->n, c->points, NULL, 0, NULL));
  c->info[k].struct_size = sizeof c->info[k];
  return fmm_plan_get_info(c->plan[k], &c->info[k]);
}

static fmm_status execute(contest *c, int k, int round) {
  double begin = fmm_now_s();
  FMM_TRY(fmm_plan_execute(c->plan[k], c->densities, c->potential, c->what->gradient ? c->gradient : NULL));
  c->seconds[k][round] = fmm_now_s() - begin;
  FMM_TRY(fmm_plan_get_info(c->plan[k], &c->info[k]));
  for (int phase = 0; phase < FMM_N_PHASES; phase++) c->phase_s[k][phase][round] = c->info[k].phase_measured_s[phase];
  return FMM_OK;
}

static void print_phases(contest *c, int k) {
  static const char *const phases[FMM_N_PHASES] = {"up", "u", "v", "w", "x", "down"};
  printf("          ");
  for (int phase = 0; phase < FMM_N_PHASES; phase++)
    printf(" %s %s %.3f/%.3f", phases[phase], c->info[k].device[phase] == FMM_DEVICE_GPU ? "gpu" : "cpu", 1e3 * c->info[k].phase_predicted_s[phase],
           1e3 * fmm_bench_median(c->rounds, c->phase_s[k][phase]));
  printf("\n");
}

static const char *chosen(fmm_schedule_kind kind) {
  static char text[32];
  for (int k = 1; k < N_PLANS; k++)
    if (kinds[k] == kind) snprintf(text, sizeof text, "  chose %s", names[k]);
  return text;
}

static void print(contest *c, double *regret) {
  double best = INFINITY, own = INFINITY, time[N_PLANS];
  for (int k = 0; k < N_PLANS; k++) {
    time[k] = fmm_bench_median(c->rounds, c->seconds[k]);
    best = fmin(best, time[k]);
    if (!strcmp(c->info[k].plan_id, c->info[0].plan_id)) own = fmin(own, time[k]); /* auto's own time, and that of the same plan asked for by name */
  }
  *regret = own / best - 1;
  printf("%s, %lld points, %s, %d digits, %d multiprocessors: regret %.0f %%\n", c->what->distribution, (long long)c->what->n, c->what->densities, c->what->digits,
         c->info[2].gpu_sms, 100 * *regret);
  for (int k = 0; k < N_PLANS; k++) {
    printf("  %-8s leaf %5d root %.3f  predicted %9.3f ms  measured %9.3f ms%s%s\n", names[k], c->info[k].leaf_size, c->info[k].root_scale, 1e3 * c->info[k].predicted_s,
           1e3 * time[k], time[k] == best ? "  best" : "", k == 0 ? chosen(c->info[0].schedule) : "");
    if (c->phases) print_phases(c, k);
  }
}

static fmm_status compete(contest *c, double *regret) {
  FMM_TRY(make_case(c));
  for (int k = 0; k < N_PLANS; k++) {
    FMM_TRY(make_plan(c, k));
    FMM_TRY(execute(c, k, 0)); /* to warm up; the first round takes its place */
  }
  for (int round = 0; round < c->rounds; round++)
    for (int i = 0, k = round % N_PLANS; i < N_PLANS; i++, k = (k + 1) % N_PLANS) FMM_TRY(execute(c, k, round));
  print(c, regret);
  return FMM_OK;
}

static void release(contest *c) {
  for (int k = 0; k < N_PLANS; k++) fmm_plan_destroy(&c->plan[k]);
  FMM_FREE(&c->points);
  FMM_FREE(&c->densities);
  FMM_FREE(&c->potential);
  FMM_FREE(&c->gradient);
}

int main(int argc, char **argv) {
  fmm_gpu_info info;
  fmm_gpu_query(0, &info);
  if (!info.present) return fprintf(stderr, "bench-schedules: %s\n", info.reason), 77;
  int only = atoi(fmm_bench_value(argc, argv, "only", "-1"));
  double worst = 0;
  fmm_status status = FMM_OK;
  for (int i = 0; i < N_CASES && status == FMM_OK; i++) {
    if (only >= 0 && i != only) continue;
    contest c = {.what = &cases[i], .sms = atoi(fmm_bench_value(argc, argv, "sms", "0")), .rounds = atoi(fmm_bench_value(argc, argv, "rounds", "12")),
                 .threads = atoi(fmm_bench_value(argc, argv, "threads", "0")), .phases = atoi(fmm_bench_value(argc, argv, "phases", "0")), .profile = fmm_bench_value(argc, argv, "profile", NULL)};
    double regret = 0;
    if (c.rounds < 1 || c.rounds > MOST_ROUNDS) c.rounds = 12;
    status = compete(&c, &regret);
    worst = fmax(worst, regret);
    release(&c);
  }
  if (status != FMM_OK) return fprintf(stderr, "bench-schedules: %s: %s\n", fmm_status_name(status), fmm_last_error()), fmm_status_exit_code(status);
  printf("largest regret %.0f %%\n", 100 * worst);
  return 0;
}
