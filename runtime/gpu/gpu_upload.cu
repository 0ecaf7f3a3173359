/* What a device plan's making brings to the device. Large arrays are page-locked where they lie, copied by the device while other jobs go on, and unlocked: an H200's host locks
 * and unlocks 30 GB/s of memory that has been touched, copies 55 GB/s of it, and 7 GB/s of memory that is not locked. Points and operators go while the host's tables are made
 * (runtime/jobs.h), the tables when they are, by way of the stage. The stage, through which an execution's densities and results go, is memory of the library's own that the team
 * touches and one call locks: the driver's own allocation of locked memory takes six times as long, and whoever else calls the driver waits for it. Calls of the driver wait for
 * one another and for what locks memory, so that few large copies are made instead of many small ones. */
#include "runtime/gpu/gpu_cuda.h"
#include "runtime/gpu/gpu_rows_cuda.h"
#include "runtime/gpu/team_loop_cuda.h"

namespace {
enum { LEAST_LOCKED = 1 << 20 /* bytes */, MOST_LOCKED = 64, MATRICES = 20, MATRIX_JOBS = 4, TOUCHED = 1 << 18 /* bytes at once */, TOGETHER = 1 << 23 /* bytes of a copy */, LINE = 256 };

/* Copies on their way; desk: locked memory that is free for some, or where they lie already; NULL: none. */
struct sending { cudaStream_t stream; int n_locked; void *locked[MOST_LOCKED]; fmm_cuda_desk *desk; };

/* By the whole team. */
void copy(char *to, const char *from, size_t bytes) {
  fmm_cuda_for_each((int64_t)((bytes + TOUCHED - 1) / TOUCHED), 1, [=](int64_t i) {
    const size_t at = (size_t)i * TOUCHED;
    memcpy(to + at, from + at, bytes - at < TOUCHED ? bytes - at : TOUCHED);
  });
}

/* Where it is on the desk, or a copy of it if there is room; else NULL. */
const void *on_desk(const sending *s, const void *from, size_t bytes) {
  fmm_cuda_desk *d = s->desk;
  if (!d || fmm_cuda_desk_has(d, from)) return d ? from : NULL;
  char *at = fmm_cuda_desk_room(d, bytes);
  if (at) copy(at, (const char *)from, bytes);
  return at;
}

/* What the driver will not lock (a message-passing library has locked it before, or the platform cannot) is not locked; then it is copied as it is. */
cudaError_t lock(void *memory, size_t bytes, int *locked) {
  *locked = cudaHostRegister(memory, bytes, cudaHostRegisterDefault) == cudaSuccess;
  if (!*locked) cudaGetLastError();
  return cudaSuccess;
}

template <typename T>
fmm_status send(sending *s, T *d_to, const T *from, int64_t count) {
  const size_t bytes = (size_t)(count > 0 ? count : 0) * sizeof(T);
  if (bytes == 0) return FMM_OK;
  const void *locked_already = on_desk(s, from, bytes);
  if (!locked_already && bytes >= LEAST_LOCKED && s->n_locked < MOST_LOCKED) {
    int locked = 0;
    CUDA_TRY(lock((void *)from, bytes, &locked));
    if (locked) s->locked[s->n_locked++] = (void *)from;
  }
  CUDA_TRY(cudaMemcpyAsync((void *)d_to, locked_already ? locked_already : from, bytes, cudaMemcpyHostToDevice, s->stream));
  return FMM_OK;
}

fmm_status send_set(sending *s, const double *from[3], double *const d_to[3], int64_t n) {
  for (int k = 0; k < 3; k++) FMM_TRY(send(s, d_to[k], from[k], n));
  return FMM_OK;
}

/* Waits for them, whatever has become of them. */
fmm_status end_sending(sending *s, fmm_status status) {
  const cudaError_t error = cudaStreamSynchronize(s->stream);
  for (int i = 0; i < s->n_locked; i++) cudaHostUnregister(s->locked[i]);
  if (status == FMM_OK) return fmm_cuda_checked(error, "cudaStreamSynchronize", __FILE__, __LINE__);
  cudaGetLastError();
  return status;
}

/* A set of points: rows in sorted order, then coordinates, which the device takes from `rows` if these are there already (else NULL). */
fmm_status send_set_of_points(sending *to, const fmm_gpu_rows *rows, int set, const fmm_tree *tree, double *const d_at[3], uint32_t *d_row, int64_t *d_first) {
  const fmm_points *p = set ? &tree->targets : &tree->sources;
  const double *at[3] = {p->x, p->y, p->z};
  FMM_TRY(send(to, d_row, p->input_row, p->n_input));
  if (p->first) FMM_TRY(send(to, d_first, p->first, p->n + 1));
  if (!rows) return send_set(to, at, d_at, p->n);
  CUDA_TRY(fmm_cuda_rows_gather(rows, set, tree, p->n, d_row, p->first ? d_first : NULL, d_at, to->stream));
  return FMM_OK;
}

fmm_status send_points(const fmm_gpu_plan *p, const fmm_tree *tree, fmm_gpu_rows *brought, sending *to) {
  const fmm_points *s = &tree->sources;
  const double *normal[3] = {s->normal[0], s->normal[1], s->normal[2]};
  const fmm_gpu_rows *rows = fmm_gpu_rows_serve(brought) ? brought : NULL;
  FMM_TRY(send_set_of_points(to, rows, 0, tree, p->d_source, p->d_source_row, p->d_source_first));
  if (p->info->takes_normals) FMM_TRY(send_set(to, normal, p->d_normal, p->n_sources));
  if (!tree->same_points) FMM_TRY(send_set_of_points(to, rows, 1, tree, p->d_target, p->d_target_row, p->d_target_first));
  CUDA_TRY(fmm_cuda_invert_rows(p, p->d_target_row, p->merged_targets ? p->d_target_first : NULL, to->stream));
  CUDA_TRY(fmm_cuda_find_tiny(p, to->stream));
  return FMM_OK;
}

fmm_status points_job(void *context) {
  const fmm_cuda_setup *j = (const fmm_cuda_setup *)context;
  fmm_cuda_on_device on(j->plan->device);
  sending s = {j->plan->stream[FMM_CUDA_IN], 0, {}, NULL};
  return end_sending(&s, send_points(j->plan, j->state->tree, j->rows, &s));
}

/* An earlier plan's, unless it is too small, or more than twice as large as it has to be: then it makes room for another. */
int take_earlier(fmm_gpu_stage *earlier, int device, size_t bytes, fmm_gpu_stage *stage) {
  if (!earlier->memory) return 0;
  const size_t most = earlier->exact ? bytes : 2 * bytes;
  if (earlier->device != device || earlier->bytes < bytes || earlier->bytes > most) return fmm_gpu_stage_free(earlier), 0;
  *stage = *earlier;
  earlier->memory = NULL;
  return 1;
}

/* Memory that the team touches and one call locks, else the driver's. */
fmm_status make_stage(int device, size_t bytes, fmm_gpu_stage *stage) {
  int alike = 0; /* whether kernels may write registered memory where the host sees it */
  *stage = fmm_gpu_stage{NULL, bytes, device, 0, 0, 0};
  CUDA_TRY(cudaDeviceGetAttribute(&alike, cudaDevAttrCanUseHostPointerForRegisteredMem, device));
  if (alike) {
    FMM_TRY(FMM_ALLOCATE(&stage->memory, bytes, "page-locked memory for a GPU's densities and results"));
    stage->allocated = 1;
    char *memory = stage->memory;
    fmm_cuda_for_each((int64_t)((bytes + TOUCHED - 1) / TOUCHED), 1, [=](int64_t i) {
      const size_t at = (size_t)i * TOUCHED;
      memset(memory + at, 0, bytes - at < TOUCHED ? bytes - at : TOUCHED);
    });
    CUDA_TRY(lock(memory, bytes, &stage->registered));
    if (!stage->registered) {
      FMM_FREE(&stage->memory);
      stage->allocated = 0;
    }
  }
  if (!stage->registered) CUDA_TRY(cudaMallocHost((void **)&stage->memory, bytes));
  return FMM_OK;
}

struct making { fmm_gpu_stage *stage; int device; size_t bytes; };

fmm_status make_job(void *context) {
  const making *m = (const making *)context;
  fmm_cuda_on_device on(m->device);
  const fmm_status status = make_stage(m->device, m->bytes, m->stage);
  if (status != FMM_OK) fmm_gpu_stage_free(m->stage);
  return status;
}

size_t padded(size_t bytes) { return (bytes + LINE - 1) / LINE * LINE; }

/* What of the page-locked memory is for what. */
struct stage_shape { size_t in, out, out_begin, report_begin, arrived_begin, needed, wanted; };
stage_shape stage_of(const fmm_gpu_plan *p) {
  stage_shape s = {};
  s.in = p->densities_from_host ? (size_t)(p->n_input_sources * p->components * p->columns) * sizeof(double) : 0;
  s.out = p->results_to_host ? (size_t)(p->n_input_targets * p->values * p->columns) * sizeof(double) : 0;
  s.out_begin = padded(s.in), s.report_begin = s.out_begin + padded(s.out), s.arrived_begin = s.report_begin + FMM_CUDA_N_REPORT * sizeof *p->report;
  s.needed = fmm_gpu_stage_size(s.in, s.out), s.wanted = s.needed < p->least_stage ? p->least_stage : s.needed;
  return s;
}

void place_stage(fmm_gpu_plan *p, const stage_shape &s) {
  p->stage = p->locked.memory;
  if (s.in) p->stage_in = (double *)p->stage;
  if (s.out) p->stage_out = (double *)(p->stage + s.out_begin);
  p->report = (unsigned long long *)(p->stage + s.report_begin);
  p->arrived = (unsigned *)(p->stage + s.arrived_begin);
  p->stage_bytes = s.report_begin;
  p->host_bytes = s.in + s.out + p->locked.bytes - s.needed;
}

/* Where there is none that suits. */
fmm_status stage_job(void *context) {
  const fmm_cuda_setup *setup = (const fmm_cuda_setup *)context;
  fmm_gpu_plan *p = setup->plan;
  const stage_shape shape = stage_of(p);
  if (p->stage) return FMM_OK;
  fmm_cuda_on_device on(p->device);
  FMM_TRY(make_stage(p->device, shape.wanted, &p->locked));
  place_stage(p, shape);
  return FMM_OK;
}

/* One of a level's operators: where it goes, NULL: it is not wanted. octant: with parity the block whose rows an M2M's or L2L's are. */
struct matrix { fmm_operator_kind kind; int octant; double *d_to; };
matrix matrix_of(const fmm_gpu_plan *p, const fmm_cuda_operators *d, int i) {
  const int down = i >= MATRICES / 2, n = i % (MATRICES / 2), octant = n < 2 ? 0 : n - 2;
  const int64_t size = p->matrix;
  if (!fmm_cuda_has(p, down ? FMM_PHASE_DOWN : FMM_PHASE_UP)) return matrix{FMM_OPERATOR_M2M, 0, NULL};
  if (n == 0) return down ? matrix{FMM_OPERATOR_DOWN_FIRST, 0, d->d_down_first} : matrix{FMM_OPERATOR_UP_FIRST, 0, d->d_up_first};
  if (n == 1) return down ? matrix{FMM_OPERATOR_DOWN_SECOND, 0, d->d_down_second} : matrix{FMM_OPERATOR_UP_SECOND, 0, d->d_up_second};
  return down ? matrix{FMM_OPERATOR_L2L, octant, d->d_l2l + octant * size} : matrix{FMM_OPERATOR_M2M, octant, d->d_m2m + octant * size};
}

/* A block of rows and columns, times a factor, into place, where rows have `block` columns. first: its column in panels. */
void place_block(int block, const fmm_panels *from, int first, int columns, double factor, double *to) {
  for (int i = 0; i < from->rows; i++)
    for (int j = 0; j < columns; j++)
      to[fmm_cuda_parity_place(i, j, block)] = factor * from->data[((int64_t)(i / FMM_PANEL_ROWS) * from->columns + first + j) * FMM_PANEL_ROWS + i % FMM_PANEL_ROWS];
}

/* The strength of component k's shell field, where the pair has one: a row of the first factor behind its block's own, which the second hands on as it is. */
void place_shells(const fmm_gpu_plan *p, const fmm_operators *o, const fmm_level_operators *set, fmm_operator_kind kind, double *padded) {
  for (int k = 0; k < p->equivalents && set->shell; k++) {
    int begin, end;
    fmm_shell_range(o, k, &begin, &end);
    const int chi = p->shell_place[k] / p->block, row = end - begin;
    double *to = padded + chi * (p->matrix / FMM_MIRRORS);
    const fmm_panels *first = &set->down_first[chi];
    for (int j = 0; j < row && kind == FMM_OPERATOR_DOWN_FIRST; j++) {
      double sum = 0;
      for (int i = 0; i < row; i++) sum += set->shell[k * o->n + begin + i] * first->data[((int64_t)(i / FMM_PANEL_ROWS) * first->columns + j) * FMM_PANEL_ROWS + i % FMM_PANEL_ROWS];
      to[fmm_cuda_parity_place(row, j, p->block)] = sum;
    }
    if (kind == FMM_OPERATOR_DOWN_SECOND) to[fmm_cuda_parity_place(row, row, p->block)] = 1;
  }
}

/* Blocks one behind the other: those of all chi, or of one chi's rows those of all psi, times 8 (kernels/parity_cuda.cu). */
void make_blocks(const fmm_gpu_plan *p, const fmm_operators *o, int level, const matrix *m, double *padded) {
  const fmm_level_operators *set = &o->level[level];
  const int *begin = o->parity.begin;
  const int64_t block = p->matrix / FMM_MIRRORS;
  memset(padded, 0, (size_t)p->matrix * sizeof(double));
  for (int i = 0; i < FMM_MIRRORS; i++) {
    const int length = begin[i + 1] - begin[i];
    double *to = padded + i * block;
    switch (m->kind) {
      case FMM_OPERATOR_UP_FIRST: place_block(p->block, &set->up_first[i], 0, length, 1, to); break;
      case FMM_OPERATOR_UP_SECOND: place_block(p->block, &set->up_second[i], 0, length, 1, to); break;
      case FMM_OPERATOR_DOWN_FIRST: place_block(p->block, &set->down_first[i], 0, length, 1, to); break;
      case FMM_OPERATOR_DOWN_SECOND: place_block(p->block, &set->down_second[i], 0, length, 1, to); break;
      case FMM_OPERATOR_M2M: place_block(p->block, &set->m2m[m->octant], begin[i], length, FMM_MIRRORS, to); break;
      case FMM_OPERATOR_L2L: place_block(p->block, &set->l2l[m->octant], begin[i], length, FMM_MIRRORS, to); break;
    }
  }
  place_shells(p, o, set, m->kind, padded);
}

/* A row of place_block's, times a factor. */
void scale_row(int row, int columns, double factor, double *block) {
  for (int j = 0; j < columns; j++) block[fmm_cuda_parity_place(row, j, columns)] *= factor;
}

/* What makes leaves' coefficients of their moments, and which moment each value of a warp's is. */
fmm_status send_moments(const fmm_gpu_plan *p, const fmm_operators *o) {
  const int single = fmm_cuda_up_in_single(p);
  const int64_t block = fmm_cuda_up_moments_block(p), places = fmm_cuda_up_moments_places(p->order, single);
  double *moments = NULL;
  int16_t *place = NULL;
  fmm_status status;
  FMM_CHECK(FMM_ALLOCATE(&moments, FMM_MIRRORS * block, "operators of moments for the GPU"));
  FMM_CHECK(FMM_ALLOCATE(&place, places, "places of moments for the GPU"));
  fmm_cuda_up_moments_fill(p->order, single, &o->harmonics, place);
  FMM_CHECK(CUDA_CHECKED(cudaMemcpy(p->d_moment_place, place, (size_t)places * sizeof *place, cudaMemcpyHostToDevice)));
  for (int l = fmm_cuda_first_set(p); l < p->n_operator_levels; l++) {
    memset(moments, 0, (size_t)(FMM_MIRRORS * block) * sizeof(double));
    for (int chi = 0; chi < FMM_MIRRORS; chi++) place_block(fmm_cuda_up_moments_terms(p->order), &o->level[l].up_moments[chi], 0, o->level[l].up_moments[chi].columns, 1, moments + chi * block);
    FMM_CHECK(CUDA_CHECKED(cudaMemcpy(p->op[l].d_up_moments, moments, (size_t)(FMM_MIRRORS * block) * sizeof(double), cudaMemcpyHostToDevice)));
  }
done:
  FMM_FREE(&place);
  FMM_FREE(&moments);
  return status;
}

/* What makes leaves' harmonics of their coefficients, and which harmonic each of its rows is. */
fmm_status send_harmonics(const fmm_gpu_plan *p, const fmm_operators *o) {
  const fmm_harmonics *h = &o->harmonics;
  const int rows = fmm_cuda_down_moments_rows(p->order);
  const int64_t block = (int64_t)rows * p->block;
  double *moments = NULL;
  int16_t *slot = NULL;
  fmm_status status;
  FMM_CHECK(FMM_ALLOCATE(&moments, FMM_MIRRORS * block, "operators of harmonics for the GPU"));
  FMM_CHECK(FMM_ALLOCATE(&slot, FMM_MIRRORS * rows, "places of harmonics for the GPU"));
  for (int i = 0; i < FMM_MIRRORS * rows; i++) slot[i] = -1;
  for (int chi = 0; chi < FMM_MIRRORS; chi++)
    for (int i = 0; i < 2 * h->n_pairs; i++)
      if (h->place[i] >= h->begin[chi] && h->place[i] < h->begin[chi + 1]) slot[chi * rows + h->place[i] - h->begin[chi]] = (int16_t)i;
  FMM_CHECK(CUDA_CHECKED(cudaMemcpy(p->d_harmonic_slot, slot, (size_t)(FMM_MIRRORS * rows) * sizeof *slot, cudaMemcpyHostToDevice)));
  for (int l = fmm_cuda_first_set(p); l < p->n_operator_levels; l++) {
    memset(moments, 0, (size_t)(FMM_MIRRORS * block) * sizeof(double));
    for (int chi = 0; chi < FMM_MIRRORS; chi++) place_block(p->block, &o->level[l].down_moments[chi], 0, o->level[l].down_moments[chi].columns, 1, moments + chi * block);
    for (int i = 0; p->gradient && i < FMM_MIRRORS * rows; i++)
      if (slot[i] >= 0) scale_row(i % rows, p->block, 1 / h->unit[slot[i] / 2], moments + i / rows * block);
    FMM_CHECK(CUDA_CHECKED(cudaMemcpy(p->op[l].d_down_moments, moments, (size_t)(FMM_MIRRORS * block) * sizeof(double), cudaMemcpyHostToDevice)));
  }
done:
  FMM_FREE(&slot);
  FMM_FREE(&moments);
  return status;
}

/* Padded and by tiles. dense: n * n. */
fmm_status make_matrix(const fmm_gpu_plan *p, const fmm_operators *o, int level, const matrix *m, double *dense, double *padded) {
  const int64_t n = p->n;
  if (p->block) return make_blocks(p, o, level, m, padded), FMM_OK;
  FMM_TRY(fmm_operators_dense(o, &o->level[level], m->kind, m->octant, dense));
  memset(padded, 0, (size_t)p->matrix * sizeof(double));
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) padded[fmm_cuda_tile_place(i, j, p->k_pad)] = dense[i * n + j];
  return FMM_OK;
}

