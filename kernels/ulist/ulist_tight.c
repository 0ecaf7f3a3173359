/* How much of U's work a GPU sums in double though the phase is in single: tiles whose points lie too near one another for float (pair_tight_cuda.cu, whose measure
 * needs the points; here it is foretold from counts). A pair at distance d in a box of half-width h errs by (1 + 2 h / d) roundings, so the share grows with the
 * sources that a target meets: on surfaces in proportion, since the nearest pairs weigh most there, in volumes as the cube root. The curves' forms were fitted to that measure over
 * Poisson points in boxes of a plane and of a volume, 8 to 512 points each, at tolerances from 2.5e-7 on; their scales to trees of 20,000 to 1,000,000 points at 1e-6: on
 * surfaces between an ellipsoid (less) and a sphere (more), both within 0.2 of the measure, volumes within 0.12. */
#include <math.h>

#include "runtime/counts.h"

static double surface_share(double sources, double tolerance) {
  const double half = 1.5e-9 * sources; /* at this tolerance 0.4 of the work is too tight */
  return 1 / (1 + 1.41 * pow(tolerance / half, 1.6));
}

static double volume_share(double sources, double tolerance) {
  const double x = tolerance / (3.2e-8 * cbrt(sources));
  return exp(-0.68 * x * x);
}

double fmm_tight_share(double dimension, double sources, double tolerance) {
  const double surface = 2.4, volume = 2.7; /* up to and from: surfaces are told as 2.1 to 2.4, volumes as 2.75 to 3 */
  if (!(tolerance > 0) || !(sources > 0)) return 0;
  const double part = fmin(1, fmax(0, (dimension - surface) / (volume - surface)));
  return (1 - part) * surface_share(sources, tolerance) + part * volume_share(sources, tolerance);
}

/* Bits by which it tells more to know a point's child than its box, where all children are leaves; 0: not such a box. */
static double gain(const fmm_tree *t, int32_t box, double *points) {
  double n = *points = (double)(t->source_end[box] - t->source_begin[box]), bits = 0;
  for (int32_t c = t->first_child[box]; c < t->first_child[box] + t->n_children[box]; c++) {
    const double m = (double)(t->source_end[c] - t->source_begin[c]);
    if (t->n_children[c]) return *points = 0;
    if (m > 0) bits += m * log2(n / m);
  }
  return n > 0 ? bits / n : 0;
}

/* Information dimension (Renyi 1959) of the sources at the scale of the leaves, over some thousand boxes of all. */
double fmm_dimension_at_leaves(const fmm_tree *t) {
  enum { most = 1 << 12 };
  double bits = 0, all = 0;
  const int32_t step = t->n_boxes / most + 1;
  for (int32_t box = 0; box < t->n_boxes; box += step) {
    double points = 0, g = t->n_children[box] ? gain(t, box, &points) : 0;
    bits += g * points, all += points;
  }
  return all > 0 ? bits / all : 3;
}
