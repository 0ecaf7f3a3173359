/* How points lie at small scales, whatever the tree: told by their sorted keys (fmm_filling_of_sources in tree.h: of those of a tree). */
#ifndef FMM_FILLING_H
#define FMM_FILLING_H
#include <stdint.h>

typedef struct fmm_filling {
  double dimension;    /* of what they fill: 2 for surfaces (and less), 3 for volumes, between where keys leave it open */
  double log_density;  /* mean over points of the logarithm of how many there are in a cell as large as the root, were all of it like where the point is */
  double log_variance; /* of that logarithm from point to point, beyond what random points in cells give by themselves */
} fmm_filling;

/* n sorted keys of 21 bits a dimension. */
fmm_filling fmm_filling_of_keys(int64_t n, const uint64_t *keys);
#endif
