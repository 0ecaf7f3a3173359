/* A device plan's life: its shape, its memory, streams and events. Memory is three arenas, each laid out twice (once to count the bytes, once to place the arrays): one for what
 * is known from the tree alone (points, densities, results) and one for operators, whose upload begins at once, unless an earlier plan's serve, and one for all else, when the host's tables have been made beside it
 * (runtime/gpu/gpu_tables.cu, gpu_upload.cu). V's transforms are held in as few slabs as fit. */
#include <stdlib.h>

#include "runtime/gpu/gpu_rows_cuda.h"
extern "C" {
#include "runtime/trace.h"
}

namespace {
enum { OTHERS = 256 << 20 /* bytes of the device that are left for what the driver loads later, and for rounding; at most a 32nd of it */ };
enum { STATIC_BYTES = 2048 /* of shared memory, at most, beside what is asked for */, CARVEOUT = 58 /* per cent: 132 KB of an H200's 228; there 44 to 72 served alike */ };
struct arena { char *base; size_t used; };

template <typename T>
void take(arena *a, T **field, int64_t count) {
  *field = a->base ? (T *)(a->base + a->used) : NULL;
  a->used += ((size_t)(count > 0 ? count : 1) * sizeof(T) + 255) / 256 * 256;
}

void layout_points(fmm_gpu_plan *p, arena *a) {
  const int same = p->same_points;
  for (int k = 0; k < 3; k++) take(a, &p->d_source[k], p->n_sources);
  for (int k = 0; k < 3; k++) {
    if (same) p->d_target[k] = p->d_source[k];
    else take(a, &p->d_target[k], p->n_targets);
    if (p->info->takes_normals) take(a, &p->d_normal[k], p->n_sources);
  }
  take(a, &p->d_source_row, p->n_input_sources);
  if (p->merged_sources) take(a, &p->d_source_first, p->n_sources + 1);
  if (same) p->d_target_row = p->d_source_row, p->d_target_first = p->d_source_first;
  else {
    take(a, &p->d_target_row, p->n_input_targets);
    if (p->merged_targets) take(a, &p->d_target_first, p->n_targets + 1);
  }
  take(a, &p->d_target_position, p->n_input_targets);
  take(a, &p->d_density_input, p->n_input_sources * p->components * p->columns);
  take(a, &p->d_density, p->n_sources * p->components * p->columns);
  take(a, &p->d_report, FMM_CUDA_N_REPORT);
  take(a, &p->d_tiny, 1);
  take(a, &p->d_scale, 2);
  if (fmm_scales_columns(p->columns, p->precision)) {
    take(a, &p->d_column_largest, p->columns);
    take(a, &p->d_column_unit, 2 * p->columns);
  }
  if (p->results_to_host && !p->gradient) take(a, &p->d_result, p->n_input_targets * p->outputs * p->columns);
  take(a, &p->d_near, p->n_targets * p->values * p->columns);
  take(a, &p->d_far, p->n_targets * p->values * p->columns);
}

void layout_operators(fmm_gpu_plan *p, arena *a, int level) {
  fmm_cuda_operators *o = &p->op[level];
  const int64_t matrix = p->matrix;
  if (fmm_cuda_has(p, FMM_PHASE_UP)) {
    take(a, &o->d_up_first, matrix);
    take(a, &o->d_up_second, matrix);
    take(a, &o->d_m2m, 8 * matrix);
    if (fmm_cuda_may_take_moments(p)) take(a, &o->d_up_moments, FMM_MIRRORS * fmm_cuda_up_moments_block(p));
  }
  if (fmm_cuda_has(p, FMM_PHASE_DOWN)) {
    take(a, &o->d_down_first, matrix);
    take(a, &o->d_down_second, matrix);
    take(a, &o->d_l2l, 8 * matrix);
    if (!p->block) take(a, &o->d_shell, (int64_t)p->equivalents * p->n);
    if (fmm_cuda_may_take_harmonics(p)) take(a, &o->d_down_moments, FMM_MIRRORS * (int64_t)fmm_cuda_down_moments_rows(p->order) * p->block);
  }
  if (p->v_rows) take(a, &o->d_m2l, (int64_t)p->order * p->grid * p->grid * p->equivalents * p->equivalents * 343);
}

void layout_boxes(fmm_gpu_plan *p, arena *a) {
  int64_t expansion = (int64_t)p->n_boxes * p->columns * p->n;
  for (int k = 0; k < 3; k++) take(a, &p->d_center[k], p->n_boxes);
  take(a, &p->d_half, p->n_boxes);
  take(a, &p->d_degree_in, p->n_boxes);
  take(a, &p->d_degree_out, p->n_boxes);
  take(a, &p->d_degree_parent, p->n_boxes);
  take(a, &p->d_surface, 3 * p->n_surface);
  if (!fmm_cuda_has_far(p)) return;
  take(a, &p->d_up_equivalent, expansion);
  take(a, &p->d_down_check, expansion);
  if (fmm_cuda_has(p, FMM_PHASE_DOWN)) {
    take(a, &p->d_check_in, expansion);
    if (!p->block) take(a, &p->d_coefficient, expansion);
  }
  if (fmm_cuda_has(p, FMM_PHASE_DOWN) && !fmm_cuda_down_leaves_serve(p)) {
    take(a, &p->d_down_equivalent, expansion);
    take(a, &p->d_shell, (int64_t)p->n_boxes * p->columns * p->equivalents);
  }
  int64_t work = p->block || p->n_leaf_columns > p->n_up_columns ? p->n_leaf_columns : p->n_up_columns;
  if (fmm_cuda_has(p, FMM_PHASE_UP) && !fmm_cuda_up_moments_serve(p))
    for (int i = 0; i < (p->block ? 1 : 2); i++) take(a, &p->d_work[i], work * p->columns * p->n);
  take(a, &p->d_column_box, p->n_columns);
  take(a, &p->d_child, fmm_cuda_child_rows(p) * 8);
  if (p->block) {
    take(a, &p->d_kept, (int64_t)p->n_boxes * p->columns * FMM_MIRRORS * p->block);
    take(a, &p->d_orbit_point, FMM_MIRRORS * p->n_orbits * p->equivalents);
    take(a, &p->d_orbit_place, FMM_MIRRORS * p->n_orbits * p->equivalents);
    take(a, &p->d_pad, FMM_MIRRORS * p->block - p->n);
    return;
  }
  take(a, &p->d_parent, p->n_down_columns);
  take(a, &p->d_tile_octant, p->n_down_columns / FMM_GPU_TILE_BOXES);
}

void layout_v(fmm_gpu_plan *p, arena *a, int slab) {
  if (!p->v_rows) return;
  int64_t per_box = (int64_t)slab * p->grid * p->grid * p->columns * p->equivalents * 8 * (p->v_single ? sizeof(float2) : sizeof(double2));
  take(a, &p->d_slot_child, 8 * (p->v_slots + 1));
  take(a, &p->d_row_child, 8 * p->v_rows);
  take(a, &p->d_v_row, p->v_positions);
  take(a, &p->d_v_line, fmm_cuda_v_lines(p));
  if (p->v_halves) take(a, &p->d_v_slot_unit, (int64_t)p->columns * p->equivalents * (p->v_slots + 1)), take(a, &p->d_v_line_unit, p->columns * p->equivalents * fmm_cuda_v_lines(p) * 16);
  take(a, &p->d_twiddle, 2 * p->grid);
  take(a, &p->d_grid_surface, p->order * p->order * p->order);
  p->spectrum_bytes = (size_t)per_box * (size_t)(p->v_slots + 1);
  take(a, (char **)&p->d_spectrum, per_box * (p->v_slots + 1));
  take(a, (char **)&p->d_product, per_box * p->v_rows);
  p->d_v_partial = NULL;
  if (slab < p->order) take(a, &p->d_v_partial, p->v_rows * 8 * p->columns * p->n);
}

/* What is known before the tables are made: points, */
size_t layout_first(fmm_gpu_plan *p, char *base) {
  arena a = {base, 0};
  layout_points(p, &a);
  return a.used;
}

/* and operators. */
size_t layout_kept(fmm_gpu_plan *p, char *base) {
  arena a = {base, 0};
  if (fmm_cuda_may_take_moments(p)) take(&a, &p->d_moment_place, fmm_cuda_up_moments_places(p->order, fmm_cuda_up_in_single(p)));
  if (fmm_cuda_may_take_harmonics(p)) take(&a, &p->d_harmonic_slot, FMM_MIRRORS * fmm_cuda_down_moments_rows(p->order));
  for (int l = fmm_cuda_first_set(p); fmm_cuda_has_far(p) && l < p->n_operator_levels; l++) layout_operators(p, &a, l);
  return a.used;
}

/* Of one value in a part, or of a point's in one of both directions. */
int64_t bytes_of_part(const fmm_gpu_plan *p, const fmm_cuda_sums *s) { return s->both ? fmm_cuda_both_values(p) * (int64_t)(s->single ? sizeof(float) : sizeof(double)) : (int64_t)sizeof(double); }

size_t layout(fmm_gpu_plan *p, char *base, int slab) {
  arena a = {base, 0};
  layout_boxes(p, &a);
  for (int i = 0; i < FMM_N_SUMS; i++) {
    fmm_cuda_sums *s = &p->sums[i];
    if (!s->row_tile) continue;
    if (!s->both) take(&a, &s->d_tile, s->n_tiles);
    if (s->range) take(&a, &s->d_range, s->n_ranges);
    if (s->box) take(&a, &s->d_box, s->n_ranges);
    if (s->order) take(&a, &s->d_order, s->n_tiles);
    if (s->n_joints) take(&a, &s->d_joint, s->n_joints), take(&a, (char **)&s->d_partial, s->n_partial * bytes_of_part(p, s));
    if (s->both) take(&a, &s->d_chunk, s->n_chunks), take(&a, &s->d_mate, s->n_mates);
    if (s->unit_end) take(&a, &s->d_unit_end, s->n_tiles), take(&a, &s->d_unit, s->n_units);
  }
  if (p->sums[FMM_SUM_U].single) take(&a, &p->d_tight, (fmm_cuda_measures(p) + 1) * p->sums[FMM_SUM_U].n_tiles), take(&a, &p->sums[FMM_SUM_U].d_precise, p->sums[FMM_SUM_U].n_tiles);
  if (p->n_runs) take(&a, &p->d_run, p->n_runs);
  if (p->overlaps) take(&a, &p->d_next_tile, 1);
  layout_v(p, &a, slab);
  p->slab = slab;
  return a.used;
}

/* Pair sums follow their phase's precision, those onto and from surfaces where the order lets them. */
int is_single(const fmm_state *s, fmm_cuda_sum sum) {
  static const fmm_phase phase[FMM_N_SUMS] = {FMM_PHASE_UP, FMM_PHASE_ULIST, FMM_PHASE_WLIST, FMM_PHASE_XLIST, FMM_PHASE_DOWN};
  if (sum != FMM_SUM_U && !s->operators) return 0;
  return (sum == FMM_SUM_U ? s->precision[phase[sum]] : fmm_surface_precision(s, phase[sum])) != FMM_PRECISION_DOUBLE;
}

void use_parity(fmm_gpu_plan *p, int block) {
  p->block = block;
  p->matrix = block ? FMM_MIRRORS * fmm_cuda_parity_matrix(block) : (int64_t)p->m_pad * p->k_pad;
}

/* With parity: behind the unknowns of the block whose shell field it is. Before tables are made and operators sent, which both ask. */
void place_shells(fmm_gpu_plan *p, const fmm_operators *o) {
  for (int k = 0; o && p->block && k < p->equivalents; k++) {
    int begin, end, chi = 0;
    fmm_shell_range(o, k, &begin, &end);
    while (begin >= o->parity.begin[chi + 1]) chi++;
    p->shell_place[k] = chi * p->block + end - begin;
  }
}

void shape(fmm_gpu_plan *p, const fmm_gpu_request *q) {
  const fmm_state *s = q->state;
  const fmm_operators *o = s->operators;
  p->device = q->device, p->threads = q->threads > 0 ? q->threads : 1, p->phases = q->phases, p->caller = (cudaStream_t)q->stream;
  p->most_entries = q->most_entries, p->least_stage = q->least_stage;
  p->densities_from_host = q->densities_space == FMM_MEMORY_HOST, p->results_to_host = q->results_space == FMM_MEMORY_HOST;
  p->info = s->pair->info;
  p->columns = s->n_columns, p->gradient = s->gradient != 0;
  p->components = p->info->components, p->equivalents = p->info->equivalent_components, p->outputs = p->info->outputs;
  p->values = p->outputs * (p->gradient ? 4 : 1);
  p->order = o ? o->order : FMM_MIN_ORDER; /* without operators (U alone) nothing is read of the surfaces */
  p->outer_radius = o ? o->outer_radius : 0, p->shell_decay2 = o ? o->shell_decay2 : 0;
  p->grid = 2 * p->order - 1, p->n_surface = fmm_surface_size(p->order), p->n = p->equivalents * p->n_surface;
  p->n_orbits = o ? o->shape.n_orbits : 0;
  p->k_pad = (p->n + 15) / 16 * 16, p->m_pad = (p->n + 31) / 32 * 32;
  use_parity(p, o ? fmm_gpu_parity_block(p->info, p->order) : 0);
  place_shells(p, o);
  p->up_moments_fit = p->down_leaves_fit = p->both_fits = 1; /* until the device is asked (check_parity) */
  p->n_levels = s->tree->n_levels;
  p->n_operator_levels = !o || o->n_levels == 1 ? 1 : p->n_levels;
  p->n_sources = s->tree->sources.n, p->n_targets = s->tree->targets.n;
  p->n_input_sources = s->tree->sources.n_input, p->n_input_targets = s->tree->targets.n_input;
  p->merged_sources = s->tree->sources.first != NULL, p->merged_targets = s->tree->targets.first != NULL;
  p->n_boxes = s->tree->n_boxes, p->n_leaves = s->tree->n_leaves;
  p->first_far[0] = s->tree->level_begin[FMM_FIRST_FAR_LEVEL], p->first_far[1] = s->tree->level_begin[FMM_FIRST_FAR_LEVEL + 1];
  p->v_rows = fmm_cuda_has(p, FMM_PHASE_VLIST) ? s->lists->v.n_rows : 0;
  p->same_points = s->tree->same_points;
  memcpy(p->params, s->params, sizeof(double) * (size_t)p->info->n_params);
  memcpy(p->precision, s->precision, sizeof p->precision);
  p->tolerance = s->tolerance;
  for (int sum = 0; sum < FMM_N_SUMS; sum++) p->sums[sum].single = is_single(s, (fmm_cuda_sum)sum);
  p->v_single = p->precision[FMM_PHASE_VLIST] == FMM_PRECISION_SINGLE, p->v_halves = p->v_single && fmm_cuda_v_halves(p, q->halves_from);
  const unsigned together = 1u << FMM_PHASE_UP | 1u << FMM_PHASE_ULIST | 1u << FMM_PHASE_VLIST | 1u << FMM_PHASE_DOWN; /* W would have to wait for the last of U */
  p->overlaps = p->sums[FMM_SUM_U].single && !fmm_cuda_both_serves(p) && p->columns == 1 && !p->gradient && (p->phases & together) == together && s->lists->w.n_rows == 0;
  p->carveout = p->overlaps ? CARVEOUT : -1;
}

fmm_status choose_children(fmm_gpu_plan *p) {
  int most = 0;
  CUDA_TRY(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, p->device));
  p->children_forward = p->children_inverse = 8;
  /* a third of the memory at most where that is possible, so that blocks overlap */
  while (p->children_forward > 1 && fmm_vlist_cuda_forward_bytes(p->order, p->n_surface, p->children_forward) > (size_t)most / 3) p->children_forward /= 2;
  while (p->children_inverse > 1 && fmm_vlist_cuda_inverse_bytes(p->order, p->n_surface, p->children_inverse) > (size_t)most / 3) p->children_inverse /= 2;
  if (fmm_vlist_cuda_inverse_bytes(p->order, p->n_surface, p->children_inverse) > (size_t)most)
    return FMM_FAIL(FMM_ERR_DEVICE, "order %d needs more shared memory than this GPU has (%d bytes a block): lower the order or choose schedule cpu", p->order, most);
  return fmm_vlist_cuda_prepare(p, (size_t)most);
}

