/* Radix sort, most significant digit first: one pass over all items by the whole team cuts them into buckets; buckets still large are
 * cut again by the team, small ones are finished by single threads in cache. A digit starts at the highest bit that differs within
 * its bucket, so shared prefixes (clusters, flat data) are skipped. Depth is at most 64 / serial_bits_min, whatever the input. */
#include "sort.h"

#include <string.h>

#include "memory.h"

enum { team_bits = 11, team_digits = 1 << team_bits, serial_bits_max = 8, serial_bits_min = 3, insertion_limit = 24, team_minimum = 1 << 13 };

static int log2_floor(uint64_t v) { return 63 - __builtin_clzll(v); }

static void insertion_sort(fmm_sort_item *a, int64_t n) {
  for (int64_t i = 1; i < n; i++) {
    fmm_sort_item item = a[i];
    int64_t j = i;
    for (; j > 0 && a[j - 1].key > item.key; j--) a[j] = a[j - 1];
    a[j] = item;
  }
}

static uint64_t differing_bits(const fmm_sort_item *a, int64_t n) {
  uint64_t bits = 0;
  for (int64_t i = 1; i < n; i++) bits |= a[i].key ^ a[0].key;
  return bits;
}

/* Sorts n items that lie in `from`; they end in `to` when move is set, else in `from`. The other array is scratch. */
static void sort_bucket(fmm_sort_item *from, fmm_sort_item *to, int64_t n, int move) {
  uint64_t bits = n > insertion_limit ? differing_bits(from, n) : 0;
  if (!bits) { /* few, or all equal */
    if (n <= insertion_limit) insertion_sort(from, n);
    if (move) memcpy(to, from, (size_t)n * sizeof *to);
    return;
  }
  int width = log2_floor((uint64_t)n) - 2;
  width = width > serial_bits_max ? serial_bits_max : width < serial_bits_min ? serial_bits_min : width;
  int top = log2_floor(bits) + 1, shift = top > width ? top - width : 0;
  uint64_t mask = ((uint64_t)1 << width) - 1;
  int64_t end[1 << serial_bits_max] = {0}, sum = 0;
  for (int64_t i = 0; i < n; i++) end[from[i].key >> shift & mask]++;
  for (uint64_t d = 0; d <= mask; d++) {
    int64_t count = end[d];
    end[d] = sum;
    sum += count;
  }
  for (int64_t i = 0; i < n; i++) to[end[from[i].key >> shift & mask]++] = from[i];
  for (uint64_t d = 0; d <= mask; d++) {
    int64_t begin = d ? end[d - 1] : 0;
    if (end[d] > begin) sort_bucket(to + begin, from + begin, end[d] - begin, !move);
  }
}

void fmm_sort_items_serial(fmm_sort_item *items, fmm_sort_item *scratch, int64_t n) { sort_bucket(items, scratch, n, 0); }

/* One pass of the whole team: items to scratch by the digit at `shift`; end[d] becomes the end of bucket d. */
static void team_pass(const fmm_sort_item *items, fmm_sort_item *scratch, int64_t n, int shift, int64_t (*count)[team_digits], int64_t *end,
                      int threads) {
  const uint64_t mask = team_digits - 1;
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int t = 0; t < threads; t++) {
    memset(count[t], 0, sizeof count[t]);
    for (int64_t i = n * t / threads; i < n * (t + 1) / threads; i++) count[t][items[i].key >> shift & mask]++;
  }
  int64_t sum = 0;
  for (int d = 0; d < team_digits; d++) {
    for (int t = 0; t < threads; t++) {
      int64_t c = count[t][d];
      count[t][d] = sum;
      sum += c;
    }
    end[d] = sum;
  }
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int t = 0; t < threads; t++)
    for (int64_t i = n * t / threads; i < n * (t + 1) / threads; i++) scratch[count[t][items[i].key >> shift & mask]++] = items[i];
}

static uint64_t team_differing_bits(const fmm_sort_item *items, int64_t n, int threads) {
  uint64_t bits = 0, first = items[0].key;
#pragma omp parallel for num_threads(threads) reduction(| : bits)
  for (int64_t i = 0; i < n; i++) bits |= items[i].key ^ first;
  return bits;
}

typedef struct team_work { int64_t (*count)[team_digits]; int64_t large; int threads; } team_work;

/* At most 64 / team_bits deep; on return the items are sorted in place. */
static fmm_status sort_team(fmm_sort_item *items, fmm_sort_item *scratch, int64_t n, const team_work *work) {
  uint64_t bits = team_differing_bits(items, n, work->threads);
  if (!bits) return FMM_OK;
  int64_t *end = NULL;
  FMM_TRY(FMM_ALLOCATE(&end, team_digits, "bucket ends of the sort"));
  int top = log2_floor(bits) + 1, shift = top > team_bits ? top - team_bits : 0;
  team_pass(items, scratch, n, shift, work->count, end, work->threads);
#pragma omp parallel for num_threads(work->threads) schedule(dynamic, 8)
  for (int d = 0; d < team_digits; d++) {
    int64_t begin = d ? end[d - 1] : 0, size = end[d] - begin;
    if (size > work->large) memcpy(items + begin, scratch + begin, (size_t)size * sizeof *items);
    else if (size) sort_bucket(scratch + begin, items + begin, size, 1);
  }
  fmm_status status = FMM_OK;
  for (int d = 0; d < team_digits && status == FMM_OK; d++) {
    int64_t begin = d ? end[d - 1] : 0, size = end[d] - begin;
    if (size > work->large) status = sort_team(items + begin, scratch + begin, size, work);
  }
  FMM_FREE(&end);
  return status;
}

fmm_status fmm_sort_items(fmm_sort_item *items, fmm_sort_item *scratch, int64_t n, int threads) {
  if (n < team_minimum) {
    fmm_sort_items_serial(items, scratch, n);
    return FMM_OK;
  }
  team_work work = {.count = NULL, .large = n / (8 * threads) > team_minimum ? n / (8 * threads) : team_minimum, .threads = threads};
  FMM_TRY(FMM_ALLOCATE(&work.count, threads, "histograms of the sort"));
  fmm_status status = sort_team(items, scratch, n, &work);
  FMM_FREE(&work.count);
  return status;
}
