/* Halos of U's groups (ulist_groups.h): each leaf of a later group that a group reaches has one place there and that group's part, in the order of the groups, whatever the number of threads. */
#include "test.h"

#include "kernels/ulist/ulist_groups.h"
#include "runtime/generate.h"

typedef struct scene { fmm_tree tree; fmm_lists lists; } scene;

static void make(scene *s, const char *distribution) {
  enum { N = 40000 };
  static double points[N][3];
  const fmm_tree_options options = {.leaf_size = 12, .root_scale = 1.1};
  assert_ok(fmm_generate_points(distribution, N, 5, points[0], 1));
  assert_ok(fmm_tree_build(&s->tree, N, points[0], NULL, 0, NULL, &options, 1));
  assert_ok(fmm_lists_build(&s->lists, &s->tree, 56, FMM_LISTS_TO_SUM, 1));
}

static void release(scene *s) {
  fmm_lists_free(&s->lists);
  fmm_tree_free(&s->tree);
}

static int64_t points_of(const scene *s, int32_t row) { return s->tree.target_end[s->lists.u.row[row]] - s->tree.target_begin[s->lists.u.row[row]]; }

/* A group's halo by brute force: rows behind it, in the order in which its entries name them. Adds to each its part. */
static void check_halo(const scene *s, const fmm_ulist_groups *g, int32_t group, int64_t *parts) {
  const fmm_rows *u = &s->lists.u;
  const int32_t *row = g->halo_row + g->halo_row_begin[group];
  int64_t points = 0, n = 0;
  for (int64_t e = u->offset[g->begin[group]]; e < u->offset[g->begin[group + 1]]; e++) {
    const int32_t mate = g->mate[e];
    int64_t place = 0, k = 0;
    if (mate < g->begin[group + 1]) {
      assert_int_equal(g->place[e], -1);
      continue;
    }
    while (k < n && row[k] != mate) place += points_of(s, row[k++]);
    if (k == n) {
      const fmm_ulist_part *part = &g->part[g->part_offset[mate] + parts[mate]++];
      assert_int_equal(row[n++], mate);
      assert_int_equal(place, points);
      assert_int_equal(part->group, group); /* groups come in their order here */
      assert_int_equal(part->place, place);
      points += points_of(s, mate);
    }
    assert_int_equal(g->place[e], place);
  }
  assert_int_equal(g->halo_row_begin[group + 1] - g->halo_row_begin[group], n);
  assert_int_equal(g->halo_begin[group + 1] - g->halo_begin[group], points);
}

static void each_leaf_behind_a_group_has_one_place_in_its_halo(void **state) {
  static const char *const distributions[] = {"uniform", "ellipsoid", "plummer"};
  for (int k = 0; k < 3; k++) {
    scene s;
    int64_t *parts;
    make(&s, distributions[k]);
    assert_ok(FMM_ALLOCATE(&parts, s.lists.u.n_rows, "parts"));
    for (int threads = 1; threads <= 5; threads += 2) {
      fmm_ulist_groups g;
      assert_ok(fmm_ulist_groups_create(&g, &s.tree, &s.lists.u, 1, threads));
      assert_true(g.n_groups > 10);
      memset(parts, 0, (size_t)s.lists.u.n_rows * sizeof *parts);
      assert_int_equal(g.halo_begin[0], 0);
      assert_int_equal(g.halo_row_begin[0], 0);
      for (int32_t group = 0; group < g.n_groups; group++) check_halo(&s, &g, group, parts);
      for (int32_t row = 0; row < s.lists.u.n_rows; row++) assert_int_equal(g.part_offset[row + 1] - g.part_offset[row], parts[row]);
      assert_true(g.part_offset[0] == 0 && g.halo_row_begin[g.n_groups] > 100);
      fmm_ulist_groups_free(&g);
    }
    FMM_FREE(&parts);
    release(&s);
  }
}

static void memory_that_fails_is_reported_and_leaks_nothing(void **state) {
  scene s;
  fmm_ulist_groups g;
  make(&s, "ellipsoid");
  const size_t before = fmm_memory_now();
  assert_allocations_may_fail(fmm_ulist_groups_create(&g, &s.tree, &s.lists.u, 1, 2), 8);
  assert_true(fmm_memory_now() - before >= fmm_ulist_groups_bytes(&g));
  fmm_ulist_groups_free(&g);
  release(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(each_leaf_behind_a_group_has_one_place_in_its_halo), cmocka_unit_test(memory_that_fails_is_reported_and_leaks_nothing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
