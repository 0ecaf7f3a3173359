/* See time_shares.h. Between two of the moments at which anything begins or ends the same works are under way. */
#include "time_shares.h"

#include <math.h>

static int is_during(const fmm_under_way *w, double begin, double end) { return w->begin <= begin && w->end >= end; }

/* The first moment after this one; INFINITY: none. */
static double next_moment(int n, const fmm_under_way *work, double now) {
  double next = INFINITY;
  for (int i = 0; i < n; i++) {
    if (!(work[i].end > work[i].begin)) continue;
    if (work[i].begin > now) next = fmin(next, work[i].begin);
    if (work[i].end > now) next = fmin(next, work[i].end);
  }
  return next;
}

static void share_out(int n, const fmm_under_way *work, double begin, double end, double *share) {
  double foretold = 0;
  int together = 0, all_foretold = 1;
  for (int i = 0; i < n; i++)
    if (is_during(&work[i], begin, end)) together++, foretold += work[i].foretold, all_foretold &= work[i].foretold > 0 && work[i].foretold < INFINITY;
  for (int i = 0; i < n; i++)
    if (is_during(&work[i], begin, end)) share[i] += (end - begin) * (all_foretold ? work[i].foretold / foretold : 1.0 / together);
}

void fmm_time_shares(int n, const fmm_under_way *work, double *share) {
  for (int i = 0; i < n; i++) share[i] = 0;
  for (double now = next_moment(n, work, -INFINITY), next; (next = next_moment(n, work, now)) < INFINITY; now = next) share_out(n, work, now, next, share);
}
