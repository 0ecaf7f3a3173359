/* Every phase on the GPU against its plain C reference (phases.h), on hostile inputs: adaptive trees, other targets, coincident points, empty and one-point
 * leaves, every pair interaction, potential and gradient, several columns, ranges of rows; and the same bits on every run and for every cut. Exit 77 without a GPU. */
#include "kernels/pair/pair_tiles.h"
#include "phases.h"

static const shape shapes[] = {
    {"laplace, ellipsoid", "laplace", "ellipsoid", 1500, 4, 12, 1, 0, 0, 0, 1e-12},
    {"laplace, gradient, 3 columns, other targets", "laplace", "ellipsoid", 1500, 4, 12, 3, 1, 1, 0, 1e-12},
    {"laplace, one Newton step", "laplace", "plummer", 2000, 6, 30, 1, 1, 0, 0, 1e-6},
    {"laplace, coincident points", "laplace", "uniform", 1200, 3, 8, 1, 0, 0, 1, 1e-12},
    {"laplace, large leaves", "laplace", "ellipsoid", 4000, 2, 700, 1, 1, 0, 0, 1e-12},
    {"stokes, gradient", "stokes", "ellipsoid", 900, 4, 12, 1, 1, 0, 0, 1e-12},
    {"stokes, 2 columns, other targets", "stokes", "plummer", 900, 3, 12, 2, 0, 1, 0, 1e-6},
    {"yukawa, gradient", "yukawa", "ellipsoid", 1200, 5, 12, 1, 1, 0, 0, 1e-12},
    {"laplace, order 9", "laplace", "uniform", 100, 9, 3, 1, 0, 0, 0, 1e-12},
    {"laplace, large leaves beside many small boxes", "laplace", "plummer", 3000, 3, 40, 2, 1, 0, 0, 1e-12}, /* W's tiles are cut */
    {"laplace, order 10", "laplace", "ellipsoid", 70, 10, 2, 1, 0, 0, 0, 1e-12},                             /* V's transforms: some of a parent's children a block */
    {"laplace, order 11", "laplace", "ellipsoid", 60, 11, 2, 1, 0, 0, 0, 1e-6},
    {"laplace, order 12, 2 columns", "laplace", "ellipsoid", 50, 12, 2, 2, 0, 0, 0, 1e-12},
    {"laplace, order 13", "laplace", "ellipsoid", 40, 13, 2, 1, 0, 0, 0, 1e-6},                               /* for any order */
    {"laplace, order 3, surfaces as lattices", "laplace", "ellipsoid", 1500, 3, 12, 1, 0, 0, 0, 1e-6},
    {"laplace, order 4, surfaces as lattices", "laplace", "plummer", 1500, 4, 12, 1, 0, 1, 0, 1e-6},
    {"laplace, order 5, surfaces as lattices", "laplace", "ellipsoid", 1500, 5, 20, 1, 0, 0, 1, 1e-6},
    {"laplace, order 6, surfaces as lattices", "laplace", "plummer", 2000, 6, 30, 1, 0, 0, 0, 1e-6},
    {"laplace, order 7, surfaces as lattices", "laplace", "ellipsoid", 500, 7, 20, 1, 0, 0, 0, 1e-6},
    {"laplace, order 8, surfaces as lattices", "laplace", "plummer", 400, 8, 20, 1, 0, 1, 0, 1e-6},
    {"laplace, order 3, gradients by lattices", "laplace", "ellipsoid", 1500, 3, 12, 1, 1, 0, 0, 1e-6},
    {"laplace, order 4, gradients by lattices", "laplace", "plummer", 1500, 4, 12, 1, 1, 1, 0, 1e-6},
    {"laplace, order 5, gradients by lattices", "laplace", "ellipsoid", 1500, 5, 20, 1, 1, 0, 1, 1e-6},
    {"laplace, order 7, gradients by lattices", "laplace", "ellipsoid", 500, 7, 20, 1, 1, 0, 0, 1e-6},
    {"laplace, order 8, gradients by lattices", "laplace", "plummer", 400, 8, 20, 1, 1, 1, 0, 1e-6},
    {"laplace, a warp a row", "laplace", "uniform", 4500, 3, 1, 1, 0, 0, 0, 1e-6},
    {"laplace, a subnormal square", "laplace", "uniform", 500, 3, 20, 1, 0, 0, TINY, 1e-6},
};