/* A quarter of a level's matrices, of one side, which lie one behind the other on the device. */
fmm_status send_matrices(const fmm_cuda_setup *setup, int quarter) {
  enum { OF_JOB = MATRICES / MATRIX_JOBS };
  const fmm_gpu_plan *p = setup->plan;
  const int64_t n = p->block ? 0 : p->n, size = p->matrix;
  const int first = quarter * OF_JOB, end = first + OF_JOB, at_once = TOGETHER / (8 * size) < 1 ? 1 : TOGETHER / (8 * size) > OF_JOB ? OF_JOB : (int)(TOGETHER / (8 * size));
  double *dense = NULL;
  fmm_status status = FMM_OK;
  if (!fmm_cuda_has_far(p) || p->operators_there) return FMM_OK;
  fmm_cuda_on_device on(p->device);
  FMM_CHECK(FMM_ALLOCATE(&dense, n * n + at_once * size, "dense operators"));
  for (int l = fmm_cuda_first_set(p); l < p->n_operator_levels; l++)
    for (int i = first; i < end && matrix_of(p, &p->op[l], first).d_to; i += at_once) {
      const int count = end - i < at_once ? end - i : at_once;
      for (int k = 0; k < count; k++) {
        const matrix m = matrix_of(p, &p->op[l], i + k);
        FMM_CHECK(make_matrix(p, setup->state->operators, l, &m, dense, dense + n * n + k * size));
      }
      FMM_CHECK(CUDA_CHECKED(cudaMemcpy(matrix_of(p, &p->op[l], i).d_to, dense + n * n, (size_t)(count * size) * sizeof(double), cudaMemcpyHostToDevice)));
    }
  if (quarter == 0 && fmm_cuda_may_take_moments(p)) FMM_CHECK(send_moments(p, setup->state->operators));
  if (quarter == MATRIX_JOBS - 1 && fmm_cuda_may_take_harmonics(p)) FMM_CHECK(send_harmonics(p, setup->state->operators));
  for (int l = fmm_cuda_first_set(p); quarter == MATRIX_JOBS - 1 && !p->block && l < p->n_operator_levels; l++) {
    const double *shell = setup->state->operators->level[l].shell;
    const size_t bytes = (size_t)(p->equivalents * n) * sizeof(double);
    if (!p->op[l].d_shell) continue;
    memset(dense, 0, bytes);
    if (shell) memcpy(dense, shell, bytes);
    FMM_CHECK(CUDA_CHECKED(cudaMemcpy(p->op[l].d_shell, dense, bytes, cudaMemcpyHostToDevice)));
  }
done:
  FMM_FREE(&dense);
  return status;
}
fmm_status matrices_job_0(void *context) { return send_matrices((const fmm_cuda_setup *)context, 0); }
fmm_status matrices_job_1(void *context) { return send_matrices((const fmm_cuda_setup *)context, 1); }
fmm_status matrices_job_2(void *context) { return send_matrices((const fmm_cuda_setup *)context, 2); }
fmm_status matrices_job_3(void *context) { return send_matrices((const fmm_cuda_setup *)context, 3); }

