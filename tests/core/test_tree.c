/* The tree: structure on every kind of input, hostile ones included; same bits for any number of threads; no leak when memory fails. */
#include "test.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "kernels/simd.h"
#include "runtime/points.h"
#include "same_trees.h"

static uint64_t state_of_random = 1;
static double random_unit(void) { /* SplitMix64 */
  uint64_t z = (state_of_random += 0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9, z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static double *random_rows(int64_t n, double centre, double width) {
  double *rows = malloc((size_t)(3 * n + 1) * sizeof *rows);
  for (int64_t i = 0; i < 3 * n; i++) rows[i] = centre + width * (random_unit() - 0.5);
  return rows;
}

/* Every input row is in exactly one place and the stored coordinates are exactly scale * (input - shift). */
static void check_points(const fmm_tree *t, const fmm_points *p, int64_t n, const double *rows) {
  uint8_t *seen = calloc((size_t)n + 1, 1);
  assert_int_equal(p->n_input, n);
  for (int64_t i = 0; i < p->n; i++) {
    int64_t begin = p->first ? p->first[i] : i, end = p->first ? p->first[i + 1] : i + 1;
    assert_true(begin < end);
    for (int64_t j = begin; j < end; j++) {
      int64_t row = p->input_row[j];
      assert_true(row >= 0 && row < n && !seen[row]++);
      assert_true(p->x[i] / t->scale + t->shift[0] == rows[3 * row] && p->y[i] / t->scale + t->shift[1] == rows[3 * row + 1] &&
                  p->z[i] / t->scale + t->shift[2] == rows[3 * row + 2]);
    }
  }
  if (p->first) assert_int_equal(p->first[p->n], n);
  free(seen);
}

/* Points of a box are inside it, but for the rounding of their keys. */
static void check_inside(const fmm_tree *t, const fmm_points *p, int box, int64_t begin, int64_t end) {
  double h = fmm_half_width(t, t->level[box]), most = h + 1e-15 * t->root_side; /* a few roundings of coordinates of this size */
  for (int64_t i = begin; i < end; i++)
    assert_true(fabs(p->x[i] - t->center_x[box]) <= most && fabs(p->y[i] - t->center_y[box]) <= most && fabs(p->z[i] - t->center_z[box]) <= most);
}

static void check_boxes(const fmm_tree *t) {
  int32_t leaves = 0;
  assert_true(t->level_begin[0] == 0 && t->level_begin[t->n_levels] == t->n_boxes && t->level_begin[FMM_MAX_LEVELS] == t->n_boxes);
  assert_true(t->source_begin[0] == 0 && t->source_end[0] == t->sources.n && t->target_begin[0] == 0 && t->target_end[0] == t->targets.n);
  for (int32_t i = 0; i < t->n_boxes; i++) {
    int64_t s = t->source_begin[i], e = t->target_begin[i];
    assert_true(i >= t->level_begin[t->level[i]] && i < t->level_begin[t->level[i] + 1]);
    if (i && t->level[i] == t->level[i - 1]) assert_true(t->key[i] > t->key[i - 1]);
    if (i) assert_true(t->source_end[i] > s || t->target_end[i] > e);
    assert_int_equal(t->octant[i], t->key[i] & 7);
    for (int k = 0; k < t->n_children[i]; k++) {
      int32_t c = t->first_child[i] + k;
      assert_true(t->parent[c] == i && t->level[c] == t->level[i] + 1 && t->key[c] >> 3 == t->key[i]);
      assert_true(t->source_begin[c] == s && t->target_begin[c] == e);
      s = t->source_end[c], e = t->target_end[c];
    }
    if (t->n_children[i]) {
      assert_true(s == t->source_end[i] && e == t->target_end[i] && t->cluster[i] < 0);
      assert_true(s - t->source_begin[i] > t->leaf_size || e - t->target_begin[i] > t->leaf_size);
      continue;
    }
    assert_int_equal(t->first_child[i], -1);
    leaves++;
    check_inside(t, &t->sources, i, t->source_begin[i], t->source_end[i]);
    check_inside(t, &t->targets, i, t->target_begin[i], t->target_end[i]);
    if (t->cluster[i] < 0 && !t->coincident && t->level[i] < FMM_KEY_LEVEL)
      assert_true(t->source_end[i] - s <= t->leaf_size && t->target_end[i] - e <= t->leaf_size);
  }
  assert_int_equal(leaves, t->n_leaves);
  int64_t s = 0, e = 0;
  for (int32_t l = 0; l < t->n_leaves; l++) { /* depth first: ranges follow each other */
    assert_true(t->source_begin[t->leaf[l]] == s && t->target_begin[t->leaf[l]] == e && !t->n_children[t->leaf[l]]);
    s = t->source_end[t->leaf[l]], e = t->target_end[t->leaf[l]];
  }
  assert_true(s == t->sources.n && e == t->targets.n);
}

static void check_clusters(const fmm_tree *t) {
  for (int32_t k = 0; k < t->n_clusters; k++) {
    const int32_t *leaf = t->cluster_leaf + t->cluster_first[k], n = t->cluster_first[k + 1] - t->cluster_first[k];
    assert_true(n >= 1 && n <= 8);
    for (int32_t i = 0; i < n; i++) {
      assert_true(t->cluster[leaf[i]] == k && !t->n_children[leaf[i]] && t->level[leaf[i]] == t->level[leaf[0]]);
      for (int a = 0; a < 3; a++) {
        int64_t d = (int64_t)fmm_key_compact(t->key[leaf[i]] >> a) - (int64_t)fmm_key_compact(t->key[leaf[0]] >> a);
        assert_true(d >= -1 && d <= 1);
      }
    }
  }
}

static void build_and_check(int64_t n, const double *rows, int64_t m, const double *targets, int q, fmm_tree *t) {
  fmm_tree_options options = {q, 1.3};
  assert_ok(fmm_tree_build(t, n, rows, NULL, m, targets, &options, 2));
  check_points(t, &t->sources, n, rows);
  if (targets) check_points(t, &t->targets, m, targets);
  else assert_true(t->same_points && t->targets.x == t->sources.x);
  check_boxes(t);
  check_clusters(t);
}

static void build_check_free(int64_t n, double *rows, int q) {
  fmm_tree t;
  size_t before = fmm_memory_now();
  build_and_check(n, rows, 0, NULL, q, &t);
  assert_true(fmm_tree_bytes(&t) == fmm_memory_now() - before);
  fmm_tree_free(&t);
  assert_int_equal(fmm_memory_now(), before);
  free(rows);
}

static void middles_of_cells_have_their_keys(void **state) {
  enum { n = 1000 };
  static const double at[][2] = {{0, 1}, {-3, 1}, {1e8, 2}, {0, 1e100}, {0, 1e-100}, {0, 1e-308}, {0, 1.7e308}}; /* centre, width */
  const double root_scales[] = {1, 1.3, 2};
  uint64_t keys[n], again[n];
  double middles[3 * n];
  for (size_t k = 0; k < sizeof at / sizeof *at; k++)
    for (int r = 0; r < 3; r++)
      for (int simd = FMM_SIMD_PLAIN; simd < FMM_N_SIMD; simd++) {
        double *rows = random_rows(n, at[k][0], at[k][1]);
        fmm_bounds b;
        fmm_frame f;
        fmm_simd_cap((fmm_simd)simd);
        assert_ok(fmm_bounds_of(&b, n, rows, 0, NULL, 1));
        fmm_frame_place(&f, &b, root_scales[r]);
        fmm_keys_of_rows(keys, &f, n, rows, NULL);
        fmm_rows_of_keys(middles, &f, n, keys);
        fmm_keys_of_rows(again, &f, n, middles, NULL);
        assert_memory_equal(again, keys, sizeof keys);
        for (int i = 0; i < 3 * n; i++) assert_true(fabs(middles[i] / at[k][1] - rows[i] / at[k][1]) <= root_scales[r] * 1.05 * 0x1p-22); /* half a cell, of which a unit in the last place of 1e8 is 3 % */
        free(rows);
      }
  fmm_simd_cap(FMM_SIMD_AVX512);
}

static void outermost_cells_have_finite_middles(void **state) {
  double rows[] = {-DBL_MAX, -DBL_MAX, -DBL_MAX, DBL_MAX, DBL_MAX, DBL_MAX}, middles[6];
  uint64_t keys[2];
  fmm_bounds b;
  fmm_frame f;
  assert_ok(fmm_bounds_of(&b, 2, rows, 0, NULL, 1));
  fmm_frame_place(&f, &b, 1);
  fmm_keys_of_rows(keys, &f, 2, rows, NULL);
  fmm_rows_of_keys(middles, &f, 2, keys);
  for (int i = 0; i < 6; i++) assert_true(isfinite(middles[i]) && fabs(middles[i] / DBL_MAX - (i < 3 ? -1 : 1)) < 1e-6);
}

static void trees_of_no_and_few_points_are_right(void **state) {
  for (int64_t n = 0; n <= 3; n++)
    for (int q = 1; q <= 3; q++) build_check_free(n, random_rows(n, 1, 1), q);
}

static void trees_of_random_points_are_right(void **state) {
  build_check_free(20000, random_rows(20000, 0, 1), 10);
  build_check_free(20000, random_rows(20000, 1e8, 2), 10);    /* around 1e8 +- 1 */
  build_check_free(5000, random_rows(5000, 0, 1e100), 7);
  build_check_free(5000, random_rows(5000, 0, 1e-100), 7);
  double *huge = random_rows(5000, 0, 1.7e308); /* differences overflow */
  for (int i = 0; i < 15000; i++) huge[i] *= 2;
  build_check_free(5000, huge, 7);
  build_check_free(5000, random_rows(5000, 0, 1e-308), 7);    /* denormal coordinates */
}

/* Points are sorted by as many bits of their keys as there is room for beside row numbers, or, where a cell of these is overfull in one of the sets, by all. A group in the last corner, of as many as a leaf may have, one or some
 * more, is in one such cell or in several; it is in both sets, or in one while the other has a few points there. */
static void groups_in_a_cell_are_split_in_one_set_and_in_two(void **state) {
  enum { N = 5000, M = 1200, Q = 30, FEW = 5 };
  const double widths[] = {1e-3, 3e-5, 2e-5, 1.5e-5, 1.2e-5, 8e-6, 4e-6, 1e-6};
  int deepest = 0;
  for (int k = 0; k < 3 * (int)(sizeof widths / sizeof *widths); k++) {
    const int group = k % 3 == 2 ? 2 * Q - 8 : Q + k % 3;
    fmm_tree alone, t;
    double *rows = random_rows(N, 0.5, 1), *others = random_rows(M, 0.5, 1);
    for (int i = 0; i < 3 * group; i++) rows[3 * (N / 2) + i] = 1 + widths[k / 3] * random_unit();
    for (int i = 0; i < 3 * FEW; i++) others[i] = 1 + widths[k / 3] * random_unit();
    const fmm_tree_options o = {Q, 1.1};
    assert_ok(fmm_tree_build(&alone, N, rows, NULL, 0, NULL, &o, 2));
    check_points(&alone, &alone.sources, N, rows);
    check_boxes(&alone);
    assert_ok(fmm_tree_build(&t, N, rows, NULL, N, rows, &o, 2));
    assert_true(alone.n_boxes == t.n_boxes && alone.n_levels == t.n_levels);
    assert_memory_equal(alone.key, t.key, (size_t)t.n_boxes * sizeof *t.key);
    assert_memory_equal(alone.source_end, t.source_end, (size_t)t.n_boxes * sizeof *t.source_end);
    fmm_tree_free(&t);
    for (int among_targets = 0; among_targets < 2; among_targets++) {
      if (among_targets) build_and_check(M, others, N, rows, Q, &t);
      else build_and_check(N, rows, M, others, Q, &t);
      if (t.n_levels > deepest) deepest = t.n_levels;
      fmm_tree_free(&t);
    }
    fmm_tree_free(&alone);
    free(rows), free(others);
  }
  assert_true(deepest > 18); /* than the cells: 13 bits of 64 are rows' */
}

/* More points in one cell of those bits than one thread sorts by itself, most of all or a part, in one set and beside another. */
static void check_group(int64_t N, int64_t GROUP) {
  enum { M = 2000 };
  fmm_tree t;
  double *rows = random_rows(N, 0.5, 1), *others = random_rows(M, 0.5, 1);
  for (int64_t i = 0; i < 3 * GROUP; i++) rows[3 * 500 + i] = 0.7 + 1e-6 * random_unit();
  for (int i = 0; i < 30; i++) others[i] = 0.7 + 1e-6 * random_unit();
  build_and_check(N, rows, 0, NULL, 40, &t);
  fmm_tree_free(&t);
  build_and_check(N, rows, M, others, 40, &t);
  assert_true(t.n_levels > 17);
  fmm_tree_free(&t);
  build_and_check(M, others, N, rows, 40, &t);
  fmm_tree_free(&t);
  free(rows), free(others);
}

static void many_points_in_one_cell_are_split(void **state) {
  check_group(90000, 70000);
  check_group(170000, 40000);
}

static void collinear_and_coplanar_points_are_right(void **state) {
  double *line = random_rows(3000, 0, 1), *plane = random_rows(3000, 0, 1);
  for (int64_t i = 0; i < 3000; i++) line[3 * i + 1] = 3, line[3 * i + 2] = 2 * line[3 * i], plane[3 * i + 1] = -7;
  build_check_free(3000, line, 5);
  build_check_free(3000, plane, 5);
}

/* Where points have next to no extent along an axis, they lie a third of their box from one of its ends, whatever its level; else boxes begin at the lowest. */
static void sheets_lie_within_their_boxes(void **state) {
  for (int thin = 0; thin < 2; thin++) {
    const double thickness = thin ? 1e-6 : 0.5;
    double *rows = random_rows(4000, 0, 1);
    fmm_tree t;
    for (int64_t i = 0; i < 4000; i++) rows[3 * i + 2] = -3 + thickness * rows[3 * i + 2];
    build_and_check(4000, rows, 0, NULL, 20, &t);
    int at_an_end = 0;
    for (int32_t i = 0; i < t.n_leaves; i++) {
      const int32_t box = t.leaf[i];
      const double part = (t.sources.z[t.source_begin[box]] - t.center_z[box]) / ldexp(t.root_side, -t.level[box]); /* from the middle, of the side */
      at_an_end += fabs(fabs(part) - 1.0 / 6) > 1e-3;
    }
    assert_true(t.n_levels > 4);
    assert_true(thin ? at_an_end == 0 : at_an_end > 0);
    fmm_tree_free(&t);
    free(rows);
  }
}

static void sources_and_targets_apart_share_one_tree(void **state) {
  double *s = random_rows(3000, 0, 1), *far = random_rows(500, 1000, 1), *near = random_rows(4000, 0.2, 0.3);
  fmm_tree t;
  build_and_check(3000, s, 500, far, 8, &t);
  fmm_tree_free(&t);
  build_and_check(3000, s, 4000, near, 8, &t);
  fmm_tree_free(&t);
  build_and_check(3000, s, 0, near, 8, &t);
  fmm_tree_free(&t);
  build_and_check(0, s, 4000, near, 8, &t);
  fmm_tree_free(&t);
  free(s), free(far), free(near);
}

static void coincident_points_are_merged_where_a_finest_cell_is_overfull(void **state) {
  enum { n = 100000 };
  double *rows = random_rows(n, 0, 1);
  for (int64_t i = 0; i < n / 2; i++) rows[6 * i] = rows[6 * i + 1] = rows[6 * i + 2] = 0.25 * (double)(i % 2); /* every other row at two places */
  for (int64_t i = 0; i < n / 2; i += 4) rows[6 * i + 1] = -0.0; /* equal to 0 */
  fmm_tree t;
  build_and_check(n, rows, 0, NULL, 50, &t);
  assert_int_equal(t.sources.n, n / 2 + 2);
  assert_int_equal(t.n_clusters, 0);
  double *density = malloc(n * sizeof *density), *plane = malloc(n * sizeof *plane), *back = malloc(n * sizeof *back), sum = 0;
  for (int64_t i = 0; i < n; i++) density[i] = 1;
  assert_true(fmm_gather_densities(&t.sources, 1, density, plane, 0, NULL, 2) == 1);
  for (int64_t i = 0; i < t.sources.n; i++) sum += plane[i];
  assert_true(sum == n);
  const double *const planes[] = {plane};
  assert_int_equal(fmm_scatter_results(&t.targets, 1, &(fmm_delivery){1, planes, 2, back}, 2), -1);
  assert_true(back[0] == 2 * (n / 4) && back[2] == 2 * (n / 4) && back[4] == back[0] && back[1] == 2);
  free(density), free(plane), free(back);
  fmm_tree_free(&t);
  for (int64_t i = 0; i < 3 * n; i++) rows[i] = 5; /* all at one place */
  build_and_check(n, rows, 0, NULL, 50, &t);
  assert_true(t.coincident && t.sources.n == 1 && t.n_boxes == 1);
  fmm_tree_free(&t);
  free(rows);
}

static void points_below_the_finest_cell_make_clusters_that_a_nested_tree_resolves(void **state) {
  enum { n = 30000 };
  double *rows = random_rows(n, 0, 1);
  for (int64_t i = 0; i < n - 1; i++) /* two clusters 1e9 apart, the second around a corner of its cell or not; one point between */
    for (int a = 0; a < 3; a++) rows[3 * i + a] += i % 2 ? 1e9 : -3;
  rows[3 * (n - 1)] = 5e8;
  fmm_tree t, nested;
  build_and_check(n, rows, 0, NULL, 40, &t);
  assert_int_equal(t.n_clusters, 2);
  int64_t together = 0;
  for (int32_t k = 0; k < t.n_clusters; k++) {
    int64_t ns, nt;
    fmm_cluster_size(&t, k, &ns, &nt);
    assert_int_equal(ns, nt);
    double *inner = malloc((size_t)(3 * ns) * sizeof *inner);
    int64_t *index = malloc((size_t)ns * sizeof *index);
    fmm_cluster_gather(&t, k, inner, index, NULL, NULL, NULL);
    for (int64_t i = 0; i < ns; i++) assert_true(inner[3 * i + 1] == t.sources.y[index[i]]);
    build_and_check(ns, inner, 0, NULL, 40, &nested);
    assert_int_equal(nested.n_clusters, 0);
    together += ns;
    fmm_tree_free(&nested);
    free(inner), free(index);
  }
  assert_int_equal(together, n - 1);
  fmm_tree_free(&t);
  free(rows);
}

static void many_small_overfull_cells_are_left_to_direct_sums(void **state) {
  enum { n = 30000 };
  double *rows = random_rows(n, 0, 1);
  for (int64_t i = n - 1; i >= 0; i--)
    for (int a = 0; a < 3; a++) rows[3 * i + a] = rows[3 * (i / 10) + a] * (1 + 1e-9 * (double)(i % 10)); /* ten in a cell each */
  fmm_tree t;
  build_and_check(n, rows, 0, NULL, 4, &t);
  assert_true(t.n_clusters == 0 && t.n_levels == FMM_MAX_LEVELS && t.sources.n == n);
  fmm_tree_free(&t);
  free(rows);
}

static void wide_groups_of_overfull_cells_become_coarser_leaves(void **state) {
  enum { n = 20000 };
  double *rows = random_rows(n, 0, 5e-6); /* 10 finest cells wide */
  rows[0] = rows[1] = rows[2] = 1;
  fmm_tree t;
  build_and_check(n, rows, 0, NULL, 4, &t);
  assert_int_equal(t.n_clusters, 1);
  assert_true(t.level[t.cluster_leaf[0]] < 20 && t.level[t.cluster_leaf[0]] > 14);
  fmm_tree_free(&t);
  free(rows);
}

/* So that the square of a distance between two leaves is never subnormal: only a leaf with itself needs the guard for that (kernels/pair/environment_cuda.h). */
static void points_nearer_than_a_square_can_tell_share_a_leaf(void **state) {
  enum { N = 300 };
  double rows[3 * N];
  for (int i = 0; i < 3 * N; i++) rows[i] = 2 * random_unit() - 1;
  for (int a = 0; a < 3; a++) {
    rows[a] = -1, rows[3 + a] = 1; /* faces at 0 */
    for (int i = 0; i < 2; i++) /* rows 2 + 2 a and the next: on both sides of the plane */
      for (int k = 0; k < 3; k++) rows[3 * (2 + 2 * a + i) + k] = k == a ? (i ? 1e-160 : -1e-160) : 0.25 * (k + 1);
  }
  for (int q = 1; q < 40; q *= 3) {
    fmm_tree t;
    build_and_check(N, rows, 0, NULL, q, &t);
    for (int leaf = 0; leaf < t.n_leaves; leaf++) {
      int32_t box = t.leaf[leaf];
      int found[3] = {0};
      for (int64_t i = t.source_begin[box]; i < t.source_end[box]; i++)
        for (int64_t j = t.sources.first ? t.sources.first[i] : i; j < (t.sources.first ? t.sources.first[i + 1] : i + 1); j++)
          if (t.sources.input_row[j] >= 2 && t.sources.input_row[j] < 8) found[(t.sources.input_row[j] - 2) / 2]++;
      for (int a = 0; a < 3; a++) assert_true(found[a] == 0 || found[a] == 2);
    }
    fmm_tree_free(&t);
  }
}

static void first_row_that_is_not_finite_is_named(void **state) {
  fmm_tree t;
  fmm_tree_options options = {10, 1};
  double *s = random_rows(1000, 0, 1), *targets = random_rows(1000, 0, 1);
  targets[3 * 5] = NAN;
  assert_int_equal(fmm_tree_build(&t, 1000, s, NULL, 1000, targets, &options, 2), FMM_ERR_INPUT);
  assert_non_null(strstr(fmm_last_error(), "target row 5 (from 0): x is nan"));
  s[3 * 900 + 2] = -INFINITY, s[3 * 17 + 1] = INFINITY;
  assert_int_equal(fmm_tree_build(&t, 1000, s, NULL, 1000, targets, &options, 2), FMM_ERR_INPUT);
  assert_non_null(strstr(fmm_last_error(), "source row 17 (from 0): y is inf"));
  options.leaf_size = 0;
  assert_int_equal(fmm_tree_build(&t, 0, s, NULL, 0, NULL, &options, 2), FMM_ERR_ARGUMENT);
  options = (fmm_tree_options){1, 2.5};
  assert_int_equal(fmm_tree_build(&t, 0, s, NULL, 0, NULL, &options, 2), FMM_ERR_ARGUMENT);
  free(s), free(targets);
}

static double *mixed_rows(int64_t n) { /* uniform, a cluster below the finest cell, coincident ones */
  double *rows = random_rows(n, 0, 1);
  for (int64_t i = 0; i < 3 * n; i++)
    if (i / 3 % 4 == 0) rows[i] = 0.1 + 1e-9 * rows[i];
    else if (i / 3 % 4 == 1) rows[i] = 0.3;
  return rows;
}

static void every_number_of_threads_builds_the_same_tree(void **state) {
  enum { n = 60000 };
  double *rows = mixed_rows(n), *targets = mixed_rows(n);
  fmm_tree_options options = {20, 1};
  fmm_tree one, more;
  assert_ok(fmm_tree_build(&one, n, rows, NULL, n, targets, &options, 1));
  for (int threads = 2; threads <= 7; threads = threads * 2 - 1) {
    assert_ok(fmm_tree_build(&more, n, rows, NULL, n, targets, &options, threads));
    check_same_trees(&one, &more);
    fmm_tree_free(&more);
  }
  fmm_tree_free(&one);
  free(rows), free(targets);
}

static void memory_that_fails_anywhere_leaks_nothing(void **state) {
  enum { n = 20000 };
  double *rows = mixed_rows(n), *targets = mixed_rows(n);
  fmm_tree_options options = {20, 1};
  fmm_tree t;
  size_t before = fmm_memory_now();
  int failures = 0;
  for (fmm_status status = FMM_ERR_MEMORY; status != FMM_OK; failures++) {
    fmm_memory_fail_at(failures + 1);
    status = fmm_tree_build(&t, n, rows, NULL, n, targets, &options, 2);
    if (status == FMM_OK) break;
    assert_int_equal(status, FMM_ERR_MEMORY);
    assert_int_equal(fmm_memory_now(), before);
  }
  fmm_memory_fail_at(0);
  assert_true(failures > 40);
  fmm_tree_free(&t);
  assert_int_equal(fmm_memory_now(), before);
  free(rows), free(targets);
}

/* Nothing is read of so many. */
static void more_rows_than_32_bits_count_are_refused(void **state) {
  const int64_t most = UINT32_MAX;
  assert_ok(fmm_points_check_rows(most, most));
  assert_int_equal(fmm_points_check_rows(most + 1, 0), FMM_ERR_ARGUMENT);
  assert_non_null(strstr(fmm_last_error(), "4294967296 sources"));
  assert_int_equal(fmm_points_check_rows(0, most + 1), FMM_ERR_ARGUMENT);
  assert_non_null(strstr(fmm_last_error(), "at most 4294967295"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(more_rows_than_32_bits_count_are_refused), cmocka_unit_test(middles_of_cells_have_their_keys), cmocka_unit_test(outermost_cells_have_finite_middles), cmocka_unit_test(trees_of_no_and_few_points_are_right),
      cmocka_unit_test(trees_of_random_points_are_right),
      cmocka_unit_test(groups_in_a_cell_are_split_in_one_set_and_in_two), cmocka_unit_test(many_points_in_one_cell_are_split), cmocka_unit_test(collinear_and_coplanar_points_are_right),
      cmocka_unit_test(sheets_lie_within_their_boxes), cmocka_unit_test(sources_and_targets_apart_share_one_tree),
      cmocka_unit_test(coincident_points_are_merged_where_a_finest_cell_is_overfull),
      cmocka_unit_test(points_below_the_finest_cell_make_clusters_that_a_nested_tree_resolves),
      cmocka_unit_test(many_small_overfull_cells_are_left_to_direct_sums),
      cmocka_unit_test(wide_groups_of_overfull_cells_become_coarser_leaves),
      cmocka_unit_test(points_nearer_than_a_square_can_tell_share_a_leaf),
                                     cmocka_unit_test(first_row_that_is_not_finite_is_named),
      cmocka_unit_test(every_number_of_threads_builds_the_same_tree),
      cmocka_unit_test(memory_that_fails_anywhere_leaks_nothing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
