/* Dimension and density of points from sorted keys, by all cells that hold from 16 up to 128 of some thousand keys: a cell's points are one run of keys, so one
 * pass closes the runs of all levels. The dimension is the information dimension (Renyi 1959): bits by which it tells more to know a point's child cell than
 * its cell. Cells of all sizes take part, each where points are that dense, so that a density that varies is not taken for another dimension, as it is
 * between two levels of all points. Smooth surfaces give 1.8 to 2.27 and volumes 2.62 to 3 (5,000 to 500,000 points, root scales 1 to 1.3), so those count as 2 and 3. Surfaces
 * with only some tens of points each, close together, cannot be told from volumes (64 spheres of 78 points each: 2.3 to 2.8).
 * Keys that are all taken, in random order of space, have the logarithm of a count replaced by its unbiased form, psi; every so-manieth of more is too regular to need it. */
#include "filling.h"

#include <math.h>

#include "points.h"
#include "team_loop.h"

enum { MOST_KEYS = 1 << 13, LEAST = 16, MOST = 128 };

/* Sums over cells, each as often as it has points: points, bits (times log 2) that their children tell, logarithms of points and of cells in an edge of the root. */
typedef struct sums { double points, gain, count, edge, count_2, edge_2, count_edge; } sums;

static void add_cell(sums *s, int level, double points, double gain) {
  const double count = log(points), edge = level * log(2);
  s->points += points, s->gain += gain;
  s->count += points * count, s->edge += points * edge;
  s->count_2 += points * count * count, s->edge_2 += points * edge * edge, s->count_edge += points * count * edge;
}

static fmm_filling filling_of(const sums *s, double weight) {
  const double surface = 2.35, volume = 2.6, random = 0.2; /* variance that random points give */
  const double d = 2 + fmin(1, fmax(0, (s->gain / s->points / log(2) - surface) / (volume - surface)));
  const double mean = (s->count + d * s->edge) / s->points, square = (s->count_2 + 2 * d * s->count_edge + d * d * s->edge_2) / s->points;
  return (fmm_filling){d, mean + log(weight), fmax(0, square - mean * mean - random)};
}

/* First level on which two keys that differ are in different cells. */
static int parting_level(uint64_t a, uint64_t b) { return FMM_KEY_LEVEL - (63 - __builtin_clzll(a ^ b)) / 3; }

/* Where sorted keys come from: an array, of all or of those that are taken, or a tree's sources, whose coordinates are there or those of rows. */
typedef struct origin { const uint64_t *keys, *taken; const fmm_tree *tree; const double *rows; } origin;

static uint64_t key_at(const origin *o, int64_t i) {
  if (o->keys) return o->keys[i];
  const fmm_tree *t = o->tree;
  const fmm_points *p = &t->sources;
  const double cells_per_unit = ldexp(1, FMM_KEY_LEVEL) / t->root_side;
  const fmm_frame frame = {.scale = t->scale, .shift = {t->shift[0], t->shift[1], t->shift[2]}};
  double at[3];
  for (int a = 0; a < 3; a++) at[a] = o->rows ? fmm_frame_scaled(&frame, o->rows[3 * (int64_t)p->input_row[i] + a], a) : (a == 0 ? p->x : a == 1 ? p->y : p->z)[i];
  return fmm_key_of(fmm_key_cell(at[0], t->root_lo[0], cells_per_unit), fmm_key_cell(at[1], t->root_lo[1], cells_per_unit), fmm_key_cell(at[2], t->root_lo[2], cells_per_unit));
}

/* How many of n keys are taken, and the i-th of them. */
static int64_t taken_of(int64_t n) { return n < MOST_KEYS ? n : MOST_KEYS; }
static uint64_t take_key(const origin *o, int64_t n, int64_t i) { return o->taken ? o->taken[i] : key_at(o, (int64_t)((double)i * ((double)n / (double)taken_of(n)))); }

static fmm_filling filling_of_origin(int64_t n, const origin *o) {
  const int64_t taken = taken_of(n);
  const double step = taken ? (double)n / (double)taken : 1;
  double bits[MOST] = {0}, below[FMM_KEY_LEVEL + 2] = {0}; /* points x logarithm: of a cell, of the cells within that of a level */
  int64_t first[FMM_KEY_LEVEL + 1] = {0};
  int last = 0; /* deeper than this the latest key is alone */
  sums s = {0};
  for (int k = 1; k < MOST; k++) bits[k] = k * (taken < n ? log(k) : log(k - 0.5) + 1 / (24 * (k - 0.5) * (k - 0.5)));
  uint64_t key = taken ? take_key(o, n, 0) : 0, next = 0;
  for (int64_t i = 1; i <= taken; i++, key = next) {
    int parts = 0;
    if (i < taken) {
      next = take_key(o, n, i);
      if (next == key) { last = FMM_KEY_LEVEL; continue; }
      parts = parting_level(key, next);
    }
    for (int level = last > parts ? last : parts; level >= parts; level--) {
      const int64_t points = i - first[level];
      if (points >= LEAST && points < MOST && level < FMM_KEY_LEVEL) add_cell(&s, level, (double)points, bits[points] - below[level]);
      if (level && points < MOST) below[level - 1] += bits[points];
      below[level] = 0;
    }
    for (int level = parts; level <= FMM_KEY_LEVEL; level++) first[level] = i;
    last = parts;
  }
  return s.points > 0 ? filling_of(&s, step) : (fmm_filling){3, n ? log((double)n) : 0, 0};
}

fmm_filling fmm_filling_of_keys(int64_t n, const uint64_t *keys) { return filling_of_origin(n, &(origin){.keys = keys}); }

fmm_filling fmm_filling_of_sources(const fmm_tree *tree) {
  if (!tree->sources.x || tree->coincident) return tree->filling;
  return filling_of_origin(tree->sources.n, &(origin){.tree = tree});
}

typedef struct taking { origin from; int64_t n; uint64_t *key; } taking;
static void take_some(void *context, int64_t begin, int64_t end) {
  const taking *t = context;
  for (int64_t i = begin; i < end; i++) t->key[i] = take_key(&t->from, t->n, i);
}

/* Rows lie anywhere in memory: the team asks for them. */
fmm_filling fmm_filling_of_rows(const fmm_tree *tree, const double *rows, int threads) {
  enum { LEAST_TAKEN = 256 };
  uint64_t key[MOST_KEYS];
  const int64_t n = tree->sources.n;
  if (tree->coincident) return tree->filling;
  fmm_team_loop(taken_of(n), LEAST_TAKEN, take_some, &(taking){{.tree = tree, .rows = rows}, n, key}, threads);
  return filling_of_origin(n, &(origin){.taken = key});
}
