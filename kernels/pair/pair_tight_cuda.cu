/* Which tiles of the U list are too tight for float, once a plan. A coordinate relative to the target box's centre (half-width h) is rounded by up to
 * 2^-24 of itself, 2^-25 or less in the mean square, so a pair at distance d moves by about 2^-25 (1 + 2 h / d) of its value (twice that for derivatives). Densities are not known yet: all
 * count alike, without cancellation of values nor of errors; the sums of molecules' and salts' charges are up to four times smaller than that. The tiles with the largest errors are marked until
 * those of the rest are within a quarter of the tolerance, in the relative L2 norm over all targets. Where the nearest pairs of tiles outweigh all others (of points on a line the nearest of all does), a sample of targets
 * has no such values but its share of the errors (a thousand of any number of points in space, of derivatives; on a line, of potentials too): so the norm is at most eight times that of the values without them. Pairs of all kernels are taken as 1/r.
 * Of U in both directions what a tile's own leaf gives to it is measured and marked apart from the rest, and where values may be beyond float, in which its parts are kept, all is in double. */
#include <stdlib.h>

#include "runtime/gpu/gpu_cuda.h"

namespace {
enum { THREADS = 128, TARGETS = 128 /* at once */, MOST_WAITING = 64, AT_ONCE = 4, MEASURES = 4 /* squares of values and of errors, of potentials and of derivatives */ };

constexpr double PART = 0.25; /* of the tolerance */
constexpr double OTHERS = 64; /* times the squares of values without those of tiles' nearest pairs, at most */
constexpr double HUGE_ERROR = 1e300;
constexpr double LARGEST_SQUARES = 1e60, LARGEST_SQUARES_OF_DERIVATIVES = 1e50; /* of a tile's values: larger ones, or their roots' cubes, may be beyond float */
constexpr double MOST = 0x1p22; /* half-widths to a pair's distance, beyond which float may take its points for one */
constexpr float NEAR = 0.25f; /* half-widths: nearer pairs are measured in double; a float errs by a millionth of that and so of others' distances. Of the others some tell of all. */
static_assert(32 * AT_ONCE <= TARGETS && TARGETS % (32 * AT_ONCE) == 0, "what lanes look at at once lies within");
constexpr float FAR_AWAY = 1e9f; /* half-widths */
constexpr float REACH = 1.001f * (1 + NEAR); /* of a box, within which a source may be near to its points */

struct job {
  const fmm_cuda_tile *tile; /* and ranges, or chunks and mates */
  const fmm_cuda_range *range;
  const fmm_cuda_chunk *chunk;
  const fmm_cuda_mate *mate;
  const double *source[3], *target[3], *center[3], *half;
  double *measure; /* of each tile, and behind all of them the squared potential of each one's nearest pair */
};

__device__ __forceinline__ void add_near(double dx, double dy, double dz, double h2, double (&m)[MEASURES], double &nearest) {
  double d2 = fma(dx, dx, fma(dy, dy, dz * dz)), r;
  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(d2));
  if (!(d2 > 1e-300)) { /* a point with itself or one in the same place; else two that float, and the seed, take for one */
    if (dx != 0 || dy != 0 || dz != 0) m[1] = m[3] = INFINITY;
    return;
  }
  double r2 = r * r, e = fma(h2, r, 1.0), error = h2 * r > MOST ? HUGE_ERROR : e * e * r2;
  m[0] += r2, m[1] += error;
  m[2] = fma(r2, r2, m[2]), m[3] = fma(error, r2, m[3]);
  nearest = fmax(nearest, r2);
}

/* The same in half-widths. */
template <int GRADIENT>
__device__ __forceinline__ void add_far(float d2, float (&m)[MEASURES]) {
  float r;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(d2));
  const float r2 = r * r, e = fmaf(2, r, 1), error = e * e * r2;
  m[0] += r2, m[1] += error;
  if (GRADIENT) m[2] = fmaf(r2, r2, m[2]), m[3] = fmaf(error, r2, m[3]);
}

struct box { double unit /* a half-width has so many */, h, center[3]; };
/* Targets of a tile, in shared memory, in half-widths from the box's centre; the places behind them, TARGETS in all, are far from everything. */
struct targets { int64_t begin; int n; const float4 *place; };

