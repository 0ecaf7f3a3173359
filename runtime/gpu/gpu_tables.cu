/* Host tables of a device plan, made once from tree and lists: tiles and merged source ranges of the pair sums, columns of the products,
 * factors of the levels. U's in both directions are made in gpu_both.cu, V's in gpu_vlist.cu. Nothing here touches the device. Jobs beside one another (runtime/jobs.h), whose long loops are shared by the same team. */
#include <stdlib.h>

#include "runtime/gpu/gpu_cuda.h"
#include "runtime/gpu/team_loop_cuda.h"

namespace {
enum { MOST_RANGE = 1 << 30, GRAIN = 64 /* rows of a piece */ };

/* What the rows of one pair sum are. */
struct rows_of_sum {
  int64_t n_rows;
  const int32_t *row;    /* target boxes */
  const int64_t *offset; /* into entry; NULL: each row's only entry is its own box */
  const int32_t *entry;
  int surface_targets, surface_sources, slot_is_row;
};

int64_t targets_of(const fmm_gpu_plan *p, const fmm_tree *tree, const rows_of_sum *q, int64_t r) {
  return q->surface_targets ? p->n_surface : tree->target_end[q->row[r]] - tree->target_begin[q->row[r]];
}

/* The sources of a row: the leaf itself comes first, guarded; neighbours in memory are merged. Written where there are arrays; returns how many. */
int64_t row_ranges(const fmm_tree *tree, const rows_of_sum *q, int64_t r, fmm_cuda_range *range, int32_t *box) {
  const int64_t begin = q->offset ? q->offset[r] : 0, end = q->offset ? q->offset[r + 1] : 1;
  const int32_t self = q->row[r];
  fmm_cuda_range last = {};
  int64_t n = 0;
  for (int pass = 0; pass < 2; pass++)
    for (int64_t i = begin; i < end; i++) {
      const int32_t e = q->offset ? q->entry[i] : self;
      const int64_t from = tree->source_begin[e], count = tree->source_end[e] - from;
      const int guard = e == self;
      if (guard != (pass == 0)) continue;
      if (q->surface_sources) {
        if (box) box[n] = e;
        n++;
        continue;
      }
      if (count <= 0) continue;
      if (n && !guard && !last.guard && last.begin + last.count == from && last.count + count < MOST_RANGE) last.count += (int32_t)count;
      else last = fmm_cuda_range{from, (int32_t)count, guard}, n++;
      if (range) range[n - 1] = last;
    }
  return n;
}

/* Whether a W row's finest boxes are too small for targets in float: rounded by 2^-24 h of the leaf at distances of about a box's half-width. */
int is_tight(const fmm_gpu_plan *p, const fmm_tree *tree, const rows_of_sum *q, int64_t r) {
  int finest = 0;
  for (int64_t i = q->offset[r]; i < q->offset[r + 1]; i++) finest = tree->level[q->entry[i]] > finest ? tree->level[q->entry[i]] : finest;
  return ldexp(1, finest - tree->level[q->row[r]] - 24) > 0.25 * p->tolerance;
}

int cap_of(const fmm_gpu_plan *p, const fmm_tree *tree, const rows_of_sum *q) {
  int64_t total = 0;
  for (int64_t r = 0; r < q->n_rows; r++) total += targets_of(p, tree, q, r);
  return fmm_pair_tile_cap(total);
}

/* W's rows are very unequal (a large leaf beside many small boxes), so a tile's boxes are dealt to several where they are many. */
int is_unequal(const rows_of_sum *q) { return q->offset && q->surface_sources; }

/* Targets times boxes of a tile that would be its equal share if there were plenty. */
int64_t fair_share(const fmm_gpu_plan *p, const fmm_tree *tree, const rows_of_sum *q) {
  int64_t total = 0;
  for (int64_t r = 0; is_unequal(q) && r < q->n_rows; r++) total += targets_of(p, tree, q, r) * (q->offset[r + 1] - q->offset[r]);
  return total / FMM_W_SHARES > FMM_W_LEAST_SHARE ? total / FMM_W_SHARES : FMM_W_LEAST_SHARE;
}

/* Into how many parts each of a row's tiles of so many targets is cut; each has a box at least. */
int64_t parts_of(const fmm_cuda_sums *s, const rows_of_sum *q, int64_t r, int64_t targets, int64_t share) {
  int64_t boxes = is_unequal(q) ? q->offset[r + 1] - q->offset[r] : 1, parts = (targets * boxes + share - 1) / share;
  if (s->lattice) parts = (boxes + FMM_LATTICE_BOXES - 1) / FMM_LATTICE_BOXES;
  return parts < 1 ? 1 : parts < boxes ? parts : boxes;
}

struct weighed { int64_t weight; int32_t tile; };

int64_t work_of(const fmm_cuda_sums *s, const fmm_cuda_tile *t) {
  int64_t sources = t->range_count;
  if (s->range)
    for (int32_t i = 0; i < t->range_count; i++) sources += s->range[t->range_begin + i].count;
  return t->target_count * sources;
}

/* The tiles by descending work, as the device begins them in this order: a long one at the end would run alone. */
fmm_status order_tiles(fmm_gpu_plan *p, fmm_cuda_sums *s) {
  weighed *w = NULL;
  fmm_status status = FMM_OK;
  FMM_CHECK(FMM_ALLOCATE(&w, s->n_tiles, "work of GPU tiles"));
  FMM_CHECK(DESK_TAKE(&p->desk, &s->order, s->n_tiles, "order of GPU tiles"));
  for (int64_t i = 0; i < s->n_tiles; i++) w[i] = weighed{work_of(s, &s->tile[i]), (int32_t)i};
  qsort(w, (size_t)s->n_tiles, sizeof *w, [](const void *a, const void *b) {
    const weighed *x = (const weighed *)a, *y = (const weighed *)b;
    return x->weight != y->weight ? (x->weight < y->weight) - (x->weight > y->weight) : (x->tile > y->tile) - (x->tile < y->tile);
  });
  for (int64_t i = 0; i < s->n_tiles; i++) s->order[i] = w[i].tile;
done:
  FMM_FREE(&w);
  return status;
}

/* The lanes of sums from surfaces, whose places are 32 bits each. */
fmm_status list_units(const fmm_gpu_plan *p, fmm_cuda_sums *s) {
  FMM_TRY(FMM_ALLOCATE(&s->unit_end, s->n_tiles, "GPU lanes of tiles"));
  int64_t most = 0;
  for (int64_t i = 0; i < s->n_tiles; i++) {
    most = s->tile[i].target_count > most ? s->tile[i].target_count : most;
    s->n_units += (s->tile[i].target_count + FMM_LATTICE_TARGETS - 1) / FMM_LATTICE_TARGETS;
    s->unit_end[i] = (int32_t)s->n_units;
  }
  static_assert(FMM_LATTICE_BOXES < 4 && FMM_LATTICE_TARGETS < 4, "fmm_cuda_unit has two bits for each");
  if (s->n_units > INT32_MAX || most >= 1 << 28 || s->n_ranges > INT32_MAX || p->n_targets > UINT32_MAX || s->n_partial >= UINT32_MAX)
    return FMM_FAIL(FMM_ERR_DEVICE, "%lld targets and %lld boxes beside them are too many for one GPU; choose schedule cpu or auto, or fewer points", (long long)p->n_targets, (long long)s->n_ranges);
  return FMM_OK;
}

/* Tiles of a row. */
void cut_row(const fmm_cuda_sums *s, int64_t count, int cap, int most, int64_t *tiles, int *lanes_log2, int *per_lane) {
  if (s->lattice) *tiles = count > 0, *lanes_log2 = *per_lane = 0;
  else fmm_pair_shape_tiles(count, cap, most, tiles, lanes_log2, per_lane);
}

/* Sums onto surfaces: a warp a tile where there are many, but four to those that would outlast the others' share. */
fmm_status deal_lattice(fmm_gpu_plan *p, fmm_cuda_sums *s, fmm_cuda_sum which) {
  int64_t total = 0, most = s->n_tiles < FMM_LATTICE_MANY_ROWS ? 0 : INT64_MAX;
  if (which == FMM_SUM_X) {
    for (int64_t i = 0; i < s->n_tiles; i++) total += work_of(s, &s->tile[i]);
    most = total / FMM_X_SHARES; /* some two rounds of an H200's warps */
  }
  for (int64_t i = 0; i < s->n_tiles; i++) {
    const int shared = work_of(s, &s->tile[i]) > most;
    s->tile[i].lanes_log2 = shared ? 7 : 5;
    s->shared_rows += shared;
  }
  return which == FMM_SUM_X ? order_tiles(p, s) : FMM_OK;
}

/* How a pair sum is cut, for all of its rows. */
struct cut { int cap, most; int64_t share; };
/* Into what a row is cut: tiles of so many lanes and targets a lane, each in parts. */
struct row_cut { int64_t count, tiles, parts; int lanes_log2, per_lane; };

row_cut cut_of(const fmm_gpu_plan *p, const fmm_cuda_sums *s, const fmm_tree *tree, const rows_of_sum *q, const cut *c, int64_t r) {
  row_cut k = {targets_of(p, tree, q, r), 0, 0, 0, 0};
  cut_row(s, k.count, c->cap, c->most, &k.tiles, &k.lanes_log2, &k.per_lane);
  k.parts = parts_of(s, q, r, k.tiles ? (k.count + k.tiles - 1) / k.tiles : 0, c->share);
  return k;
}

/* Ranges and values in parts before a row; n_rows + 1. */
struct rows_before { int64_t *range, *value; };

/* Offsets of all rows, and the sum's numbers. */
void count_rows(const fmm_gpu_plan *p, fmm_cuda_sums *s, const fmm_tree *tree, const rows_of_sum *q, const cut *c, rows_before *before) {
  int64_t *const all[] = {s->row_tile, s->row_joint, before->range, before->value};
  fmm_cuda_for_each(q->n_rows, GRAIN, [=](int64_t r) {
    const row_cut k = cut_of(p, s, tree, q, c, r);
    const int in_parts = k.parts > 1;
    s->row_tile[r + 1] = k.tiles * k.parts, s->row_joint[r + 1] = in_parts ? k.tiles : 0;
    before->range[r + 1] = row_ranges(tree, q, r, NULL, NULL), before->value[r + 1] = in_parts ? k.parts * k.count * p->values * p->columns : 0;
  });
  for (int64_t *a : all) {
    a[0] = 0;
    for (int64_t r = 0; r < q->n_rows; r++) a[r + 1] += a[r];
  }
  s->n_tiles = s->row_tile[q->n_rows], s->n_joints = s->row_joint[q->n_rows], s->n_ranges = before->range[q->n_rows], s->n_partial = before->value[q->n_rows];
}

void fill_row(const fmm_gpu_plan *p, fmm_cuda_sums *s, fmm_cuda_sum which, const fmm_tree *tree, const rows_of_sum *q, const cut *c, const rows_before *before, int64_t r) {
  const row_cut k = cut_of(p, s, tree, q, c, r);
  const int32_t box = q->row[r];
  const int64_t first = q->surface_targets ? 0 : tree->target_begin[box], begin = before->range[r], ranges = before->range[r + 1] - begin;
  const int tight = s->single && which == FMM_SUM_W && is_tight(p, tree, q, r);
  int64_t tile = s->row_tile[r], joint = s->row_joint[r], value = before->value[r];
  row_ranges(tree, q, r, s->range ? s->range + begin : NULL, s->box ? s->box + begin : NULL);
  for (int64_t i = 0; i < k.tiles; i++) {
    const int64_t from = k.count * i / k.tiles, targets = k.count * (i + 1) / k.tiles - from;
    if (k.parts > 1) s->joint[joint++] = fmm_cuda_joint{first + from, value, (int32_t)targets, (int32_t)k.parts};
    for (int64_t part = 0; part < k.parts; part++, value += k.parts > 1 ? targets * p->values * p->columns : 0) {
      const int64_t range = ranges * part / k.parts, stop = ranges * (part + 1) / k.parts;
      s->tile[tile++] = fmm_cuda_tile{begin + range, first + from, k.parts > 1 ? value : -1, (int32_t)(stop - range), (int32_t)targets, box, q->slot_is_row ? (int32_t)r : box,
                                      k.lanes_log2, k.per_lane, tight};
    }
  }
  if (tight) __atomic_add_fetch(&s->n_precise, s->row_tile[r + 1] - s->row_tile[r], __ATOMIC_RELAXED);
}

fmm_status build_sum(fmm_gpu_plan *p, fmm_cuda_sum which, const fmm_tree *tree, const rows_of_sum *q) {
  fmm_cuda_sums *s = &p->sums[which];
  const cut c = {cap_of(p, tree, q), fmm_cuda_pair_most(p, which), fair_share(p, tree, q)};
  rows_before before = {};
  fmm_status status = FMM_OK;
  s->n_rows = q->n_rows;
  s->lattice = fmm_cuda_lattice_serves(p, which);
  FMM_CHECK(FMM_ALLOCATE(&s->row_tile, q->n_rows + 1, "GPU tile offsets"));
  FMM_CHECK(FMM_ALLOCATE(&s->row_joint, q->n_rows + 1, "GPU tile offsets"));
  FMM_CHECK(FMM_ALLOCATE(&before.range, q->n_rows + 1, "GPU tile offsets"));
  FMM_CHECK(FMM_ALLOCATE(&before.value, q->n_rows + 1, "GPU tile offsets"));
  count_rows(p, s, tree, q, &c, &before);
  FMM_CHECK(DESK_TAKE(&p->desk, &s->tile, s->n_tiles, "GPU tiles"));
  if (s->n_joints) FMM_CHECK(DESK_TAKE(&p->desk, &s->joint, s->n_joints, "GPU tiles that are cut"));
  if (q->surface_sources) FMM_CHECK(DESK_TAKE(&p->desk, &s->box, s->n_ranges, "GPU source boxes"));
  else FMM_CHECK(DESK_TAKE(&p->desk, &s->range, s->n_ranges, "GPU source ranges"));
  fmm_cuda_for_each(q->n_rows, GRAIN, [&](int64_t r) { fill_row(p, s, which, tree, q, &c, &before, r); });
  if (s->lattice && q->surface_sources) status = which == FMM_SUM_L2P && fmm_cuda_down_leaves_serve(p) ? FMM_OK : list_units(p, s);
  else if (s->lattice) status = deal_lattice(p, s, which);
  else if (is_unequal(q)) status = order_tiles(p, s);
done:
  FMM_FREE(&before.range);
  FMM_FREE(&before.value);
  return status;
}

rows_of_sum from_rows(const fmm_rows *rows) {
  rows_of_sum q = {};
  q.n_rows = rows->n_rows, q.row = rows->row, q.offset = rows->offset, q.entry = rows->entry;
  return q;
}

int is_leaf(const fmm_tree *tree, int32_t b) { return tree->first_child[b] < 0; }
int has_sources(const fmm_tree *tree, int32_t b) { return tree->source_end[b] > tree->source_begin[b]; }
int has_targets(const fmm_tree *tree, int32_t b) { return tree->target_end[b] > tree->target_begin[b]; }

void close_batch(fmm_cuda_batch *batches, int *n, int64_t begin, int64_t end, int level, int merge) {
  if (begin == end) return;
  if (merge && *n) batches[*n - 1].end = end;
  else batches[(*n)++] = fmm_cuda_batch{begin, end, level};
}

/* Boxes by falling number of sources, those of more than there are keys first: a thread block of sixteen leaves waits for the largest (kernels/up/up_moments_cuda.cu). Equal ones keep their order. */
fmm_status sort_by_sources(const fmm_tree *tree, int32_t *box, int64_t n) {
  enum { KEYS = 4096 };
  int64_t *at = NULL;
  int32_t *sorted = NULL;
  const auto key_of = [tree](int32_t b) { const int64_t count = tree->source_end[b] - tree->source_begin[b]; return KEYS - 1 - (int)(count < KEYS ? count : KEYS - 1); };
  fmm_status status = FMM_OK;
  FMM_CHECK(FMM_ALLOCATE(&at, KEYS + 1, "GPU leaves by size"));
  FMM_CHECK(FMM_ALLOCATE(&sorted, n, "GPU leaves by size"));
  memset(at, 0, (KEYS + 1) * sizeof *at);
  for (int64_t i = 0; i < n; i++) at[key_of(box[i]) + 1]++;
  for (int k = 0; k < KEYS; k++) at[k + 1] += at[k];
  for (int64_t i = 0; i < n; i++) sorted[at[key_of(box[i])]++] = box[i];
  memcpy(box, sorted, (size_t)n * sizeof *box);
done:
  FMM_FREE(&at);
  FMM_FREE(&sorted);
  return status;
}

/* Leaves of the two kinds: one batch when all levels share their operators, else one a level. */
int64_t leaf_columns(const fmm_gpu_plan *p, const fmm_tree *tree, int targets, int64_t at, int32_t *box, fmm_cuda_batch *batches, int *n) {
  for (int level = 2; level < tree->n_levels; level++) {
    int64_t begin = at;
    for (int32_t b = tree->level_begin[level]; b < tree->level_begin[level + 1]; b++)
      if (is_leaf(tree, b) && (targets ? has_targets(tree, b) : has_sources(tree, b))) box[at++] = b;
    close_batch(batches, n, begin, at, level, p->n_operator_levels == 1);
  }
  return at;
}

/* Boxes with children, from the deepest level up or the other way. child: 8 for each of them. */
int64_t parent_columns(const fmm_tree *tree, int targets, int64_t at, int32_t *box, int32_t *child, fmm_cuda_batch *batches, int *n) {
  int (*const counts)(const fmm_tree *, int32_t) = targets ? has_targets : has_sources;
  for (int i = 2; i <= tree->n_levels - 2; i++) {
    const int level = targets ? i : tree->n_levels - i;
    int64_t begin = at;
    for (int32_t b = tree->level_begin[level]; b < tree->level_begin[level + 1]; b++) {
      if (is_leaf(tree, b) || !counts(tree, b)) continue;
      for (int o = 0; o < 8; o++) child[o] = -1;
      for (int k = 0; k < tree->n_children[b]; k++) {
        int32_t c = tree->first_child[b] + k;
        if (counts(tree, c)) child[tree->octant[c]] = c;
      }
      child += 8;
      box[at++] = b;
    }
    close_batch(batches, n, begin, at, level, 0);
  }
  return at;
}

int64_t down_columns(fmm_gpu_plan *p, const fmm_tree *tree, int64_t at, fmm_cuda_tables *t) {
  int64_t first = at;
  for (int level = 2; level < tree->n_levels; level++) {
    int64_t begin = at;
    for (int octant = 0; octant < 8; octant++) {
      for (int32_t b = tree->level_begin[level]; b < tree->level_begin[level + 1]; b++) {
        if (tree->octant[b] != octant || !has_targets(tree, b)) continue;
        if ((at - first) % FMM_GPU_TILE_BOXES == 0) t->tile_octant[(at - first) / FMM_GPU_TILE_BOXES] = octant;
        t->parent[at - first] = tree->parent[b];
        t->column_box[at++] = b;
      }
      while ((at - first) % FMM_GPU_TILE_BOXES) t->parent[at - first] = -1, t->column_box[at++] = -1;
    }
    close_batch(p->down_batch, &p->n_down_batches, begin, at, level, 0);
  }
  return at;
}

fmm_status build_columns(fmm_gpu_plan *p, fmm_cuda_tables *t, const fmm_tree *tree) {
  int64_t most_down = tree->n_boxes + (int64_t)8 * FMM_GPU_TILE_BOXES * tree->n_levels;
  FMM_TRY(DESK_TAKE(&p->desk, &t->column_box, 3 * (int64_t)tree->n_boxes + most_down, "GPU product columns"));
  FMM_TRY(DESK_TAKE(&p->desk, &t->child, (p->block ? 16 : 8) * (int64_t)tree->n_boxes, "GPU children"));
  FMM_TRY(DESK_TAKE(&p->desk, &t->parent, most_down, "GPU parents"));
  FMM_TRY(DESK_TAKE(&p->desk, &t->tile_octant, most_down / FMM_GPU_TILE_BOXES + 1, "GPU tile octants"));
  int64_t at = leaf_columns(p, tree, 0, 0, t->column_box, p->leaf_batch, &p->n_leaf_batches);
  p->n_leaf_columns = at;
  for (int i = 0; fmm_cuda_may_take_moments(p) && i < p->n_leaf_batches; i++) FMM_TRY(sort_by_sources(tree, t->column_box + p->leaf_batch[i].begin, p->leaf_batch[i].end - p->leaf_batch[i].begin));
  at = parent_columns(tree, 0, at, t->column_box, t->child, p->up_batch, &p->n_up_batches);
  p->n_up_columns = at - p->n_leaf_columns;
  int64_t down_begin = at;
  at = p->block ? parent_columns(tree, 1, at, t->column_box, t->child + 8 * p->n_up_columns, p->down_batch, &p->n_down_batches) : down_columns(p, tree, at, t);
  p->n_down_columns = at - down_begin;
  p->n_columns = leaf_columns(p, tree, 1, at, t->column_box, p->target_leaf_batch, &p->n_target_leaf_batches);
  return FMM_OK;
}

/* The regrouping of natural values: what a transform over an orbit's eight mirror images puts at psi is block chi's, which of component k is the one that is odd in psi there. */
fmm_status build_orbits(fmm_gpu_plan *p, fmm_cuda_tables *t, const fmm_operators *o) {
  const fmm_parity_map *map = &o->parity;
  FMM_TRY(DESK_TAKE(&p->desk, &t->orbit_point, FMM_MIRRORS * p->n_orbits * p->equivalents, "GPU orbits"));
  FMM_TRY(DESK_TAKE(&p->desk, &t->orbit_place, FMM_MIRRORS * p->n_orbits * p->equivalents, "GPU places of orbits"));
  FMM_TRY(DESK_TAKE(&p->desk, &t->pad, FMM_MIRRORS * p->block - p->n, "GPU places between blocks"));
  int16_t *pad = t->pad;
  for (int chi = 0; chi < FMM_MIRRORS; chi++)
    for (int k = map->begin[chi + 1] - map->begin[chi]; k < p->block; k++) *pad++ = (int16_t)(chi * p->block + k);
  for (int i = 0; i < p->n_orbits * p->equivalents; i++)
    for (int chi = 0; chi < FMM_MIRRORS; chi++) {
      t->orbit_point[i * FMM_MIRRORS + chi] = (int16_t)(i / p->n_orbits * p->n_surface + o->shape.orbit[i % p->n_orbits * FMM_MIRRORS + chi]);
      const int slot = map->slot[i * FMM_MIRRORS + chi], psi = fmm_component_parity(p->info->parity, chi, i / p->n_orbits);
      t->orbit_place[i * FMM_MIRRORS + psi] = (int16_t)(slot < 0 ? -1 : chi * p->block + slot - map->begin[chi]);
    }
  return FMM_OK;
}

fmm_status build_boxes(fmm_gpu_plan *p, fmm_cuda_tables *t, const fmm_tree *tree, const fmm_operators *o) {
  FMM_TRY(DESK_TAKE(&p->desk, &t->half, tree->n_boxes, "half-widths"));
  FMM_TRY(DESK_TAKE(&p->desk, &t->degree_in, tree->n_boxes, "level factors"));
  FMM_TRY(DESK_TAKE(&p->desk, &t->degree_out, tree->n_boxes, "level factors"));
  FMM_TRY(DESK_TAKE(&p->desk, &t->degree_parent, tree->n_boxes, "level factors"));
  for (int level = 0; level < tree->n_levels; level++) {
    const double half = fmm_half_width(tree, level), out = o ? fmm_operators_scale(o, half) : 1, parent = o ? fmm_operators_scale(o, 2 * half) : 1;
    for (int32_t b = tree->level_begin[level]; b < tree->level_begin[level + 1]; b++) t->half[b] = half, t->degree_in[b] = 1 / out, t->degree_out[b] = out, t->degree_parent[b] = parent;
  }
  int P = p->order, next = 0;
  FMM_TRY(DESK_TAKE(&p->desk, &t->grid_surface, P * P * P, "surface grid"));
  FMM_TRY(DESK_TAKE(&p->desk, &t->twiddle, 2 * p->grid, "twiddle factors"));
  for (int i = 0; i < P * P * P; i++) {
    int x = i / (P * P), y = i / P % P, z = i % P;
    int on = x == 0 || y == 0 || z == 0 || x == P - 1 || y == P - 1 || z == P - 1;
    t->grid_surface[i] = (int16_t)(on ? next++ : -1); /* surface points are numbered x slowest, z fastest (kernels/surface.h) */
  }
  for (int j = 0; j < p->grid; j++) {
    double angle = 2 * 3.14159265358979323846 * j / p->grid;
    t->twiddle[2 * j] = cos(angle);
    t->twiddle[2 * j + 1] = sin(angle);
  }
  return FMM_OK;
}
}

