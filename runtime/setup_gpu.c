/* The GPU's part of a plan's set-up: points that are brought there while the host still looks at them, the device plan, and on the host the page-locked arrays that cross the bus and the copies of a caller's
 * device arrays where the CPU takes part. */
#include "jobs.h"
#include "plan.h"
#include "points.h"
#include "team_array.h"

enum { LEAST_BROUGHT = 1 << 19 /* points */, LEAST_STAGE = 1 << 24 /* bytes by way of which they come */ };

/* Whether points are worth it: many, for a plan that uses the GPU, or has not chosen yet, and all of it. */
static int are_worth_bringing(const fmm_plan *plan, const fmm_point_rows *p) {
  const fmm_options *o = &plan->options;
  return p->n_sources + p->n_targets >= LEAST_BROUGHT && fmm_plan_may_use_gpu(plan) && (!plan->setup || plan->setup->gpu || o->schedule != FMM_SCHEDULE_AUTO) && !o->gpu_sms && !o->device_memory_cap && !o->host_memory_cap;
}

/* What the GPU's plan will need, so that it takes it; at least what rows need. */
static size_t stage_bytes(const fmm_plan *plan, const fmm_point_rows *p) {
  const fmm_options *o = &plan->options;
  const size_t columns = (size_t)o->n_columns, value = sizeof(double), n_targets = (size_t)(p->targets ? p->n_targets : p->n_sources);
  const size_t in = o->densities_space == FMM_MEMORY_HOST ? (size_t)p->n_sources * (size_t)plan->pair->info->components * columns * value : 0;
  const size_t out = o->results_space == FMM_MEMORY_HOST ? n_targets * (size_t)plan->pair->info->outputs * columns * (o->gradient ? 4 : 1) * value : 0;
  const size_t needed = fmm_gpu_stage_size(in, out);
  return needed < LEAST_STAGE ? LEAST_STAGE : needed;
}

/* The page-locked memory of the plan that there is, which is idle, or some that its successor will have. */
static fmm_status find_stage(const fmm_plan *plan, fmm_point_rows *p, fmm_gpu_rows_request *q) {
  const fmm_options *o = &plan->options;
  if (plan->setup && plan->setup->gpu) fmm_gpu_plan_lend_stage(plan->setup->gpu, &q->stage, &q->stage_bytes);
  if (q->stage_bytes >= LEAST_STAGE) return FMM_OK;
  FMM_TRY(fmm_gpu_stage_make(&p->spare.stage, o->gpu_device, plan->threads, stage_bytes(plan, p)));
  q->stage = p->spare.stage.memory, q->stage_bytes = p->spare.stage.bytes;
  return FMM_OK;
}

typedef struct beginning { const fmm_plan *plan; fmm_point_rows *points; } beginning;

static fmm_status bring(void *context) {
  const beginning *b = context;
  const fmm_plan *plan = b->plan;
  fmm_point_rows *p = b->points;
  fmm_gpu_rows_request q = {.device = plan->options.gpu_device, .threads = plan->threads, .n_sets = p->targets ? 2 : 1, .set = {{p->n_sources, p->sources, NULL}, {p->n_targets, p->targets, NULL}}};
  if (find_stage(plan, p, &q) == FMM_OK) fmm_gpu_rows_begin(&p->brought, &q);
  if (!p->brought) fmm_clear_error(); /* the host sorts what is not there */
  return FMM_OK;
}

static fmm_status find_bounds(void *context) {
  const beginning *b = context;
  fmm_point_rows *p = b->points;
  return fmm_bounds_of(&p->bounds, p->n_sources, p->sources, p->n_targets, p->targets, b->plan->threads);
}

/* Of points that may turn out not to be finite. */
static fmm_status look_for_regularity(void *context) {
  const beginning *b = context;
  fmm_point_rows *p = b->points;
  p->regularity = fmm_points_regularity(p->n_sources, p->sources, b->plan->threads), p->knows_regularity = 1;
  return FMM_OK;
}

