/* Host tables of U in both directions at once (kernels/pair/pair_both_cuda.cu): which leaf of two sums the pair, where its tiles' sums onto the other go, and the
 * chunks of sources of each tile. A leaf whose points fill its lanes better takes the pair, so that fewer lanes are without a target; of two alike the parity of their rows decides.
 * Each leaf's parts lie one after the other: those of the leaves that sum pairs with it, in the order of its list, a part a tile, and behind them its own from the second piece on:
 * tiles whose sources are many chunks are cut into pieces, tiles of their own for the same targets, since the longest would run on alone. How many chunks a piece has depends on the tree
 * alone, not on the device, and so do the bits. What gets no sums of the tile is all in the first. */
#include <stdlib.h>

#include "runtime/gpu/gpu_cuda.h"
#include "runtime/gpu/team_loop_cuda.h"

namespace {
enum { GRAIN = 64 /* rows of a piece */, LOOKED_AT = 16 /* entries at once */, LONG_ROW = 256 /* entries that are too many to be looked at one after the other */ };

/* A tile's chunks in pieces: the first of `head`, others of `share`, the last of what is left. */
struct cut { int head, share, pieces; };

int piece_of(const cut &c, int chunk) { return chunk < c.head ? 0 : 1 + (chunk - c.head) / c.share; }
int begin_of(const cut &c, int piece) { return piece ? c.head + (piece - 1) * c.share : 0; }

/* Pieces of at most so many chunks, but for those of which some get no sums, which stay together. */
cut cut_of(int chunks, int alone_chunks, int64_t most) {
  cut c = {chunks, 1, 1};
  if (chunks <= most) return c;
  c.pieces = (int)((chunks + most - 1) / most), c.share = (chunks + c.pieces - 1) / c.pieces, c.head = c.share > alone_chunks ? c.share : alone_chunks;
  c.pieces = 1 + (chunks - c.head + c.share - 1) / c.share;
  return c;
}

/* A row's leaf, its tiles' shape and in what they are cut; seats: what a source costs it (fmm_pair_seats); limit: sources of a chunk. */
struct leaf { int64_t first, count, tiles, seats, limit; int lanes_log2, per_lane; int32_t alone, turns; int chunks, alone_chunks /* up to the last that has some without sums */; cut pieces; };

/* What comes before something: chunks that do not begin a piece, pieces, joints and values; and of each shape pieces and mates. */
struct before { int64_t chunks, tiles, joints, values; };
enum { LANES = 6, SHAPES = LANES * (FMM_TILE_MOST + 1), BLOCK = 256 /* rows */ };
struct block { before all; int64_t tiles[SHAPES], mates[SHAPES]; };

struct tables {
  const fmm_tree *tree;
  const fmm_rows *u;
  int most;        /* targets a lane */
  char *memory;    /* of all that follow but tiles and joints */
  leaf *of;        /* row */
  int32_t *row_of; /* box; -1: none */
  int32_t *mate;   /* entry: whose sum it is, ALONE or ITS, or MINE: the entry of its leaf's row that is this row's leaf */
  int32_t *link;   /* entry: its leaf's row, -1: none; of ITS, once rows are counted: the first of its parts */
  int32_t *turn;   /* turns_of */
  int64_t *chunks /* beside each piece's first */, *tiles /* pieces of these */, *joints, *values; /* before a row; n_rows + 1 */
  int64_t *parts;  /* row: that others make */
  int64_t *number; /* row: of its first tile's first piece */
  int64_t *mates;  /* row: how many, later the first */
  block *blocks;   /* of rows: what they have, later what comes before */
  int64_t all_chunks, of_a_piece; /* of all tiles; at most */
};

/* Chunks of a tile, filled evenly; counts only where there are no arrays. */
struct writer {
  fmm_cuda_mate *mate;
  fmm_cuda_chunk *first, *further; /* the first chunks of the tile's pieces, and the others */
  int64_t mates, limit;
  cut pieces;
  int chunks, alone_chunks, filled, held;
};

fmm_cuda_chunk *record_of(const writer *w, int chunk) {
  const int piece = piece_of(w->pieces, chunk);
  return chunk == begin_of(w->pieces, piece) ? w->first + piece : w->further + (chunk - piece - 1);
}

void add_sources(writer *w, int64_t begin, int64_t count, int64_t partial, int32_t row) {
  while (count > 0) {
    if (w->chunks == 0 || w->filled >= w->limit || w->held == FMM_BOTH_MATES) {
      if (w->first) record_of(w, w->chunks)->mate_begin = w->mates;
      w->chunks++, w->filled = w->held = 0;
    }
    if (partial < 0) w->alone_chunks = w->chunks;
    int take = (int)(count < w->limit - w->filled ? count : w->limit - w->filled);
    if (w->mate) {
      fmm_cuda_chunk *c = record_of(w, w->chunks - 1);
      w->mate[w->mates] = fmm_cuda_mate{begin, partial, row, (uint16_t)take, (uint16_t)w->filled};
      c->mates++, c->filled += take, c->alone += partial < 0 ? take : 0;
    }
    w->mates++, w->held++, w->filled += take;
    begin += take, count -= take, partial += partial < 0 ? 0 : take;
  }
}

enum { ITS = -2, ALONE = -1, MINE = 0 /* and above */ };

/* Whether the first row sums the pair of two. */
int takes(const tables *t, int32_t row, int32_t other) {
  const leaf *a = &t->of[row], *b = &t->of[other];
  int64_t mine = a->seats * b->count, its = b->seats * a->count;
  return mine != its ? mine < its : (row < other) == ((row + other) % 2 != 0);
}

/* The entry of a row that is the leaf of another row, or -1. Most rows are short and their links lie together, so that all of some are looked at. */
int64_t find_link(const tables *t, int32_t row, int32_t wanted) {
  if (t->u->offset[row + 1] - t->u->offset[row] > LONG_ROW) return fmm_lists_find(t->u, t->tree, row, t->u->row[wanted]);
  for (int64_t e = t->u->offset[row], end = t->u->offset[row + 1]; e < end; e += LOOKED_AT) {
    const int32_t *link = t->link + e;
    const int n = end - e < LOOKED_AT ? (int)(end - e) : (int)LOOKED_AT;
    int found = -1;
    for (int i = 0; i < n; i++) found = link[i] == wanted ? i : found;
    if (found >= 0) return e + found;
  }
  return -1;
}

/* The pairs of this row's leaf with later ones: either is the other's mate. */
void find_mates(tables *t, int32_t row) {
  for (int64_t e = t->u->offset[row]; e < t->u->offset[row + 1]; e++) {
    const int32_t other = t->link[e];
    const int64_t there = other > row ? find_link(t, other, row) : -1;
    if (there < 0) continue;
    const int mine = takes(t, row, other);
    t->mate[e] = mine ? (int32_t)there : ITS, t->mate[there] = mine ? ITS : (int32_t)e;
  }
}

/* The row's entries that it sums itself, those for it alone, then those of pairs: they come up several times, and which they are is as good as random. */
int32_t *turns_of(const tables *t, int32_t row) { return t->turn + t->u->offset[row] + row; }
void take_turns(tables *t, int32_t row) {
  const int64_t begin = t->u->offset[row], end = t->u->offset[row + 1];
  int32_t *turn = turns_of(t, row), n = 0;
  for (int64_t e = begin; e < end; e++) turn[n] = (int32_t)e, n += t->mate[e] == ALONE; /* no branches; there is room for one more */
  t->of[row].alone = n;
  for (int64_t e = begin; e < end; e++) turn[n] = (int32_t)e, n += t->mate[e] >= MINE;
  t->of[row].turns = n;
}

/* The sources of a row's tile. tile -1: only to count them. */
void add_row(const tables *t, writer *w, int32_t row, int64_t tile) {
  const fmm_tree *tree = t->tree;
  const int32_t *turn = turns_of(t, row);
  for (int32_t i = 0; i < t->of[row].turns; i++) {
    const int32_t e = turn[i], box = t->u->entry[e], other = t->link[e];
    const int64_t count = tree->source_end[box] - tree->source_begin[box];
    const int64_t partial = i < t->of[row].alone ? -1 : tile < 0 ? 0 : t->values[other] + (t->link[t->mate[e]] + tile) * count;
    add_sources(w, tree->source_begin[box], count, partial, other);
  }
}

int64_t limit_of(const tables *t, int32_t row) {
  const int32_t *turn = turns_of(t, row);
  int64_t sources = 0;
  for (int32_t i = 0; i < t->of[row].turns; i++) sources += t->tree->source_end[t->u->entry[turn[i]]] - t->tree->source_begin[t->u->entry[turn[i]]];
  const int64_t chunks = (sources + FMM_BOTH_CHUNK - 1) / FMM_BOTH_CHUNK, limit = chunks ? ((sources + chunks - 1) / chunks + 31) / 32 * 32 : (int64_t)FMM_BOTH_CHUNK;
  return limit < FMM_BOTH_CHUNK ? limit : FMM_BOTH_CHUNK;
}

void shape_row(tables *t, int32_t row, int cap) {
  leaf *l = &t->of[row];
  int32_t box = t->u->row[row];
  l->first = t->tree->target_begin[box], l->count = t->tree->target_end[box] - l->first;
  l->tiles = 0, l->lanes_log2 = l->per_lane = 0;
  fmm_pair_shape_tiles(l->count, cap, t->most, &l->tiles, &l->lanes_log2, &l->per_lane);
  l->seats = fmm_pair_seats(l->tiles, l->lanes_log2, l->per_lane, FMM_BESIDE_BOTH);
}

/* The row's chunks, its mates and what others give to it. Returns the chunks of all its tiles. */
int64_t count_row(tables *t, int32_t row) {
  leaf *l = &t->of[row];
  int64_t parts = 0;
  take_turns(t, row);
  if (l->turns == 0) l->tiles = 0; /* a cluster's leaf all of whose pairs others sum: no tile without sources */
  for (int64_t e = t->u->offset[row]; e < t->u->offset[row + 1]; e++) {
    const int its = t->mate[e] == ITS;
    const int64_t tiles = its ? t->of[t->link[e]].tiles : 0;
    t->link[e] = its ? (int32_t)parts : t->link[e], parts += tiles;
  }
  l->limit = limit_of(t, row);
  writer w = {NULL, NULL, NULL, 0, l->limit, {}, 0, 0, 0, 0};
  t->parts[row] = parts;
  add_row(t, &w, row, -1);
  t->mates[row] = l->tiles * w.mates, l->chunks = w.chunks, l->alone_chunks = w.alone_chunks;
  return l->tiles * l->chunks;
}

/* How many chunks a piece has at most: few enough for the last to end with the others, and pieces of small trees of one. */
int64_t most_of_piece(int64_t all_chunks) { return all_chunks / FMM_BOTH_PIECES > 1 ? all_chunks / FMM_BOTH_PIECES : 1; }

/* Tiles of one shape are one after the other, those with most targets a lane first, and their mates likewise: blocks of one multiprocessor should run the same code, since its cache
 * of instructions does not hold that of several shapes. */
int shape_of(const leaf &l) { return (FMM_TILE_MOST - l.per_lane) * LANES + LANES - 1 - l.lanes_log2; }

/* Cuts the row's tiles: what it has then. */
before cut_row(tables *t, int32_t row) {
  leaf *l = &t->of[row];
  l->pieces = cut_of(l->chunks, l->alone_chunks, t->of_a_piece);
  const int64_t pieces = l->pieces.pieces, parts = t->parts[row] + (l->tiles ? pieces - 1 : 0);
  return before{l->chunks > pieces ? l->tiles * (l->chunks - pieces) : 0, l->tiles * pieces, parts > 0, parts * l->count};
}

void add(before *all, const before &one) { all->chunks += one.chunks, all->tiles += one.tiles, all->joints += one.joints, all->values += one.values; }

int32_t end_of_block(const tables *t, int64_t i) { return (int32_t)((i + 1) * BLOCK < t->u->n_rows ? (i + 1) * BLOCK : t->u->n_rows); }

/* A block's rows, one by one; what comes before them in all, as far as it is the block's. */
void cut_block(tables *t, int64_t i) {
  block b = {};
  for (int32_t r = (int32_t)(i * BLOCK); r < end_of_block(t, i); r++) {
    const before has = cut_row(t, r);
    const int shape = shape_of(t->of[r]);
    t->chunks[r] = b.all.chunks, t->tiles[r] = b.all.tiles, t->joints[r] = b.all.joints, t->values[r] = b.all.values, t->number[r] = b.tiles[shape];
    add(&b.all, has);
    const int64_t mates = t->mates[r];
    t->mates[r] = b.mates[shape];
    b.tiles[shape] += has.tiles, b.mates[shape] += mates;
  }
  t->blocks[i] = b;
}

void place_block(tables *t, int64_t i) {
  const block *b = &t->blocks[i];
  for (int32_t r = (int32_t)(i * BLOCK); r < end_of_block(t, i); r++) {
    const int shape = shape_of(t->of[r]);
    t->chunks[r] += b->all.chunks, t->tiles[r] += b->all.tiles, t->joints[r] += b->all.joints, t->values[r] += b->all.values, t->number[r] += b->tiles[shape], t->mates[r] += b->mates[shape];
  }
}

/* Blocks' own to what comes before each; the last row is followed by all. Returns all mates. */
int64_t add_up_blocks(tables *t, int64_t n) {
  before all = {};
  int64_t tiles = 0, mates = 0;
  for (int64_t i = 0; i < n; i++) {
    const before own = t->blocks[i].all;
    t->blocks[i].all = all;
    add(&all, own);
  }
  for (int k = 0; k < SHAPES; k++)
    for (int64_t i = 0; i < n; i++) {
      const int64_t own_tiles = t->blocks[i].tiles[k], own_mates = t->blocks[i].mates[k];
      t->blocks[i].tiles[k] = tiles, t->blocks[i].mates[k] = mates;
      tiles += own_tiles, mates += own_mates;
    }
  const int64_t rows = t->u->n_rows;
  t->chunks[rows] = all.chunks, t->tiles[rows] = all.tiles, t->joints[rows] = all.joints, t->values[rows] = all.values;
  return mates;
}

int64_t blocks_of(const fmm_rows *u) { return (u->n_rows + BLOCK - 1) / BLOCK; }

/* A piece's first chunk lies where the piece's number says, others behind those of all pieces. */
void fill_row(const tables *t, fmm_cuda_sums *s, int32_t row) {
  const leaf *l = &t->of[row];
  const int n = l->chunks, pieces = l->pieces.pieces;
  writer w = {s->mate, NULL, NULL, t->mates[row], l->limit, l->pieces, 0, 0, 0, 0};
  for (int64_t i = 0; i < l->tiles; i++) {
    const int64_t begin = l->count * i / l->tiles, end = l->count * (i + 1) / l->tiles, further = s->n_tiles + t->chunks[row] + i * (n - pieces);
    w.first = &s->chunk[t->number[row] + i * pieces], w.further = &s->chunk[further], w.chunks = 0;
    for (int c = 0; c < n; c++) {
      const int piece = piece_of(l->pieces, c), goes_on = c + 1 < n && piece_of(l->pieces, c + 1) == piece;
      *record_of(&w, c) = fmm_cuda_chunk{0, l->first + begin, piece ? t->values[row] + (t->parts[row] + piece - 1) * l->count + begin : -1, row, goes_on ? (int32_t)(further + c - piece) : -1,
                                         (int32_t)(end - begin), 0, 0, 0, (uint8_t)l->lanes_log2, (uint8_t)l->per_lane, 0, t->u->row[row]};
    }
    add_row(t, &w, row, i);
  }
  const int64_t parts = l->count ? (t->values[row + 1] - t->values[row]) / l->count : 0;
  if (parts) s->joint[t->joints[row]] = fmm_cuda_joint{l->first, t->values[row], (int32_t)l->count, (int32_t)parts};
}

/* An array in the one piece of memory that all work arrays share: many small ones take the system longer to map than their use. */
template <typename T>
void place(char *memory, size_t *used, T **array, int64_t count) {
  *array = memory ? (T *)(memory + *used) : NULL;
  *used += ((size_t)count * sizeof(T) + FMM_ALIGNMENT - 1) / FMM_ALIGNMENT * FMM_ALIGNMENT;
}

/* Returns the bytes; memory NULL: only these. */
size_t lay_out(tables *t, char *memory) {
  const int64_t rows = t->u->n_rows;
  size_t used = 0;
  place(memory, &used, &t->of, rows);
  place(memory, &used, &t->row_of, t->tree->n_boxes);
  place(memory, &used, &t->mate, t->u->n_entries);
  place(memory, &used, &t->link, t->u->n_entries);
  place(memory, &used, &t->turn, t->u->n_entries + rows);
  place(memory, &used, &t->parts, rows);
  place(memory, &used, &t->number, rows);
  place(memory, &used, &t->mates, rows);
  place(memory, &used, &t->chunks, rows + 1);
  place(memory, &used, &t->values, rows + 1);
  place(memory, &used, &t->blocks, blocks_of(t->u));
  return used;
}

fmm_status allocate(tables *t) {
  const int64_t rows = t->u->n_rows;
  FMM_TRY(FMM_ALLOCATE(&t->memory, lay_out(t, NULL), "pairs of leaves"));
  FMM_TRY(FMM_ALLOCATE(&t->tiles, rows + 1, "GPU tile offsets"));
  FMM_TRY(FMM_ALLOCATE(&t->joints, rows + 1, "GPU tile offsets"));
  lay_out(t, t->memory);
  return FMM_OK;
}

void release(tables *t) {
  FMM_FREE(&t->memory);
  FMM_FREE(&t->tiles);
  FMM_FREE(&t->joints);
}

/* The row's part in its own entries' links. */
void link_row(tables *t, int32_t row, int cap) {
  shape_row(t, row, cap);
  for (int64_t e = t->u->offset[row]; e < t->u->offset[row + 1]; e++) t->link[e] = t->row_of[t->u->entry[e]], t->mate[e] = ALONE;
}

/* Returns all mates. */
int64_t find_pairs(tables *t) {
  const fmm_rows *u = t->u;
  const int64_t blocks = blocks_of(u);
  int cap = fmm_pair_tile_cap(t->tree->targets.n);
  for (int32_t b = 0; b < t->tree->n_boxes; b++) t->row_of[b] = -1;
  for (int32_t r = 0; r < u->n_rows; r++) t->row_of[u->row[r]] = r;
  fmm_cuda_for_each(u->n_rows, GRAIN, [=](int64_t r) { link_row(t, (int32_t)r, cap); });
  fmm_cuda_for_each(u->n_rows, GRAIN, [=](int64_t r) { find_mates(t, (int32_t)r); });
  fmm_cuda_for_each(blocks * ((int)BLOCK / (int)GRAIN), 1, [=](int64_t piece) {
    int64_t chunks = 0;
    for (int64_t r = piece * GRAIN; r < (piece + 1) * GRAIN && r < u->n_rows; r++) chunks += count_row(t, (int32_t)r);
    __atomic_add_fetch(&t->all_chunks, chunks, __ATOMIC_RELAXED);
  });
  t->of_a_piece = most_of_piece(t->all_chunks);
  fmm_cuda_for_each(blocks, 1, [=](int64_t i) { cut_block(t, i); });
  const int64_t mates = add_up_blocks(t, blocks);
  fmm_cuda_for_each(blocks, 1, [=](int64_t i) { place_block(t, i); });
  return mates;
}
}