/* Which kernels serve; the first use of each brings it to the device. */
fmm_status choose_kernels(void *context) {
  fmm_gpu_plan *p = ((fmm_cuda_setup *)context)->plan;
  fmm_cuda_on_device on(p->device);
  if (p->v_rows) FMM_TRY(choose_children(p));
  if (fmm_cuda_has_far(p)) CUDA_TRY(p->block ? fmm_cuda_parity_prepare(p->block, &p->early) : fmm_cuda_product_prepare(&p->early));
  if (p->up_moments_fit && fmm_cuda_may_take_moments(p)) CUDA_TRY(fmm_cuda_up_moments_prepare(p->order, fmm_cuda_up_in_single(p)));
  if (p->block && p->down_leaves_fit && fmm_cuda_lattice_serves(p, FMM_SUM_L2P)) CUDA_TRY(fmm_cuda_down_leaves_prepare(p));
  if (p->overlaps) p->early = 0;
  if (fmm_cuda_has(p, FMM_PHASE_ULIST) && fmm_cuda_both_serves(p)) CUDA_TRY(fmm_cuda_both_prepare(p));
  return FMM_OK;
}

/* Where a block of threads has not the memory for them, operators are dense. */
fmm_status check_parity(fmm_gpu_plan *p) {
  int most = 0;
  CUDA_TRY(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, p->device));
  if (p->block && fmm_cuda_parity_bytes(p->block) > most) use_parity(p, 0);
  p->up_moments_fit = fmm_cuda_up_moments_bytes(p->order, fmm_cuda_up_in_single(p)) <= most - STATIC_BYTES, p->down_leaves_fit = fmm_cuda_down_leaves_bytes(p->order) <= most - STATIC_BYTES;
  p->both_fits = fmm_cuda_both_bytes(p->gradient, p->sums[FMM_SUM_U].single) <= most - STATIC_BYTES;
  return FMM_OK;
}

