/* What set_points makes, in order: order and possible precisions from the tolerance, leaf size and root scale from the model, tree, lists,
 * operators, exact counts, cost table, schedule and precision, memory, clusters' plans. Everything that changes the bits of an answer is decided
 * here, from the options, the points, the machine profile and, where points moved, what was chosen for those before, never from the number of threads, and hashed into plan_id. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/count_case.h"
#include "kernels/simd.h"
#include "jobs.h"
#include "options.h"
#include "plan.h"
#include "points.h"
#include "team_array.h"

/* A factor that double precision holds in full; 0 only where the caller asked for that. */
static fmm_status check_factor(const fmm_setup *s, const fmm_plan *plan, const char *results, double factor) {
  const double extent = 1 / s->tree.scale;
  if (isnormal(factor) || plan->options.scale == 0) return FMM_OK;
  if (plan->nesting)
    return FMM_FAIL(FMM_ERR_INPUT, "points clustered within %.0e of the extent of those around them would have %s multiplied by %g, which double precision cannot; spread or merge them",
                    extent, results, factor);
  return FMM_FAIL(FMM_ERR_INPUT, "coordinates of an extent of some %.0e would have %s multiplied by %g, which double precision cannot; give coordinates in another unit, or another scale",
                  extent, results, factor);
}

/* K(a r; params a^power) = a^degree K(r; params), a the tree's scale. */
static fmm_status scale_units(fmm_setup *s, const fmm_plan *plan) {
  const fmm_pair_info *info = plan->pair->info;
  double a = s->tree.scale;
  for (int i = 0; i < info->n_params; i++) s->params[i] = plan->params[i] * pow(a, info->params[i].length_power);
  s->factor = (isnan(plan->options.scale) ? info->default_scale : plan->options.scale) * pow(a, -info->degree) / plan->divisor;
  s->gradient_factor = s->factor * a;
  FMM_TRY(check_factor(s, plan, "potentials", s->factor));
  return plan->options.gradient ? check_factor(s, plan, "gradients", s->gradient_factor) : FMM_OK;
}

/* Result planes are [(output * stride + part) * columns + column]; rows are [output][column] and [output][axis][column]. */
static fmm_status order_planes(fmm_setup *s, int outputs, int columns, int gradient) {
  int stride = gradient ? 4 : 1;
  FMM_TRY(FMM_ALLOCATE(&s->potential_plane, outputs * columns, "the order of results"));
  if (gradient) FMM_TRY(FMM_ALLOCATE(&s->gradient_plane, 3 * outputs * columns, "the order of results"));
  for (int o = 0; o < outputs; o++)
    for (int k = 0; k < stride * columns; k++) {
      const double *plane = s->potential + (o * stride * columns + k) * s->tree.targets.n;
      if (k < columns) s->potential_plane[o * columns + k] = plane;
      else s->gradient_plane[o * 3 * columns + k - columns] = plane;
    }
  return FMM_OK;
}

/* Whether the device does everything and delivers to the caller; without sources or targets nobody does. */
static int is_all_on_gpu(const fmm_setup *s) { return fmm_dispatch_uses(s, FMM_DEVICE_GPU) && !fmm_dispatch_uses(s, FMM_DEVICE_CPU) && !s->tree.n_clusters; }

