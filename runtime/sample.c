/* Picking, thinning and sorting samples, and the dimension of what they fill. */
#include "sample.h"

#include <math.h>

#include "generate.h"

enum { most_picked = 1 << 19, per_box = 8 };

/* m of the set's points at random: one from each of m equal stretches of rows, or the first m of the named distribution. */
static fmm_status pick(const fmm_origin *o, int set, int64_t m, double *rows) {
  if (o->distribution) return fmm_generate_points(o->distribution, m, 1, rows, o->threads);
  double *place = NULL; /* in its stretch */
  const double stretch = m ? (double)o->n[set] / (double)m : 1;
  FMM_TRY(FMM_ALLOCATE(&place, m, "places of sampled points"));
  fmm_status status = fmm_generate_densities("unit", m, 1, place, o->threads);
#pragma omp parallel for num_threads(o->threads) schedule(static) if (status == FMM_OK && m > FMM_PARALLEL_MINIMUM)
  for (int64_t j = 0; j < (status == FMM_OK ? m : 0); j++) {
    int64_t row = m == o->n[set] ? j : (int64_t)(((double)j + place[j]) * stretch);
    if (row >= o->n[set]) row = o->n[set] - 1;
    for (int a = 0; a < 3; a++) rows[3 * j + a] = o->rows[set][3 * row + a];
  }
  FMM_FREE(&place);
  return status;
}

/* Keeps rows evenly spaced in Morton order, the middle one of each of n equal parts, and puts them in place of all. */
static fmm_status thin(fmm_sample_set *s, int64_t n, int threads) {
  fmm_frame frame;
  int64_t *order = NULL;
  double *kept = NULL;
  fmm_status status;
  FMM_CHECK(fmm_frame_make(&frame, s->n, s->rows, 0, NULL, 1, threads));
  FMM_CHECK(fmm_points_order(&order, &frame, s->n, s->rows, threads));
  FMM_CHECK(FMM_ALLOCATE(&kept, 3 * n, "sample of the points"));
#pragma omp parallel for num_threads(threads) schedule(static) if (n > FMM_PARALLEL_MINIMUM)
  for (int64_t i = 0; i < n; i++) {
    int64_t row = order[(int64_t)(((double)i + 0.5) * (double)s->n / (double)n)];
    for (int a = 0; a < 3; a++) kept[3 * i + a] = s->rows[3 * row + a];
  }
  FMM_FREE(&s->rows);
  s->rows = kept, s->n = n;
done:
  FMM_FREE(&order);
  return status;
}

static fmm_status make_set(fmm_sample_set *s, const fmm_origin *o, int set, double divisor) {
  s->n_points = llround((double)o->n[set] / divisor);
  s->n = s->n_points < most_picked ? s->n_points : most_picked;
  FMM_TRY(FMM_ALLOCATE(&s->rows, 3 * s->n, "sample of the points"));
  FMM_TRY(pick(o, set, s->n, s->rows));
  return s->n > FMM_SAMPLE_MOST ? thin(s, FMM_SAMPLE_MOST, o->threads) : FMM_OK;
}

fmm_status fmm_sample_make(fmm_sample *sample, const fmm_origin *o, double divisor) {
  *sample = (fmm_sample){0};
  FMM_TRY(make_set(&sample->set[0], o, 0, divisor));
  return o->same_points ? FMM_OK : make_set(&sample->set[1], o, 1, divisor);
}

fmm_status fmm_sample_sort(fmm_sample *sample, const fmm_origin *o, double root_scale) {
  fmm_sample_set *s = sample->set;
  if (sample->root_scale == root_scale) return FMM_OK;
  sample->root_scale = 0;
  FMM_TRY(fmm_frame_make(&sample->frame, s[0].n, s[0].rows, s[1].n, s[1].rows, root_scale, o->threads));
  for (int k = 0; k < 2 - o->same_points; k++) {
    FMM_FREE(&s[k].keys);
    FMM_TRY(fmm_points_keys(&s[k].keys, &sample->frame, s[k].n, s[k].rows, o->threads));
  }
  sample->root_scale = root_scale;
  return FMM_OK;
}

void fmm_sample_free(fmm_sample *sample) {
  for (int k = 0; k < 2; k++) {
    FMM_FREE(&sample->set[k].rows);
    FMM_FREE(&sample->set[k].keys);
  }
  sample->root_scale = 0;
}

/* Entropy in bits of the points over the boxes of a level, and how many boxes there are. */
static double entropy(const fmm_sample_set *s, int level, int64_t *n_boxes) {
  const int shift = 3 * (FMM_KEY_LEVEL - level);
  double sum = 0;
  *n_boxes = 0;
  for (int64_t i = 0, end; i < s->n; i = end, ++*n_boxes) {
    for (end = i + 1; end < s->n && s->keys[end] >> shift == s->keys[i] >> shift;) end++;
    sum += (double)(end - i) * log2((double)(end - i));
  }
  return log2((double)s->n) - sum / (double)s->n;
}

int fmm_sample_dimension(const fmm_sample *sample) {
  const fmm_sample_set *s = sample->set[0].n >= sample->set[1].n ? &sample->set[0] : &sample->set[1];
  double before = 0, growth = 3;
  for (int level = 1; level <= FMM_KEY_LEVEL && s->n; level++) {
    int64_t n_boxes;
    double bits = entropy(s, level, &n_boxes);
    if (s->n < per_box * n_boxes) break;
    growth = bits - before, before = bits;
  }
  return growth > 2.5 ? 3 : growth > 1.5 ? 2 : 1;
}