/* In one direction. */
static fmm_status build_u(fmm_gpu_plan *p, const fmm_state *state) {
  rows_of_sum q = from_rows(&state->lists->u);
  p->falls_back = fmm_cuda_both_serves(p);
  return build_sum(p, FMM_SUM_U, state->tree, &q);
}

fmm_status fmm_cuda_tables_fall_back(fmm_gpu_plan *p, const fmm_state *state) {
  fmm_cuda_sums *s = &p->sums[FMM_SUM_U];
  const int single = s->single;
  fmm_cuda_sums_free(&p->desk, s);
  fmm_cuda_sums_free_offsets(s);
  *s = fmm_cuda_sums{};
  s->single = single;
  return build_u(p, state);
}

void fmm_cuda_sums_free(const fmm_cuda_desk *desk, fmm_cuda_sums *s) {
  DESK_DROP(desk, &s->tile);
  DESK_DROP(desk, &s->range);
  DESK_DROP(desk, &s->box);
  DESK_DROP(desk, &s->order);
  DESK_DROP(desk, &s->joint);
  DESK_DROP(desk, &s->chunk);
  DESK_DROP(desk, &s->mate);
}

void fmm_cuda_sums_free_offsets(fmm_cuda_sums *s) {
  FMM_FREE(&s->row_tile);
  FMM_FREE(&s->row_joint);
  FMM_FREE(&s->unit_end);
}

