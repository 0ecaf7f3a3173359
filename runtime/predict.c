/* Predictions without a plan; see predict.h. Order and precision follow the rules of setup.c, so that a plan of the same case decides alike. */
#include "arithmetic.h"
#include "runtime/predict.h"

#include <math.h>
#include <string.h>

#include "runtime/cores.h"
#include "runtime/count_case.h"
#include "runtime/estimate.h"
#include "runtime/generate.h"
#include "runtime/node.h"
#include "runtime/options.h"
#include "runtime/plan.h"
#include "runtime/points.h"

enum { SAMPLE = 4096 };

/* Threads that predicting may take: cores of this machine, whichever is predicted, and no more than the predicted run was granted. A child of
 * fork() whose parent has had a team can start none: with one thread asked none is started. */
static int own_threads(int predicted) {
  int allowed = fmm_cores_allowed();
  return predicted > 0 && predicted < allowed ? predicted : allowed;
}

/* The search for a case's order. Named distributions: the unit of length from a sample. */
static fmm_status begin_search(const fmm_options *o, const fmm_pair *pair, const fmm_predict_points *p, int threads, fmm_order_search *search) {
  double params[FMM_MAX_PARAMS], *points = NULL;
  FMM_TRY(fmm_pair_resolve_params(pair->info, o->n_params, o->params, params));
  fmm_pair_take_divisor(pair->info, params);
  if (!p->distribution) return fmm_order_search_for(search, o, pair, params, p->n_sources, p->sources, p->n_targets, p->targets, NULL, threads), FMM_OK;
  FMM_TRY(FMM_ALLOCATE(&points, 3 * SAMPLE, "a sample of points"));
  fmm_status status = fmm_generate_points(p->distribution, SAMPLE, 1, points, 1);
  if (status == FMM_OK) fmm_order_search_for(search, o, pair, params, SAMPLE, points, 0, NULL, NULL, threads);
  search->n_points = p->n_sources;
  FMM_FREE(&points);
  return status;
}

typedef struct estimate_context { fmm_estimate *estimate; fmm_count_case what; } estimate_context;

static fmm_status estimate_counts(void *context, int n, const fmm_tree_options *choice, fmm_counts *counts) {
  estimate_context *c = context;
  return fmm_estimate_counts(c->estimate, n, choice, &c->what, counts);
}

static fmm_status create_estimate(fmm_estimate **estimate, const fmm_predict_points *p, int threads) {
  if (p->distribution) return fmm_estimate_create_named(estimate, p->distribution, p->n_sources, threads);
  return fmm_estimate_create(estimate, p->n_sources, p->sources, p->n_targets, p->targets, threads);
}

static int has_far_field(const fmm_counts *c) {
  return c->total[FMM_PHASE_VLIST].entries + c->total[FMM_PHASE_WLIST].entries + c->total[FMM_PHASE_XLIST].entries > 0;
}

/* A search begins as a plan's does (choose_tree.c). */
static fmm_status forecast_at(int order, fmm_forecast_case *what, estimate_context *context, fmm_predicted *p) {
  fmm_counts even[FMM_EVEN_TREES];
  int is_even = 0;
  context->what.order = order;
  if (!what->leaf_size && !(what->root_scale > 0)) FMM_TRY(fmm_estimate_even(context->estimate, &context->what, even, &is_even));
  what->effort.even = is_even ? even : NULL;
  return fmm_forecast_make(what, &p->forecast);
}

/* The forecast at the order that the case needs, which is none without a far field; as in setup.c. */
static fmm_status forecast(fmm_forecast_case *what, estimate_context *context, fmm_order_search *search, fmm_predicted *p) {
  int order, first;
  what->context = context;
  FMM_TRY(fmm_order_first(search, &order));
  first = order;
  FMM_TRY(forecast_at(order, what, context, p));
  if (has_far_field(&p->forecast.counts) && !search->settled) FMM_TRY(fmm_order_settle(search, &order));
  if (order != first) FMM_TRY(forecast_at(order, what, context, p));
  int far_field = has_far_field(&p->forecast.counts);
  p->order = far_field ? order : 0;
  p->expected_error = far_field ? search->expected_error : NAN;
  return FMM_OK;
}

