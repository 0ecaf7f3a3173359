/* Work counts of a uniform tree of two levels below the root, made by hand here (64 leaves of q points, sorted x slowest in each box
 * of 2x2x2), against closed forms: Choi et al. 2014, eq. 2 (pairs of a uniform tree), and pairs of boxes counted by geometry. */
#include "test.h"
#include "kernels/pair/pair_tiles.h"
#include "kernels/vlist/vlist_windows.h"
#include "runtime/counts.h"
#include "runtime/generate.h"

#include <math.h>
#include <stdlib.h>

extern const fmm_pair_info fmm_info_laplace, fmm_info_stokes;

enum { EDGE = 4, LEAVES = 64, BOXES = 1 + 8 + 64, Q = 3 };

typedef struct grid {
  fmm_tree tree;
  fmm_lists lists;
  uint8_t level[BOXES], n_children[BOXES], octant[BOXES], v_direction[56];
  int32_t first_child[BOXES], leaf[LEAVES], u_entry[LEAVES * LEAVES], v_row[8], v_entry[56];
  int64_t begin[BOXES], end[BOXES], u_offset[LEAVES + 1], v_offset[9], none[1];
} grid;

static int axis_of(int leaf, int axis) { return (leaf >> (3 + axis) & 1) * 2 + (leaf >> axis & 1); } /* leaf = 8 * parent's octant + octant */

static int adjacent(int a, int b) {
  for (int axis = 0; axis < 3; axis++)
    if (abs(axis_of(a, axis) - axis_of(b, axis)) > 1) return 0;
  return 1;
}

static void make_boxes(grid *g) {
  for (int box = 0; box < BOXES; box++) {
    int leaf = box - 9, level = box == 0 ? 0 : box < 9 ? 1 : 2;
    g->level[box] = (uint8_t)level;
    g->octant[box] = (uint8_t)(level == 1 ? box - 1 : level == 2 ? leaf % 8 : 0);
    g->first_child[box] = level == 0 ? 1 : level == 1 ? 9 + 8 * (box - 1) : -1;
    g->n_children[box] = level == 2 ? 0 : 8;
    g->begin[box] = level == 0 ? 0 : level == 1 ? 8 * Q * (box - 1) : Q * leaf;
    g->end[box] = g->begin[box] + (level == 0 ? LEAVES : level == 1 ? 8 : 1) * Q;
    if (level == 2) g->leaf[leaf] = box;
  }
}

static void make_lists(grid *g) {
  int64_t n = 0;
  for (int a = 0; a < LEAVES; a++) {
    g->u_offset[a] = n;
    for (int b = 0; b < LEAVES; b++)
      if (adjacent(a, b)) g->u_entry[n++] = 9 + b;
  }
  g->u_offset[LEAVES] = n;
  g->lists.u = (fmm_rows){.n_rows = LEAVES, .n_entries = n, .row = g->leaf, .offset = g->u_offset, .entry = g->u_entry};
  n = 0;
  for (int p = 0; p < 8; p++) {
    g->v_row[p] = 1 + p, g->v_offset[p] = n;
    for (int q = 0; q < 8; q++) {
      int dx = (q & 1) - (p & 1), dy = (q >> 1 & 1) - (p >> 1 & 1), dz = (q >> 2) - (p >> 2);
      if (p != q) g->v_direction[n] = (uint8_t)(dx + 1 + 3 * (dy + 1) + 9 * (dz + 1)), g->v_entry[n++] = 1 + q;
    }
  }
  g->v_offset[8] = n;
  g->lists.v = (fmm_rows){.n_rows = 8, .n_entries = n, .row = g->v_row, .offset = g->v_offset, .entry = g->v_entry, .direction = g->v_direction};
  g->lists.w.offset = g->lists.x.offset = g->none;
}

static grid *make_grid(void) {
  static grid g;
  memset(&g, 0, sizeof g);
  make_boxes(&g);
  make_lists(&g);
  fmm_tree *t = &g.tree;
  t->n_levels = 3, t->n_boxes = BOXES, t->n_leaves = LEAVES, t->leaf = g.leaf, t->same_points = 1;
  t->sources.n = t->targets.n = LEAVES * Q;
  t->level_begin[1] = 1, t->level_begin[2] = 9, t->level_begin[3] = BOXES;
  t->level = g.level, t->first_child = g.first_child, t->n_children = g.n_children, t->octant = g.octant;
  t->source_begin = t->target_begin = g.begin, t->source_end = t->target_end = g.end;
  return &g;
}

static fmm_counts count_case(fmm_count_case what) {
  grid *g = make_grid();
  fmm_counts counts;
  assert_ok(fmm_count_work(&g->tree, &g->lists, &what, 2, &counts));
  return counts;
}
static fmm_counts count(const fmm_pair_info *pair, int order, int columns, int gradient) {
  return count_case((fmm_count_case){.pair = pair, .order = order, .n_columns = columns, .gradient = gradient});
}

