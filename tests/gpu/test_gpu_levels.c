/* Up and down on the GPU in the forms that trees of few and of many leaves have (phases.h; test_gpu_phases.c has the others): products whose columns are few or many, dense ones, and leaves that are summed and
 * multiplied in one launch. Exit 77 without a GPU, where only the scenes are looked at. */
#include "phases.h"

enum { PART = 8 /* multiprocessors */ };

/* Scenes by how many leaves they have: by name "many", both ways, "upward many", upward alone, or "some", fewer. */
static const shape in_one_launch[] = {{"many leaves, order 3", "laplace", "uniform", 9000, 3, 1, 1, 0, 0, 0, 1e-6},
                                      {"many leaves, order 4", "laplace", "plummer", 40000, 4, 9, 1, 0, 0, 1, 1e-6},
                                      {"many leaves, order 5, other targets", "laplace", "ellipsoid", 50000, 5, 12, 1, 0, 1, 0, 1e-6},
                                      {"many leaves, order 6", "laplace", "uniform", 160000, 6, 32, 1, 0, 0, 0, 1e-6},
                                      {"many leaves of up to 200 points, order 6", "laplace", "plummer", 500000, 6, 200, 1, 0, 0, 0, 1e-6},
                                      {"many leaves, order 6, other targets", "laplace", "plummer", 60000, 6, 12, 1, 0, 1, 0, 1e-6},
                                      {"many leaves, order 7", "laplace", "ellipsoid", 45000, 7, 12, 1, 0, 0, 0, 1e-6},
                                      {"many leaves, order 8", "laplace", "uniform", 50000, 8, 14, 1, 0, 1, 0, 1e-6}};
static const shape on_a_part[] = {{"some leaves, order 4", "laplace", "plummer", 6000, 4, 8, 1, 0, 0, 0, 1e-6},
                                  {"some leaves, order 6", "laplace", "uniform", 40000, 6, 64, 1, 0, 0, 0, 1e-6},
                                  {"some leaves, order 6, other targets", "laplace", "ellipsoid", 9000, 6, 20, 1, 0, 1, 0, 1e-6},
                                  {"some leaves, order 8", "laplace", "uniform", 24000, 8, 40, 1, 0, 0, 0, 1e-6},
                                  {"upward many leaves, order 6", "laplace", "plummer", 60000, 6, 32, 1, 0, 0, 0, 1e-6},
                                  {"many leaves, order 5", "laplace", "plummer", 40000, 5, 10, 1, 0, 0, 0, 1e-6},
                                  {"many leaves, order 7, other targets", "laplace", "ellipsoid", 50000, 7, 12, 1, 0, 1, 0, 1e-6}};
enum { IN_ONE_LAUNCH = sizeof in_one_launch / sizeof *in_one_launch, ON_A_PART = sizeof on_a_part / sizeof *on_a_part };

static int has_name(const shape *q, const char *begin) { return !strncmp(q->name, begin, strlen(begin)); }

static void check_leaves(const shape *q) {
  fixture f = {.shape = q};
  make_tree(&f);
  const int downward = leaves_with_targets(&f.tree) >= FMM_LEAVES_MANY, upward = leaves_with_sources(&f.tree) >= FMM_MOMENTS_MANY;
  if (downward != has_name(q, "many") || upward != !has_name(q, "some")) fail_msg("%s: %d leaves have sources, %d targets", q->name, (int)leaves_with_sources(&f.tree), (int)leaves_with_targets(&f.tree));
  release(&f);
}

/* Needs no GPU, and is seen to where there is none. */
static void scenes_have_as_many_leaves_as_they_are_for(void **context) {
  for (int i = 0; i < IN_ONE_LAUNCH; i++) check_leaves(&in_one_launch[i]);
  for (int i = 0; i < ON_A_PART; i++) check_leaves(&on_a_part[i]);
}

/* Columns that are many for a part of the device (more than 64 of the leaves, and of the parents of a level, for eight multiprocessors) and few for all of it go through other kernels of up and down, one for
 * each length of a parity block. */