fmm_status fmm_predict_case(const fmm_options *options, const fmm_machine *machine, const fmm_predict_points *points, int threads, fmm_predicted *predicted) {
  const fmm_pair *pair;
  fmm_order_search search = {0};
  fmm_predicted p = {.threads = threads > 0 ? threads : machine->device[FMM_DEVICE_CPU].units, .machine = *machine};
  FMM_TRY(fmm_points_check_counts(points->n_sources, points->n_targets));
  FMM_TRY(fmm_pair_find(options->kernel, &pair));
  FMM_TRY(begin_search(options, pair, points, own_threads(threads), &search));
  if (options->gpu_sms) fmm_machine_use_units(&p.machine, FMM_DEVICE_GPU, options->gpu_sms);
  estimate_context context = {.what = fmm_count_case_of(options, pair->info, machine, 0)};
  fmm_forecast_case what = {.machine = &p.machine, .pair = pair->info, .kind = options->schedule, .leaf_size = options->leaf_size, .root_scale = options->root_scale,
                            .threads = p.threads, .device_memory_bytes = (double)options->device_memory_cap, .estimate = estimate_counts};
  fmm_choose_precisions(options, pair->info, search.cancelled > 1, search.steps, &what.precisions);
  FMM_TRY(create_estimate(&context.estimate, points, own_threads(threads)));
  what.dimension = fmm_estimate_dimension(context.estimate);
  what.effort = (fmm_tune_effort){fmm_estimate_seconds(context.estimate, machine->device[FMM_DEVICE_CPU].units), options->executions, NULL};
  fmm_status status = forecast(&what, &context, &search, &p);
  fmm_estimate_destroy(&context.estimate);
  if (status == FMM_OK) *predicted = p;
  return status;
}

static fmm_status check_arguments(const char *distribution, const fmm_prediction *prediction) {
  if (!distribution) return FMM_FAIL(FMM_ERR_ARGUMENT, "fmm_predict: distribution is NULL; give uniform, ellipsoid, sphere or plummer");
  if (!prediction || prediction->struct_size < sizeof(size_t) || prediction->struct_size > 65536)
    return FMM_FAIL(FMM_ERR_ARGUMENT, "fmm_predict: set prediction.struct_size to sizeof(fmm_prediction) first");
  return FMM_OK;
}

fmm_status fmm_predict(const fmm_options *options, const char *distribution, int64_t n_points, fmm_prediction *prediction) {
  FMM_OWN_ARITHMETIC();
  fmm_options o;
  fmm_machine machine;
  fmm_predicted p;
  FMM_TRY(check_arguments(distribution, prediction));
  FMM_TRY(fmm_options_copy(options, &o));
  FMM_TRY(fmm_node_machine(o.profile_path, 0, o.gpu_device, o.gpu_sms, &machine));
  fmm_predict_points points = {.distribution = distribution, .n_sources = n_points};
  FMM_TRY(fmm_predict_case(&o, &machine, &points, o.threads, &p));
  const fmm_forecast *f = &p.forecast;
  fmm_prediction out = {.struct_size = prediction->struct_size, .makespan_s = f->tuned.makespan.seconds, .schedule = f->tuned.assignment.kind,
                        .order = p.order, .leaf_size = f->tuned.leaf_size, .root_scale = f->tuned.root_scale,
                        .host_bytes = (size_t)f->memory.host, .device_bytes = (size_t)f->memory.device, .expected_error = p.expected_error};
  double interval[2];
  for (int phase = 0; phase < FMM_N_PHASES; phase++)
    for (int d = 0; d < FMM_N_DEVICES; d++) fmm_forecast_phase(f, (fmm_phase)phase, (fmm_device)d, &out.phase_s[phase][d], interval);
  memcpy(prediction, &out, out.struct_size < sizeof out ? out.struct_size : sizeof out);
  return FMM_OK;
}
