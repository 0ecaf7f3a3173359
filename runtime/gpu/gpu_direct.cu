/* Host tables of a leaf that is the whole tree, summed onto itself in both directions of a pair (kernels/pair/pair_both_cuda.cu). Its tiles stand in a circle, and each takes those that follow it, half of the others:
 * of an odd number all pairs of tiles once; of an even one opposite tiles are summed one way by either, as each tile is with itself. What a tile gives to the one d behind it is part d - 1 of that
 * one's points, so that every part is whole and is added in its place.
 * Points of different leaves have different keys, and so no distance whose square could vanish; those of different tiles too unless a tile ends among points of one key, which all tiles are then guarded against. */
#include <math.h>

#include "runtime/gpu/gpu_cuda.h"
#include "runtime/gpu/team_loop_cuda.h"
#include "runtime/points.h"

namespace {
enum { GRAIN = 16 /* tiles of a piece */ };

/* The leaf's points, its tiles of `size` points, the last of fewer, and their shape; mates: that a tile takes; alone: tiles, itself too, that it sums one way, in its first chunk. */
struct circle { int64_t begin, points, tiles, size, mates, alone, a_chunk, chunks; int lanes_log2, per_lane; int32_t box; };

int64_t first_of(const circle &c, int64_t tile) { return tile * c.size < c.points ? tile * c.size : c.points; }

/* How far behind tile the k-th that it sums stands: those one way come first. */
int64_t step_of(const circle &c, int64_t k) { return k >= c.alone ? k - c.alone + 1 : k ? c.tiles / 2 : 0; }

/* The first of those of chunk k. */
int64_t chunk_begin(const circle &c, int64_t k) {
  const int64_t mates = k * c.a_chunk < c.mates ? k * c.a_chunk : c.mates;
  return k ? c.alone + mates : 0;
}

/* The tiles that tile i sums, [from, to) of them, as a chunk whose first mate is there. */
void fill_chunk(const circle &c, int64_t i, int64_t from, int64_t to, fmm_cuda_chunk *chunk, fmm_cuda_mate *mate) {
  for (int64_t k = from; k < to; k++) {
    const int64_t step = step_of(c, k), j = (i + step) % c.tiles, first = first_of(c, j), count = first_of(c, j + 1) - first;
    *mate++ = fmm_cuda_mate{c.begin + first, k < c.alone ? -1 : (step - 1) * c.points + first, 0, (uint16_t)count, (uint16_t)chunk->filled};
    chunk->mates++, chunk->filled += (int)count, chunk->alone += k < c.alone ? (int)count : 0;
  }
}

/* Its first chunk lies where its number says, others behind those of all tiles. */
void fill_tile(const circle &c, fmm_cuda_sums *s, int64_t i) {
  const int64_t all = c.alone + c.mates, first = first_of(c, i), further = c.tiles + i * (c.chunks - 1);
  for (int64_t k = 0; k < c.chunks; k++) {
    const int64_t from = chunk_begin(c, k), begin = i * all + from;
    fmm_cuda_chunk *chunk = &s->chunk[k ? further + k - 1 : i];
    *chunk = fmm_cuda_chunk{begin, c.begin + first, -1, 0, k + 1 < c.chunks ? (int32_t)(further + k) : -1, (int32_t)(first_of(c, i + 1) - first), 0, 0, 0, (uint8_t)c.lanes_log2, (uint8_t)c.per_lane, 0, c.box};
    fill_chunk(c, i, from, chunk_begin(c, k + 1), chunk, &s->mate[begin]);
  }
}

circle circle_of(const fmm_tree *tree, int32_t box, int most) {
  circle c = {};
  c.box = box, c.begin = tree->target_begin[box], c.points = tree->target_end[box] - c.begin;
  fmm_pair_shape_tiles(c.points, fmm_pair_tile_cap(tree->targets.n), most, &c.tiles, &c.lanes_log2, &c.per_lane);
  c.size = (c.points + c.tiles - 1) / c.tiles, c.tiles = (c.points + c.size - 1) / c.size;
  c.mates = fmm_pair_direct_mates(c.points, c.tiles);
  if (!c.mates) return c;
  c.alone = c.tiles - 2 * c.mates, c.a_chunk = fmm_pair_direct_mates_a_chunk(c.points, c.tiles), c.chunks = (c.mates + c.a_chunk - 1) / c.a_chunk;
  return c;
}

/* Points are in the order of their keys, each of a cell of the finest level: a tile's last point and the next one, farther apart than that, have different ones. */
int ends_within_a_key(const circle &c, const fmm_tree *tree) {
  const fmm_points *t = &tree->targets;
  const double cell = ldexp(tree->root_side, -FMM_KEY_LEVEL);
  for (int64_t i = 1; i < c.tiles; i++) {
    const int64_t next = c.begin + first_of(c, i), last = next - 1;
    if (!(fabs(t->x[next] - t->x[last]) > 2 * cell || fabs(t->y[next] - t->y[last]) > 2 * cell || fabs(t->z[next] - t->z[last]) > 2 * cell)) return 1;
  }
  return 0;
}
}

fmm_status fmm_cuda_direct_build(fmm_gpu_plan *p, const fmm_tree *tree, const fmm_rows *u, int64_t most) {
  fmm_cuda_sums *s = &p->sums[FMM_SUM_U];
  if (u->n_rows != 1 || u->n_entries != 1 || u->entry[0] != u->row[0]) return FMM_OK;
  const circle c = circle_of(tree, u->row[0], FMM_TILE_TARGETS_A_LANE(fmm_cuda_both_values(p), 1));
  if (!c.mates || c.tiles * c.chunks > most) return FMM_OK;
  FMM_TRY(FMM_ALLOCATE_ZERO(&s->row_tile, 2, "GPU tile offsets"));
  FMM_TRY(FMM_ALLOCATE_ZERO(&s->row_joint, 2, "GPU tile offsets"));
  FMM_TRY(DESK_TAKE(&p->desk, &s->mate, c.tiles * (c.alone + c.mates), "GPU sources of tiles"));
  FMM_TRY(DESK_TAKE(&p->desk, &s->chunk, c.tiles * c.chunks, "GPU sources of tiles"));
  FMM_TRY(DESK_TAKE(&p->desk, &s->joint, 1, "GPU parts of leaves"));
  fmm_cuda_for_each(c.tiles, GRAIN, [=](int64_t i) { fill_tile(c, s, i); });
  *s->joint = fmm_cuda_joint{c.begin, 0, (int32_t)c.points, (int32_t)c.mates};
  s->row_tile[1] = s->n_tiles = c.tiles, s->row_joint[1] = s->n_joints = 1, s->n_rows = 1;
  s->n_mates = c.tiles * (c.alone + c.mates), s->n_chunks = c.tiles * c.chunks, s->n_partial = c.mates * c.points, s->most_joined = (int32_t)c.points;
  s->both = s->direct = 1, s->near = ends_within_a_key(c, tree);
  return FMM_OK;
}
