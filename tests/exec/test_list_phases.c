/* The phases U, W and X on real trees: optimised against plain C reference, and the same bits for any number of threads and any cut of the
 * rows (of the U list: at its groups' borders). `test_list_phases --bench [points [leaf size]]` times the U list instead. Bounds are those of test_pair_sums.c, on the relative L2 norm: double rounding grows with the terms summed (a few thousand). */
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "kernels/phase.h"
#include "kernels/simd.h"
#include "runtime/generate.h"
#include "runtime/memory.h"

enum { N = 3000, ORDER = 4, MAX_VALUES = 12 };

typedef struct fixture {
  fmm_tree tree;
  fmm_lists lists;
  fmm_operators *operators;
  fmm_state state;
  double params[FMM_MAX_PARAMS];
  double *density, *equivalent, *potential, *check;
  int64_t n_potential, n_check;
} fixture;

static double *random_values(int64_t n, uint64_t seed) {
  double *values;
  assert_ok(FMM_ALLOCATE(&values, n, "test values"));
  assert_ok(fmm_generate_densities("signed", n, seed, values, 1));
  return values;
}

/* Ellipsoid: adaptive, all lists are there. other_targets: half of them sources, half between. */
static void make(fixture *f, const char *kernel, int gradient, int other_targets, int columns) {
  static double sources[N][3], targets[N][3];
  const fmm_tree_options options = {.leaf_size = 20, .root_scale = 1};
  const fmm_pair *pair;
  *f = (fixture){.n_check = 0};
  assert_ok(fmm_generate_points("ellipsoid", N, 7, sources[0], 1));
  assert_ok(fmm_generate_points("plummer", N, 8, targets[0], 1));
  for (int i = 0; i < N; i++)
    for (int a = 0; a < 3; a++) targets[i][a] = i % 2 ? sources[i][a] : 0.05 * targets[i][a];
  assert_ok(fmm_tree_build(&f->tree, N, sources[0], NULL, other_targets ? N : 0, other_targets ? targets[0] : NULL, &options, 1));
  assert_ok(fmm_lists_build(&f->lists, &f->tree, 8, FMM_LISTS_TO_SUM, 1));
  assert_true(f->lists.u.n_entries > 0 && f->lists.w.n_entries > 0 && f->lists.x.n_entries > 0);
  assert_ok(fmm_pair_find(kernel, &pair));
  assert_ok(fmm_pair_resolve_params(pair->info, 0, NULL, f->params));
  assert_ok(fmm_operators_create(&f->operators, pair, f->params, ORDER, fmm_half_width(&f->tree, 0), f->tree.n_levels, 1));
  int64_t box_values = (int64_t)f->tree.n_boxes * columns * f->operators->n;
  f->density = random_values((int64_t)pair->info->components * columns * f->tree.sources.n, 3);
  f->equivalent = random_values(box_values, 4);
  f->n_check = box_values;
  f->n_potential = (int64_t)pair->info->outputs * (gradient ? 4 : 1) * columns * f->tree.targets.n;
  assert_ok(FMM_ALLOCATE_ZERO(&f->potential, f->n_potential, "test potential"));
  assert_ok(FMM_ALLOCATE_ZERO(&f->check, f->n_check, "test check potentials"));
  f->state = (fmm_state){.tree = &f->tree, .lists = &f->lists, .pair = pair, .params = f->params, .operators = f->operators,
                         .n_columns = columns, .gradient = gradient, .threads = 1, .tolerance = 1e-12, .density = f->density,
                         .potential = f->potential, .up_equivalent = f->equivalent, .down_check = f->check};
}

static void release(fixture *f) {
  FMM_FREE(&f->density);
  FMM_FREE(&f->equivalent);
  FMM_FREE(&f->potential);
  FMM_FREE(&f->check);
  fmm_operators_destroy(&f->operators);
  fmm_lists_free(&f->lists);
  fmm_tree_free(&f->tree);
}

static int64_t rows_of(const fixture *f, fmm_phase phase) {
  return phase == FMM_PHASE_ULIST ? f->lists.u.n_rows : phase == FMM_PHASE_WLIST ? f->lists.w.n_rows : f->lists.x.n_rows;
}

