/* Slabs of V's rows and the lanes that boxes have in groups (vlist_slabs.h): whatever the limits, each box that is needed has one lane, and parents have
 * the same sums in whatever lanes they stand and whatever is beside them. */
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/simd.h"
#include "kernels/vlist/vlist_kernels.h"
#include "runtime/generate.h"

typedef struct scene {
  fmm_tree tree;
  fmm_lists lists;
} scene;

/* Half of the targets are where the sources are not. */
static void make(scene *s, const char *distribution, int other_targets) {
  enum { N = 4000 };
  static double sources[N][3], targets[N][3];
  const fmm_tree_options options = {.leaf_size = 8, .root_scale = 1.1};
  assert_ok(fmm_generate_points(distribution, N, 3, sources[0], 1));
  assert_ok(fmm_generate_points("uniform", N, 4, targets[0], 1));
  for (int i = 0; i < N; i++)
    for (int a = 0; a < 3; a++) targets[i][a] = i % 2 ? sources[i][a] : 0.5 * targets[i][a];
  assert_ok(fmm_tree_build(&s->tree, N, sources[0], NULL, other_targets ? N : 0, other_targets ? targets[0] : NULL, &options, 1));
  assert_ok(fmm_lists_build(&s->lists, &s->tree, 8, FMM_LISTS_TO_SUM, 1));
  assert_true(s->lists.v.n_rows > 100);
}

static void release(scene *s) {
  fmm_lists_free(&s->lists);
  fmm_tree_free(&s->tree);
}

/* The place names exactly the parent's children that have points, in consecutive lanes; notes those lanes as taken. */
static void check_place(const fmm_tree *tree, int32_t parent, const fmm_vlist_place *place, const int64_t *begin, const int64_t *end, int64_t n_groups, uint8_t *taken) {
  int lane = place->first;
  unsigned octants = 0;
  assert_in_range(place->group, 0, n_groups - 1);
  for (int32_t c = tree->first_child[parent]; c < tree->first_child[parent] + tree->n_children[parent]; c++) {
    if (end[c] == begin[c]) continue;
    assert_int_equal(place->lane[tree->octant[c]], lane);
    assert_true(lane < FMM_VLIST_LANES);
    assert_int_equal(taken[place->group] >> lane & 1, 0);
    taken[place->group] |= (uint8_t)(1 << lane++);
    octants |= 1u << tree->octant[c];
  }
  assert_true(octants > 0);
  assert_int_equal(place->children, octants);
  for (int o = 0; o < 8; o++) {
    assert_true((place->lane[o] == FMM_VLIST_NONE) == !(octants >> o & 1));
    if (place->octant[o] != FMM_VLIST_NONE) assert_int_equal(place->lane[place->octant[o]], o);
    else assert_true(o < place->first || o >= lane);
  }
}

static void check_sources(const scene *s, const fmm_vlist_slabs *slabs, const fmm_vlist_slab *slab, int32_t *parent_of, uint8_t *taken) {
  const fmm_rows *v = &s->lists.v;
  const int64_t n = slab->source_end - slab->source_begin, groups = slab->source_group_end - slab->source_group_begin;
  const int32_t *box = slabs->source_box + slab->source_group_begin * FMM_VLIST_LANES;
  for (int64_t i = 0; i < n; i++) parent_of[i] = -1;
  memset(taken, 0, (size_t)groups);
  for (int64_t row = slab->row_begin; row < slab->row_end; row++) {
    const fmm_vlist_entry *entry = slabs->entry + fmm_vlist_row_begin(v->offset, row);
    const int64_t first = v->offset[row], after = v->offset[row + 1];
    for (int64_t e = first; e < after; e++) {
      const int64_t i = fmm_vlist_source_of(entry[e - first]);
      assert_in_range(i, 0, n - 1);
      assert_int_equal(fmm_vlist_direction_of(entry[e - first]), v->direction[e]);
      if (parent_of[i] < 0) check_place(&s->tree, v->entry[e], &slabs->source_place[slab->source_begin + i], s->tree.source_begin, s->tree.source_end, groups, taken);
      else assert_int_equal(parent_of[i], v->entry[e]);
      parent_of[i] = v->entry[e];
    }
    if ((after - first) % 2) assert_int_equal(entry[after - first], fmm_vlist_entry_of(fmm_vlist_source_of(entry[after - first - 1]), FMM_VLIST_NO_DIRECTION));
    assert_true(fmm_vlist_row_begin(v->offset, row) + (after - first + 1) / 2 * 2 <= fmm_vlist_row_begin(v->offset, row + 1));
  }
  for (int64_t i = 0; i < n; i++) {
    const fmm_vlist_place *place = &slabs->source_place[slab->source_begin + i];
    assert_true(parent_of[i] >= 0);
    for (int64_t k = 0; k < i; k++) assert_int_not_equal(parent_of[k], parent_of[i]); /* a source has one place */
    for (int32_t c = s->tree.first_child[parent_of[i]]; c < s->tree.first_child[parent_of[i]] + s->tree.n_children[parent_of[i]]; c++)
      if (place->lane[s->tree.octant[c]] != FMM_VLIST_NONE) assert_int_equal(box[place->group * FMM_VLIST_LANES + place->lane[s->tree.octant[c]]], c);
  }
  for (int64_t i = 0; i < groups * FMM_VLIST_LANES; i++)
    if (!(taken[i / FMM_VLIST_LANES] >> i % FMM_VLIST_LANES & 1)) assert_int_equal(box[i], -1);
}