fmm_status fmm_cuda_both_build(fmm_gpu_plan *p, const fmm_tree *tree, const fmm_rows *u, int64_t most) {
  fmm_cuda_sums *s = &p->sums[FMM_SUM_U];
  tables t = {};
  int64_t n_mates;
  fmm_status status = FMM_OK;
  t.tree = tree, t.u = u, t.most = FMM_TILE_TARGETS_A_LANE(fmm_cuda_both_values(p), 1);
  if (u->n_entries > most) return FMM_OK;
  FMM_CHECK(allocate(&t));
  n_mates = find_pairs(&t);
  if (t.tiles[u->n_rows] + t.chunks[u->n_rows] > most) goto done;
  s->both = 1, s->n_rows = u->n_rows;
  s->n_mates = n_mates, s->n_tiles = t.tiles[u->n_rows], s->n_chunks = s->n_tiles + t.chunks[u->n_rows], s->n_joints = t.joints[u->n_rows], s->n_partial = t.values[u->n_rows];
  FMM_CHECK(DESK_TAKE(&p->desk, &s->mate, s->n_mates, "GPU sources of tiles"));
  FMM_CHECK(DESK_TAKE(&p->desk, &s->chunk, s->n_chunks, "GPU sources of tiles"));
  if (s->n_joints) FMM_CHECK(DESK_TAKE(&p->desk, &s->joint, s->n_joints, "GPU parts of leaves"));
  fmm_cuda_for_each(u->n_rows, GRAIN, [&](int64_t r) { fill_row(&t, s, (int32_t)r); });
  for (int64_t i = 0; i < s->n_joints; i++) s->most_joined = s->joint[i].target_count > s->most_joined ? s->joint[i].target_count : s->most_joined;
  s->row_tile = t.tiles, s->row_joint = t.joints;
  t.tiles = t.joints = NULL;
done:
  release(&t);
  return status;
}