/* On the host, where it takes part. */
static fmm_status reserve_arrays(fmm_setup *s, const fmm_plan *plan, const fmm_point_rows *points) {
  const fmm_pair_info *info = plan->pair->info;
  int columns = plan->options.n_columns;
  s->n_density_planes = info->components * columns;
  s->n_result_planes = info->outputs * columns * (plan->options.gradient ? 4 : 1);
  if (is_all_on_gpu(s)) return FMM_OK;
  FMM_TRY(fmm_tree_fill(&s->tree, points->sources, points->targets, plan->threads));
  size_t expansion = s->far_field ? (size_t)s->tree.n_boxes * (size_t)columns * (size_t)s->operators->n : 0;
  int threads = plan->threads;
  FMM_TRY(fmm_team_allocate(&s->density, (size_t)s->n_density_planes, (size_t)s->tree.sources.n, threads, "sorted densities"));
  FMM_TRY(fmm_team_allocate(&s->potential, (size_t)s->n_result_planes, (size_t)s->tree.targets.n, threads, "sorted results"));
  FMM_TRY(fmm_team_allocate(&s->up_equivalent, 1, expansion, threads, "upward equivalent densities"));
  FMM_TRY(fmm_team_allocate(&s->down_check, 1, expansion, threads, "downward check potentials"));
  return order_planes(s, info->outputs, columns, plan->options.gradient != 0);
}

typedef struct reserving { fmm_state *state; const fmm_phase_impl *impl; } reserving;

static fmm_status reserve_one(void *context) {
  const reserving *r = context;
  return r->impl->reserve(r->state);
}

/* Of the phases that the CPU has a part in; those that have one keep it. Beside one another: V's is the work of one thread. */
static fmm_status reserve_workspaces(fmm_setup *s) {
  static const fmm_phase longest_first[FMM_N_PHASES] = {FMM_PHASE_VLIST, FMM_PHASE_ULIST, FMM_PHASE_WLIST, FMM_PHASE_XLIST, FMM_PHASE_UP, FMM_PHASE_DOWN};
  reserving all[FMM_N_PHASES];
  fmm_job jobs[FMM_N_PHASES];
  int n = 0;
  for (int k = 0; k < FMM_N_PHASES; k++) {
    const fmm_phase phase = longest_first[k];
    if (!fmm_cpu_phases[phase]->reserve || !fmm_dispatch_on_cpu(s, phase) || s->state.workspace[phase]) continue;
    all[n] = (reserving){&s->state, fmm_cpu_phases[phase]};
    jobs[n] = (fmm_job){.name = "workspace", .run = reserve_one, .context = &all[n]}, n++;
  }
  return fmm_jobs_run(jobs, n, s->tree.n_boxes < FMM_PARALLEL_MINIMUM ? 1 : s->state.threads);
}

static fmm_status fill_state(fmm_setup *s, const fmm_plan *plan) {
  s->state = (fmm_state){.tree = &s->tree, .lists = &s->lists, .pair = plan->pair, .params = s->params, .operators = s->operators,
                         .harmonics = 1,
                         .n_columns = plan->options.n_columns, .gradient = plan->options.gradient != 0, .threads = plan->threads,
                         .tolerance = plan->options.tolerance, .cancelled = s->cancelled, .density = s->density, .potential = s->potential,
                         .up_equivalent = s->up_equivalent, .down_check = s->down_check};
  memcpy(s->state.precision, s->assignment.precision, sizeof s->state.precision);
  FMM_FREE(&s->column_exponent); /* of a schedule that could not be kept */
  if (!is_all_on_gpu(s) && fmm_scales_columns(s->state.n_columns, s->state.precision)) FMM_TRY(FMM_ALLOCATE(&s->column_exponent, s->state.n_columns, "units of columns"));
  return reserve_workspaces(s);
}

static void release_state(fmm_setup *s) {
  for (int phase = 0; phase < FMM_N_PHASES; phase++)
    if (fmm_cpu_phases[phase]->release && s->state.workspace[phase]) fmm_cpu_phases[phase]->release(&s->state);
}

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t n) { /* FNV-1a */
  const unsigned char *byte = data;
  for (size_t i = 0; i < n; i++) hash = (hash ^ byte[i]) * 0x100000001b3u;
  return hash;
}

