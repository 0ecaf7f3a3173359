/* Tables and checks of the shared options; see case_options.h. */
#include "case_options.h"

#include <math.h>
#include <string.h>

#include "model/machine.h"
#include "runtime/file.h"
#include "runtime/generate.h"
#include "runtime/identity.h"
#include "runtime/io/input.h"
#include "runtime/io/number.h"
#include "runtime/options.h"

static fmm_status add_param(void *values, const char *text) {
  fmm_case_options *o = values;
  const char *equals = strchr(text, '=');
  if (!equals || equals == text || equals - text >= (int)sizeof o->param_names[0])
    return FMM_FAIL(FMM_ERR_ARGUMENT, "--param: '%s' is not NAME=VALUE, as in lambda=1.5", text);
  if (o->n_params == FMM_MAX_PARAMS) return FMM_FAIL(FMM_ERR_ARGUMENT, "--param: '%s' is one more than the %d allowed", text, FMM_MAX_PARAMS);
  char *name = o->param_names[o->n_params];
  memcpy(name, text, (size_t)(equals - text));
  name[equals - text] = 0;
  for (int i = 0; i < o->n_params; i++)
    if (!strcmp(o->param_names[i], name)) return FMM_FAIL(FMM_ERR_ARGUMENT, "--param %s: given twice, at last as '%s'; give it once", name, equals + 1);
  double value = NAN;
  if (!fmm_parse_number(equals + 1, text + strlen(text), &value) || !isfinite(value))
    return FMM_FAIL(FMM_ERR_ARGUMENT, "--param %s: '%s' is not a finite number; give one, as in --param %s=1.5", name, equals + 1, name);
  o->params[o->n_params++].value = value; /* its name is pointed to in fmm_case_to_options: the struct may move until then */
  return FMM_OK;
}

#define AT(member) offsetof(fmm_case_options, member)

const fmm_cli_option fmm_case_table[] = {
    FMM_CLI_CHOICE("generate", AT(generate), FMM_DISTRIBUTIONS, "a standard distribution in place of FILE"),
    FMM_CLI_INT("points", AT(points), "N", 0, 4398046511104.0 /* 2^42, as fmm_points_check_counts */, "how many to generate"),
    FMM_CLI_TEXT("targets", AT(targets), "FILE", "evaluate at these points (at the sources)"),
    FMM_CLI_TEXT("densities", AT(densities), FMM_DENSITIES "|FILE", "densities: 1; uniform in [0,1); in [-0.5,0.5); of a file (FILE's own; unit when generated)"),
    FMM_CLI_INT("seed", AT(seed), "S", 0, 9007199254740992.0, "of generated points and densities (1)"),
    FMM_CLI_TEXT("kernel", AT(kernel), "NAME", "pair interaction (laplace); an unknown name lists all"),
    FMM_CLI_CALL("param", add_param, "K=V", "a parameter of it, any number of times"),
    FMM_CLI_REAL("scale", AT(scale), "S", -1e300, 1e300, "factor on the results (the kernel's own: 1/(4 pi) for laplace)"),
    FMM_CLI_REAL("digits", AT(digits), "D", 0.31, 14, "asked accuracy: relative L2 error 10^-D (6)"),
    FMM_CLI_REAL("tolerance", AT(tolerance), "E", 1e-14, 0.5, "the same as a number"),
    FMM_CLI_FLAG("gradient", 0, AT(gradient), "potential and gradient"), FMM_CLI_END};

const fmm_cli_option fmm_plan_table[] = {
    FMM_CLI_INT("order", AT(order), "P", 2, 20, "surface order, points along an edge (from the accuracy)"),
    FMM_CLI_INT("leaf-size", AT(leaf_size), "Q", 1, 1e9, "most points in a leaf (from the model)"),
    FMM_CLI_REAL("executions", AT(executions), "E", 0, 1e12, "evaluations that the tree is for: few let it be chosen in less time (0: unknown)"),
    FMM_CLI_CHOICE("precision", AT(precision), FMM_PRECISIONS, "(auto)"),
    FMM_CLI_CHOICE("schedule", AT(schedule), FMM_SCHEDULES, "where the phases run (auto)"),
    FMM_CLI_INT("threads", AT(threads), "T", 1, 4096, "CPU threads (every core that this process may use)"),
    FMM_CLI_FLAG("oversubscribe", 0, AT(oversubscribe), "allow more threads than cores"),
    FMM_CLI_CHOICE("bind", AT(unbound), FMM_YES_NO, "bind threads one to a core while the plan works, where that is safe (yes)"),
    FMM_CLI_INT("gpu-sms", AT(gpu_sms), "K", 1, 65536, "limit the GPU to K multiprocessors"),
    FMM_CLI_TEXT("profile", AT(profile), "FILE", "machine profile ($FMM_PROFILE, the user's, the system's)"), FMM_CLI_END};

