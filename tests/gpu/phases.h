/* One phase on the GPU against its plain C reference: a problem with its tree, operators and device plan, runs of either side, and comparisons.
 * Bounds, on the relative L2 norm: double sums of a few thousand terms 1e-12 (tolerance below 1e-10) or 1e-11 (one Newton step, 1.3e-12 a root, below); products with the operators multiply rounding by the
 * inverse of their cut-off only in what no field shows, so fields are compared. */
#ifndef FMM_TEST_GPU_PHASES_H
#define FMM_TEST_GPU_PHASES_H
#include "test.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/harmonics_cost.h"
#include "kernels/phase.h"
#include "runtime/column_units.h"
#include "runtime/generate.h"
#include "runtime/gpu.h"
#include "runtime/memory.h"

typedef struct shape {
  const char *name, *kernel, *distribution;
  int n, order, leaf, columns, gradient, other_targets, coincident;
  double tolerance;
} shape;
enum { TINY = 2 /* coincident: no, but two points so near one another that the square of their distance is subnormal */, THICK = 3 /* or a third of the points on a line, so far apart each */,
       CLOSE = 4 /* or two points whose derivatives are beyond float */ };

typedef struct fixture {
  const shape *shape;
  fmm_tree tree;
  fmm_lists lists;
  fmm_operators *operators;
  fmm_state state;
  double params[FMM_MAX_PARAMS];
  double *input, *density, *potential, *up, *check, *sent;
  double *fetched;
  int64_t n_potential, n_boxes_values;
  fmm_gpu_plan *plan;
} fixture;

static double *values_of(int64_t n, uint64_t seed) {
  double *values;
  assert_ok(FMM_ALLOCATE_ZERO(&values, n, "test values"));
  if (seed) assert_ok(fmm_generate_densities("signed", n, seed, values, 1));
  return values;
}

static void make_tree(fixture *f) {
  const shape *q = f->shape;
  double *sources = values_of(3 * q->n, 1), *targets = values_of(3 * q->n, 1);
  const fmm_tree_options options = {.leaf_size = q->leaf, .root_scale = 1.1};
  assert_ok(fmm_generate_points(q->distribution, q->n, 7, sources, 1));
  assert_ok(fmm_generate_points("uniform", q->n, 8, targets, 1));
  for (int i = 0; i < 3 * q->n; i++) {
    if (i / 3 % 2) targets[i] = sources[i]; /* half of the targets are sources */
    if (q->coincident == THICK && i / 3 % 3 == 0) sources[i] = i % 3 ? 0 : 0.2e-154 * (i / 3);
    if (q->coincident == 1 && i / 3 % 3 == 0) sources[i] = sources[i % 3]; /* a third of the sources are one point */
  }
  if (q->coincident == TINY) sources[0] = sources[1] = sources[2] = sources[4] = sources[5] = 0, sources[3] = 0.6e-154; /* and 1/r is no more than 1e154 */
  if (q->coincident == CLOSE) sources[0] = sources[1] = sources[2] = sources[4] = sources[5] = 0, sources[3] = 1e-25;
  assert_ok(fmm_tree_build(&f->tree, q->n, sources, NULL, q->other_targets ? q->n : 0, q->other_targets ? targets : NULL, &options, 1));
  assert_ok(fmm_lists_build(&f->lists, &f->tree, 4, FMM_LISTS_TO_SUM, 1));
  FMM_FREE(&sources);
  FMM_FREE(&targets);
}

enum { MOST_COLUMNS = 8 };

