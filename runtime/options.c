/* Defaults of fmm_options and the checks that need no points and no machine. Every refusal names the value and the way out. */
#include "options.h"

#include <math.h>
#include <string.h>

#include "kernels/pair/pair_info.h"

enum { MAX_ORDER = 20, MAX_THREADS = 4096 };

fmm_status fmm_options_init_sized(fmm_options *options, size_t struct_size) {
  if (!options) return FMM_FAIL(FMM_ERR_ARGUMENT, "fmm_options_init: options is NULL");
  if (struct_size < offsetof(fmm_options, profile_path) || struct_size > 65536)
    return FMM_FAIL(FMM_ERR_ARGUMENT, "fmm_options_init: struct_size is %zu, this library's is %zu; use the macro fmm_options_init", struct_size, sizeof *options);
  fmm_options defaults = {.kernel = "laplace", .n_columns = 1, .tolerance = 1e-6, .scale = NAN, .bind_threads = 1};
  memset(options, 0, struct_size);
  memcpy(options, &defaults, struct_size < sizeof defaults ? struct_size : sizeof defaults);
  options->struct_size = struct_size;
  return FMM_OK;
}

static fmm_status check_int(const char *name, int value, int low, int high) {
  if (value >= low && value <= high) return FMM_OK;
  return FMM_FAIL(FMM_ERR_ARGUMENT, "option %s is %d; it must be %d .. %d", name, value, low, high);
}

static fmm_status check_method(const fmm_options *o) {
  if (o->order && (o->order < 2 || o->order > MAX_ORDER))
    return FMM_FAIL(FMM_ERR_ARGUMENT, "option order is %d; it must be 2 .. %d (0: the plan chooses)", o->order, MAX_ORDER);
  if (o->leaf_size < 0) return FMM_FAIL(FMM_ERR_ARGUMENT, "option leaf_size is %d; it must be at least 1 (0: the plan chooses)", o->leaf_size);
  if (o->root_scale != 0 && !(o->root_scale >= 1 && o->root_scale <= 2))
    return FMM_FAIL(FMM_ERR_ARGUMENT, "option root_scale is %g; it must be 1 .. 2 (0: the plan chooses)", o->root_scale);
  if (!(o->tolerance >= 1e-14 && o->tolerance <= 0.5))
    return FMM_FAIL(FMM_ERR_ARGUMENT, "option tolerance is %g; it must be 1e-14 .. 0.5", o->tolerance);
  if (isinf(o->scale)) return FMM_FAIL(FMM_ERR_ARGUMENT, "option scale is infinite; give a finite factor (NaN: the kernel's own)");
  if (!(o->executions >= 0 && o->executions <= 1e12))
    return FMM_FAIL(FMM_ERR_ARGUMENT, "option executions is %g; it must be 0 .. 1e12 (0: unknown)", o->executions);
  FMM_TRY(check_int("precision", (int)o->precision, FMM_PRECISION_AUTO, FMM_PRECISION_SINGLE));
  FMM_TRY(check_int("schedule", (int)o->schedule, FMM_SCHEDULE_AUTO, FMM_SCHEDULE_HYBRID3));
  FMM_TRY(check_int("density_sign", (int)o->density_sign, FMM_DENSITY_SIGNED, FMM_DENSITY_NONNEGATIVE));
  return check_int("boundary", (int)o->boundary, FMM_BOUNDARY_OPEN, FMM_BOUNDARY_OPEN);
}

fmm_status fmm_options_check(const fmm_options *o) {
  const fmm_pair_info *info;
  double params[FMM_MAX_PARAMS];
  FMM_TRY(fmm_pair_info_find(o->kernel, &info));
  FMM_TRY(fmm_pair_resolve_params(info, o->n_params, o->params, params));
  FMM_TRY(check_int("n_columns", o->n_columns, 1, FMM_MOST_COLUMNS));
  FMM_TRY(check_method(o));
  FMM_TRY(check_int("threads", o->threads, 0, MAX_THREADS));
  FMM_TRY(check_int("gpu_device", o->gpu_device, 0, 1023));
  FMM_TRY(check_int("gpu_sms", o->gpu_sms, 0, 1 << 20));
  FMM_TRY(check_int("densities_space", (int)o->densities_space, FMM_MEMORY_HOST, FMM_MEMORY_DEVICE));
  return check_int("results_space", (int)o->results_space, FMM_MEMORY_HOST, FMM_MEMORY_DEVICE);
}

fmm_status fmm_options_copy(const fmm_options *from, fmm_options *to) {
  if (!from) return FMM_FAIL(FMM_ERR_ARGUMENT, "options is NULL; call fmm_options_init first");
  if (from->struct_size < offsetof(fmm_options, profile_path) || from->struct_size > 65536)
    return FMM_FAIL(FMM_ERR_ARGUMENT, "options.struct_size is %zu; call fmm_options_init first", from->struct_size);
  fmm_options copy;
  FMM_TRY(fmm_options_init(&copy));
  memcpy(&copy, from, from->struct_size < sizeof copy ? from->struct_size : sizeof copy);
  copy.struct_size = sizeof copy;
  FMM_TRY(fmm_options_check(&copy));
  *to = copy;
  return FMM_OK;
}
