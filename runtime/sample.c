/* Picking points, samples from these, thinned, and their sorts. */
#include "sample.h"

#include <math.h>
#include <string.h>

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "generate.h"
#include "kernels/simd.h"
#include "team_loop.h"

enum { most_picked = 1 << 19, a_block = 1 << 12, a_vector = 16 };

/* What a set is picked from: m of n rows, one at random from each of m equal stretches. */
typedef struct choice { const double *rows; int64_t n, m; } choice;

static int64_t row_of(const choice *c, uint64_t key, int64_t j) {
  if (c->m == c->n) return j;
  int64_t row = (int64_t)(((double)j + fmm_generate_fraction(key, j)) * ((double)c->n / (double)c->m));
  return row < c->n ? row : c->n - 1;
}

/* Points picked of a set as their keys, sorted, each with a random number below 1 of its own. */
typedef struct picking { const choice *from; const fmm_frame *frame; uint64_t *key; } picking;

static void make_keys_of_picks(void *context, int64_t begin, int64_t end) {
  enum { some = 256 };
  const picking *p = context;
  const uint64_t draw = fmm_generate_key(1);
  uint64_t row[some];
  for (int64_t b = begin; b < end; b += some) {
    const int64_t n = end - b < some ? end - b : some;
    for (int64_t i = 0; i < n; i++) row[i] = (uint64_t)row_of(p->from, draw, b + i);
    fmm_keys_of_rows(p->key + b, p->frame, n, p->from->rows, row);
  }
}

static void make_ranks(void *context, int64_t begin, int64_t end) {
  float *rank = context;
  const uint64_t draw = fmm_generate_key(2);
  for (int64_t i = begin; i < end; i++) rank[i] = (float)fmm_generate_fraction(draw, i);
}

/* Rows that are sorted, every so many-th; keys that have lost their lowest levels are taken for the middles of what is left, but in cells that are deep. */
typedef struct choosing { fmm_sorted_words from; const fmm_deep_cells *deep; int64_t n, m; uint64_t *key; } choosing;

static int64_t word_of(const choosing *c, int64_t j) { return (int64_t)(((double)j + 0.5) * ((double)c->n / (double)c->m)); }

static void take_keys_of_words(void *context, int64_t begin, int64_t end) {
  const choosing c = *(const choosing *)context;
  const uint64_t middle = c.from.dropped ? (uint64_t)7 << (c.from.dropped - 3) : 0;
  for (int64_t j = begin; j < end; j++) c.key[j] = (c.from.word[word_of(&c, j)] >> c.from.row_bits << c.from.dropped) + middle;
}

static void take_keys_of_deep_cells(void *context, int64_t begin, int64_t end) {
  const choosing *c = context;
  for (int64_t k = begin; k < end; k++) {
    const int64_t first = c->deep->begin[k], last = c->deep->end[k];
    int64_t j = (int64_t)((double)first * ((double)c->m / (double)c->n)); /* near it */
    while (j > 0 && word_of(c, j - 1) >= first) j--;
    while (j < c->m && word_of(c, j) < first) j++;
    for (; j < c->m && word_of(c, j) < last; j++) c->key[j] = c->deep->items[c->deep->first[k] + word_of(c, j) - first].key;
  }
}

static fmm_status make_all_ranks(int64_t m, int threads, float **rank) {
  FMM_TRY(FMM_ALLOCATE(rank, m, "ranks of picked points"));
  fmm_team_loop(m, FMM_PARALLEL_MINIMUM, make_ranks, *rank, threads);
  return FMM_OK;
}

static fmm_status pick_sorted(const fmm_sorted_words *words, const fmm_deep_cells *deep, int64_t n, int64_t m, int threads, uint64_t **key, float **rank) {
  FMM_TRY(FMM_ALLOCATE(key, m, "keys of picked points"));
  choosing c = {*words, deep, n, m, *key};
  fmm_team_loop(m, FMM_PARALLEL_MINIMUM, take_keys_of_words, &c, threads);
  fmm_team_loop(deep->n, FMM_PARALLEL_MINIMUM / 16, take_keys_of_deep_cells, &c, threads);
  return make_all_ranks(m, threads, rank);
}

