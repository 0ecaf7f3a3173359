/* Work of the U list in the forms of the GPU, which sums onto tiles of a leaf's targets (kernels/pair/pair_tiles.h): lanes without a target take as long as others, and
 * each lane's loop over a source costs something beside its pairs.
 *   one way (kernels/pair/pair_cuda.cu):             pairs: of every source of a row with every seat of its tiles; entries: tiles
 *   both directions (kernels/pair/pair_both_cuda.cu): a pair of leaves is summed by that of the two whose seats it fills better; a leaf with itself (and a box that is
 *                                    no row's leaf, which lists of targets that are the sources have not) one way, guarded. A pair is one for both points. entries: chunks of a tile's sources; bytes: also values written and read for
 *                                    every source and tile. A leaf that is the whole tree: its tiles take one another so, and themselves one way (runtime/gpu/gpu_direct.cu)
 * A block takes a tile, so that the tiles that end last keep single multiprocessors busy while others have none: `longest` is the work of the longest, in both directions of the longest piece of
 * a tile (runtime/gpu/gpu_both.cu). On an H200 (a sweep of 128 trees of 20,000
 * to 1,500,000 points; half of them single, a third held out) times are then foretold within 4 % (median; nine of ten within 14 %; 18 since targets of both directions lie in shared memory), without it within 9 and 19 %, and by pairs and entries alone within 12 and 24 %. */
#include <math.h>

#include "kernels/pair/pair_both.h"
#include "kernels/pair/pair_tiles.h"
#include "runtime/counts.h"
#include "runtime/team_loop.h"

enum { GRAIN = 1024 /* rows at once */, TENTHS = 10, HALVES = 2 };
/* In tenths: a pair of both directions has 11 operations on doubles, one way and guarded 12; with derivatives, in single, 19 and 16. */
static int a_guarded_pair(int gradient) { return gradient ? 8 : 11; }

/* Tiles of a leaf, and of trees where both directions are counted what its mates ask for. Zero of boxes that have no targets or are no leaf of a row. */
typedef struct shape { int64_t tiles; int32_t lanes_log2, per_lane; double seats /* of all tiles */, targets, sources; } shape;

/* Sums of whole numbers, so that the order in which pieces are added does not matter. */
typedef struct level_sums { double pairs, longest, longest_chunk /* the longest tiles' chunks */, tiles, chunks, parts, bytes; } level_sums;

typedef struct counting {
  const fmm_tree *tree;
  const fmm_rows *u;
  shape *shapes; /* by box; both directions only */
  int cap, most, gradient;
  double source_bytes, target_bytes;
  level_sums level[FMM_MAX_LEVELS];
} counting;

static int most_a_lane(const fmm_pair_info *pair, int gradient, int n_columns) {
  const int values = pair->outputs * (gradient ? 4 : 1), together = n_columns == 1 ? 1 : FMM_TILE_COLUMNS(values);
  return FMM_TILE_TARGETS_A_LANE(values * together, 1);
}

static int64_t targets_of(const fmm_tree *t, int32_t box) { return t->target_end[box] - t->target_begin[box]; }
static int64_t sources_of(const fmm_tree *t, int32_t box) { return t->source_end[box] - t->source_begin[box]; }

static shape shape_of(const counting *c, int64_t targets) {
  shape s = {0};
  int lanes_log2 = 0, per_lane = 0;
  if (targets > 0) fmm_pair_shape_tiles(targets, c->cap, c->most, &s.tiles, &lanes_log2, &per_lane);
  return s.lanes_log2 = lanes_log2, s.per_lane = per_lane, s;
}

static double seats_of(const shape *s, int64_t tiles, int beside) { return (double)fmm_pair_seats(tiles, s->lanes_log2, s->per_lane, beside); }

