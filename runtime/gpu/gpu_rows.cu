/* See gpu_rows.h. The team copies rows to page-locked memory, piece after piece, each on its way while the next is copied; words come back by way of the same memory: they are
 * used where they arrive if it holds them all, else copied from there, as many pieces under way as it holds. All calls are the calling thread's, and of these only copies into memory that is still in use, and words that are not there yet, are waited for.
 * Keys are made as on the host (keys.c), rounded once an operation, and sorting by their bits alone leaves equal ones in the order of rows, so that words are the same bit by bit. */
#define _GLIBCXX_IOSTREAM 1 /* as if it were included: CUB's headers do, without need, and its one object would have the library need the C++ runtime */
#include <cub/device/device_radix_sort.cuh>

#include "runtime/gpu/gpu_rows_cuda.h"
#include "runtime/key_bits.h"
extern "C" {
#include "runtime/past_caches.h"
#include "runtime/team_loop.h"
}

namespace {
enum { THREADS = 256, MOST_PIECES = 8 /* of the page-locked memory */, MOST_PIECE = 1 << 24 /* bytes */, PAGE = 4096, A_COPY = 1 << 18 /* bytes that one thread copies at once */, MOST_OF_MEMORY = 4 /* a quarter of what is free */ };

int is_allowed = 1;
int64_t n_gathered;
}

struct fmm_gpu_rows {
  int device, threads, n_sets;
  fmm_input_points set[2];
  fmm_status status;          /* how it went so far */
  cudaStream_t stream;
  char *stage;                /* the caller's, in pieces of so many bytes: */
  size_t piece_bytes;
  int n_pieces;
  int64_t n_used;             /* pieces that have been sent or asked for so far: each but the last n_pieces has been waited for */
  cudaEvent_t free_again[MOST_PIECES];
  char *memory;               /* on the device, of all that follows */
  size_t bytes, temporary_bytes;
  double *d_rows[2];
  uint64_t *d_words[2][2], *d_sorted[2]; /* the one of both that has them */
  void *d_temporary;
  int row_bits, dropped;
  double root_scale;          /* of words that were asked for, 0: none */
  size_t asked, total;        /* bytes of words, of all sets, on their way or there, and all */
  int in_place;               /* the page-locked memory holds them all */
  int64_t first_asked;        /* the piece that has the first of them */
};

namespace {
struct frame { double shift[3], lo[3], scale, cells_per_unit; };

/* fmm_frame_scaled: no product is added before it is rounded. */
__device__ __forceinline__ double scaled(double coordinate, double shift, double scale) { return __dadd_rn(__dmul_rn(__dsub_rn(coordinate, shift), scale), 0.0); }

/* fmm_key_cell */
__device__ __forceinline__ uint64_t cell(double at, double lo, double cells_per_unit) {
  const double last = (double)((1 << FMM_KEY_LEVEL) - 1), c = __dmul_rn(__dsub_rn(at, lo), cells_per_unit), least = c < last ? c : last;
  return (uint64_t)(uint32_t)(int32_t)(least > 0 ? least : 0);
}

__global__ void make_words(int64_t n, const double *rows, frame f, int dropped, int row_bits, uint64_t *word) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i >= n) return;
  uint64_t key = 0;
  for (int a = 0; a < 3; a++) key |= fmm_key_spread(cell(scaled(rows[3 * i + a], f.shift[a], f.scale), f.lo[a], f.cells_per_unit)) << a;
  word[i] = key >> dropped << row_bits | (uint64_t)i;
}

/* The points' planes: row first[i], in the order of rows, is point i; first NULL: i. */
__global__ void gather_points(int64_t n, const double *rows, const uint32_t *row, const int64_t *first, frame f, double *x, double *y, double *z) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i >= n) return;
  const double *at = rows + 3 * (int64_t)row[first ? first[i] : i];
  x[i] = scaled(at[0], f.shift[0], f.scale), y[i] = scaled(at[1], f.shift[1], f.scale), z[i] = scaled(at[2], f.shift[2], f.scale);
}

unsigned blocks_of(int64_t n) { return (unsigned)((n + THREADS - 1) / THREADS); }
size_t words_of(const fmm_gpu_rows *r, int set) { return (size_t)r->set[set].n * sizeof(uint64_t); } /* bytes */

template <typename T>
void place(fmm_gpu_rows *r, T **array, size_t count) {
  *array = r->memory ? (T *)(r->memory + r->bytes) : NULL;
  r->bytes += (count * sizeof(T) + 255) / 256 * 256;
}