static fmm_status pick_and_sort(const choice *c, const fmm_bounds *bounds, double root_scale, int threads, uint64_t **key, float **rank) {
  fmm_frame frame;
  picking p = {.from = c, .frame = &frame};
  uint64_t *scratch = NULL;
  fmm_status status;
  fmm_frame_place(&frame, bounds, root_scale);
  FMM_CHECK(FMM_ALLOCATE(key, c->m, "keys of picked points"));
  FMM_CHECK(FMM_ALLOCATE(&scratch, c->m, "scratch of the sort"));
  p.key = *key;
  fmm_team_loop(c->m, FMM_PARALLEL_MINIMUM, make_keys_of_picks, &p, threads);
  FMM_CHECK(fmm_sort_keys(*key, scratch, c->m, threads));
  FMM_FREE(&scratch); /* which serves again */
  FMM_CHECK(make_all_ranks(c->m, threads, rank));
done:
  FMM_FREE(&scratch);
  return status;
}

/* A part of what was picked, those of low rank, in blocks: how many before each. Of these, if they are too many, evenly the middle one of each of equal parts. */
typedef struct parting { const uint64_t *key; const float *rank; int64_t n, of, *before; float part; double each; fmm_sample_set *sample; } parting; /* each: of so many one is taken */

static int block_size(const parting *p, int64_t b) { return (int)(p->n - b * a_block < a_block ? p->n - b * a_block : a_block); }

static int count_low(const float *rank, int n, float part) {
  int n_low = 0;
  for (int k = 0; k < n; k++) n_low += rank[k] < part;
  return n_low;
}

/* Which of a block are in it, counted from the block's first; without a branch that nobody could foretell. Up to a vector more of `low` is written. */
static int list_low(const float *rank, int n, float part, int32_t *low) {
  int n_low = 0;
  for (int k = 0; k < n; k++) low[n_low] = k, n_low += rank[k] < part;
  return n_low;
}

#ifdef __x86_64__
FMM_TARGET_AVX512 static __mmask16 low_of(const float *rank, int left, float part) {
  const __mmask16 there = left < a_vector ? (__mmask16)((1u << left) - 1) : (__mmask16)0xffff;
  return _mm512_mask_cmp_ps_mask(there, _mm512_maskz_loadu_ps(there, rank), _mm512_set1_ps(part), _CMP_LT_OQ);
}

FMM_TARGET_AVX512 static int count_low_avx512(const float *rank, int n, float part) {
  int n_low = 0;
  for (int k = 0; k < n; k += a_vector) n_low += __builtin_popcount(low_of(rank + k, n - k, part));
  return n_low;
}

FMM_TARGET_AVX512 static int list_low_avx512(const float *rank, int n, float part, int32_t *low) {
  __m512i at = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  int n_low = 0;
  for (int k = 0; k < n; k += a_vector, at = _mm512_add_epi32(at, _mm512_set1_epi32(a_vector))) {
    const __mmask16 is_low = low_of(rank + k, n - k, part);
    _mm512_storeu_si512(low + n_low, _mm512_maskz_compress_epi32(is_low, at));
    n_low += __builtin_popcount(is_low);
  }
  return n_low;
}
#else
#define count_low_avx512 count_low
#define list_low_avx512 list_low
#endif

static void count_blocks(void *context, int64_t begin, int64_t end) {
  const parting *p = context;
  const int wide = fmm_simd_level() >= FMM_SIMD_AVX512;
  for (int64_t b = begin; b < end; b++) p->before[b + 1] = (wide ? count_low_avx512 : count_low)(p->rank + b * a_block, block_size(p, b), p->part);
}

/* Which one of the part the i-th of the sample is. */
static int64_t middle_of(const parting *p, int64_t i) { return (int64_t)(((double)i + 0.5) * p->each); }

