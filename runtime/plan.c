/* Life cycle of a plan: create, set points, inform, destroy. Execution is in execute.c, the making of a setup in setup.c. */
#include "arithmetic.h"
#include "plan.h"

#include <string.h>

#include "cores.h"
#include "file.h"
#include "near_points.h"
#include "node.h"
#include "options.h"
#include "points.h"

static fmm_status keep_profile_path(fmm_plan *plan) {
  const char *path = plan->options.profile_path;
  if (!path) return FMM_OK;
  if (strlen(path) >= sizeof plan->profile_path) return FMM_FAIL(FMM_ERR_ARGUMENT, "profile path of %zu characters is too long (at most %zu)", strlen(path), sizeof plan->profile_path - 1);
  strcpy(plan->profile_path, path);
  plan->options.profile_path = plan->profile_path;
  return FMM_OK;
}

/* No arrays can be on a device that is not there, whatever the schedule. */
static fmm_status check_spaces(const fmm_options *o) {
  fmm_gpu_info gpu;
  if (o->densities_space == FMM_MEMORY_HOST && o->results_space == FMM_MEMORY_HOST) return FMM_OK;
  fmm_gpu_query(o->gpu_device, &gpu);
  if (gpu.present) return FMM_OK;
  return FMM_FAIL(FMM_ERR_DEVICE, "option %s is FMM_MEMORY_DEVICE, but there is no GPU to use: %s; pass host arrays (FMM_MEMORY_HOST)",
                  o->densities_space == FMM_MEMORY_HOST ? "results_space" : "densities_space", gpu.reason);
}

static fmm_status fill_plan(fmm_plan *plan, const fmm_options *options, const fmm_machine *machine) {
  FMM_TRY(fmm_options_copy(options, &plan->options));
  plan->asked_tolerance = plan->options.tolerance, plan->tightened = 1;
  FMM_TRY(check_spaces(&plan->options));
  FMM_TRY(fmm_pair_find(plan->options.kernel, &plan->pair));
  FMM_TRY(fmm_pair_resolve_params(plan->pair->info, plan->options.n_params, plan->options.params, plan->params));
  plan->divisor = fmm_pair_take_divisor(plan->pair->info, plan->params);
  plan->options.kernel = plan->pair->info->name;
  plan->options.n_params = 0; /* the resolved values are in plan->params; the caller's strings are not kept */
  FMM_TRY(fmm_cores_grant(plan->options.threads, plan->options.oversubscribe, &plan->threads));
  FMM_TRY(keep_profile_path(plan));
  if (machine) plan->machine = *machine;
  else FMM_TRY(fmm_node_machine(plan->options.profile_path, 1, plan->options.gpu_device, plan->options.schedule == FMM_SCHEDULE_CPU ? 0 : plan->options.gpu_sms, &plan->machine));
  if (plan->options.bind_threads) FMM_TRY(fmm_binding_create(&plan->binding, plan->threads));
  if (plan->options.schedule == FMM_SCHEDULE_CPU) return FMM_OK;
  return fmm_node_gpu(plan->options.gpu_device, plan->options.gpu_sms, &plan->machine);
}

fmm_status fmm_plan_create(fmm_plan **plan, const fmm_options *options) { return fmm_plan_create_with(plan, options, NULL); }

fmm_status fmm_plan_create_with(fmm_plan **plan, const fmm_options *options, const fmm_machine *machine) {
  FMM_OWN_ARITHMETIC();
  fmm_plan *p = NULL;
  if (!plan) return FMM_FAIL(FMM_ERR_ARGUMENT, "fmm_plan_create: plan is NULL");
  FMM_TRY(FMM_ALLOCATE_ZERO(&p, 1, "the plan"));
  fmm_status status = fill_plan(p, options, machine);
  if (status == FMM_OK) *plan = p;
  else fmm_plan_destroy(&p);
  return status;
}

fmm_status fmm_plan_create_nested(fmm_plan **plan, const fmm_plan *outer, fmm_setup *setup) {
  fmm_plan *p = NULL;
  FMM_TRY(FMM_ALLOCATE_ZERO(&p, 1, "a cluster's plan"));
  p->options = outer->options, p->asked_tolerance = outer->asked_tolerance, p->tightened = outer->tightened;
  p->options.scale = 1;
  p->divisor = 1;
  p->options.root_scale = 0;
  p->options.schedule = FMM_SCHEDULE_CPU;
  p->options.densities_space = p->options.results_space = FMM_MEMORY_HOST;
  p->options.profile_path = NULL;
  p->options.densities_spread = 0; /* over all points, perhaps not over the cluster's */
  p->options.host_memory_cap = 0; /* the cap is on the whole, which the outermost plan checks */
  p->pair = outer->pair;
  memcpy(p->params, setup->params, sizeof p->params);
  p->machine = outer->machine;
  p->threads = outer->threads;
  p->nesting = outer->nesting + 1;
  p->pool = outer->pool ? outer->pool : &setup->pool;
  *plan = p;
  return FMM_OK;
}

enum { BIND_MINIMUM = 16 * FMM_PARALLEL_MINIMUM };

/* Waking the team twice for little work would cost more than it brings. Where a GPU may be used the calling thread stays unbound: drivers start
 * threads, which inherit its mask. */
void fmm_plan_bind(const fmm_plan *plan, int64_t n_sources, int64_t n_targets) {
  if (n_sources + n_targets > BIND_MINIMUM) fmm_binding_begin(plan->binding, !fmm_plan_may_use_gpu(plan));
}

