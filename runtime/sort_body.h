/* Radix sort, most significant digit first: one pass over all items by the whole team cuts them into buckets; those of more than two threads' shares are
 * cut again by the team, all of them in one pass, the rest by single threads, the largest first, whose larger parts are for who is idle. A digit starts at the highest bit that differs within
 * its bucket, so shared prefixes (clusters, flat data) are skipped. Depth is at most 64 / serial_bits_min, whatever the input.
 * Included once by the source file of each kind of item (sort_items.c, sort_keys.c), which defines ITEM, KEY_OF, the name SORT and, of how many items or fewer NETWORK(from, to, n) sorts a bucket, NETWORK_MOST: 0, or the same all the time; BY_LINES: whether many
 * are moved by lines of memory, which asks for items that begin at multiples of their size. */
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "past_caches.h"
#include "sort.h"
#include "team_loop.h"

enum { team_bits = 11, team_digits = 1 << team_bits, serial_bits_max = 8, serial_bits_min = 3, few = 16, fewer = 8 /* are faster without a network */, team_minimum = 1 << 13, part_minimum = 1 << 14, large_minimum = 1 << 15, lines_minimum = 1 << 23 /* bytes of a pass, of which caches would hold less */ };

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

static void sort_bucket(ITEM *from, ITEM *to, int64_t n, int move, int threads);

/* Buckets of a bucket, whose items lie in `to` by now. */
typedef struct inner { ITEM *from, *to; const int64_t *end; int move, threads; } inner;
static void sort_inner(void *context, int64_t first, int64_t last) {
  const inner *p = context;
  for (int64_t d = first; d < last; d++) {
    const int64_t begin = d ? p->end[d - 1] : 0, size = p->end[d] - begin;
    if (size > 0) sort_bucket(p->to + begin, p->from + begin, size, !p->move, p->threads);
  }
}

/* Sorts n items that lie in `from`; they end in `to` when move is set, else in `from`. The other array is scratch. */
static void sort_bucket(ITEM *from, ITEM *to, int64_t n, int move, int threads) {
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
  inner parts = {from, to, end, move, threads};
  if (threads > 1 && n > part_minimum) fmm_team_loop_uneven((int64_t)mask + 1, 1, sort_inner, &parts, threads);
  else sort_inner(&parts, 0, (int64_t)mask + 1);
}

enum { LINE = 64 / sizeof(ITEM) /* items of a line of memory */ };

/* A pass of the team cuts segments, of which the first is all there is and later ones are buckets that are too large for one thread, into buckets by a digit of their own. bits: that differ in it, 0: nothing is left to sort. */
typedef struct segment { int64_t begin, n, *end /* of each bucket */; uint64_t bits; int shift, first_part, parts; } segment;

/* Pieces of segments, of about as many items each, and what they have of each bucket: how many, then where the next goes. Of many items that goes by lines of memory, which are written when they are full. */
typedef struct part { int segment; int64_t begin, end; uint64_t bits; } part;
typedef struct histogram { int64_t place[team_digits]; } histogram;
typedef struct lines { ITEM line[team_digits][LINE]; int64_t first[team_digits]; } lines;

typedef struct pass {
  ITEM *from, *to;
  segment *segments;
  part *parts;
  histogram *histograms; /* of each part */
  lines *lines;          /* the same; NULL: items go one by one */
  int64_t large; /* buckets with more are the next pass's segments */
  int n_segments, n_parts, threads, ends /* `to` is where items end */;
} pass;

static void find_bits(void *context, int64_t first, int64_t last) {
  const pass p = *(const pass *)context;
  for (int64_t t = first; t < last; t++) {
    const part own = p.parts[t];
    const uint64_t key = KEY_OF(p.from[p.segments[own.segment].begin]);
    uint64_t bits = 0;
    for (int64_t i = own.begin; i < own.end; i++) bits |= KEY_OF(p.from[i]) ^ key;
    p.parts[t].bits = bits;
  }
}

static void count_part(void *context, int64_t first, int64_t last) {
  const pass p = *(const pass *)context; /* held by itself: stores might else be to it */
  for (int64_t t = first; t < last; t++) {
    const part own = p.parts[t];
    const int shift = p.segments[own.segment].shift;
    int64_t *count = p.histograms[t].place;
    if (!p.segments[own.segment].bits) continue;
    memset(count, 0, team_digits * sizeof *count);
    for (int64_t i = own.begin; i < own.end; i++) count[KEY_OF(p.from[i]) >> shift & (team_digits - 1)]++;
  }
}

