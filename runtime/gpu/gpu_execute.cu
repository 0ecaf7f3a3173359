/* One execution on the device: begin, phases on two streams (far: up, X, V, down; near: U, W; a third for the tiles of single-precision sums that must be double), copies on two more, results, finish. Everything
 * is enqueued with events between what depends on what; the host waits in finish (and in wait, for one array). */
#include "runtime/gpu/gpu_cuda.h"

namespace {
fmm_status mark(fmm_gpu_plan *p, fmm_phase phase, int end, cudaStream_t stream) {
  if (!end && (p->ran >> phase & 1)) return FMM_OK; /* a later range of the same phase: its span began before */
  p->ran |= 1u << phase;
  CUDA_TRY(cudaEventRecord(p->phase_event[phase][end], stream));
  return FMM_OK;
}

fmm_status mark_copy(fmm_gpu_plan *p, fmm_gpu_copy copy, int end, cudaStream_t stream) {
  if (!end && (p->copied >> copy & 1)) return FMM_OK;
  p->copied |= 1u << copy;
  CUDA_TRY(cudaEventRecord(p->copy_event[copy][end], stream));
  return FMM_OK;
}

fmm_status after(cudaStream_t waits, cudaEvent_t event, cudaStream_t for_stream) {
  CUDA_TRY(cudaEventRecord(event, for_stream));
  CUDA_TRY(cudaStreamWaitEvent(waits, event, 0));
  return FMM_OK;
}

size_t density_bytes(const fmm_gpu_plan *p) { return (size_t)(p->n_input_sources * p->components * p->columns) * sizeof(double); }
size_t expansion_bytes(const fmm_gpu_plan *p, int64_t boxes) { return (size_t)(boxes * p->columns * p->n) * sizeof(double); }
size_t result_bytes(const fmm_gpu_plan *p) { return (size_t)fmm_cuda_potentials(p) * sizeof(double); }
size_t planes_bytes(const fmm_gpu_plan *p) { return (size_t)(p->n_targets * p->values * p->columns) * sizeof(double); }

fmm_status drain(fmm_gpu_plan *p) {
  for (int i = 0; i < FMM_CUDA_N_STREAMS; i++) CUDA_TRY(cudaStreamSynchronize(p->stream[i]));
  return FMM_OK;
}

/* From the host. Those from page-locked memory come before all else of an execution, so that the bus is busy meanwhile. */
fmm_status send_densities(fmm_gpu_plan *p, const double *densities, int locked) {
  cudaStream_t in = p->stream[FMM_CUDA_IN];
  FMM_TRY(mark_copy(p, FMM_GPU_COPY_DENSITIES, 0, in));
  FMM_TRY((locked ? fmm_cuda_send_locked : fmm_cuda_send_pageable)(p, densities, density_bytes(p), in));
  return mark_copy(p, FMM_GPU_COPY_DENSITIES, 1, in);
}

/* Pieces, where there are several, are sorted while the next arrives. */
fmm_status sort_sent(fmm_gpu_plan *p) {
  cudaStream_t far = p->stream[FMM_CUDA_FAR];
  p->densities_sorted = p->n_sent > 1;
  for (int i = 0; i < p->n_sent; i++) {
    CUDA_TRY(cudaStreamWaitEvent(far, p->piece_sent[i], 0));
    if (p->densities_sorted) CUDA_TRY(fmm_cuda_scatter(p, i ? p->sent_rows[i - 1] : 0, p->sent_rows[i], far));
  }
  return FMM_OK;
}

fmm_status begin(fmm_gpu_plan *p, const double *densities, fmm_memory_space space) {
  cudaStream_t far = p->stream[FMM_CUDA_FAR], near = p->stream[FMM_CUDA_NEAR];
  if (p->running) FMM_TRY(drain(p)); /* the last execution failed half way */
  p->running = 1;
  p->ran = p->copied = 0;
  p->up_pending = p->shares_u = 0;
  p->results = fmm_cuda_results{};
  p->reports = p->densities_sorted = p->n_sent = 0;
  CUDA_TRY(cudaEventRecord(p->origin, far));
  CUDA_TRY(cudaStreamWaitEvent(p->stream[FMM_CUDA_IN], p->origin, 0));
  if (space == FMM_MEMORY_HOST && !p->stage_in && density_bytes(p))
    return FMM_FAIL(FMM_ERR_INTERNAL, "densities come from the host, but the GPU plan was made for device memory");
  const int locked = space == FMM_MEMORY_HOST && fmm_cuda_is_locked(densities, density_bytes(p));
  if (locked) FMM_TRY(send_densities(p, densities, 1));
  CUDA_TRY(cudaMemsetAsync(p->d_report, 0xff, FMM_CUDA_N_REPORT * sizeof *p->d_report, far));
  if (p->d_next_tile) CUDA_TRY(cudaMemsetAsync(p->d_next_tile, 0, sizeof *p->d_next_tile, far));
  CUDA_TRY(cudaMemsetAsync(p->d_far, 0, planes_bytes(p), far));
  CUDA_TRY(cudaMemsetAsync(p->d_near, 0, planes_bytes(p), far));
  if (p->d_down_check) CUDA_TRY(cudaMemsetAsync(p->d_down_check, 0, expansion_bytes(p, p->n_boxes), far));
  if (space == FMM_MEMORY_HOST && !locked) FMM_TRY(send_densities(p, densities, 0));
  if (space == FMM_MEMORY_HOST) FMM_TRY(sort_sent(p));
  else FMM_TRY(after(far, p->ready, p->caller));
  if (!p->densities_sorted) CUDA_TRY(fmm_cuda_gather(p, space == FMM_MEMORY_HOST ? p->d_density_input : densities, far));
  CUDA_TRY(fmm_cuda_scale(p, far));
  return after(near, p->ready, far);
}

/* U's float sums beside the far chain (p->overlaps). The device places no block of a kernel before all of those ahead of it are placed, so U comes while
 * up runs, with a few blocks a multiprocessor that stay and take tiles in turn; after down more of them take what is left. */
enum { BLOCKS_BESIDE = 2, BLOCKS_AFTER = 4 };
int beside_far(const fmm_gpu_plan *p, int64_t row_begin, int64_t row_end) {
  return p->overlaps && p->ran >> FMM_PHASE_UP & 1 && !(p->ran >> FMM_PHASE_DOWN & 1) && row_begin == 0 && row_end == p->sums[FMM_SUM_U].n_rows;
}

fmm_status rest_of_u(fmm_gpu_plan *p) {
  cudaStream_t far = p->stream[FMM_CUDA_FAR];
  fmm_cuda_pair_job job = {p, FMM_SUM_U, 0, p->sums[FMM_SUM_U].n_tiles, far, NULL, BLOCKS_AFTER * p->sms};
  CUDA_TRY(fmm_cuda_pair_find(p->info)(&job));
  FMM_TRY(after(far, p->rest_done, p->stream[FMM_CUDA_NEAR]));
  return mark(p, FMM_PHASE_ULIST, 1, far);
}

fmm_status run(fmm_gpu_plan *p, fmm_phase phase, int64_t row_begin, int64_t row_end) {
  cudaStream_t far = p->stream[FMM_CUDA_FAR], near = p->stream[FMM_CUDA_NEAR], stream = phase == FMM_PHASE_ULIST || phase == FMM_PHASE_WLIST ? near : far;
  if (phase == FMM_PHASE_WLIST && p->up_pending) CUDA_TRY(cudaStreamWaitEvent(near, p->up_done, 0));
  FMM_TRY(mark(p, phase, 0, stream));
  switch (phase) {
    case FMM_PHASE_UP:
      FMM_TRY(fmm_up_cuda(p, far));
      CUDA_TRY(cudaEventRecord(p->up_done, far));
      p->up_pending = 1;
      break;
    case FMM_PHASE_ULIST: FMM_TRY(fmm_cuda_sum_run(p, FMM_SUM_U, row_begin, row_end, near)); break;
    case FMM_PHASE_WLIST: FMM_TRY(fmm_cuda_sum_run(p, FMM_SUM_W, row_begin, row_end, near)); break;
    case FMM_PHASE_XLIST: FMM_TRY(fmm_cuda_sum_run(p, FMM_SUM_X, row_begin, row_end, far)); break;
    case FMM_PHASE_VLIST: FMM_TRY(fmm_vlist_cuda(p, row_begin, row_end, far)); break;
    default:
      FMM_TRY(fmm_down_cuda(p, far));
      FMM_TRY(mark(p, phase, 1, far));
      return p->shares_u ? rest_of_u(p) : FMM_OK;
  }
  return mark(p, phase, 1, stream);
}

fmm_status send(fmm_gpu_plan *p, fmm_gpu_array array, const double *host, int64_t box_begin, int64_t box_end) {
  cudaStream_t in = p->stream[FMM_CUDA_IN], far = p->stream[FMM_CUDA_FAR];
  int64_t at = box_begin * p->columns * p->n, boxes = box_end - box_begin;
  double *d_to = array == FMM_GPU_UP_EQUIVALENT ? p->d_up_equivalent : p->d_check_in;
  if (array == FMM_GPU_POTENTIAL || !d_to) return FMM_FAIL(FMM_ERR_INTERNAL, "array %d cannot be sent to this GPU plan", (int)array);
  FMM_TRY(mark_copy(p, FMM_GPU_COPY_SEND, 0, in));
  CUDA_TRY(cudaMemcpyAsync(d_to + at, host + at, expansion_bytes(p, boxes), cudaMemcpyHostToDevice, in));
  FMM_TRY(mark_copy(p, FMM_GPU_COPY_SEND, 1, in));
  if (array == FMM_GPU_UP_EQUIVALENT) {
    p->up_pending = 1;
    return after(far, p->up_done, in);
  }
  FMM_TRY(after(far, p->check_sent, in));
  CUDA_TRY(fmm_cuda_add(p->d_down_check + at, p->d_check_in + at, boxes * p->columns * p->n, far));
  return FMM_OK;
}

fmm_status fetch(fmm_gpu_plan *p, fmm_gpu_array array, double *host) {
  cudaStream_t out = p->stream[FMM_CUDA_OUT], far = p->stream[FMM_CUDA_FAR];
  const double *from = array == FMM_GPU_UP_EQUIVALENT ? p->d_up_equivalent : array == FMM_GPU_DOWN_CHECK ? p->d_down_check : p->d_far;
  size_t bytes = array == FMM_GPU_POTENTIAL ? planes_bytes(p) : expansion_bytes(p, p->n_boxes);
  if (array == FMM_GPU_POTENTIAL) {
    FMM_TRY(after(far, p->near_done, p->stream[FMM_CUDA_NEAR]));
    CUDA_TRY(fmm_cuda_add(p->d_far, p->d_near, p->n_targets * p->values * p->columns, far));
  }
  FMM_TRY(after(out, p->far_done, far));
  FMM_TRY(mark_copy(p, FMM_GPU_COPY_FETCH, 0, out));
  CUDA_TRY(cudaMemcpyAsync(host, from, bytes, cudaMemcpyDeviceToHost, out));
  FMM_TRY(mark_copy(p, FMM_GPU_COPY_FETCH, 1, out));
  CUDA_TRY(cudaEventRecord(p->fetched[array], out));
  return FMM_OK;
}

fmm_status fetch_report(fmm_gpu_plan *p, cudaStream_t stream) {
  CUDA_TRY(fmm_cuda_publish_report(p, stream));
  p->reports = 1;
  return FMM_OK;
}

/* What the report says, once it is here. */
fmm_status check_report(const fmm_gpu_plan *p) {
  unsigned long long density = p->report[FMM_CUDA_BAD_DENSITY], row = p->report[FMM_CUDA_BAD_RESULT], width = (unsigned long long)(p->components * p->columns);
  if (density != ~0ull)
    return FMM_FAIL(FMM_ERR_INPUT, "density row %llu (from 0), component %d, column %d is not finite; every density must be finite", density / width,
                    (int)(density % width) / p->columns, (int)(density % width) % p->columns);
  if (row != ~0ull)
    return FMM_FAIL(FMM_ERR_INPUT, "the result at target row %llu (from 0) is beyond double precision; use smaller densities, or coordinates in another unit", row);
  return FMM_OK;
}

/* Where the results of this execution go. */
void place_results(fmm_gpu_plan *p, double factor, double gradient_factor, double *potential, double *gradient, fmm_memory_space space) {
  const int64_t values = fmm_cuda_potentials(p);
  const size_t bytes = result_bytes(p);
  fmm_cuda_results *r = &p->results;
  *r = fmm_cuda_results{factor, gradient_factor, potential, gradient, potential, gradient, 0, 1};
  if (space == FMM_MEMORY_DEVICE) return;
  if (!fmm_cuda_is_locked(potential, bytes)) r->potential = p->stage_out;
  if (gradient && !fmm_cuda_is_locked(gradient, 3 * bytes)) r->gradient = p->stage_out + values;
  r->direct = values && (r->potential == potential || (gradient && r->gradient == gradient));
  if (!r->direct) r->pieces = fmm_cuda_pieces_out(p);
}

/* Whether one copy brings all results: a kernel's writes beyond the bus are smaller than the copy engine's, but that takes two calls where there are gradients. */
int by_copy(const fmm_gpu_plan *p) { return p->results.direct && p->d_result; }

/* When all else has ended, and the report was asked for. */
fmm_status deliver_pieces(fmm_gpu_plan *p, cudaStream_t stream) {
  const int64_t values = fmm_cuda_values_out(p);
  const int n = p->results.pieces;
  memset(p->arrived, 0, FMM_CUDA_PIECES_OUT * sizeof *p->arrived);
  for (int i = 0; i < n; i++) {
    CUDA_TRY(fmm_cuda_deliver(p, fmm_cuda_piece_begin(values, i, n), fmm_cuda_piece_begin(values, i + 1, n), 1, stream));
    CUDA_TRY(fmm_cuda_note_arrival(p, i, stream));
  }
  return FMM_OK;
}

/* Results reach the host by the very kernel that sorts them, whole lines one after the other. To page-locked arrays of the caller's that is one launch, so that one that is
 * refused has written nothing, and left to finish, when all other work is known to have ended well; where one copy is enough the copy engine does it, and they are
 * sorted before. The plan's own page-locked memory may be written at once; many come in pieces, which are looked at before. */
fmm_status results(fmm_gpu_plan *p, double factor, double gradient_factor, double *potential, double *gradient, fmm_memory_space space) {
  cudaStream_t far = p->stream[FMM_CUDA_FAR];
  FMM_TRY(after(far, p->near_done, p->stream[FMM_CUDA_NEAR]));
  if (space == FMM_MEMORY_DEVICE) FMM_TRY(after(far, p->ready, p->caller)); /* which may still read the arrays */
  place_results(p, factor, gradient_factor, potential, gradient, space);
  if (space == FMM_MEMORY_HOST && !p->stage_out && p->n_input_targets) return FMM_FAIL(FMM_ERR_INTERNAL, "results go to the host, but the GPU plan was made for device memory");
  if (p->results.direct || space == FMM_MEMORY_DEVICE || p->results.pieces > 1) {
    CUDA_TRY(fmm_cuda_inspect(p, by_copy(p), far));
    FMM_TRY(fetch_report(p, far));
    CUDA_TRY(cudaEventRecord(p->inspected, far));
    if (by_copy(p)) CUDA_TRY(fmm_cuda_place(p, far)); /* while the host learns of the report */
    if (space == FMM_MEMORY_DEVICE) CUDA_TRY(fmm_cuda_deliver(p, 0, fmm_cuda_values_out(p), 1, far)); /* the last that is enqueued */
    if (p->results.direct || space == FMM_MEMORY_DEVICE) return FMM_OK;
  }
  FMM_TRY(mark_copy(p, FMM_GPU_COPY_RESULTS, 0, far));
  if (p->results.pieces > 1) FMM_TRY(deliver_pieces(p, far));
  else CUDA_TRY(fmm_cuda_deliver(p, 0, fmm_cuda_values_out(p), 0, far));
  FMM_TRY(mark_copy(p, FMM_GPU_COPY_RESULTS, 1, far));
  return p->results.pieces > 1 ? FMM_OK : fetch_report(p, far);
}

/* To page-locked arrays of the caller's. The marks are not through the seam: a missing time is no failure. */
fmm_status send_results(fmm_gpu_plan *p) {
  cudaStream_t far = p->stream[FMM_CUDA_FAR];
  cudaEventRecord(p->copy_event[FMM_GPU_COPY_RESULTS][0], far);
  if (by_copy(p)) CUDA_TRY(cudaMemcpyAsync(p->results.potential, p->d_result, result_bytes(p), cudaMemcpyDeviceToHost, far));
  else CUDA_TRY(fmm_cuda_deliver(p, 0, fmm_cuda_values_out(p), 1, far));
  cudaEventRecord(p->copy_event[FMM_GPU_COPY_RESULTS][1], far);
  p->copied |= 1u << FMM_GPU_COPY_RESULTS;
  CUDA_TRY(cudaStreamSynchronize(far));
  return FMM_OK;
}

/* The host's results are touched only when all that is computed was done without error. */
fmm_status finish(fmm_gpu_plan *p) {
  const fmm_cuda_results *r = &p->results;
  if (r->direct || r->pieces > 1) CUDA_TRY(cudaEventSynchronize(p->inspected)); /* all other work of the far stream has ended */
  else CUDA_TRY(cudaStreamSynchronize(p->stream[FMM_CUDA_FAR]));
  CUDA_TRY(cudaStreamSynchronize(p->stream[FMM_CUDA_NEAR]));
  CUDA_TRY(cudaStreamSynchronize(p->stream[FMM_CUDA_IN]));
  CUDA_TRY(cudaStreamSynchronize(p->stream[FMM_CUDA_OUT]));
  if (p->reports) {
    fmm_status report = check_report(p);
    if (report != FMM_OK) {
      cudaStreamSynchronize(p->stream[FMM_CUDA_FAR]); /* pieces that deliver nothing */
      return p->running = 0, report;
    }
  }
  if (r->direct) FMM_TRY(send_results(p));
  if (r->potential != r->to_potential || r->gradient != r->to_gradient) FMM_TRY(fmm_cuda_stage_out(p));
  if (r->pieces > 1) cudaStreamSynchronize(p->stream[FMM_CUDA_FAR]); /* which has only marks left */
  p->running = 0;
  return FMM_OK;
}

/* Not through the seam: results are delivered by now, and a missing time is no failure. */
fmm_status span(const fmm_gpu_plan *p, const cudaEvent_t event[2], double *start_s, double *end_s) {
  float start = 0, end = 0;
  if (cudaEventElapsedTime(&start, p->origin, event[0]) != cudaSuccess || cudaEventElapsedTime(&end, p->origin, event[1]) != cudaSuccess) {
    cudaGetLastError();
    return FMM_OK;
  }
  *start_s = 1e-3 * start;
  *end_s = 1e-3 * end;
  return FMM_OK;
}
}