static void ulist_of_a_uniform_tree_is_equation_2(void **state) {
  fmm_counts c = count(&fmm_info_laplace, 4, 1, 0);
  double boxes = 3 * EDGE - 2, pairs = boxes * boxes * boxes * Q * Q; /* (3 b^(1/3) - 2)^3 q^2 */
  assert_true(c.total[FMM_PHASE_ULIST].pairs == pairs);
  assert_true(c.total[FMM_PHASE_ULIST].flops == 11 * pairs);
  assert_true(c.total[FMM_PHASE_ULIST].entries == boxes * boxes * boxes);
  assert_true(c.total[FMM_PHASE_ULIST].bytes == LEAVES * Q * (4 + 4) * 8.0); /* x y z s in, x y z f of targets */
  assert_true(c.level[FMM_PHASE_ULIST][2].pairs == pairs && c.level[FMM_PHASE_ULIST][1].pairs == 0);
}

static void vlist_counts_every_pair_of_boxes_that_is_not_adjacent(void **state) {
  fmm_counts c = count(&fmm_info_laplace, 4, 1, 0);
  int pairs = 0;
  for (int a = 0; a < LEAVES; a++)
    for (int b = 0; b < LEAVES; b++) pairs += !adjacent(a, b);
  assert_true(c.total[FMM_PHASE_VLIST].pairs == pairs);
  const fmm_count_case what = {.pair = &fmm_info_laplace, .order = 4, .n_columns = 1};
  double frequencies = 7 * 7 * 3 + 7 * 4, transform = 2 * (4 * (4 + 7) * 4 * 2 * 3 + 4 * 56); /* lattice of 2p - 1 = 7 points an edge; frequency 0 is additions */
  assert_true(fabs(c.total[FMM_PHASE_VLIST].flops / (2 * LEAVES * transform + 56 * 27 * 8 * frequencies) - 1) < 1e-14);
  assert_true(c.total[FMM_PHASE_VLIST].other == 2 * LEAVES * transform && fmm_vlist_parent_pairs(&what, &c.total[FMM_PHASE_VLIST]) == 56);
  assert_true(c.total[FMM_PHASE_VLIST].entries == 2 * 8 * frequencies); /* eight parents, as sources and as targets */
  double spectrum = 16 * frequencies, box = 8 * 56; /* 6 (p-1)^2 + 2 = 56 surface points */
  assert_true(c.total[FMM_PHASE_VLIST].bytes == 2 * LEAVES * (2 * spectrum + box) + 64 * 16.0 * 7 * 7 * 4); /* operators of all frequencies */
}

/* Solid harmonics up to degree 8, of which 45 pairs of degree and order, 81 harmonics: each leaf has a product of these and the surface's points. Of what has none points are summed with surfaces. */
static void up_and_down_count_points_times_harmonics_and_parity_blocks(void **state) {
  fmm_counts c = count(&fmm_info_laplace, 4, 1, 0), gradient = count(&fmm_info_laplace, 4, 1, 1);
  double pairs = LEAVES * Q * 45.0, products = LEAVES * 2 * 56.0 * 81 / 8;
  assert_true(c.total[FMM_PHASE_UP].pairs == pairs && c.total[FMM_PHASE_DOWN].pairs == pairs && gradient.total[FMM_PHASE_DOWN].pairs == pairs);
  assert_true(c.total[FMM_PHASE_UP].flops == 2 * 5 * pairs + products && c.total[FMM_PHASE_DOWN].flops == 2 * 5 * pairs + products);
  assert_true(gradient.total[FMM_PHASE_UP].flops == 2 * 5 * pairs + products && gradient.total[FMM_PHASE_DOWN].flops == 2 * 11 * pairs + products);
  assert_true(c.total[FMM_PHASE_UP].other == products && c.total[FMM_PHASE_DOWN].other == products);
  assert_true(c.total[FMM_PHASE_UP].bytes == LEAVES * (Q * 32.0 + 8 * 56) + 56 * 81 && c.total[FMM_PHASE_DOWN].bytes == LEAVES * (Q * 32.0 + 8 * 56) + 56 * 81);
}

/* Above order 14 coefficients are made on the way, by another one: degree 41 at order 15, of surfaces of 1,178 points. */
static void leaves_of_high_orders_have_two_products(void **state) {
  const fmm_counts whole = count(&fmm_info_laplace, 14, 1, 0), apart = count(&fmm_info_laplace, 15, 1, 0);
  assert_true(whole.total[FMM_PHASE_UP].other == LEAVES * 2 * 1016.0 * 39 * 39 / 8);
  assert_true(apart.total[FMM_PHASE_UP].other == LEAVES * 2 * 1178.0 * (42 * 42 + 1178) / 8 && apart.total[FMM_PHASE_DOWN].other == apart.total[FMM_PHASE_UP].other);
}