/* What cores find in the points, while these are on their way. */
fmm_status fmm_plan_points_begin(const fmm_plan *plan, fmm_point_rows *p) {
  beginning b = {plan, p};
  fmm_job jobs[] = {{"points to the GPU", bring, &b, 0, 0}, {"bounds", find_bounds, &b, 0, 0}, {"regularity", look_for_regularity, &b, 0, 0}};
  return are_worth_bringing(plan, p) ? fmm_jobs_run(jobs, 2 + fmm_order_asks_regularity(&plan->options), plan->threads) : find_bounds(&b);
}

void fmm_plan_points_expect(const fmm_plan *plan, const fmm_point_rows *p) {
  const fmm_options *o = &plan->options;
  const double root_scale = o->root_scale > 0 ? o->root_scale : plan->keeps ? plan->chosen.tree.root_scale : 1;
  fmm_frame frame;
  fmm_frame_place(&frame, &p->bounds, root_scale);
  if (p->brought) fmm_gpu_rows_ask(p->brought, &frame, root_scale);
}

void fmm_plan_points_sorted(const fmm_point_rows *p, double root_scale, fmm_sorted_rows *sorted) {
  fmm_frame frame;
  if (!p->brought) return;
  if (sorted->n_sets && sorted->root_scale == root_scale) fmm_gpu_rows_settle(p->brought);
  else {
    fmm_rows_free(sorted);
    fmm_frame_place(&frame, &p->bounds, root_scale);
    fmm_gpu_rows_take(p->brought, &frame, root_scale, sorted);
  }
  sorted->later = fmm_gpu_rows_serve(p->brought);
}

void fmm_plan_points_end(fmm_point_rows *p) {
  fmm_gpu_rows_end(&p->brought);
  fmm_gpu_spare_free(&p->spare);
}

static unsigned gpu_phases(const fmm_setup *s) {
  unsigned phases = 0;
  for (int phase = 0; phase < FMM_N_PHASES; phase++)
    if (s->gpu_rows[phase] > 0) phases |= 1u << phase;
  return phases;
}

static fmm_status lock(double *values) { return values ? fmm_gpu_register(values, fmm_memory_bytes(values)) : FMM_OK; }
static void unlock(double *values) {
  if (values) fmm_gpu_unregister(values);
}

/* Results and check potentials of the GPU that are added on the host. */
static fmm_status reserve_shared(fmm_setup *s) {
  if (!fmm_dispatch_uses(s, FMM_DEVICE_CPU) && !s->tree.n_clusters) return FMM_OK;
  int threads = s->state.threads;
  FMM_TRY(fmm_team_allocate(&s->gpu_potential, (size_t)s->n_result_planes, (size_t)s->tree.targets.n, threads, "the GPU's results"));
  if (s->far_field) FMM_TRY(fmm_team_allocate(&s->gpu_check, 1, (size_t)s->tree.n_boxes * (size_t)(s->state.n_columns * s->operators->n), threads, "the GPU's check potentials"));
  s->registered = 1;
  FMM_TRY(lock(s->gpu_potential));
  FMM_TRY(lock(s->gpu_check));
  if (!s->far_field) return FMM_OK;
  FMM_TRY(lock(s->up_equivalent));
  return lock(s->down_check);
}

static fmm_status reserve_copies(fmm_setup *s, const fmm_plan *plan) {
  int cpu = fmm_dispatch_uses(s, FMM_DEVICE_CPU) || s->tree.n_clusters;
  size_t values = (size_t)s->tree.targets.n_input * (size_t)(plan->pair->info->outputs * s->state.n_columns);
  if (cpu && plan->options.densities_space == FMM_MEMORY_DEVICE)
    FMM_TRY(FMM_ALLOCATE(&s->host_density, (size_t)s->tree.sources.n_input * (size_t)s->n_density_planes, "the host's copy of the densities"));
  if (!cpu || plan->options.results_space != FMM_MEMORY_DEVICE) return FMM_OK;
  FMM_TRY(FMM_ALLOCATE(&s->host_potential, values, "the host's copy of the potentials"));
  return s->state.gradient ? FMM_ALLOCATE(&s->host_gradient, 3 * values, "the host's copy of the gradients") : FMM_OK;
}