static void every_phase_matches_its_reference_and_keeps_its_bits(void **context) {
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    fixture f;
    make(&f, &shapes[i]);
    check_up(&f);
    check_phase(&f, &fmm_ulist_reference, f.potential, f.n_potential);
    check_phase(&f, &fmm_wlist_reference, f.potential, f.n_potential);
    check_phase(&f, &fmm_xlist_reference, f.check, f.n_boxes_values);
    check_phase(&f, &fmm_vlist_reference, f.check, f.n_boxes_values);
    memcpy(f.sent, f.check, (size_t)f.n_boxes_values * sizeof *f.sent); /* the reference adds the parents' part in place */
    check_phase(&f, down_expected(&f, 0), f.potential, f.n_potential);
    release(&f);
  }
}

/* With boxes of up to 200 sources summed directly and lists as for other targets, many a leaf has a box in its list whose leaves have not that leaf in theirs alone; and in parts that cut
 * most pairs of leaves. */
static void u_in_both_directions_takes_boxes_without_mates(void **context) {
  static const shape direct = {"laplace, many boxes summed directly", "laplace", "plummer", 3000, 3, 20, 1, 0, 0, 0, 1e-6}, large = {"laplace, rows of several tiles", "laplace", "ellipsoid", 5000, 3, 900, 1, 0, 0, 0, 1e-6},
                     larger = {"laplace, leaves of several chunks", "laplace", "plummer", 9000, 3, 2500, 1, 0, 0, 0, 1e-6};
  static const shape *const all[] = {&direct, &large, &larger};
  for (int i = 0; i < 3; i++) {
    fixture f;
    make(&f, all[i]);
    int64_t most = 0;
    for (int32_t b = 0; b < f.tree.n_boxes; b++) most = f.tree.n_children[b] || f.tree.source_end[b] - f.tree.source_begin[b] < most ? most : f.tree.source_end[b] - f.tree.source_begin[b];
    assert_true(f.tree.n_leaves > 1 && (all[i] == &larger) == (most > FMM_BOTH_CHUNK));
    fmm_lists_free(&f.lists);
    f.tree.same_points = 0;
    assert_ok(fmm_lists_build(&f.lists, &f.tree, 200, FMM_LISTS_TO_SUM, 1));
    f.tree.same_points = 1;
    use_precision(&f, FMM_PRECISION_DOUBLE, 1e-6);
    check_phase(&f, &fmm_ulist_reference, f.potential, f.n_potential);
    double *before = values_of(f.n_potential, 0);
    memcpy(before, f.fetched, (size_t)f.n_potential * sizeof *before);
    assert_same_bits(&f, FMM_PHASE_ULIST, before, f.n_potential, 17);
    use_precision(&f, FMM_PRECISION_MIXED, 1e-5);
    assert_false(fmm_gpu_plan_falls_back(f.plan));
    run_gpu(&f, FMM_PHASE_ULIST, 1);
    assert_close(f.shape, "ulist in float", f.n_potential, f.potential, f.fetched, 3e-6);
    memcpy(before, f.fetched, (size_t)f.n_potential * sizeof *before);
    assert_same_bits(&f, FMM_PHASE_ULIST, before, f.n_potential, 17);
    FMM_FREE(&before);
    release(&f);
  }
}

/* Whether all of U in single is in double, and its parts in both directions are kept so. */
static void assert_wide(const fixture *f, const fmm_gpu_request *request, int wide) {
  size_t least, best;
  fmm_gpu_plan_predict(request, &least, &best);
  assert_true((fmm_gpu_plan_device_bytes(f->plan) > best) == wide);
}

/* With gradients in single alone: boxes without mates, rows of several tiles and of several chunks, trees of one leaf of an odd and an even number of tiles, coincident points, derivatives that float cannot hold (those of
 * the two nearest points are all of the norm then). In one direction where there is no room for the parts. */