static void up_and_down_count_points_times_surface_and_parity_blocks(void **state) {
  fmm_pair_info surfaces = fmm_info_laplace;
  surfaces.harmonic = 0;
  fmm_counts c = count(&surfaces, 4, 1, 0);
  double pairs = LEAVES * Q * 56.0, product = 2.0 * 56 * 56;
  assert_true(c.total[FMM_PHASE_UP].pairs == pairs && c.total[FMM_PHASE_DOWN].pairs == pairs);
  assert_true(c.total[FMM_PHASE_UP].flops == 11 * pairs + LEAVES * 2 * product / 8); /* two factors; levels 0 and 1 are in no list */
  assert_true(c.total[FMM_PHASE_DOWN].flops == 11 * pairs + LEAVES * 2 * product / 8);
  assert_true(c.total[FMM_PHASE_UP].other == LEAVES * 2 * product / 8 && c.total[FMM_PHASE_DOWN].other == c.total[FMM_PHASE_UP].other);
  assert_true(c.total[FMM_PHASE_WLIST].flops == 0 && c.total[FMM_PHASE_XLIST].entries == 0);
}

/* Of a real tree: a GPU, and pairs without harmonics, sum as many points with 56 surface points each as CPU cores do with 45 pairs of degree and order, beside which an entry of W and a row of X have a product. */
static void w_and_x_count_points_times_surface_or_harmonics(void **state) {
  enum { N = 3000 };
  static double points[3 * N];
  const fmm_tree_options options = {.leaf_size = 20, .root_scale = 1};
  const fmm_count_case what = {.pair = &fmm_info_laplace, .order = 4, .n_columns = 2, .gradient = 1};
  fmm_tree tree;
  fmm_lists lists;
  fmm_counts c;
  double targets = 0, sources = 0, longest = 0;
  assert_ok(fmm_generate_points("ellipsoid", N, 7, points, 1));
  assert_ok(fmm_tree_build(&tree, N, points, NULL, 0, NULL, &options, 1));
  assert_ok(fmm_lists_build(&lists, &tree, 8, FMM_LISTS_TO_SUM, 1));
  assert_ok(fmm_count_work(&tree, &lists, &what, 1, &c));
  for (int32_t r = 0; r < lists.w.n_rows; r++) targets += (double)((lists.w.offset[r + 1] - lists.w.offset[r]) * (tree.target_end[lists.w.row[r]] - tree.target_begin[lists.w.row[r]]));
  for (int32_t r = 0; r < lists.x.n_rows; r++) {
    double row = 0;
    for (int64_t e = lists.x.offset[r]; e < lists.x.offset[r + 1]; e++) row += (double)(tree.source_end[lists.x.entry[e]] - tree.source_begin[lists.x.entry[e]]);
    sources += row, longest = row > longest ? row : longest;
  }
  const double product = 2 * 2 * 56.0 * 81 / 8, entries = (double)lists.w.n_entries, rows = lists.x.n_rows;
  assert_true(targets > 0 && sources > 0);
  assert_true(c.total[FMM_PHASE_WLIST].pairs == 45 * targets && c.total[FMM_PHASE_XLIST].pairs == 45 * sources);
  assert_true(c.total[FMM_PHASE_WLIST].other == entries * product && c.total[FMM_PHASE_XLIST].other == rows * product);
  assert_true(c.total[FMM_PHASE_WLIST].flops == 2 * 11 * 2 * 45 * targets + entries * product && c.total[FMM_PHASE_XLIST].flops == 2 * 5 * 2 * 45 * sources + rows * product);
  assert_true(c.total[FMM_WORK_WLIST_GPU].pairs == 56 * targets && c.total[FMM_WORK_XLIST_GPU].pairs == 56 * sources && c.total[FMM_WORK_WLIST_GPU].other == 0);
  assert_true(lists.x.n_rows < 8192 && c.total[FMM_WORK_XLIST_GPU].longest == 56 * longest / 4 && c.total[FMM_PHASE_XLIST].longest == 0); /* four warps take each of so few rows */
  assert_true(c.total[FMM_WORK_WLIST_GPU].bytes == c.total[FMM_PHASE_WLIST].bytes && c.total[FMM_WORK_XLIST_GPU].entries == c.total[FMM_PHASE_XLIST].entries);
  fmm_lists_free(&lists);
  fmm_tree_free(&tree);
}

/* Without parity a factor is one n x n product, and a parent's children need eight. */
static void box_work_without_parity_is_dense(void **state) {
  fmm_pair_info plain = fmm_info_laplace;
  plain.parity = FMM_PARITY_NONE;
  fmm_count_case what = {.pair = &plain, .order = 4, .n_columns = 2};
  fmm_box_work w = fmm_box_work_of(&what);
  double product = 2.0 * 56 * 56 * 2;
  assert_true(w.leaf_flops == 2 * product && w.parent_flops == 9 * product && w.parent_operator_bytes == 9 * 8.0 * 56 * 56);
  what.pair = &fmm_info_laplace;
  assert_true(fmm_box_work_of(&what).parent_flops == product + product / 8);
}

/* Eight parents are one window and one product, whose seven neighbours each are in all 26 directions together; sixteen are transformed, as sources and as
 * targets. Parity blocks of up and down have 7 unknowns, padded to 8. Without parity operators are dense; down's columns are 64 an octant (eight boxes each), and level 2 has no translation. */