__device__ __forceinline__ float4 place_of(const double *const (&at)[3], int64_t i, const box &b) {
  return make_float4((float)((at[0][i] - b.center[0]) * b.unit), (float)((at[1][i] - b.center[1]) * b.unit), (float)((at[2][i] - b.center[2]) * b.unit), 0);
}
__device__ __forceinline__ float square_between(float4 a, float4 b) {
  const float du = a.x - b.x, dv = a.y - b.y, dw = a.z - b.z;
  return fmaf(du, du, fmaf(dv, dv, dw * dw));
}

/* A warp's lanes dealt to n things, at most 32: this lane's thing, which part of it, and of how many. */
struct share { int thing, part, parts; };
__device__ __forceinline__ share share_of(int n) {
  const int lane = threadIdx.x % 32, log2 = n > 1 ? 32 - __clz(n - 1) : 0;
  return share{lane & ((1 << log2) - 1), lane >> log2, 32 >> log2};
}

/* A warp's sources that may be near to targets, with their numbers, and pairs that are, which wait until there is one for each lane: everything in the order in which it was found. */
struct waiting { float4 *source; int *pair, n_sources, n_pairs; };

__device__ __forceinline__ void measure_pairs(const job &a, const box &b, const targets &t, waiting &w, int n, double (&near)[MEASURES], double &nearest) {
  const int lane = threadIdx.x % 32;
  __syncwarp();
  if (lane < n) {
    const int pair = w.pair[w.n_pairs - n + lane];
    const int64_t i = t.begin + pair / MOST_WAITING, j = (unsigned)__float_as_int(w.source[pair % MOST_WAITING].w);
    add_near(a.target[0][i] - a.source[0][j], a.target[1][i] - a.source[1][j], a.target[2][i] - a.source[2][j], 2 * b.h, near, nearest);
  }
  w.n_pairs -= n;
  __syncwarp();
}

/* The last n that wait. */
__device__ __forceinline__ void measure_near(const job &a, const box &b, const targets &t, waiting &w, int n, double (&near)[MEASURES], double &nearest) {
  const share mine = share_of(n);
  const int lane = threadIdx.x % 32, at = w.n_sources - n + mine.thing;
  __syncwarp();
  float4 source = w.source[min(at, w.n_sources - 1)];
  if (mine.thing >= n) source.x = FAR_AWAY;
  for (int first = 0; first < t.n; first += AT_ONCE * mine.parts) {
    float square[AT_ONCE], least = FAR_AWAY;
#pragma unroll
    for (int k = 0; k < AT_ONCE; k++) square[k] = square_between(t.place[first + k * mine.parts + mine.part], source), least = fminf(least, square[k]);
    if (!__any_sync(0xffffffffu, least < NEAR * NEAR)) continue;
#pragma unroll
    for (int k = 0; k < AT_ONCE; k++) {
      const unsigned all = __ballot_sync(0xffffffffu, square[k] < NEAR * NEAR);
      if (square[k] < NEAR * NEAR) w.pair[w.n_pairs + __popc(all & ((1u << lane) - 1))] = (first + k * mine.parts + mine.part) * MOST_WAITING + at;
      w.n_pairs += __popc(all);
      if (w.n_pairs >= 32) measure_pairs(a, b, t, w, 32, near, nearest);
    }
  }
  if (w.n_pairs) measure_pairs(a, b, t, w, w.n_pairs, near, nearest);
  w.n_sources -= n;
}

/* One of so many sources, or of what is left, at most 32 of them, with all targets that are not near. Returns for how many each stands. */
template <int GRADIENT>
__device__ __forceinline__ float measure_some(const job &a, const box &b, const targets &t, int64_t begin, int count, int every, float (&far)[MEASURES]) {
  const int n = (count + every - 1) / every, first = (count - 1 - (n - 1) * every) / 2;
  const share mine = share_of(n);
  const float each = (float)count / (float)n;
  if (mine.thing >= n) return each;
  const float4 source = place_of(a.source, begin + first + mine.thing * every, b);
#pragma unroll 4
  for (int i = mine.part; i < t.n; i += mine.parts) {
    const float square = square_between(t.place[i], source);
    if (square >= NEAR * NEAR) add_far<GRADIENT>(square, far);
  }
  return each;
}

