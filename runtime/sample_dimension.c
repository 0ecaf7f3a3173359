/* The dimension of what a sample's points fill (sample.h). Sums are of blocks of keys that do not depend on the threads, added in their order. */
#include <math.h>

#include "sample.h"
#include "team_loop.h"

enum { few_a_box = 4, points_a_leaf = 64, a_block = 1 << 12, most_blocks = (FMM_SAMPLE_MOST + a_block - 1) / a_block, most_known = 64 };

typedef struct looking {
  int64_t n;
  const uint64_t *keys;
  int64_t begin_at[FMM_KEY_LEVEL + 2]; /* how many keys begin a box of a level that is none of the next coarser one */
  int level;
  double log2_of[most_known], sum[most_blocks][2]; /* of each block's boxes of this level and of the next coarser one: points x log2(points) */
} looking;

/* From which level on two keys are in different boxes; FMM_KEY_LEVEL + 1: none. */
static int level_apart(uint64_t a, uint64_t b) { return a == b ? FMM_KEY_LEVEL + 1 : FMM_KEY_LEVEL - (63 - __builtin_clzll(a ^ b)) / 3; }

static int64_t block_end(const looking *l, int64_t block) { return (block + 1) * a_block < l->n ? (block + 1) * a_block : l->n; }

static void count_begins(void *context, int64_t begin, int64_t end) {
  looking *l = context;
  int64_t begin_at[FMM_KEY_LEVEL + 2] = {0};
  for (int64_t i = begin * a_block + !begin; i < block_end(l, end - 1); i++) begin_at[level_apart(l->keys[i - 1], l->keys[i])]++;
  fmm_join_begin();
  for (int level = 0; level < FMM_KEY_LEVEL + 2; level++) l->begin_at[level] += begin_at[level];
  fmm_join_end();
}

/* The finest level whose boxes hold so many points each on average. */
static int finest_filled(const looking *l, double a_box) {
  int64_t boxes = 1;
  int level = 0;
  while (level < FMM_KEY_LEVEL && (double)l->n >= a_box * (double)(boxes + l->begin_at[level + 1])) boxes += l->begin_at[++level];
  return level;
}

/* Of the boxes that begin in a block. */
static double sum_of_boxes(const looking *l, int64_t block, int level) {
  const int shift = 3 * (FMM_KEY_LEVEL - level);
  int64_t i = block * a_block;
  double sum = 0;
  while (i > 0 && i < block_end(l, block) && l->keys[i] >> shift == l->keys[i - 1] >> shift) i++;
  for (int64_t end; i < block_end(l, block); i = end) {
    for (end = i + 1; end < l->n && l->keys[end] >> shift == l->keys[i] >> shift;) end++;
    sum += (double)(end - i) * (end - i < most_known ? l->log2_of[end - i] : log2((double)(end - i)));
  }
  return sum;
}

static void sum_blocks(void *context, int64_t begin, int64_t end) {
  looking *l = context;
  for (int64_t block = begin; block < end; block++)
    for (int coarser = 0; coarser < 2; coarser++) l->sum[block][coarser] = sum_of_boxes(l, block, l->level - coarser);
}

/* Entropy in bits of the points over the boxes of the level, less that over the next coarser one's. */
static double growth_of_entropy(looking *l, int64_t blocks, int threads) {
  double sum[2] = {0, 0};
  for (int k = 2; k < most_known; k++) l->log2_of[k] = log2(k);
  fmm_team_loop(blocks, 1, sum_blocks, l, threads);
  for (int64_t block = 0; block < blocks; block++)
    for (int coarser = 0; coarser < 2; coarser++) sum[coarser] += l->sum[block][coarser];
  return (sum[1] - sum[0]) / (double)l->n;
}

/* At the finest level whose boxes hold about what leaves do: finer ones may be within groups of points. */
int fmm_sample_dimension(const fmm_sample *sample, const fmm_sample_keys *keys, int64_t n_points, int threads) {
  const int larger = sample->set[1].n > sample->set[0].n;
  looking l = {.n = sample->set[larger].n, .keys = keys->keys[larger]};
  const int64_t blocks = (l.n + a_block - 1) / a_block;
  if (!l.n) return 3;
  fmm_team_loop(blocks, 1, count_begins, &l, threads);
  l.level = finest_filled(&l, fmax(few_a_box, points_a_leaf * (double)l.n / (double)n_points));
  if (!l.level) return 3;
  const double growth = growth_of_entropy(&l, blocks, threads);
  return growth > 2.5 ? 3 : growth > 1.5 ? 2 : 1;
}