static void make_plan_id(const fmm_setup *s, const fmm_plan *plan, char id[17]) {
  uint64_t h = 0xcbf29ce484222325u;
  const fmm_tree *t = &s->tree;
  h = hash_bytes(h, FMM_VERSION, sizeof FMM_VERSION);
  h = hash_bytes(h, plan->pair->info->name, strlen(plan->pair->info->name));
  h = hash_bytes(h, s->params, sizeof s->params);
  h = hash_bytes(h, &s->factor, sizeof s->factor);
  int n_columns = plan->options.n_columns, gradient = plan->options.gradient != 0, order = s->far_field ? s->counts.order : 0;
  h = hash_bytes(h, &n_columns, sizeof n_columns);
  h = hash_bytes(h, &gradient, sizeof gradient);
  h = hash_bytes(h, &plan->options.tolerance, sizeof plan->options.tolerance);
  h = hash_bytes(h, &s->state.cancelled, sizeof s->state.cancelled);
  h = hash_bytes(h, &order, sizeof order);
  h = hash_bytes(h, s->state.precision, sizeof s->state.precision);
  h = hash_bytes(h, s->assignment.gpu_fraction, sizeof s->assignment.gpu_fraction);
  int simd = (int)fmm_simd_level();
  h = hash_bytes(h, &simd, sizeof simd);
  h = hash_bytes(h, &t->leaf_size, sizeof t->leaf_size);
  h = hash_bytes(h, t->root_lo, sizeof t->root_lo);
  h = hash_bytes(h, &t->root_side, sizeof t->root_side);
  h = hash_bytes(h, &t->sources.n_input, sizeof t->sources.n_input);
  h = hash_bytes(h, &t->targets.n_input, sizeof t->targets.n_input);
  h = hash_bytes(h, t->level_begin, sizeof t->level_begin);
  if (s->gpu && fmm_gpu_plan_falls_back(s->gpu)) h = hash_bytes(h, "one way", 7);
  for (int32_t k = 0; k < s->n_nested; k++) h = hash_bytes(h, s->nested[k].plan->setup->info.plan_id, sizeof s->info.plan_id);
  snprintf(id, 17, "%016llx", (unsigned long long)h);
}

static size_t state_bytes(const fmm_setup *s) {
  size_t bytes = fmm_tree_bytes(&s->tree) + fmm_lists_bytes(&s->lists) + s->operator_bytes + fmm_nested_bytes(s) + fmm_memory_bytes(s->density) +
                 fmm_memory_bytes(s->potential) + fmm_memory_bytes(s->up_equivalent) + fmm_memory_bytes(s->down_check) +
                 fmm_memory_bytes(s->gpu_potential) + fmm_memory_bytes(s->gpu_check) + fmm_memory_bytes(s->host_density) + fmm_memory_bytes(s->host_potential) +
                 fmm_memory_bytes(s->host_gradient);
  for (int phase = 0; phase < FMM_N_PHASES; phase++)
    if (fmm_cpu_phases[phase]->bytes && s->state.workspace[phase]) bytes += fmm_cpu_phases[phase]->bytes(&s->state);
  return bytes;
}

static void fill_info(fmm_setup *s, const fmm_plan *plan) {
  fmm_plan_info *i = &s->info;
  *i = (fmm_plan_info){.struct_size = sizeof *i, .order = s->far_field ? s->counts.order : 0, .expected_error = s->far_field ? s->expected_error : NAN, .leaf_size = s->tree.leaf_size, .root_scale = s->tree.root_scale,
                       .schedule = s->assignment.kind, .threads = plan->threads, .n_sources = s->tree.sources.n_input,
                       .n_targets = s->tree.targets.n_input, .n_leaves = s->tree.n_leaves, .n_boxes = s->tree.n_boxes,
                       .n_levels = s->tree.n_levels, .host_bytes = state_bytes(s) + fmm_setup_absent_bytes(s), .n_clusters = s->n_nested, .tightened = plan->tightened,
                       .clusters_predicted_s = fmm_nested_predicted_s(s)};
  i->predicted_s = s->makespan.seconds + i->clusters_predicted_s;
  for (int phase = 0; phase < FMM_N_PHASES; phase++) {
    double on_gpu = s->assignment.gpu_fraction[phase];
    fmm_device device = on_gpu > 0.5 ? FMM_DEVICE_GPU : FMM_DEVICE_CPU;
    const fmm_cost *cost = &s->costs.total[phase][device][fmm_precision_index(s->state.precision[phase])];
    i->precision[phase] = s->state.precision[phase];
    i->device[phase] = device;
    i->gpu_fraction[phase] = on_gpu;
    i->phase_predicted_s[phase] = cost->seconds;
    i->phase_limit_s[phase] = cost->limit_s;
  }
  if (s->gpu) {
    i->device_bytes = fmm_gpu_plan_device_bytes(s->gpu);
    i->host_bytes += fmm_gpu_plan_host_bytes(s->gpu);
    i->gpu_sms = fmm_gpu_plan_sms(s->gpu);
  }
  snprintf(i->profile_path, sizeof i->profile_path, "%s", plan->machine.path);
  make_plan_id(s, plan, i->plan_id);
}