/* Of each digit where a part's first item goes, instead of how many there are. */
static void place_digits(void *context, int64_t first, int64_t last) {
  const pass *p = context;
  for (const segment *s = p->segments + first; s < p->segments + last; s++) {
    const histogram *end_of = p->histograms + s->first_part + s->parts;
    int64_t begin = s->begin;
    if (!s->bits) continue;
    memset(s->end, 0, team_digits * sizeof *s->end);
    for (histogram *t = p->histograms + s->first_part; t < end_of; t++)
      for (int d = 0; d < team_digits; d++) {
        const int64_t count = t->place[d];
        t->place[d] = s->end[d], s->end[d] += count;
      }
    for (int d = 0; d < team_digits; d++) {
      const int64_t count = s->end[d];
      s->end[d] = begin, begin += count;
    }
    for (histogram *t = p->histograms + s->first_part; t < end_of; t++)
      for (int d = 0; d < team_digits; d++) t->place[d] += s->end[d];
    memmove(s->end, s->end + 1, (team_digits - 1) * sizeof *s->end);
    s->end[team_digits - 1] = s->begin + s->n;
  }
}

/* What a line holds of places [begin, end), the first of which are some line's last. */
static void write_some(ITEM *to, const ITEM *line, size_t ahead, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; i++) to[i] = line[((size_t)i + ahead) % LINE];
}

static void move_by_lines(const pass *all, const part *own, int64_t *next, lines *l) {
  const ITEM *from = all->from;
  ITEM *to = all->to;
  const int shift = all->segments[own->segment].shift;
  const size_t ahead = (uintptr_t)to / sizeof *to % LINE;
  memcpy(l->first, next, sizeof l->first);
  for (int64_t i = own->begin; i < own->end; i++) {
    const uint64_t d = KEY_OF(from[i]) >> shift & (team_digits - 1);
    const int64_t place = next[d]++;
    const size_t in_line = ((size_t)place + ahead) % LINE;
    l->line[d][in_line] = from[i];
    if (in_line < LINE - 1) continue;
    if (place - (LINE - 1) >= l->first[d]) fmm_write_line(to + place - (LINE - 1), l->line[d]);
    else write_some(to, l->line[d], ahead, l->first[d], place + 1);
  }
  for (int d = 0; d < team_digits; d++) {
    const int64_t end = next[d], line = end - (int64_t)(((size_t)end + ahead) % LINE);
    write_some(to, l->line[d], ahead, line > l->first[d] ? line : l->first[d], end);
  }
  fmm_lines_written();
}

static void move_one_by_one(const pass *all, const part *own, int64_t *next) {
  const ITEM *from = all->from;
  ITEM *to = all->to;
  const int shift = all->segments[own->segment].shift;
  for (int64_t i = own->begin; i < own->end; i++) to[next[KEY_OF(from[i]) >> shift & (team_digits - 1)]++] = from[i];
}

static void move_part(void *context, int64_t first, int64_t last) {
  const pass *p = context;
  for (int64_t t = first; t < last; t++) {
    const part *own = &p->parts[t];
    if (p->segments[own->segment].bits && p->lines) move_by_lines(p, own, p->histograms[t].place, &p->lines[t]);
    else if (p->segments[own->segment].bits) move_one_by_one(p, own, p->histograms[t].place);
    else if (p->ends) memcpy(p->to + own->begin, p->from + own->begin, (size_t)(own->end - own->begin) * sizeof *p->to);
  }
}

static int64_t bucket_begin(const segment *s, int64_t digit) { return digit ? s->end[digit - 1] : s->begin; }

/* What is left to single threads: large buckets one by one, the largest first, so that none is begun when all else has ended, then pieces of all the others. */
typedef struct bucket { int64_t begin, n; } bucket;
typedef struct finishing { const pass *pass; bucket *large; int64_t n_large, piece; } finishing;

static int larger_first(const void *a, const void *b) {
  const bucket *x = a, *y = b;
  return x->n != y->n ? (x->n < y->n) - (x->n > y->n) : (x->begin > y->begin) - (x->begin < y->begin);
}

static void finish_small(const pass *p, int64_t first, int64_t last) {
  for (int64_t k = first; k < last && k < (int64_t)p->n_segments * team_digits; k++) {
    const segment *s = &p->segments[k / team_digits];
    if (!s->bits) continue;
    const int64_t begin = bucket_begin(s, k % team_digits), size = s->end[k % team_digits] - begin;
    if (size && size <= part_minimum) sort_bucket(p->to + begin, p->from + begin, size, !p->ends, 1);
  }
}

static void finish_some(void *context, int64_t first, int64_t last) {
  const finishing *f = context;
  const pass *p = f->pass;
  for (int64_t i = first; i < last; i++) {
    const int64_t piece = i - f->n_large;
    if (piece < 0) sort_bucket(p->to + f->large[i].begin, p->from + f->large[i].begin, f->large[i].n, !p->ends, p->threads);
    else finish_small(p, piece * f->piece, (piece + 1) * f->piece);
  }
}

/* Of n items in all segments. */
static fmm_status finish_buckets(pass *p, int64_t n) {
  const int64_t buckets = (int64_t)p->n_segments * team_digits, pieces = 32 * (int64_t)p->threads;
  finishing f = {p, NULL, 0, buckets / pieces + 1};
  FMM_TRY(FMM_ALLOCATE(&f.large, n / part_minimum, "large buckets of the sort"));
  for (const segment *s = p->segments; s < p->segments + p->n_segments; s++)
    for (int d = 0; d < team_digits && s->bits; d++) {
      const int64_t begin = bucket_begin(s, d), size = s->end[d] - begin;
      if (size > part_minimum && size <= p->large) f.large[f.n_large++] = (bucket){begin, size};
    }
  qsort(f.large, (size_t)f.n_large, sizeof *f.large, larger_first);
  fmm_team_loop_each(f.n_large + (buckets + f.piece - 1) / f.piece, finish_some, &f, p->threads);
  FMM_FREE(&f.large);
  return FMM_OK;
}