static void up_and_down_of_few_and_of_many_columns_give_the_same_bits(void **context) {
  static const shape cases[] = {{"order 2", "laplace", "ellipsoid", 300, 2, 4, 4, 0, 1, 0, 1e-12}, {"order 4", "laplace", "plummer", 300, 4, 6, 8, 0, 0, 0, 1e-12}, {"order 5", "yukawa", "plummer", 300, 5, 6, 8, 0, 0, 0, 1e-12},
                                {"order 7", "laplace", "ellipsoid", 200, 7, 4, 5, 0, 1, 0, 1e-12}, {"order 9", "laplace", "uniform", 150, 9, 2, 3, 0, 0, 0, 1e-12}, {"order 12", "laplace", "ellipsoid", 60, 12, 1, 5, 0, 0, 0, 1e-12},
                                {"stokes, order 3", "stokes", "ellipsoid", 200, 3, 4, 5, 0, 0, 0, 1e-12}, {"stokes, order 6", "stokes", "plummer", 100, 6, 2, 8, 0, 0, 0, 1e-12}, {"stokes, order 7", "stokes", "uniform", 60, 7, 1, 6, 0, 0, 0, 1e-12}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    fixture f;
    make(&f, &cases[i]);
    for (int64_t k = 0; k < f.n_boxes_values; k++) f.sent[k] = sin((double)k);
    double *up = values_of(f.n_boxes_values, 0), *down = values_of(f.n_potential, 0);
    run_gpu(&f, FMM_PHASE_UP, 1), memcpy(up, f.fetched, (size_t)f.n_boxes_values * sizeof *up);
    run_gpu(&f, FMM_PHASE_DOWN, 1), memcpy(down, f.fetched, (size_t)f.n_potential * sizeof *down);
    fmm_gpu_plan_destroy(&f.plan);
    fmm_gpu_request request = {.state = &f.state, .phases = (1u << FMM_N_PHASES) - 1, .threads = 1, .sms = PART};
    assert_ok(fmm_gpu_plan_create(&f.plan, &request));
    assert_same_bits(&f, FMM_PHASE_UP, up, f.n_boxes_values, 1);
    assert_same_bits(&f, FMM_PHASE_DOWN, down, f.n_potential, 1);
    check_up(&f);
    FMM_FREE(&up);
    FMM_FREE(&down);
    release(&f);
  }
}

/* Check potentials of a box as a charge makes them that is far from it, none where there is no far field. */
static void give_field(const fixture *f, int32_t box, double *check) {
  const fmm_operators *o = f->operators;
  const double h = fmm_half_width(&f->tree, f->tree.level[box]), charge[3] = {4.5 * h, h * sin(box), -5 * h * cos(box)};
  for (int i = 0; i < o->n_surface; i++) {
    double r2 = 0;
    for (int a = 0; a < 3; a++) r2 += pow(FMM_INNER_RADIUS * h * o->surface[3 * i + a] - charge[a], 2);
    check[i] = f->tree.level[box] < FMM_FIRST_FAR_LEVEL ? 0 : h / sqrt(r2);
  }
}

/* Leaves and what is above them both ways, against the references. */
static void check_both_ways(fixture *f) {
  check_up(f);
  for (int32_t b = 0; b < f->tree.n_boxes; b++) give_field(f, b, f->sent + (int64_t)b * f->operators->n);
  memcpy(f->check, f->sent, (size_t)f->n_boxes_values * sizeof *f->check); /* the reference adds the parents' part in place */
  memset(f->potential, 0, (size_t)f->n_potential * sizeof *f->potential);
  run_reference(f, down_expected(f, 0));
  run_gpu(f, FMM_PHASE_DOWN, 1);
  assert_close(f->shape, "down", f->n_potential, f->potential, f->fetched, 100 * bound_of(f->shape));
}

/* The plan again on some multiprocessors (0: all), of exactly what it was foretold to hold. */
static size_t plan_on(fixture *f, int sms) {
  fmm_gpu_request request = {.state = &f->state, .phases = (1u << FMM_N_PHASES) - 1, .threads = 1, .sms = sms};
  size_t least, best;
  fmm_gpu_plan_destroy(&f->plan);
  fmm_gpu_plan_predict(&request, &least, &best);
  assert_ok(fmm_gpu_plan_create(&f->plan, &request));
  if (!sms) assert_int_equal(fmm_gpu_plan_device_bytes(f->plan), best); /* what is foretold is for all of the device */
  return fmm_gpu_plan_device_bytes(f->plan);
}