fmm_status fmm_cuda_sum_run(fmm_gpu_plan *p, fmm_cuda_sum sum, int64_t row_begin, int64_t row_end, cudaStream_t stream) {
  const fmm_cuda_sums *s = &p->sums[sum];
  if (!s->row_tile) return FMM_FAIL(FMM_ERR_INTERNAL, "this GPU plan was made without pair sum %d", (int)sum);
  int tight = s->single && s->n_precise;
  fmm_cuda_pair_job job = {p, sum, s->row_tile[row_begin], s->row_tile[row_end], stream, tight ? p->stream[FMM_CUDA_TIGHT] : stream, 0};
  if (sum == FMM_SUM_U && beside_far(p, row_begin, row_end)) {
    job.takers = BLOCKS_BESIDE * p->sms;
    p->shares_u = 1;
  }
  if (tight) FMM_TRY(after(job.tight_stream, p->tight_ready, stream));
  if (s->both) CUDA_TRY(fmm_cuda_both_sum(p, row_begin, row_end, stream, job.tight_stream));
  else CUDA_TRY(s->lattice ? fmm_cuda_lattice_sum(&job) : fmm_cuda_pair_find(p->info)(&job));
  if (tight) FMM_TRY(after(stream, p->tight_done, job.tight_stream));
  if (s->both) CUDA_TRY(fmm_cuda_both_join(p, row_begin, row_end, stream));
  else CUDA_TRY(fmm_cuda_join(p, sum, s->row_joint[row_begin], s->row_joint[row_end], p->d_near, stream)); /* W's alone */
  return FMM_OK;
}