/* The transforms by planes kz, a few planes at a time. */
fmm_status transforms_job(void *context) {
  const fmm_cuda_setup *setup = (const fmm_cuda_setup *)context;
  const fmm_gpu_plan *p = setup->plan;
  const fmm_operators *o = setup->state->operators;
  const int L = p->grid, E = p->equivalents;
  const int64_t plane = (int64_t)L * L * E * E * 343, most = TOGETHER / (16 * plane);
  const int at_once = most < 1 ? 1 : most < p->order ? (int)most : p->order;
  double *full = NULL;
  fmm_status status = FMM_OK;
  if (p->v_rows == 0 || p->operators_there) return FMM_OK;
  fmm_cuda_on_device on(p->device);
  FMM_CHECK(FMM_ALLOCATE(&full, 2 * plane * at_once, "M2L transforms for the GPU"));
  for (int l = fmm_cuda_first_set(p); l < p->n_operator_levels; l++)
    for (int kz = 0; kz < p->order; kz += at_once) {
      const int planes = p->order - kz < at_once ? p->order - kz : at_once;
      fmm_cuda_for_each(planes * L * L, 8, [=](int64_t n) {
        const int i = (int)n;
        for (int k = 0; k < E * E; k++)
          fmm_m2l_gather(o, &o->level[l], i % (L * L) / L, i % L, kz + i / (L * L), k / E, k % E, (double(*)[2])(full + 2 * ((int64_t)i * E * E + k) * 343));
      });
      FMM_CHECK(CUDA_CHECKED(cudaMemcpy(p->op[l].d_m2l + kz * plane, full, (size_t)(planes * plane) * sizeof(double2), cudaMemcpyHostToDevice)));
    }
done:
  FMM_FREE(&full);
  return status;
}

