/* Picking, thinning and sorting samples, and the dimension of what they fill. */
#include "sample.h"

#include <math.h>

#include "generate.h"

enum { most_picked = 1 << 19, per_box = 8 };

/* What a set is picked from: m of n rows, one at random from each of m equal stretches. */
typedef struct choice { const double *rows; int64_t n, m; } choice;

static int64_t row_of(const choice *c, int64_t j) {
  if (c->m == c->n) return j;
  int64_t row = (int64_t)(((double)j + fmm_generate_fraction(j, 1)) * ((double)c->n / (double)c->m));
  return row < c->n ? row : c->n - 1;
}

static void take_row(fmm_sample_set *s, int64_t i, const choice *from, int64_t row) {
  for (int a = 0; a < 3; a++) s->rows[3 * i + a] = from->rows[3 * row + a];
}

/* Rows evenly spaced in Morton order, the middle one of each of s->n equal parts of those picked. */
static fmm_status thin(fmm_sample_set *s, const choice *c, const fmm_frame *frame, int threads) {
  fmm_sort_item *items = NULL, *scratch = NULL;
  fmm_status status;
  FMM_CHECK(FMM_ALLOCATE(&items, c->m, "picked points"));
  FMM_CHECK(FMM_ALLOCATE(&scratch, c->m, "scratch of the sort"));
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t j = 0; j < c->m; j++) items[j].row = (uint64_t)row_of(c, j);
  FMM_CHECK(fmm_points_sort_items(items, scratch, frame, c->m, c->rows, threads));
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t i = 0; i < s->n; i++) take_row(s, i, c, (int64_t)items[(int64_t)(((double)i + 0.5) * (double)c->m / (double)s->n)].row);
done:
  FMM_FREE(&items);
  FMM_FREE(&scratch);
  return status;
}

static fmm_status pick(fmm_sample_set *s, const choice *c, const fmm_frame *frame, int threads) {
  s->n = c->m < FMM_SAMPLE_MOST ? c->m : FMM_SAMPLE_MOST;
  FMM_TRY(FMM_ALLOCATE(&s->rows, 3 * s->n, "sample of the points"));
  if (s->n < c->m) return thin(s, c, frame, threads);
#pragma omp parallel for num_threads(threads) schedule(static) if (s->n > FMM_PARALLEL_MINIMUM)
  for (int64_t j = 0; j < s->n; j++) take_row(s, j, c, row_of(c, j));
  return FMM_OK;
}

/* The first m of the named distribution. */
static fmm_status pick_named(fmm_sample_set *s, const fmm_origin *o, int64_t m) {
  double *rows = NULL;
  fmm_frame frame;
  fmm_status status;
  FMM_CHECK(FMM_ALLOCATE(&rows, 3 * m, "points of a distribution"));
  FMM_CHECK(fmm_generate_points(o->distribution, m, 1, rows, o->threads));
  FMM_CHECK(fmm_frame_make(&frame, m, rows, 0, NULL, 1, o->threads));
  FMM_CHECK(pick(s, &(choice){rows, m, m}, &frame, o->threads));
done:
  FMM_FREE(&rows);
  return status;
}

static fmm_status make_set(fmm_sample_set *s, const fmm_origin *o, int set, double divisor) {
  s->n_points = llround((double)o->n[set] / divisor);
  const int64_t m = s->n_points < most_picked ? s->n_points : most_picked;
  return o->distribution ? pick_named(s, o, m) : pick(s, &(choice){o->rows[set], o->n[set], m}, &o->frame, o->threads);
}

fmm_status fmm_sample_make(fmm_sample *sample, const fmm_origin *o, double divisor) {
  *sample = (fmm_sample){0};
  FMM_TRY(make_set(&sample->set[0], o, 0, divisor));
  return o->same_points ? FMM_OK : make_set(&sample->set[1], o, 1, divisor);
}

static fmm_status sort_set(const fmm_sample_set *s, const fmm_frame *frame, uint64_t **keys, int threads) {
  fmm_sort_item *items = NULL, *scratch = NULL;
  fmm_status status;
  FMM_CHECK(FMM_ALLOCATE(&items, s->n, "keys to sort"));
  FMM_CHECK(FMM_ALLOCATE(&scratch, s->n, "scratch of the sort"));
  FMM_CHECK(FMM_ALLOCATE(keys, s->n, "Morton keys"));
  for (int64_t i = 0; i < s->n; i++) items[i].row = (uint64_t)i;
  FMM_CHECK(fmm_points_sort_items(items, scratch, frame, s->n, s->rows, threads));
  for (int64_t i = 0; i < s->n; i++) (*keys)[i] = items[i].key;
done:
  FMM_FREE(&items);
  FMM_FREE(&scratch);
  return status;
}

fmm_status fmm_sample_sort(const fmm_sample *sample, const fmm_origin *o, double root_scale, fmm_sample_keys *keys) {
  const fmm_sample_set *s = sample->set;
  *keys = (fmm_sample_keys){.keys = {NULL}};
  fmm_status status = fmm_frame_make(&keys->frame, s[0].n, s[0].rows, s[1].n, s[1].rows, root_scale, o->threads);
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