/* The jobs, each with a table of its own; what does not depend on the others. */
static fmm_status boxes_job(void *context) {
  const fmm_cuda_setup *j = (const fmm_cuda_setup *)context;
  FMM_TRY(build_boxes(j->plan, j->tables, j->state->tree, j->state->operators));
  if (j->plan->block) FMM_TRY(build_orbits(j->plan, j->tables, j->state->operators));
  if (fmm_cuda_lattice_serves(j->plan, FMM_SUM_P2M)) j->plan->n_runs = fmm_cuda_lattice_runs(j->plan, j->tables->grid_surface, j->tables->run);
  return FMM_OK;
}

static fmm_status v_job(void *context) {
  const fmm_cuda_setup *j = (const fmm_cuda_setup *)context;
  return fmm_cuda_v_build(j->plan, j->tables, j->state->tree, &j->state->lists->v);
}

static fmm_status u_job(void *context) {
  const fmm_cuda_setup *j = (const fmm_cuda_setup *)context;
  fmm_gpu_plan *p = j->plan;
  const fmm_rows *u = &j->state->lists->u;
  const int64_t most = p->most_entries > 0 && p->most_entries < INT32_MAX ? p->most_entries : INT32_MAX;
  if (!fmm_cuda_has(p, FMM_PHASE_ULIST)) return FMM_OK;
  if (fmm_cuda_both_serves(p)) {
    FMM_TRY(fmm_cuda_direct_build(p, j->state->tree, u, most));
    if (!p->sums[FMM_SUM_U].both) FMM_TRY(fmm_cuda_both_build(p, j->state->tree, u, most));
  }
  return p->sums[FMM_SUM_U].both ? FMM_OK : build_u(p, j->state);
}