/* On what is reported: the clusters' plans and the GPU's part included. */
static fmm_status check_cap(const fmm_setup *s, const fmm_plan *plan) {
  size_t cap = plan->options.host_memory_cap, bytes = s->info.host_bytes;
  if (!cap || bytes <= cap) return FMM_OK;
  return FMM_FAIL(FMM_ERR_MEMORY, "this plan needs %zu bytes on the host, but host_memory_cap is %zu; raise the cap or the tolerance, or use fewer points", bytes, cap);
}

static fmm_status price(fmm_setup *s, const fmm_plan *plan, int order) {
  const fmm_count_case what = fmm_count_case_of(&plan->options, plan->pair->info, &plan->machine, order);
  FMM_TRY(fmm_count_work(&s->tree, &s->lists, &what, plan->threads, &s->counts));
  fmm_cost_table_make(&plan->machine, &s->counts, plan->pair->info, &s->costs);
  FMM_TRY(fmm_schedule_choose(&s->costs, &s->precisions, plan->options.schedule, &s->assignment, &s->makespan));
  fmm_dispatch_split(s);
  return FMM_OK;
}

/* What was chosen for all cores is priced for the threads that there are: nothing that makes bits may depend on their number, what is told may.
 * The GPU's cells stay, for it may have been forbidden meanwhile. */
static void price_for_threads(fmm_setup *s, const fmm_plan *plan) {
  fmm_machine machine = plan->machine;
  fmm_cost_table costs;
  fmm_machine_use_units(&machine, FMM_DEVICE_CPU, plan->threads);
  fmm_cost_table_make(&machine, &s->counts, plan->pair->info, &costs);
  for (int phase = 0; phase < FMM_N_PHASES; phase++) {
    memcpy(costs.total[phase][FMM_DEVICE_GPU], s->costs.total[phase][FMM_DEVICE_GPU], sizeof costs.total[phase][FMM_DEVICE_GPU]);
    for (int level = 0; level < FMM_MAX_LEVELS; level++)
      memcpy(costs.level_s[phase][level][FMM_DEVICE_GPU], s->costs.level_s[phase][level][FMM_DEVICE_GPU], sizeof costs.level_s[phase][level][FMM_DEVICE_GPU]);
  }
  s->costs = costs;
  fmm_makespan_of(&s->costs, &s->assignment, &s->makespan);
}

/* Those of the outermost plan's clusters are one pool; the outermost plan's own serve again where it has points, or had them before these moved. */
static fmm_status take_operators(fmm_setup *s, const fmm_plan *plan, int order) {
  fmm_operator_case what = {.pair = plan->pair, .params = s->params, .order = order, .root_half_width = s->tree.root_side / 2, .n_levels = s->tree.n_levels};
  const fmm_operator_pool *before = plan->pool ? NULL : plan->setup ? &plan->setup->pool : &plan->spare;
  return fmm_operator_pool_take(plan->pool ? plan->pool : &s->pool, before, &what, plan->threads, &s->operators, &s->operator_bytes);
}