/* The targets' pairs with sources, those of a warp: of all it finds the near ones. */
template <int GRADIENT>
__device__ __forceinline__ void measure_sources(const job &a, const box &b, const targets &t, waiting &w, int64_t begin, int count, int every, double (&m)[MEASURES], double &nearest) {
  const int lane = threadIdx.x % 32;
  float far[MEASURES] = {};
  double near[MEASURES] = {};
  const float each = measure_some<GRADIENT>(a, b, t, begin, count, every, far);
  for (int first = 0; first < count; first += 32) {
    const int64_t j = begin + min(first + lane, count - 1);
    float4 source = place_of(a.source, j, b);
    source.w = __int_as_float((int)(unsigned)j);
    const int may = first + lane < count && fmaxf(fabsf(source.x), fmaxf(fabsf(source.y), fabsf(source.z))) <= REACH;
    const unsigned all = __ballot_sync(0xffffffffu, may);
    __syncwarp(); /* those that waited in these places have been read */
    if (may) w.source[w.n_sources + __popc(all & ((1u << lane) - 1))] = source;
    w.n_sources += __popc(all);
    if (w.n_sources >= 32) measure_near(a, b, t, w, 32, near, nearest);
  }
  if (w.n_sources) measure_near(a, b, t, w, w.n_sources, near, nearest);
  const double unit2 = b.unit * b.unit;
  for (int k = 0; k < MEASURES; k++) m[k] = near[k] + far[k] * each * (k < 2 ? unit2 : unit2 * unit2);
}

/* One of so many sources is enough to tell of pairs that are not near: the more targets, the fewer. */
__device__ __forceinline__ int enough(int n_targets) { return n_targets >= 128 ? 32 : n_targets >= 64 ? 8 : n_targets >= 32 ? 2 : 1; }

/* A tile's targets, as many at once as there is room for, with their sources, dealt to the warps, and measures of so many kinds of sources, EACH of a kind. each_range names the sources, by calls of add(begin, count,
 * times, kind). */
template <int KINDS, int EACH, int GRADIENT, class Each>
__device__ __forceinline__ void measure_tile(const job &a, int of, int64_t target_begin, int target_count, const Each &each_range) {
  constexpr int M = KINDS * EACH, WARPS = THREADS / 32;
  __shared__ float4 place[TARGETS], source[WARPS][MOST_WAITING];
  __shared__ int pair[WARPS][MOST_WAITING];
  __shared__ double part[WARPS][M + 1];
  const int warp = threadIdx.x / 32;
  const double h = a.half[of];
  const box b = {1 / h, h, {a.center[0][of], a.center[1][of], a.center[2][of]}};
  double m[M + 1] = {}; /* the last: of the nearest pair */
  for (int first = 0; first < target_count; first += TARGETS) {
    const targets t = {target_begin + first, min((int)TARGETS, target_count - first), place};
    const int every = enough(t.n), span = 32 * every;
    int turn = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < TARGETS; i += THREADS) place[i] = i < t.n ? place_of(a.target, t.begin + i, b) : make_float4(0, FAR_AWAY, 0, 0);
    __syncthreads();
    each_range([&](int64_t begin, int count, double times, int kind) {
      for (int at = 0; at < count; at += span, turn++) {
        double got[MEASURES];
        waiting w = {source[warp], pair[warp], 0, 0};
        if (turn % WARPS != warp) continue;
        measure_sources<GRADIENT>(a, b, t, w, begin + at, min(span, count - at), every, got, m[M]);
        for (int k = 0; k < M; k++) m[k] += k / EACH == kind ? times * got[k % EACH] : 0;
      }
    });
  }
#pragma unroll
  for (int k = 0; k <= M; k++) {
    for (int step = 16; step; step >>= 1) {
      const double other = __shfl_xor_sync(0xffffffffu, m[k], step);
      m[k] = k < M ? m[k] + other : fmax(m[k], other);
    }
    if (threadIdx.x % 32 == 0) part[warp][k] = m[k];
  }
  __syncthreads();
  if (threadIdx.x > M) return;
  double all = 0;
  for (int w = 0; w < WARPS; w++) all = (int)threadIdx.x < M ? all + part[w][threadIdx.x] : fmax(all, part[w][M]);
  a.measure[(int)threadIdx.x < M ? (int64_t)blockIdx.x * M + threadIdx.x : (int64_t)gridDim.x * M + blockIdx.x] = all;
}