/* A copy of what the phase writes, from zero; the rows in `parts` ranges. */
static double *result_of(fixture *f, const fmm_phase_impl *impl, int threads, int parts) {
  double *values = impl->phase == FMM_PHASE_XLIST ? f->check : f->potential, *copy;
  int64_t n = impl->phase == FMM_PHASE_XLIST ? f->n_check : f->n_potential, rows = rows_of(f, impl->phase);
  f->state.threads = threads;
  memset(values, 0, (size_t)n * sizeof *values);
  if (impl->reserve) assert_ok(impl->reserve(&f->state));
  for (int k = 0; k < parts; k++) assert_ok(impl->run(&f->state, rows * k / parts, rows * (k + 1) / parts));
  if (impl->release) impl->release(&f->state);
  assert_ok(FMM_ALLOCATE(&copy, n, "test results"));
  memcpy(copy, values, (size_t)n * sizeof *values);
  return copy;
}

static double relative_l2(int64_t n, const double *a, const double *b) {
  double difference = 0, size = 0;
  for (int64_t i = 0; i < n; i++) difference += (a[i] - b[i]) * (a[i] - b[i]), size += b[i] * b[i];
  assert_true(size > 0);
  return sqrt(difference / size);
}

static void compare(fixture *f, const fmm_phase_impl *fast, const fmm_phase_impl *plain, fmm_precision precision, double tolerance, double bound) {
  int64_t n = fast->phase == FMM_PHASE_XLIST ? f->n_check : f->n_potential;
  f->state.precision[fast->phase] = precision;
  f->state.tolerance = tolerance;
  double *expected = result_of(f, plain, 1, 1), *one = result_of(f, fast, 1, 1), *four = result_of(f, fast, 4, 1), *cut = result_of(f, fast, 3, 5);
  double error = relative_l2(n, one, expected);
  if (!(error <= bound)) fail_msg("%s %s gradient %d tolerance %g: error %g", fast->name, f->state.pair->info->name, f->state.gradient, tolerance, error);
  if (memcmp(one, four, (size_t)n * sizeof *one)) fail_msg("%s: other bits with four threads", fast->name);
  error = relative_l2(n, cut, expected); /* cuts inside its groups change the order of the U list's sums, nothing else */
  if (!(error <= bound)) fail_msg("%s in five pieces: error %g", fast->name, error);
  if (fast->phase != FMM_PHASE_ULIST && memcmp(one, cut, (size_t)n * sizeof *one)) fail_msg("%s: other bits in five pieces", fast->name);
  FMM_FREE(&expected);
  FMM_FREE(&one);
  FMM_FREE(&four);
  FMM_FREE(&cut);
}

static void compare_all(const fmm_phase_impl *fast, const fmm_phase_impl *plain) {
  for (int k = 0; fmm_pairs[k]; k++)
    for (int variant = 0; variant < 6; variant++) {
      const double full = 1e-14 * fmax(1, fabs(fmm_pairs[k]->info->degree)); /* distances' rounding comes as many times */
      fixture f;
      make(&f, fmm_pairs[k]->info->name, variant & 1, variant < 4 && variant & 2, variant < 4 ? 3 : 1); /* one column: both directions */
      compare(&f, fast, plain, FMM_PRECISION_DOUBLE, 1e-12, full);
      compare(&f, fast, plain, FMM_PRECISION_DOUBLE, 1e-6, 1e-6);
      compare(&f, fast, plain, FMM_PRECISION_SINGLE, 1e-6, 1e-6);
      compare(&f, fast, plain, FMM_PRECISION_MIXED, 1e-3, 1e-3);
      f.state.harmonics = f.operators->harmonics.n_terms > 0 && fast->phase != FMM_PHASE_ULIST;
      for (int simd = FMM_SIMD_PLAIN; simd < FMM_N_SIMD && f.state.harmonics; simd++) {
        fmm_simd_cap((fmm_simd)simd);
        compare(&f, fast, plain, FMM_PRECISION_DOUBLE, 1e-12, full);
        compare(&f, fast, plain, FMM_PRECISION_SINGLE, 1e-3, 1e-6);
      }
      fmm_simd_cap(FMM_N_SIMD - 1);
      release(&f);
    }
}

