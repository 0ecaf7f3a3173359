/* Work counts of trees that are not built: what the tuner asks for many leaf sizes and root scales, and fmm-predict for a named
 * distribution whose points are never made.
 *
 * A tree is refined over a sample of the points (sample.h), its ranges are multiplied by the sample's weight, and lists and counts are made
 * of it as of any tree. Where the whole tree would have more than some five thousand leaves the sample stands for fewer points, by powers of
 * 2^dimension, and the counts are extrapolated from two such samples: what is done a point deviates from its limit in inverse
 * proportion to the boxes an edge (those at the border have fewer neighbours), but for W and X of points that fill space, which become fewer a point from step to step. Up to FMM_ESTIMATE_EXACT points counts are exact (but for
 * coincident points below the finest cell, which are not merged). Deterministic; the same for any number of threads. Of points that fill a cube evenly samples are sorted for the first tree that is asked for, of which counts of others depend a little. */
#ifndef FMM_ESTIMATE_H
#define FMM_ESTIMATE_H
#include "counts.h"

enum { FMM_ESTIMATE_EXACT = 1 << 15 };

typedef struct fmm_estimate fmm_estimate;

/* From points: arguments as fmm_tree_build's; the arrays must stay as they are until fmm_estimate_destroy. */
fmm_status fmm_estimate_create(fmm_estimate **estimate, int64_t n_sources, const double *sources, int64_t n_targets, const double *targets,
                               int threads);
/* The same of points whose bounds are known (points.h). */
fmm_status fmm_estimate_create_within(fmm_estimate **estimate, const fmm_bounds *bounds, int64_t n_sources, const double *sources, int64_t n_targets, const double *targets,
                                      int threads);
/* Whether the points are sources and targets, more than samples have, and fill a cube evenly (even_points.h), and if so, counts of as many of them in full trees, of 32, 90 and 256 points a leaf, from which a search for their tree can begin (sched/sched.h):
 * nothing is sorted before the next tree is asked for then, for whose root scale rows are, of which samples for others depend a little. */
enum { FMM_EVEN_TREES = 3 };
fmm_status fmm_estimate_even(fmm_estimate *estimate, const fmm_count_case *what, fmm_counts counts[FMM_EVEN_TREES], int *is_even);
/* All rows sorted for root scale 1, or, where they fill a cube evenly, for that of the first tree, where the estimate had them so (of 131,073 to 1,572,864 points in the larger set, of which sorting all takes little longer than sorting some): they are the caller's then, to be released with
 * fmm_rows_free, and the estimate may be asked no more. Else *sorted has no sets. */
struct fmm_sorted_rows;
void fmm_estimate_take_sorted(fmm_estimate *estimate, struct fmm_sorted_rows *sorted);
/* From a name (generate.h): n points that are sources and targets. */
fmm_status fmm_estimate_create_named(fmm_estimate **estimate, const char *distribution, int64_t n, int threads);
/* Counts of n trees, counts[i] of the one with choice[i], at most FMM_ESTIMATES_AT_ONCE of them: beside one another by the threads of the estimate, which fills many of them better than
 * one after the other. Cheaper where a root scale is one of the last few. Not thread-safe. */
enum { FMM_ESTIMATES_AT_ONCE = 4 };
fmm_status fmm_estimate_counts(fmm_estimate *estimate, int n, const fmm_tree_options *choice, const fmm_count_case *what, fmm_counts *counts);
/* Of what the points fill (sample.h): 1, 2 or 3, which it is taken for where counts are exact. */
int fmm_estimate_dimension(const fmm_estimate *estimate);
/* About what one of several estimates takes on so many cores when a plan's tree is chosen, also where the points have only a name. */
double fmm_estimate_seconds(const fmm_estimate *estimate, int cores);
void fmm_estimate_destroy(fmm_estimate **estimate);
#endif