static void gradients_are_summed_in_both_directions_in_single(void **context) {
  static const shape cases[] = {{"gradient, boxes summed directly", "laplace", "plummer", 3000, 3, 20, 1, 1, 0, 0, 1e-5}, {"gradient, rows of several tiles", "laplace", "ellipsoid", 5000, 3, 900, 1, 1, 0, 0, 1e-5},
                                {"gradient, leaves of several chunks", "laplace", "plummer", 9000, 3, 2500, 1, 1, 0, 0, 1e-5}, {"gradient, leaves of few points", "laplace", "uniform", 2000, 3, 5, 1, 1, 0, 0, 1e-5},
                                {"gradient, one leaf of 141 tiles", "laplace", "plummer", 4500, 2, 5000, 1, 1, 0, 0, 1e-5}, {"gradient, one leaf of 136 tiles", "laplace", "ellipsoid", 4347, 2, 5000, 1, 1, 0, 0, 1e-5},
                                {"gradient, one leaf, coincident points", "laplace", "uniform", 6600, 2, 7000, 1, 1, 0, 1, 1e-5},
                                {"gradient, derivatives beyond float", "laplace", "uniform", 3000, 3, 60, 1, 1, 0, CLOSE, 1e-5}, {"gradient, one leaf, derivatives beyond float", "laplace", "uniform", 4500, 2, 5000, 1, 1, 0, CLOSE, 1e-5}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    fixture f;
    make(&f, &cases[i]);
    const int64_t n = f.tree.targets.n;
    if (f.tree.n_leaves > 1) { /* lists as for other targets, in which some boxes are summed directly */
      fmm_lists_free(&f.lists);
      f.tree.same_points = 0;
      assert_ok(fmm_lists_build(&f.lists, &f.tree, i == 0 ? 200 : 4, FMM_LISTS_TO_SUM, 1));
      f.tree.same_points = 1;
    }
    run_reference(&f, &fmm_ulist_reference);
    for (int fallen = 0; fallen < 2; fallen++) {
      size_t least, best;
      fmm_gpu_request request = {.state = &f.state, .phases = 1u << FMM_PHASE_ULIST, .threads = 1};
      fmm_gpu_plan_destroy(&f.plan);
      f.state.precision[FMM_PHASE_ULIST] = FMM_PRECISION_MIXED;
      fmm_gpu_plan_predict(&request, &least, &best);
      request.memory_cap = fallen ? least : 0;
      assert_ok(fmm_gpu_plan_create(&f.plan, &request));
      f.state.precision[FMM_PHASE_ULIST] = FMM_PRECISION_DOUBLE;
      assert_true(least < best && (fmm_gpu_plan_falls_back(f.plan) != 0) == fallen && (fmm_gpu_plan_device_bytes(f.plan) > least) == !fallen);
      run_gpu(&f, FMM_PHASE_ULIST, 1);
      for (int64_t k = 0; k < f.n_potential; k++) assert_true(isfinite(f.fetched[k]));
      assert_close(f.shape, "potentials", n, f.potential, f.fetched, 3e-6);
      assert_close(f.shape, "derivatives", 3 * n, f.potential + n, f.fetched + n, 1e-5);
      if (fallen) continue;
      f.state.precision[FMM_PHASE_ULIST] = FMM_PRECISION_MIXED;
      assert_wide(&f, &request, cases[i].coincident == CLOSE);
      f.state.precision[FMM_PHASE_ULIST] = FMM_PRECISION_DOUBLE;
      double *before = values_of(f.n_potential, 0);
      memcpy(before, f.fetched, (size_t)f.n_potential * sizeof *before);
      assert_same_bits(&f, FMM_PHASE_ULIST, before, f.n_potential, 17);
      FMM_FREE(&before);
    }
    release(&f);
  }
}

static void single_precision_pairs_keep_about_six_digits(void **context) {
  fixture f;
  make(&f, &shapes[2]);
  fmm_gpu_plan_destroy(&f.plan);
  f.state.precision[FMM_PHASE_ULIST] = FMM_PRECISION_MIXED;
  fmm_gpu_request request = {.state = &f.state, .phases = 1u << FMM_PHASE_ULIST, .threads = 1};
  assert_ok(fmm_gpu_plan_create(&f.plan, &request));
  f.state.precision[FMM_PHASE_ULIST] = FMM_PRECISION_DOUBLE;
  run_reference(&f, &fmm_ulist_reference);
  run_gpu(&f, FMM_PHASE_ULIST, 1);
  /* the potential only: gradients of close pairs in float are as good as their distances */
  assert_close(f.shape, "ulist in float", f.tree.targets.n, f.potential, f.fetched, 3e-6);
  release(&f);
}

/* Every phase in single precision where the order allows it (kernels/phase.h): values of 1e-7, cancelling some tenfold, in derivatives
 * a hundredfold; L2P's equivalents hold what the inverses make of it. */
