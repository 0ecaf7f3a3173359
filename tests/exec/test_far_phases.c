/* The phases up, vlist and down: every optimised form (instruction sets, precisions, columns, pairs) against the plain references on trees of
 * several levels; bits independent of threads and of how rows are split; whole evaluations against direct sums. */
#include "test.h"

#include "far_scene.h"
#include "kernels/simd.h"
#include "kernels/vlist/vlist_kernels.h"
#include "runtime/counts.h"

extern const fmm_pair_info fmm_info_laplace;

enum { ARRAYS = 3 };
typedef struct snapshot { double *value[ARRAYS]; int64_t n[ARRAYS]; } snapshot;

static const double *array_of(const far_scene *s, int phase, int64_t *n) {
  *n = phase == FMM_PHASE_DOWN ? s->n_potential : s->n_far;
  return phase == FMM_PHASE_UP ? s->state.up_equivalent : phase == FMM_PHASE_VLIST ? s->state.down_check : s->state.potential;
}

static const int far_phases[ARRAYS] = {FMM_PHASE_UP, FMM_PHASE_VLIST, FMM_PHASE_DOWN};

/* Runs up, vlist, down one after another and keeps what each writes. */
static void run_far(far_scene *s, const fmm_phase_impl *const impl[ARRAYS], snapshot *result) {
  memset(s->state.potential, 0, (size_t)s->n_potential * sizeof(double));
  for (int i = 0; i < ARRAYS; i++) {
    assert_ok(far_scene_run(s, impl[i]));
    const double *values = array_of(s, far_phases[i], &result->n[i]);
    assert_ok(FMM_ALLOCATE(&result->value[i], result->n[i], "snapshot"));
    memcpy(result->value[i], values, (size_t)result->n[i] * sizeof *values);
  }
}

static void free_snapshot(snapshot *s) {
  for (int i = 0; i < ARRAYS; i++) FMM_FREE(&s->value[i]);
}

static const fmm_phase_impl *const optimised[ARRAYS] = {&fmm_up_cpu, &fmm_vlist_cpu, &fmm_down_cpu};
static const fmm_phase_impl *const reference[ARRAYS] = {&fmm_up_reference, &fmm_vlist_reference, &fmm_down_reference};

static double difference(const double *a, const double *b, int64_t n) {
  double d = 0, r = 0;
  for (int64_t i = 0; i < n; i++) d += (a[i] - b[i]) * (a[i] - b[i]), r += b[i] * b[i];
  return sqrt(d / r);
}

/* Equivalent densities of up are determined only as far as their potentials: the cut small singular values carry rounding, so up is compared
 * through what V and down make of it. Double: rounding of n-term sums, n eps = 5e-14 and a factor for the inverse; float V: 6e-8 likewise. */
static void compare(const far_scene_options *w, double bound, int single) {
  far_scene s;
  snapshot expected = {.n = {0}}, got = {.n = {0}};
  assert_ok(far_scene_create(&s, w));
  assert_true(s.lists.v.n_rows > 9 && s.tree.n_levels >= 4);
  run_far(&s, reference, &expected);
  for (int simd = FMM_SIMD_PLAIN; simd < FMM_N_SIMD; simd++) {
    fmm_simd_cap((fmm_simd)simd);
    if ((int)fmm_simd_level() != simd) break;
    if (single) s.state.precision[FMM_PHASE_VLIST] = FMM_PRECISION_SINGLE;
    memset(s.state.down_check, 77, (size_t)s.n_far * sizeof(double));
    run_far(&s, optimised, &got);
    for (int32_t box = 0; box < s.tree.n_boxes; box++) /* boxes without sources keep zeros: V gathers whole families */
      if (s.tree.source_end[box] == s.tree.source_begin[box])
        for (int i = 0; i < s.state.n_columns * s.operators->n; i++)
          if (got.value[0][(int64_t)box * s.state.n_columns * s.operators->n + i] != 0) fail_msg("box %d has no sources but densities", box);
    for (int i = 1; i < ARRAYS; i++) {
      double d = difference(got.value[i], expected.value[i], got.n[i]);
      if (!(d <= bound))
        fail_msg("%s of %s, %s, order %d, %d columns, gradient %d, %s: %g above %g", optimised[i]->name, w->pair, w->distribution, w->order, w->columns,
                 w->gradient, fmm_simd_name((fmm_simd)simd), d, bound);
    }
    free_snapshot(&got);
  }
  fmm_simd_cap(FMM_N_SIMD - 1);
  free_snapshot(&expected);
  far_scene_free(&s);
}

static void optimised_phases_match_the_references(void **state) {
  static const char *const pairs[] = {"laplace", "stokes", "yukawa"}, *const distributions[] = {"uniform", "plummer", "sphere"};
  for (int k = 0; k < 3; k++)
    for (int d = 0; d < 3; d++)
      for (int surfaces = 0; surfaces <= (k == 0); surfaces++)
        compare(&(far_scene_options){.distribution = distributions[d], .densities = "signed", .pair = pairs[k], .n = 500, .n_targets = d == 1 ? 400 : 0,
                                     .leaf_size = 9, .order = k == 1 ? 3 : 3 + d, .columns = 1 + 2 * (k == d), .gradient = d == 1, .threads = 2, .tolerance = 1e-14, .surfaces = surfaces},
                1e-11, 0);
}