fmm_status too_large(size_t bytes, size_t available) {
  return FMM_FAIL(FMM_ERR_MEMORY, "the GPU's part needs at least %.0f MB of device memory, %.0f MB may be used: raise the cap, choose another schedule or a larger leaf size",
                  (double)bytes / 1e6, (double)available / 1e6);
}

/* Those of an earlier plan, if they are what this one's would be. */
void take_operators(fmm_gpu_plan *p, const fmm_gpu_request *q) {
  const int far = fmm_cuda_has_far(p), form[] = {p->order, p->block, (int)(p->phases & (1u << FMM_PHASE_UP | 1u << FMM_PHASE_DOWN)), p->v_rows > 0, p->gradient, p->n_operator_levels,
                                                 far && fmm_cuda_may_take_moments(p) ? 1 + fmm_cuda_up_in_single(p) : 0, far && fmm_cuda_may_take_harmonics(p)};
  static_assert(sizeof form == sizeof p->kept.form, "as many");
  p->kept.device = p->device, p->kept.of = q->state->operators, p->kept.bytes = layout_kept(p, NULL);
  memcpy(p->kept.form, form, sizeof form);
  p->operators_there = fmm_cuda_spare_take_operators(q->spare, &p->kept);
}

fmm_status reserve_first(fmm_gpu_plan *p, const fmm_gpu_request *q) {
  size_t total = 0, unused = 0;
  take_operators(p, q);
  const size_t first = layout_first(p, NULL), bytes = first + p->kept.bytes, rows = fmm_cuda_rows_bytes(q->rows), spare = fmm_cuda_spare_bytes(q->spare, p->device, q->memory_cap > 0);
  CUDA_TRY(cudaMemGetInfo(&unused, &total));
  p->available = unused + spare + (p->operators_there ? p->kept.bytes : 0);
  const size_t others = total / 32 < OTHERS ? total / 32 : OTHERS;
  if (rows && bytes > p->available) return too_large(bytes, p->available); /* beside them */
  p->available += rows; /* given back before the rest is reserved */
  p->available -= p->available < others ? p->available : others;
  if (q->memory_cap && q->memory_cap < p->available) p->available = q->memory_cap;
  if (bytes > p->available) return too_large(bytes, p->available);
  const int serves = fmm_cuda_spare_block_serves(q->spare, FMM_GPU_BLOCK_POINTS, first);
  if (spare && (serves ? 0 : first) + (p->operators_there ? 0 : p->kept.bytes) > unused) fmm_cuda_spare_free_block(q->spare, FMM_GPU_BLOCK_REST);
  FMM_TRY(fmm_cuda_spare_take_block(q->spare, FMM_GPU_BLOCK_POINTS, first, first, &p->held[FMM_GPU_BLOCK_POINTS], &p->held_bytes[FMM_GPU_BLOCK_POINTS]));
  p->first_bytes = layout_first(p, (char *)p->held[FMM_GPU_BLOCK_POINTS]);
  if (!p->operators_there && p->kept.bytes) CUDA_TRY(cudaMalloc(&p->kept.memory, p->kept.bytes));
  layout_kept(p, (char *)p->kept.memory);
  return FMM_OK;
}

