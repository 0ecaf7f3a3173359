/* Radix sort, most significant digit first: one pass over all items by the whole team cuts them into buckets; those of more than half of a thread's share are
 * cut again by the team, the rest by single threads, whose larger parts are tasks for who is idle. A digit starts at the highest bit that differs within
 * its bucket, so shared prefixes (clusters, flat data) are skipped. Depth is at most 64 / serial_bits_min, whatever the input.
 * Included once by the source file of each kind of item (sort_items.c, sort_keys.c), which defines ITEM, KEY_OF, the name SORT and, of how many items or fewer NETWORK(from, to, n) sorts a bucket, NETWORK_MOST: 0, or the same all the time. */
#include <string.h>

#include "memory.h"
#include "sort.h"
#include "team_loop.h"

enum { team_bits = 11, team_digits = 1 << team_bits, serial_bits_max = 8, serial_bits_min = 3, few = 16, fewer = 8 /* are faster without a network */, team_minimum = 1 << 13, part_minimum = 1 << 14, task_minimum = 1 << 12, large_minimum = 1 << 15 };

static int log2_floor(uint64_t v) { return 63 - __builtin_clzll(v); }

/* A few items, in their order, to another place: each goes where as many are before it as its key tells, which no branch has to guess. Equal keys stay in their order. */
static void sort_few(const ITEM *from, ITEM *to, int n) {
  int place[few];
  for (int i = 0; i < n; i++) {
    const uint64_t key = KEY_OF(from[i]);
    int before = 0;
    for (int j = 0; j < i; j++) {
      const int is_before = KEY_OF(from[j]) <= key;
      before += is_before, place[j] += !is_before;
    }
    place[i] = before;
  }
  for (int i = 0; i < n; i++) to[place[i]] = from[i];
}

static uint64_t differing_bits(const ITEM *a, int64_t n) {
  uint64_t bits = 0;
  for (int64_t i = 1; i < n; i++) bits |= KEY_OF(a[i]) ^ KEY_OF(a[0]);
  return bits;
}

/* Sorts n items that lie in `from`; they end in `to` when move is set, else in `from`. The other array is scratch. shared: parts may become tasks, which the caller's loop waits for. */
static void sort_bucket(ITEM *from, ITEM *to, int64_t n, int move, int shared) {
  const int most = NETWORK_MOST;
  if (n <= (most ? fewer : few)) {
    sort_few(from, to, (int)n);
    if (!move) memcpy(from, to, (size_t)n * sizeof *to);
    return;
  }
  if (n <= most) {
    NETWORK(from, move ? to : from, (int)n);
    return;
  }
  const uint64_t bits = differing_bits(from, n);
  if (!bits) { /* all equal */
    if (move) memcpy(to, from, (size_t)n * sizeof *to);
    return;
  }
  int width = log2_floor((uint64_t)n) - (most ? log2_floor((uint64_t)most) - 2 : 1); /* parts have two to four items, or a quarter to a half of what a network sorts */
  width = width > serial_bits_max ? serial_bits_max : width < serial_bits_min ? serial_bits_min : width;
  int top = log2_floor(bits) + 1, shift = top > width ? top - width : 0;
  uint64_t mask = ((uint64_t)1 << width) - 1;
  int64_t end[1 << serial_bits_max] = {0}, sum = 0;
  for (int64_t i = 0; i < n; i++) end[KEY_OF(from[i]) >> shift & mask]++;
  for (uint64_t d = 0; d <= mask; d++) {
    int64_t count = end[d];
    end[d] = sum;
    sum += count;
  }
  for (int64_t i = 0; i < n; i++) to[end[KEY_OF(from[i]) >> shift & mask]++] = from[i];
  for (uint64_t d = 0; d <= mask; d++) {
    const int64_t begin = d ? end[d - 1] : 0, size = end[d] - begin;
    if (shared && size > task_minimum) {
#pragma omp task firstprivate(from, to, begin, size, move)
      sort_bucket(to + begin, from + begin, size, !move, 1);
    } else if (size > 0) sort_bucket(to + begin, from + begin, size, !move, 0);
  }
}

/* One pass of a team over items, in a part a thread, or fewer where parts would be small. */
typedef struct pass {
  ITEM *items, *scratch;
  int64_t n, (*count)[team_digits], *end, large; /* end[d]: of bucket d */
  int shift, parts, threads;
} pass;