static void join(counting *c, const level_sums piece[FMM_MAX_LEVELS]) {
  fmm_join_begin();
  for (int l = 0; l < FMM_MAX_LEVELS; l++) {
    level_sums *all = &c->level[l];
    all->pairs += piece[l].pairs, all->tiles += piece[l].tiles, all->chunks += piece[l].chunks, all->parts += piece[l].parts, all->bytes += piece[l].bytes;
    all->longest = fmax(all->longest, piece[l].longest), all->longest_chunk = fmax(all->longest_chunk, piece[l].longest_chunk);
  }
  fmm_join_end();
}

/* Rows [begin, end) of many. */
typedef void count_rows(counting *c, int64_t begin, int64_t end);

typedef struct shared_rows { counting *c; count_rows *count; } shared_rows;

static void count_piece(void *context, int64_t begin, int64_t end) {
  const shared_rows *s = context;
  s->count(s->c, begin, end);
}

/* Shared by the team, where there is one. */
static void for_all_rows(counting *c, count_rows *count) { fmm_team_loop(c->u->n_rows, GRAIN, count_piece, &(shared_rows){c, count}, fmm_team_size()); }

/* As on the CPU (ulist_cost.c): the leaf's own points, once. */
static double bytes_of(const counting *c, int32_t box) { return (double)targets_of(c->tree, box) * c->target_bytes + (double)sources_of(c->tree, box) * c->source_bytes; }

static void count_one_way(counting *c, int64_t begin, int64_t end) {
  level_sums piece[FMM_MAX_LEVELS] = {{0}};
  for (int64_t r = begin; r < end; r++) {
    const int32_t box = c->u->row[r];
    const shape s = shape_of(c, targets_of(c->tree, box));
    level_sums *at = &piece[c->tree->level[box]];
    int64_t sources = 0;
    for (int64_t e = c->u->offset[r]; e < c->u->offset[r + 1]; e++) sources += sources_of(c->tree, c->u->entry[e]);
    at->pairs += (double)sources * seats_of(&s, s.tiles, FMM_BESIDE_PAIRS), at->tiles += (double)s.tiles, at->bytes += bytes_of(c, box);
    if (s.tiles) at->longest = fmax(at->longest, (double)sources * seats_of(&s, 1, FMM_BESIDE_PAIRS));
  }
  join(c, piece);
}

static void shape_rows(counting *c, int64_t begin, int64_t end) {
  for (int64_t r = begin; r < end; r++) {
    const int32_t box = c->u->row[r];
    shape s = shape_of(c, targets_of(c->tree, box));
    s.seats = seats_of(&s, s.tiles, FMM_BESIDE_BOTH), s.targets = (double)targets_of(c->tree, box), s.sources = (double)sources_of(c->tree, box);
    c->shapes[box] = s;
  }
}

/* Which part of the pair of two leaves the first sums: all, nothing, or half of such pairs, in halves. */
static int taken(const shape *a, const shape *b) {
  const double mine = a->seats * b->targets, its = b->seats * a->targets;
  return (mine <= its) + (mine < its); /* a branch would be guessed wrong half of the time */
}

/* What a source costs a tile whose pairs are guarded, one way. */
static double guarded_seats(const shape *s, int gradient) { return (double)((int64_t)1 << s->lanes_log2) * (a_guarded_pair(gradient) * s->per_lane + FMM_BESIDE_PAIRS); }

/* A leaf of so many points that is the whole tree. */
static void count_circle(level_sums *at, const shape *s, int64_t points, int gradient) {
  const double mates = (double)fmm_pair_direct_mates(points, s->tiles), each = (double)points / (double)s->tiles, all = (double)s->tiles;
  const double of_a_tile = HALVES * each * (mates * seats_of(s, 1, FMM_BESIDE_BOTH) + (all - 2 * mates) * guarded_seats(s, gradient));
  at->pairs += all * of_a_tile, at->longest = fmax(at->longest, of_a_tile);
  at->chunks += all * ceil(mates / (double)fmm_pair_direct_mates_a_chunk(points, s->tiles)), at->parts += HALVES * mates * (double)points;
}