static void every_phase_in_single_precision_keeps_five_digits(void **context) {
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    fixture f;
    make(&f, &shapes[i]);
    use_precision(&f, FMM_PRECISION_SINGLE, 1e-5);
    run_up_expected(&f);
    if (f.shape->order <= 8) {
      run_gpu(&f, FMM_PHASE_UP, 1);
      check_up_fields_within(&f, 1e-5);
    }
    static const fmm_phase_impl *const impl[] = {&fmm_ulist_reference, &fmm_wlist_reference, &fmm_xlist_reference, &fmm_vlist_reference, &fmm_down_reference};
    for (int k = 0; k < 5; k++) {
      if (f.shape->order > 8 && impl[k]->phase != FMM_PHASE_VLIST) continue; /* other sums are double there */
      int on_boxes = impl[k]->phase == FMM_PHASE_XLIST || impl[k]->phase == FMM_PHASE_VLIST;
      double *result = on_boxes ? f.check : f.potential;
      int64_t n = on_boxes ? f.n_boxes_values : f.n_potential;
      memset(result, 0, (size_t)n * sizeof *result);
      if (impl[k]->phase == FMM_PHASE_DOWN) memcpy(f.sent, f.check, (size_t)f.n_boxes_values * sizeof *f.sent);
      run_reference(&f, impl[k]);
      run_gpu(&f, impl[k]->phase, 1);
      assert_close(f.shape, impl[k]->name, n, result, f.fetched, f.shape->gradient ? 1e-4 : 1e-5);
    }
    release(&f);
  }
}

/* Points of the unit cube, of which some make a cluster about its middle, which is a corner of leaves where there are several; `pair`: two more a billionth apart on a face between leaves
 * of a quarter's width. U in single within the tolerance of the reference, which needs such pairs in double: those of some tiles, or of all where `wide`. */
static void check_cluster(const char *what, int64_t n, int leaf_size, double width, int pair, int gradient, int wide, double tolerance) {
  enum { CLUSTER = 40 };
  const shape s = {what, "laplace", "uniform", n, 4, leaf_size, 1, gradient, 0, 0, tolerance};
  const fmm_tree_options options = {.leaf_size = leaf_size, .root_scale = 1};
  fixture f = {.shape = &s};
  double *points = values_of(3 * n, 1);
  assert_ok(fmm_generate_points("uniform", n, 7, points, 1));
  for (int i = 0; i < 3 * CLUSTER; i++) points[i] = 0.5 + width * (points[i] - 0.5);
  for (int k = 0; k < 3; k++) points[3 * CLUSTER + k] = 0, points[3 * CLUSTER + 3 + k] = 1; /* the cube's corners */
  for (int i = 0; pair && i < 2; i++) points[3 * CLUSTER + 6 + 3 * i] = 0.25 + (i - 0.5) * 1e-9, points[3 * CLUSTER + 7 + 3 * i] = 0.13, points[3 * CLUSTER + 8 + 3 * i] = 0.12;
  assert_ok(fmm_tree_build(&f.tree, n, points, NULL, 0, NULL, &options, 1));
  assert_ok(fmm_lists_build(&f.lists, &f.tree, 4, FMM_LISTS_TO_SUM, 1));
  assert_true((f.tree.n_leaves == 1) == (leaf_size >= n));
  const fmm_pair *laplace;
  assert_ok(fmm_pair_find("laplace", &laplace));
  f.n_potential = (gradient ? 4 : 1) * f.tree.targets.n;
  f.input = values_of(n, 3), f.density = values_of(f.tree.sources.n, 0), f.potential = values_of(f.n_potential, 0), f.fetched = values_of(f.n_potential, 0);
  fmm_gather_densities(&f.tree.sources, 1, f.input, f.density, 0, NULL, 1);
  f.state = (fmm_state){.tree = &f.tree, .lists = &f.lists, .pair = laplace, .params = f.params, .n_columns = 1, .gradient = gradient, .threads = 1, .tolerance = tolerance,
                        .density = f.density, .potential = f.potential};
  run_reference(&f, &fmm_ulist_reference);
  f.state.precision[FMM_PHASE_ULIST] = FMM_PRECISION_MIXED;
  fmm_gpu_request request = {.state = &f.state, .phases = 1u << FMM_PHASE_ULIST, .threads = 1};
  assert_ok(fmm_gpu_plan_create(&f.plan, &request));
  assert_false(fmm_gpu_plan_falls_back(f.plan));
  assert_wide(&f, &request, wide);
  run_gpu(&f, FMM_PHASE_ULIST, 1);
  for (int64_t i = 0; i < f.n_potential; i++) assert_true(isfinite(f.fetched[i]));
  assert_close(f.shape, "potentials", f.tree.targets.n, f.potential, f.fetched, tolerance);
  if (gradient) assert_close(f.shape, "derivatives", 3 * f.tree.targets.n, f.potential + f.tree.targets.n, f.fetched + f.tree.targets.n, tolerance);
  FMM_FREE(&points);
  release(&f);
}

