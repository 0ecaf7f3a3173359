/* How a caller's arrays reach the device and results come back. Page-locked ones are read where they lie; pageable ones go by way of the plan's page-locked memory,
 * from and to which the host's team copies in small parts while the bus is busy with others. One thread alone calls the driver: calls of several wait for one another
 * there. */
#include <omp.h>
#include <sched.h>
#include <stdint.h>

#include "runtime/gpu/gpu_cuda.h"
#include "runtime/idle.h"
#include "runtime/past_caches.h"

namespace {
enum { LINE = FMM_LINE_BYTES, FIRST_PARTS = 8 /* of the first chunk; each that follows has a quarter more: the bus is slower than the copies, and each call takes time */ };
enum { LEAST_PART = 1 << 15, MOST_PARTS = 512, LEAST_SORTED = 1 << 20 /* bytes of densities that are worth a launch a piece */, LEAST_OUT = 1 << 20 /* bytes of the last piece of results */,
       LEAST_PAST = 1 << 24 /* bytes of results from which on they are copied past the caches */ };
enum { PAUSES = 1 << 10 /* before another thread may have the core */, PATIENCE = 1 << 16 /* looks before the device is asked whether it lives */ };

/* Densities on their way in: parts are taken in turn, chunks of parts sent in order once they are copied. */
struct crowd {
  const char *from;
  char *stage, *device;
  size_t bytes, part;
  int n_parts;
  alignas(LINE) int next;            /* to copy */
  alignas(LINE) char copied[MOST_PARTS];
};

/* Between two looks at what another thread or the device is to write. */
void rest(int64_t looks) {
  FMM_PAUSE();
  if (looks % PAUSES == 0) sched_yield(); /* there may be more threads than cores */
}

/* Nonzero while there was one. */
int copy_next(crowd *c) {
  if (__atomic_load_n(&c->next, __ATOMIC_RELAXED) >= c->n_parts) return 0; /* who waits looks again and again */
  const int part = __atomic_fetch_add(&c->next, 1, __ATOMIC_RELAXED);
  if (part >= c->n_parts) return 0;
  const size_t at = (size_t)part * c->part, left = c->bytes - at;
  fmm_copy_past_caches(c->stage + at, c->from + at, left < c->part ? left : c->part);
  __atomic_store_n(&c->copied[part], 1, __ATOMIC_RELEASE);
  return 1;
}

/* Whether densities are sorted piece by piece: where an input row's place is known, and worth it. */
int sorts_pieces(const fmm_gpu_plan *p, size_t bytes) { return fmm_cuda_can_scatter(p) && bytes > (size_t)LEAST_SORTED; }

/* Rows up to here are on their way. */
fmm_status note_sent(fmm_gpu_plan *p, int64_t rows, cudaStream_t stream) {
  CUDA_TRY(cudaEventRecord(p->piece_sent[p->n_sent], stream));
  p->sent_rows[p->n_sent++] = rows;
  return FMM_OK;
}

/* The same if it is half of what was left, and others follow. */
fmm_status note_half(fmm_gpu_plan *p, int64_t rows, cudaStream_t stream) {
  const int64_t all = p->n_input_sources, before = p->n_sent ? p->sent_rows[p->n_sent - 1] : 0;
  return p->n_sent + 1 < FMM_CUDA_PIECES_IN && 2 * (all - rows) <= all - before ? note_sent(p, rows, stream) : FMM_OK;
}

/* By the thread that calls the driver; it copies, too, where nothing can be sent yet. */
fmm_status send_chunks(crowd *c, fmm_gpu_plan *p, cudaStream_t stream) {
  for (int begin = 0, size = FIRST_PARTS, end; begin < c->n_parts; begin = end, size += size / 4) {
    end = begin + size < c->n_parts ? begin + size : c->n_parts;
    for (int part = begin; part < end; part++)
      for (int64_t looks = 1; !__atomic_load_n(&c->copied[part], __ATOMIC_ACQUIRE); looks++)
        if (!copy_next(c)) rest(looks);
    const size_t at = (size_t)begin * c->part, last = (size_t)end * c->part;
    CUDA_TRY(cudaMemcpyAsync(c->device + at, c->stage + at, (last < c->bytes ? last : c->bytes) - at, cudaMemcpyHostToDevice, stream));
    if (end < c->n_parts && sorts_pieces(p, c->bytes)) FMM_TRY(note_half(p, (int64_t)(last / (c->bytes / (size_t)p->n_input_sources)), stream));
  }
  return note_sent(p, p->n_input_sources, stream);
}

/* Through the caches, or past them: stores then read no lines that they overwrite. */
void copy_values(double *to, const double *from, int64_t values, int past) {
  for (; past && values > 0 && (uintptr_t)to % 16; values--) *to++ = *from++;
  if (past) fmm_copy_past_caches((char *)to, (const char *)from, (size_t)values * sizeof(double));
  else memcpy(to, from, (size_t)values * sizeof(double));
}

/* Values [begin, end) of the potentials and, after these, the gradients: of those that were staged. */
void copy_results(const fmm_gpu_plan *p, int64_t begin, int64_t end) {
  const fmm_cuda_results *r = &p->results;
  const int past = fmm_cuda_values_out(p) * (int64_t)sizeof(double) >= LEAST_PAST;
  const int64_t n = fmm_cuda_potentials(p), last = end < n ? end : n, first = begin > n ? begin : n;
  if (r->potential == p->stage_out && begin < last) copy_values(r->to_potential + begin, r->potential + begin, last - begin, past);
  if (r->gradient == p->stage_out + n && first < end) copy_values(r->to_gradient + first - n, r->gradient + first - n, end - first, past);
}

/* Where the share of a thread in [begin, end) begins, in whole lines from `begin` on. */
int64_t share_begin(int64_t begin, int64_t end, int thread, int team) {
  enum { VALUES = LINE / sizeof(double) };
  return thread == team ? end : begin + (end - begin) * thread / team / VALUES * VALUES;
}

int has_arrived(const fmm_gpu_plan *p, int piece) { return __atomic_load_n(p->arrived + piece, __ATOMIC_ACQUIRE) != 0; }

/* Of the stream that brings the piece: an error, or that it has ended without. Not through the seam: how often it is asked depends on the device's pace. */
cudaError_t look_after(const fmm_gpu_plan *p, int piece) {
  const cudaError_t error = cudaStreamQuery(p->stream[FMM_CUDA_FAR]);
  if (error == cudaSuccess) return has_arrived(p, piece) ? cudaSuccess : cudaErrorUnknown;
  if (error != cudaErrorNotReady) return error;
  cudaGetLastError(); /* that is no failure of anyone's */
  return cudaSuccess;
}

/* Until a piece has arrived, or one of the team has found that the device failed. The device writes words that the host reads; it is asked only when it takes long. */
int await(const fmm_gpu_plan *p, int piece, int asks, cudaError_t *failed) {
  for (int64_t looks = 1; !has_arrived(p, piece); looks++) {
    if (__atomic_load_n(failed, __ATOMIC_RELAXED) != cudaSuccess) return 0;
    if (asks && looks % PATIENCE == 0) __atomic_store_n(failed, look_after(p, piece), __ATOMIC_RELAXED);
    rest(looks);
  }
  return 1;
}
}