static void the_gpus_form_counts_parents_groups_and_padded_operators(void **state) {
  fmm_pair_info plain = fmm_info_laplace;
  plain.parity = FMM_PARITY_NONE;
  fmm_counts dense = count(&plain, 4, 1, 0), c = count(&fmm_info_laplace, 4, 1, 0);
  const fmm_work *v = &c.total[FMM_WORK_VLIST_GPU];
  double frequencies = 7 * 7 * 3 + 7 * 4, pairs = LEAVES * Q * 56.0, product = 2.0 * 8 * 8 * 8, whole = 2.0 * 56 * 56;
  assert_true(v->flops == 26 * 2 * 16 * 8 * 16 * frequencies + 16 * 8 * 30 * 256); /* 30 p^4 a child */
  assert_true(v->other == 16 * 8 * 30 * 256 && c.total[FMM_WORK_UP_GPU].other == LEAVES * 2 * product);
  assert_true(v->bytes == 16 * 8 * (2 * 16 * frequencies + 8 * 56) && v->entries == frequencies);
  assert_true(c.level[FMM_WORK_VLIST_GPU][2].flops == v->flops);
  assert_true(c.total[FMM_WORK_UP_GPU].flops == 11 * pairs + LEAVES * 2 * product);
  assert_true(c.total[FMM_WORK_DOWN_GPU].flops == 11 * pairs + LEAVES * 2 * product);
  for (int many = 0; many < 2; many++) { /* leaves go to harmonics by one product, and come from moments, from as many on */
    const fmm_counts down = count_case((fmm_count_case){.pair = &fmm_info_laplace, .order = 4, .n_columns = 1, .all_targets = (int64_t)FMM_LEAVES_MANY * Q - !many});
    const fmm_counts up = count_case((fmm_count_case){.pair = &fmm_info_laplace, .order = 4, .n_columns = 1, .all_targets = (int64_t)FMM_MOMENTS_MANY * Q - !many});
    assert_true(down.total[FMM_WORK_DOWN_GPU].other == LEAVES * (2 - many) * product && up.total[FMM_WORK_UP_GPU].other == LEAVES * (2 - many) * product);
    assert_true((down.total[FMM_WORK_DOWN_GPU].pairs == pairs) == !many && up.total[FMM_WORK_UP_GPU].pairs == pairs);
  }
  assert_true(dense.total[FMM_WORK_UP_GPU].flops == 11 * pairs + LEAVES * 2 * whole && dense.total[FMM_WORK_DOWN_GPU].flops == 11 * pairs + (8 * 64 + LEAVES) * whole);
  assert_true(c.total[FMM_WORK_UP_GPU].bytes == LEAVES * (Q * 32.0 + 8 * 56) + 2 * 56 * 56 && c.total[FMM_WORK_DOWN_GPU].entries == LEAVES);
  assert_int_equal(fmm_work_on(&c, FMM_PHASE_VLIST, FMM_DEVICE_GPU, 0), FMM_WORK_VLIST_GPU);
  assert_int_equal(fmm_work_on(&c, FMM_PHASE_VLIST, FMM_DEVICE_CPU, 0), FMM_PHASE_VLIST);
  assert_int_equal(fmm_work_on(&c, FMM_PHASE_WLIST, FMM_DEVICE_GPU, 0), FMM_WORK_WLIST_GPU);
}

/* Leaves of three points are tiles of four lanes with a target each; a lane's loop over a source costs 0.4 of a pair more one way, 0.8 in both directions. Of two such leaves
 * either is as good, so that half of the pairs are counted for each; a leaf with itself is one way, and its pairs cost 1.1, with gradients 0.8. With these both directions go together in single alone. */
static void the_gpus_u_counts_seats_of_tiles_and_the_longest_of_them(void **state) {
  fmm_counts c = count(&fmm_info_laplace, 4, 1, 0), gradient = count(&fmm_info_laplace, 4, 1, 1), stokes = count(&fmm_info_stokes, 4, 1, 0);
  const double boxes = 3 * EDGE - 2, sources = boxes * boxes * boxes * Q, mates = (sources - LEAVES * Q) / 2, longest = 27 * Q; /* of an inner leaf */
  const fmm_work *one = &c.total[FMM_WORK_ULIST_GPU], *both = &c.total[FMM_WORK_ULIST_GPU_BOTH];
  assert_true(fabs(one->pairs / (sources * 4 * 1.4) - 1) < 1e-14 && fabs(one->flops / (11 * one->pairs) - 1) < 1e-14 && one->entries == LEAVES);
  assert_true(fabs(one->longest / (longest * 4 * 1.4) - 1) < 1e-14 && one->bytes == c.total[FMM_PHASE_ULIST].bytes);
  assert_true(fabs(both->pairs / (mates * 4 * 1.8 + LEAVES * Q * 4 * 1.5) - 1) < 1e-14 && both->entries == LEAVES);
  assert_true(fabs(both->longest / ((longest - Q) / 2 * 4 * 1.8 + Q * 4 * 1.5) - 1) < 1e-14 && both->bytes == one->bytes + 16 * mates);
  assert_true(c.both_on_gpu[0] && c.both_on_gpu[1] && !gradient.both_on_gpu[0] && gradient.both_on_gpu[1] && !stokes.both_on_gpu[0] && !stokes.both_on_gpu[1]);
  assert_true(fabs(c.own_pairs / (LEAVES * Q * 4 * 1.5) - 1) < 1e-14 && fabs(gradient.own_pairs / (LEAVES * Q * 4 * 1.2) - 1) < 1e-14 && stokes.own_pairs == 0);
  const fmm_work *both_gradient = &gradient.total[FMM_WORK_ULIST_GPU_BOTH];
  assert_true(fabs(both_gradient->pairs / (mates * 4 * 1.8 + LEAVES * Q * 4 * 1.2) - 1) < 1e-14 && fabs(both_gradient->flops / (20 * both_gradient->pairs) - 1) < 1e-14);
  assert_true(both_gradient->bytes == gradient.total[FMM_WORK_ULIST_GPU].bytes + 4 * 16 * mates && gradient.total[FMM_WORK_ULIST_GPU].pairs == one->pairs);
  for (int single = 0; single < 2; single++) {
    assert_int_equal(fmm_work_on(&c, FMM_PHASE_ULIST, FMM_DEVICE_GPU, single), FMM_WORK_ULIST_GPU_BOTH);
    assert_int_equal(fmm_work_on(&gradient, FMM_PHASE_ULIST, FMM_DEVICE_GPU, single), single ? FMM_WORK_ULIST_GPU_BOTH : FMM_WORK_ULIST_GPU);
    assert_int_equal(fmm_work_on(&c, FMM_PHASE_ULIST, FMM_DEVICE_CPU, single), FMM_PHASE_ULIST);
  }
}

