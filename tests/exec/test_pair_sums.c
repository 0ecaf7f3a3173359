/* Every optimised pair sum on this CPU (each instruction set, accuracy, pair interaction, gradient, number of columns) against the plain
 * C reference on hostile input, in the manner of checkasm. `test_pair_sums --bench` times them instead.
 * Bounds: a sum of n terms in any order errs by at most n u times the sum of its terms' sizes; a term errs by a few roots' relative error.
 * Single: coordinates rounded to at most the tolerance (1e-6) in any pair, to the third power; sums of 64 in float, 64 * 6e-8.
 * Coarse: the same at 1e-3, and a root to 6e-5 to the fifth power.
 * Full: u = 1.2e-16, root and exponential some 4e-16; from a tolerance of 1e-11 on sets that are apart, a quarter of it in any pair. Near, reduced: root 1.3e-10, 3e-7 (6e-9
 * at 1e-7), up to the fifth power in a term. */
#include "random.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "kernels/pair/pair_both.h"
#include "kernels/pair/pair_sums.h"
#include "kernels/simd.h"

enum { MAX_N = 700, MAX_COLUMNS = 7, MAX_PLANES = 12 * MAX_COLUMNS, PAD = 3 };

typedef struct problem {
  int n_targets, n_sources, columns, gradient, components, values, coincide;
  double targets[3][MAX_N + PAD], sources[3][MAX_N + PAD], density[3 * MAX_COLUMNS][MAX_N + PAD];
  double params[FMM_MAX_PARAMS];
} problem;

typedef double values_array[MAX_PLANES][MAX_N + PAD];

static void shapes(problem *p, const fmm_pair *pair) {
  p->components = pair->info->components;
  p->values = pair->info->outputs * (p->gradient ? 4 : 1);
  assert_ok(fmm_pair_resolve_params(pair->info, 0, NULL, p->params));
}

/* Random points of this spread about this centre; a third of the targets lie on sources when they may. */
static void random_points(problem *p, double spread, double centre) {
  for (int a = 0; a < 3; a++) {
    for (int j = 0; j < p->n_sources + PAD; j++) p->sources[a][j] = centre + spread * uniform();
    for (int i = 0; i < p->n_targets + PAD; i++) p->targets[a][i] = centre + spread * uniform();
  }
  for (int i = 0; p->coincide && p->n_sources && i < p->n_targets; i += 3)
    for (int a = 0; a < 3; a++) p->targets[a][i + 1] = p->sources[a][1 + i % p->n_sources]; /* both arrays start at 1 below */
  for (int k = 0; k < 3 * MAX_COLUMNS; k++)
    for (int j = 0; j < p->n_sources + PAD; j++) p->density[k][j] = uniform() - 0.5;
}

/* Starts at the second element of every plane: no alignment beyond that of a double may be assumed. */
static fmm_pair_sources sources_of(const problem *p) {
  return (fmm_pair_sources){.n = p->n_sources, .x = p->sources[0] + 1, .y = p->sources[1] + 1, .z = p->sources[2] + 1,
                            .density = p->density[0] + 1, .component_stride = (int64_t)p->columns * (MAX_N + PAD), .column_stride = MAX_N + PAD,
                            .may_coincide = p->coincide};
}

static fmm_pair_targets targets_of(const problem *p, values_array value) {
  return (fmm_pair_targets){.n = p->n_targets, .x = p->targets[0] + 1, .y = p->targets[1] + 1, .z = p->targets[2] + 1, .value = value[0] + 1,
                            .value_stride = (int64_t)p->columns * (MAX_N + PAD), .column_stride = MAX_N + PAD};
}