/* A cluster 1e-9 wide in leaves of a quarter's width and more: in float its points would be one. And two points that would be one, whose sum would be infinite, beside a cluster so strong that their error seems to be nothing. */
static void tiles_that_are_too_tight_for_float_are_done_in_double(void **context) {
  check_cluster("a tight cluster in one leaf, gradient", 600, 600, 1e-9, 0, 1, 0, 1e-5);
  check_cluster("a tight cluster in one leaf", 600, 600, 1e-9, 0, 0, 0, 1e-5);
  check_cluster("a tight cluster in one leaf of many tiles", 4500, 5000, 1e-9, 0, 0, 0, 1e-5);
  check_cluster("a tight cluster in one leaf of many tiles, gradient", 4500, 5000, 1e-9, 0, 1, 0, 1e-5);
  check_cluster("a tight cluster on a corner of leaves", 600, 60, 1e-9, 0, 0, 0, 1e-5);
  check_cluster("a tight cluster on a corner of leaves, gradient", 600, 60, 1e-9, 0, 1, 0, 1e-5);
  check_cluster("two points across a face beside a tight cluster", 600, 60, 1e-12, 1, 0, 0, 1e-3);
  check_cluster("two points across a face beside a tight cluster, gradient", 600, 60, 1e-12, 1, 1, 1, 1e-3); /* whose derivatives are beyond float */
}

static void plan_v_in_single(fixture *f, int64_t halves_from) {
  fmm_gpu_plan_destroy(&f->plan);
  f->state.precision[FMM_PHASE_VLIST] = FMM_PRECISION_SINGLE;
  f->state.tolerance = 1e-6;
  fmm_gpu_request request = {.state = &f->state, .phases = 1u << FMM_PHASE_VLIST, .threads = 1, .halves_from = halves_from};
  assert_ok(fmm_gpu_plan_create(&f->plan, &request));
  f->state.precision[FMM_PHASE_VLIST] = FMM_PRECISION_DOUBLE;
}

/* Products of halves on the tensor cores where there are any, then in double of spectra in float: 6e-8 a value, in sums of signed densities that leave some fifth of their terms (bound: five times the former). */
static void v_in_single_precision_keeps_six_digits(void **context) {
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i += 2) {
    fixture f;
    make(&f, &shapes[i]);
    run_reference(&f, &fmm_up_reference);
    run_reference(&f, &fmm_vlist_reference);
    for (int in_float = 0; in_float < 2; in_float++) {
      plan_v_in_single(&f, in_float ? INT64_MAX : 1);
      run_gpu(&f, FMM_PHASE_VLIST, 1);
      assert_close(f.shape, in_float ? "vlist of floats" : "vlist of halves", f.n_boxes_values, f.check, f.fetched, 3e-7);
      double *before = values_of(f.n_boxes_values, 0);
      memcpy(before, f.fetched, (size_t)f.n_boxes_values * sizeof *before);
      assert_same_bits(&f, FMM_PHASE_VLIST, before, f.n_boxes_values, 3);
      FMM_FREE(&before);
    }
    release(&f);
  }
}

/* Halves have a range of 2^40: so each source has units of its own. Densities that die away by 2^90 across the problem, in every box to five digits. */
static void v_in_halves_keeps_boxes_of_tiny_densities(void **context) {
  static const shape all[] = {{"laplace, tiny densities", "laplace", "uniform", 4000, 4, 12, 1, 0, 0, 0, 1e-6}, {"stokes, tiny densities, 2 columns", "stokes", "uniform", 2000, 3, 12, 2, 0, 0, 0, 1e-6}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    fixture f;
    make(&f, &all[i]);
    const int64_t each = f.n_boxes_values / f.tree.n_boxes;
    run_reference(&f, &fmm_up_reference);
    for (int64_t b = 0; b < f.tree.n_boxes; b++)
      for (int64_t k = 0; k < each; k++) f.up[b * each + k] *= exp2(-90 * (f.tree.center_x[b] - f.tree.center_x[0]) / f.tree.root_side);
    run_reference(&f, &fmm_vlist_reference);
    plan_v_in_single(&f, 1);
    run_gpu(&f, FMM_PHASE_VLIST, 1);
    for (int64_t b = 0; b < f.tree.n_boxes; b++) assert_close(f.shape, "vlist of a box", each, f.check + b * each, f.fetched + b * each, 1e-5);
    release(&f);
  }
}