/* Many leaves of one column: sums between points and surfaces in one launch with their products (kernels/leaves_cuda.h), of potentials and with gradients. */
static void leaves_summed_and_multiplied_in_one_launch_match_their_references(void **context) {
  for (int i = 0; i < 2 * IN_ONE_LAUNCH; i++) {
    fixture f;
    shape q = in_one_launch[i / 2];
    q.gradient = i % 2;
    make(&f, &q);
    plan_on(&f, 0);
    check_both_ways(&f);
    double *in_double = values_of(f.n_boxes_values, 0);
    run_gpu(&f, FMM_PHASE_UP, 1), memcpy(in_double, f.fetched, (size_t)f.n_boxes_values * sizeof *in_double);
    use_precision(&f, FMM_PRECISION_SINGLE, 1e-5);
    f.state.harmonics = 1;
    run_reference(&f, &fmm_up_cpu);
    run_gpu(&f, FMM_PHASE_UP, 1);
    assert_memory_not_equal(in_double, f.fetched, (size_t)f.n_boxes_values * sizeof *in_double); /* by moments; above order 5 nothing else is in float */
    FMM_FREE(&in_double);
    check_up_fields_within(&f, 2e-6); /* of a leaf's few charges of both signs, which cancel */
    f.state.harmonics = 0;
    if (q.order > FMM_MOST_ORDER_OF_CHEAP_SUMS) { /* downward harmonics in float; at lower orders surfaces serve */
      memcpy(f.check, f.sent, (size_t)f.n_boxes_values * sizeof *f.check);
      memset(f.potential, 0, (size_t)f.n_potential * sizeof *f.potential);
      run_reference(&f, down_expected(&f, 1));
      run_gpu(&f, FMM_PHASE_DOWN, 1);
      assert_close(f.shape, "down in single", f.n_potential, f.potential, f.fetched, q.gradient ? 1e-6 : 3e-7);
    }
    release(&f);
  }
}

/* Which kernels leaves go by is of the tree alone, so a part of the device makes the same bits as all of it: leaves few enough that their sums are apart from their products, and more. */
static void leaves_on_a_part_of_the_device_give_the_same_bits(void **context) {
  for (int i = 0; i < 2 * ON_A_PART; i++) {
    fixture f;
    shape q = on_a_part[i / 2];
    q.gradient = i % 2;
    make(&f, &q);
    double *down = values_of(f.n_potential, 0), *up = values_of(f.n_boxes_values, 0);
    plan_on(&f, 0);
    check_both_ways(&f);
    memcpy(down, f.fetched, (size_t)f.n_potential * sizeof *down);
    run_gpu(&f, FMM_PHASE_UP, 1);
    memcpy(up, f.fetched, (size_t)f.n_boxes_values * sizeof *up);
    plan_on(&f, PART);
    assert_same_bits(&f, FMM_PHASE_DOWN, down, f.n_potential, 1);
    if (!has_name(&q, "some")) assert_same_bits(&f, FMM_PHASE_UP, up, f.n_boxes_values, 1);
    FMM_FREE(&down);
    FMM_FREE(&up);
    release(&f);
  }
}

/* More columns than the dense products' kernel for few takes. */
static void dense_operators_serve_many_columns(void **context) {
  static const shape many = {"laplace, order 13, 8 columns", "laplace", "uniform", 150, 13, 1, 8, 0, 0, 0, 1e-12};
  fixture f;
  make(&f, &many);
  check_up(&f);
  release(&f);
}

int main(void) {
  fmm_gpu_info info;
  fmm_gpu_query(0, &info);
  const struct CMUnitTest without_gpu[] = {cmocka_unit_test(scenes_have_as_many_leaves_as_they_are_for)};
  const int failed = cmocka_run_group_tests(without_gpu, NULL, NULL);
  if (failed) return failed;
  if (!info.present) return fprintf(stderr, "skipped: %s\n", info.reason), FMM_TEST_SKIP;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(up_and_down_of_few_and_of_many_columns_give_the_same_bits),
      cmocka_unit_test(leaves_summed_and_multiplied_in_one_launch_match_their_references),
      cmocka_unit_test(leaves_on_a_part_of_the_device_give_the_same_bits),
      cmocka_unit_test(dense_operators_serve_many_columns),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