static void make(fixture *f, const shape *q) {
  const fmm_pair *pair;
  *f = (fixture){.shape = q};
  assert_true(q->columns <= MOST_COLUMNS);
  make_tree(f);
  assert_ok(fmm_pair_find(q->kernel, &pair));
  assert_ok(fmm_pair_resolve_params(pair->info, 0, NULL, f->params));
  assert_ok(fmm_operators_create(&f->operators, pair, f->params, q->order, fmm_half_width(&f->tree, 0), f->tree.n_levels, 1));
  int planes = pair->info->components * q->columns;
  f->n_boxes_values = (int64_t)f->tree.n_boxes * q->columns * f->operators->n;
  f->n_potential = (int64_t)pair->info->outputs * (q->gradient ? 4 : 1) * q->columns * f->tree.targets.n;
  f->input = values_of(planes * f->tree.sources.n_input, 3);
  f->density = values_of(planes * f->tree.sources.n, 0);
  fmm_gather_densities(&f->tree.sources, planes, f->input, f->density, 0, NULL, 1);
  int exponent[MOST_COLUMNS]; /* columns as the GPU would scale them: what it fetches is in these units */
  fmm_column_exponents(f->density, planes, f->tree.sources.n, q->columns, exponent, 1);
  fmm_scale_columns(f->density, planes, f->tree.sources.n, q->columns, exponent, -1, 1);
  for (int64_t i = 0; i < planes * f->tree.sources.n_input; i++) f->input[i] = ldexp(f->input[i], -exponent[i % q->columns]);
  f->up = values_of(f->n_boxes_values, 0);
  f->check = values_of(f->n_boxes_values, 0);
  f->sent = values_of(f->n_boxes_values, 0);
  f->potential = values_of(f->n_potential, 0);
  f->fetched = values_of(f->n_potential > f->n_boxes_values ? f->n_potential : f->n_boxes_values, 0);
  f->state = (fmm_state){.tree = &f->tree, .lists = &f->lists, .pair = pair, .params = f->params, .operators = f->operators, .n_columns = q->columns,
                         .gradient = q->gradient, .threads = 1, .tolerance = q->tolerance, .density = f->density, .potential = f->potential,
                         .up_equivalent = f->up, .down_check = f->check};
  for (int i = 0; i < FMM_N_PHASES; i++) f->state.precision[i] = FMM_PRECISION_DOUBLE;
  fmm_gpu_request request = {.state = &f->state, .phases = (1u << FMM_N_PHASES) - 1, .threads = 1};
  assert_ok(fmm_gpu_plan_create(&f->plan, &request));
}

static void release(fixture *f) {
  fmm_gpu_plan_destroy(&f->plan);
  FMM_FREE(&f->input);
  FMM_FREE(&f->density);
  FMM_FREE(&f->up);
  FMM_FREE(&f->check);
  FMM_FREE(&f->sent);
  FMM_FREE(&f->potential);
  FMM_FREE(&f->fetched);
  fmm_operators_destroy(&f->operators);
  fmm_lists_free(&f->lists);
  fmm_tree_free(&f->tree);
}

static int64_t rows_of(const fixture *f, fmm_phase phase) {
  const fmm_rows *rows[FMM_N_PHASES] = {NULL, &f->lists.u, &f->lists.v, &f->lists.w, &f->lists.x, NULL};
  return rows[phase] ? rows[phase]->n_rows : f->tree.n_boxes;
}

static void run_reference(fixture *f, const fmm_phase_impl *impl) {
  if (impl->reserve) assert_ok(impl->reserve(&f->state));
  assert_ok(impl->run(&f->state, 0, rows_of(f, impl->phase)));
  if (impl->release) impl->release(&f->state);
}

/* Runs one phase in `parts` ranges on the GPU alone and fetches what it writes. */
static void run_gpu(fixture *f, fmm_phase phase, int parts) {
  fmm_gpu_array array = phase == FMM_PHASE_UP ? FMM_GPU_UP_EQUIVALENT : phase == FMM_PHASE_VLIST || phase == FMM_PHASE_XLIST ? FMM_GPU_DOWN_CHECK : FMM_GPU_POTENTIAL;
  int64_t rows = rows_of(f, phase);
  for (int64_t i = 0; i < (f->n_potential > f->n_boxes_values ? f->n_potential : f->n_boxes_values); i++) f->fetched[i] = NAN;
  assert_ok(fmm_gpu_begin(f->plan, f->input, FMM_MEMORY_HOST));
  if (phase == FMM_PHASE_VLIST || phase == FMM_PHASE_WLIST) assert_ok(fmm_gpu_send(f->plan, FMM_GPU_UP_EQUIVALENT, f->up, 0, f->tree.n_boxes));
  if (phase == FMM_PHASE_DOWN) assert_ok(fmm_gpu_send(f->plan, FMM_GPU_DOWN_CHECK, f->sent, 0, f->tree.n_boxes));
  for (int k = 0; k < parts; k++) assert_ok(fmm_gpu_run(f->plan, phase, rows * k / parts, rows * (k + 1) / parts));
  assert_ok(fmm_gpu_fetch(f->plan, array, f->fetched));
  assert_ok(fmm_gpu_finish(f->plan));
}