/* 1,000 targets in 32 tiles of at most 32: four lanes of eight. */
static void direct_sums_on_a_gpu_are_one_leaf_of_many_tiles(void **state) {
  const fmm_work w = fmm_ulist_gpu_direct(&fmm_info_laplace, 0, 1, 500, 1000);
  assert_true(w.entries == 32 && fabs(w.pairs / (500 * 32 * 4 * 8.4) - 1) < 1e-14 && fabs(w.longest / (w.pairs / 32) - 1) < 1e-14 && w.flops == 11 * w.pairs);
  assert_true(fmm_ulist_gpu_direct(&fmm_info_laplace, 0, 1, 500, 0).pairs == 0);
}

/* 8,192 points in 256 tiles of 32, four lanes of eight: each takes 127 others in both directions, at 8 tenths of a pair a lane beside, and itself and the opposite one alone, at 11 tenths a pair and 4 a lane; five chunks of at most
 * 28. 8,160 points in 255 tiles have no opposite ones. Few tiles, and many, go one way. With gradients there are eight lanes of four, and pairs
 * alone cost 8 tenths. */
static void direct_sums_in_both_directions_are_a_circle_of_tiles(void **state) {
  const fmm_work w = fmm_ulist_gpu_direct_both(&fmm_info_laplace, 0, 8192), odd = fmm_ulist_gpu_direct_both(&fmm_info_laplace, 0, 8160), gradient = fmm_ulist_gpu_direct_both(&fmm_info_laplace, 1, 8192);
  const double tile = 32 * 4 * (127 * (10 * 8 + 8) + 2 * (11 * 8 + 4)) / 10.0, of_odd = 32 * 4 * (127 * (10 * 8 + 8) + (11 * 8 + 4)) / 10.0;
  assert_true(fabs(w.pairs / (256 * tile) - 1) < 1e-14 && fabs(w.longest / tile - 1) < 1e-14 && w.entries == 256 * 5 && w.bytes == 16.0 * 127 * 8192 && w.flops == 11 * w.pairs);
  const double of_gradient = 32 * 8 * (127 * (10 * 4 + 8) + 2 * (8 * 4 + 4)) / 10.0;
  assert_true(fabs(odd.pairs / (255 * of_odd) - 1) < 1e-14);
  assert_true(fabs(gradient.pairs / (256 * of_gradient) - 1) < 1e-14 && gradient.bytes == 4 * w.bytes && gradient.flops == 20 * gradient.pairs);
  assert_true(fmm_ulist_gpu_direct_both(&fmm_info_laplace, 0, 4064).pairs == 0 && fmm_ulist_gpu_direct_both(&fmm_info_laplace, 0, 4065).pairs > 0);
  assert_true(fmm_ulist_gpu_direct_both(&fmm_info_laplace, 0, 32736).pairs > 0 && fmm_ulist_gpu_direct_both(&fmm_info_laplace, 0, 32737).pairs == 0);
}

/* A tree of one leaf is counted as such sums are. */
static void a_tree_of_one_leaf_counts_as_direct_sums(void **state) {
  enum { N = 8192 };
  static double points[3 * N];
  const fmm_tree_options options = {.leaf_size = N, .root_scale = 1};
  const fmm_count_case what = {.pair = &fmm_info_laplace, .order = 4, .n_columns = 1, .tolerance = 1e-6};
  fmm_tree tree;
  fmm_lists lists;
  fmm_counts c;
  assert_ok(fmm_generate_points("uniform", N, 1, points, 1));
  assert_ok(fmm_tree_build(&tree, N, points, NULL, 0, NULL, &options, 1));
  assert_ok(fmm_lists_build(&lists, &tree, 4, FMM_LISTS_TO_COUNT, 1));
  assert_ok(fmm_count_work(&tree, &lists, &what, 1, &c));
  const fmm_work direct = fmm_ulist_gpu_direct_both(&fmm_info_laplace, 0, N), *both = &c.total[FMM_WORK_ULIST_GPU_BOTH];
  assert_true(c.both_on_gpu[0] && both->pairs == direct.pairs && both->longest == direct.longest && both->entries == direct.entries && both->bytes > direct.bytes);
  fmm_lists_free(&lists);
  fmm_tree_free(&tree);
}