/* Written and read, with derivatives four values. */
static double bytes_of_parts(int gradient, double parts) { return (gradient ? 4 : 1) * 2 * sizeof(double) * parts / HALVES; }

static int is_circle(const counting *c, const shape *s, int32_t box) {
  return c->u->n_rows == 1 && c->u->n_entries == 1 && c->u->entry[0] == box && fmm_pair_direct_mates(targets_of(c->tree, box), s->tiles) > 0;
}

static void count_both(counting *c, int64_t begin, int64_t end) {
  level_sums piece[FMM_MAX_LEVELS] = {{0}};
  for (int64_t r = begin; r < end; r++) {
    const int32_t box = c->u->row[r];
    const shape s = c->shapes[box];
    level_sums *at = &piece[c->tree->level[box]];
    double shared = 0, alone = 0; /* sources, in halves */
    at->bytes += bytes_of(c, box);
    if (!s.tiles) continue;
    if (is_circle(c, &s, box)) {
      count_circle(at, &s, targets_of(c->tree, box), c->gradient);
      continue;
    }
    for (int64_t e = c->u->offset[r]; e < c->u->offset[r + 1]; e++) {
      const int32_t other = c->u->entry[e];
      const shape *its = &c->shapes[other];
      if (other == box || !its->tiles) alone += HALVES * (double)sources_of(c->tree, other);
      else shared += taken(&s, its) * its->sources;
    }
    const double of_a_tile = shared * seats_of(&s, 1, FMM_BESIDE_BOTH) + alone * guarded_seats(&s, c->gradient);
    const double chunks = ceil((shared + alone) / HALVES / FMM_BOTH_CHUNK);
    at->pairs += (double)s.tiles * of_a_tile, at->longest = fmax(at->longest, of_a_tile), at->longest_chunk = fmax(at->longest_chunk, chunks > 0 ? of_a_tile / chunks : 0);
    at->chunks += (double)s.tiles * chunks, at->parts += (double)s.tiles * shared;
  }
  join(c, piece);
}

/* Tiles of many chunks are cut into pieces. */
static void cut_longest(counting *c) {
  double chunks = 0;
  for (int l = 0; l < FMM_MAX_LEVELS; l++) chunks += c->level[l].chunks;
  for (int l = 0; l < FMM_MAX_LEVELS; l++) c->level[l].longest = fmin(c->level[l].longest, c->level[l].longest_chunk * fmax(1, floor(chunks / FMM_BOTH_PIECES)));
}

/* Tenths to pairs, or what they are parts of; the longest of all tiles stays on its level. */
static void set_pairs(const counting *c, double unit, double pair_flops, fmm_work level[FMM_MAX_LEVELS]) {
  int longest = 0;
  for (int l = 0; l < FMM_MAX_LEVELS; l++) {
    level[l].pairs = c->level[l].pairs / unit, level[l].flops = level[l].pairs * pair_flops, level[l].bytes = c->level[l].bytes;
    if (c->level[l].longest > c->level[longest].longest) longest = l;
  }
  level[longest].longest = c->level[longest].longest / unit;
}

static counting counting_of(const fmm_tree *tree, const fmm_lists *lists, const fmm_count_case *what) {
  return (counting){.tree = tree, .u = &lists->u, .cap = fmm_pair_tile_cap(what->all_targets ? what->all_targets : tree->targets.n), .most = most_a_lane(what->pair, what->gradient, what->n_columns), .gradient = what->gradient,
                    .source_bytes = fmm_source_bytes(what), .target_bytes = fmm_target_bytes(what)};
}

int fmm_ulist_both_on_gpu(const fmm_tree *tree, const fmm_count_case *what, int single) {
  const counting c = {.cap = fmm_pair_tile_cap(tree->targets.n), .most = most_a_lane(what->pair, what->gradient, what->n_columns)};
  if (!tree->same_points || !fmm_pair_both_on_gpu(what->pair, what->gradient, what->n_columns, what->third_order, single)) return 0;
  return tree->n_leaves >= 2 || fmm_pair_direct_mates(tree->targets.n, shape_of(&c, tree->targets.n).tiles) > 0;
}

