/* What up and down on CPU cores share: a workspace, the walk over a level's boxes in blocks of FMM_LANES (kernels/translate.h), the children of such
 * a block, and the leaves' check-to-equivalent map. Up goes over boxes with sources, down over boxes with targets. */
#ifndef FMM_LEVEL_BLOCKS_H
#define FMM_LEVEL_BLOCKS_H
#include "kernels/level_items.h"
#include "kernels/phase.h"

/* Blocks of a thread: 8 children, natural and regrouped, coefficients; then three planes of a surface, or what leaves' harmonics take. */
enum { FMM_BLOCKS_A_THREAD = 8 + 3 };
typedef struct fmm_level_blocks {
  fmm_level_items items;
  const int64_t *begin, *end; /* points of a box: boxes without any are no items, and no children */
  double *blocks;             /* [thread][FMM_BLOCKS_A_THREAD][n][FMM_LANES] */
  double *planes;             /* [thread][3 n_surface] */
  double *harmonics;          /* [thread][fmm_harmonic_doubles]: of leaves (kernels/phase.h) */
  double *shells;             /* (down) [box][column][component]: strengths of leaves' shell fields (kernels/shell_field.h) */
} fmm_level_blocks;

/* state->workspace[phase] as an fmm_level_blocks for the boxes with begin[box] < end[box]. */
fmm_status fmm_level_blocks_reserve(fmm_state *state, fmm_phase phase, const int64_t *begin, const int64_t *end);
void fmm_level_blocks_release(fmm_state *state, fmm_phase phase);
size_t fmm_level_blocks_bytes(const fmm_state *state, fmm_phase phase);

/* One thread's part of a phase: what a step is given. */
typedef struct fmm_level_worker {
  const fmm_state *state;
  const fmm_level_blocks *w;
  const fmm_translate_kernels *k;
  double *block[FMM_BLOCKS_A_THREAD]; /* n x FMM_LANES each, one after the other: block[0] .. block[7] are one array */
  double *planes;
  fmm_harmonic_lanes harmonics;
} fmm_level_worker;
fmm_level_worker fmm_level_worker_of(const fmm_state *state, fmm_phase phase); /* of the calling thread of the team */

typedef void fmm_block_step(const fmm_level_worker *t, const fmm_level_operators *set, int level, const fmm_lane_block *lanes);
/* All blocks of the leaves of all levels, or of one level's parents; called by every thread of the team, ends with a barrier. */
void fmm_for_leaves(const fmm_level_worker *t, fmm_block_step *step); /* blocks of fewer lanes where leaves are few, so that all threads have some */
void fmm_for_level_parents(const fmm_level_worker *t, int level, fmm_block_step *step);

/* The lanes' children in one octant; -1 where there is none with points. */
void fmm_lanes_children(const fmm_level_worker *t, const fmm_lane_block *parents, int octant, fmm_lane_block *children);

/* Leaves: check potentials to equivalent densities in their place, an array [box][column][n]. shells: fills t->w->shells. Uses block[0] .. block[2]. */
void fmm_invert_leaves(const fmm_level_worker *t, const fmm_panels first[8], const fmm_panels second[8], int level, const fmm_lane_block *lanes,
                       const double *shells, double *array);
#endif
