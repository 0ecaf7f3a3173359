/* The lists by brute force: U, V, W, X and the clusters together cover every (target, source) pair exactly once, whatever the points;
 * every entry satisfies its list's condition; same rows for any number of threads; no leak when memory fails. */
#include "test.h"

#include <stdlib.h>

#include "runtime/lists.h"
#include "runtime/points.h"

static uint64_t state_of_random = 1;
static double random_unit(void) { /* SplitMix64 */
  uint64_t z = (state_of_random += 0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9, z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

typedef struct scene { const char *name; void (*place)(int64_t i, double p[3]); } scene;

static void place_uniform(int64_t i, double p[3]) {
  for (int a = 0; a < 3; a++) p[a] = random_unit();
}
static void place_shell(int64_t i, double p[3]) { /* surface of a cube, graded towards one edge */
  place_uniform(i, p);
  p[i % 3] = (double)(i / 3 % 2);
  p[(i + 1) % 3] *= p[(i + 1) % 3] * p[(i + 1) % 3];
}
static void place_graded(int64_t i, double p[3]) { /* a hundred thousand times denser at a corner */
  place_uniform(i, p);
  double s = p[0] * p[1] * p[2];
  for (int a = 0; a < 3; a++) p[a] *= s * s;
}
static void place_two_scales(int64_t i, double p[3]) {
  place_uniform(i, p);
  if (i % 3) p[0] = 0.7 + 1e-3 * p[0], p[1] *= 1e-3, p[2] = 0.2 + 1e-3 * p[2];
}
static void place_line(int64_t i, double p[3]) {
  p[0] = random_unit(), p[1] = -p[0], p[2] = 3;
}
static void place_below_cells(int64_t i, double p[3]) { /* two groups a few finest cells wide or less, among others */
  place_uniform(i, p);
  for (int a = 0; a < 3; a++)
    if (i % 4 == 1) p[a] = 0.3 + 4e-6 * p[a];
    else if (i % 4 == 2) p[a] = 0.6 + 1e-8 * p[a];
}
static void place_nearly_all_below_cells(int64_t i, double p[3]) { /* so many that nested plans are worth it */
  place_uniform(i, p);
  for (int a = 0; a < 3 && i % 8; a++) p[a] = i % 8 < 5 ? 0.3 + 4e-6 * p[a] : 0.6 + 1e-8 * p[a];
}
static void place_together(int64_t i, double p[3]) { p[0] = p[1] = p[2] = 0.1; }

static const scene scenes[] = {{"uniform", place_uniform}, {"shell", place_shell}, {"graded", place_graded}, {"two scales", place_two_scales},
                               {"line", place_line}, {"below cells", place_below_cells}, {"nearly all below cells", place_nearly_all_below_cells},
                               {"together", place_together}};
enum { n_scenes = sizeof scenes / sizeof *scenes };

static double *rows_of(const scene *s, int64_t n) {
  double *rows = malloc((size_t)(3 * n + 1) * sizeof *rows);
  for (int64_t i = 0; i < n; i++) s->place(i, rows + 3 * i);
  return rows;
}

typedef struct cover { const fmm_tree *tree; uint8_t *count; } cover; /* [target][source] */

static void add(cover *c, int32_t target_box, int32_t source_box) {
  const fmm_tree *t = c->tree;
  for (int64_t i = t->target_begin[target_box]; i < t->target_end[target_box]; i++)
    for (int64_t j = t->source_begin[source_box]; j < t->source_end[source_box]; j++) c->count[i * t->sources.n + j]++;
}

static int64_t cell_of(const fmm_tree *t, int32_t box, int axis) { return (int64_t)fmm_key_compact(t->key[box] >> axis); }

/* Whether two boxes of any level touch or overlap: distance of their cells at the finer level. */
static int touch(const fmm_tree *t, int32_t a, int32_t b) {
  if (t->level[a] > t->level[b]) return touch(t, b, a);
  int shift = t->level[b] - t->level[a];
  for (int axis = 0; axis < 3; axis++) {
    int64_t lo = cell_of(t, a, axis) << shift, hi = (cell_of(t, a, axis) + 1) << shift, at = cell_of(t, b, axis);
    if (at < lo - 1 || at > hi) return 0;
  }
  return 1;
}

static int64_t sources_of(const fmm_tree *t, int32_t b) { return t->source_end[b] - t->source_begin[b]; }
static int64_t targets_of(const fmm_tree *t, int32_t b) { return t->target_end[b] - t->target_begin[b]; }

static void check_u(cover *c, const fmm_rows *u) {
  const fmm_tree *t = c->tree;
  for (int32_t r = 0; r < u->n_rows; r++) {
    assert_true(!t->n_children[u->row[r]] && targets_of(t, u->row[r]) && u->offset[r + 1] > u->offset[r]);
    if (r) assert_true(t->target_begin[u->row[r]] >= t->target_end[u->row[r - 1]]); /* order of the leaves */
    for (int64_t j = u->offset[r]; j < u->offset[r + 1]; j++) {
      assert_true(sources_of(t, u->entry[j]));
      if (j > u->offset[r]) assert_true(t->source_begin[u->entry[j]] >= t->source_end[u->entry[j - 1]]);
      add(c, u->row[r], u->entry[j]);
    }
  }
}

/* Of targets that are the sources: leaves alone, and two hold one another or neither the other. */
static void check_mates(const fmm_tree *t, const fmm_rows *u) {
  int32_t *row_of = malloc(((size_t)t->n_boxes + 1) * sizeof *row_of);
  for (int32_t b = 0; b < t->n_boxes; b++) row_of[b] = -1;
  for (int32_t r = 0; r < u->n_rows; r++) row_of[u->row[r]] = r;
  for (int32_t r = 0; r < u->n_rows; r++)
    for (int64_t j = u->offset[r]; j < u->offset[r + 1]; j++) {
      assert_true(!t->n_children[u->entry[j]] && row_of[u->entry[j]] >= 0);
      assert_true(fmm_lists_find(u, t, row_of[u->entry[j]], u->row[r]) >= 0);
    }
  free(row_of);
}

static int64_t check_v(cover *c, const fmm_rows *v) {
  const fmm_tree *t = c->tree;
  int64_t pairs = 0;
  for (int32_t r = 0; r < v->n_rows; r++) {
    int32_t p = v->row[r];
    if (r) assert_true(p > v->row[r - 1]);
    for (int64_t j = v->offset[r]; j < v->offset[r + 1]; j++) {
      int32_t q = v->entry[j], direction = 0;
      int64_t before = pairs;
      for (int a = 2; a >= 0; a--) direction = 3 * direction + (int32_t)(cell_of(t, q, a) - cell_of(t, p, a)) + 1;
      assert_true(t->level[q] == t->level[p] && q != p && touch(t, p, q) && direction == v->direction[j]);
      for (int32_t a = t->first_child[p]; a < t->first_child[p] + t->n_children[p]; a++)
        for (int32_t b = t->first_child[q]; b < t->first_child[q] + t->n_children[q]; b++)
          if (!touch(t, a, b) && targets_of(t, a) && sources_of(t, b)) add(c, a, b), pairs++;
      assert_true(pairs > before);
    }
  }
  return pairs;
}

static void check_w(cover *c, const fmm_rows *w, int64_t threshold) {
  const fmm_tree *t = c->tree;
  for (int32_t r = 0; r < w->n_rows; r++)
    for (int64_t j = w->offset[r]; j < w->offset[r + 1]; j++) {
      int32_t leaf = w->row[r], b = w->entry[j];
      assert_true(!t->n_children[leaf] && t->level[b] > t->level[leaf] && !touch(t, leaf, b) && touch(t, leaf, t->parent[b]));
      assert_true(sources_of(t, b) > threshold && targets_of(t, leaf));
      add(c, leaf, b);
    }
}

static void check_x(cover *c, const fmm_rows *x, int64_t threshold) {
  const fmm_tree *t = c->tree;
  for (int32_t r = 0; r < x->n_rows; r++)
    for (int64_t j = x->offset[r]; j < x->offset[r + 1]; j++) {
      int32_t b = x->row[r], leaf = x->entry[j];
      assert_true(!t->n_children[leaf] && t->level[b] > t->level[leaf] && !touch(t, leaf, b) && touch(t, leaf, t->parent[b]));
      assert_true(targets_of(t, b) > threshold && sources_of(t, leaf));
      add(c, b, leaf);
    }
}

static void check_cover(const fmm_tree *t, const fmm_lists *l, int64_t threshold, const char *name, int q) {
  cover c = {t, calloc((size_t)(t->sources.n * t->targets.n) + 1, 1)};
  check_u(&c, &l->u);
  if (t->same_points) check_mates(t, &l->u);
  assert_int_equal(check_v(&c, &l->v), fmm_lists_v_pairs(l, t));
  check_w(&c, &l->w, threshold);
  check_x(&c, &l->x, threshold);
  for (int32_t k = 0; k < t->n_clusters; k++)
    for (int32_t a = t->cluster_first[k]; a < t->cluster_first[k + 1]; a++)
      for (int32_t b = t->cluster_first[k]; b < t->cluster_first[k + 1]; b++) add(&c, t->cluster_leaf[a], t->cluster_leaf[b]);
  int expected = t->coincident ? 0 : 1; /* pairs at distance zero contribute nothing */
  for (int64_t i = 0; i < t->sources.n * t->targets.n; i++)
    if (c.count[i] != expected)
      fail_msg("%s, q %d, threshold %d: target %d, source %d covered %d times", name, q, (int)threshold, (int)(i / t->sources.n),
               (int)(i % t->sources.n), c.count[i]);
  free(c.count);
}

static void check_lists(const char *name, int64_t n, const double *s, int64_t m, const double *targets, int q, double root_scale, int64_t threshold) {
  fmm_tree t;
  fmm_lists l;
  size_t before = fmm_memory_now();
  fmm_tree_options options = {q, root_scale};
  assert_ok(fmm_tree_build(&t, n, s, NULL, m, targets, &options, 2));
  size_t tree_bytes = fmm_memory_now();
  assert_ok(fmm_lists_build(&l, &t, threshold, FMM_LISTS_TO_SUM, 2));
  assert_int_equal(fmm_lists_bytes(&l), fmm_memory_now() - tree_bytes);
  check_cover(&t, &l, threshold, name, q);
  fmm_lists_free(&l);
  fmm_tree_free(&t);
  assert_int_equal(fmm_memory_now(), before);
}

static void every_pair_is_covered_once_when_targets_are_the_sources(void **state) {
  static const int sizes[] = {0, 1, 2, 3, 40, 700}, leaves[] = {1, 3, 20};
  for (int k = 0; k < n_scenes; k++)
    for (int i = 0; i < 6; i++) {
      double *s = rows_of(&scenes[k], sizes[i]);
      for (int j = 0; j < 3; j++)
        for (int64_t threshold = 0; threshold < 20; threshold += 8)
          check_lists(scenes[k].name, sizes[i], s, 0, NULL, leaves[j], 1 + 0.3 * j, threshold);
      free(s);
    }
}

static void every_pair_is_covered_once_when_targets_are_others(void **state) {
  for (int k = 0; k < n_scenes; k++)
    for (int i = 0; i < n_scenes; i++) {
      double *s = rows_of(&scenes[k], 500), *t = rows_of(&scenes[i], 400);
      for (int j = 0; j < 400; j++) t[3 * j] += k == i ? 0.3 : 0;
      for (int64_t threshold = 0; threshold < 20; threshold += 8) check_lists(scenes[k].name, 500, s, 400, t, 4, 1.1, threshold);
      check_lists(scenes[k].name, 500, s, 0, t, 4, 1, 4);
      check_lists(scenes[k].name, 0, s, 400, t, 4, 1, 4);
      free(s), free(t);
    }
}

static void clusters_are_among_the_covered(void **state) {
  double *s = rows_of(&scenes[6], 1500);
  fmm_tree t;
  fmm_tree_options options = {1, 1};
  assert_ok(fmm_tree_build(&t, 1500, s, NULL, 0, NULL, &options, 2));
  assert_int_equal(t.n_clusters, 2);
  fmm_tree_free(&t);
  check_lists("nearly all below cells", 1500, s, 0, NULL, 1, 1, 4);
  check_lists("nearly all below cells", 1500, s, 1000, s, 1, 1.2, 4);
  free(s);
}

static void w_and_x_are_each_others_duals_on_a_graded_tree(void **state) {
  double *s = rows_of(&scenes[2], 3000);
  fmm_tree t;
  fmm_lists l;
  fmm_tree_options options = {10, 1};
  assert_ok(fmm_tree_build(&t, 3000, s, NULL, 0, NULL, &options, 2));
  assert_ok(fmm_lists_build(&l, &t, 0, FMM_LISTS_TO_SUM, 2));
  assert_true(l.w.n_entries > 100);
  assert_int_equal(l.w.n_entries, l.x.n_entries);
  fmm_lists_free(&l);
  fmm_tree_free(&t);
  free(s);
}

static int same_rows(const fmm_rows *a, const fmm_rows *b) {
  return a->n_rows == b->n_rows && a->n_entries == b->n_entries && !memcmp(a->row, b->row, (size_t)a->n_rows * 4) &&
         !memcmp(a->offset, b->offset, (size_t)(a->n_rows + 1) * 8) && !memcmp(a->entry, b->entry, (size_t)a->n_entries * 4) &&
         (!a->direction || !memcmp(a->direction, b->direction, (size_t)a->n_entries));
}

static void every_number_of_threads_makes_the_same_lists(void **state) {
  double *s = rows_of(&scenes[3], 20000);
  fmm_tree t;
  fmm_lists one, more;
  fmm_tree_options options = {10, 1};
  assert_ok(fmm_tree_build(&t, 20000, s, NULL, 0, NULL, &options, 2));
  assert_ok(fmm_lists_build(&one, &t, 5, FMM_LISTS_TO_SUM, 1));
  for (int threads = 2; threads <= 7; threads = threads * 2 - 1) {
    assert_ok(fmm_lists_build(&more, &t, 5, FMM_LISTS_TO_SUM, threads));
    assert_true(same_rows(&one.u, &more.u) && same_rows(&one.v, &more.v) && same_rows(&one.w, &more.w) && same_rows(&one.x, &more.x));
    fmm_lists_free(&more);
  }
  fmm_lists_free(&one);
  fmm_tree_free(&t);
  free(s);
}

static void an_entry_is_found_where_it_stands_and_no_other(void **state) {
  for (int k = 0; k < n_scenes; k++) {
    double *s = rows_of(&scenes[k], 700);
    fmm_tree t;
    fmm_lists l;
    assert_ok(fmm_tree_build(&t, 700, s, NULL, 0, NULL, &(fmm_tree_options){.leaf_size = 7, .root_scale = 1}, 1));
    assert_ok(fmm_lists_build(&l, &t, 30, FMM_LISTS_TO_SUM, 1));
    for (int32_t r = 0; r < l.u.n_rows; r++)
      for (int32_t box = 0; box < t.n_boxes; box++) {
        int64_t at = -1;
        for (int64_t e = l.u.offset[r]; e < l.u.offset[r + 1]; e++)
          if (l.u.entry[e] == box) at = e;
        assert_int_equal(fmm_lists_find(&l.u, &t, r, box), at);
      }
    fmm_lists_free(&l);
    fmm_tree_free(&t);
    free(s);
  }
}

static void memory_that_fails_anywhere_leaks_nothing(void **state) {
  double *s = rows_of(&scenes[1], 1000);
  fmm_tree t;
  fmm_lists l;
  fmm_tree_options options = {10, 1};
  assert_ok(fmm_tree_build(&t, 1000, s, NULL, 0, NULL, &options, 2));
  size_t before = fmm_memory_now();
  int failures = 0;
  for (;; failures++) {
    fmm_memory_fail_at(failures + 1);
    fmm_status status = fmm_lists_build(&l, &t, 5, FMM_LISTS_TO_SUM, 2);
    if (status == FMM_OK) break;
    assert_int_equal(status, FMM_ERR_MEMORY);
    assert_int_equal(fmm_memory_now(), before);
  }
  fmm_memory_fail_at(0);
  assert_true(failures > 20);
  fmm_lists_free(&l);
  fmm_tree_free(&t);
  free(s);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_pair_is_covered_once_when_targets_are_the_sources),
                                     cmocka_unit_test(every_pair_is_covered_once_when_targets_are_others),
                                     cmocka_unit_test(clusters_are_among_the_covered),
                                     cmocka_unit_test(w_and_x_are_each_others_duals_on_a_graded_tree),
                                     cmocka_unit_test(every_number_of_threads_makes_the_same_lists),
                                     cmocka_unit_test(an_entry_is_found_where_it_stands_and_no_other),
                                     cmocka_unit_test(memory_that_fails_anywhere_leaks_nothing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
