/* Cuts V's rows into slabs and gives their boxes lanes of groups (vlist_slabs.h). Rows are taken in turn, twice: once to count, once to write.
 *
 * Groups are filled by best fit: children go where the fewest lanes that suffice are free, else into a new group. Of groups with equally many free
 * lanes only the latest is kept in mind, so that a slab's groups are about in the order of its parents, and a packer is a few numbers, which can be tried
 * on a copy. (All of them kept: 1 to 3 % fewer groups on an ellipsoid.) */
#include "kernels/vlist/vlist_slabs.h"

typedef struct packer {
  int32_t n_groups, open[FMM_VLIST_LANES]; /* open: the latest group with so many free lanes; -1: none */
} packer;

static packer empty_packer(void) {
  packer p = {0};
  for (int i = 0; i < FMM_VLIST_LANES; i++) p.open[i] = -1;
  return p;
}

/* Lanes for so many children, one to eight: the first of them, and the group. */
static int pack(packer *p, int count, int32_t *group) {
  int left = count;
  while (left < FMM_VLIST_LANES && p->open[left] < 0) left++;
  *group = left < FMM_VLIST_LANES ? p->open[left] : p->n_groups++;
  if (left < FMM_VLIST_LANES) p->open[left] = -1;
  if (left > count) p->open[left - count] = *group;
  return FMM_VLIST_LANES - left;
}

static fmm_vlist_place place_children(packer *p, unsigned children) {
  fmm_vlist_place place = {.children = (uint8_t)children};
  place.first = (uint8_t)pack(p, __builtin_popcount(children), &place.group);
  for (int i = 0; i < 8; i++) place.lane[i] = place.octant[i] = FMM_VLIST_NONE;
  for (int o = 0, lane = place.first; o < 8; o++)
    if (children >> o & 1) place.octant[lane] = (uint8_t)o, place.lane[o] = (uint8_t)lane++;
  return place;
}

static unsigned source_octants(const fmm_tree *tree, int32_t parent) { return fmm_children_with_points(tree, parent, tree->source_begin, tree->source_end); }
static unsigned target_octants(const fmm_tree *tree, int32_t parent) { return fmm_children_with_points(tree, parent, tree->target_begin, tree->target_end); }

typedef struct cut {
  const fmm_tree *tree;
  const fmm_rows *v;
  const fmm_vlist_limits *limits;
  int64_t *mark;           /* of a box: its latest place among the sources of all slabs; -1: none yet */
  packer sources, targets; /* of the slab at hand */
} cut;

/* Whether the row may join the slab, tried on copies of its packers. Sources that it names and the slab has not are those marked before the slab's first. */
static int fits(const cut *c, const fmm_vlist_slab *slab, int64_t row) {
  const fmm_rows *v = c->v;
  packer sources = c->sources, targets = c->targets;
  int32_t group;
  int64_t n = slab->source_end - slab->source_begin;
  if (c->limits->one_level && c->tree->level[v->row[row]] != c->tree->level[v->row[slab->row_begin]]) return 0;
  const int64_t most = v->offset[row + 1] - v->offset[row]; /* new sources, each of a group of its own */
  if (sources.n_groups + targets.n_groups + most + 1 <= c->limits->most_groups && n + most <= c->limits->most_sources) return 1;
  pack(&targets, __builtin_popcount(target_octants(c->tree, v->row[row])), &group);
  for (int64_t e = v->offset[row]; e < v->offset[row + 1]; e++)
    if (c->mark[v->entry[e]] < slab->source_begin) {
      pack(&sources, __builtin_popcount(source_octants(c->tree, v->entry[e])), &group);
      n++;
    }
  return sources.n_groups + targets.n_groups <= c->limits->most_groups && n <= c->limits->most_sources;
}

static void write_source(fmm_vlist_slabs *s, const fmm_tree *tree, const fmm_vlist_slab *slab, int32_t parent, const fmm_vlist_place *place) {
  int32_t *box = s->source_box + (slab->source_group_begin + place->group) * FMM_VLIST_LANES;
  s->source_place[slab->source_end] = *place;
  if (place->first == 0)
    for (int lane = 0; lane < FMM_VLIST_LANES; lane++) box[lane] = -1;
  for (int32_t c = tree->first_child[parent]; c < tree->first_child[parent] + tree->n_children[parent]; c++)
    if (place->lane[tree->octant[c]] != FMM_VLIST_NONE) box[place->lane[tree->octant[c]]] = c;
}

static void write_target(fmm_vlist_slabs *s, const fmm_vlist_slab *slab, int64_t row, const fmm_vlist_place *place) {
  const int64_t group = slab->target_group_begin + place->group;
  s->target_place[row] = *place;
  if (place->first == 0) s->target_rows[group].first = (int32_t)row;
  s->target_rows[group].last = (int32_t)row;
}

/* An odd number of entries is made even. */
static void end_entries(fmm_vlist_entry *begin, int64_t n) {
  if (n % 2) begin[n] = fmm_vlist_entry_of(fmm_vlist_source_of(begin[n - 1]), FMM_VLIST_NO_DIRECTION);
}

