/* How much of U's work a GPU sums in double though the phase is in single: tiles of targets whose points lie too near one another for float. pair_tight_cuda.cu
 * measures that by the points; here it is foretold from counts, before there are tiles. A pair at distance d in a box of half-width h errs by (1 + 2 h / d)
 * roundings, and values go as 1/d. So a tile's squared errors are a sum over its pairs of 4 h^2 / d^4, 4 h / d^3 and 1 / d^2.
 *
 * Where N(d) = density x v d^D sources are nearer to a target than d, the first term, without a mean, has a one-sided stable law of index D/4, which is drawn from
 * (Kanter, Ann. Probab. 3 (1975) 697); a pair within the tile comes twice, once from either end. The others, and the values, are their integrals, from the distance that one
 * pair of the tile (of all tiles) has to that within which lie all sources met. The density at a leaf is the mean over the sources that it meets of what their boxes
 * tell, with more weight to full boxes; by how much it varies within a leaf is told by the points' keys (runtime/filling.h), which tell all of it where there is one
 * leaf. Some hundred leaves stand for all. Their tiles, cut as the GPU cuts them, are marked as there: largest errors first, until the rest is within a
 * quarter of the tolerance.
 *
 * How near it comes to the measure, at 1e-6 to 1e-5, in half of the cases, in nine of ten and at worst: 356 trees of uniform points, ellipsoid, Plummer's model and sphere (5,000 to 1,000,000
 * points, leaves of 32 to 1,000 and direct sums, root scales 1 and 1.3), to which the numbers here were chosen: 0.02, 0.06, 0.16; 112 others of these, with other points, numbers, leaf sizes and root scales:
 * 0.02, 0.08, 0.21; 72 of a torus, a plane, a Gaussian cloud and 64 spheres: 0.02, 0.11, 0.49. Of the 112: sphere 0.02, 0.05, 0.09; uniform 0.01, 0.03, 0.04; Plummer 0.02, 0.04, 0.04; ellipsoid 0.03,
 * 0.08, 0.20, too large by 0.03 in the mean, as few tiles at its poles hold most of the values; direct sums 0.06, 0.12, 0.21. The 0.49: 64 spheres of 78 points each, which seem a volume.
 * At 3e-7, below what plans allow single for, volumes are foretold some 0.07 too small. Chosen numbers: part_of_cell, the root in look_at, `finer` and `most`, and those of filling.c.
 *
 * Limits: all kernels are taken as 1/r. Where there are gradients the GPU marks by derivatives too, which is not in the share; nor are the smaller tiles where a target has several values.
 * The dimension is that of the sources alone, and of lines as of surfaces. Of clusters (tree.h) nothing is known. */
#include <math.h>
#include <stdlib.h>

#include "kernels/pair/pair_tiles.h"
#include "runtime/counts.h"

enum { MOST_LEAVES = 512, DRAWS = 640 };

/* In units of the root's edge. */
typedef struct leaf { double targets, tiles, met, pairs, density, half; } leaf;
typedef struct drawn { double error, tiles, pairs; } drawn;
/* What the sums over pairs depend on besides the leaf. */
typedef struct setting { double dimension, ball, all_targets, law /* Gamma of the stable law, and pairs that come twice */, spread; } setting;

/* A surface takes so much of an edge squared in a cell that a point of it lies in; a volume all of it. */
static double part_of_cell(double dimension) { return 0.8 + 0.2 * (dimension - 2); }

/* r^(power - 1) from a to b. */
static double integral(double power, double a, double b) { return fabs(power) < 1e-6 ? log(b / a) : (pow(b, power) - pow(a, power)) / power; }

static leaf look_at(const fmm_tree *t, const fmm_rows *u, int32_t row, int cap, const double cells[FMM_MAX_LEVELS]) {
  const int32_t box = u->row[row];
  const int64_t targets = t->target_end[box] - t->target_begin[box];
  int64_t tiles = 1;
  int lanes, per_lane;
  double met = 0, roots = 0;
  for (int64_t e = u->offset[row]; e < u->offset[row + 1]; e++) {
    const int32_t s = u->entry[e];
    const double sources = (double)(t->source_end[s] - t->source_begin[s]);
    met += sources, roots += sources * sqrt(sources * cells[t->level[s]]);
  }
  if (targets <= 0 || !(met > 0)) return (leaf){0};
  fmm_pair_shape_tiles(targets, cap, FMM_TILE_MOST, &tiles, &lanes, &per_lane);
  const double root = roots / met;
  return (leaf){(double)targets / (double)tiles, (double)tiles, met, met * (double)targets, root * root, ldexp(0.5, -t->level[box])};
}

