/* Picking points, samples from these, thinned, their sorts, and the dimension of what they fill. */
#include "sample.h"

#include <math.h>

#include "generate.h"
#include "team_loop.h"

enum { most_picked = 1 << 19, a_block = 1 << 12, per_box = 8 };

/* What a set is picked from: m of n rows, one at random from each of m equal stretches. */
typedef struct choice { const double *rows; int64_t n, m; } choice;

static int64_t row_of(const choice *c, uint64_t key, int64_t j) {
  if (c->m == c->n) return j;
  int64_t row = (int64_t)(((double)j + fmm_generate_fraction(key, j)) * ((double)c->n / (double)c->m));
  return row < c->n ? row : c->n - 1;
}

static void take_row(fmm_sample_set *s, int64_t i, const double *rows, int64_t row) {
  for (int a = 0; a < 3; a++) s->rows[3 * i + a] = rows[3 * row + a];
}

/* Rows picked of a set, in Morton order down to level 15, each with a random number below 1 of its own. order: a key's leading bits and below them which pick it is. */
typedef struct picking { const choice *from; const fmm_frame *frame; uint64_t *order; double *rows; float *rank; } picking;
enum { pick_bits = 19, left_out = 3 * FMM_KEY_LEVEL + pick_bits - 64 };
_Static_assert(most_picked <= 1 << pick_bits && left_out > 0, "the number of a pick and what there is room for of its key in 64 bits");

static int64_t picked_row(const picking *p, int64_t j) { return row_of(p->from, fmm_generate_key(1), j); }

static void make_order(void *context, int64_t begin, int64_t end) {
  enum { some = 256 };
  const picking *p = context;
  uint64_t row[some];
  for (int64_t b = begin; b < end; b += some) {
    const int64_t n = end - b < some ? end - b : some;
    for (int64_t i = 0; i < n; i++) row[i] = (uint64_t)picked_row(p, b + i);
    fmm_keys_of_rows(p->order + b, p->frame, n, p->from->rows, row);
    for (int64_t i = 0; i < n; i++) p->order[b + i] = p->order[b + i] >> left_out << pick_bits | (uint64_t)(b + i);
  }
}

static void gather_rows(void *context, int64_t begin, int64_t end) {
  enum { ahead = 32, some = 256 }; /* rows lie anywhere in memory, one in four over two lines */
  const picking *p = context;
  const uint64_t key = fmm_generate_key(2), mask = ((uint64_t)1 << pick_bits) - 1;
  const double *row[some + ahead];
  for (int64_t b = begin; b < end; b += some) {
    const int64_t n = end - b < some ? end - b : some;
    for (int64_t i = 0; i < n; i++) row[i] = p->from->rows + 3 * picked_row(p, (int64_t)(p->order[b + i] & mask));
    for (int64_t i = 0; i < ahead; i++) row[n + i] = row[n - 1];
    for (int64_t i = 0; i < n; i++) {
      __builtin_prefetch(row[i + ahead]), __builtin_prefetch(row[i + ahead] + 2);
      for (int a = 0; a < 3; a++) p->rows[3 * (b + i) + a] = row[i][a];
      p->rank[b + i] = (float)fmm_generate_fraction(key, b + i);
    }
  }
}

/* The rows' memory is the sort's scratch first: the system has to clear it. */
static fmm_status pick_and_sort(const choice *c, const fmm_frame *frame, int threads, double **rows, float **rank) {
  picking p = {.from = c, .frame = frame};
  fmm_status status;
  FMM_CHECK(FMM_ALLOCATE(&p.order, c->m, "picked points"));
  FMM_CHECK(FMM_ALLOCATE(rows, 3 * c->m, "rows of picked points"));
  FMM_CHECK(FMM_ALLOCATE(rank, c->m, "ranks of picked points"));
  p.rows = *rows, p.rank = *rank;
  fmm_team_loop(c->m, FMM_PARALLEL_MINIMUM, make_order, &p, threads);
  FMM_CHECK(fmm_sort_keys(p.order, (uint64_t *)(void *)*rows, c->m, threads));
  fmm_team_loop(c->m, FMM_PARALLEL_MINIMUM, gather_rows, &p, threads);
done:
  FMM_FREE(&p.order);
  return status;
}

/* A part of what was picked, those of low rank, in blocks: how many before each. Of these, if they are too many, evenly the middle one of each of equal parts. */
typedef struct parting { const double *rows; const float *rank; int64_t n, of, *before; float part; double each; fmm_sample_set *sample; } parting; /* each: of so many one is taken */

static int64_t block_end(const parting *p, int64_t b) { return (b + 1) * a_block < p->n ? (b + 1) * a_block : p->n; }