static void assert_close(const shape *q, const char *what, int64_t n, const double *exact, const double *value, double bound) {
  double error = 0, size = 0, unit = 0;
  for (int64_t i = 0; i < n; i++) unit = fmax(unit, fabs(exact[i])); /* whose square may be too large */
  for (int64_t i = 0; unit > 0 && i < n; i++) {
    const double d = (value[i] - exact[i]) / unit, e = exact[i] / unit;
    error += d * d, size += e * e;
  }
  for (int64_t i = 0; !(unit > 0) && i < n; i++) error += fabs(value[i]);
  assert_true(unit < INFINITY);
  if (!(sqrt(error) <= bound * sqrt(size))) fail_msg("%s, %s: relative error %.3e is above %.1e (seed 3)", q->name, what, sqrt(error / size), bound);
}

/* At orders 7 and 8, the last with one Newton step, densities on surfaces outweigh what they give by so much more that its 1.3e-12 is allowed a thousandth of the tolerance. */
static double bound_of(const shape *q) { return q->tolerance <= 1e-10 ? 1e-12 : q->order == 7 || q->order == 8 ? 1e-3 * q->tolerance : 1e-11; }

/* Potentials of a box's equivalent densities on its upward check surface: what its densities are for. */
static void field_of(const fixture *f, int32_t box, const double *equivalent, double *field) {
  const fmm_operators *o = f->operators;
  int ns = o->n_surface, nc = o->n / ns;
  double h = fmm_half_width(&f->tree, f->tree.level[box]), block[9];
  for (int i = 0; i < o->n; i++) field[i] = 0;
  for (int i = 0; i < ns; i++)
    for (int j = 0; j < ns; j++) {
      double target[3], source[3];
      for (int a = 0; a < 3; a++) target[a] = o->outer_radius * h * o->surface[3 * i + a], source[a] = FMM_INNER_RADIUS * h * o->surface[3 * j + a];
      f->state.pair->matrix(target, source, f->params, block);
      for (int k = 0; k < nc; k++)
        for (int l = 0; l < nc; l++) field[k * ns + i] += block[k * nc + l] * equivalent[l * ns + j];
    }
}

enum { NEAR_LEAVES = 7 /* of which one is compared: odd, so that all places among sixteen are */, LAST_LEAVES = 16 };

static int has_far_sources(const fmm_tree *t, int32_t box) { return t->level[box] >= FMM_FIRST_FAR_LEVEL && t->source_end[box] > t->source_begin[box]; }

static int64_t leaves_with_sources(const fmm_tree *t) {
  int64_t leaves = 0;
  for (int32_t b = 0; b < t->n_boxes; b++) leaves += t->n_children[b] == 0 && has_far_sources(t, b);
  return leaves;
}

static int64_t leaves_with_targets(const fmm_tree *t) {
  int64_t leaves = 0;
  for (int32_t b = 0; b < t->n_boxes; b++) leaves += t->n_children[b] == 0 && t->target_end[b] > t->target_begin[b];
  return leaves;
}