/* 64 leaves of some 312 points have each half of 27 in chunks of up to 992 sources, all in all fewer than a tile may have one of: the longest piece of a tile is a chunk, which is filled evenly, so at least by half. */
static void the_longest_piece_of_a_small_tree_is_a_chunk(void **state) {
  enum { N = 20000 };
  static double points[3 * N];
  const fmm_tree_options options = {.leaf_size = 400, .root_scale = 1};
  const fmm_count_case what = {.pair = &fmm_info_laplace, .order = 4, .n_columns = 1, .tolerance = 1e-6};
  fmm_tree tree;
  fmm_lists lists;
  fmm_counts c;
  double most = 0;
  assert_ok(fmm_generate_points("uniform", N, 1, points, 1));
  assert_ok(fmm_tree_build(&tree, N, points, NULL, 0, NULL, &options, 1));
  assert_ok(fmm_lists_build(&lists, &tree, 4, FMM_LISTS_TO_COUNT, 1));
  assert_ok(fmm_count_work(&tree, &lists, &what, 1, &c));
  for (int32_t b = 0; b < tree.n_boxes; b++) {
    const int64_t points_of = tree.n_children[b] ? 0 : tree.target_end[b] - tree.target_begin[b];
    int64_t tiles = 1;
    int lanes_log2 = 0, per_lane = 0;
    if (points_of) fmm_pair_shape_tiles(points_of, fmm_pair_tile_cap(N), FMM_TILE_MOST, &tiles, &lanes_log2, &per_lane);
    most = fmax(most, FMM_BOTH_CHUNK * ldexp(11 * per_lane + 8, lanes_log2) / 10);
  }
  const fmm_work *both = &c.total[FMM_WORK_ULIST_GPU_BOTH];
  assert_int_equal(tree.n_leaves, 64);
  assert_true(both->entries > 2 * 64 && both->entries < FMM_BOTH_PIECES);
  assert_true(both->longest > most / 3 && both->longest <= most);
  fmm_lists_free(&lists);
  fmm_tree_free(&tree);
}

/* Rows with the same neighbours come together, in their old order; others by the mask of their directions. */
static void rows_of_a_window_are_ordered_by_their_neighbours(void **state) {
  const int64_t offset[5] = {0, 2, 3, 5, 6};
  const uint8_t direction[6] = {3, 1, 2, 1, 3, 2};
  fmm_rows v = {.n_rows = 4, .n_entries = 6, .offset = (int64_t *)(uintptr_t)offset, .direction = (uint8_t *)(uintptr_t)direction};
  const int32_t box[4] = {1, 2, 3, 4};
  uint8_t octant[5] = {0};
  const fmm_tree tree = {.n_boxes = 5, .octant = octant};
  v.row = (int32_t *)(uintptr_t)box;
  uint64_t key[FMM_V_WINDOW];
  fmm_vlist_order_window(&tree, &v, 0, 4, key);
  const int64_t row[4] = {1, 3, 0, 2};
  const uint64_t mask[4] = {1 << 2, 1 << 2, 1 << 1 | 1 << 3, 1 << 1 | 1 << 3};
  for (int n = 0; n < 4; n++) assert_true((int64_t)(key[n] & (FMM_V_WINDOW - 1)) == row[n] && key[n] >> FMM_V_DIRECTION_BIT == mask[n]);
}

/* Of rows with the same neighbours, colours take turns; where one has more, its rows come last. */
static void colours_of_a_window_take_turns(void **state) {
  enum { ROWS = 11, SEVEN = 7 /* of colour 0 */ };
  int64_t offset[ROWS + 1];
  int32_t box[ROWS];
  uint8_t octant[ROWS], direction[ROWS] = {0}; /* rows 0 .. 6 of colour 0: octants with an even number of bits */
  static const uint8_t even[SEVEN] = {0, 3, 5, 6, 0, 3, 5}, odd[ROWS - SEVEN] = {1, 2, 4, 7};
  for (int r = 0; r <= ROWS; r++) offset[r] = r;
  for (int r = 0; r < ROWS; r++) box[r] = r, octant[r] = r < SEVEN ? even[r] : odd[r - SEVEN];
  const fmm_rows v = {.n_rows = ROWS, .n_entries = ROWS, .row = box, .offset = offset, .direction = direction};
  const fmm_tree tree = {.n_boxes = ROWS, .octant = octant};
  uint64_t key[FMM_V_WINDOW];
  fmm_vlist_order_window(&tree, &v, 0, ROWS, key);
  const int64_t row[ROWS] = {0, 7, 1, 8, 2, 9, 3, 10, 4, 5, 6}; /* a group of eight, and three that are left */
  for (int n = 0; n < ROWS; n++) {
    assert_int_equal(key[n] & (FMM_V_WINDOW - 1), row[n]);
    assert_int_equal(key[n] >> FMM_V_COLOUR_BIT & 1, row[n] >= SEVEN);
    assert_int_equal(key[n] >> FMM_V_DIRECTION_BIT, 1);
  }
}

