/* The line that bench-cpu prints of a team (bench_cpu_team.h): one JSON object. */
#ifndef FMM_BENCH_CPU_REPORT_H
#define FMM_BENCH_CPU_REPORT_H
#include "tools/bench_cpu_team.h"

/* base: NULL, or another team that was timed in turns with this one, to whose times efficiencies are. options: the plans'. Times U's kernels a last time,
 * in either direction, where the team has rates. */
fmm_status fmm_bench_report(const fmm_bench_team *team, const fmm_bench_team *base, const fmm_options *options);
/* Of its moves, one line. */
fmm_status fmm_bench_report_moves(const fmm_bench_team *team);
#endif