static void cut_parts(pass *p, int64_t n) {
  const int64_t wanted = n < (int64_t)part_minimum * p->threads ? n / part_minimum + 1 : p->threads;
  p->n_parts = 0;
  for (int k = 0; k < p->n_segments; k++) {
    segment *s = &p->segments[k];
    s->first_part = p->n_parts, s->parts = (int)(wanted * s->n / n) + (wanted * s->n % n > 0);
    for (int t = 0; t < s->parts; t++) p->parts[p->n_parts++] = (part){.segment = k, .begin = s->begin + s->n * t / s->parts, .end = s->begin + s->n * (t + 1) / s->parts};
  }
}

static void choose_digits(pass *p) {
  for (segment *s = p->segments; s < p->segments + p->n_segments; s++) {
    for (int t = 0; t < s->parts; t++) s->bits |= p->parts[s->first_part + t].bits;
    const int top = s->bits ? log2_floor(s->bits) + 1 : 0;
    s->shift = top > team_bits ? top - team_bits : 0;
  }
}

/* n items in all segments. */
static fmm_status run_pass(pass *p, int64_t n) {
  int64_t *end = NULL;
  fmm_status status;
  FMM_CHECK(FMM_ALLOCATE(&p->parts, p->threads + p->n_segments, "parts of the sort"));
  cut_parts(p, n);
  FMM_CHECK(FMM_ALLOCATE(&p->histograms, p->n_parts, "histograms of the sort"));
  if (BY_LINES && n >= (int64_t)(lines_minimum / sizeof *p->from)) FMM_CHECK(FMM_ALLOCATE(&p->lines, p->n_parts, "lines of the sort"));
  FMM_CHECK(FMM_ALLOCATE(&end, (int64_t)p->n_segments * team_digits, "bucket ends of the sort"));
  for (int k = 0; k < p->n_segments; k++) p->segments[k].end = end + (int64_t)k * team_digits;
  fmm_team_loop(p->n_parts, 1, find_bits, p, p->threads);
  choose_digits(p);
  fmm_team_loop(p->n_parts, 1, count_part, p, p->threads);
  fmm_team_loop(p->n_segments, 1, place_digits, p, p->threads);
  fmm_team_loop(p->n_parts, 1, move_part, p, p->threads);
  status = finish_buckets(p, n);
done:
  FMM_FREE(&p->parts);
  FMM_FREE(&p->histograms);
  FMM_FREE(&p->lines);
  return status;
}

/* Buckets that are too large, as the segments of the next pass, in the other array; *n: items in them. */
static fmm_status next_segments(pass *p, int64_t *n) {
  segment *next = NULL;
  int found = 0;
  *n = 0;
  for (int pick = 0; pick < 2; pick++) {
    int k = 0;
    for (const segment *s = p->segments; s < p->segments + p->n_segments; s++)
      for (int d = 0; d < team_digits && s->bits; d++) {
        const int64_t begin = bucket_begin(s, d), size = s->end[d] - begin;
        if (size <= p->large) continue;
        if (pick) next[k] = (segment){.begin = begin, .n = size}, *n += size;
        k++;
      }
    found = k;
    if (!pick) FMM_TRY(FMM_ALLOCATE(&next, found, "segments of the sort"));
  }
  FMM_FREE(&p->segments[0].end); /* of all */
  FMM_FREE(&p->segments);
  ITEM *from = p->from;
  p->segments = next, p->n_segments = found, p->from = p->to, p->to = from, p->ends = !p->ends;
  return FMM_OK;
}

/* At most seven passes: six by a digit, and one that copies what is left of equal keys. */
static fmm_status sort_team(ITEM *items, ITEM *scratch, int64_t n, int threads) {
  const int64_t two_shares = n / (threads > 8 ? threads / 2 : 4);
  pass p = {.from = items, .to = scratch, .n_segments = 1, .threads = threads, .large = two_shares > large_minimum ? two_shares : large_minimum};
  fmm_status status;
  FMM_CHECK(FMM_ALLOCATE(&p.segments, 1, "segments of the sort"));
  p.segments[0] = (segment){.n = n};
  while (n) {
    FMM_CHECK(run_pass(&p, n));
    FMM_CHECK(next_segments(&p, &n));
  }
done:
  if (p.segments && p.n_segments) FMM_FREE(&p.segments[0].end);
  FMM_FREE(&p.segments);
  return status;
}

fmm_status SORT(ITEM *items, ITEM *scratch, int64_t n, int threads) {
  if (n >= team_minimum) return sort_team(items, scratch, n, threads);
  sort_bucket(items, scratch, n, 0, 1);
  return FMM_OK;
}
