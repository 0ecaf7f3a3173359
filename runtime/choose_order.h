/* The order of a case: the caller's, or the smallest that is expected to keep the tolerance. Measuring orders takes seconds at many digits, and
 * a case without a far field needs none; so where points are few, or pairs are and targets lie apart from all sources, a bound comes first, and the search only when a far field is there. */
#ifndef FMM_CHOOSE_ORDER_H
#define FMM_CHOOSE_ORDER_H
#include "kernels/operators.h"
#include "runtime/regular_points.h"

/* The order is measured on random points, and on lattices where the points are as regular (regular_points.h). On regular ones errors add up in phase: up to 1.7 times
 * as much was seen. Targets of their own may all lie far from the sources: no near field then dilutes the error of the far one, nor its cancellation. The
 * order is chosen for the tolerance over these. */
enum { FMM_STRUCTURE_MARGIN = 2, FMM_APART_MARGIN = 4 };

typedef struct fmm_order_search {
  const fmm_options *options;
  const fmm_pair *pair;
  double params[FMM_MAX_PARAMS], half_width, margin;
  int64_t n_points;
  double pairs;           /* of sources with targets */
  double apart;           /* targets' least distance from their nearest sources, as a multiple of the length within which values die away; 0: they do not, or are the sources */
  double steps;           /* targets' distances from the nearest sources, where points are spread evenly, as multiples of the length within which values die away; 0: they do not */
  int kind;               /* of densities, as fmm_order_for_tolerance takes it */
  double cancelled;       /* by how much values may be smaller than what they are sums of, for what their roots may err by; more than 1: densities of both signs at targets of their own or on points as regular as a lattice, gradients at targets of their own, or targets apart from all sources of values that die away */
  int threads;            /* to measure with; the order does not depend on it */
  fmm_regularity regularity; /* where it was asked and changed the search; else irregular */
  int settled;            /* the order is not a mere bound */
  double expected_error;  /* of the order, times the margin; NaN while it is not settled by a search */
} fmm_order_search;

/* Whether a search with these options asks how regular the sources are. */
int fmm_order_asks_regularity(const fmm_options *options);
/* targets NULL: the sources. The points give the unit of length for pairs without a degree. regularity: the sources', where it is known, else NULL. */
void fmm_order_search_for(fmm_order_search *search, const fmm_options *options, const fmm_pair *pair, const double params[FMM_MAX_PARAMS], int64_t n_sources,
                          const double *sources, int64_t n_targets, const double *targets, const fmm_regularity *regularity, int threads);
/* The order to begin with: settled, or for few points at most the right one. */
fmm_status fmm_order_first(fmm_order_search *search, int *order);
fmm_status fmm_order_settle(fmm_order_search *search, int *order);
#endif