static void take_blocks(void *context, int64_t begin, int64_t end) {
  const parting *p = context;
  const int wide = fmm_simd_level() >= FMM_SIMD_AVX512;
  int32_t low[a_block + a_vector];
  for (int64_t b = begin; b < end; b++) {
    const int64_t first = p->before[b], after = first + (wide ? list_low_avx512 : list_low)(p->rank + b * a_block, block_size(p, b), p->part, low);
    int64_t i = (int64_t)((double)first / p->each); /* near it */
    while (i > 0 && middle_of(p, i - 1) >= first) i--;
    while (middle_of(p, i) < first) i++;
    for (int64_t j = middle_of(p, i); i < p->sample->n && j < after; j = middle_of(p, ++i)) p->sample->key[i] = p->key[b * a_block + low[j - first]];
  }
}

/* Some m of the n picked. */
static fmm_status take(fmm_sample_set *s, const uint64_t *key, const float *rank, int64_t n, int64_t m, int threads) {
  const int64_t blocks = (n + a_block - 1) / a_block;
  parting p = {.key = key, .rank = rank, .n = n, .part = m < n ? (float)((double)m / (double)n) : 2, .sample = s};
  fmm_status status;
  FMM_CHECK(FMM_ALLOCATE_ZERO(&p.before, blocks + 1, "blocks of picked points"));
  fmm_team_loop(blocks, 1, count_blocks, &p, threads);
  for (int64_t b = 0; b < blocks; b++) p.before[b + 1] += p.before[b];
  p.of = p.before[blocks];
  s->n = p.of < FMM_SAMPLE_MOST ? p.of : FMM_SAMPLE_MOST;
  p.each = s->n ? (double)p.of / (double)s->n : 1;
  FMM_CHECK(FMM_ALLOCATE(&s->key, s->n, "sample of the points"));
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
  for (int64_t j = 0; j < s->n; j++) memcpy(s->rows + 3 * j, c->rows + 3 * row_of(c, key, j), 3 * sizeof *s->rows);
  return FMM_OK;
}

/* The first m of the named distribution. */
static fmm_status take_named(fmm_sample *sample, const fmm_origin *o, int64_t m) {
  fmm_sample_set *s = &sample->set[0];
  double *rows = NULL;
  uint64_t *key = NULL;
  float *rank = NULL;
  fmm_status status;
  FMM_CHECK(FMM_ALLOCATE(&rows, 3 * m, "points of a distribution"));
  FMM_CHECK(fmm_generate_points(o->distribution, m, 1, rows, o->threads));
  FMM_CHECK(fmm_bounds_of(&sample->bounds, m, rows, 0, NULL, o->threads));
  const choice c = {rows, m, m};
  if (m <= FMM_SAMPLE_MOST) FMM_CHECK(take_all(s, &c, o->threads));
  else {
    FMM_CHECK(pick_and_sort(&c, &sample->bounds, o->root_scale, o->threads, &key, &rank));
    FMM_CHECK(take(s, key, rank, m, m, o->threads));
  }
done:
  FMM_FREE(&rank);
  FMM_FREE(&key);
  FMM_FREE(&rows);
  return status;
}

fmm_status fmm_sample_pick(fmm_sample_picks *picks, const fmm_origin *o) {
  *picks = (fmm_sample_picks){0};
  for (int set = 0; set < 2 - o->same_points && !o->distribution; set++) {
    const choice c = {o->rows[set], o->n[set], o->n[set] < most_picked ? o->n[set] : most_picked};
    if (c.n <= FMM_SAMPLE_MOST) continue;
    if (o->sorted) FMM_TRY(pick_sorted(&o->sorted->set[set], &o->deep[set], c.n, c.m, o->threads, &picks->key[set], &picks->rank[set]));
    else FMM_TRY(pick_and_sort(&c, &o->bounds, o->root_scale, o->threads, &picks->key[set], &picks->rank[set]));
    picks->n[set] = c.m;
  }
  return FMM_OK;
}

void fmm_sample_picks_free(fmm_sample_picks *picks) {
  for (int set = 0; set < 2; set++) {
    FMM_FREE(&picks->key[set]);
    FMM_FREE(&picks->rank[set]);
  }
}