static void single_precision_vlist_matches_to_single_rounding(void **state) {
  compare(&(far_scene_options){.distribution = "uniform", .densities = "signed", .pair = "laplace", .n = 600, .leaf_size = 9, .order = 4, .columns = 2,
                               .threads = 2, .tolerance = 1e-14},
          2e-5, 1);
}

/* V alone, by the rows of `cut` in turn, and backwards: boxes of parts have their group's lanes beside those of other parts. */
static void assert_cuts_keep_bits(far_scene *s, int parts, const int64_t *cut, const double *check, int64_t n) {
  const size_t before = fmm_memory_now();
  assert_ok(fmm_vlist_cpu.reserve(&s->state));
  const size_t held = fmm_memory_now() - before;
  assert_int_equal(fmm_vlist_cpu.bytes(&s->state), held);
  for (int backwards = 0; backwards < 2; backwards++) {
    memset(s->state.down_check, 77, (size_t)n * sizeof(double));
    for (int i = 0; i < parts; i++) assert_ok(fmm_vlist_cpu.run(&s->state, cut[backwards ? parts - 1 - i : i], cut[(backwards ? parts - 1 - i : i) + 1]));
    assert_memory_equal(s->state.down_check, check, (size_t)n * sizeof(double));
  }
  fmm_vlist_cpu.release(&s->state);
}

/* The more threads there are, the more slices of V's spectra are in memory at once. */
static void assert_bits_do_not_depend_on_threads_or_cuts(const far_scene_options *options, int64_t least_rows) {
  far_scene s;
  snapshot one = {.n = {0}};
  assert_ok(far_scene_create(&s, options));
  run_far(&s, optimised, &one);
  int64_t rows = s.lists.v.n_rows, cut[] = {0, 1, rows / 3, rows / 3 + 1, rows / 3 + 2, rows - 5, rows};
  assert_true(rows >= least_rows);
  for (int threads = 2; threads <= 5; threads++) {
    snapshot many = {.n = {0}};
    s.state.threads = threads;
    run_far(&s, optimised, &many);
    for (int i = 0; i < ARRAYS; i++) assert_memory_equal(one.value[i], many.value[i], (size_t)one.n[i] * sizeof(double));
    free_snapshot(&many);
    assert_cuts_keep_bits(&s, sizeof cut / sizeof *cut - 1, cut, one.value[1], one.n[1]);
  }
  free_snapshot(&one);
  far_scene_free(&s);
}

static void slices_go_round_evenly(void **state) {
  (void)state;
  for (int order = 2; order <= FMM_MAX_ORDER; order++) {
    assert_int_equal(fmm_vlist_slices(order, 1), 1);
    assert_int_equal(fmm_vlist_slices(order, 2), 1);
    assert_int_equal(fmm_vlist_slices(order, 4000), order);
    for (int threads = 1, before = 1; threads < 300; threads++) {
      const int slices = fmm_vlist_slices(order, threads), steps = (order + slices - 1) / slices;
      assert_true(slices >= before && slices <= order);
      assert_true(steps * (slices - 1) < order); /* no fewer would do in as many steps */
      before = slices;
    }
  }
  assert_int_equal(fmm_vlist_slices(4, 16), 4);
  assert_int_equal(fmm_vlist_slices(7, 16), 4);
  assert_int_equal(fmm_vlist_slices(11, 16), 3);
}

static void bits_do_not_depend_on_threads_or_on_how_rows_are_split(void **state) {
  far_scene_options options = {.distribution = "ellipsoid", .densities = "signed", .pair = "laplace", .n = 3000, .leaf_size = 12, .order = 4, .columns = 1, .gradient = 1, .threads = 1, .tolerance = 1e-14};
  assert_bits_do_not_depend_on_threads_or_cuts(&options, 6);
  /* Several slabs, since many columns make them short: three times so many groups each, of sources and targets together. */
  options.leaf_size = 2, options.order = 3, options.columns = 64, options.gradient = 0;
  const fmm_count_case what = {.pair = &fmm_info_laplace, .order = options.order, .n_columns = options.columns};
  assert_bits_do_not_depend_on_threads_or_cuts(&options, 3 * fmm_vlist_slab_rows(&what, sizeof(double)));
}