fmm_status fall_back(void *context) {
  const fmm_cuda_setup *setup = (const fmm_cuda_setup *)context;
  return fmm_cuda_tables_fall_back(setup->plan, setup->state);
}

/* What an earlier plan's block has too much must not change what the plan is: then it is to be made without. */
fmm_status reserve(fmm_cuda_setup *setup) {
  fmm_gpu_plan *p = setup->plan;
  const size_t there = p->held_bytes[FMM_GPU_BLOCK_POINTS] + p->kept.bytes;
  const int has_surplus = p->held_bytes[FMM_GPU_BLOCK_POINTS] > p->first_bytes;
  size_t available = p->available > there ? p->available - there : 0;
  fmm_cuda_sums *u = &p->sums[FMM_SUM_U];
  fmm_job again = {"U's table, one way", fall_back, setup, 0, 0};
  if (u->both && layout(p, NULL, 1) + fmm_cuda_wide_bytes(p) > available) {
    if (has_surplus) return too_large(there + layout(p, NULL, 1), p->available);
    FMM_TRY(fmm_jobs_run(&again, 1, p->threads));
  }
  available -= fmm_cuda_wide_bytes(p); /* it is enough by now, or none */
  int slabs = 1, slab = p->order;
  while (layout(p, NULL, slab) > available && slab > 1) slab = (p->order + slabs) / (slabs + 1), slabs++;
  const size_t bytes = layout(p, NULL, slab), larger = setup->spare && setup->spare->block[FMM_GPU_BLOCK_REST].memory ? (bytes + bytes / 32 + 255) / 256 * 256 : bytes; /* so that it serves points that need a little more */
  if (bytes > available || (slabs > 1 && has_surplus)) return too_large(there + bytes, p->available);
  FMM_TRY(fmm_cuda_spare_take_block(setup->spare, FMM_GPU_BLOCK_REST, bytes, larger <= available ? larger : bytes, &p->held[FMM_GPU_BLOCK_REST], &p->held_bytes[FMM_GPU_BLOCK_REST]));
  layout(p, (char *)p->held[FMM_GPU_BLOCK_REST], slab);
  return FMM_OK;
}