static fmm_status make_set(fmm_sample *sample, const fmm_origin *o, int set, double divisor, const fmm_sample_picks *picks) {
  fmm_sample_set *s = &sample->set[set];
  s->n_points = llround((double)o->n[set] / divisor);
  const int64_t m = s->n_points < most_picked ? s->n_points : most_picked;
  if (o->distribution) return take_named(sample, o, m);
  if (picks && picks->n[set]) return take(s, picks->key[set], picks->rank[set], picks->n[set], m, o->threads);
  return take_all(s, &(choice){o->rows[set], o->n[set], m}, o->threads);
}

fmm_status fmm_sample_make(fmm_sample *sample, const fmm_origin *o, double divisor, const fmm_sample_picks *picks) {
  *sample = (fmm_sample){.bounds = o->bounds};
  FMM_TRY(make_set(sample, o, 0, divisor, picks));
  return o->same_points ? FMM_OK : make_set(sample, o, 1, divisor, picks);
}

/* from: of the set's keys, where it has those. */
typedef struct keying { const fmm_frame *from, *frame; const fmm_sample_set *set; uint64_t *keys; } keying;

static void make_keys(void *context, int64_t begin, int64_t end) {
  enum { some = 256 };
  const keying *k = context;
  const fmm_sample_set *s = k->set;
  double middle[3 * some];
  if (s->rows) fmm_keys_of_rows(k->keys + begin, k->frame, end - begin, s->rows + 3 * begin, NULL);
  else
    for (int64_t b = begin; b < end; b += some) {
      const int64_t n = end - b < some ? end - b : some;
      fmm_rows_of_keys(middle, k->from, n, s->key + b);
      fmm_keys_of_rows(k->keys + b, k->frame, n, middle, NULL);
    }
}

static void copy_keys(void *context, int64_t begin, int64_t end) {
  const keying *k = context;
  memcpy(k->keys + begin, k->set->key + begin, (size_t)(end - begin) * sizeof *k->keys);
}

/* Keys for the origin's root scale are sorted already. */
static fmm_status sort_set(const fmm_sample_set *s, const fmm_frame *from, const fmm_frame *frame, uint64_t **keys, int threads) {
  uint64_t *scratch = NULL;
  fmm_status status;
  FMM_CHECK(FMM_ALLOCATE(keys, s->n, "Morton keys"));
  keying k = {from, frame, s, *keys};
  if (s->key && from->side == frame->side) {
    fmm_team_loop(s->n, FMM_PARALLEL_MINIMUM, copy_keys, &k, threads);
    return FMM_OK;
  }
  FMM_CHECK(FMM_ALLOCATE(&scratch, s->n, "scratch of the sort"));
  fmm_team_loop(s->n, FMM_PARALLEL_MINIMUM, make_keys, &k, threads);
  FMM_CHECK(fmm_sort_keys(*keys, scratch, s->n, threads));
done:
  FMM_FREE(&scratch);
  return status;
}

fmm_status fmm_sample_sort(const fmm_sample *sample, const fmm_origin *o, double root_scale, fmm_sample_keys *keys) {
  const fmm_sample_set *s = sample->set;
  fmm_frame from;
  *keys = (fmm_sample_keys){.keys = {NULL}};
  fmm_status status = FMM_OK;
  fmm_frame_place(&from, &sample->bounds, o->root_scale);
  fmm_frame_place(&keys->frame, &sample->bounds, root_scale);
  for (int k = 0; k < 2 - o->same_points && status == FMM_OK; k++) status = sort_set(&s[k], &from, &keys->frame, &keys->keys[k], o->threads);
  if (status != FMM_OK) fmm_sample_keys_free(keys);
  return status;
}

void fmm_sample_keys_free(fmm_sample_keys *keys) {
  for (int k = 0; k < 2; k++) FMM_FREE(&keys->keys[k]);
}

void fmm_sample_free(fmm_sample *sample) {
  for (int k = 0; k < 2; k++) {
    FMM_FREE(&sample->set[k].rows);
    FMM_FREE(&sample->set[k].key);
  }
}