static void ulist_matches_its_reference_with_the_same_bits_for_any_threads(void **state) { compare_all(&fmm_ulist_cpu, &fmm_ulist_reference); }
static void wlist_matches_its_reference_with_the_same_bits_for_any_threads(void **state) { compare_all(&fmm_wlist_cpu, &fmm_wlist_reference); }
static void xlist_matches_its_reference_with_the_same_bits_for_any_threads(void **state) { compare_all(&fmm_xlist_cpu, &fmm_xlist_reference); }

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* one thread: other programs do not count */
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double count_pairs(const fixture *f) {
  const fmm_rows *u = &f->lists.u;
  double pairs = 0;
  for (int32_t row = 0; row < u->n_rows; row++)
    for (int64_t e = u->offset[row]; e < u->offset[row + 1]; e++)
      pairs += (double)(f->tree.target_end[u->row[row]] - f->tree.target_begin[u->row[row]]) *
               (double)(f->tree.source_end[u->entry[e]] - f->tree.source_begin[u->entry[e]]);
  return pairs;
}

static void bench_case(fixture *f, const char *distribution, fmm_precision precision, double tolerance, int gradient) {
  double best = 1e30;
  f->state.precision[FMM_PHASE_ULIST] = precision, f->state.tolerance = tolerance, f->state.gradient = gradient;
  for (int repeat = 0; repeat < 5; repeat++) {
    double start = now();
    assert_ok(fmm_ulist_cpu.run(&f->state, 0, f->lists.u.n_rows));
    best = fmin(best, now() - start);
  }
  printf("%-9s leaves of %5.1f, %s, tolerance %-5g gradient %d: %8.2f ms, %6.2f Ginteraction/s\n", distribution,
         (double)f->tree.sources.n / f->lists.u.n_rows, precision == FMM_PRECISION_DOUBLE ? "double" : "single", tolerance, gradient, 1e3 * best,
         1e-9 * count_pairs(f) / best);
}

static int bench(int64_t n, int leaf_size) {
  const char *const distributions[] = {"uniform", "ellipsoid"};
  const fmm_tree_options options = {.leaf_size = leaf_size, .root_scale = 1};
  for (int d = 0; d < 2; d++) {
    fixture f = {.n_check = 0};
    double *points;
    assert_ok(FMM_ALLOCATE(&points, 3 * n, "points"));
    assert_ok(fmm_generate_points(distributions[d], n, 7, points, 1));
    assert_ok(fmm_tree_build(&f.tree, n, points, NULL, 0, NULL, &options, 1));
    assert_ok(fmm_lists_build(&f.lists, &f.tree, 56, FMM_LISTS_TO_SUM, 1));
    f.density = random_values(n, 3);
    assert_ok(FMM_ALLOCATE_ZERO(&f.potential, 4 * n, "potential"));
    f.state = (fmm_state){.tree = &f.tree, .lists = &f.lists, .pair = fmm_pairs[0], .params = f.params, .n_columns = 1, .threads = 1,
                          .density = f.density, .potential = f.potential};
    double start = now();
    assert_ok(fmm_ulist_cpu.reserve(&f.state));
    printf("%-9s set-up of groups %.2f ms\n", distributions[d], 1e3 * (now() - start));
    for (int gradient = 0; gradient < 2; gradient++) {
      bench_case(&f, distributions[d], FMM_PRECISION_DOUBLE, 1e-12, gradient);
      bench_case(&f, distributions[d], FMM_PRECISION_DOUBLE, 1e-6, gradient);
      bench_case(&f, distributions[d], FMM_PRECISION_SINGLE, 1e-6, gradient);
      bench_case(&f, distributions[d], FMM_PRECISION_SINGLE, 1e-3, gradient);
    }
    fmm_ulist_cpu.release(&f.state);
    FMM_FREE(&points);
    release(&f);
  }
  return 0;
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(ulist_matches_its_reference_with_the_same_bits_for_any_threads),
                                     cmocka_unit_test(wlist_matches_its_reference_with_the_same_bits_for_any_threads),
                                     cmocka_unit_test(xlist_matches_its_reference_with_the_same_bits_for_any_threads)};
  if (argc > 1 && !strcmp(argv[1], "--bench")) return bench(argc > 2 ? atoll(argv[2]) : 100000, argc > 3 ? atoi(argv[3]) : 64);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