fmm_status send_sums(fmm_gpu_plan *p, fmm_cuda_sum sum, sending *to) {
  fmm_cuda_sums *s = &p->sums[sum];
  if (s->tile) FMM_TRY(send(to, s->d_tile, s->tile, s->n_tiles));
  if (s->range) FMM_TRY(send(to, s->d_range, s->range, s->n_ranges));
  if (s->box) FMM_TRY(send(to, s->d_box, s->box, s->n_ranges));
  if (s->order) FMM_TRY(send(to, s->d_order, s->order, s->n_tiles));
  if (s->joint) FMM_TRY(send(to, s->d_joint, s->joint, s->n_joints));
  if (s->chunk) FMM_TRY(send(to, s->d_chunk, s->chunk, s->n_chunks));
  if (s->mate) FMM_TRY(send(to, s->d_mate, s->mate, s->n_mates));
  if (s->unit_end) FMM_TRY(send(to, s->d_unit_end, s->unit_end, s->n_tiles));
  CUDA_TRY(fmm_cuda_lattice_units(p, sum, to->stream));
  return FMM_OK;
}

fmm_status send_tables(fmm_gpu_plan *p, const fmm_cuda_tables *t, const fmm_state *state, sending *to) {
  const fmm_tree *tree = state->tree;
  const double *center[3] = {tree->center_x, tree->center_y, tree->center_z};
  FMM_TRY(send_set(to, center, p->d_center, p->n_boxes));
  FMM_TRY(send(to, p->d_half, t->half, p->n_boxes));
  FMM_TRY(send(to, p->d_degree_in, t->degree_in, p->n_boxes));
  FMM_TRY(send(to, p->d_degree_out, t->degree_out, p->n_boxes));
  FMM_TRY(send(to, p->d_degree_parent, t->degree_parent, p->n_boxes));
  if (state->operators) FMM_TRY(send(to, p->d_surface, state->operators->surface, 3 * p->n_surface));
  for (int i = 0; i < FMM_N_SUMS; i++) FMM_TRY(send_sums(p, (fmm_cuda_sum)i, to));
  FMM_TRY(send(to, p->d_run, t->run, p->n_runs));
  if (!fmm_cuda_has_far(p)) return FMM_OK;
  FMM_TRY(send(to, p->d_column_box, t->column_box, p->n_columns));
  FMM_TRY(send(to, p->d_child, t->child, 8 * fmm_cuda_child_rows(p)));
  if (p->block) {
    FMM_TRY(send(to, p->d_orbit_point, t->orbit_point, FMM_MIRRORS * p->n_orbits * p->equivalents));
    FMM_TRY(send(to, p->d_orbit_place, t->orbit_place, FMM_MIRRORS * p->n_orbits * p->equivalents));
    FMM_TRY(send(to, p->d_pad, t->pad, FMM_MIRRORS * p->block - p->n));
  } else {
    FMM_TRY(send(to, p->d_parent, t->parent, p->n_down_columns));
    FMM_TRY(send(to, p->d_tile_octant, t->tile_octant, p->n_down_columns / FMM_GPU_TILE_BOXES));
  }
  if (!p->v_rows) return FMM_OK;
  FMM_TRY(send(to, p->d_slot_child, t->slot_child, 8 * (p->v_slots + 1)));
  FMM_TRY(send(to, p->d_row_child, t->row_child, 8 * p->v_rows));
  FMM_TRY(send(to, p->d_v_row, t->v_row, p->v_positions));
  FMM_TRY(send(to, p->d_v_line, t->v_line, fmm_cuda_v_lines(p)));
  FMM_TRY(send(to, p->d_twiddle, t->twiddle, 2 * p->grid));
  return send(to, p->d_grid_surface, t->grid_surface, p->order * p->order * p->order);
}
}