fmm_status fmm_ulist_gpu_cost(const fmm_tree *tree, const fmm_lists *lists, const fmm_count_case *what, fmm_work level[FMM_MAX_LEVELS]) {
  const double flops = fmm_pair_flops(what->pair, what->gradient, what->n_columns);
  counting c = counting_of(tree, lists, what);
  for_all_rows(&c, count_one_way);
  set_pairs(&c, TENTHS, flops, level);
  for (int l = 0; l < FMM_MAX_LEVELS; l++) level[l].entries = c.level[l].tiles;
  return FMM_OK;
}

fmm_status fmm_ulist_gpu_both_cost(const fmm_tree *tree, const fmm_lists *lists, const fmm_count_case *what, fmm_work level[FMM_MAX_LEVELS]) {
  const double flops = fmm_pair_flops(what->pair, what->gradient, what->n_columns);
  counting c = counting_of(tree, lists, what);
  if (!fmm_ulist_both_on_gpu(tree, what, 1)) return FMM_OK;
  FMM_TRY(FMM_ALLOCATE_ZERO(&c.shapes, tree->n_boxes, "tiles of leaves"));
  for_all_rows(&c, shape_rows);
  for_all_rows(&c, count_both);
  if (tree->n_leaves > 1) cut_longest(&c); /* a leaf that is the whole tree has its own tables */
  set_pairs(&c, TENTHS * HALVES, flops, level);
  for (int l = 0; l < FMM_MAX_LEVELS; l++) level[l].entries = c.level[l].chunks, level[l].bytes += bytes_of_parts(what->gradient, c.level[l].parts);
  FMM_FREE(&c.shapes);
  return FMM_OK;
}

double fmm_ulist_gpu_own_pairs(const fmm_tree *tree, const fmm_count_case *what) {
  const counting c = {.cap = fmm_pair_tile_cap(what->all_targets ? what->all_targets : tree->targets.n), .most = most_a_lane(what->pair, what->gradient, what->n_columns)};
  double own = 0;
  for (int32_t i = 0; i < tree->n_leaves; i++) {
    const int32_t box = tree->leaf[i];
    const shape s = shape_of(&c, targets_of(tree, box));
    own += (double)s.tiles * (double)sources_of(tree, box) * guarded_seats(&s, what->gradient);
  }
  return own / TENTHS;
}

fmm_work fmm_ulist_gpu_direct(const fmm_pair_info *pair, int gradient, int n_columns, int64_t n_sources, int64_t n_targets) {
  const counting c = {.cap = fmm_pair_tile_cap(n_targets), .most = most_a_lane(pair, gradient, n_columns)};
  const shape s = shape_of(&c, n_targets);
  fmm_work w = {.entries = (double)s.tiles};
  if (!s.tiles) return w;
  w.pairs = (double)n_sources * seats_of(&s, s.tiles, FMM_BESIDE_PAIRS) / TENTHS, w.longest = w.pairs / (double)s.tiles;
  w.flops = w.pairs * fmm_pair_flops(pair, gradient, n_columns);
  return w;
}

fmm_work fmm_ulist_gpu_direct_both(const fmm_pair_info *pair, int gradient, int64_t points) {
  const counting c = {.cap = fmm_pair_tile_cap(points), .most = most_a_lane(pair, gradient, 1)};
  const shape s = shape_of(&c, points);
  level_sums all = {0};
  if (!fmm_pair_direct_mates(points, s.tiles)) return (fmm_work){0};
  count_circle(&all, &s, points, gradient);
  const double pairs = all.pairs / (TENTHS * HALVES);
  return (fmm_work){.pairs = pairs, .longest = all.longest / (TENTHS * HALVES), .flops = pairs * fmm_pair_flops(pair, gradient, 1), .entries = all.chunks, .bytes = bytes_of_parts(gradient, all.parts)};
}
