/* The options that say what is evaluated and how: shared by fmm-run and fmm-predict. */
#ifndef FMM_CASE_OPTIONS_H
#define FMM_CASE_OPTIONS_H
#include "cli.h"

/* First member of a command's struct of options, so that the tables' offsets hold. */
typedef struct fmm_case_options {
  const char *file, *targets, *densities, *kernel, *profile;
  int generate;      /* index into FMM_DISTRIBUTIONS, -1 not asked */
  int64_t points;    /* -1 not given */
  int64_t seed;
  fmm_param params[FMM_MAX_PARAMS];
  char param_names[FMM_MAX_PARAMS][32];
  int n_params;
  double scale;      /* NaN: the kernel's own */
  double digits, tolerance; /* NaN: not given */
  int gradient;
  int densities_optional; /* fmm-predict: a file without densities will do */
  double executions; /* 0: unknown */
  int64_t order, leaf_size, threads, gpu_sms;
  int precision, schedule, oversubscribe, unbound;
} fmm_case_options;

#define FMM_DISTRIBUTIONS "uniform|ellipsoid|sphere|plummer"
#define FMM_DENSITIES "ones|unit|signed"
#define FMM_PRECISIONS "auto|double|mixed|single"
#define FMM_YES_NO "yes|no"
#define FMM_SCHEDULES "auto|cpu|gpu|hybrid1|hybrid2|hybrid3"

extern const fmm_cli_option fmm_case_table[], fmm_plan_table[]; /* what is evaluated; how */
void fmm_case_defaults(fmm_case_options *options);
/* What no single option shows: FILE or --generate with --points, digits or tolerance. */
fmm_status fmm_case_check(const fmm_case_options *options);
/* Refuses to write --OPTION PATH over a file that is read. */
fmm_status fmm_case_check_written(const fmm_case_options *options, const char *option, const char *path);
/* The library's options for this case; columns and the sign of the densities are the caller's to add. Strings stay in `from`. */
fmm_status fmm_case_to_options(const fmm_case_options *from, fmm_options *to);
/* Asked relative error: 10^-digits, the tolerance, or 1e-6. */
double fmm_case_tolerance(const fmm_case_options *options);
/* One remark when the error expected of the order (NaN: not known) is above the tolerance. */
void fmm_case_say_reach(const fmm_case_options *options, double expected_error);
#endif