void fmm_cuda_take_stage(fmm_cuda_setup *setup) {
  fmm_gpu_plan *p = setup->plan;
  const stage_shape shape = stage_of(p);
  if (!setup->spare || !take_earlier(&setup->spare->stage, p->device, shape.wanted, &p->locked)) return;
  place_stage(p, shape);
  p->desk = fmm_cuda_desk{p->stage, p->stage_bytes, 0};
}

void fmm_cuda_upload_jobs(fmm_cuda_setup *context, fmm_job jobs[FMM_CUDA_UPLOAD_JOBS]) {
  const fmm_job all[FMM_CUDA_UPLOAD_JOBS] = {{"points", points_job, context, 0, 0}, {"stage", stage_job, context, 0, 0}, {"matrices", matrices_job_0, context, 0, 0},
                                             {"matrices", matrices_job_1, context, 0, 0}, {"matrices", matrices_job_2, context, 0, 0}, {"matrices", matrices_job_3, context, 0, 0},
                                             {"transforms", transforms_job, context, 0, 0}};
  memcpy(jobs, all, sizeof all);
}

/* The stage is in use for nothing else yet. */
static fmm_status tables_job(void *context) {
  const fmm_cuda_setup *setup = (const fmm_cuda_setup *)context;
  fmm_gpu_plan *p = setup->plan;
  fmm_cuda_on_device on(p->device);
  if (!p->desk.memory) p->desk = fmm_cuda_desk{p->stage, p->stage_bytes, 0};
  sending s = {p->stream[FMM_CUDA_FAR], 0, {}, p->desk.memory ? &p->desk : NULL};
  FMM_TRY(end_sending(&s, send_tables(p, setup->tables, setup->state, &s)));
  if (p->v_rows) CUDA_TRY(cudaMemsetAsync(p->d_spectrum, 0, p->spectrum_bytes, s.stream)); /* of children that do not exist: never written. Before what this stream does next */
  return FMM_OK;
}