static void reference(const problem *p, const fmm_pair *pair, values_array value, int sizes) {
  for (int c = 0; c < p->columns; c++)
    for (int i = 1; i <= p->n_targets; i++)
      for (int j = 1; j <= p->n_sources; j++) { /* source by source: sizes of single terms are wanted too */
        double f[12] = {0}, at[3] = {p->targets[0][i], p->targets[1][i], p->targets[2][i]};
        const double *density[3];
        for (int k = 0; k < p->components; k++) density[k] = &p->density[k * p->columns + c][j];
        pair->reference(at, 1, &p->sources[0][j], &p->sources[1][j], &p->sources[2][j], NULL, density, p->params, 1, p->gradient, f);
        double largest = 0;
        for (int v = 0; v < p->values; v++) largest = fmax(largest, v % (p->gradient ? 4 : 1) ? fabs(f[v]) : 0);
        for (int v = 0; v < p->values; v++) { /* a component may cancel inside a term: gradients are measured by their largest */
          double size = p->gradient && v % 4 ? largest : fabs(f[v]);
          if (pair->info->components == 3) { /* Stokes: every component is measured by the whole vector */
            size = 0;
            for (int w = 0; w < p->values; w++)
              if (!p->gradient || !(w % 4) == !(v % 4)) size = fmax(size, fabs(f[w]));
          }
          value[v * p->columns + c][i] += sizes ? size : f[v];
        }
      }
}

static const fmm_precision precisions[] = {FMM_PRECISION_DOUBLE, FMM_PRECISION_DOUBLE, FMM_PRECISION_DOUBLE, FMM_PRECISION_DOUBLE, FMM_PRECISION_DOUBLE, FMM_PRECISION_SINGLE, FMM_PRECISION_SINGLE};
static const double tolerances[] = {1e-12, 1e-10, 1e-9, 1e-7, 1e-6, 1e-6, 1e-3}, bounds[] = {4e-15, 2.6e-11, 1e-9, 6e-8, 2e-6, 6e-6, 4e-3};
enum { N_ACCURACIES = 7 };

static values_array expected, size, got;
static double base; /* what the targets hold before */
static double vanishing; /* single: exp flushes below 2^-126; times a density and 1/r^2 (double: below 2^-1022) */
static double condition = 1; /* of the terms: their relative change over that of the distance */

/* Compares all rows; elements beside the targets must stay as they were. */
static void compare(const problem *p, const fmm_pair *pair, int accuracy, uint64_t case_seed, const char *what) {
  for (int k = 0; k < p->values * p->columns; k++) {
    if (got[k][0] != 7 || got[k][p->n_targets + 1] != 7) fail_msg("%s: wrote beside its targets", what);
    for (int i = 1; i <= p->n_targets; i++) {
      double error = fabs(got[k][i] - base - expected[k][i]), allowed = bounds[accuracy] * condition * (size[k][i] + base) + p->n_sources * (precisions[accuracy] == FMM_PRECISION_SINGLE ? vanishing : 1e-300);
      if (!(error <= allowed) && !(isnan(expected[k][i]) || isinf(expected[k][i])))
        fail_msg("%s: %s %s, %s, tolerance %g, gradient %d, columns %d, %d targets, %d sources, coincide %d, seed %llu: value %d target %d is %.17g, not %.17g (error %g, allowed %g)",
                 what, pair->info->name, fmm_simd_name(fmm_simd_level()), precisions[accuracy] == FMM_PRECISION_SINGLE ? "single" : "double", tolerances[accuracy], p->gradient, p->columns, p->n_targets,
                 p->n_sources, p->coincide, (unsigned long long)case_seed, k, i, got[k][i] - base, expected[k][i], error, allowed);
    }
  }
}