/* The GPU's part. When it does not fit or the device fails, `auto` takes the CPU; a named schedule is an error. */
static fmm_status use_gpu(fmm_setup *s, const fmm_plan *plan, fmm_point_rows *points) {
  fmm_status status = fmm_setup_gpu_create(s, plan, points);
  if (status == FMM_OK || plan->options.schedule != FMM_SCHEDULE_AUTO || (status != FMM_ERR_MEMORY && status != FMM_ERR_DEVICE)) return status;
  snprintf(s->no_gpu, sizeof s->no_gpu, "%s", fmm_last_error());
  fmm_cost_table_forbid(&s->costs, FMM_DEVICE_GPU, status == FMM_ERR_MEMORY ? "the GPU's memory, or the cap on it, is not enough" : "the GPU failed when the plan was made");
  FMM_TRY(fmm_schedule_choose(&s->costs, &s->precisions, FMM_SCHEDULE_AUTO, &s->assignment, &s->makespan));
  const int had_arrays = !is_all_on_gpu(s);
  fmm_dispatch_split(s);
  release_state(s);
  if (!had_arrays) FMM_TRY(reserve_arrays(s, plan, points));
  FMM_TRY(fill_state(s, plan));
  return fmm_setup_gpu_create(s, plan, points);
}

const char *const fmm_setup_part_names[FMM_N_SETUP_PARTS] = {"order", "choice", "tree", "lists", "operators", "prices", "memory", "rest"};

/* The time since *begin belongs to this part; the next one begins. */
static void end_part(fmm_setup *s, fmm_setup_part part, double *begin) {
  double now = fmm_now_s();
  s->part_s[part] += now - *begin;
  *begin = now;
}

static fmm_status plant(fmm_setup *s, const fmm_plan *plan, const fmm_point_rows *p, int order, fmm_sorted_rows *sorted, double *t) {
  fmm_tree_options choice;
  FMM_TRY(fmm_choose_tree(plan, order, &s->precisions, p, sorted, &choice, &s->kept_choice));
  end_part(s, FMM_PART_CHOICE, t);
  fmm_plan_points_sorted(p, choice.root_scale, sorted);
  FMM_TRY(fmm_tree_build_within(&s->tree, &p->bounds, p->n_sources, p->sources, p->normals, p->n_targets, p->targets, sorted, &choice, plan->threads));
  end_part(s, FMM_PART_TREE, t);
  return FMM_OK;
}

/* Tree and lists as they are best at this order. */
static fmm_status grow(fmm_setup *s, const fmm_plan *plan, const fmm_point_rows *p, int order, double *t) {
  fmm_sorted_rows sorted = {0};
  const fmm_status planted = plant(s, plan, p, order, &sorted, t);
  fmm_rows_free(&sorted);
  FMM_TRY(planted);
  FMM_TRY(fmm_lists_build(&s->lists, &s->tree, fmm_surface_size(order), FMM_LISTS_TO_SUM, plan->threads));
  end_part(s, FMM_PART_LISTS, t);
  s->far_field = s->lists.v.n_rows || s->lists.w.n_rows || s->lists.x.n_rows;
  return FMM_OK;
}

/* Few points may need no far field, and then no order: first with one that is too low at worst, which makes a far field cheaper than it is. */
static fmm_status grow_at_its_order(fmm_setup *s, const fmm_plan *plan, const fmm_point_rows *p, int *order, double *t) {
  fmm_order_search search;
  fmm_order_search_for(&search, &plan->options, plan->pair, plan->params, p->n_sources, p->sources, p->n_targets, p->targets, p->knows_regularity ? &p->regularity : NULL, plan->threads);
  fmm_choose_precisions(&plan->options, plan->pair->info, search.cancelled > 1, search.steps, &s->precisions);
  s->cancelled = search.cancelled;
  FMM_TRY(fmm_order_first(&search, order));
  end_part(s, FMM_PART_ORDER, t);
  int first = *order;
  FMM_TRY(grow(s, plan, p, first, t));
  if (s->far_field && !search.settled) {
    FMM_TRY(fmm_order_settle(&search, order));
    end_part(s, FMM_PART_ORDER, t);
  }
  s->expected_error = search.expected_error * plan->tightened; /* of densities whose error is as much larger than others' */
  s->regularity = search.regularity;
  if (*order == first) return FMM_OK;
  fmm_lists_free(&s->lists);
  fmm_tree_free(&s->tree);
  return grow(s, plan, p, *order, t);
}