static fmm_status create(fmm_setup *s, const fmm_plan *plan, fmm_point_rows *p) {
  FMM_TRY(reserve_copies(s, plan));
  if (!fmm_dispatch_uses(s, FMM_DEVICE_GPU)) return FMM_OK;
  const fmm_options *o = &plan->options;
  fmm_gpu_request request = {.state = &s->state, .device = o->gpu_device, .sms = o->gpu_sms, .phases = gpu_phases(s), .memory_cap = o->device_memory_cap,
                             .stream = o->cuda_stream, .threads = plan->threads, .spare = &p->spare, .least_stage = p->brought ? LEAST_STAGE : 0, .rows = p->brought,
                             .densities_space = s->host_density ? FMM_MEMORY_HOST : o->densities_space, .results_space = o->results_space};
  FMM_TRY(fmm_gpu_plan_create(&s->gpu, &request));
  return reserve_shared(s);
}

/* Where the room was missing that the points take there already, or what an earlier plan left, they are sent as others are, and all is made anew. */
fmm_status fmm_setup_gpu_create(fmm_setup *s, const fmm_plan *plan, fmm_point_rows *p) {
  const int had_spare = p->spare.block[FMM_GPU_BLOCK_POINTS].memory || p->spare.block[FMM_GPU_BLOCK_REST].memory;
  fmm_status status = create(s, plan, p);
  if (status != FMM_OK) fmm_setup_gpu_destroy(s);
  if (status != FMM_ERR_MEMORY || (!p->brought && !had_spare)) return status;
  fmm_gpu_rows_end(&p->brought);
  fmm_gpu_spare_free(&p->spare);
  FMM_TRY(fmm_tree_fill(&s->tree, p->sources, p->targets, plan->threads));
  status = create(s, plan, p);
  if (status == FMM_OK) fmm_clear_error();
  else fmm_setup_gpu_destroy(s);
  return status;
}

/* New memory is touched by the team: what locks it would touch it by one thread. */
static fmm_status bring_back(fmm_gpu_plan *gpu, int set, fmm_points *p, int threads) {
  double **const plane[3] = {&p->x, &p->y, &p->z};
  fmm_status status = FMM_OK;
  for (int k = 0; k < 3 && status == FMM_OK; k++) status = fmm_team_allocate(plane[k], 1, (size_t)p->n, threads, "coordinates of the points");
  double *const at[3] = {p->x, p->y, p->z};
  if (status == FMM_OK) status = fmm_gpu_plan_points(gpu, set, at);
  if (status != FMM_OK) fmm_points_drop(p);
  return status;
}

fmm_status fmm_setup_host_points(fmm_setup *s) {
  fmm_tree *t = &s->tree;
  if (!t->sources.x) FMM_TRY(bring_back(s->gpu, 0, &t->sources, s->state.threads));
  if (t->same_points) t->targets = t->sources;
  return t->targets.x ? FMM_OK : bring_back(s->gpu, 1, &t->targets, s->state.threads);
}

size_t fmm_setup_absent_bytes(const fmm_setup *s) {
  const fmm_tree *t = &s->tree;
  const size_t a_point = 3 * sizeof(double), sources = t->sources.x ? 0 : (size_t)t->sources.n, targets = t->same_points || t->targets.x ? 0 : (size_t)t->targets.n;
  return a_point * (sources + targets);
}

void fmm_setup_gpu_destroy(fmm_setup *s) {
  if (s->gpu) fmm_gpu_plan_destroy(&s->gpu);
  if (s->registered) {
    unlock(s->gpu_potential);
    unlock(s->gpu_check);
    if (s->far_field) unlock(s->up_equivalent), unlock(s->down_check);
    s->registered = 0;
  }
  FMM_FREE(&s->gpu_potential);
  FMM_FREE(&s->gpu_check);
  FMM_FREE(&s->host_density);
  FMM_FREE(&s->host_potential);
  FMM_FREE(&s->host_gradient);
}