static void columns_components_and_gradients_enter_each_term(void **state) {
  fmm_counts one = count(&fmm_info_stokes, 4, 1, 0), two = count(&fmm_info_stokes, 4, 2, 1);
  double surface = 56, n = 3 * surface;
  assert_true(one.total[FMM_PHASE_UP].flops == LEAVES * Q * surface * fmm_info_stokes.flops + LEAVES * 4 * n * n / 8);
  double pair_flops = fmm_info_stokes.gradient_flops + 2 * 3 * 3 * 4; /* second column: a multiply-add a component, output, derivative */
  assert_true(two.total[FMM_PHASE_ULIST].flops == two.total[FMM_PHASE_ULIST].pairs * pair_flops);
  assert_true(two.total[FMM_PHASE_VLIST].flops == 2 * one.total[FMM_PHASE_VLIST].flops);
  assert_true(two.total[FMM_PHASE_ULIST].bytes == LEAVES * Q * 8.0 * (3 + 3 * 2 + 3 + 3 * 4 * 2));
}

static void boxes_without_sources_or_targets_count_nothing(void **state) {
  grid *g = make_grid();
  int64_t target_begin[BOXES] = {0}, target_end[BOXES] = {0};
  g->tree.target_begin = target_begin, g->tree.target_end = target_end, g->tree.same_points = 0;
  fmm_count_case what = {.pair = &fmm_info_laplace, .order = 4, .n_columns = 1};
  fmm_counts c;
  assert_ok(fmm_count_work(&g->tree, &g->lists, &what, 1, &c));
  assert_true(c.total[FMM_PHASE_DOWN].flops == 0 && c.total[FMM_PHASE_VLIST].pairs == 0 && c.total[FMM_PHASE_ULIST].pairs == 0);
  assert_true(c.total[FMM_PHASE_UP].entries == LEAVES);
}

typedef struct tight_case { const char *points; int n, leaf_size; double root_scale, sources /* a target meets */, tolerance, measured, bound; } tight_case;

static double tight_share(const tight_case *k) {
  double *points = malloc(24 * (size_t)k->n);
  fmm_tree t;
  fmm_lists l;
  fmm_counts c;
  const fmm_count_case what = {.pair = &fmm_info_laplace, .order = 6, .n_columns = 1, .tolerance = k->tolerance};
  assert_ok(fmm_generate_points(k->points, k->n, 1, points, 2));
  assert_ok(fmm_tree_build(&t, k->n, points, NULL, 0, NULL, &(fmm_tree_options){k->leaf_size, k->root_scale}, 2));
  assert_ok(fmm_lists_build(&l, &t, fmm_surface_size(6), FMM_LISTS_TO_COUNT, 2));
  assert_ok(fmm_count_work(&t, &l, &what, 2, &c));
  const double sources = c.total[FMM_PHASE_ULIST].pairs / k->n;
  if (fabs(sources / k->sources - 1) > 0.01) fail_msg("%s: %g sources a target", k->points, sources);
  fmm_lists_free(&l);
  fmm_tree_free(&t);
  free(points);
  return c.tight_share;
}

/* What share of U's work is too tight for float: by the measure of pair_tight_cuda.cu in double, over all pairs of these trees, in tiles cut as the GPU cuts them (a leaf of up
 * to 32 points is one tile for 5,000 to 60,000 points, of up to 128 for 200,000, of up to 256 for 1,000,000). The last ones are direct sums. */