/* One problem through every instruction set and accuracy. */
static void check(problem *p, const fmm_pair *pair, uint64_t case_seed, const char *what) {
  memset(expected, 0, sizeof expected);
  memset(size, 0, sizeof size);
  reference(p, pair, expected, 0);
  reference(p, pair, size, 1);
  for (int simd = FMM_SIMD_PLAIN; simd < FMM_N_SIMD; simd++) {
    fmm_simd_cap((fmm_simd)simd);
    if (fmm_simd_level() != (fmm_simd)simd) continue; /* not on this CPU */
    for (int accuracy = 0; accuracy < N_ACCURACIES; accuracy++) {
      fmm_pair_sum sum;
      fmm_pair_sources sources = sources_of(p);
      fmm_pair_targets targets = targets_of(p, got);
      for (int k = 0; k < p->values * p->columns; k++)
        for (int i = 0; i < p->n_targets + PAD; i++) got[k][i] = i >= 1 && i <= p->n_targets ? base : 7;
      fmm_pair_sum_prepare(&sum, pair, p->params, p->columns, p->gradient, precisions[accuracy], tolerances[accuracy]);
      fmm_pair_sum_allow_coarse(&sum);
      fmm_pair_sources part[2] = {sources, sources}; /* in two ranges; where points may coincide zeros are counted a range */
      part[0].n = sources.n / 3, part[1].n -= part[0].n;
      part[1].x += part[0].n, part[1].y += part[0].n, part[1].z += part[0].n, part[1].density += part[0].n;
      fmm_pair_sum_add(&sum, &targets, 2, part);
      compare(p, pair, accuracy, case_seed, what);
    }
  }
  fmm_simd_cap(FMM_SIMD_AVX512);
}

static problem p;
typedef void fill_problem(problem *problem, const fmm_pair *pair, uint64_t variant);

static void for_all_pairs(fill_problem *fill, int variants, const char *what) {
  for (int k = 0; fmm_pairs[k]; k++)
    for (int gradient = 0; gradient < 2; gradient++)
      for (uint64_t variant = 0; variant < (uint64_t)variants; variant++) {
        seed = variant * 1000 + (uint64_t)k;
        p = (problem){.columns = 1, .gradient = gradient};
        shapes(&p, fmm_pairs[k]);
        condition = 1;
        fill(&p, fmm_pairs[k], variant);
        check(&p, fmm_pairs[k], variant, what);
        condition = 1;
      }
}

static void fill_tails(problem *q, const fmm_pair *pair, uint64_t variant) {
  q->n_targets = (int)variant % 34, q->n_sources = (int)(variant * 7) % 34, q->coincide = variant % 2;
  random_points(q, 1, 0.3);
}
static void every_tail_length_is_right(void **state) { for_all_pairs(fill_tails, 68, "tails"); }

static void fill_columns(problem *q, const fmm_pair *pair, uint64_t variant) {
  q->columns = 1 + (int)variant % MAX_COLUMNS, q->n_targets = 29, q->n_sources = 31, q->coincide = variant >= MAX_COLUMNS;
  random_points(q, 1, -0.5);
}
static void every_number_of_columns_is_right(void **state) { for_all_pairs(fill_columns, 2 * MAX_COLUMNS, "columns"); }

static void fill_blocks(problem *q, const fmm_pair *pair, uint64_t variant) {
  const int sizes[] = {127, 128, 129, 300};
  q->n_targets = sizes[variant], q->n_sources = 200, q->coincide = variant % 2;
  random_points(q, 1, 0);
}
static void blocks_of_targets_join_up_and_add(void **state) {
  base = 3;
  for_all_pairs(fill_blocks, 4, "blocks");
  base = 0;
}

/* Distances from 1e-30 to 1e+15 of the unit, far below what a float's square can hold. */
static void fill_distances(problem *q, const fmm_pair *pair, uint64_t variant) {
  q->n_targets = 21, q->n_sources = 23, q->coincide = variant % 2;
  double spread = pow(10, -30 + 3 * (double)variant);
  random_points(q, spread, 0);
  if (!pair->info->has_degree) condition = 1 + fmin(708, q->params[0] * spread * sqrt(3)); /* of exp(-x): x */
  if (variant % 4 == 3) /* one tight pair among distant ones */
    for (int a = 0; a < 3; a++) q->targets[a][5] = q->sources[a][7] * (1 + 1e-15), q->targets[a][9] = 1e-25 * (a + 1), q->sources[a][9] = 1e-26;
}
static void distances_of_any_size_are_right(void **state) { for_all_pairs(fill_distances, 16, "distances"); }

