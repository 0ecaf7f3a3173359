/* Input row order <-> sorted order of densities and results, with what has to be looked at and cleared on the way, in one parallel region before the
 * phases and one after them: a team that sleeps takes some 30 microseconds to wake (16 cores), which in small evaluations is more than the work.
 * Merged points: densities are summed in ascending row order, results copied. */
#include <math.h>
#include <string.h>

#include "tree.h"

enum { AHEAD = 64, PART = 128 }; /* points that a thread looks at or delivers at once */

static int64_t parts_of(const fmm_points *p) { return (p->n + PART - 1) / PART; }
static int64_t end_of(const fmm_points *p, int64_t part) { return (part + 1) * PART < p->n ? (part + 1) * PART : p->n; }

static int64_t first_row(const fmm_points *p, int64_t i) { return p->first ? p->first[i] : i; }

static void gather_point(const fmm_points *p, int64_t i, int n_planes, const double *input, double *planes) {
  const int64_t begin = first_row(p, i), end = first_row(p, i + 1);
  for (int k = 0; k < n_planes; k++) {
    double sum = input[(int64_t)p->input_row[begin] * n_planes + k];
    for (int64_t j = begin + 1; j < end; j++) sum += input[(int64_t)p->input_row[j] * n_planes + k];
    planes[(int64_t)k * p->n + i] = sum;
  }
}

/* The points of one part. A loop of two loads and a store, where that will do, has more of the misses under way at once. */
static void gather_part(const fmm_points *p, int64_t from, int64_t to, int n_planes, const double *restrict input, double *restrict planes) {
  const uint32_t *restrict row = p->input_row;
  if (n_planes == 1 && !p->first)
    for (int64_t i = from; i < to; i++) planes[i] = input[row[i]];
  else
    for (int64_t i = from; i < to; i++) gather_point(p, i, n_planes, input, planes);
}

/* As an integer, whose order is that of magnitudes; what is not finite is above all that is. */
static int64_t magnitude(double value) {
  int64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits & INT64_MAX;
}

/* Densities are looked at in the order of the input, which brings them into the caches, in whose order they are not gathered. */
double fmm_gather_densities(const fmm_points *p, int n_planes, const double *input, double *planes, int n_cleared, const fmm_planes *cleared, int threads) {
  const int64_t n_values = p->n_input * n_planes;
  int64_t work = n_values, most = 0;
  for (int c = 0; c < n_cleared; c++) work += cleared[c].n_planes * cleared[c].n;
#pragma omp parallel num_threads(threads) reduction(max : most) if (work > FMM_PARALLEL_MINIMUM)
  {
    for (int c = 0; c < n_cleared; c++)
      for (int64_t plane = 0; plane < cleared[c].n_planes; plane++) {
#pragma omp for schedule(static) nowait
        for (int64_t i = 0; i < cleared[c].n; i++) cleared[c].values[plane * cleared[c].n + i] = 0;
      }
#pragma omp for schedule(static) nowait
    for (int64_t i = 0; i < n_values; i++) most = magnitude(input[i]) > most ? magnitude(input[i]) : most;
#pragma omp for schedule(static) nowait
    for (int64_t part = 0; part < parts_of(p); part++) gather_part(p, part * PART, end_of(p, part), n_planes, input, planes);
  }
  double largest;
  memcpy(&largest, &most, sizeof largest);
  return largest;
}

/* By integers, of which two at once are looked at on any processor: one more in the exponent carries into the sign where a value is not finite. */
static int any_overflows(double factor, const double *values, int64_t n) {
  const uint64_t one = (uint64_t)1 << 52;
  uint64_t carries = 0;
  for (int64_t i = 0; i < n; i++) carries |= (uint64_t)magnitude(factor * values[i]) + one;
  return (int)(carries >> 63);
}

/* First of begin .. end - 1 with a value that is not finite, else end. */
static int64_t first_overflow(const fmm_delivery *d, int64_t begin, int64_t end) {
  const double factor = d->factor;
  int64_t bad = end;
  for (int k = 0; k < d->n_planes; k++) {
    const double *plane = d->planes[k];
    if (!any_overflows(factor, plane + begin, bad - begin)) continue;
    for (int64_t i = begin; i < bad; i++)
      if (!isfinite(factor * plane[i])) bad = i;
  }
  return bad;
}

/* Of points that no rows share, with n values each; inlined, so that n is a constant where it is one. A store that waits for its line holds up all that follow: lines are asked for
 * ahead. */
static inline __attribute__((always_inline)) void scatter_rows(const fmm_points *p, const fmm_delivery *d, int n, int64_t from, int64_t to) {
  const uint32_t *restrict row = p->input_row;
  const double factor = d->factor;
  double *restrict output = d->output;
  for (int64_t i = from; i < to; i++) {
    const double *later = &output[row[i + AHEAD < p->n ? i + AHEAD : i] * n];
    __builtin_prefetch(later, 1);
    if (n > 1) __builtin_prefetch(later + n - 1, 1); /* one row in four of three values is on two lines */
    for (int k = 0; k < n; k++) output[row[i] * n + k] = factor * d->planes[k][i];
  }
}

static void scatter_merged(const fmm_points *p, const fmm_delivery *d, int64_t from, int64_t to) {
  const int n = d->n_planes;
  for (int64_t i = from; i < to; i++)
    for (int64_t j = p->first[i]; j < p->first[i + 1]; j++)
      for (int k = 0; k < n; k++) d->output[(int64_t)p->input_row[j] * n + k] = d->factor * d->planes[k][i];
}

static void scatter_part(const fmm_points *p, const fmm_delivery *d, int64_t from, int64_t to) {
  if (p->first) scatter_merged(p, d, from, to);
  else if (d->n_planes == 1) scatter_rows(p, d, 1, from, to);
  else if (d->n_planes == 3) scatter_rows(p, d, 3, from, to);
  else scatter_rows(p, d, d->n_planes, from, to);
}

int64_t fmm_scatter_results(const fmm_points *p, int n, const fmm_delivery *deliveries, int threads) {
  int64_t bad = p->n;
#pragma omp parallel num_threads(threads) if (p->n > FMM_PARALLEL_MINIMUM)
  {
#pragma omp for schedule(static) reduction(min : bad)
    for (int64_t part = 0; part < parts_of(p); part++)
      for (int d = 0; d < n; d++) {
        const int64_t end = end_of(p, part), first = first_overflow(&deliveries[d], part * PART, end);
        if (first < end && first < bad) bad = first;
      }
    if (bad == p->n) {
#pragma omp for schedule(static) nowait
      for (int64_t part = 0; part < parts_of(p); part++)
        for (int d = 0; d < n; d++) scatter_part(p, &deliveries[d], part * PART, end_of(p, part));
    }
  }
  return bad < p->n ? bad : -1;
}