/* The row and its new sources join the slab; entries' places are known then. */
static void add_row(cut *c, fmm_vlist_slabs *s, fmm_vlist_slab *slab, int64_t row, int write) {
  const fmm_rows *v = c->v;
  const int64_t first = v->offset[row], n = v->offset[row + 1] - first;
  fmm_vlist_entry *entry = write ? s->entry + fmm_vlist_row_begin(v->offset, row) : NULL;
  fmm_vlist_place place = place_children(&c->targets, target_octants(c->tree, v->row[row]));
  if (write) write_target(s, slab, row, &place);
  for (int64_t e = 0; e < n; e++) {
    const int32_t q = v->entry[first + e];
    if (c->mark[q] < slab->source_begin) {
      place = place_children(&c->sources, source_octants(c->tree, q));
      if (write) write_source(s, c->tree, slab, q, &place);
      c->mark[q] = slab->source_end++;
    }
    if (write) entry[e] = fmm_vlist_entry_of(c->mark[q] - slab->source_begin, v->direction[first + e]);
  }
  if (write) end_entries(entry, n);
  slab->row_end = row + 1;
  slab->source_group_end = slab->source_group_begin + c->sources.n_groups;
  slab->target_group_end = slab->target_group_begin + c->targets.n_groups;
}

static void note_most(int64_t *most, int64_t n) {
  if (n > *most) *most = n;
}

/* All slabs, one after the other; the last one's ends are the numbers of all. */
static fmm_vlist_slab cut_all(cut *c, fmm_vlist_slabs *s, int write) {
  fmm_vlist_slab slab = {0};
  for (int64_t i = 0; i < c->tree->n_boxes; i++) c->mark[i] = -1;
  s->n = 0;
  while (slab.row_end < c->v->n_rows) {
    slab.row_begin = slab.row_end, slab.source_begin = slab.source_end;
    slab.source_group_begin = slab.source_group_end, slab.target_group_begin = slab.target_group_end;
    c->sources = c->targets = empty_packer();
    do add_row(c, s, &slab, slab.row_end, write);
    while (slab.row_end < c->v->n_rows && fits(c, &slab, slab.row_end));
    note_most(&s->most_sources, slab.source_end - slab.source_begin);
    note_most(&s->most_source_groups, slab.source_group_end - slab.source_group_begin);
    note_most(&s->most_target_groups, slab.target_group_end - slab.target_group_begin);
    if (write) s->slab[s->n] = slab;
    s->n++;
  }
  return slab;
}

fmm_status fmm_vlist_slabs_create(fmm_vlist_slabs *slabs, const fmm_tree *tree, const fmm_rows *v, const fmm_vlist_limits *limits) {
  const int64_t most = FMM_VLIST_MOST_SOURCES;
  const fmm_vlist_limits own = {limits->most_groups, limits->most_sources < most ? limits->most_sources : most, limits->one_level};
  cut c = {.tree = tree, .v = v, .limits = &own};
  fmm_status status = FMM_OK;
  *slabs = (fmm_vlist_slabs){0};
  FMM_CHECK(FMM_ALLOCATE(&c.mark, tree->n_boxes, "V marks"));
  const fmm_vlist_slab all = cut_all(&c, slabs, 0);
  FMM_CHECK(FMM_ALLOCATE(&slabs->slab, slabs->n, "V slabs"));
  FMM_CHECK(FMM_ALLOCATE_ZERO(&slabs->entry, fmm_vlist_row_begin(v->offset, v->n_rows) + FMM_VLIST_AHEAD, "V entries"));
  FMM_CHECK(FMM_ALLOCATE(&slabs->source_place, all.source_end, "V sources' places"));
  FMM_CHECK(FMM_ALLOCATE(&slabs->target_place, v->n_rows, "V targets' places"));
  FMM_CHECK(FMM_ALLOCATE(&slabs->source_box, all.source_group_end * FMM_VLIST_LANES, "V source groups"));
  FMM_CHECK(FMM_ALLOCATE(&slabs->target_rows, all.target_group_end, "V target groups"));
  cut_all(&c, slabs, 1);
done:
  FMM_FREE(&c.mark);
  if (status != FMM_OK) fmm_vlist_slabs_free(slabs);
  return status;
}

void fmm_vlist_slabs_free(fmm_vlist_slabs *slabs) {
  FMM_FREE(&slabs->slab);
  FMM_FREE(&slabs->entry);
  FMM_FREE(&slabs->source_place);
  FMM_FREE(&slabs->target_place);
  FMM_FREE(&slabs->source_box);
  FMM_FREE(&slabs->target_rows);
}

size_t fmm_vlist_slabs_bytes(const fmm_vlist_slabs *slabs) {
  return fmm_memory_bytes(slabs->slab) + fmm_memory_bytes(slabs->entry) + fmm_memory_bytes(slabs->source_place) + fmm_memory_bytes(slabs->target_place) +
         fmm_memory_bytes(slabs->source_box) + fmm_memory_bytes(slabs->target_rows);
}
