/* The tuner against a scan of its whole range, with few estimates and none twice. */
#include "test.h"
#include "machines.h"
#include "runtime/estimate.h"

static const fmm_precision_sets precisions = {1, {{FMM_PRECISION_DOUBLE, FMM_PRECISION_DOUBLE, FMM_PRECISION_DOUBLE,
                                                   FMM_PRECISION_DOUBLE, FMM_PRECISION_DOUBLE, FMM_PRECISION_DOUBLE}}};

/* Uniform points: the tree is as deep as fullest boxes need; with a root scale of s they fill a part 1/s of its edge. */
typedef struct uniform { double n; int order, calls; struct { int q; double s; } asked[200]; fmm_status fail; } uniform;

static fmm_status estimate_one(uniform *u, int leaf_size, double root_scale, fmm_counts *counts) {
  for (int i = 0; i < u->calls; i++)
    if (u->asked[i].q == leaf_size && u->asked[i].s == root_scale) fail_msg("asked twice for q = %d, scale %g", leaf_size, root_scale);
  u->asked[u->calls].q = leaf_size, u->asked[u->calls++].s = root_scale;
  if (u->fail != FMM_OK) return FMM_FAIL(u->fail, "no counts today");
  double fill = u->n * root_scale * root_scale * root_scale; /* as many points would fill the whole root */
  int depth = 0;
  while (depth < 8 && fill > leaf_size * exp2(3 * depth)) depth++;
  *counts = full_tree(fill, depth, u->order ? u->order : 6);
  double part = 1 / (root_scale * root_scale * root_scale);
  for (int p = 0; p < FMM_N_WORKS; p++)
    for (int l = 0; l < FMM_MAX_LEVELS; l++) {
      fmm_work *w = &counts->level[p][l];
      w->pairs *= part, w->flops *= part, w->bytes *= part, w->entries *= part;
    }
  counts->n_sources = counts->n_targets = (int64_t)u->n;
  fmm_counts_add_up(counts);
  return FMM_OK;
}

static fmm_status estimate(void *context, int n, const fmm_tree_options *choice, fmm_counts *counts) {
  assert_in_range(n, 1, FMM_ESTIMATES_AT_ONCE);
  for (int i = 0; i < n; i++) FMM_TRY(estimate_one(context, choice[i].leaf_size, choice[i].root_scale, &counts[i]));
  return FMM_OK;
}

static double seconds_of(const fmm_machine *m, double n, int q, double s) {
  uniform u = {.n = n};
  fmm_counts c;
  fmm_cost_table t;
  fmm_assignment a;
  fmm_makespan makespan;
  assert_ok(estimate_one(&u, q, s, &c));
  fmm_cost_table_make(m, &c, &fmm_info_laplace, &t);
  assert_ok(fmm_schedule_choose(&t, &precisions, FMM_SCHEDULE_AUTO, &a, &makespan));
  return makespan.seconds;
}

static void the_best_is_close_to_a_scan_of_everything(void **state) {
  const char *machines[] = {"cpu-2-cores", "xeon16-h200", "xeon16-h200-8sm"};
  int calls = 0, runs = 0;
  for (int i = 0; i < 3; i++)
    for (double n = 2e4; n < 2e7; n *= 2.3) {
      fmm_machine m = recorded_machine(machines[i]);
      uniform u = {.n = n};
      fmm_tuned best;
      double scan = INFINITY;
      assert_ok(fmm_tune(&m, &fmm_info_laplace, &precisions, FMM_SCHEDULE_AUTO, 0, 0, 3, NULL, estimate, &u, &best));
      assert_true(u.calls <= FMM_MAX_ESTIMATES && best.n_estimates == u.calls);
      calls += u.calls, runs++;
      for (double q = 16; q < 4096; q *= 1.1)
        for (double s = 1; s < 2; s *= 1.02) scan = fmin(scan, seconds_of(&m, n, (int)q, s));
      /* scales are tried by factors of 1.09, so pairs of a leaf by 1.3: some an eighth apart */
      if (!(best.makespan.seconds <= 1.08 * scan)) fail_msg("%s, %g points: %g s, a scan finds %g", machines[i], n, best.makespan.seconds, scan);
      assert_true(best.makespan.seconds == seconds_of(&m, n, best.leaf_size, best.root_scale));
    }
  assert_true(calls <= 12 * runs); /* the cost of set-up */
}