/* Targets that are the sources, row by row, are as if none were given: points are sorted once, and pairs summed both ways. Others differ within a few rows. */
static void recognise_sources(fmm_point_rows *p) {
  if (!p->n_sources || p->n_targets != p->n_sources) return;
  for (int64_t i = 0; p->targets != p->sources && i < 3 * p->n_sources; i++)
    if (p->targets[i] != p->sources[i]) return; /* of zeros the sign is no difference: trees do not keep it */
  p->targets = NULL, p->n_targets = 0;
}

fmm_status fmm_plan_check_points(const fmm_plan *plan, fmm_point_rows *p) {
  FMM_TRY(fmm_points_check_rows(p->n_sources, p->n_targets));
  if (p->n_sources && !p->sources) return FMM_FAIL(FMM_ERR_ARGUMENT, "sources is NULL, but n_sources is %lld", (long long)p->n_sources);
  if (p->n_targets && !p->targets) return FMM_FAIL(FMM_ERR_ARGUMENT, "targets is NULL, but n_targets is %lld (0 with NULL: the sources)", (long long)p->n_targets);
  if (plan->pair->info->takes_normals && p->n_sources && !p->normals)
    return FMM_FAIL(FMM_ERR_ARGUMENT, "kernel %s takes a normal a source, but normals is NULL", plan->pair->info->name);
  FMM_TRY(fmm_call_check_host(plan, "sources", p->sources, 3 * p->n_sources));
  if (plan->pair->info->takes_normals) FMM_TRY(fmm_call_check_host(plan, "normals", p->normals, 3 * p->n_sources));
  FMM_TRY(fmm_call_check_host(plan, "targets", p->targets, 3 * p->n_targets));
  recognise_sources(p);
  FMM_TRY(fmm_plan_points_begin(plan, p));
  FMM_TRY(fmm_near_points_check(&p->bounds, p->n_sources, p->sources, p->n_targets, p->targets));
  fmm_plan_points_expect(plan, p);
  return FMM_OK;
}

fmm_status fmm_plan_replace_points(fmm_plan *plan, fmm_point_rows *points, double begin) {
  fmm_setup *setup = NULL;
  FMM_TRY(fmm_setup_create(&setup, plan, points));
  fmm_setup_destroy(&plan->setup);
  plan->setup = setup;
  fmm_trace_clear(&plan->trace);
  if (!setup->kept_choice) fmm_plan_note_choice(plan);
  setup->info.setup_s = fmm_now_s() - begin;
  return FMM_OK;
}

fmm_status fmm_plan_set_points(fmm_plan *plan, int64_t n_sources, const double *sources, const double *normals, int64_t n_targets,
                               const double *targets) {
  FMM_OWN_ARITHMETIC();
  const double begin = fmm_now_s();
  fmm_point_rows points = {.n_sources = n_sources, .sources = sources, .normals = normals, .n_targets = n_targets, .targets = targets};
  if (!plan) return FMM_FAIL(FMM_ERR_ARGUMENT, "fmm_plan_set_points: plan is NULL");
  FMM_TRY(fmm_points_check_counts(n_sources, n_targets));
  fmm_plan_bind(plan, n_sources, n_targets);
  fmm_status status = fmm_plan_check_points(plan, &points);
  if (status == FMM_OK) status = fmm_plan_replace_points(plan, &points, begin);
  if (status == FMM_OK) fmm_memory_keep(&plan->kept_memory, 0); /* of moves before */
  fmm_plan_points_end(&points);
  fmm_binding_end(plan->binding);
  return status;
}

void fmm_plan_destroy(fmm_plan **plan) {
  if (!plan || !*plan) return;
  fmm_setup_destroy(&(*plan)->setup);
  fmm_binding_destroy(&(*plan)->binding);
  fmm_memory_keep(&(*plan)->kept_memory, 0);
  FMM_FREE(plan);
}

fmm_status fmm_plan_get_info(const fmm_plan *plan, fmm_plan_info *info) {
  if (!plan || !info) return FMM_FAIL(FMM_ERR_ARGUMENT, "fmm_plan_get_info: %s is NULL", plan ? "info" : "plan");
  if (!plan->setup) return FMM_FAIL(FMM_ERR_ARGUMENT, "this plan has no points; call fmm_plan_set_points first");
  size_t size = info->struct_size;
  if (size < sizeof(size_t) || size > 65536) return FMM_FAIL(FMM_ERR_ARGUMENT, "info.struct_size is %zu; set it to sizeof(fmm_plan_info)", size);
  size_t known = sizeof *info;
  fmm_plan_info all = plan->setup->info;
  all.host_bytes += plan->kept_memory;
  memset(info, 0, size);
  memcpy(info, &all, size < known ? size : known);
  info->struct_size = size;
  return FMM_OK;
}

fmm_status fmm_plan_write_trace(const fmm_plan *plan, const char *path) {
  FMM_OWN_ARITHMETIC();
  if (!plan || !path) return FMM_FAIL(FMM_ERR_ARGUMENT, "fmm_plan_write_trace: %s is NULL", plan ? "path" : "plan");
  if (!*path) return FMM_FAIL(FMM_ERR_ARGUMENT, "fmm_plan_write_trace: the file name is empty; give one");
  if (!plan->setup) return FMM_FAIL(FMM_ERR_ARGUMENT, "fmm_plan_write_trace: this plan has no points; call fmm_plan_set_points first");
  char *text = NULL;
  size_t length;
  FMM_TRY(fmm_trace_json(&plan->trace, &text, &length));
  fmm_status status = fmm_file_replace(path, text, length);
  FMM_FREE(&text);
  return status;
}