/* Which of a block are in it, counted from the block's first; without a branch that nobody could foretell. */
static int list_low(const parting *p, int64_t b, int low[a_block]) {
  const float *rank = p->rank + b * a_block;
  const int n = (int)(block_end(p, b) - b * a_block);
  int n_low = 0;
  for (int k = 0; k < n; k++) low[n_low] = k, n_low += rank[k] < p->part;
  return n_low;
}

static void count_blocks(void *context, int64_t begin, int64_t end) {
  const parting *p = context;
  for (int64_t b = begin; b < end; b++) {
    int n_low = 0;
    for (int64_t k = b * a_block; k < block_end(p, b); k++) n_low += p->rank[k] < p->part;
    p->before[b + 1] = n_low;
  }
}

/* Which one of the part the i-th of the sample is. */
static int64_t middle_of(const parting *p, int64_t i) { return (int64_t)(((double)i + 0.5) * p->each); }

static void take_blocks(void *context, int64_t begin, int64_t end) {
  const parting *p = context;
  int low[a_block];
  for (int64_t b = begin; b < end; b++) {
    const int64_t first = p->before[b], after = first + list_low(p, b, low);
    int64_t i = (int64_t)((double)first / p->each); /* near it */
    while (i > 0 && middle_of(p, i - 1) >= first) i--;
    while (middle_of(p, i) < first) i++;
    for (int64_t j = middle_of(p, i); i < p->sample->n && j < after; j = middle_of(p, ++i)) take_row(p->sample, i, p->rows, b * a_block + low[j - first]);
  }
}

/* Some m of the n picked. */
static fmm_status take(fmm_sample_set *s, const double *rows, const float *rank, int64_t n, int64_t m, int threads) {
  const int64_t blocks = (n + a_block - 1) / a_block;
  parting p = {.rows = rows, .rank = rank, .n = n, .part = m < n ? (float)((double)m / (double)n) : 2, .sample = s};
  fmm_status status;
  FMM_CHECK(FMM_ALLOCATE_ZERO(&p.before, blocks + 1, "blocks of picked points"));
  fmm_team_loop(blocks, 1, count_blocks, &p, threads);
  for (int64_t b = 0; b < blocks; b++) p.before[b + 1] += p.before[b];
  p.of = p.before[blocks];
  s->n = p.of < FMM_SAMPLE_MOST ? p.of : FMM_SAMPLE_MOST;
  p.each = s->n ? (double)p.of / (double)s->n : 1;
  FMM_CHECK(FMM_ALLOCATE(&s->rows, 3 * s->n, "sample of the points"));
  if (s->n) fmm_team_loop(blocks, 1, take_blocks, &p, threads);
done:
  FMM_FREE(&p.before);
  return status;
}

/* As they are picked. */
static fmm_status take_all(fmm_sample_set *s, const choice *c, int threads) {
  const uint64_t key = fmm_generate_key(1);
  s->n = c->m;
  FMM_TRY(FMM_ALLOCATE(&s->rows, 3 * s->n, "sample of the points"));
#pragma omp parallel for num_threads(threads) schedule(static) if (s->n > FMM_PARALLEL_MINIMUM)
  for (int64_t j = 0; j < s->n; j++) take_row(s, j, c->rows, row_of(c, key, j));
  return FMM_OK;
}

/* The first m of the named distribution. */
static fmm_status take_named(fmm_sample_set *s, const fmm_origin *o, int64_t m) {
  double *rows = NULL, *sorted = NULL;
  float *rank = NULL;
  fmm_bounds bounds;
  fmm_frame frame;
  fmm_status status;
  FMM_CHECK(FMM_ALLOCATE(&rows, 3 * m, "points of a distribution"));
  FMM_CHECK(fmm_generate_points(o->distribution, m, 1, rows, o->threads));
  const choice c = {rows, m, m};
  if (m <= FMM_SAMPLE_MOST) FMM_CHECK(take_all(s, &c, o->threads));
  else {
    FMM_CHECK(fmm_bounds_of(&bounds, m, rows, 0, NULL, o->threads));
    fmm_frame_place(&frame, &bounds, 1);
    FMM_CHECK(pick_and_sort(&c, &frame, o->threads, &sorted, &rank));
    FMM_CHECK(take(s, sorted, rank, m, m, o->threads));
  }
done:
  FMM_FREE(&rank);
  FMM_FREE(&sorted);
  FMM_FREE(&rows);
  return status;
}

fmm_status fmm_sample_pick(fmm_sample_picks *picks, const fmm_origin *o) {
  *picks = (fmm_sample_picks){0};
  for (int set = 0; set < 2 - o->same_points && !o->distribution; set++) {
    const choice c = {o->rows[set], o->n[set], o->n[set] < most_picked ? o->n[set] : most_picked};
    if (c.n <= FMM_SAMPLE_MOST) continue;
    FMM_TRY(pick_and_sort(&c, &o->frame, o->threads, &picks->rows[set], &picks->rank[set]));
    picks->n[set] = c.m;
  }
  return FMM_OK;
}