static int64_t part_begin(const pass *p, int64_t t) { return p->n * t / p->parts; }

static void count_parts(void *context, int64_t begin, int64_t end) {
  const pass p = *(const pass *)context; /* held by itself: stores might else be to it */
  for (int64_t t = begin; t < end; t++) {
    int64_t *count = p.count[t];
    memset(count, 0, team_digits * sizeof *count);
    for (int64_t i = part_begin(&p, t), after = part_begin(&p, t + 1); i < after; i++) count[KEY_OF(p.items[i]) >> p.shift & (team_digits - 1)]++;
  }
}

static void move_parts(void *context, int64_t begin, int64_t end) {
  const pass p = *(const pass *)context; /* as above */
  for (int64_t t = begin; t < end; t++) {
    int64_t *place = p.count[t];
    for (int64_t i = part_begin(&p, t), after = part_begin(&p, t + 1); i < after; i++) p.scratch[place[KEY_OF(p.items[i]) >> p.shift & (team_digits - 1)]++] = p.items[i];
  }
}

/* Of each digit the part's first place, instead of its number. */
static void place_digits(const pass *p) {
  int64_t sum = 0;
  for (int d = 0; d < team_digits; d++) {
    for (int t = 0; t < p->parts; t++) {
      int64_t c = p->count[t][d];
      p->count[t][d] = sum;
      sum += c;
    }
    p->end[d] = sum;
  }
}

static void finish_buckets(void *context, int64_t first, int64_t last) {
  const pass *p = context;
  for (int64_t d = first; d < last; d++) {
    int64_t begin = d ? p->end[d - 1] : 0, size = p->end[d] - begin;
    if (size > p->large) memcpy(p->items + begin, p->scratch + begin, (size_t)size * sizeof *p->items);
    else if (size) sort_bucket(p->scratch + begin, p->items + begin, size, 1, p->threads > 1);
  }
}

typedef struct difference { const ITEM *items; uint64_t bits; } difference;

static void find_difference(void *context, int64_t begin, int64_t end) {
  difference *d = context;
  uint64_t bits = 0, first = KEY_OF(d->items[0]);
  for (int64_t i = begin; i < end; i++) bits |= KEY_OF(d->items[i]) ^ first;
  fmm_join_begin();
  d->bits |= bits;
  fmm_join_end();
}

/* At most 64 / team_bits deep; on return the items are sorted in place. */
static fmm_status sort_team(ITEM *items, ITEM *scratch, int64_t n, const pass *all) {
  difference d = {items, 0};
  fmm_team_loop(n, part_minimum, find_difference, &d, all->threads);
  if (!d.bits) return FMM_OK;
  pass p = *all;
  int top = log2_floor(d.bits) + 1;
  p.items = items, p.scratch = scratch, p.n = n, p.shift = top > team_bits ? top - team_bits : 0;
  FMM_TRY(FMM_ALLOCATE(&p.end, team_digits, "bucket ends of the sort"));
  fmm_team_loop(p.parts, 1, count_parts, &p, p.threads);
  place_digits(&p);
  fmm_team_loop(p.parts, 1, move_parts, &p, p.threads);
  fmm_team_loop_uneven(team_digits, 2, finish_buckets, &p, p.threads);
  fmm_status status = FMM_OK;
  for (int digit = 0; digit < team_digits && status == FMM_OK; digit++) {
    int64_t begin = digit ? p.end[digit - 1] : 0, size = p.end[digit] - begin;
    if (size > p.large) status = sort_team(items + begin, scratch + begin, size, all);
  }
  FMM_FREE(&p.end);
  return status;
}

fmm_status SORT(ITEM *items, ITEM *scratch, int64_t n, int threads) {
  if (n < team_minimum) {
    sort_bucket(items, scratch, n, 0, 0);
    return FMM_OK;
  }
  const int parts = n < (int64_t)part_minimum * threads ? (int)(n / part_minimum) + 1 : threads;
  pass all = {.large = n / (2 * threads) > large_minimum ? n / (2 * threads) : large_minimum, .parts = parts, .threads = threads};
  FMM_TRY(FMM_ALLOCATE(&all.count, parts, "histograms of the sort"));
  fmm_status status = sort_team(items, scratch, n, &all);
  FMM_FREE(&all.count);
  return status;
}