/* Rows that begin a group come first among its rows: what products rely on when they clear the lanes behind. */
static void check_targets(const scene *s, const fmm_vlist_slabs *slabs, const fmm_vlist_slab *slab, uint8_t *taken) {
  const int64_t groups = slab->target_group_end - slab->target_group_begin;
  memset(taken, 0, (size_t)groups);
  for (int64_t row = slab->row_begin; row < slab->row_end; row++) {
    const fmm_vlist_place *place = &slabs->target_place[row];
    const int64_t group = slab->target_group_begin + place->group;
    assert_true((place->first == 0) == (taken[place->group] == 0));
    check_place(&s->tree, s->lists.v.row[row], place, s->tree.target_begin, s->tree.target_end, groups, taken);
    assert_in_range(row, slabs->target_rows[group].first, slabs->target_rows[group].last);
    if (place->first == 0) assert_int_equal(slabs->target_rows[group].first, row);
  }
}

/* Groups are no more than the limits allow, of slabs of more than a row. Returns the groups of all slabs, sources' and targets'. */
static int64_t check_slabs(const scene *s, const fmm_vlist_limits *limits) {
  const fmm_rows *v = &s->lists.v;
  fmm_vlist_slabs slabs;
  int32_t *parent_of;
  uint8_t *taken;
  assert_ok(fmm_vlist_slabs_create(&slabs, &s->tree, v, limits));
  assert_ok(FMM_ALLOCATE(&parent_of, slabs.most_sources, "parents"));
  assert_ok(FMM_ALLOCATE(&taken, slabs.most_source_groups + slabs.most_target_groups, "lanes"));
  int64_t row = 0, groups = 0;
  for (int64_t k = 0; k < slabs.n; k++) {
    const fmm_vlist_slab *slab = &slabs.slab[k];
    const int64_t sources = slab->source_group_end - slab->source_group_begin, targets = slab->target_group_end - slab->target_group_begin;
    assert_int_equal(slab->row_begin, row);
    assert_true(slab->row_end > row);
    if (slab->row_end > row + 1) assert_true(sources + targets <= limits->most_groups && slab->source_end - slab->source_begin <= limits->most_sources);
    if (limits->one_level) assert_int_equal(s->tree.level[v->row[row]], s->tree.level[v->row[slab->row_end - 1]]);
    assert_true(slab->source_end - slab->source_begin <= slabs.most_sources && sources <= slabs.most_source_groups && targets <= slabs.most_target_groups);
    check_sources(s, &slabs, slab, parent_of, taken);
    check_targets(s, &slabs, slab, taken);
    row = slab->row_end, groups += sources + targets;
  }
  assert_int_equal(row, v->n_rows);
  FMM_FREE(&parent_of);
  FMM_FREE(&taken);
  fmm_vlist_slabs_free(&slabs);
  return groups;
}