/* Of U's rows some, evenly; returns how many. whole: the density in a tree of one leaf. cells: in an edge of the root by level, to the power of the dimension. */
static int look_at_leaves(const fmm_tree *t, const fmm_rows *u, const setting *s, double whole, leaf *leaves) {
  double cells[FMM_MAX_LEVELS];
  const double step = u->n_rows > MOST_LEAVES ? (double)u->n_rows / MOST_LEAVES : 1;
  int n = 0;
  for (int l = 0; l < FMM_MAX_LEVELS; l++) cells[l] = pow(2, s->dimension * l);
  for (double r = 0; n < MOST_LEAVES && (int32_t)r < u->n_rows; r += step) {
    leaves[n] = look_at(t, u, (int32_t)r, fmm_pair_tile_cap((int64_t)s->all_targets), cells);
    n += leaves[n].targets > 0;
  }
  for (int i = 0; i < n; i++) leaves[i].density = (t->n_leaves > 1 ? leaves[i].density : whole) / part_of_cell(s->dimension);
  return n;
}

/* Of the densities' logarithms, by targets. */
static double variance(int n, const leaf *leaves) {
  double all = 0, sum = 0, squares = 0;
  for (int i = 0; i < n; i++) {
    const double w = leaves[i].targets * leaves[i].tiles, d = log(leaves[i].density);
    all += w, sum += w * d, squares += w * d * d;
  }
  return all > 0 ? fmax(0, squares / all - sum / all * (sum / all)) : 0;
}

/* k-th number of an even sequence in (0, 1). */
static double even(int k, double step) {
  const double x = 0.5 + k * step;
  return x - floor(x);
}

/* One-sided stable law with the Laplace transform exp(-s^a). */
static double stable(double a, double u, double v) {
  const double angle = acos(-1) * u;
  return sin(a * angle) / pow(sin(angle), 1 / a) * pow(sin((1 - a) * angle) / -log(v), (1 - a) / a);
}

/* The k-th tile that is drawn; adds to the values of all. Steps: powers of the root of x^4 = x + 1. */
static double draw(const leaf *q, const setting *s, int k, double *values) {
  const double d = s->dimension, a = d / 4, h = q->half, most = 4; /* of the logarithm */
  const double density = q->density * exp(fmin(most, s->spread * (-log(even(k, 0.8191725133961645)) - 1))), near = density * s->ball, each = near * d * q->targets;
  const double farthest = pow(q->met / near, 1 / d), nearest = pow(near * q->targets, -1 / d), nearest_of_all = pow(near * s->all_targets, -1 / d);
  const double scale = 4 * h * h * pow(near * q->targets * s->law, 1 / a);
  const double beyond = 4 * h * h * pow(farthest, d - 4) / (4 - d); /* the law has no end, the sources met have */
  *values += q->tiles * each * integral(d - 2, fmin(nearest_of_all, farthest), farthest);
  return fmax(0, scale * stable(a, even(k, 0.6710436067037893), even(k, 0.5497004779019703)) +
                     each * (4 * h * integral(d - 3, fmin(nearest, farthest), farthest) + integral(d - 2, fmin(nearest, farthest), farthest) - beyond));
}

static int by_error(const void *a, const void *b) {
  const double x = ((const drawn *)a)->error, y = ((const drawn *)b)->error;
  return (x > y) - (x < y);
}

static double marked(int n, drawn *tiles, double most) {
  double kept = 0, pairs = 0, all = 0;
  qsort(tiles, (size_t)n, sizeof *tiles, by_error);
  for (int i = 0; i < n; i++) {
    kept += tiles[i].tiles * tiles[i].error, all += tiles[i].pairs;
    if (kept <= most) pairs += tiles[i].pairs;
  }
  return all > 0 ? 1 - pairs / all : 0;
}

fmm_status fmm_tight_share(const fmm_tree *t, const fmm_rows *u, int64_t all_targets, double tolerance, double *share) {
  const fmm_filling filling = fmm_filling_of_sources(t);
  const double d = fmin(3, fmax(2, filling.dimension)), part = tolerance / 4, rounding = 0x1p-25, finer = 1.5, most = 1.5; /* a tile is finer than the cells that tell the variance */
  setting s = {d, pow(acos(-1), d / 2) / tgamma(d / 2 + 1), (double)all_targets, tgamma(1 - d / 4) * (t->same_points ? pow(2, d / 4 - 1) : 1), 0};
  leaf *leaves = NULL;
  drawn *tiles = NULL;
  double values = 0;
  fmm_status status;
  int n = 0;
  *share = 0;
  FMM_CHECK(FMM_ALLOCATE(&leaves, MOST_LEAVES, "leaves whose tiles are foretold"));
  FMM_CHECK(FMM_ALLOCATE(&tiles, MOST_LEAVES + DRAWS, "tiles that are foretold"));
  const int looked_at = look_at_leaves(t, u, &s, exp(filling.log_density), leaves), draws = looked_at ? (DRAWS + looked_at - 1) / looked_at : 0;
  s.spread = sqrt(fmin(most, finer * fmax(0, filling.log_variance - variance(looked_at, leaves))));
  for (int i = 0; i < looked_at; i++)
    for (int k = 0; k < draws; k++, n++) tiles[n] = (drawn){draw(&leaves[i], &s, n, &values), leaves[i].tiles, leaves[i].pairs};
  *share = marked(n, tiles, part * part / (rounding * rounding) * values);
done:
  FMM_FREE(&leaves);
  FMM_FREE(&tiles);
  return status;
}
