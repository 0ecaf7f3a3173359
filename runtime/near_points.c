/* See near_points.h. In scaled coordinates (points.h), of which the extent is about 1, two coordinates that differ, but by less than 1.5e-154, whose square is below the least normal number, are both below 1e-138,
 * as doubles are that far apart above. So a pair that is too near has on each axis either equal coordinates or two that are small. Where some coordinate is small and not zero, points with small ones are sorted by their places with small
 * coordinates taken as zero; in a group of one place they are sorted again by small coordinates cut off to multiples of a quantum of twice the least distance, and that eight times, with the cuts moved by a half of it or
 * not along each axis: two that are too near are not cut apart each time. */
#include "near_points.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "points.h"

enum { SMALL = -458 /* powers of two: coordinates */, QUANTUM = -509 /* 6e-154 */ };

typedef struct point { uint64_t key[3]; double at[3]; const double *given; int64_t row; int is_target; } point;

static int by_key(const void *a, const void *b) {
  const point *p = a, *q = b;
  for (int k = 0; k < 3; k++)
    if (p->key[k] != q->key[k]) return p->key[k] < q->key[k] ? -1 : 1;
  if (p->is_target != q->is_target) return p->is_target - q->is_target;
  return p->row < q->row ? -1 : p->row > q->row;
}

static int is_small(double x) { return fabs(x) < ldexp(1, SMALL); }

/* Of a coordinate that is not small its bits, which are more than the other keys. cut: by a quantum, or else small ones are alike. */
static uint64_t key_of(double x, int cut, int moved) {
  uint64_t bits;
  if (!is_small(x)) return memcpy(&bits, &x, sizeof bits), bits;
  return cut ? (uint64_t)((int64_t)1 << 52) + (uint64_t)(int64_t)floor(ldexp(x, -QUANTUM) + 0.5 * moved) : 0;
}

static void sort(point *p, int64_t n, int cut, int moved) {
  for (int64_t i = 0; i < n; i++)
    for (int k = 0; k < 3; k++) p[i].key[k] = key_of(p[i].at[k], cut, moved >> k & 1);
  qsort(p, (size_t)n, sizeof *p, by_key);
}

static int64_t end_of_group(const point *p, int64_t begin, int64_t n) {
  int64_t end = begin + 1;
  while (end < n && !memcmp(p[end].key, p[begin].key, sizeof p->key)) end++;
  return end;
}

static int are_apart(const point *a, const point *b) { return a->given[0] != b->given[0] || a->given[1] != b->given[1] || a->given[2] != b->given[2]; }

/* The first of a group that is not where `from` is, from place `begin` on; -1: none. */
static int64_t find_apart(const point *p, int64_t begin, int64_t n, const point *from) {
  for (int64_t i = begin; i < n; i++)
    if (are_apart(&p[i], from)) return i;
  return -1;
}

/* Two of a group that are not at one place, of two sets a source and a target (sources come first); whether there are. */
static int find_pair(const point *p, int64_t n, int same, point pair[2]) {
  int64_t targets = 0, one = 0;
  while (!same && targets < n && !p[targets].is_target) targets++;
  if (!same && (targets == 0 || targets == n)) return 0;
  int64_t other = find_apart(p, targets, n, &p[0]);
  if (other < 0) one = find_apart(p, 0, n, &p[0]), other = targets; /* all targets are where the first source is */
  if (one < 0) return 0;
  pair[0] = p[one], pair[1] = p[other];
  return 1;
}

static int find_near(point *p, int64_t n, int same, point pair[2]) {
  for (int moved = 0; moved < 8; moved++) {
    sort(p, n, 1, moved);
    for (int64_t i = 0, end; i < n; i = end) {
      end = end_of_group(p, i, n);
      if (end - i > 1 && find_pair(p + i, end - i, same, pair)) return 1;
    }
  }
  return 0;
}

/* Of one set: how many have a small coordinate, and these into `to` unless it is NULL. */
static int64_t take(const fmm_frame *frame, int64_t n, const double *rows, int is_target, point *to) {
  int64_t taken = 0;
  for (int64_t i = 0; i < n; i++) {
    point p = {.given = rows + 3 * i, .row = i, .is_target = is_target};
    for (int k = 0; k < 3; k++) p.at[k] = fmm_frame_scaled(frame, p.given[k], k);
    if (!is_small(p.at[0]) && !is_small(p.at[1]) && !is_small(p.at[2])) continue;
    if (to) to[taken] = p;
    taken++;
  }
  return taken;
}

static fmm_status refuse(const point pair[2], int same, double extent) {
  const char *first = pair[0].is_target ? "target" : "source", *second = pair[1].is_target ? "target" : "source";
  double squares = 0, most = 0;
  for (int k = 0; k < 3; k++) most = fmax(most, fabs(pair[0].given[k] - pair[1].given[k]));
  for (int k = 0; k < 3; k++) squares += pow((pair[0].given[k] - pair[1].given[k]) / most, 2);
  return FMM_FAIL(FMM_ERR_INPUT, "%s row %lld and %s row %lld (from 0) are %.3g apart, less than 1e-153 of the extent of all points, %.3g: the square of their distance is beyond double precision beside it; look for a coordinate that lies far out (a mark for a missing value?), or leave points that far apart to sums of their own",
                  same ? "source" : first, (long long)pair[0].row, same ? "source" : second, (long long)pair[1].row, most * sqrt(squares), extent);
}

fmm_status fmm_near_points_check(const fmm_bounds *bounds, int64_t n_sources, const double *sources, int64_t n_targets, const double *targets) {
  fmm_frame frame;
  fmm_frame_place(&frame, bounds, 1);
  if (frame.coincident || !(bounds->least * frame.scale < ldexp(1, SMALL))) return FMM_OK;
  const int64_t n = take(&frame, n_sources, sources, 0, NULL) + (targets ? take(&frame, n_targets, targets, 1, NULL) : 0);
  const int same = !targets;
  point *p = NULL, pair[2];
  double extent = 0;
  int found = 0;
  FMM_TRY(FMM_ALLOCATE(&p, n, "points near others"));
  const int64_t taken = take(&frame, n_sources, sources, 0, p);
  if (targets) take(&frame, n_targets, targets, 1, p + taken);
  sort(p, n, 0, 0);
  for (int64_t i = 0, end; i < n && !found; i = end) {
    end = end_of_group(p, i, n);
    found = end - i > 1 && find_near(p + i, end - i, same, pair);
  }
  FMM_FREE(&p);
  for (int k = 0; k < 3; k++) extent = fmax(extent, bounds->hi[k] - bounds->lo[k]);
  return found ? refuse(pair, same, extent) : FMM_OK;
}