template <int GRADIENT>
__global__ void __launch_bounds__(THREADS) measure_tiles(const job a) {
  const fmm_cuda_tile tile = a.tile[blockIdx.x];
  measure_tile<1, MEASURES, GRADIENT>(a, tile.box, tile.target_begin, tile.target_count, [&](const auto &add) {
    for (int r = 0; r < tile.range_count; r++) {
      const fmm_cuda_range range = a.range[tile.range_begin + r];
      add(range.begin, range.count, 1, 0);
    }
  });
}

/* Tiles that sum both directions of their pairs: such a pair counts for both of its points. Measures: of the sources that are summed onto the tile alone, and of the others. */
template <int GRADIENT>
__global__ void __launch_bounds__(THREADS) measure_both(const job a) {
  constexpr int EACH = GRADIENT ? MEASURES : 2;
  const fmm_cuda_chunk first = a.chunk[blockIdx.x];
  measure_tile<2, EACH, GRADIENT>(a, first.box, first.target_begin, first.target_count, [&](const auto &add) {
    for (int64_t c = blockIdx.x; c >= 0; c = a.chunk[c].next) {
      const int64_t begin = a.chunk[c].mate_begin;
      const int mates = a.chunk[c].mates;
      for (int i = 0; i < mates; i++) {
        const fmm_cuda_mate mate = a.mate[begin + i];
        add(mate.begin, mate.count, mate.partial < 0 ? 1 : 2, mate.partial < 0 ? 0 : 1);
      }
    }
  });
}