static void fill_densities(problem *q, const fmm_pair *pair, uint64_t variant) {
  q->n_targets = 19, q->n_sources = 33;
  random_points(q, 1, 0);
  for (int k = 0; k < 3 * MAX_COLUMNS; k++)
    for (int j = 0; j < q->n_sources + PAD; j++) q->density[k][j] *= variant == 0 ? 1e200 : variant == 1 ? 1e-200 : variant == 2 ? 0 : pow(10, 60 * (uniform() - 0.5));
}
static void densities_of_any_size_are_right(void **state) { for_all_pairs(fill_densities, 4, "densities"); }

static void only_coincident_pairs_give_zero(void **state) {
  for (int k = 0; fmm_pairs[k]; k++) {
    p = (problem){.columns = 2, .gradient = 1, .n_targets = 40, .n_sources = 40, .coincide = 1};
    shapes(&p, fmm_pairs[k]);
    seed = (uint64_t)k;
    random_points(&p, 0, 0.25);
    check(&p, fmm_pairs[k], seed, "all points coincide");
  }
}

static void exponential_underflows_to_zero(void **state) {
  const fmm_pair *pair;
  assert_ok(fmm_pair_find("yukawa", &pair));
  for (int variant = 0; variant < 40; variant++) {
    p = (problem){.n_targets = 30, .n_sources = 30, .columns = 1, .gradient = 1};
    shapes(&p, pair);
    seed = (uint64_t)variant;
    random_points(&p, 1, 0);
    p.params[0] = pow(10, variant / 4.0 - 4); /* lambda from 1e-4 to 1e6: nearly all terms vanish */
    condition = 1 + fmin(708, p.params[0] * sqrt(3)); /* of exp(-x): x */
    vanishing = 1e-32;
    check(&p, pair, seed, "screening");
    condition = 1, vanishing = 0;
  }
}

/* Both directions at once: the targets get random densities too, in planes beyond the sources'. */
static values_array back_expected, back_size, back_got;

static void swap_sides(problem *q) {
  static problem old;
  old = *q;
  q->n_targets = old.n_sources, q->n_sources = old.n_targets;
  memcpy(q->targets, old.sources, sizeof q->targets);
  memcpy(q->sources, old.targets, sizeof q->sources);
  for (int k = 0; k < 3; k++) memcpy(q->density[k], old.density[k + 3], sizeof q->density[k]), memcpy(q->density[k + 3], old.density[k], sizeof q->density[k]);
}

static void expect(values_array value, values_array sizes, const fmm_pair *pair) {
  memset(value, 0, sizeof(values_array));
  memset(sizes, 0, sizeof(values_array));
  reference(&p, pair, value, 0);
  reference(&p, pair, sizes, 1);
}

enum { STORE = 2 * (MAX_N + PAD) + FMM_PAIR_STORE_PADDING };
static int32_t store_quanta[3][STORE];
static float store_density[3][STORE];
static const fmm_pair_store store = {STORE, store_quanta[0], store_density[0]};

/* n points from the begin-th on, measured and put into the store where single precision wants it. */
static fmm_pair_side side_of(const fmm_pair_sum *sum, fmm_pair_points *points, int64_t n, double plane[3][MAX_N + PAD], int64_t begin, double density[][MAX_N + PAD], double *value,
                             int64_t at) {
  *points = (fmm_pair_points){.n = n, .x = plane[0] + begin, .y = plane[1] + begin, .z = plane[2] + begin, .density = density[0] + begin, .component_stride = MAX_N + PAD};
  if (fmm_pair_sum_wants_bounds(sum)) fmm_pair_points_bound(points);
  if (fmm_pair_sum_wants_weights(sum)) fmm_pair_points_weigh(sum, points);
  if (sum->single_kernels) fmm_pair_store_put(sum, &store, points, at);
  return (fmm_pair_side){.points = points, .n = n, .value = value, .value_stride = MAX_N + PAD, .at = at};
}