static fmm_status w_job(void *context) {
  const fmm_cuda_setup *j = (const fmm_cuda_setup *)context;
  rows_of_sum q = from_rows(&j->state->lists->w);
  q.surface_sources = 1;
  return fmm_cuda_has(j->plan, FMM_PHASE_WLIST) ? build_sum(j->plan, FMM_SUM_W, j->state->tree, &q) : FMM_OK;
}

static fmm_status x_job(void *context) {
  const fmm_cuda_setup *j = (const fmm_cuda_setup *)context;
  rows_of_sum q = from_rows(&j->state->lists->x);
  q.surface_targets = 1;
  return fmm_cuda_has(j->plan, FMM_PHASE_XLIST) ? build_sum(j->plan, FMM_SUM_X, j->state->tree, &q) : FMM_OK;
}

/* The columns of the products, and with them P2M and L2P, whose rows are columns. */
static fmm_status columns_job(void *context) {
  const fmm_cuda_setup *j = (const fmm_cuda_setup *)context;
  fmm_gpu_plan *p = j->plan;
  FMM_TRY(build_columns(p, j->tables, j->state->tree));
  if (fmm_cuda_has(p, FMM_PHASE_UP)) {
    rows_of_sum q = {};
    q.n_rows = p->n_leaf_columns, q.row = j->tables->column_box, q.surface_targets = 1, q.slot_is_row = 1;
    FMM_TRY(build_sum(p, FMM_SUM_P2M, j->state->tree, &q));
  }
  if (!fmm_cuda_has(p, FMM_PHASE_DOWN)) return FMM_OK;
  rows_of_sum q = {};
  const int64_t begin = p->n_leaf_columns + p->n_up_columns + p->n_down_columns;
  q.n_rows = p->n_columns - begin, q.row = j->tables->column_box + begin, q.surface_sources = 1;
  return build_sum(p, FMM_SUM_L2P, j->state->tree, &q);
}

