/* Evenly spaced points told from random ones (regular_points.h). */
#include "regular_points.h"

#include <math.h>

enum { NEIGHBOURS = FMM_NEIGHBOURS };

/* Between 0.50 of random points, whose mean over the samples varies by 0.02, and 0.65 of moved lattices, by 0.01. */
static const double least_ratio = 0.58;

/* Whether the six lie in pairs at one, two and three steps. */
static int is_on_curve(const fmm_point_sample *s) {
  const double alike = 0.64 /* of squares */, off = 0.2, step = sqrt(s->square[0]);
  for (int pair = 0; pair < NEIGHBOURS / 2; pair++) {
    if (!(s->square[2 * pair] >= alike * s->square[2 * pair + 1])) return 0;
    if (!(fabs(sqrt(s->square[2 * pair]) / ((pair + 1) * step) - 1) <= off)) return 0;
  }
  return 1;
}

fmm_regularity fmm_points_regularity(const fmm_point_samples *s) {
  double sum = 0;
  int found = 0, on_curves = 0;
  for (int k = 0; k < s->n; k++) {
    const double *square = s->sample[k].square;
    if (!isfinite(square[NEIGHBOURS - 1])) continue; /* fewer different places than that, or too far apart for squares */
    sum += sqrt(square[0] / square[NEIGHBOURS - 1]);
    on_curves += is_on_curve(&s->sample[k]);
    found++;
  }
  if (found == 0) return FMM_POINTS_IRREGULAR;
  return sum >= least_ratio * found ? FMM_POINTS_ON_LATTICE : 2 * on_curves >= found ? FMM_POINTS_ON_CURVES : FMM_POINTS_IRREGULAR;
}