static void check_both_as(const fmm_pair *pair, uint64_t case_seed, const char *what);

/* By products of densities and not, where that makes a difference. */
static void check_both(const fmm_pair *pair, uint64_t case_seed, const char *what) {
  for (int beside = 0; beside <= (p.gradient && pair->info->inverse_distance); beside++) {
    fmm_simd_let_add_beside(beside);
    check_both_as(pair, case_seed, what);
  }
  fmm_simd_let_add_beside(FMM_SIMD_AS_FOUND);
}

static void check_both_as(const fmm_pair *pair, uint64_t case_seed, const char *what) {
  expect(expected, size, pair);
  swap_sides(&p);
  expect(back_expected, back_size, pair);
  swap_sides(&p);
  for (int simd = FMM_SIMD_PLAIN; simd < FMM_N_SIMD; simd++) {
    fmm_simd_cap((fmm_simd)simd);
    for (int accuracy = 0; accuracy < N_ACCURACIES && fmm_simd_level() == (fmm_simd)simd; accuracy++) {
      fmm_pair_sum sum;
      for (int k = 0; k < p.values; k++)
        for (int i = 0; i < MAX_N + PAD; i++) {
          got[k][i] = i >= 1 && i <= p.n_targets ? 0 : 7;
          back_got[k][i] = i >= 1 && i <= p.n_sources ? 0 : 7;
        }
      fmm_pair_points points[4];
      fmm_pair_sum_prepare(&sum, pair, p.params, 1, p.gradient, precisions[accuracy], tolerances[accuracy]);
      fmm_pair_sum_allow_coarse(&sum);
      assert_true(fmm_pair_sum_can_add_both(&sum));
      fmm_pair_side side[4]; /* the targets, and the sources in three parts, all of them a part of a set as well */
      int64_t cut[4] = {0, p.n_sources / 3, p.n_sources / 3, p.n_sources};
      side[0] = side_of(&sum, &points[0], p.n_targets, p.targets, 1, p.density + 3, got[0] + 1, 0);
      for (int k = 0; k < 3; k++)
        side[k + 1] = side_of(&sum, &points[k + 1], cut[k + 1] - cut[k], p.sources, 1 + cut[k], p.density, back_got[0] + 1 + cut[k], MAX_N + PAD + cut[k]);
      fmm_pair_sum_add_both(&sum, &store, &side[0], 3, side + 1);
      compare(&p, pair, accuracy, case_seed, what);
      swap_sides(&p);
      memcpy(got, back_got, sizeof got);
      values_array *keep = &expected;
      static values_array saved, saved_size;
      memcpy(saved, *keep, sizeof saved), memcpy(saved_size, size, sizeof saved_size);
      memcpy(expected, back_expected, sizeof expected), memcpy(size, back_size, sizeof size);
      compare(&p, pair, accuracy, case_seed, what);
      memcpy(expected, saved, sizeof expected), memcpy(size, saved_size, sizeof size);
      swap_sides(&p);
    }
  }
  fmm_simd_cap(FMM_SIMD_AVX512);
}

/* A problem as check_both takes it: `apart` along one axis, the sources' first third shrunk and moved into a corner of the targets' box or beside it. */
static void fill_both(const fmm_pair *pair, int gradient, int n_targets, int n_sources, double spread, double apart, double shrink) {
  p = (problem){.columns = 1, .gradient = gradient, .n_targets = n_targets, .n_sources = n_sources};
  shapes(&p, pair);
  random_points(&p, spread, 0);
  for (int j = 0; j < n_sources + PAD; j++) {
    for (int a = 0; a < 3 && j <= n_sources / 3; a++) p.sources[a][j] = spread * shrink * uniform();
    p.sources[seed % 3][j] += apart * spread;
  }
}