static void share_that_is_too_tight_is_near_the_measured(void **state) {
  static const tight_case cases[] = {
      {"ellipsoid", 200000, 362, 1, 2408, 1e-6, 0.591, 0.15},  {"ellipsoid", 1000000, 64, 1, 600, 1e-6, 0.205, 0.1},    {"ellipsoid", 20000, 500, 1, 3706, 1e-6, 0.413, 0.15},
      {"ellipsoid", 5000, 1000, 1, 2018, 1e-6, 0.586, 0.15},   {"ellipsoid", 5000, 64, 1, 447, 1e-6, 0.350, 0.15},      {"sphere", 200000, 128, 1.2, 1241, 1e-6, 0.812, 0.1},
      {"sphere", 200000, 128, 1.2, 1241, 3e-6, 0.453, 0.1},    {"sphere", 200000, 64, 1, 721, 1e-6, 0.551, 0.1},        {"sphere", 10000, 500, 1, 2297, 1e-6, 0.827, 0.1},
      {"sphere", 5000, 32, 1, 277, 1e-6, 0.459, 0.1},          {"uniform", 200000, 128, 1, 1159, 1e-6, 0.007, 0.02},    {"uniform", 200000, 500, 1, 8115, 1e-6, 0.079, 0.05},
      {"uniform", 20000, 500, 1, 4868, 1e-6, 0.041, 0.05},     {"plummer", 200000, 256, 1, 3856, 1e-6, 0.013, 0.06},    {"plummer", 20000, 512, 1.1, 5484, 1e-6, 0.020, 0.06},
      {"plummer", 20000, 1000, 1, 6910, 1e-6, 0.058, 0.06},    {"sphere", 5000, 40000, 1, 5000, 1e-6, 0.968, 0.05},     {"sphere", 5000, 40000, 1, 5000, 3e-6, 0.816, 0.1},
      {"ellipsoid", 20000, 40000, 1, 20000, 1e-6, 0.950, 0.05}, {"uniform", 30000, 40000, 1, 30000, 1e-6, 0.719, 0.1}, {"uniform", 5000, 40000, 1, 5000, 1e-6, 0.568, 0.12}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    const double share = tight_share(&cases[k]);
    if (fabs(share - cases[k].measured) > cases[k].bound) fail_msg("%s, %d points, leaves of %d: share %g, measured %g", cases[k].points, cases[k].n, cases[k].leaf_size, share, cases[k].measured);
  }
  assert_true(tight_share(&(tight_case){"sphere", 5000, 64, 1, 281, 0, 0, 0}) == 0 && tight_share(&(tight_case){"sphere", 5000, 64, 1, 281, 1e-4, 0, 0}) < 0.02);
}

/* Where nothing tells, as for no points, few, or all of them at one place. */
static void filling_is_finite_and_knows_surfaces_from_volumes(void **state) {
  static const struct { const char *points; double dimension; } cases[] = {{"sphere", 2}, {"ellipsoid", 2}, {"uniform", 3}, {"plummer", 3}};
  for (size_t k = 0; k < 4; k++)
    for (int n = 5000; n <= 125000; n *= 5) {
      double *points = malloc(24 * (size_t)n);
      fmm_tree t;
      assert_ok(fmm_generate_points(cases[k].points, n, 1, points, 2));
      assert_ok(fmm_tree_build(&t, n, points, NULL, 0, NULL, &(fmm_tree_options){n, 1.1}, 2));
      const double dimension = fmm_filling_of_sources(&t).dimension;
      if (fabs(dimension - cases[k].dimension) > 0.1) fail_msg("%d points, %s: dimension %g", n, cases[k].points, dimension);
      fmm_tree_free(&t);
      free(points);
    }
  static const uint64_t one_place[300] = {0};
  for (int64_t n = 0; n <= 300; n += 1 + 99 * (n > 2)) {
    const fmm_filling s = fmm_filling_of_keys(n, one_place);
    assert_true(s.dimension >= 2 && s.dimension <= 3 && isfinite(s.log_density) && s.log_variance >= 0 && isfinite(s.log_variance));
  }
}

static void failed_allocation_is_a_memory_error(void **state) {
  grid *g = make_grid();
  fmm_count_case what = {.pair = &fmm_info_laplace, .order = 4, .n_columns = 1};
  fmm_counts c = {.order = 99};
  fmm_memory_fail_at(1);
  assert_int_equal(fmm_count_work(&g->tree, &g->lists, &what, 1, &c), FMM_ERR_MEMORY);
  fmm_memory_fail_at(0);
  assert_int_equal(c.order, 99);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(ulist_of_a_uniform_tree_is_equation_2),
                                     cmocka_unit_test(vlist_counts_every_pair_of_boxes_that_is_not_adjacent),
                                     cmocka_unit_test(up_and_down_count_points_times_harmonics_and_parity_blocks), cmocka_unit_test(leaves_of_high_orders_have_two_products),
                                     cmocka_unit_test(up_and_down_count_points_times_surface_and_parity_blocks),
                                     cmocka_unit_test(box_work_without_parity_is_dense), cmocka_unit_test(w_and_x_count_points_times_surface_or_harmonics),
                                     cmocka_unit_test(the_gpus_form_counts_parents_groups_and_padded_operators),
      cmocka_unit_test(the_gpus_u_counts_seats_of_tiles_and_the_longest_of_them),
      cmocka_unit_test(the_longest_piece_of_a_small_tree_is_a_chunk),
      cmocka_unit_test(direct_sums_on_a_gpu_are_one_leaf_of_many_tiles),
                                     cmocka_unit_test(direct_sums_in_both_directions_are_a_circle_of_tiles),
                                     cmocka_unit_test(a_tree_of_one_leaf_counts_as_direct_sums),
                                     cmocka_unit_test(rows_of_a_window_are_ordered_by_their_neighbours), cmocka_unit_test(colours_of_a_window_take_turns),
                                     cmocka_unit_test(columns_components_and_gradients_enter_each_term),
                                     cmocka_unit_test(boxes_without_sources_or_targets_count_nothing),
                                     cmocka_unit_test(share_that_is_too_tight_is_near_the_measured),
                                     cmocka_unit_test(filling_is_finite_and_knows_surfaces_from_volumes),
                                     cmocka_unit_test(failed_allocation_is_a_memory_error)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