void free_host_sums(fmm_gpu_plan *p) {
  for (int i = 0; i < FMM_N_SUMS; i++) fmm_cuda_sums_free(&p->desk, &p->sums[i]);
}

void free_offsets(fmm_gpu_plan *p) {
  for (int i = 0; i < FMM_N_SUMS; i++) fmm_cuda_sums_free_offsets(&p->sums[i]);
}

void add_part(fmm_gpu_plan *p, const char *name, double begin_s) {
  p->part[p->n_parts++] = fmm_gpu_part{name, begin_s, fmm_now_s() - p->began_s};
}

/* Jobs that wait for the driver come first, then the longest. */
fmm_status run_jobs(fmm_gpu_plan *p, fmm_cuda_setup *setup) {
  fmm_job job[FMM_CUDA_UPLOAD_JOBS + FMM_CUDA_TABLES_JOBS + 1];
  enum { N = sizeof job / sizeof *job };
  const double begin = fmm_now_s() - p->began_s;
  fmm_cuda_upload_jobs(setup, job);
  fmm_cuda_tables_jobs(setup, job + FMM_CUDA_UPLOAD_JOBS);
  job[N - 1] = fmm_job{"kernels", choose_kernels, setup, 0, 0};
  FMM_TRY(fmm_jobs_run(job, N, p->threads));
  for (int i = 0; i < N; i++) p->part[p->n_parts++] = fmm_gpu_part{job[i].name, begin + job[i].begin_s, begin + job[i].end_s};
  return FMM_OK;
}