fmm_status fmm_cuda_upload_tables(fmm_cuda_setup *setup) {
  fmm_job job = {"the tables' upload", tables_job, setup, 0, 0};
  return fmm_jobs_run(&job, 1, setup->plan->threads);
}

/* By locking, as on the way there. */
static fmm_status fetch_plane(const double *d_from, double *to, size_t bytes, cudaStream_t stream) {
  int locked = 0;
  CUDA_TRY(lock(to, bytes, &locked));
  fmm_status status = CUDA_CHECKED(cudaMemcpyAsync(to, d_from, bytes, cudaMemcpyDeviceToHost, stream));
  const fmm_status waited = CUDA_CHECKED(cudaStreamSynchronize(stream));
  if (locked && cudaHostUnregister(to) != cudaSuccess) cudaGetLastError();
  return status == FMM_OK ? waited : status;
}

extern "C" fmm_status fmm_gpu_plan_points(fmm_gpu_plan *p, int set, double *const at[3]) {
  fmm_cuda_on_device on(p->device);
  const size_t bytes = (size_t)(set ? p->n_targets : p->n_sources) * sizeof(double);
  for (int k = 0; bytes && k < 3; k++) FMM_TRY(fetch_plane(set ? p->d_target[k] : p->d_source[k], at[k], bytes, p->stream[FMM_CUDA_OUT]));
  return FMM_OK;
}

extern "C" size_t fmm_gpu_stage_size(size_t densities_bytes, size_t results_bytes) {
  return padded(densities_bytes) + padded(results_bytes) + FMM_CUDA_N_REPORT * sizeof(unsigned long long) + FMM_CUDA_PIECES_OUT * sizeof(unsigned);
}

extern "C" fmm_status fmm_gpu_stage_make(fmm_gpu_stage *stage, int device, int threads, size_t bytes) {
  making m = {stage, device, bytes};
  return fmm_job_run_alone(make_job, &m, threads);
}

extern "C" void fmm_gpu_plan_lend_stage(fmm_gpu_plan *p, char **memory, size_t *bytes) { *memory = p->locked.memory, *bytes = p->locked.bytes; }

extern "C" void fmm_gpu_stage_free(fmm_gpu_stage *stage) {
  if (!stage->memory) return;
  fmm_cuda_on_device on(stage->device);
  if (stage->registered) cudaHostUnregister(stage->memory);
  if (stage->allocated) FMM_FREE(&stage->memory);
  else cudaFreeHost(stage->memory);
  stage->memory = NULL;
  cudaGetLastError();
}