static void check_slabs(const shape *q, fmm_precision precision, int64_t halves_from) {
  fixture f;
  make(&f, q);
  run_reference(&f, &fmm_up_reference);
  fmm_gpu_request request = {.state = &f.state, .phases = (1u << FMM_N_PHASES) - 1, .threads = 1, .halves_from = halves_from};
  fmm_gpu_plan_destroy(&f.plan);
  f.state.precision[FMM_PHASE_VLIST] = precision;
  assert_ok(fmm_gpu_plan_create(&f.plan, &request));
  run_gpu(&f, FMM_PHASE_VLIST, 1);
  double *before = values_of(f.n_boxes_values, 0);
  memcpy(before, f.fetched, (size_t)f.n_boxes_values * sizeof *before);
  size_t whole = fmm_gpu_plan_device_bytes(f.plan), least, best;
  fmm_gpu_plan_destroy(&f.plan);
  fmm_gpu_plan_predict(&request, &least, &best);
  assert_true(least < best);
  assert_int_equal(best, whole);
  request.memory_cap = least;
  assert_ok(fmm_gpu_plan_create(&f.plan, &request));
  assert_true(fmm_gpu_plan_device_bytes(f.plan) <= least);
  assert_same_bits(&f, FMM_PHASE_VLIST, before, f.n_boxes_values, 1);
  fmm_gpu_plan_destroy(&f.plan);
  request.memory_cap = least - 1;
  assert_int_equal(fmm_gpu_plan_create(&f.plan, &request), FMM_ERR_MEMORY);
  request.memory_cap = 0;
  assert_ok(fmm_gpu_plan_create(&f.plan, &request));
  FMM_FREE(&before);
  release(&f);
}

static const shape *shape_of_order(int order) {
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    if (shapes[i].order == order) return &shapes[i];
  fail_msg("no shape has order %d", order);
  return NULL;
}

/* With all of a parent's children in a block, with some, and by the transforms for any order. */
static void v_in_slabs_gives_the_same_bits(void **context) {
  static const int orders[] = {10, 11, 13};
  check_slabs(&shapes[0], FMM_PRECISION_DOUBLE, 0);
  for (int i = 0; i < 3; i++) check_slabs(shape_of_order(orders[i]), FMM_PRECISION_DOUBLE, 0);
  for (int i = 0; i < 4; i++) check_slabs(&shapes[i / 2], FMM_PRECISION_SINGLE, i % 2 ? 1 : INT64_MAX); /* of one and of three columns, in float and in halves */
}

/* No room for the parts of pairs of leaves: one way then, in less memory, and as right. */
static void u_falls_back_to_one_direction_where_there_is_no_room(void **context) {
  static const shape uniform = {"laplace, no room for pairs", "laplace", "ellipsoid", 3000, 4, 40, 1, 0, 0, 0, 1e-6};
  size_t both, least, best;
  fixture f;
  make(&f, &uniform);
  both = fmm_gpu_plan_device_bytes(f.plan);
  assert_false(fmm_gpu_plan_falls_back(f.plan));
  fmm_gpu_request request = {.state = &f.state, .phases = (1u << FMM_N_PHASES) - 1, .threads = 1};
  fmm_gpu_plan_predict(&request, &least, &best);
  assert_true(best == both && least < best);
  for (int i = 0; i < 2; i++) { /* too many entries; too little memory */
    fmm_gpu_plan_destroy(&f.plan);
    request.most_entries = i ? 0 : f.lists.u.n_entries - 1, request.memory_cap = i ? least : 0;
    assert_ok(fmm_gpu_plan_create(&f.plan, &request));
    assert_true(fmm_gpu_plan_falls_back(f.plan) && fmm_gpu_plan_device_bytes(f.plan) < both);
    check_phase(&f, &fmm_ulist_reference, f.potential, f.n_potential);
  }
  fmm_gpu_plan_destroy(&f.plan);
  request.most_entries = f.lists.u.n_entries, request.memory_cap = 0;
  assert_ok(fmm_gpu_plan_create(&f.plan, &request));
  assert_false(fmm_gpu_plan_falls_back(f.plan));
  check_phase(&f, &fmm_ulist_reference, f.potential, f.n_potential);
  release(&f);
}

