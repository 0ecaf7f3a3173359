/* Times one standard case on CPU cores and prints one JSON object a line: what the CPU's speed goals are measured with.
 * bench-cpu KEY=VALUE ...: dist, n, densities, seed, digits or tolerance, gradient, kernel, order, leaf, root, executions, precision (auto|double|mixed|single),
 * schedule, threads, runs, samples (error against direct sums there), profile. Zero or auto: the library chooses.
 *   threads=T,T,... several numbers of threads: one plan and one line each. Every plan evaluates once a turn, each turn beginning with another; the lines after the
 *               first have the efficiency against the first number, of the whole and of each phase: ratios are of times of one turn. With rates=, of U's kernels
 *               in cache too, which nothing but the machine's cores limits.
 *   rates=LEAF  adds the rates of U's kernels with leaves of so many points in cache (bench_pair_rates.h). As rates grow with leaves, take what is nearest to
 *               the tree's own, points_per_leaf. They are timed before and after every timed evaluation too, by as many threads: of_cache is the evaluation's
 *               rate of U over the mean of those two, which a machine whose speed changes within seconds hardly moves.
 *   moves=K     at the end, in a line of its own for each team: moves the case's points K times by up to a thousandth of the unit and gives them to the plan by fmm_plan_move_points, as
 *               a simulation in steps does, then K times more by fmm_plan_set_points
 *   brought=0   points are sorted by the host and sent to a GPU after tree and lists, as few points are (runtime/gpu_rows.h)
 *   write=FILE  puts the case there, for programs to compare with; read=FILE takes it from there, direct sums included (bench_cpu_case.h)
 *   serve=1     after the warm-up prints the line and then executes once for every line of standard input, printing its seconds: two programs
 *               are raced by asking them in turns. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/gpu_rows.h"
#include "tools/bench_cpu_report.h"
#include "tools/bench_options.h"
#include "tools/blas_threads.h"

enum { MOST_TEAMS = 16 };

typedef struct bench {
  fmm_bench_case what;
  fmm_options options;
  int runs, serve, rates, moves, n_teams, threads[MOST_TEAMS];
  double *potential, *gradient;
  fmm_bench_team team[MOST_TEAMS];
} bench;

static double number_of(int argc, char **argv, const char *key, double otherwise) {
  const char *text = fmm_bench_value(argc, argv, key, NULL);
  return text ? atof(text) : otherwise;
}
/* Index of the key's value among names, the first of which is the default. */
static int choice_of(int argc, char **argv, const char *key, const char *const *names) {
  const char *text = fmm_bench_value(argc, argv, key, names[0]);
  for (int i = 0; names[i]; i++)
    if (!strcmp(text, names[i])) return i;
  fprintf(stderr, "bench-cpu: %s=%s is not known; %s is taken\n", key, text, names[0]);
  return 0;
}

/* "1,2,4" */
static fmm_status read_threads(bench *b, const char *text) {
  for (const char *rest = text; b->n_teams == 0 || *rest++ == ',';) {
    char *end;
    long threads = strtol(rest, &end, 10);
    if (end == rest || threads < 0 || threads > 100000 || b->n_teams == MOST_TEAMS || (*end && *end != ','))
      return FMM_FAIL(FMM_ERR_ARGUMENT, "threads=%s is no list of numbers of threads, %d at most", text, MOST_TEAMS);
    b->threads[b->n_teams++] = (int)threads;
    rest = end;
  }
  return FMM_OK;
}

static void read_case(fmm_bench_case *c, int argc, char **argv) {
  c->dist = fmm_bench_value(argc, argv, "dist", "uniform");
  c->densities = fmm_bench_value(argc, argv, "densities", "signed");
  c->read = fmm_bench_value(argc, argv, "read", NULL);
  c->write = fmm_bench_value(argc, argv, "write", NULL);
  c->n = (int64_t)number_of(argc, argv, "n", 100000);
  c->samples = (int64_t)number_of(argc, argv, "samples", 1000);
}

static fmm_status read_options(fmm_options *o, int argc, char **argv) {
  static const char *const precisions[] = {"auto", "double", "mixed", "single", NULL};
  static const char *const schedules[] = {"cpu", "auto", NULL};
  FMM_TRY(fmm_options_init(o));
  o->densities_spread = 1; /* random ones, generated or written by this program */
  o->kernel = fmm_bench_value(argc, argv, "kernel", "laplace");
  o->tolerance = number_of(argc, argv, "tolerance", pow(10, -number_of(argc, argv, "digits", 6)));
  o->gradient = number_of(argc, argv, "gradient", 0) != 0;
  o->order = (int)number_of(argc, argv, "order", 0);
  o->leaf_size = (int)number_of(argc, argv, "leaf", 0);
  o->root_scale = number_of(argc, argv, "root", 0);
  o->executions = number_of(argc, argv, "executions", 0);
  o->precision = (fmm_precision)choice_of(argc, argv, "precision", precisions);
  o->schedule = choice_of(argc, argv, "schedule", schedules) ? FMM_SCHEDULE_AUTO : FMM_SCHEDULE_CPU;
  o->profile_path = fmm_bench_value(argc, argv, "profile", NULL);
  o->scale = 1; /* plain sums, as in the case file */
  return FMM_OK;
}

