/* Orders of rows in the GPU's V products: see vlist_windows.h. Groups are made one after the other from the rows that are left: a row with the fewest directions, then always the
 * row that brings the fewest new ones. On an ellipsoid of 4 million points eight rows together then have 1.34 times the directions that each has alone, where rows sorted by
 * their masks have 1.58 times. */
#include "kernels/vlist/vlist_windows.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_GROUPS = FMM_V_WINDOW / FMM_V_TOGETHER, NEW_DIRECTION = 3 /* what a new one costs, against one that the group has in vain */ };

static int ascending(const void *a, const void *b) { /* by masks, then rows, whatever their colours */
  const uint64_t colour = (uint64_t)1 << FMM_V_COLOUR_BIT, x = *(const uint64_t *)a & ~colour, y = *(const uint64_t *)b & ~colour;
  return (x > y) - (x < y);
}

static int colour_of(uint64_t key) { return (int)(key >> FMM_V_COLOUR_BIT & 1); }
static uint32_t mask_of(uint64_t key) { return (uint32_t)(key >> FMM_V_DIRECTION_BIT); }

/* By what a mask does not fit `all`. */
static int misfit(uint32_t mask, uint32_t all) { return NEW_DIRECTION * fmm_count_bits(mask & ~all) + fmm_count_bits(all & ~mask); }

/* Place of the mask that fits `all` best among [begin, n); of equal ones the first whose colour is wanted (-1: any), else the first. */
static int best_of(const uint64_t *item, const uint32_t *mask, int begin, int n, uint32_t all, int wanted) {
  int best = begin, least = 1 << 10;
  for (int i = begin; i < n && least > 0; i++) {
    const int other = wanted >= 0 && colour_of(item[i]) != wanted;
    const int cost = 2 * misfit(mask[i], all) + other;
    if (cost < least) least = cost, best = i;
  }
  return best;
}

/* Place of the mask with the fewest directions (sign 1) or the most (-1). */
static int extreme_of(const uint32_t *mask, int begin, int n, int sign) {
  int best = begin, least = sign * fmm_count_bits(mask[begin]);
  for (int i = begin + 1; i < n; i++) {
    const int bits = sign * fmm_count_bits(mask[i]);
    if (bits < least) least = bits, best = i;
  }
  return best;
}

/* Entry `from` comes to `to`, those between move up: what is left keeps its order. */
static void bring(uint64_t *item, uint32_t *mask, int to, int from) {
  uint64_t i = item[from];
  uint32_t m = mask[from];
  memmove(item + to + 1, item + to, (size_t)(from - to) * sizeof *item);
  memmove(mask + to + 1, mask + to, (size_t)(from - to) * sizeof *mask);
  item[to] = i, mask[to] = m;
}

/* Groups of `size`, each begun with the mask that has the fewest or the most; `coloured` ones have as many items of one colour as of the other where masks let them. */
static void group(uint64_t *item, uint32_t *mask, int n, int size, int sign, int coloured) {
  for (int begin = 0; begin < n; begin += size) {
    bring(item, mask, begin, extreme_of(mask, begin, n, sign));
    uint32_t all = mask[begin];
    int more = colour_of(item[begin]) ? 1 : -1; /* of colour 1 than of colour 0 */
    for (int i = begin + 1; i < begin + size && i < n; i++) {
      bring(item, mask, i, best_of(item, mask, i, n, all, coloured && more ? more < 0 : -1));
      all |= mask[i];
      more += colour_of(item[i]) ? 1 : -1;
    }
  }
}

/* The rows of a group, both colours in turn as far as there are; rows of one colour keep their order. */
static void alternate(uint64_t *key, int n) {
  uint64_t of[2][FMM_V_TOGETHER];
  int there[2] = {0, 0}, taken[2] = {0, 0};
  for (int i = 0; i < n; i++) of[colour_of(key[i])][there[colour_of(key[i])]++] = key[i];
  for (int i = 0; i < n; i++) {
    const int colour = taken[i & 1] < there[i & 1] ? i & 1 : !(i & 1);
    key[i] = of[colour][taken[colour]++];
  }
}

/* Whole groups of rows, such that those that one warp of the GPU takes have much in common. */
static void order_groups(uint64_t *key, int n) {
  uint64_t number[MOST_GROUPS], before[FMM_V_WINDOW];
  uint32_t all[MOST_GROUPS] = {0};
  int groups = n / FMM_V_TOGETHER;
  memcpy(before, key, (size_t)n * sizeof *key);
  for (int i = 0; i < groups * FMM_V_TOGETHER; i++) all[i / FMM_V_TOGETHER] |= mask_of(key[i]);
  for (int g = 0; g < groups; g++) number[g] = (uint64_t)g;
  group(number, all, groups, FMM_V_A_WARP / FMM_V_TOGETHER, -1, 0);
  for (int g = 0; g < groups; g++) memcpy(key + g * FMM_V_TOGETHER, before + number[g] * FMM_V_TOGETHER, FMM_V_TOGETHER * sizeof *key);
}

void fmm_vlist_order_window(const fmm_tree *tree, const fmm_rows *v, int64_t begin, int64_t end, uint64_t key[FMM_V_WINDOW]) {
  int n = (int)(end - begin);
  uint32_t mask[FMM_V_WINDOW];
  for (int r = 0; r < n; r++) {
    key[r] = (uint64_t)r | (uint64_t)fmm_vlist_colour(tree, v->row[begin + r]) << FMM_V_COLOUR_BIT;
    for (int64_t i = v->offset[begin + r]; i < v->offset[begin + r + 1]; i++) key[r] |= (uint64_t)1 << (v->direction[i] + FMM_V_DIRECTION_BIT);
  }
  qsort(key, (size_t)n, sizeof *key, ascending);
  for (int i = 0; i < n; i++) mask[i] = mask_of(key[i]);
  group(key, mask, n, FMM_V_TOGETHER, 1, 1);
  for (int i = 0; i < n; i += FMM_V_TOGETHER) alternate(key + i, n - i < FMM_V_TOGETHER ? n - i : FMM_V_TOGETHER);
  order_groups(key, n);
}

int64_t fmm_vlist_operators_end(const fmm_tree *tree, const fmm_rows *v, int64_t begin, int same_operators) {
  int64_t end = same_operators ? v->n_rows : begin;
  while (end < v->n_rows && tree->level[v->row[end]] == tree->level[v->row[begin]]) end++;
  return end;
}
