/* See time_shares.h. Between two of the moments at which anything begins or ends, a piece, the same works are under way. Works of a set have at least the pieces in which no other is under way, which are some
 * multiple of what is foretold for them together. The set of the largest multiple cannot have less: each of its works has that multiple of its own time, by the theorem of the largest flow and the least cut
 * (Ford and Fulkerson 1956), and all other pieces are shared out among the works that are left, in the same way. */
#include "time_shares.h"

#include <math.h>

typedef struct piece { double length; unsigned works; } piece; /* a bit a work */
typedef struct pieces { int n; piece of[2 * FMM_MOST_UNDER_WAY]; } pieces;

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

static unsigned works_during(int n, const fmm_under_way *work, double begin, double end) {
  unsigned works = 0;
  for (int i = 0; i < n; i++)
    if (work[i].begin <= begin && work[i].end >= end) works |= 1u << i;
  return works;
}

static const double least = 1e-200; /* that is foretold: quotients by it are numbers */

static double foretold_of(int n, const fmm_under_way *work, unsigned works) {
  double sum = 0;
  for (int i = 0; i < n; i++)
    if (works & 1u << i) sum += work[i].foretold > least ? work[i].foretold : INFINITY;
  return sum;
}

static void share_equally(int n, piece p, double *share) {
  int together = 0;
  for (int i = 0; i < n; i++) together += p.works >> i & 1;
  for (int i = 0; i < n; i++)
    if (p.works & 1u << i) share[i] += p.length / together;
}

/* In which nothing but these is under way. */
static double length_of(const pieces *p, unsigned works) {
  double sum = 0;
  for (int k = 0; k < p->n; k++)
    if (p->of[k].works && !(p->of[k].works & ~works)) sum += p->of[k].length;
  return sum;
}

/* The works among these that have most for what is foretold. */
static unsigned longest(int n, const fmm_under_way *work, const pieces *p, unsigned among, double *multiple) {
  unsigned found = among;
  *multiple = 0;
  for (unsigned works = among; works; works = (works - 1) & among) {
    const double here = length_of(p, works) / foretold_of(n, work, works);
    if (here > *multiple) *multiple = here, found = works;
  }
  return found;
}

static void share_as_foretold(int n, const fmm_under_way *work, pieces *p, double *share) {
  unsigned left = 0, done;
  double multiple;
  for (int k = 0; k < p->n; k++) left |= p->of[k].works;
  for (; left; left &= ~done) {
    done = longest(n, work, p, left, &multiple);
    for (int i = 0; i < n; i++)
      if (done & 1u << i) share[i] += multiple * work[i].foretold;
    for (int k = 0; k < p->n; k++) p->of[k].works &= ~done;
  }
}

void fmm_time_shares(int n, const fmm_under_way *work, double *share) {
  pieces foretold = {0};
  for (int i = 0; i < n; i++) share[i] = 0;
  for (double now = next_moment(n, work, -INFINITY), next; (next = next_moment(n, work, now)) < INFINITY; now = next) {
    const piece here = {next - now, works_during(n, work, now, next)};
    if (foretold_of(n, work, here.works) < INFINITY) foretold.of[foretold.n++] = here;
    else share_equally(n, here, share);
  }
  share_as_foretold(n, work, &foretold, share);
}