/* Numbers from zero on are in the order of their bits; classes are of so many of these, one level after the other. */
enum { CLASS_BITS = 14, CLASSES = 1 << CLASS_BITS, LEVELS = 3 };
uint64_t bits_of(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

/* Numbers whose bits above `shift` are these; of the first level all. */
struct class_of_numbers { uint64_t bits; int shift; };
bool is_in(const class_of_numbers &c, double x) { return c.shift == 64 || bits_of(x) >> c.shift == c.bits; }

/* Within a class the first of its parts that does not fit in what may be kept, by how much the ones before it do; 0: all do, but for rounding. */
int cut_class(int64_t n, const double *error, int64_t stride, double most, double *sum, class_of_numbers *c, double *kept) {
  const int shift = c->shift - CLASS_BITS;
  double before = *kept;
  memset(sum, 0, CLASSES * sizeof *sum);
  for (int64_t i = 0; i < n; i++)
    if (is_in(*c, error[i * stride])) sum[bits_of(error[i * stride]) >> shift & (CLASSES - 1)] += error[i * stride];
  for (int k = 0; k < CLASSES; before += sum[k++])
    if (!(before + sum[k] <= most)) return *kept = before, *c = class_of_numbers{c->bits << CLASS_BITS | (uint64_t)k, shift}, 1;
  return 0;
}

/* The least of n errors that must go, taken from the largest on, for the others' sum to be within `most`; INFINITY: none. Classes are summed first, so that few have to be sorted. `room`: CLASSES + n. */
double limit_of(int64_t n, const double *error, int64_t stride, double most, double *room) {
  double *order = room + CLASSES, kept = 0;
  class_of_numbers c = {0, 64};
  int64_t last = 0;
  if (!cut_class(n, error, stride, most, room, &c, &kept)) return INFINITY;
  for (int level = 1; level < LEVELS && cut_class(n, error, stride, most, room, &c, &kept); level++) {}
  for (int64_t i = 0; i < n; i++)
    if (is_in(c, error[i * stride])) order[last++] = error[i * stride];
  qsort(order, (size_t)last, sizeof *order, [](const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
  });
  for (int64_t i = 0; i < last; i++)
    if (!((kept += order[i]) <= most)) return order[i];
  return order[last - 1]; /* but for rounding */
}

/* Squares of values (measure k, of n tiles with so many kinds of `each` measures) that errors are relative to. A nearest pair comes twice, once from either end. */
double values_of(int64_t n, const double *measure, int kinds, int each, int k) {
  const double *nearest = measure + n * kinds * each;
  double all = 0, others = 0;
  for (int64_t i = 0; i < n; i++) {
    double v = 0;
    for (int kind = 0; kind < kinds; kind++) v += measure[(i * kinds + kind) * each + k];
    all += v, others += fmax(0, v - 2 * (k ? nearest[i] * nearest[i] : nearest[i]));
  }
  return fmin(all, OTHERS * others);
}

/* Marks the tiles, n of them, with the largest errors (measure k + 1) against the values (measure k). room: CLASSES and one a tile. */
void mark_tiles(int64_t n, uint8_t *mark, const double *measure, int k, double factor, double tolerance, double *room) {
  const double values = values_of(n, measure, 1, MEASURES, k);
  const double limit = limit_of(n, measure + k + 1, MEASURES, PART * PART * tolerance * tolerance * values / factor, room);
  for (int64_t i = 0; i < n; i++)
    if (!(measure[i * MEASURES + k + 1] < limit)) mark[i] = FMM_BOTH_ALL_PRECISE;
}

/* The same for tiles that sum both directions, whose two kinds of sources, of `each` measures, are marked apart. room: CLASSES and two a tile. */
void mark_both(int64_t n, uint8_t *mark, const double *measure, int each, int k, double factor, double tolerance, double *room) {
  const double values = values_of(n, measure, 2, each, k);
  const double limit = limit_of(2 * n, measure + k + 1, each, PART * PART * tolerance * tolerance * values / factor, room);
  for (int64_t i = 0; i < n; i++) {
    const double *m = measure + i * 2 * each + k + 1;
    const uint8_t precise = !(m[each] < limit) ? FMM_BOTH_ALL_PRECISE : !(m[0] < limit) ? FMM_BOTH_ALONE_PRECISE : 0;
    if (precise > mark[i]) mark[i] = precise;
  }
}

/* Whether sums may be beyond float, in which parts of leaves are kept, or points are one to float: then the error of potentials is infinite. That of derivatives is so sooner, of tiles that are marked. */
int is_wide(const fmm_cuda_sums *s, int measures, const double *measure) {
  for (int64_t i = 0; i < s->n_tiles * measures; i += 2) {
    const int of_derivatives = measures > MEASURES && i % MEASURES == 2;
    if (!(measure[i] < (of_derivatives ? LARGEST_SQUARES_OF_DERIVATIVES : LARGEST_SQUARES)) || (!of_derivatives && measure[i + 1] == INFINITY)) return 1;
  }
  return 0;
}

/* Then all is summed in double, and so are parts. */
fmm_status widen(fmm_gpu_plan *p) {
  fmm_cuda_sums *s = &p->sums[FMM_SUM_U];
  const size_t bytes = fmm_cuda_wide_bytes(p);
  s->single = 0;
  if (bytes) CUDA_TRY(cudaMalloc(&p->wide, bytes));
  p->wide_bytes = bytes, s->d_partial = (double *)p->wide;
  CUDA_TRY(fmm_cuda_both_prepare(p));
  return FMM_OK;
}

/* Which tiles are marked for the kernel in double, and behind them those of which it is their own leaf's sums alone. */
void list_marked(fmm_cuda_sums *s, const uint8_t *mark, int32_t *precise) {
  int64_t n = 0;
  for (int64_t i = 0; i < s->n_tiles; i++)
    if (mark[i] == FMM_BOTH_ALL_PRECISE) precise[n++] = (int32_t)i;
  s->n_precise = n;
  for (int64_t i = 0; i < s->n_tiles; i++)
    if (mark[i] == FMM_BOTH_ALONE_PRECISE) precise[n++] = (int32_t)i;
  s->n_alone_precise = n - s->n_precise;
}

/* Each listed tile's mark to where kernels read it. */
__global__ void __launch_bounds__(THREADS) set_marks(fmm_cuda_tile *tile, fmm_cuda_chunk *chunk, const int32_t *listed, int64_t n_all, int64_t n) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i >= n) return;
  if (tile) tile[listed[i]].precise = 1;
  else
    for (int64_t c = listed[i]; c >= 0; c = chunk[c].next) chunk[c].precise = i < n_all ? FMM_BOTH_ALL_PRECISE : FMM_BOTH_ALONE_PRECISE;
}