/* Orders and bounds: the far-field error that far_field_error.c measures for the order (test_operators), twice that for the worst placement. */
static void whole_evaluations_match_direct_sums(void **state) {
  static const struct { const char *distribution, *pair; int order; double bound; } cases[] = {
      {"uniform", "laplace", 6, 1e-5}, {"ellipsoid", "laplace", 10, 1e-8}, {"plummer", "laplace", 14, 1e-11}, {"sphere", "stokes", 6, 2e-4}, {"uniform", "yukawa", 7, 3e-6}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    far_scene s = {0};
    double error[2] = {INFINITY, INFINITY};
    assert_ok(far_scene_create(&s, &(far_scene_options){.distribution = cases[k].distribution, .densities = "signed", .pair = cases[k].pair, .n = 3000,
                                                        .leaf_size = 40, .order = cases[k].order, .columns = 1, .gradient = 1, .threads = 2, .tolerance = 1e-14}));
    const fmm_phase_impl *const all[] = {&fmm_up_cpu, &fmm_vlist_cpu, &fmm_xlist_cpu, &fmm_down_cpu, &fmm_wlist_cpu, &fmm_ulist_cpu};
    for (int i = 0; i < 6; i++) assert_ok(far_scene_run(&s, all[i]));
    assert_ok(far_scene_error(&s, 300, error));
    if (!(error[0] <= cases[k].bound && error[1] <= 5 * cases[k].bound))
      fail_msg("%s %s order %d: %g and %g above %g", cases[k].distribution, cases[k].pair, cases[k].order, error[0], error[1], cases[k].bound);
    far_scene_free(&s);
  }
}

/* Transforms of two parents, one after the other, as bytes. */
static void transform_two(const fmm_vlist_kernels *k, const fmm_vlist_shape *shape, const char *points, char *spectra, int kz, int past, void *scratch) {
  for (int parent = 0; parent < 2; parent++)
    k->forward(shape, points + (size_t)parent * (size_t)shape->n_surface * 8 * k->real_bytes, kz, spectra + (size_t)parent * 16 * k->real_bytes, 2 * 16, past, scratch);
}

/* Slabs whose spectra leave the caches write them past these: larger ones than the trees of these tests have. */
static void spectra_written_past_the_caches_are_the_same(void **state) {
  for (int simd = FMM_SIMD_PLAIN; simd < FMM_N_SIMD; simd++)
    for (int single = 0; single < 2; single++)
      for (int order = 2; order <= 11; order += order < 6 ? 2 : 1) {
        fmm_surface surface;
        fmm_vlist_shape shape;
        char *points = NULL, *spectra[2] = {NULL}, *scratch = NULL;
        fmm_simd_cap((fmm_simd)simd);
        const fmm_vlist_kernels *k = fmm_vlist_kernels_find(single);
        assert_ok(fmm_surface_create(&surface, order));
        assert_ok(fmm_vlist_shape_create(&shape, &surface, single));
        const size_t n = 2 * (size_t)shape.n_surface * 8, bytes = 2 * (size_t)shape.grid * (size_t)shape.grid * 16 * k->real_bytes;
        assert_ok(FMM_ALLOCATE(&points, n * k->real_bytes, "points"));
        assert_ok(FMM_ALLOCATE(&scratch, fmm_vlist_scratch_bytes(&shape, k), "scratch"));
        for (size_t i = 0; i < n; i++)
          if (single) ((float *)points)[i] = (float)sin((double)i);
          else ((double *)points)[i] = sin((double)i);
        for (int past = 0; past < 2; past++) assert_ok(FMM_ALLOCATE(&spectra[past], bytes, "spectra"));
        for (int kz = 0; kz < order; kz++) {
          for (int past = 0; past < 2; past++) {
            memset(spectra[past], 0, bytes);
            transform_two(k, &shape, points, spectra[past], kz, past, scratch);
          }
          assert_memory_equal(spectra[0], spectra[1], bytes);
        }
        FMM_FREE(&points);
        FMM_FREE(&scratch);
        for (int past = 0; past < 2; past++) FMM_FREE(&spectra[past]);
        fmm_vlist_shape_free(&shape);
        fmm_surface_free(&surface);
      }
  fmm_simd_cap(FMM_SIMD_AVX512);
}

static void failing_memory_is_reported_and_leaks_nothing(void **state) {
  far_scene s;
  assert_ok(far_scene_create(&s, &(far_scene_options){.distribution = "uniform", .densities = "signed", .pair = "laplace", .n = 500, .leaf_size = 9,
                                                      .order = 3, .columns = 1, .threads = 2, .tolerance = 1e-14}));
  size_t before = fmm_memory_now();
  for (int i = 0; i < ARRAYS; i++) {
    assert_allocations_may_fail(optimised[i]->reserve(&s.state), 3);
    assert_true(fmm_memory_now() - before <= optimised[i]->bytes(&s.state) + 65536); /* small tables are not counted */
    optimised[i]->release(&s.state);
  }
  far_scene_free(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(optimised_phases_match_the_references),
                                     cmocka_unit_test(single_precision_vlist_matches_to_single_rounding),
                                     cmocka_unit_test(slices_go_round_evenly), cmocka_unit_test(bits_do_not_depend_on_threads_or_on_how_rows_are_split),
                                     cmocka_unit_test(whole_evaluations_match_direct_sums),
                                     cmocka_unit_test(spectra_written_past_the_caches_are_the_same),
                                     cmocka_unit_test(failing_memory_is_reported_and_leaks_nothing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