fmm_status create(fmm_gpu_plan **plan, fmm_cuda_tables *tables, const fmm_gpu_request *request) {
  fmm_gpu_info info;
  fmm_gpu_query(request->device, &info);
  if (!info.present) return FMM_FAIL(FMM_ERR_DEVICE, "%s: choose schedule cpu", info.reason);
  FMM_TRY(FMM_ALLOCATE_ZERO(plan, 1, "GPU plan"));
  fmm_gpu_plan *p = *plan;
  p->began_s = fmm_now_s();
  shape(p, request);
  if (!fmm_cuda_pair_find(p->info)) return FMM_FAIL(FMM_ERR_DEVICE, "kernel %s has no GPU code", p->info->name);
  fmm_cuda_on_device on(p->device);
  fmm_cuda_setup setup = {p, tables, request->state, request->spare, request->rows};
  FMM_TRY(check_parity(p));
  FMM_TRY(fmm_cuda_queues_make(p, request->spare, p->device, request->sms, p->overlaps));
  FMM_TRY(reserve_first(p, request));
  fmm_cuda_take_stage(&setup);
  add_part(p, "streams, the first arena", 0);
  FMM_TRY(run_jobs(p, &setup));
  fmm_gpu_rows_give_up(request->rows);
  double begin = fmm_now_s() - p->began_s;
  FMM_TRY(reserve(&setup));
  add_part(p, "the other arena", begin);
  begin = fmm_now_s() - p->began_s;
  FMM_TRY(fmm_cuda_upload_tables(&setup));
  add_part(p, "the tables' upload", begin);
  begin = fmm_now_s() - p->began_s;
  FMM_TRY(fmm_cuda_mark_tight(p));
  add_part(p, "tight tiles", begin);
  return CUDA_CHECKED(cudaStreamSynchronize(cudaStreamLegacy)); /* copies from pageable memory may still be on their way there, and the plan's streams do not wait for it */
}
}

