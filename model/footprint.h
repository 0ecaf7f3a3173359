/* Bytes that a plan will reserve, from work counts alone: what fmm-predict says and a memory cap is compared with before anything is
 * built. Follows the arrays of runtime/tree.h, runtime/lists.h, kernels/phase.h, the workspaces of the phases, and runtime/gpu/gpu_plan.cu; the
 * caller's own arrays are not in it. */
#ifndef FMM_FOOTPRINT_H
#define FMM_FOOTPRINT_H
#include "model/model.h"

typedef struct fmm_footprint {
  double points, tree, lists;  /* sorted points and their input rows; boxes; interaction lists */
  double planes;               /* sorted densities and results */
  double expansions;           /* equivalent densities and check potentials of every box, on the host: 0 where a GPU does all phases */
  double operators;            /* translation operators of all sets */
  double workspace;            /* of the phases: spectra of V, blocks of up and down a thread */
  double set_up;               /* tables from which a GPU's plan is made, freed before the first evaluation; 0 without work there */
  double host;                 /* their sum */
  double device, device_least; /* the arena on the GPU: V's spectra all at once and U's pairs in both directions, or in the thinnest slabs and one way; 0 without work there */
} fmm_footprint;

/* threads: of the CPU team. gpu_fraction: of each phase; any on the GPU needs points, lists and the arrays of its phases there, and a phase wholly there has no
 * workspace on the host. */
void fmm_footprint_of(const fmm_counts *counts, const fmm_pair_info *pair, int threads, const fmm_precision precision[FMM_N_PHASES],
                      const double gpu_fraction[FMM_N_PHASES], fmm_footprint *footprint);
#endif