/* Counts the bytes where there is no memory yet. */
void lay_out(fmm_gpu_rows *r) {
  r->bytes = 0;
  for (int k = 0; k < r->n_sets; k++) {
    place(r, &r->d_rows[k], 3 * (size_t)r->set[k].n);
    for (int i = 0; i < 2; i++) place(r, &r->d_words[k][i], (size_t)r->set[k].n);
  }
  place(r, (char **)&r->d_temporary, r->temporary_bytes);
}

cudaError_t sort(fmm_gpu_rows *r, int set, cub::DoubleBuffer<uint64_t> *words) {
  const int end = r->row_bits + 3 * FMM_KEY_LEVEL - r->dropped;
  return cub::DeviceRadixSort::SortKeys(r->d_temporary, r->temporary_bytes, *words, r->set[set].n, r->row_bits, end, r->stream);
}

fmm_status reserve(fmm_gpu_rows *r) {
  size_t available = 0, total = 0, most = 0;
  const int64_t n[2] = {r->set[0].n, r->set[1].n};
  fmm_words_shape(r->n_sets, n, &r->row_bits, &r->dropped);
  for (int k = 0; k < r->n_sets; k++) { /* without memory it says how much it needs */
    cub::DoubleBuffer<uint64_t> none(NULL, NULL);
    CUDA_TRY(sort(r, k, &none));
    most = r->temporary_bytes > most ? r->temporary_bytes : most;
  }
  r->temporary_bytes = most;
  lay_out(r);
  CUDA_TRY(cudaMemGetInfo(&available, &total));
  if (r->bytes > available / MOST_OF_MEMORY) return FMM_FAIL(FMM_ERR_MEMORY, "the GPU has no room for %zu bytes of rows beside a plan", r->bytes);
  CUDA_TRY(cudaMalloc(&r->memory, r->bytes));
  lay_out(r);
  CUDA_TRY(cudaStreamCreateWithFlags(&r->stream, cudaStreamNonBlocking));
  for (int i = 0; i < r->n_pieces; i++) CUDA_TRY(cudaEventCreateWithFlags(&r->free_again[i], cudaEventDisableTiming));
  return FMM_OK;
}

struct copying { char *to; const char *from; size_t bytes; int past; };

void copy_some(void *context, int64_t begin, int64_t end) {
  const copying *c = (const copying *)context;
  const size_t at = (size_t)begin * A_COPY, last = (size_t)end * A_COPY, some = (last < c->bytes ? last : c->bytes) - at;
  if (c->past) fmm_copy_past_caches(c->to + at, c->from + at, some);
  else memcpy(c->to + at, c->from + at, some);
}

/* By the team. past: the caches, of what the device reads. */
void copy(const fmm_gpu_rows *r, char *to, const char *from, size_t bytes, int past) {
  copying c = {to, from, bytes, past};
  fmm_team_loop((int64_t)((bytes + A_COPY - 1) / A_COPY), 1, copy_some, &c, r->threads);
}

char *piece_at(const fmm_gpu_rows *r, int64_t number) { return r->stage + (size_t)(number % r->n_pieces) * r->piece_bytes; }

/* Until the piece of this number is no longer on its way. */
fmm_status await_piece(fmm_gpu_rows *r, int64_t number) { return CUDA_CHECKED(cudaEventSynchronize(r->free_again[number % r->n_pieces])); }

/* From page-locked memory at once, else piece by piece. */
fmm_status send(fmm_gpu_rows *r, int set) {
  const char *from = (const char *)r->set[set].rows;
  char *to = (char *)r->d_rows[set];
  const size_t bytes = 3 * (size_t)r->set[set].n * sizeof(double);
  if (fmm_cuda_is_locked(from, bytes)) CUDA_TRY(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, r->stream));
  else
    for (size_t at = 0, some; at < bytes; at += some, r->n_used++) {
      some = bytes - at < r->piece_bytes ? bytes - at : r->piece_bytes;
      if (r->n_used >= r->n_pieces) FMM_TRY(await_piece(r, r->n_used));
      copy(r, piece_at(r, r->n_used), from + at, some, 1);
      CUDA_TRY(cudaMemcpyAsync(to + at, piece_at(r, r->n_used), some, cudaMemcpyHostToDevice, r->stream));
      CUDA_TRY(cudaEventRecord(r->free_again[r->n_used % r->n_pieces], r->stream));
    }
  return FMM_OK;
}

fmm_status bring(void *context) {
  fmm_gpu_rows *r = (fmm_gpu_rows *)context;
  fmm_cuda_on_device on(r->device);
  FMM_TRY(reserve(r));
  for (int k = 0; k < r->n_sets; k++) FMM_TRY(send(r, k));
  return FMM_OK;
}

frame frame_of(const fmm_frame *f) {
  frame of = {{}, {}, f->scale, f->cells_per_unit};
  for (int a = 0; a < 3; a++) of.shift[a] = f->shift[a], of.lo[a] = f->lo[a];
  return of;
}