void fmm_sample_picks_free(fmm_sample_picks *picks) {
  for (int set = 0; set < 2; set++) {
    FMM_FREE(&picks->rows[set]);
    FMM_FREE(&picks->rank[set]);
  }
}

static fmm_status make_set(fmm_sample_set *s, const fmm_origin *o, int set, double divisor, const fmm_sample_picks *picks) {
  s->n_points = llround((double)o->n[set] / divisor);
  const int64_t m = s->n_points < most_picked ? s->n_points : most_picked;
  if (o->distribution) return take_named(s, o, m);
  if (picks && picks->n[set]) return take(s, picks->rows[set], picks->rank[set], picks->n[set], m, o->threads);
  return take_all(s, &(choice){o->rows[set], o->n[set], m}, o->threads);
}

fmm_status fmm_sample_make(fmm_sample *sample, const fmm_origin *o, double divisor, const fmm_sample_picks *picks) {
  *sample = (fmm_sample){0};
  const fmm_sample_set *s = sample->set;
  FMM_TRY(make_set(&sample->set[0], o, 0, divisor, picks));
  if (!o->same_points) FMM_TRY(make_set(&sample->set[1], o, 1, divisor, picks));
  return fmm_bounds_of(&sample->bounds, s[0].n, s[0].rows, s[1].n, s[1].rows, o->threads);
}

typedef struct keying { const fmm_frame *frame; const double *rows; uint64_t *keys; } keying;

static void make_keys(void *context, int64_t begin, int64_t end) {
  const keying *k = context;
  fmm_keys_of_rows(k->keys + begin, k->frame, end - begin, k->rows + 3 * begin, NULL);
}

static fmm_status sort_set(const fmm_sample_set *s, const fmm_frame *frame, uint64_t **keys, int threads) {
  uint64_t *scratch = NULL;
  fmm_status status;
  FMM_CHECK(FMM_ALLOCATE(keys, s->n, "Morton keys"));
  FMM_CHECK(FMM_ALLOCATE(&scratch, s->n, "scratch of the sort"));
  fmm_team_loop(s->n, FMM_PARALLEL_MINIMUM, make_keys, &(keying){frame, s->rows, *keys}, threads);
  FMM_CHECK(fmm_sort_keys(*keys, scratch, s->n, threads));
done:
  FMM_FREE(&scratch);
  return status;
}

fmm_status fmm_sample_sort(const fmm_sample *sample, const fmm_origin *o, double root_scale, fmm_sample_keys *keys) {
  const fmm_sample_set *s = sample->set;
  *keys = (fmm_sample_keys){.keys = {NULL}};
  fmm_status status = FMM_OK;
  fmm_frame_place(&keys->frame, &sample->bounds, root_scale);
  for (int k = 0; k < 2 - o->same_points && status == FMM_OK; k++) status = sort_set(&s[k], &keys->frame, &keys->keys[k], o->threads);
  if (status != FMM_OK) fmm_sample_keys_free(keys);
  return status;
}

void fmm_sample_keys_free(fmm_sample_keys *keys) {
  for (int k = 0; k < 2; k++) FMM_FREE(&keys->keys[k]);
}

void fmm_sample_free(fmm_sample *sample) {
  for (int k = 0; k < 2; k++) FMM_FREE(&sample->set[k].rows);
}

/* Entropy in bits of the points over the boxes of a level, and how many boxes there are. */
static double entropy(int64_t n, const uint64_t *keys, int level, int64_t *n_boxes) {
  const int shift = 3 * (FMM_KEY_LEVEL - level);
  double sum = 0;
  *n_boxes = 0;
  for (int64_t i = 0, end; i < n; i = end, ++*n_boxes) {
    for (end = i + 1; end < n && keys[end] >> shift == keys[i] >> shift;) end++;
    sum += (double)(end - i) * log2((double)(end - i));
  }
  return log2((double)n) - sum / (double)n;
}

int fmm_sample_dimension(const fmm_sample *sample, const fmm_sample_keys *keys) {
  const int larger = sample->set[1].n > sample->set[0].n;
  const fmm_sample_set *s = &sample->set[larger];
  double before = 0, growth = 3;
  for (int level = 1; level <= FMM_KEY_LEVEL && s->n; level++) {
    int64_t n_boxes;
    double bits = entropy(s->n, keys->keys[larger], level, &n_boxes);
    if (s->n < per_box * n_boxes) break;
    growth = bits - before, before = bits;
  }
  return growth > 2.5 ? 3 : growth > 1.5 ? 2 : 1;
}