void fmm_case_defaults(fmm_case_options *options) {
  *options = (fmm_case_options){.kernel = "laplace", .generate = -1, .points = -1, .seed = 1, .scale = NAN, .digits = NAN, .tolerance = NAN};
}

static fmm_status check_densities(const char *name) {
  if (!name || fmm_is_density_name(name) || fmm_input_check_suffix(name) == FMM_OK) return FMM_OK;
  return FMM_FAIL(FMM_ERR_ARGUMENT, "--densities: none of " FMM_DENSITIES ", nor a file: %s", fmm_last_error());
}

fmm_status fmm_case_check(const fmm_case_options *o) {
  if (!o->file && o->generate < 0) return FMM_FAIL(FMM_ERR_ARGUMENT, "nothing to evaluate: name a FILE, or --generate " FMM_DISTRIBUTIONS " with --points N");
  if (o->file && o->generate >= 0) return FMM_FAIL(FMM_ERR_ARGUMENT, "both a file, '%s', and --generate; give one", o->file);
  if (o->generate >= 0 && o->points < 0) return FMM_FAIL(FMM_ERR_ARGUMENT, "--generate needs --points N");
  if (o->file && o->points >= 0) return FMM_FAIL(FMM_ERR_ARGUMENT, "--points %lld goes with --generate, not with a file; '%s' holds its own points", (long long)o->points, o->file);
  if (!isnan(o->digits) && !isnan(o->tolerance))
    return FMM_FAIL(FMM_ERR_ARGUMENT, "both --digits %g and --tolerance %g; give one", o->digits, o->tolerance);
  FMM_TRY(check_densities(o->densities));
  fmm_options options;
  FMM_TRY(fmm_case_to_options(o, &options));
  return fmm_options_check(&options); /* kernel, parameters: before points are read or a machine is measured */
}

fmm_status fmm_case_check_written(const fmm_case_options *o, const char *option, const char *path) {
  char fingerprint[FMM_FINGERPRINT_CHARS], profile[512];
  int found = 0;
  fmm_fingerprint(fingerprint);
  if (fmm_profile_find(o->profile, fingerprint, (int)o->gpu_sms, profile, &found) != FMM_OK) found = 0; /* that is told where it is read */
  const char *const read[] = {o->file, o->targets, o->densities && !fmm_is_density_name(o->densities) ? o->densities : NULL, found ? profile : o->profile};
  for (size_t i = 0; i < sizeof read / sizeof *read; i++)
    if (read[i] && fmm_file_same(path, read[i]))
      return FMM_FAIL(FMM_ERR_ARGUMENT, "--%s '%s' would replace '%s', which is read; name another file", option, path, read[i]);
  return FMM_OK;
}

double fmm_case_tolerance(const fmm_case_options *o) { return !isnan(o->tolerance) ? o->tolerance : isnan(o->digits) ? 1e-6 : pow(10, -o->digits); }

fmm_status fmm_case_to_options(const fmm_case_options *from, fmm_options *to) {
  FMM_TRY(fmm_options_init(to));
  to->kernel = from->kernel;
  to->n_params = from->n_params;
  for (int i = 0; i < from->n_params; i++) to->params[i] = (fmm_param){from->param_names[i], from->params[i].value};
  to->gradient = from->gradient;
  to->tolerance = fmm_case_tolerance(from);
  to->scale = from->scale;
  to->order = (int)from->order;
  to->leaf_size = (int)from->leaf_size;
  to->executions = from->executions;
  to->precision = (fmm_precision)from->precision;
  to->schedule = (fmm_schedule_kind)from->schedule;
  to->threads = (int)from->threads;
  to->oversubscribe = from->oversubscribe;
  to->bind_threads = !from->unbound;
  to->gpu_sms = (int)from->gpu_sms;
  to->profile_path = from->profile;
  return FMM_OK;
}

void fmm_case_say_reach(const fmm_case_options *o, double expected_error) {
  if (expected_error > fmm_case_tolerance(o))
    fmm_cli_say("no order is expected to keep the relative error of %.1e that is asked: expect up to %.1e", fmm_case_tolerance(o), expected_error);
}