/* Where byte `at` of all sets' words lies on the device, and how many follow in this set. */
const char *words_at(const fmm_gpu_rows *r, size_t at, size_t *left) {
  const int set = at >= words_of(r, 0);
  if (set) at -= words_of(r, 0);
  *left = words_of(r, set) - at;
  return (const char *)r->d_sorted[set] + at;
}

int64_t pieces_of(const fmm_gpu_rows *r, int set) { return (int64_t)((words_of(r, set) + r->piece_bytes - 1) / r->piece_bytes); }

/* The next piece of words, when its place is free. */
fmm_status ask_for_piece(fmm_gpu_rows *r) {
  size_t some;
  const char *from = words_at(r, r->asked, &some);
  if (some > r->piece_bytes) some = r->piece_bytes;
  CUDA_TRY(cudaMemcpyAsync(piece_at(r, r->n_used), from, some, cudaMemcpyDeviceToHost, r->stream));
  CUDA_TRY(cudaEventRecord(r->free_again[r->n_used % r->n_pieces], r->stream));
  r->n_used++, r->asked += some;
  return FMM_OK;
}

fmm_status sort_sets(fmm_gpu_rows *r, const fmm_frame *f) {
  for (int k = 0; k < r->n_sets; k++) {
    const int64_t n = r->set[k].n;
    cub::DoubleBuffer<uint64_t> both(r->d_words[k][0], r->d_words[k][1]);
    if (n == 0) continue;
    make_words<<<blocks_of(n), THREADS, 0, r->stream>>>(n, r->d_rows[k], frame_of(f), r->dropped, r->row_bits, r->d_words[k][0]);
    CUDA_LAUNCHED();
    CUDA_TRY(sort(r, k, &both));
    r->d_sorted[k] = both.Current();
  }
  return FMM_OK;
}

/* Rows that are still on their way out of the pieces come before, in the order of the stream. */
fmm_status ask(fmm_gpu_rows *r, const fmm_frame *f, double root_scale) {
  fmm_cuda_on_device on(r->device);
  FMM_TRY(sort_sets(r, f));
  int64_t pieces = 0;
  r->root_scale = root_scale, r->asked = r->total = 0;
  for (int k = 0; k < r->n_sets; k++) r->total += words_of(r, k), pieces += pieces_of(r, k);
  r->in_place = pieces <= r->n_pieces;
  if (r->in_place) r->n_used = (r->n_used + r->n_pieces - 1) / r->n_pieces * r->n_pieces; /* one behind the other, from the first place on */
  r->first_asked = r->n_used;
  for (int i = 0; i < r->n_pieces && r->asked < r->total; i++) FMM_TRY(ask_for_piece(r));
  return FMM_OK;
}

/* Each set begins with a piece of its own. */
fmm_status take_in_place(fmm_gpu_rows *r, fmm_sorted_rows *sorted) {
  int64_t number = r->first_asked;
  for (int k = 0; k < r->n_sets; number += pieces_of(r, k++)) sorted->set[k].word = (uint64_t *)piece_at(r, number), sorted->set[k].borrowed = 1;
  for (int64_t i = r->first_asked; i < number; i++) FMM_TRY(await_piece(r, i));
  return FMM_OK;
}

struct taking { fmm_gpu_rows *rows; fmm_sorted_rows *sorted; };

fmm_status take(void *context) {
  const taking *t = (const taking *)context;
  fmm_gpu_rows *r = t->rows;
  fmm_cuda_on_device on(r->device);
  size_t at = 0, some;
  for (int64_t number = r->first_asked; at < r->total; number++, at += some) {
    words_at(r, at, &some);
    if (some > r->piece_bytes) some = r->piece_bytes;
    FMM_TRY(await_piece(r, number));
    const int set = at >= words_of(r, 0);
    copy(r, (char *)t->sorted->set[set].word + (set ? at - words_of(r, 0) : at), piece_at(r, number), some, 0);
    if (r->asked < r->total) FMM_TRY(ask_for_piece(r));
  }
  return FMM_OK;
}

/* After a failure nothing is left there that a plan could need. */
fmm_status note(fmm_gpu_rows *r, fmm_status status) {
  if (status == FMM_OK) return status;
  r->status = status;
  fmm_gpu_rows_give_up(r);
  fmm_clear_error(); /* the host does it */
  return status;
}
}