static fmm_status build(fmm_setup *s, const fmm_plan *plan, fmm_point_rows *points) {
  int order;
  double t = fmm_now_s();
  FMM_TRY(grow_at_its_order(s, plan, points, &order, &t));
  FMM_TRY(scale_units(s, plan));
  if (s->far_field) FMM_TRY(take_operators(s, plan, order));
  end_part(s, FMM_PART_OPERATORS, &t);
  FMM_TRY(price(s, plan, order));
  end_part(s, FMM_PART_PRICES, &t);
  FMM_TRY(reserve_arrays(s, plan, points));
  FMM_TRY(fill_state(s, plan));
  end_part(s, FMM_PART_MEMORY, &t);
  FMM_TRY(use_gpu(s, plan, points));
  FMM_TRY(fmm_nested_create(s, plan));
  s->foretold_s = s->makespan.seconds;
  price_for_threads(s, plan);
  fill_info(s, plan);
  FMM_TRY(check_cap(s, plan));
  end_part(s, FMM_PART_REST, &t);
  return FMM_OK;
}

/* A schedule that was named and needs a GPU says at once why there is none. */
static fmm_status check_schedule(const fmm_plan *plan) {
  const fmm_schedule_kind kind = plan->options.schedule;
  if (kind == FMM_SCHEDULE_AUTO || kind == FMM_SCHEDULE_CPU || plan->machine.device[FMM_DEVICE_GPU].present || !plan->machine.no_gpu[0]) return FMM_OK;
  return FMM_FAIL(FMM_ERR_DEVICE, "schedule %s cannot run without a GPU: %s; choose auto or cpu", fmm_schedule_name(kind), plan->machine.no_gpu);
}

enum { HOLD_MINIMUM = 1 << 16, USED = 32 /* bytes a point at least, by tree, lists and what makes them */ };

fmm_status fmm_setup_create(fmm_setup **setup, const fmm_plan *plan, fmm_point_rows *points) {
  fmm_setup *s = NULL;
  FMM_TRY(check_schedule(plan));
  FMM_TRY(FMM_ALLOCATE_ZERO(&s, 1, "the plan's set-up"));
  const int64_t n = points->n_sources + points->n_targets;
  const int holds = n >= HOLD_MINIMUM; /* one step's memory serves the next; what small plans would leave of pages is much of theirs */
  if (holds) fmm_memory_hold(plan->threads), fmm_memory_expect(USED * (size_t)n);
  const fmm_status status = build(s, plan, points);
  if (holds) fmm_memory_release();
  if (status != FMM_OK) fmm_setup_destroy(&s);
  else *setup = s;
  return status;
}

void fmm_setup_destroy(fmm_setup **setup) {
  fmm_setup *s = *setup;
  if (!s) return;
  fmm_nested_destroy(s);
  fmm_setup_gpu_destroy(s);
  release_state(s);
  FMM_FREE(&s->potential_plane);
  FMM_FREE(&s->column_exponent);
  FMM_FREE(&s->gradient_plane);
  FMM_FREE(&s->density);
  FMM_FREE(&s->potential);
  FMM_FREE(&s->up_equivalent);
  FMM_FREE(&s->down_check);
  fmm_operator_pool_destroy(&s->pool);
  fmm_lists_free(&s->lists);
  fmm_tree_free(&s->tree);
  FMM_FREE(setup);
}