static fmm_status read_bench(bench *b, int argc, char **argv) {
  FMM_TRY(read_options(&b->options, argc, argv));
  FMM_TRY(read_threads(b, fmm_bench_value(argc, argv, "threads", "0")));
  read_case(&b->what, argc, argv);
  b->runs = (int)fmin(number_of(argc, argv, "runs", 5), FMM_BENCH_MOST_RUNS);
  b->serve = number_of(argc, argv, "serve", 0) != 0;
  b->rates = (int)number_of(argc, argv, "rates", 0);
  if (number_of(argc, argv, "brought", 1) == 0) fmm_gpu_rows_allow(0);
  b->moves = (int)fmin(number_of(argc, argv, "moves", 0), FMM_BENCH_MOST_RUNS);
  FMM_TRY(fmm_pair_info_find(b->options.kernel, &b->what.pair));
  const char *file = b->what.read ? b->what.read : b->what.write;
  if (file && b->what.pair->components > 1)
    return FMM_FAIL(FMM_ERR_ARGUMENT, "%s holds one density a point and kernel %s takes %d: leave out read= and write=, or take a kernel of one component", file, b->options.kernel, b->what.pair->components);
  if (b->rates && b->options.schedule != FMM_SCHEDULE_CPU) return FMM_FAIL(FMM_ERR_ARGUMENT, "rates=%d are of CPU cores and of U there: leave out schedule=auto or rates=", b->rates);
  if (b->serve && b->n_teams > 1) return FMM_FAIL(FMM_ERR_ARGUMENT, "serve=1 serves one number of threads, not %d", b->n_teams);
  return FMM_OK;
}

/* A ratio of times is an efficiency only where the same is computed. */
static fmm_status begin_team(bench *b, int k) {
  fmm_bench_team *team = &b->team[k];
  team->what = &b->what, team->potential = b->potential, team->gradient = b->gradient, team->rates = b->rates;
  FMM_TRY(fmm_bench_team_begin(team, &b->options, b->threads[k]));
  const char *id = team->plan->setup->info.plan_id, *first = b->team[0].plan->setup->info.plan_id;
  return strcmp(id, first) ? FMM_FAIL(FMM_ERR_INTERNAL, "%d threads made plan %s and %d made %s", team->threads, id, b->team[0].threads, first) : FMM_OK;
}

static fmm_status measure(bench *b) {
  int64_t results = b->what.n * b->what.pair->outputs;
  FMM_TRY(FMM_ALLOCATE(&b->potential, results, "potentials"));
  if (b->options.gradient) FMM_TRY(FMM_ALLOCATE(&b->gradient, 3 * results, "gradients"));
  for (int k = 0; k < b->n_teams; k++) FMM_TRY(begin_team(b, k));
  for (int run = 0; run < b->runs && !b->serve; run++)
    for (int k = 0; k < b->n_teams; k++) FMM_TRY(fmm_bench_team_execute(&b->team[(run + k) % b->n_teams]));
  for (int k = 0; k < b->n_teams; k++) FMM_TRY(fmm_bench_report(&b->team[k], k ? &b->team[0] : NULL, &b->options));
  for (int k = 0; k < b->n_teams && b->moves > 0; k++) {
    FMM_TRY(fmm_bench_team_move(&b->team[k], b->moves));
    FMM_TRY(fmm_bench_report_moves(&b->team[k]));
  }
  return FMM_OK;
}

static fmm_status serve(bench *b) {
  char line[64];
  while (fgets(line, sizeof line, stdin)) {
    FMM_TRY(fmm_bench_team_execute_alone(&b->team[0]));
    printf("%.6f\n", b->team[0].total_s[0]);
    fflush(stdout);
  }
  return FMM_OK;
}

int main(int argc, char **argv) {
  static bench b;
  fmm_blas_threads_end();
  fmm_status status = read_bench(&b, argc, argv);
  if (status == FMM_OK) status = fmm_bench_case_obtain(&b.what, (uint64_t)number_of(argc, argv, "seed", 1));
  if (status == FMM_OK) status = measure(&b);
  if (status == FMM_OK && b.serve) status = serve(&b);
  if (status != FMM_OK) fprintf(stderr, "bench-cpu: %s: %s (%s)\n", fmm_status_name(status), fmm_last_error(), fmm_last_error_where());
  for (int k = 0; k < b.n_teams; k++) fmm_plan_destroy(&b.team[k].plan);
  fmm_bench_case_free(&b.what);
  FMM_FREE(&b.potential);
  FMM_FREE(&b.gradient);
  return status == FMM_OK ? 0 : fmm_status_exit_code(status);
}
