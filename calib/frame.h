/* What evaluations take beside their phases: a team's waking, densities and results brought into order and out of it, calls of the driver and waits. Small evaluations are mostly that. */
#ifndef FMM_CALIB_FRAME_H
#define FMM_CALIB_FRAME_H
#include "model/machine.h"

/* Evaluations on the CPU alone, of few and of many points: evaluation_s and staging_bytes_per_s of the CPU. machine: with the CPU's rates. */
fmm_status fmm_frame_cpu(fmm_machine *machine, int threads);

/* Evaluations on the GPU alone, of few points, and of some and many whose densities the team stages: evaluation_s, staging_s and staging_bytes_per_s of the GPU. machine: with the GPU's rates. */
fmm_status fmm_frame_gpu(fmm_machine *machine, int threads);

/* Evaluations of both devices (hybrid1) in turns with those of the CPU alone on the same tree: joint_s, what the former take beside the CPU's phases and all that the latter take
 * there, and driving_slowdown, the factor (at least 1) by which the CPU's phases take longer. After the others. */
fmm_status fmm_frame_joint(fmm_machine *machine, int threads);
#endif