extern "C" void fmm_gpu_rows_begin(fmm_gpu_rows **rows, const fmm_gpu_rows_request *q) {
  fmm_gpu_rows *r = NULL;
  *rows = NULL;
  if (!__atomic_load_n(&is_allowed, __ATOMIC_RELAXED) || q->stage_bytes < PAGE || FMM_ALLOCATE_ZERO(&r, 1, "rows on their way to the GPU") != FMM_OK) return;
  r->device = q->device, r->threads = q->threads, r->n_sets = q->n_sets, r->stage = q->stage;
  for (int k = 0; k < q->n_sets; k++) r->set[k] = q->set[k];
  r->n_pieces = q->stage_bytes >= MOST_PIECES * PAGE ? MOST_PIECES : 1;
  r->piece_bytes = q->stage_bytes / r->n_pieces / PAGE * PAGE < MOST_PIECE ? q->stage_bytes / r->n_pieces / PAGE * PAGE : MOST_PIECE;
  r->status = fmm_job_run_alone(bring, r, q->threads);
  if (r->status == FMM_OK) *rows = r;
  else fmm_gpu_rows_end(&r);
}

extern "C" void fmm_gpu_rows_ask(fmm_gpu_rows *r, const fmm_frame *frame, double root_scale) {
  if (!frame->coincident && r->status == FMM_OK) note(r, ask(r, frame, root_scale));
}

extern "C" void fmm_gpu_rows_take(fmm_gpu_rows *r, const fmm_frame *frame, double root_scale, fmm_sorted_rows *sorted) {
  taking t = {r, sorted};
  *sorted = fmm_sorted_rows{};
  if (frame->coincident) return fmm_gpu_rows_settle(r);
  if (r->root_scale != root_scale) fmm_gpu_rows_ask(r, frame, root_scale);
  sorted->n_sets = r->n_sets, sorted->root_scale = root_scale;
  fmm_status status = r->status;
  for (int k = 0; k < r->n_sets && status == FMM_OK; k++) {
    sorted->n[k] = r->set[k].n, sorted->set[k] = fmm_sorted_words{NULL, r->row_bits, r->dropped, 0};
    if (!r->in_place) status = FMM_ALLOCATE(&sorted->set[k].word, r->set[k].n, "sorted keys");
  }
  if (status == FMM_OK) status = note(r, r->in_place ? take_in_place(r, sorted) : fmm_job_run_alone(take, &t, r->threads));
  if (status != FMM_OK) fmm_rows_free(sorted), fmm_clear_error();
  fmm_gpu_rows_settle(r);
}

extern "C" void fmm_gpu_rows_settle(fmm_gpu_rows *r) {
  fmm_cuda_on_device on(r->device);
  note(r, CUDA_CHECKED(cudaStreamSynchronize(r->stream)));
  r->root_scale = 0;
}

extern "C" void fmm_gpu_rows_give_up(fmm_gpu_rows *r) {
  if (!r || !r->memory) return;
  fmm_cuda_on_device on(r->device);
  if (r->stream) cudaStreamSynchronize(r->stream);
  cudaFree(r->memory);
  r->memory = NULL;
  cudaGetLastError();
}

extern "C" void fmm_gpu_rows_end(fmm_gpu_rows **rows) {
  fmm_gpu_rows *r = *rows;
  *rows = NULL;
  if (!r) return;
  {
    fmm_cuda_on_device on(r->device);
    fmm_gpu_rows_give_up(r);
    for (int i = 0; i < r->n_pieces; i++)
      if (r->free_again[i]) cudaEventDestroy(r->free_again[i]);
    if (r->stream) cudaStreamDestroy(r->stream);
    cudaGetLastError();
  }
  FMM_FREE(&r);
}

extern "C" int fmm_gpu_rows_serve(const fmm_gpu_rows *r) { return r && r->status == FMM_OK && r->memory; }
extern "C" int fmm_gpu_rows_allow(int allowed) { return __atomic_exchange_n(&is_allowed, allowed, __ATOMIC_RELAXED); }
extern "C" int64_t fmm_gpu_rows_count(void) { return __atomic_load_n(&n_gathered, __ATOMIC_RELAXED); }

cudaError_t fmm_cuda_rows_gather(const fmm_gpu_rows *r, int set, const fmm_tree *tree, int64_t n, const uint32_t *d_row, const int64_t *d_first, double *const d_to[3], cudaStream_t stream) {
  frame f = {{}, {}, tree->scale, 0};
  if (n == 0) return cudaSuccess;
  for (int a = 0; a < 3; a++) f.shift[a] = tree->shift[a];
  __atomic_add_fetch(&n_gathered, 1, __ATOMIC_RELAXED);
  gather_points<<<blocks_of(n), THREADS, 0, stream>>>(n, r->d_rows[set], d_row, d_first, f, d_to[0], d_to[1], d_to[2]);
  return cudaGetLastError();
}

size_t fmm_cuda_rows_bytes(const fmm_gpu_rows *r) { return fmm_gpu_rows_serve(r) ? r->bytes : 0; }