void fmm_cuda_tables_jobs(fmm_cuda_setup *context, fmm_job jobs[FMM_CUDA_TABLES_JOBS]) {
  const fmm_job all[FMM_CUDA_TABLES_JOBS] = {{"U's table", u_job, context, 0, 0}, {"columns, P2M's and L2P's tables", columns_job, context, 0, 0}, {"W's table", w_job, context, 0, 0},
                                             {"X's table", x_job, context, 0, 0}, {"V's table", v_job, context, 0, 0}, {"boxes", boxes_job, context, 0, 0}};
  memcpy(jobs, all, sizeof all);
}

void fmm_cuda_tables_free(const fmm_cuda_desk *desk, fmm_cuda_tables *t) {
  DESK_DROP(desk, &t->column_box);
  DESK_DROP(desk, &t->child);
  DESK_DROP(desk, &t->parent);
  DESK_DROP(desk, &t->tile_octant);
  DESK_DROP(desk, &t->orbit_point);
  DESK_DROP(desk, &t->orbit_place);
  DESK_DROP(desk, &t->pad);
  DESK_DROP(desk, &t->slot_child);
  DESK_DROP(desk, &t->row_child);
  DESK_DROP(desk, &t->v_line);
  DESK_DROP(desk, &t->v_row);
  DESK_DROP(desk, &t->half);
  DESK_DROP(desk, &t->degree_in);
  DESK_DROP(desk, &t->degree_out);
  DESK_DROP(desk, &t->degree_parent);
  DESK_DROP(desk, &t->twiddle);
  DESK_DROP(desk, &t->grid_surface);
}