/* A tree of one leaf: an odd number of tiles and an even one, points that coincide, and squares that are subnormal, in a tile and across tiles; in one direction where there is no room for the parts. */
static void one_leaf_is_summed_in_both_directions(void **context) {
  static const shape cases[] = {{"one leaf of 141 tiles", "laplace", "plummer", 4500, 2, 5000, 1, 0, 0, 0, 1e-6},
                                {"one leaf of 136 tiles", "laplace", "ellipsoid", 4347, 2, 5000, 1, 0, 0, 0, 1e-6},
                                {"one leaf, coincident points", "laplace", "uniform", 6600, 2, 7000, 1, 0, 0, 1, 1e-6},
                                {"one leaf, a subnormal square", "laplace", "uniform", 4200, 2, 5000, 1, 0, 0, TINY, 1e-6},
                                {"one leaf, tiles that end among points of one key", "laplace", "uniform", 6200, 2, 7000, 1, 0, 0, THICK, 1e-6}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    fixture f;
    size_t both, least, best;
    make(&f, &cases[i]);
    assert_int_equal(f.tree.n_boxes, 1);
    fmm_gpu_request request = {.state = &f.state, .phases = 1u << FMM_PHASE_ULIST, .threads = 1};
    fmm_gpu_plan_destroy(&f.plan);
    fmm_gpu_plan_predict(&request, &least, &best);
    assert_ok(fmm_gpu_plan_create(&f.plan, &request));
    both = fmm_gpu_plan_device_bytes(f.plan);
    assert_true(best == both && least + (size_t)f.tree.targets.n * 60 * sizeof(double) < best); /* 60 parts and more */
    check_phase(&f, &fmm_ulist_reference, f.potential, f.n_potential);
    fmm_gpu_plan_destroy(&f.plan);
    f.state.precision[FMM_PHASE_ULIST] = FMM_PRECISION_SINGLE;
    assert_ok(fmm_gpu_plan_create(&f.plan, &request));
    f.state.precision[FMM_PHASE_ULIST] = FMM_PRECISION_DOUBLE;
    assert_true(!fmm_gpu_plan_falls_back(f.plan) && (fmm_gpu_plan_device_bytes(f.plan) < both) == (cases[i].coincident < TINY)); /* parts in float, where sums are not beyond it */
    run_gpu(&f, FMM_PHASE_ULIST, 1);
    assert_close(f.shape, "ulist in float", f.n_potential, f.potential, f.fetched, 3e-6);
    fmm_gpu_plan_destroy(&f.plan);
    request.memory_cap = least;
    assert_ok(fmm_gpu_plan_create(&f.plan, &request));
    assert_true(fmm_gpu_plan_falls_back(f.plan) && fmm_gpu_plan_device_bytes(f.plan) <= least);
    check_phase(&f, &fmm_ulist_reference, f.potential, f.n_potential);
    release(&f);
  }
}

/* All of an execution but W, X, which this tree has not; fetches the potentials. */
static void run_in_order(fixture *f, const fmm_phase order[4]) {
  for (int64_t i = 0; i < f->n_potential; i++) f->fetched[i] = NAN;
  assert_ok(fmm_gpu_begin(f->plan, f->input, FMM_MEMORY_HOST));
  for (int i = 0; i < 4; i++) assert_ok(fmm_gpu_run(f->plan, order[i], 0, rows_of(f, order[i])));
  assert_ok(fmm_gpu_fetch(f->plan, FMM_GPU_POTENTIAL, f->fetched));
  assert_ok(fmm_gpu_finish(f->plan));
}

