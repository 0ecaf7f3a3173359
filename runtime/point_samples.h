/* Points here and there among very many, and what lies around them: what the choice of the order must know of how points lie (regular_points.h, crowding.h). Each of these takes one
 * pass over all points. No answer depends on the number of threads. */
#ifndef FMM_POINT_SAMPLES_H
#define FMM_POINT_SAMPLES_H
#include <stdint.h>

#include "hybridfmm/fmm.h"

enum { FMM_POINT_SAMPLES = 64 /* bits of a mask */, FMM_NEIGHBOURS = 6, FMM_BALL = 1024 };

/* Of its nearest: squared distances, ascending, and places (points in one place count once; that of the sample itself not at all); root of the last. In units of 1 / per_unit, so that no
 * square over- or underflows. Infinite where there are fewer. */
typedef struct fmm_point_sample { double at[3], per_unit, square[FMM_NEIGHBOURS], reach, place[FMM_NEIGHBOURS][3]; } fmm_point_sample;

typedef struct fmm_point_samples {
  int n; /* FMM_POINT_SAMPLES; none of so few points that they have no neighbours */
  fmm_point_sample sample[FMM_POINT_SAMPLES];
  int64_t n_points;
  const double *points; /* the caller's, n_points x 3 row-major */
  int threads;
} fmm_point_samples;

void fmm_point_samples_take(fmm_point_samples *samples, int64_t n, const double *points, int threads);

/* Numbers of the points within a distance of a sample, in any order, the sample's own and those in its place among them. Where there are more than there is room for (n > FMM_BALL), some. */
typedef struct fmm_point_ball { int64_t n, point[FMM_BALL]; } fmm_point_ball;

/* Balls of `times` the distance to the last of the neighbours around every sample; n 0 where that is not known. */
void fmm_point_samples_gather(const fmm_point_samples *samples, double times, fmm_point_ball balls[FMM_POINT_SAMPLES]);
#endif