/* Even boxes of which twice the first leaf size happens to have half of the leaves, as spheres have them at some numbers of points: what is seen next tells. */
static fmm_status estimate_that_seems_smooth(void *context, int n, const fmm_tree_options *choice, fmm_counts *counts) {
  FMM_TRY(estimate(context, n, choice, counts));
  for (int i = 0; i < n; i++)
    if (choice[i].leaf_size == 256 && choice[i].root_scale == 1) {
      uniform first = {.n = ((const uniform *)context)->n};
      fmm_counts c;
      FMM_TRY(estimate_one(&first, 128, 1, &c));
      counts[i].n_leaves = c.n_leaves / 2;
    }
  return FMM_OK;
}

static void boxes_that_seem_uneven_by_chance_are_searched_as_even(void **state) {
  const fmm_machine m = recorded_machine("cpu-2-cores");
  const fmm_tune_effort of_2_cores = {0.0018, 0, NULL};
  for (double n = 3e5; n < 3e6; n *= 1.23) {
    uniform u = {.n = n};
    fmm_tuned best;
    double scan = INFINITY;
    assert_ok(fmm_tune(&m, &fmm_info_laplace, &precisions, FMM_SCHEDULE_CPU, 0, 0, 2, &of_2_cores, estimate_that_seems_smooth, &u, &best));
    for (double q = 16; q < 4096; q *= 1.1)
      for (double s = 1; s < 2; s *= 1.02) scan = fmin(scan, seconds_of(&m, n, (int)q, s));
    if (!(best.makespan.seconds <= 1.02 * scan)) fail_msg("%g points: %g s, a scan finds %g", n, best.makespan.seconds, scan); /* 1.31 as long where the first two trees alone tell */
  }
}

/* By what part the tuner's own choice of a schedule is slower than the best that it finds for one by name. */
static double over_the_best_by_name(const char *machine, int order, double n, const fmm_tune_effort *effort) {
  fmm_machine m = recorded_machine(machine);
  uniform u = {.n = n, .order = order};
  fmm_tuned best, named;
  double least = INFINITY;
  assert_ok(fmm_tune(&m, &fmm_info_laplace, &precisions, FMM_SCHEDULE_AUTO, 0, 0, 3, effort, estimate, &u, &best));
  for (int k = 0; fmm_schedules[k]; k++) {
    uniform own = {.n = n, .order = order};
    if (fmm_tune(&m, &fmm_info_laplace, &precisions, fmm_schedules[k]->kind, 0, 0, 3, effort, estimate, &own, &named) == FMM_OK) least = fmin(least, named.makespan.seconds);
  }
  return best.makespan.seconds / least - 1;
}

/* Of 78 cases each: the largest such part, and the mean. (One search over all schedules missed up to 10 %. A schedule that is half as slow again on every tree looked at is not followed; with a quarter that cost 2.5 % with
 * 77,159 points on the fourth machine.) */
static void check_choice_of_schedules(int n_machines, const char *const *machines, const fmm_tune_effort *effort, double largest, double mean) {
  for (int i = 0; i < n_machines; i++) {
    double sum = 0;
    int cases = 0;
    for (int order = 4; order <= 8; order += 2)
      for (double n = 2e4; n < 2e7; n *= 1.31) {
        const double over = over_the_best_by_name(machines[i], order, n, effort);
        sum += fmax(0, over), cases++;
        if (!(over <= largest)) fail_msg("%s, order %d, %g points: a schedule by name is faster by %g", machines[i], order, n, over);
      }
    if (!(sum <= mean * cases)) fail_msg("%s: schedules by name are faster by %g on average", machines[i], sum / cases);
  }
}