/* Bounds apart by much, by hardly anything and by less than rounding; sets from like sizes to a billionth. */
static void sets_apart_and_of_unlike_sizes_are_right(void **state) {
  const double aparts[] = {1, 1.5, 1 + 1e-2, 1 + 1e-4, 1 + 1e-7, 1 + 1e-13}, shrinks[] = {1, 0.4, 1e-3, 1e-9};
  for (int k = 0; fmm_pairs[k]; k++)
    for (int gradient = 0; gradient < 2; gradient++)
      for (int variant = 0; variant < 24; variant++) {
        seed = (uint64_t)(variant * 1000 + k);
        fill_both(fmm_pairs[k], gradient, 90 + variant, 120 + 11 * variant, variant % 5 ? 1 : 1e-4, aparts[variant % 6], shrinks[variant / 6]);
        check_both(fmm_pairs[k], (uint64_t)(variant * 1000 + k), "apart, unlike");
      }
}

/* Two points at the ends of an extent just below a power of two, whose rounded coordinates would differ by 2^31 quanta: derivatives keep their sign. One way (for_all_pairs) and both. */
static void fill_ends(problem *q, const fmm_pair *pair, uint64_t variant) {
  const double half[] = {0x1.fffffffffffffp-2, 0.35 - 1e-17, 0.5 - 1e-10, 0.5 - 1e-9, 0.25 * (1 - 0x1p-31), 1 - 0x1p-30};
  q->n_targets = 20, q->n_sources = 20;
  random_points(q, 1e-3, 0);
  for (int k = 0; k < 3; k++)
    for (int j = 0; j < 20 + PAD; j++) {
      const double end = half[variant % 6] - (variant / 6 ? 0.2 * fabs(q->sources[k][j]) : 0);
      q->targets[k][j] = j % 3 == k ? end : q->targets[k][j], q->sources[k][j] = j % 3 == k ? -end : q->sources[k][j];
    }
}
static void ends_of_an_extent_keep_the_sign_of_their_difference(void **state) {
  for_all_pairs(fill_ends, 12, "ends");
  for (int k = 0; fmm_pairs[k]; k++)
    for (int gradient = 0; gradient < 2; gradient++)
      for (uint64_t variant = 0; variant < 12; variant++) {
        p = (problem){.columns = 1, .gradient = gradient};
        shapes(&p, fmm_pairs[k]);
        fill_ends(&p, fmm_pairs[k], variant);
        check_both(fmm_pairs[k], variant, "ends, both directions");
      }
}

/* A set without densities beside sets with small ones. */
static void zeros_beside_small_densities_are_right(void **state) {
  const double sizes[] = {1, 1e-30, 1e-60, 1e-200};
  for (int k = 0; fmm_pairs[k]; k++)
    for (int gradient = 0; gradient < 2; gradient++)
      for (int variant = 0; variant < 12; variant++) {
        seed = (uint64_t)(variant * 1000 + k);
        fill_both(fmm_pairs[k], gradient, 50, 90, 1, 1.5, 1);
        for (int c = 0; c < 6; c++)
          for (int j = 0; j < MAX_N + PAD; j++) p.density[c][j] *= c < 3 && variant / 4 == (j <= 30 ? 1 : 2) ? 0 : sizes[variant % 4];
        check_both(fmm_pairs[k], (uint64_t)(variant * 1000 + k), "zeros");
      }
}

static void check_own(const fmm_pair *pair, uint64_t case_seed, const char *what) {
  expect(expected, size, pair);
  for (int simd = FMM_SIMD_PLAIN; simd < FMM_N_SIMD; simd++) {
    fmm_simd_cap((fmm_simd)simd);
    for (int accuracy = 0; accuracy < N_ACCURACIES && fmm_simd_level() == (fmm_simd)simd; accuracy++) {
      fmm_pair_sum sum;
      fmm_pair_points points;
      for (int k = 0; k < p.values; k++)
        for (int i = 0; i < MAX_N + PAD; i++) got[k][i] = i >= 1 && i <= p.n_targets ? 0 : 7;
      fmm_pair_sum_prepare(&sum, pair, p.params, 1, p.gradient, precisions[accuracy], tolerances[accuracy]);
      fmm_pair_sum_allow_coarse(&sum);
      const fmm_pair_side side = side_of(&sum, &points, p.n_targets, p.targets, 1, p.density, got[0] + 1, 5);
      fmm_pair_sum_add_own(&sum, &store, &side);
      compare(&p, pair, accuracy, case_seed, what);
    }
  }
  fmm_simd_cap(FMM_SIMD_AVX512);
}