fmm_status fmm_cuda_send_locked(fmm_gpu_plan *p, const double *densities, size_t bytes, cudaStream_t stream) {
  const int n = sorts_pieces(p, bytes) ? FMM_CUDA_PIECES_IN : 1;
  const int64_t rows = p->n_input_sources, width = p->components * p->columns;
  for (int i = 0; i < n; i++) {
    int64_t begin = fmm_cuda_piece_begin(rows, i, n), end = fmm_cuda_piece_begin(rows, i + 1, n);
    CUDA_TRY(cudaMemcpyAsync(p->d_density_input + begin * width, densities + begin * width, (size_t)((end - begin) * width) * sizeof(double), cudaMemcpyHostToDevice, stream));
    FMM_TRY(note_sent(p, end, stream));
  }
  return FMM_OK;
}

/* The whole team is asked: after a team of another size the OpenMP runtime ends threads and starts them anew for the CPU's phases, which takes longer than the copies. */
fmm_status fmm_cuda_send_pageable(fmm_gpu_plan *p, const double *densities, size_t bytes, cudaStream_t stream) {
  const size_t even = (bytes + MOST_PARTS - 1) / MOST_PARTS, part = even < (size_t)LEAST_PART ? (size_t)LEAST_PART : (even + LINE - 1) / LINE * LINE;
  fmm_status status = FMM_OK;
  crowd c = {};
  c.from = (const char *)densities, c.stage = (char *)p->stage_in, c.device = (char *)p->d_density_input;
  c.bytes = bytes, c.part = part, c.n_parts = (int)((bytes + part - 1) / part);
#pragma omp parallel num_threads(p->threads) if (bytes > (size_t)FMM_GPU_TEAM_BYTES)
  {
    if (omp_get_thread_num() == 0) status = send_chunks(&c, p, stream);
    else while (copy_next(&c)) {}
  }
  return status;
}

int64_t fmm_cuda_values_out(const fmm_gpu_plan *p) { return fmm_cuda_potentials(p) * (p->results.to_gradient ? 4 : 1); }

int fmm_cuda_pieces_out(const fmm_gpu_plan *p) {
  int pieces = 1;
  while (pieces < FMM_CUDA_PIECES_OUT && fmm_cuda_values_out(p) * (int64_t)sizeof(double) >> pieces >= LEAST_OUT) pieces++;
  return pieces;
}

fmm_status fmm_cuda_stage_out(const fmm_gpu_plan *p) {
  const int64_t values = fmm_cuda_values_out(p);
  const int pieces = p->results.pieces;
  cudaError_t failed = cudaSuccess;
#pragma omp parallel num_threads(p->threads) if (values * (int64_t)sizeof(double) > FMM_GPU_TEAM_BYTES)
  {
    const int thread = omp_get_thread_num(), team = omp_get_num_threads();
    for (int i = 0; i < pieces; i++) {
      if (pieces > 1 && !await(p, i, thread == 0, &failed)) break;
      const int64_t begin = fmm_cuda_piece_begin(values, i, pieces), end = fmm_cuda_piece_begin(values, i + 1, pieces);
      copy_results(p, share_begin(begin, end, thread, team), share_begin(begin, end, thread + 1, team));
    }
  }
  return failed == cudaSuccess ? FMM_OK : fmm_cuda_failed(failed, "cudaStreamQuery", __FILE__, __LINE__);
}