/* The same where estimates cost what they do on 16 cores: on the last two machines, where three schedules are about as fast, some cases of 20,000 to 230,000 points then miss what one by name finds after 13 to 26 estimates. */
static void what_is_chosen_is_as_good_as_the_best_schedule_by_name(void **state) {
  static const char *const machines[] = {"cpu-2-cores", "xeon16-h200", "xeon16-h200-8sm", "h200-8-of-132", "h200-8-by-moments", "h100-8-of-132"};
  static const fmm_tune_effort of_16_cores = {0.0013, 0, NULL};
  check_choice_of_schedules(6, machines, NULL, 0.001, 0.001);
  check_choice_of_schedules(4, machines, &of_16_cores, 0.001, 0.001);
  check_choice_of_schedules(2, machines + 4, &of_16_cores, 0.15, 0.0025);
}

/* Without a profile trees are chosen by nominal rates, on a GPU by measured ones and nominal constants: by what part they are slower on that device alone than what its own profile chooses. */
static double over_its_own_choice(const fmm_machine *m, fmm_schedule_kind kind, int order, double n) {
  fmm_machine nominal = *m;
  fmm_tuned own, by_nominal, priced;
  uniform u[3] = {{.n = n, .order = order}, {.n = n, .order = order}, {.n = n, .order = order}};
  if (kind == FMM_SCHEDULE_CPU) fmm_machine_nominal(m->device[FMM_DEVICE_CPU].units, &nominal);
  else fmm_machine_nominal_gpu_constants(&nominal.device[FMM_DEVICE_GPU]);
  assert_ok(fmm_tune(m, &fmm_info_laplace, &precisions, kind, 0, 0, 3, NULL, estimate, &u[0], &own));
  assert_ok(fmm_tune(&nominal, &fmm_info_laplace, &precisions, kind, 0, 0, 3, NULL, estimate, &u[1], &by_nominal));
  assert_ok(fmm_tune(m, &fmm_info_laplace, &precisions, kind, by_nominal.leaf_size, by_nominal.root_scale, 3, NULL, estimate, &u[2], &priced));
  return priced.makespan.seconds / own.makespan.seconds - 1;
}

static void check_nominal_trees(int n_machines, const char *const *machines, fmm_schedule_kind kind, double largest, double mean) {
  for (int i = 0; i < n_machines; i++) {
    const fmm_machine m = recorded_machine(machines[i]);
    double sum = 0, most = 0;
    int cases = 0;
    for (int order = 4; order <= 10; order += 2)
      for (double n = 2e4; n < 2e7; n *= 1.31) {
        const double over = over_its_own_choice(&m, kind, order, n);
        sum += over, most = fmax(most, over), cases++;
      }
    if (!(most <= largest && sum <= mean * cases)) fail_msg("%s: %g slower on average, %g at most", machines[i], sum / cases, most);
  }
}

/* With rates of slow pairs 0.15 to 0.41 on average and 0.95 at most. */
static void trees_by_nominal_rates_are_near_those_of_profiles(void **state) {
  static const char *const machines[] = {"cpu-2-cores", "h200-8-of-132", "h200-8-by-moments", "h100-8-of-132"};
  check_nominal_trees(4, machines, FMM_SCHEDULE_CPU, 0.2, 0.03);
}

/* With twice what rates allow for all 0.31 to 0.37 and 1.7. */
static void gpu_trees_by_nominal_constants_are_near_those_of_profiles(void **state) {
  static const char *const machines[] = {"h100", "h200-8-by-moments", "h100-8-of-132"};
  check_nominal_trees(3, machines, FMM_SCHEDULE_GPU, 0.02, 0.005);
}