static const fmm_vlist_limits unlimited = {.most_groups = 1 << 20, .most_sources = 1 << 20};

static void every_child_that_is_needed_has_one_lane_of_its_parents_group(void **state) {
  static const fmm_vlist_limits limits[] = {{.most_groups = 100, .most_sources = 1 << 20},
                                            {.most_groups = 1 << 20, .most_sources = 50},
                                            {.most_groups = 1, .most_sources = 1},
                                            {.most_groups = 1 << 20, .most_sources = 1 << 20, .one_level = 1}};
  static const char *const distributions[] = {"uniform", "ellipsoid", "plummer"};
  for (int k = 0; k < 6; k++) {
    scene s;
    make(&s, distributions[k % 3], k / 3);
    check_slabs(&s, &unlimited);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) check_slabs(&s, &limits[i]);
    release(&s);
  }
}

/* Parents of a surface have some 4.5 children: side by side these fill at least four lanes of five. */
static void groups_of_a_surface_fill_four_lanes_of_five(void **state) {
  scene s;
  make(&s, "sphere", 0);
  const int64_t groups = check_slabs(&s, &unlimited);
  int64_t boxes = 0, parents = 0;
  uint8_t *source;
  assert_ok(FMM_ALLOCATE_ZERO(&source, s.tree.n_boxes, "marks"));
  for (int64_t e = 0; e < s.lists.v.n_entries; e++) source[s.lists.v.entry[e]] = 1;
  for (int32_t r = 0; r < s.lists.v.n_rows; r++) boxes += s.tree.n_children[s.lists.v.row[r]], parents++;
  for (int32_t b = 0; b < s.tree.n_boxes; b++)
    if (source[b]) boxes += s.tree.n_children[b], parents++;
  assert_true(boxes < 5 * parents);
  if (!(5 * boxes >= 4 * 8 * groups)) fail_msg("%ld boxes in %ld groups", (long)boxes, (long)groups);
  FMM_FREE(&source);
  release(&s);
}

static void memory_that_fails_is_reported_and_leaks_nothing(void **state) {
  scene s;
  fmm_vlist_slabs slabs;
  make(&s, "ellipsoid", 0);
  const size_t before = fmm_memory_now();
  assert_allocations_may_fail(fmm_vlist_slabs_create(&slabs, &s.tree, &s.lists.v, &unlimited), 4);
  assert_true(fmm_memory_now() - before >= fmm_vlist_slabs_bytes(&slabs));
  fmm_vlist_slabs_free(&slabs);
  assert_int_equal(fmm_memory_now(), before);
  release(&s);
}

/* ---- places in the vector code ---- */

enum { PADDED = FMM_VLIST_PADDED };
typedef union reals { double d[2 * PADDED * FMM_DIRECTIONS]; float f[2 * PADDED * FMM_DIRECTIONS]; } reals;

static void set(reals *r, int single, int i, double x) {
  if (single) r->f[i] = (float)x;
  else r->d[i] = x;
}
static double get(const reals *r, int single, int i) { return single ? (double)r->f[i] : r->d[i]; }

static fmm_vlist_place place_of(unsigned octants, int first) {
  fmm_vlist_place place = {.children = (uint8_t)octants, .first = (uint8_t)first};
  memset(place.octant, FMM_VLIST_NONE, sizeof place.octant);
  for (int o = 0; o < 8; o++) {
    place.lane[o] = octants >> o & 1 ? (uint8_t)first++ : FMM_VLIST_NONE;
    if (place.lane[o] != FMM_VLIST_NONE) place.octant[place.lane[o]] = (uint8_t)o;
  }
  return place;
}