/* A leaf with itself: every tail, one and several blocks, far from the origin, a pair too near for a float, densities of many sizes. */
static void a_set_onto_itself_is_right(void **state) {
  for (int k = 0; fmm_pairs[k]; k++) {
    if (!fmm_pair_can_both(fmm_pairs[k]->info, 1)) continue;
    for (int gradient = 0; gradient < 2; gradient++)
      for (int variant = 0; variant < 46; variant++) {
        const int n = variant < 34 ? variant : variant < 40 ? 250 + variant - 34 + (variant > 37 ? 300 : 0) : 60;
        seed = (uint64_t)(variant * 1000 + k);
        p = (problem){.columns = 1, .gradient = gradient, .n_targets = n, .n_sources = n, .coincide = 1};
        shapes(&p, fmm_pairs[k]);
        random_points(&p, variant == 42 ? 1e-5 : 1, variant == 40 ? 1024 : 0);
        if (variant == 41)
          for (int a = 0; a < 3; a++) p.targets[a][5] = p.targets[a][7] * (1 + 1e-14);
        if (variant == 43)
          for (int i = 0; i < n + PAD; i++)
            for (int c = 0; c < 3; c++) p.density[c][i] *= pow(10, 60 * (uniform() - 0.5));
        memcpy(p.sources, p.targets, sizeof p.sources);
        check_own(fmm_pairs[k], (uint64_t)(variant * 1000 + k), "own");
      }
  }
}

