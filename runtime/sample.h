/* Samples of a problem's points for estimating work counts (estimate.h): the same density with fewer points.
 *
 * Step k of a problem of N points stands for N / F^k of them, F = 2^dimension: a tree over it with the same leaf size is like the whole tree
 * with its k finest levels' worth of boxes taken away. Its points are picked at random (of sorted rows evenly and then at random), so that boxes scatter as those of the whole do; beyond
 * FMM_SAMPLE_MOST they are thinned to that many evenly in Morton order, each standing for `weight` points. Of many points some are picked and sorted once, and all samples
 * taken from these, in their order: as they are for trees of the root scale that they are sorted for, else with new keys. A sample's tree has the root of the whole one. */
#ifndef FMM_SAMPLE_H
#define FMM_SAMPLE_H
#include "deep_cells.h"

enum { FMM_SAMPLE_MOST = 1 << 17 };

/* Where points come from: the caller's rows, or a distribution by name (generate.h), which is its own targets. */
typedef struct fmm_origin {
  const char *distribution;
  const double *rows[2]; /* sources, targets; unused with a distribution */
  fmm_bounds bounds;     /* of all of them; unused with a distribution */
  double root_scale;     /* for which picked points are sorted */
  const fmm_sorted_rows *sorted; /* all of them for that root scale, NULL: not known */
  const fmm_deep_cells *deep;    /* of each set, cells of which words do not tell enough */
  int64_t n[2];
  int same_points, threads;
} fmm_origin;

/* Points of a set with more than FMM_SAMPLE_MOST, picked at random (of sorted rows evenly in their order), as their sorted keys: the middles of their finest cells serve as well as themselves. A sample has those of low
 * rank, so that smaller ones are of the points of larger ones. */
typedef struct fmm_sample_picks {
  int64_t n[2];    /* of sources, targets; 0: all serve as they are */
  uint64_t *key[2];
  float *rank[2]; /* n, random below 1 */
} fmm_sample_picks;

typedef struct fmm_sample_set {
  int64_t n, n_points; /* points kept, points they stand for */
  double *rows;        /* n x 3; or NULL and */
  uint64_t *key;       /* keys sorted for the origin's root scale, where they are of picked points */
} fmm_sample_set;

typedef struct fmm_sample {
  fmm_sample_set set[2]; /* sources, targets; the second empty when they are the same */
  fmm_bounds bounds;     /* of what roots hold: all points; of a distribution by name, its own */
} fmm_sample;

/* A sample as a root scale sorts it. */
typedef struct fmm_sample_keys {
  fmm_frame frame;
  uint64_t *keys[2]; /* of each set, sorted */
} fmm_sample_keys;

/* None of a distribution by name. Release with fmm_sample_picks_free, also after a failure. */
fmm_status fmm_sample_pick(fmm_sample_picks *picks, const fmm_origin *origin);
void fmm_sample_picks_free(fmm_sample_picks *picks);
/* A sample that stands for n / divisor points of each set. picks: NULL where that is no more than FMM_SAMPLE_MOST. Release with fmm_sample_free, also after a failure. */
fmm_status fmm_sample_make(fmm_sample *sample, const fmm_origin *origin, double divisor, const fmm_sample_picks *picks);
void fmm_sample_free(fmm_sample *sample);
/* Release with fmm_sample_keys_free; nothing is left after a failure. Several may be made at once, also of one sample. */
fmm_status fmm_sample_sort(const fmm_sample *sample, const fmm_origin *origin, double root_scale, fmm_sample_keys *keys);
void fmm_sample_keys_free(fmm_sample_keys *keys);

static inline double fmm_sample_weight(const fmm_sample_set *s) { return s->n ? (double)s->n_points / (double)s->n : 1; }

/* Dimension of the set the points fill, 1, 2 or 3: growth of the points' entropy over boxes from one level to the next (the information
 * dimension, Renyi 1959), at the finest level whose boxes hold at least some of the sample and 64 of all n_points on average. */
int fmm_sample_dimension(const fmm_sample *sample, const fmm_sample_keys *keys, int64_t n_points, int threads);
#endif