/* That is behind on the first trees by more than a round of estimates gains, and better by 6 and 8 % on others. */
static void a_schedule_that_catches_up_is_not_given_up(void **state) {
  static const fmm_tune_effort of_16_cores = {0.0013, 0, NULL};
  assert_true(over_the_best_by_name("h200-8-by-moments", 8, 173459.6, &of_16_cores) <= 0.001);
  assert_true(over_the_best_by_name("h200-8-by-moments", 4, 26200, &of_16_cores) <= 0.001);
}

/* Within a factor of eight in n, some tree of full boxes fits badly; a root scale then gains, and never loses. */
static void a_scale_helps_where_boxes_come_in_factors_of_eight(void **state) {
  fmm_machine m = recorded_machine("h200-8-of-132");
  double gain = 1;
  for (double n = 5e5; n < 4e6; n *= 1.4) {
    uniform u = {.n = n}, fixed = u;
    fmm_tuned best, unscaled;
    assert_ok(fmm_tune(&m, &fmm_info_laplace, &precisions, FMM_SCHEDULE_AUTO, 0, 0, 3, NULL, estimate, &u, &best));
    assert_ok(fmm_tune(&m, &fmm_info_laplace, &precisions, FMM_SCHEDULE_AUTO, 0, 1, 3, NULL, estimate, &fixed, &unscaled));
    assert_true(unscaled.root_scale == 1 && best.makespan.seconds <= unscaled.makespan.seconds);
    gain = fmax(gain, unscaled.makespan.seconds / best.makespan.seconds);
  }
  assert_true(gain > 1.2);
}

/* Where q and 2 q give the same tree the best scale is some way off, with larger boxes or with smaller ones: three scales at q, as elsewhere, leave 4 to 16 % here. */
static void the_best_scale_is_found_where_twice_the_leaf_size_gives_the_same_tree(void **state) {
  const double cases[] = {54000, 212000, 236000, 352000, 1630000, 2757000, 13100000};
  fmm_machine m = recorded_machine("h200-8-of-132");
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uniform u = {.n = cases[i]};
    fmm_tuned best;
    double scan = INFINITY;
    assert_ok(fmm_tune(&m, &fmm_info_laplace, &precisions, FMM_SCHEDULE_AUTO, 0, 0, 3, NULL, estimate, &u, &best));
    for (double q = 16; q < 4096; q *= M_SQRT2)
      for (int eighth = 0; eighth < 8; eighth++) scan = fmin(scan, seconds_of(&m, u.n, (int)q, exp2(eighth / 8.0)));
    if (!(best.makespan.seconds <= 1.002 * scan)) fail_msg("%g points: %g s, a scan finds %g", u.n, best.makespan.seconds, scan);
  }
}

typedef struct real { fmm_estimate *estimate; fmm_count_case what; } real;

static fmm_status estimate_real(void *context, int n, const fmm_tree_options *choice, fmm_counts *counts) {
  const real *r = context;
  return fmm_estimate_counts(r->estimate, n, choice, &r->what, counts);
}

/* Real points, few enough for exact counts: boxes are unequally full, so leaf size and scale depend on one another in ways that equal boxes do not show. A search
 * of leaf size, scale and leaf size in turn from 128 points and scale 1 loses up to 12 % to the best of these, 1.1 on average. */