/* Expansion and product of one parent with one source, at this place and as one of eight children, absent ones zero. Other lanes hold NaN. */
static void compare_place(const fmm_vlist_kernels *k, int single, unsigned octants, int first) {
  static _Alignas(64) reals spectrum[2], expanded[2], matrices, out[2];
  const fmm_vlist_place place[2] = {place_of(octants, first), place_of(0xff, 0)};
  const int64_t offset[2] = {0, 1};
  const fmm_vlist_entry entry[4] = {fmm_vlist_entry_of(0, 5), fmm_vlist_entry_of(0, FMM_VLIST_NO_DIRECTION)};
  for (int i = 0; i < 16; i++) set(&spectrum[0], single, i, NAN), set(&out[0], single, i, 77);
  for (int part = 0; part < 16; part += 8)
    for (int o = 0; o < 8; o++) {
      const int there = octants >> o & 1;
      set(&spectrum[1], single, part + o, there ? cos(part + o) : 0);
      if (there) set(&spectrum[0], single, part + place[0].lane[o], cos(part + o));
    }
  for (int i = 0; i < 2 * PADDED * FMM_DIRECTIONS; i++) set(&matrices, single, i, i / (2 * k->padded) == FMM_VLIST_NO_DIRECTION ? 0 : sin(i));
  for (int w = 0; w < 2; w++) {
    k->expand(1, 1, &place[w], &spectrum[w], &expanded[w]);
    const fmm_vlist_product product = {.row_end = 1, .offset = offset, .entry = entry, .matrices = &matrices, .expanded = &expanded[w],
                                       .n_components = 1, .n_columns = 1, .target = &place[w], .out = &out[w]};
    k->product(&product);
  }
  assert_memory_equal(&expanded[0], &expanded[1], 2 * (size_t)k->padded * k->real_bytes);
  for (int part = 0; part < 16; part += 8)
    for (int lane = 0; lane < 8; lane++) {
      double expected = first == 0 ? 0 : 77; /* clears the lanes behind, or leaves others as they are */
      for (int o = 0; o < 8; o++)
        if (place[0].lane[o] == lane) expected = get(&out[1], single, part + o);
      if (get(&out[0], single, part + lane) != expected)
        fail_msg("%s, octants %x from lane %d: lane %d is %g, not %g", single ? "single" : "double", octants, first, lane, get(&out[0], single, part + lane), expected);
    }
}

static void sums_do_not_depend_on_lanes_or_on_what_is_beside_them(void **state) {
  for (int simd = FMM_SIMD_PLAIN; simd < FMM_N_SIMD; simd++) {
    fmm_simd_cap((fmm_simd)simd);
    if ((int)fmm_simd_level() != simd) break;
    for (int single = 0; single < 2; single++)
      for (unsigned octants = 1; octants < 256; octants++)
        for (int first = 0; first <= 8 - __builtin_popcount(octants); first++) compare_place(fmm_vlist_kernels_find(single), single, octants, first);
  }
  fmm_simd_cap(FMM_N_SIMD - 1);
}

/* So many bytes right before a page that nobody may read. */
static void *before_a_guard(size_t bytes, void **mapped, size_t *length) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE), used = (bytes + page - 1) / page * page;
  char *all = mmap(NULL, *length = used + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_true((void *)all != MAP_FAILED);
  assert_int_equal(mprotect(all + used, page, PROT_NONE), 0);
  *mapped = all;
  return all + used - bytes;
}

enum { ROWS = 12, SOURCES = 5 };