/* After up U's float sums go beside the far chain, taken in turn by blocks that stay; before it, a block a tile. */
static void u_beside_the_far_chain_gives_the_same_bits(void **context) {
  static const shape uniform = {"yukawa, uniform", "yukawa", "uniform", 4000, 4, 120, 1, 0, 0, 0, 1e-6}; /* whose U is summed one way */
  static const fmm_phase beside[4] = {FMM_PHASE_UP, FMM_PHASE_ULIST, FMM_PHASE_VLIST, FMM_PHASE_DOWN}, before[4] = {FMM_PHASE_ULIST, FMM_PHASE_UP, FMM_PHASE_VLIST, FMM_PHASE_DOWN};
  fixture f;
  make(&f, &uniform);
  assert_int_equal(f.lists.w.n_rows, 0);
  use_precision(&f, FMM_PRECISION_MIXED, 1e-6);
  run_in_order(&f, before);
  double *expected = values_of(f.n_potential, 0);
  memcpy(expected, f.fetched, (size_t)f.n_potential * sizeof *expected);
  for (int run = 0; run < 3; run++) {
    run_in_order(&f, beside);
    assert_memory_equal(f.fetched, expected, (size_t)f.n_potential * sizeof *expected);
  }
  FMM_FREE(&expected);
  release(&f);
}

/* A plan of n points that is given this stage, and gives it back: what it had of page-locked memory. */
static fmm_gpu_stage pass_on(fmm_gpu_stage earlier, int n, int exact) {
  const shape q = {.name = "page-locked memory", .kernel = "laplace", .distribution = "uniform", .n = n, .order = 4, .leaf = 60, .columns = 1, .tolerance = 1e-9};
  fixture f;
  fmm_gpu_spare own = {.device = 0}, before = {.stage = earlier};
  make(&f, &q);
  fmm_gpu_plan_destroy(&f.plan);
  before.stage.exact = exact;
  fmm_gpu_request request = {.state = &f.state, .phases = (1u << FMM_N_PHASES) - 1, .threads = 1, .spare = &before};
  assert_ok(fmm_gpu_plan_create(&f.plan, &request));
  assert_null(before.stage.memory); /* taken or released */
  run_reference(&f, &fmm_up_reference);
  check_up(&f);
  fmm_gpu_plan_give(f.plan, &own);
  release(&f);
  assert_non_null(own.stage.memory);
  const fmm_gpu_stage given = own.stage;
  own.stage = (fmm_gpu_stage){0};
  fmm_gpu_spare_free(&own);
  return given;
}

static void page_locked_memory_serves_the_next_plan_where_it_suits(void **state) {
  const fmm_gpu_stage first = pass_on((fmm_gpu_stage){0}, 8000, 0), fewer = pass_on(first, 6000, 0);
  assert_ptr_equal(fewer.memory, first.memory);
  assert_int_equal(fewer.bytes, first.bytes);
  const fmm_gpu_stage most = pass_on(fewer, 8000, 1); /* exactly as much */
  assert_ptr_equal(most.memory, first.memory);
  const fmm_gpu_stage exact = pass_on(most, 6000, 1), few = pass_on(exact, 2000, 0), more = pass_on(few, 2100, 0);
  assert_true(exact.bytes < first.bytes && exact.bytes > first.bytes / 2);
  assert_true(few.bytes < exact.bytes / 2); /* less than half */
  assert_true(more.bytes > few.bytes);      /* it was too small */
  fmm_gpu_stage last = more;
  fmm_gpu_stage_free(&last);
  assert_null(last.memory);
}

int main(void) {
  fmm_gpu_info info;
  fmm_gpu_query(0, &info);
  if (!info.present) return fprintf(stderr, "skipped: %s\n", info.reason), FMM_TEST_SKIP;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_phase_matches_its_reference_and_keeps_its_bits),
      cmocka_unit_test(u_in_both_directions_takes_boxes_without_mates),
      cmocka_unit_test(gradients_are_summed_in_both_directions_in_single),
      cmocka_unit_test(single_precision_pairs_keep_about_six_digits),
      cmocka_unit_test(every_phase_in_single_precision_keeps_five_digits),
      cmocka_unit_test(tiles_that_are_too_tight_for_float_are_done_in_double),
      cmocka_unit_test(v_in_single_precision_keeps_six_digits),
      cmocka_unit_test(v_in_halves_keeps_boxes_of_tiny_densities),
      cmocka_unit_test(v_in_slabs_gives_the_same_bits),
      cmocka_unit_test(u_falls_back_to_one_direction_where_there_is_no_room),
      cmocka_unit_test(one_leaf_is_summed_in_both_directions),
      cmocka_unit_test(u_beside_the_far_chain_gives_the_same_bits),
      cmocka_unit_test(page_locked_memory_serves_the_next_plan_where_it_suits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