static void the_best_of_real_points_is_close_to_a_scan(void **state) {
  const char *names[] = {"uniform", "ellipsoid", "sphere", "plummer"};
  fmm_machine m = recorded_machine("cpu-2-cores");
  double sum = 0;
  int runs = 0;
  for (int i = 0; i < 4; i++)
    for (int64_t n = 3000; n <= FMM_ESTIMATE_EXACT; n += n < 18000 ? 5000 : 7000)
      for (int order = 4; order <= 10; order += 3) {
        real r = {.what = {.pair = &fmm_info_laplace, .order = order, .n_columns = 1}};
        fmm_tuned best;
        double scan = INFINITY;
        assert_ok(fmm_estimate_create_named(&r.estimate, names[i], n, 2));
        assert_ok(fmm_tune(&m, &fmm_info_laplace, &precisions, FMM_SCHEDULE_CPU, 0, 0, fmm_estimate_dimension(r.estimate), NULL, estimate_real, &r, &best));
        for (int half = -3; half <= 12; half++)
          for (int eighth = 0; eighth < 8; eighth++) {
            fmm_tree_options choice = {(int)lround(128 * exp2(half / 2.0)), exp2(eighth / 8.0)};
            fmm_counts c;
            fmm_cost_table t;
            fmm_assignment a;
            fmm_makespan makespan;
            assert_ok(estimate_real(&r, 1, &choice, &c));
            fmm_cost_table_make(&m, &c, &fmm_info_laplace, &t);
            assert_ok(fmm_schedule_choose(&t, &precisions, FMM_SCHEDULE_CPU, &a, &makespan));
            scan = fmin(scan, makespan.seconds);
          }
        fmm_estimate_destroy(&r.estimate);
        if (!(best.makespan.seconds <= 1.09 * scan)) fail_msg("%s, %lld points, order %d: %g s, a scan finds %g", names[i], (long long)n, order, best.makespan.seconds, scan);
        sum += best.makespan.seconds / scan - 1, runs++;
      }
  if (!(sum <= 0.01 * runs)) fail_msg("%g above the scan on average", sum / runs);
}

typedef struct spent { int estimates; double seconds; } spent; /* on estimates; of an evaluation */

static spent tuned_for(const fmm_machine *m, double n, double executions, double estimate_s) {
  uniform u = {.n = n};
  fmm_tuned best;
  assert_ok(fmm_tune(m, &fmm_info_laplace, &precisions, FMM_SCHEDULE_AUTO, 0, 0, 3, &(fmm_tune_effort){estimate_s, executions, NULL}, estimate, &u, &best));
  return (spent){best.n_estimates, best.makespan.seconds};
}

/* For one evaluation few estimates are made, for many as many as gain, and either way estimates and evaluations together take less than they would with the other search. Estimates that cost nothing are all made. */
static void a_tree_for_few_evaluations_is_chosen_in_less_time(void **state) {
  enum { MANY = 1000000 };
  const char *machines[] = {"cpu-2-cores", "xeon16-h200"};
  for (int i = 0; i < 2; i++) {
    fmm_machine m = recorded_machine(machines[i]);
    double once[2] = {0}, often[2] = {0}; /* all seconds with the search for: one evaluation, MANY */
    for (double n = 1e5; n < 2e7; n *= 1.7) {
      const double estimate_s = 0.005;
      const spent free = tuned_for(&m, n, 1, 0), few = tuned_for(&m, n, 1, estimate_s), many = tuned_for(&m, n, MANY, estimate_s), unknown = tuned_for(&m, n, 0, estimate_s);
      assert_true(few.estimates >= 2 && few.estimates <= unknown.estimates && unknown.estimates <= many.estimates && many.estimates <= free.estimates);
      assert_true(free.seconds <= many.seconds);
      once[0] += few.estimates * estimate_s + few.seconds, once[1] += many.estimates * estimate_s + many.seconds;
      often[0] += few.estimates * estimate_s + MANY * few.seconds, often[1] += many.estimates * estimate_s + MANY * many.seconds;
    }
    assert_true(once[0] < once[1] && often[1] < often[0]);
  }
}

static void what_is_asked_for_is_kept(void **state) {
  fmm_machine m = recorded_machine("cpu-2-cores");
  uniform u = {.n = 1e6}, one = u;
  fmm_tuned best;
  assert_ok(fmm_tune(&m, &fmm_info_laplace, &precisions, FMM_SCHEDULE_AUTO, 77, 0, 3, NULL, estimate, &u, &best));
  assert_int_equal(best.leaf_size, 77);
  assert_ok(fmm_tune(&m, &fmm_info_laplace, &precisions, FMM_SCHEDULE_AUTO, 77, 1.5, 3, NULL, estimate, &one, &best));
  assert_int_equal(one.calls, 1);
  assert_true(best.leaf_size == 77 && best.root_scale == 1.5);
}