/* All boxes of the first far level, the last leaves and some of the others, some parents; of each one column. */
static void check_up_fields_within(const fixture *f, double bound) {
  const fmm_tree *t = &f->tree;
  const int64_t leaves = leaves_with_sources(t);
  int n = f->operators->n;
  double *exact = values_of(n, 0), *value = values_of(n, 0);
  int64_t leaf = 0;
  for (int32_t b = 0; b < t->n_boxes; b++) {
    if (!has_far_sources(t, b)) continue;
    int taken = t->level[b] == FMM_FIRST_FAR_LEVEL || b % (1 + t->n_boxes / 40) == 0;
    if (t->n_children[b] == 0) taken |= leaf % NEAR_LEAVES == 0 || leaves - leaf <= LAST_LEAVES, leaf++;
    if (!taken) continue;
    int64_t at = ((int64_t)b * f->shape->columns + b % f->shape->columns) * n;
    field_of(f, b, f->up + at, exact);
    field_of(f, b, f->fetched + at, value);
    assert_close(f->shape, "up", n, exact, value, bound);
  }
  FMM_FREE(&exact);
  FMM_FREE(&value);
}

static void use_precision(fixture *f, fmm_precision precision, double tolerance) {
  fmm_gpu_plan_destroy(&f->plan);
  for (int i = 0; i < FMM_N_PHASES; i++) f->state.precision[i] = precision;
  f->state.tolerance = tolerance;
  fmm_gpu_request request = {.state = &f->state, .phases = (1u << FMM_N_PHASES) - 1, .threads = 1};
  assert_ok(fmm_gpu_plan_create(&f->plan, &request));
  for (int i = 0; i < FMM_N_PHASES; i++) f->state.precision[i] = FMM_PRECISION_DOUBLE;
}

/* What down is compared with: many leaves go by solid harmonics, as on CPU cores, but with gradients in double; what these cut is more than rounding. */
static const fmm_phase_impl *down_expected(fixture *f, int single) {
  const shape *q = f->shape;
  f->state.harmonics = f->operators->harmonics.n_terms > 0 && q->columns == 1 && (single || !q->gradient) && q->order >= FMM_LATTICE_LEAST_ORDER && q->order <= FMM_LATTICE_MOST_ORDER &&
                       leaves_with_targets(&f->tree) >= FMM_LEAVES_MANY;
  return f->state.harmonics ? &fmm_down_cpu : &fmm_down_reference;
}

static void check_up_fields(const fixture *f) { check_up_fields_within(f, 10 * bound_of(f->shape)); }
/* Densities as they are to be: those of many leaves by their moments. */
static void run_up_expected(fixture *f) {
  f->state.harmonics = f->operators->harmonics.n_terms > 0 && fmm_moments_on_gpu(f->state.pair->info, f->shape->order, f->shape->columns, leaves_with_sources(&f->tree));
  run_reference(f, f->state.harmonics ? &fmm_up_cpu : &fmm_up_reference);
  f->state.harmonics = 0;
}

static void check_up(fixture *f) {
  run_up_expected(f);
  run_gpu(f, FMM_PHASE_UP, 1);
  check_up_fields(f);
}

static void assert_same_bits(fixture *f, fmm_phase phase, const double *before, int64_t n, int parts) {
  run_gpu(f, phase, parts);
  if (memcmp(before, f->fetched, (size_t)n * sizeof *before)) fail_msg("%s: phase %d gives other bits in %d parts", f->shape->name, (int)phase, parts);
}

/* The phase from zero on both sides; then again, and in parts, bit by bit. */
static inline void check_phase(fixture *f, const fmm_phase_impl *impl, double *result, int64_t n) {
  memset(result, 0, (size_t)n * sizeof *result);
  run_reference(f, impl);
  run_gpu(f, impl->phase, 1);
  assert_close(f->shape, impl->name, n, result, f->fetched, (impl->phase == FMM_PHASE_DOWN ? 100 : 1) * bound_of(f->shape));
  double *before = values_of(n, 0);
  memcpy(before, f->fetched, (size_t)n * sizeof *before);
  assert_same_bits(f, impl->phase, before, n, 1);
  if (impl->phase != FMM_PHASE_DOWN) assert_same_bits(f, impl->phase, before, n, 3);
  FMM_FREE(&before);
}
#endif