extern "C" fmm_status fmm_gpu_plan_create(fmm_gpu_plan **plan, const fmm_gpu_request *request) {
  fmm_gpu_plan *p = NULL;
  fmm_cuda_tables tables = {};
  fmm_status status = create(&p, &tables, request);
  if (p) free_host_sums(p), fmm_cuda_tables_free(&p->desk, &tables);
  if (status == FMM_OK) *plan = p, p->desk = fmm_cuda_desk{};
  else fmm_gpu_plan_destroy(&p);
  return status;
}

extern "C" void fmm_gpu_plan_predict(const fmm_gpu_request *request, size_t *least_bytes, size_t *best_bytes) {
  fmm_gpu_plan *p = NULL;
  fmm_cuda_tables tables = {};
  fmm_job job[FMM_CUDA_TABLES_JOBS];
  *least_bytes = *best_bytes = SIZE_MAX; /* not even the tables fit the host */
  if (FMM_ALLOCATE_ZERO(&p, 1, "GPU plan") == FMM_OK) {
    shape(p, request);
    if (cudaDeviceGetAttribute(&p->sms, cudaDevAttrMultiProcessorCount, request->device) != cudaSuccess) p->sms = 0; /* then leaves are many */
    fmm_cuda_setup setup = {p, &tables, request->state, NULL, NULL};
    const size_t first = layout_first(p, NULL) + layout_kept(p, NULL);
    fmm_cuda_tables_jobs(&setup, job);
    if (fmm_jobs_run(job, FMM_CUDA_TABLES_JOBS, p->threads) == FMM_OK) {
      *best_bytes = first + layout(p, NULL, p->order);
      if (!p->sums[FMM_SUM_U].both || fall_back(&setup) == FMM_OK) *least_bytes = first + layout(p, NULL, 1);
    }
  }
  if (p) free_host_sums(p), fmm_cuda_tables_free(&p->desk, &tables);
  if (p) free_offsets(p);
  FMM_FREE(&p);
}

extern "C" void fmm_gpu_plan_destroy(fmm_gpu_plan **plan) {
  fmm_gpu_plan *p = *plan;
  if (!p) return;
  {
    fmm_cuda_on_device on(p->device);
    fmm_cuda_queues_wait(p);
    fmm_cuda_queues_free(p);
    fmm_gpu_stage_free(&p->locked);
    fmm_cuda_spare_free_operators(&p->kept);
    for (int i = 0; i < FMM_GPU_N_BLOCKS; i++)
      if (p->held[i]) cudaFree(p->held[i]);
    if (p->wide) cudaFree(p->wide);
    cudaGetLastError();
  }
  free_offsets(p);
  FMM_FREE(plan);
}

extern "C" size_t fmm_gpu_plan_device_bytes(const fmm_gpu_plan *plan) { return plan->held_bytes[0] + plan->kept.bytes + plan->held_bytes[1] + plan->wide_bytes; }
extern "C" size_t fmm_gpu_plan_host_bytes(const fmm_gpu_plan *plan) { return plan->host_bytes; }
extern "C" int fmm_gpu_plan_parts(const fmm_gpu_plan *plan, const fmm_gpu_part **parts) {
  *parts = plan->part;
  return plan->n_parts;
}
extern "C" int fmm_gpu_plan_sms(const fmm_gpu_plan *plan) { return plan->sms; }
extern "C" int fmm_gpu_plan_falls_back(const fmm_gpu_plan *plan) { return plan->falls_back; }