/* Equal to one leaf's price: a tree of eight leaves, all adjacent, has the same pairs and may be kept. */
static void few_points_are_summed_directly(void **state) {
  fmm_machine m = recorded_machine("xeon16-h200");
  for (double n = 1; n < 9000; n *= 5) {
    uniform u = {.n = n};
    fmm_tuned best;
    assert_ok(fmm_tune(&m, &fmm_info_laplace, &precisions, FMM_SCHEDULE_AUTO, 0, 0, 3, NULL, estimate, &u, &best));
    assert_true(best.makespan.seconds <= seconds_of(&m, n, (int)n, 1) * (1 + 1e-12));
    if (n < 3000) assert_true(best.makespan.device_busy_s[FMM_DEVICE_CPU] == 0 || best.makespan.device_busy_s[FMM_DEVICE_GPU] == 0);
  }
}

static void no_points_are_no_trouble(void **state) {
  fmm_machine m = recorded_machine("cpu-2-cores");
  uniform u = {.n = 0};
  fmm_tuned best;
  assert_ok(fmm_tune(&m, &fmm_info_laplace, &precisions, FMM_SCHEDULE_AUTO, 0, 0, 3, NULL, estimate, &u, &best));
  assert_true(best.leaf_size > 0 && best.makespan.seconds < 1e-3);
}

static void errors_are_passed_on(void **state) {
  fmm_machine m = recorded_machine("cpu-2-cores");
  uniform u = {.n = 1e6, .fail = FMM_ERR_MEMORY}, ok = {.n = 1e6};
  fmm_tuned best = {.leaf_size = -1};
  assert_int_equal(fmm_tune(&m, &fmm_info_laplace, &precisions, FMM_SCHEDULE_AUTO, 0, 0, 3, NULL, estimate, &u, &best), FMM_ERR_MEMORY);
  assert_int_equal(fmm_tune(&m, &fmm_info_laplace, &precisions, FMM_SCHEDULE_HYBRID1, 0, 0, 3, NULL, estimate, &ok, &best), FMM_ERR_DEVICE);
  assert_int_equal(best.leaf_size, -1);
}

/* Asks a real estimate and keeps the first tree that was asked for. */
typedef struct asked { real *real; fmm_tree_options first; int n; } asked;
static fmm_status estimate_asked(void *context, int n, const fmm_tree_options *choice, fmm_counts *counts) {
  asked *a = context;
  if (!a->n++) a->first = choice[0];
  return estimate_real(a->real, n, choice, counts);
}

/* Uniform points, with full trees to begin with and without: about as good, by fewer estimates of all orders together, and the first tree that is asked for has the root scale that is chosen or one an eighth of the range beside it. */
static void even_points_begin_where_full_trees_tell(void **state) {
  enum { n = 1000000 };
  fmm_machine m = recorded_machine("cpu-2-cores");
  int saved = 0;
  for (int order = 4; order <= 10; order += 3) {
    real r = {.what = {.pair = &fmm_info_laplace, .order = order, .n_columns = 1, .no_gpu = 1}};
    fmm_counts full[FMM_EVEN_TREES];
    fmm_tuned begun, other;
    int even;
    assert_ok(fmm_estimate_create_named(&r.estimate, "uniform", n, 2));
    assert_ok(fmm_tune(&m, &fmm_info_laplace, &precisions, FMM_SCHEDULE_CPU, 0, 0, 3, &(fmm_tune_effort){0.0018, 0, NULL}, estimate_real, &r, &other));
    assert_ok(fmm_estimate_even(r.estimate, &r.what, full, &even));
    assert_true(even);
    asked a = {.real = &r};
    assert_ok(fmm_tune(&m, &fmm_info_laplace, &precisions, FMM_SCHEDULE_CPU, 0, 0, 3, &(fmm_tune_effort){0.0018, 0, full}, estimate_asked, &a, &begun));
    assert_true(fabs(remainder(log2(a.first.root_scale / begun.root_scale), 1)) < 0.13);
    fmm_estimate_destroy(&r.estimate);
    if (!(begun.makespan.seconds <= 1.01 * other.makespan.seconds)) fail_msg("order %d: %g s, without %g", order, begun.makespan.seconds, other.makespan.seconds);
    saved += other.n_estimates - begun.n_estimates;
  }
  assert_true(saved > 0);
}