extern "C" fmm_status fmm_gpu_begin(fmm_gpu_plan *plan, const double *densities, fmm_memory_space space) {
  fmm_cuda_on_device on(plan->device);
  return begin(plan, densities, space);
}
extern "C" fmm_status fmm_gpu_run(fmm_gpu_plan *plan, fmm_phase phase, int64_t row_begin, int64_t row_end) {
  fmm_cuda_on_device on(plan->device);
  return run(plan, phase, row_begin, row_end);
}
extern "C" fmm_status fmm_gpu_send(fmm_gpu_plan *plan, fmm_gpu_array array, const double *host, int64_t box_begin, int64_t box_end) {
  fmm_cuda_on_device on(plan->device);
  return send(plan, array, host, box_begin, box_end);
}
extern "C" fmm_status fmm_gpu_fetch(fmm_gpu_plan *plan, fmm_gpu_array array, double *host) {
  fmm_cuda_on_device on(plan->device);
  return fetch(plan, array, host);
}
extern "C" fmm_status fmm_gpu_wait(fmm_gpu_plan *plan, fmm_gpu_array array) {
  fmm_cuda_on_device on(plan->device);
  CUDA_TRY(cudaEventSynchronize(plan->fetched[array]));
  return FMM_OK;
}
extern "C" fmm_status fmm_gpu_results(fmm_gpu_plan *plan, double factor, double gradient_factor, double *potential, double *gradient, fmm_memory_space space) {
  fmm_cuda_on_device on(plan->device);
  return results(plan, factor, gradient_factor, potential, gradient, space);
}
extern "C" fmm_status fmm_gpu_finish(fmm_gpu_plan *plan) {
  fmm_cuda_on_device on(plan->device);
  return finish(plan);
}
extern "C" void fmm_gpu_abandon(fmm_gpu_plan *plan) {
  fmm_cuda_on_device on(plan->device);
  for (int i = 0; i < FMM_CUDA_N_STREAMS; i++) cudaStreamSynchronize(plan->stream[i]); /* each, whatever the one before says */
  cudaGetLastError();
  plan->running = 0;
}
extern "C" fmm_status fmm_gpu_phase_span(const fmm_gpu_plan *plan, fmm_phase phase, double *start_s, double *end_s) {
  fmm_cuda_on_device on(plan->device);
  *start_s = *end_s = 0;
  return plan->ran >> phase & 1 ? span(plan, plan->phase_event[phase], start_s, end_s) : FMM_OK;
}
extern "C" fmm_status fmm_gpu_copy_span(const fmm_gpu_plan *plan, fmm_gpu_copy copy, double *start_s, double *end_s) {
  fmm_cuda_on_device on(plan->device);
  *start_s = *end_s = 0;
  return plan->copied >> copy & 1 ? span(plan, plan->copy_event[copy], start_s, end_s) : FMM_OK;
}