fmm_status send_marks(const fmm_cuda_sums *s, const int32_t *precise, cudaStream_t stream) {
  const int64_t n = s->n_precise + s->n_alone_precise;
  if (n == 0) return FMM_OK;
  CUDA_TRY(cudaMemcpyAsync(s->d_precise, precise, (size_t)n * sizeof *precise, cudaMemcpyHostToDevice, stream));
  set_marks<<<(unsigned)((n + THREADS - 1) / THREADS), THREADS, 0, stream>>>(s->both ? NULL : s->d_tile, s->d_chunk, s->d_precise, s->n_precise, n);
  CUDA_LAUNCHED();
  CUDA_TRY(cudaStreamSynchronize(stream));
  return FMM_OK;
}
}

size_t fmm_cuda_wide_bytes(const fmm_gpu_plan *p) {
  const fmm_cuda_sums *s = &p->sums[FMM_SUM_U];
  return s->both && s->single ? (size_t)(s->n_partial * fmm_cuda_both_values(p)) * sizeof(double) : 0;
}

/* The tiles are on the device; those that are too tight get their marks there. Measures come by way of the stage, where it has room. */
fmm_status fmm_cuda_mark_tight(fmm_gpu_plan *p) {
  fmm_cuda_sums *s = &p->sums[FMM_SUM_U];
  double *own = NULL, *measure = (double *)p->stage, *room = NULL;
  int32_t *precise = NULL;
  uint8_t *mark = NULL;
  fmm_status status = FMM_OK;
  cudaStream_t stream = p->stream[FMM_CUDA_NEAR];
  if (!s->single || s->n_tiles == 0) return FMM_OK;
  job a = {s->d_tile, s->d_range, s->d_chunk, s->d_mate, {p->d_source[0], p->d_source[1], p->d_source[2]}, {p->d_target[0], p->d_target[1], p->d_target[2]}, {p->d_center[0], p->d_center[1], p->d_center[2]}, p->d_half, p->d_tight};
  const int measures = fmm_cuda_measures(p);
  const size_t bytes = (size_t)s->n_tiles * (size_t)(measures + 1) * sizeof(double);
  if (s->both && p->gradient) measure_both<1><<<(unsigned)s->n_tiles, THREADS, 0, stream>>>(a);
  else if (s->both) measure_both<0><<<(unsigned)s->n_tiles, THREADS, 0, stream>>>(a);
  else if (p->gradient) measure_tiles<1><<<(unsigned)s->n_tiles, THREADS, 0, stream>>>(a);
  else measure_tiles<0><<<(unsigned)s->n_tiles, THREADS, 0, stream>>>(a);
  FMM_CHECK(CUDA_CHECKED(cudaGetLastError()));
  if (bytes > p->stage_bytes) {
    FMM_CHECK(FMM_ALLOCATE(&own, s->n_tiles * (measures + 1), "measures of the U list"));
    measure = own;
  }
  FMM_CHECK(FMM_ALLOCATE(&room, CLASSES + 2 * s->n_tiles, "measures of the U list"));
  FMM_CHECK(FMM_ALLOCATE_ZERO(&mark, s->n_tiles, "marks of the U list"));
  FMM_CHECK(FMM_ALLOCATE(&precise, s->n_tiles, "tiles too tight for float"));
  FMM_CHECK(CUDA_CHECKED(cudaMemcpyAsync(measure, p->d_tight, bytes, cudaMemcpyDeviceToHost, stream)));
  FMM_CHECK(CUDA_CHECKED(cudaStreamSynchronize(stream)));
  if (s->both && is_wide(s, measures, measure)) {
    FMM_CHECK(widen(p));
    goto done;
  }
  for (int k = 0; k <= 2 * p->gradient; k += 2) { /* potentials, then derivatives, which err by twice as much */
    const double factor = k ? 0x1p-48 : 0x1p-50;
    if (s->both) mark_both(s->n_tiles, mark, measure, measures / 2, k, factor, p->tolerance, room);
    else mark_tiles(s->n_tiles, mark, measure, k, factor, p->tolerance, room);
  }
  list_marked(s, mark, precise);
  FMM_CHECK(send_marks(s, precise, stream));
  if (s->both && s->n_precise + s->n_alone_precise) FMM_CHECK(CUDA_CHECKED(fmm_cuda_both_prepare_tight(p)));
done:
  if (status != FMM_OK) cudaStreamSynchronize(stream); /* what is on its way to memory that is given up */
  FMM_FREE(&precise);
  FMM_FREE(&mark);
  FMM_FREE(&own);
  FMM_FREE(&room);
  return status;
}