/* Rows of 1 to ROWS entries, each of them a row of its own besides: the same sums, and nothing read behind what a slab's entries have. */
static void compare_rows(const fmm_vlist_kernels *k, int single, int last) {
  static _Alignas(64) reals spectrum, matrices, expanded[SOURCES], whole[ROWS], part;
  int64_t offset[ROWS + 1] = {0};
  size_t length;
  void *mapped;
  const size_t value = 2 * (size_t)k->padded * k->real_bytes, out = 16 * k->real_bytes;
  fmm_vlist_place place[ROWS];
  for (int i = 0; i < 2 * k->padded * FMM_DIRECTIONS; i++) set(&matrices, single, i, i / (2 * k->padded) == FMM_VLIST_NO_DIRECTION ? 0 : sin(i));
  for (int i = 0; i < SOURCES; i++) {
    const fmm_vlist_place at = place_of(0xff, 0);
    for (int j = 0; j < 16; j++) set(&spectrum, single, j, cos(16 * i + j));
    k->expand(1, 1, &at, &spectrum, (char *)expanded + (size_t)i * value);
  }
  for (int r = 0; r < ROWS; r++) offset[r + 1] = offset[r] + (r == ROWS - 1 ? last : r + 1), place[r] = place_of(0xff, 0), place[r].group = r;
  const int64_t n = fmm_vlist_row_begin(offset, ROWS) + FMM_VLIST_AHEAD;
  fmm_vlist_entry *entry = before_a_guard((size_t)n * sizeof *entry, &mapped, &length);
  for (int r = 0; r < ROWS; r++) {
    fmm_vlist_entry *row = entry + fmm_vlist_row_begin(offset, r);
    const int64_t in_row = offset[r + 1] - offset[r];
    for (int64_t e = 0; e < in_row; e++) row[e] = fmm_vlist_entry_of((r + 3 * e) % SOURCES, (int)((7 * e + r) % FMM_VLIST_NO_DIRECTION));
    if (in_row % 2) row[in_row] = fmm_vlist_entry_of(fmm_vlist_source_of(row[in_row - 1]), FMM_VLIST_NO_DIRECTION);
  }
  fmm_vlist_product product = {.row_end = ROWS, .offset = offset, .entry = entry, .matrices = &matrices, .expanded = expanded, .n_components = 1, .n_columns = 1, .target = place, .out = whole};
  k->product(&product);
  for (int r = 0; r < ROWS; r++) {
    double sum[16] = {0};
    for (int64_t e = 0; e < offset[r + 1] - offset[r]; e++) {
      const int64_t one[2] = {0, 1};
      const fmm_vlist_entry alone[2 + FMM_VLIST_AHEAD] = {entry[fmm_vlist_row_begin(offset, r) + e], fmm_vlist_entry_of(0, FMM_VLIST_NO_DIRECTION)};
      product = (fmm_vlist_product){.row_end = 1, .offset = one, .entry = alone, .matrices = &matrices, .expanded = expanded, .n_components = 1, .n_columns = 1, .target = place, .out = &part};
      k->product(&product);
      for (int j = 0; j < 16; j++) sum[j] += get(&part, single, j);
    }
    reals *of_row = (reals *)(void *)((char *)whole + (size_t)r * out);
    for (int j = 0; j < 16; j++)
      if (!(fabs(get(of_row, single, j) - sum[j]) < (single ? 2e-4 : 1e-12))) fail_msg("%s, row of %d entries: value %d is %g, not %g", single ? "single" : "double", (int)(offset[r + 1] - offset[r]), j, get(of_row, single, j), sum[j]);
  }
  munmap(mapped, length);
}

/* What makes an odd number of entries even adds nothing. */
static void check_no_direction(const fmm_vlist_kernels *k, int single) {
  static _Alignas(64) reals matrices;
  double full[343][2];
  for (int i = 0; i < 343; i++) {
    const int d[3] = {i / 49 - 3, i / 7 % 7 - 3, i % 7 - 3}, is_near = abs(d[0]) <= 1 && abs(d[1]) <= 1 && abs(d[2]) <= 1;
    full[i][0] = is_near ? 0 : cos(i), full[i][1] = is_near ? 0 : sin(i);
  }
  k->matrices(full, &matrices);
  for (int i = 0; i < 2 * k->padded; i++) assert_true(get(&matrices, single, FMM_VLIST_NO_DIRECTION * 2 * k->padded + i) == 0);
}

static void rows_sum_what_their_entries_do_and_read_no_further(void **state) {
  for (int simd = FMM_SIMD_PLAIN; simd < FMM_N_SIMD; simd++) {
    fmm_simd_cap((fmm_simd)simd);
    if ((int)fmm_simd_level() != simd) break;
    for (int single = 0; single < 2; single++) {
      for (int last = 1; last <= ROWS; last++) compare_rows(fmm_vlist_kernels_find(single), single, last);
      check_no_direction(fmm_vlist_kernels_find(single), single);
    }
  }
  fmm_simd_cap(FMM_N_SIMD - 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_child_that_is_needed_has_one_lane_of_its_parents_group),
                                     cmocka_unit_test(groups_of_a_surface_fill_four_lanes_of_five),
                                     cmocka_unit_test(memory_that_fails_is_reported_and_leaks_nothing),
                                     cmocka_unit_test(sums_do_not_depend_on_lanes_or_on_what_is_beside_them),
                                     cmocka_unit_test(rows_sum_what_their_entries_do_and_read_no_further)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