/* With two devices each schedule begins at its own tree. Beginning with leaves of 128 and 256, of a profile of eight multiprocessors of an H200, 1,000,000 points are foretold 14 % longer than by hybrid3 by name. */
static void even_points_lose_nothing_to_a_schedule_by_name(void **state) {
  static const char *const machines[] = {"h200-8-by-moments", "xeon16-h200-8sm", "xeon16-h200"};
  for (int k = 0; k < 3; k++)
    for (int64_t n = 250000; n <= 1000000; n *= 2) {
      const fmm_machine m = recorded_machine(machines[k]);
      real r = {.what = {.pair = &fmm_info_laplace, .order = 7, .n_columns = 1, .tolerance = 1e-6}};
      fmm_counts full[FMM_EVEN_TREES];
      fmm_tuned best, named;
      double least = INFINITY;
      int even;
      assert_ok(fmm_estimate_create_named(&r.estimate, "uniform", n, 2));
      assert_ok(fmm_estimate_even(r.estimate, &r.what, full, &even));
      const fmm_tune_effort effort = {fmm_estimate_seconds(r.estimate, 16), 0, full};
      assert_ok(fmm_tune(&m, &fmm_info_laplace, &precisions, FMM_SCHEDULE_AUTO, 0, 0, 3, &effort, estimate_real, &r, &best));
      for (int i = 0; fmm_schedules[i]; i++)
        if (fmm_tune(&m, &fmm_info_laplace, &precisions, fmm_schedules[i]->kind, 0, 0, 3, &effort, estimate_real, &r, &named) == FMM_OK) least = fmin(least, named.makespan.seconds);
      fmm_estimate_destroy(&r.estimate);
      if (!(best.makespan.seconds <= 1.02 * least)) fail_msg("%s, %lld points: %g s, by name %g", machines[k], (long long)n, best.makespan.seconds, least);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(boxes_that_seem_uneven_by_chance_are_searched_as_even), cmocka_unit_test(the_best_is_close_to_a_scan_of_everything),
                                     cmocka_unit_test(what_is_chosen_is_as_good_as_the_best_schedule_by_name),
                                     cmocka_unit_test(trees_by_nominal_rates_are_near_those_of_profiles),
                                     cmocka_unit_test(gpu_trees_by_nominal_constants_are_near_those_of_profiles),
                                     cmocka_unit_test(a_schedule_that_catches_up_is_not_given_up),
                                     cmocka_unit_test(a_scale_helps_where_boxes_come_in_factors_of_eight),
                                     cmocka_unit_test(the_best_scale_is_found_where_twice_the_leaf_size_gives_the_same_tree),
                                     cmocka_unit_test(the_best_of_real_points_is_close_to_a_scan),
                                     cmocka_unit_test(a_tree_for_few_evaluations_is_chosen_in_less_time),
                                     cmocka_unit_test(what_is_asked_for_is_kept),
                                     cmocka_unit_test(few_points_are_summed_directly),
                                     cmocka_unit_test(no_points_are_no_trouble),
                                     cmocka_unit_test(errors_are_passed_on),
                                     cmocka_unit_test(even_points_begin_where_full_trees_tell),
                                     cmocka_unit_test(even_points_lose_nothing_to_a_schedule_by_name)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
