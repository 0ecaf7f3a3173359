/* The registry of pair infos, from the generated list, and the look-ups by name with errors that list what there is. */
#include "kernels/pair/pair_info.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define FMM_PAIR_INFO_PASS
#define FMM_PAIR_INFO(name) const fmm_pair_info fmm_info_##name
#include "kernels/fmm_pair_list.h"
#undef FMM_PAIR_INFO_PASS

#define INFO_ENTRY(name) &fmm_info_##name,
const fmm_pair_info *const fmm_pair_infos[] = {FMM_PAIR_LIST(INFO_ENTRY) NULL};

static void join_names(char *text, size_t capacity) {
  text[0] = 0;
  for (int i = 0; fmm_pair_infos[i]; i++) {
    size_t used = strlen(text);
    snprintf(text + used, capacity - used, "%s%s", i ? ", " : "", fmm_pair_infos[i]->name);
  }
}

fmm_status fmm_pair_info_find(const char *name, const fmm_pair_info **info) {
  for (int i = 0; fmm_pair_infos[i]; i++)
    if (name && !strcmp(name, fmm_pair_infos[i]->name)) return *info = fmm_pair_infos[i], FMM_OK;
  char known[512];
  join_names(known, sizeof known);
  return FMM_FAIL(FMM_ERR_ARGUMENT, "%s%s%s; known are: %s", name ? "unknown kernel '" : "the kernel's name is NULL", name ? name : "", name ? "'" : "", known);
}

static fmm_status set_param(const fmm_pair_info *info, const fmm_param *named, double values[FMM_MAX_PARAMS]) {
  for (int i = 0; i < info->n_params; i++) {
    const fmm_pair_param *p = &info->params[i];
    if (!named->name || strcmp(named->name, p->name)) continue;
    if (!(named->value >= p->minimum && named->value <= p->maximum))
      return FMM_FAIL(FMM_ERR_ARGUMENT, "kernel %s: parameter %s = %g is outside %g .. %g", info->name, p->name, named->value, p->minimum, p->maximum);
    values[i] = named->value;
    return FMM_OK;
  }
  if (!info->n_params)
    return FMM_FAIL(FMM_ERR_ARGUMENT, "kernel %s takes no parameters, but '%s' was given", info->name, named->name ? named->name : "(null)");
  char known[256] = "";
  for (int i = 0; i < info->n_params; i++) {
    size_t used = strlen(known);
    snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", info->params[i].name);
  }
  return FMM_FAIL(FMM_ERR_ARGUMENT, "kernel %s has no parameter '%s'; it has: %s", info->name, named->name ? named->name : "(null)", known);
}

fmm_status fmm_pair_resolve_params(const fmm_pair_info *info, int n, const fmm_param *named, double values[FMM_MAX_PARAMS]) {
  double resolved[FMM_MAX_PARAMS] = {0};
  for (int i = 0; i < info->n_params; i++) resolved[i] = info->params[i].default_value;
  if (n < 0 || n > FMM_MAX_PARAMS) return FMM_FAIL(FMM_ERR_ARGUMENT, "n_params is %d; it must be 0 .. %d", n, FMM_MAX_PARAMS);
  for (int i = 0; i < n; i++) {
    FMM_TRY(set_param(info, &named[i], resolved));
    for (int k = 0; k < i; k++)
      if (!strcmp(named[k].name, named[i].name)) return FMM_FAIL(FMM_ERR_ARGUMENT, "parameter '%s' of kernel %s is given twice, as %g and %g", named[i].name, info->name, named[k].value, named[i].value);
  }
  memcpy(values, resolved, sizeof resolved);
  return FMM_OK;
}

double fmm_pair_take_divisor(const fmm_pair_info *info, double values[FMM_MAX_PARAMS]) {
  double divisor = 1;
  for (int i = 0; i < info->n_params; i++)
    if (info->params[i].divides) divisor *= values[i], values[i] = 1;
  return divisor;
}

double fmm_pair_largest_decay(const fmm_pair_info *info, const double values[FMM_MAX_PARAMS]) {
  double decay = 0;
  for (int i = 0; i < info->n_params; i++)
    if (info->params[i].length_power < 0) decay = fmax(decay, pow(values[i], -1.0 / info->params[i].length_power));
  return decay;
}