static void both_directions_at_once_are_right(void **state) {
  for (int k = 0; fmm_pairs[k]; k++)
    for (int gradient = 0; gradient < 2; gradient++)
      for (int variant = 0; variant < 44; variant++) {
        seed = (uint64_t)(variant * 1000 + k);
        p = (problem){.columns = 1, .gradient = gradient, .n_targets = variant < 34 ? variant : 200, .n_sources = variant < 34 ? variant * 7 % 34 : 300};
        shapes(&p, fmm_pairs[k]);
        random_points(&p, variant < 34 ? 1 : pow(10, 3 * (variant - 43)), 0);
        if (variant == 35) /* one pair so near that a float cannot tell */
          for (int a = 0; a < 3; a++) p.targets[a][5] = p.sources[a][7] * (1 + 1e-15);
        for (int c = 0; c < 6 && variant >= 36 && variant < 40; c++) /* a density that is zero, or sizes that differ */
          for (int j = 0; j < MAX_N + PAD; j++)
            if (variant >= 38) p.density[c][j] *= pow(10, (variant == 38 ? 24 : 280) * (uniform() - 0.5));
            else if (j == 20 && c / 3 == variant - 36) p.density[c][j] = 0;
        check_both(fmm_pairs[k], (uint64_t)(variant * 1000 + k), "both directions");
      }
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Best of several: Gpair/s of one core, targets of one leaf against 26 more of its size in joined ranges of four. */
static void bench_one(const fmm_pair *pair, int accuracy, int n, int columns, int gradient) {
  enum { RANGES = 6 };
  fmm_pair_sum sum;
  fmm_pair_sources ranges[RANGES];
  p = (problem){.columns = columns, .gradient = gradient, .n_targets = n, .n_sources = 4 * n < MAX_N ? 4 * n : MAX_N - PAD};
  shapes(&p, pair);
  seed = 1;
  random_points(&p, 1, 0);
  fmm_pair_targets targets = targets_of(&p, got);
  for (int r = 0; r < RANGES; r++) ranges[r] = sources_of(&p);
  fmm_pair_sum_prepare(&sum, pair, p.params, columns, gradient, precisions[accuracy], tolerances[accuracy]);
  fmm_pair_sum_allow_coarse(&sum);
  double best = 1e30;
  for (int repeat = 0; repeat < 30; repeat++) {
    double start = now();
    fmm_pair_sum_add(&sum, &targets, RANGES, ranges);
    best = fmin(best, now() - start);
  }
  printf("%-8s %-7s %s tolerance %-6g leaf %4d columns %d gradient %d: %7.3f Gpair/s\n", pair->info->name, fmm_simd_name(fmm_simd_level()), precisions[accuracy] == FMM_PRECISION_DOUBLE ? "double" : "single",
         tolerances[accuracy], n, columns, gradient, 1e-9 * RANGES * (double)p.n_sources * n * columns / best);
}

/* Two leaves of n points onto each other, in interactions (two a pair). */
static void bench_both(const fmm_pair *pair, int accuracy, int n, int gradient) {
  fmm_pair_sum sum;
  p = (problem){.columns = 1, .gradient = gradient, .n_targets = n, .n_sources = n};
  shapes(&p, pair);
  seed = 1;
  random_points(&p, 1, 0);
  fmm_pair_points points[2];
  fmm_pair_sum_prepare(&sum, pair, p.params, 1, gradient, precisions[accuracy], tolerances[accuracy]);
  fmm_pair_sum_allow_coarse(&sum);
  const fmm_pair_side a = side_of(&sum, &points[0], n, p.targets, 1, p.density + 3, got[0] + 1, 0);
  const fmm_pair_side b = side_of(&sum, &points[1], n, p.sources, 1, p.density, expected[0] + 1, MAX_N + PAD);
  double best = 1e30;
  for (int repeat = 0; repeat < 200; repeat++) {
    double start = now();
    fmm_pair_sum_add_both(&sum, &store, &a, 1, &b);
    best = fmin(best, now() - start);
  }
  printf("%-8s %-7s %s tolerance %-6g leaf %4d both directions gradient %d: %7.3f Ginteraction/s\n", pair->info->name, fmm_simd_name(fmm_simd_level()),
         precisions[accuracy] == FMM_PRECISION_DOUBLE ? "double" : "single", tolerances[accuracy], n, gradient, 2e-9 * n * n / best);
}

static int bench(void) {
  const int leaves[] = {32, 57, 64, 100, 128, 256};
  for (int k = 0; fmm_pairs[k]; k++)
    for (int accuracy = 0; accuracy < N_ACCURACIES; accuracy++) {
      for (int l = 0; l < 6; l++) bench_one(fmm_pairs[k], accuracy, leaves[l], 1, 0);
      bench_one(fmm_pairs[k], accuracy, 64, 1, 1);
      bench_one(fmm_pairs[k], accuracy, 64, 4, 0);
      for (int l = 0; l < 6; l++) bench_both(fmm_pairs[k], accuracy, leaves[l], 0);
      bench_both(fmm_pairs[k], accuracy, 64, 1);
    }
  return 0;
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_tail_length_is_right),      cmocka_unit_test(every_number_of_columns_is_right),
      cmocka_unit_test(blocks_of_targets_join_up_and_add),       cmocka_unit_test(distances_of_any_size_are_right),
      cmocka_unit_test(densities_of_any_size_are_right), cmocka_unit_test(only_coincident_pairs_give_zero),
      cmocka_unit_test(exponential_underflows_to_zero),  cmocka_unit_test(both_directions_at_once_are_right),
      cmocka_unit_test(ends_of_an_extent_keep_the_sign_of_their_difference), cmocka_unit_test(zeros_beside_small_densities_are_right),
      cmocka_unit_test(sets_apart_and_of_unlike_sizes_are_right), cmocka_unit_test(a_set_onto_itself_is_right)};
  if (argc > 1 && !strcmp(argv[1], "--bench")) return bench();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
