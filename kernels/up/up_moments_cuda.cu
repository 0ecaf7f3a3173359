/* Leaves upward on the GPU by solid harmonics, in the phase's precision: the moments of sixteen leaves (kernels/harmonics.h) are summed and go by parity blocks to equivalent densities, by one matrix, in one launch.
 * An order m of the harmonics is one recurrence over degrees, of which two sums a degree are kept in registers, so orders are dealt to warps. Four lanes a leaf follow one another through its points. Leaves lie by falling number of
 * points (runtime/gpu/gpu_tables.cu), so that lanes wait little for one another. What all orders need of a point is made once, z and r^2 and density times powers of x + i y, and read from shared memory, to which points come by
 * chunks, in units of the box's side from its middle. In float densities are times a power of two that takes the leaf's largest to about 1, and degree 0, by far the largest where densities are of one sign, is summed in double. */
#include "kernels/harmonics_cuda.h"
#include "kernels/leaves_cuda.h"
#include "kernels/warp_cuda.h"

namespace {
constexpr unsigned ALL_LANES = 0xffffffffu;
enum { LANES = 4, EIGHT = 32 / LANES /* leaves of a warp */ };

/* How sums up to degree L are dealt out, and points staged. */
template <int L, typename F>
struct way {
  static constexpr bool DOUBLE = sizeof(F) == sizeof(double);
  static constexpr int GROUPS = L <= (DOUBLE ? 7 : 10) ? 4 : 8;           /* warps that share the orders of the same eight leaves: four share few orders out more evenly, but hold twice the sums */
  static constexpr int TOGETHER = BLOCKS / GROUPS * EIGHT;                /* leaves at once */
  static constexpr int PARTS = DOUBLE && L > 10 ? 2 : 1;                  /* threads that make a point's powers */
  static constexpr int CHUNK = PARTS == 2 ? THREADS / PARTS / TOGETHER : GROUPS == 8 ? 20 : 12, POINTS = TOGETHER * CHUNK; /* points of a leaf, and of all, at once */
  static constexpr int TURNS = DOUBLE ? 1 : 2;                            /* places of a chunk: of two the one is read while the other is written. In double a multiprocessor would hold fewer thread blocks then */
  static constexpr bool FETCHES = DOUBLE && L <= 16;                      /* points come by asynchronous copies while those before are summed; at order 8 there is no room for them */
  static constexpr bool AHEAD = !DOUBLE || L > 16;                        /* what a point's sums begin with is read a point ahead, which costs registers */
  static constexpr int ROW = CHUNK % (2 * LANES) ? CHUNK : CHUNK + LANES; /* from one leaf's points to the next's, so that neighbours are in other banks */
  static constexpr int PLANE = TOGETHER * ROW, STAGED = (L + 2) * PLANE;
};
template <typename F> using both = typename cosine_sine<F>::type;

/* Orders by warps: the longest recurrences first, each to the warp that has least. */
constexpr int warp_of(int groups, int degree, int order) {
  int filled[BLOCKS] = {};
  for (int m = 0;; m++) {
    int least = 0;
    for (int w = 1; w < groups; w++)
      if (filled[w] < filled[least]) least = w;
    if (m == order) return least;
    filled[least] += degree + 1 - m;
  }
}
/* Values, cosines and sines, that a warp has of orders below. */
constexpr int values_below(int groups, int degree, int warp, int order) {
  int values = 0;
  for (int m = 0; m < order; m++)
    if (warp_of(groups, degree, m) == warp) values += 2 * (degree + 1 - m);
  return values;
}
constexpr int most_values(int groups, int degree) {
  int most = 0;
  for (int w = 0; w < groups; w++) most = values_below(groups, degree, w, degree + 1) > most ? values_below(groups, degree, w, degree + 1) : most;
  return (most + LANES - 1) / LANES * LANES;
}
template <int L, typename F> constexpr int VALUES_OF = most_values(way<L, F>::GROUPS, L);
/* Terms of a parity block, padded to what a product takes. */
constexpr int block_of_terms(int degree) {
  int most = 0;
  for (int chi = 0; chi < FMM_MIRRORS; chi++) most = terms_of_block(degree, chi) > most ? terms_of_block(degree, chi) : most;
  return (most + 3) / 4 * 4;
}

struct moments_job {
  const fmm_cuda_range *range; /* of sources, by slot */
  const double *point[3], *density, *center[3], *half;
  const double *moments; /* matrices of blocks */
  const int16_t *place;  /* of a warp's values among the regrouped terms, -1: none */
};

/* A leaf: densities are times unit. */
struct leaf { double center[3], per_side, unit; int64_t begin; int count; };

template <typename F> struct power { F c, s; };
template <int M, typename F>
__device__ __forceinline__ power<F> power_of(F x, F y) {
  if constexpr (M == 0) return power<F>{1, 0};
  else if constexpr (M == 1) return power<F>{x, y};
  else if constexpr (M % 2) {
    const power<F> p = power_of<M - 1>(x, y);
    return power<F>{p.c * x - p.s * y, p.c * y + p.s * x};
  } else {
    const power<F> p = power_of<M / 2>(x, y);
    return power<F>{p.c * p.c - p.s * p.s, 2 * p.c * p.s};
  }
}

/* A point to the sums of a warp's orders from M on. */
template <int L, int W, int M, typename F>
__device__ __forceinline__ void add_orders(const both<F> *at, F z, F r2, F (&sum)[VALUES_OF<L, F>]) {
  if constexpr (M <= L) {
    if constexpr (constexpr int G = way<L, F>::GROUPS; warp_of(G, L, M) == W) {
      constexpr int FIRST = values_below(G, L, W, M);
      const both<F> p = at[(1 + M) * way<L, F>::PLANE];
      F h = 1, before = 0;
#pragma unroll
      for (int l = M; l <= L; l++) {
        sum[FIRST + 2 * (l - M)] += l == M ? p.x : h * p.x;
        if (M) sum[FIRST + 2 * (l - M) + 1] += l == M ? p.y : h * p.y;
        const F next = l == M ? z : l == M + 1 ? z * h - (F)step_of(l + 1, M) * r2 : z * h - (F)step_of(l + 1, M) * (r2 * before);
        before = h, h = next;
      }
    }
    add_orders<L, W, M + 1, F>(at, z, r2, sum);
  }
}
template <int L, int W, typename F>
__device__ __forceinline__ void add_points(const both<F> *mine, int steps, F (&sum)[VALUES_OF<L, F>]) {
  both<F> at = *mine;
#pragma unroll 1
  for (int i = 0; i < steps; i++, mine += LANES) {
    if (!way<L, F>::AHEAD) at = *mine;
    const both<F> next = way<L, F>::AHEAD ? mine[LANES] : at; /* behind a plane is another */
    add_orders<L, W, 0, F>(mine, at.x, at.y, sum);
    at = next;
  }
}
template <int L, typename F, int W = 0>
__device__ __forceinline__ void add_points_of(int warp, const both<F> *mine, int steps, F (&sum)[VALUES_OF<L, F>]) {
  if constexpr (W + 1 == way<L, F>::GROUPS) add_points<L, W, F>(mine, steps, sum);
  else if (warp == W) add_points<L, W, F>(mine, steps, sum);
  else add_points_of<L, F, W + 1>(warp, mine, steps, sum);
}

/* Where leaves and their points lie, sixteen lanes a leaf; in float what they sum in double is put into x, where the term of degree 0 comes first. */
template <typename F>
__device__ __forceinline__ void find_leaves(const fmm_cuda_parity &p, const moments_job &a, leaf *all, double *x, int pitch) {
  const int lane = threadIdx.x % BOXES, row = threadIdx.x / BOXES;
  const int64_t slot = at_of(row);
  const int box = slot < p.n_boxes ? __ldg(p.d_box + slot) : -1;
  const fmm_cuda_range range = slot < p.n_boxes ? a.range[slot] : fmm_cuda_range{};
  double total = 0, most = 0, center[3] = {}, half = 1;
  if (box >= 0 && lane == 0) center[0] = a.center[0][box], center[1] = a.center[1][box], center[2] = a.center[2][box], half = a.half[box];
  for (int i = threadIdx.x; i < BOXES * pitch / 2; i += THREADS) ((double2 *)x)[i] = make_double2(0, 0);
  if constexpr (sizeof(F) == 4) {
    for (int i = lane; i < range.count; i += BOXES) {
      const double q = a.density[range.begin + i];
      total += q, most = fmax(most, fabs(q));
    }
#pragma unroll
    for (int step = BOXES / 2; step; step >>= 1) total += __shfl_xor_sync(ALL_LANES, total, step), most = fmax(most, __shfl_xor_sync(ALL_LANES, most, step));
  }
  if (lane == 0) all[row] = leaf{{center[0], center[1], center[2]}, 0.5 / half, sizeof(F) == 4 && most > 0 ? ldexp(1.0, -max(min(ilogb(most), 1000), -1000)) : 1, range.begin, range.count};
  __syncthreads();
  if (sizeof(F) == 4 && lane == 0) x[row * pitch] = total;
}

template <int L, int FROM, int TO, typename F>
__device__ __forceinline__ void put_powers(both<F> *to, F x, F y, F q) {
  const power<F> p = power_of<FROM>(x, y);
  F c = q * p.c, s = q * p.s;
#pragma unroll
  for (int m = FROM; m <= TO; m++) {
    both<F> v;
    v.x = c, v.y = s;
    to[(1 + m) * way<L, F>::PLANE] = v;
    const F next = x * c - y * s;
    s = x * s + y * c, c = next;
  }
}

/* A point as it lies in memory, on its way. */
struct raw { double x, y, z, q; };
__device__ __forceinline__ raw load(const moments_job &a, const leaf &of, int k) {
  raw r = {};
  if (k < of.count) {
    const int64_t from = of.begin + k;
    r = raw{a.point[0][from], a.point[1][from], a.point[2][from], a.density[from]};
  }
  return r;
}

/* The same to planes in shared memory, by asynchronous copies, of which each of a point's threads makes some. */
template <typename W>
__device__ __forceinline__ void fetch(const moments_job &a, const leaf &of, int k, double *planes) {
  if (k >= of.count) return;
  const int64_t from = of.begin + k;
  const int point = threadIdx.x % W::POINTS, part = threadIdx.x / W::POINTS;
  double *to = planes + point;
  if (W::PARTS == 1 || part == 0) __pipeline_memcpy_async(to, a.point[0] + from, sizeof(double)), __pipeline_memcpy_async(to + W::POINTS, a.point[1] + from, sizeof(double));
  if (W::PARTS == 1 || part == 1) __pipeline_memcpy_async(to + 2 * W::POINTS, a.point[2] + from, sizeof(double)), __pipeline_memcpy_async(to + 3 * W::POINTS, a.density + from, sizeof(double));
}
template <typename W>
__device__ __forceinline__ raw fetched(const double *planes) {
  const double *at = planes + threadIdx.x % W::POINTS;
  return raw{at[0], at[W::POINTS], at[2 * W::POINTS], at[3 * W::POINTS]};
}

/* To shared memory: z and r^2, then density times powers of x + i y; of no density where there are none. */
template <int L, int PART, typename F>
__device__ __forceinline__ void put_part(both<F> *to, F x, F y, F z, F q) {
  constexpr int FROM = (L + 1) * PART / way<L, F>::PARTS, BEHIND = (L + 1) * (PART + 1) / way<L, F>::PARTS;
  if constexpr (PART == 0) {
    both<F> v;
    v.x = z, v.y = x * x + y * y + z * z;
    *to = v;
  }
  put_powers<L, FROM, BEHIND - 1, F>(to, x, y, q);
}
template <int L, typename F>
__device__ __forceinline__ void stage(const raw &r, const leaf &of, bool there, both<F> *to) {
  F x = 0, y = 0, z = 0, q = 0;
  if (there) {
    x = (F)((r.x - of.center[0]) * of.per_side), y = (F)((r.y - of.center[1]) * of.per_side), z = (F)((r.z - of.center[2]) * of.per_side);
    q = sizeof(F) == 4 ? (F)(r.q * of.unit) : (F)r.q;
  }
  typedef way<L, F> W;
  if (threadIdx.x < W::POINTS) put_part<L, 0, F>(to, x, y, z, q);
  else if constexpr (W::PARTS == 2) put_part<L, 1, F>(to, x, y, z, q);
}

/* A warp's sums over its four lanes a leaf, to x. */
template <int L, typename F>
__device__ __forceinline__ void put_moments(const moments_job &a, const leaf *all, int first_row, const F (&sum)[VALUES_OF<L, F>], double *x) {
  constexpr int VALUES = VALUES_OF<L, F>, PITCH = pitch_of(block_of_terms(L));
  const int lane = threadIdx.x & 31, row = first_row + lane / LANES;
  const int16_t *place = a.place + (threadIdx.x >> 5) % way<L, F>::GROUPS * VALUES + lane % LANES;
  const double unit = sizeof(F) == 4 ? 1 / all[row].unit : 1;
#pragma unroll
  for (int i = 0; i < VALUES; i += LANES) {
    F v[LANES];
#pragma unroll
    for (int k = 0; k < LANES; k++) v[k] = sum[i + k];
#pragma unroll
    for (int step = 1; step < LANES; step *= 2) /* of two values a lane keeps one, and sends the other */
#pragma unroll
      for (int k = 0; k < LANES; k += 2 * step) {
        const F kept = lane & step ? v[k + step] : v[k], sent = lane & step ? v[k] : v[k + step];
        v[k] = kept + __shfl_xor_sync(ALL_LANES, sent, step);
      }
    const F whole = v[0];
    const int at = __ldg(place + i);
    if (at > 0 || (at == 0 && sizeof(F) == 8)) x[row * PITCH + at] = whole * unit;
  }
}

/* Moments of the sixteen leaves to x. */
template <int L, typename F>
__device__ __forceinline__ void sum_moments(const moments_job &a, const leaf *all, both<F> *staged, double *x) {
  typedef way<L, F> W;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, slot = threadIdx.x % W::POINTS / W::CHUNK, k = threadIdx.x % W::POINTS % W::CHUNK, set = warp / W::GROUPS * EIGHT;
  both<F> *mine = staged + (set + lane / LANES) * W::ROW + lane % LANES, *to = staged + slot * W::ROW + k;
  const bool stages = W::PARTS * W::POINTS == THREADS || threadIdx.x < W::PARTS * W::POINTS;
  double *planes = (double *)(staged + W::TURNS * W::STAGED);
  if (W::FETCHES) {
    if (stages) fetch<W>(a, all[slot], k, planes);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
  }
  if (stages) stage<L, F>(W::FETCHES ? fetched<W>(planes) : load(a, all[slot], k), all[slot], k < all[slot].count, to);
  int turn = 0;
#pragma unroll 1
  for (int round = 0; round < BOXES; round += W::TOGETHER) {
    const int points = (int)fmm_most_of_warp((uint32_t)all[round + lane % W::TOGETHER].count); /* of a leaf that is summed now */
    const int own = W::GROUPS == BLOCKS ? points : (int)fmm_most_of_warp((uint32_t)all[set + lane % EIGHT].count); /* by this warp */
    F sum[VALUES_OF<L, F>] = {};
#pragma unroll 1
    for (int first = 0;; first += W::CHUNK) {
      const bool last = first + W::CHUNK >= points, brings = stages && !(last && round + W::TOGETHER >= BOXES);
      const leaf &of = all[min(BOXES - 1, round + (last ? W::TOGETHER : 0) + slot)];
      const int next = last ? k : first + W::CHUNK + k;
      __syncthreads(); /* points are there, and all have read the ones before */
      raw r;
      if (W::TURNS == 2 && brings) r = load(a, of, next);
      if (W::FETCHES) {
        if (brings) fetch<W>(a, of, next, planes);
        __pipeline_commit();
      }
      add_points_of<L, F>(warp % W::GROUPS, mine + turn * W::STAGED, (min(W::CHUNK, own - first) + LANES - 1) / LANES, sum);
      if (W::TURNS == 2) turn ^= 1;
      else {
        if (W::FETCHES) __pipeline_wait_prior(0);
        __syncthreads();
        if (brings) r = W::FETCHES ? fetched<W>(planes) : load(a, of, next);
      }
      if (brings) stage<L, F>(r, of, next < of.count, to + turn * W::STAGED);
      if (last) break;
    }
    put_moments<L, F>(a, all, round + set, sum, x);
  }
}

/* Behind x: points, and those to come, then, where fewer regrouped values are, natural ones. */
template <int P, typename F>
constexpr int all_bytes() {
  typedef way<degree_of(P), F> W;
  constexpr int terms = bytes_of(block_of_terms(degree_of(P))) + W::TURNS * W::STAGED * (int)sizeof(both<F>) + (W::FETCHES ? W::POINTS * (int)sizeof(raw) : 0), values = with_natural(block_of_order(P));
  return terms > values ? terms : values;
}

template <int P, typename F>
__global__ void __launch_bounds__(THREADS, P <= 6 ? 3 : 2) by_moments(const fmm_cuda_parity p, const moments_job a) {
  constexpr int K = block_of_order(P), L = degree_of(P), T = block_of_terms(L), TILES = tiles_of(K);
  extern __shared__ __align__(16) double x[];
  __shared__ leaf all[BOXES];
  fmm_cuda_await_earlier();
  find_leaves<F>(p, a, all, x, pitch_of(T));
  sum_moments<L, F>(a, all, (both<F> *)(x + BOXES * pitch_of(T)), x);
  __syncthreads();
  const task_of_all<K> mine;
  double sum[TILES][4] = {};
  multiply<TILES, 1, T>(sum, x + mine.chi * T, pitch_of(T), a.moments + mine.chi * TILES * 8 * T, 0);
  __syncthreads();
  put(mine, sum, x);
  __syncthreads();
  keep_and_spread<K>(p, pair_of(p), x, x + BOXES * pitch_of(K));
}

template <int P, typename F>
cudaError_t run(const fmm_cuda_parity *p, const moments_job &a, cudaStream_t stream) {
  return fmm_cuda_launch_when(p->early, by_moments<P, F>, dim3((unsigned)((p->n_boxes + BOXES - 1) / BOXES)), THREADS, all_bytes<P, F>(), stream, p->carveout, *p, a);
}
template <int P, typename F>
cudaError_t allow() { return cudaFuncSetAttribute(by_moments<P, F>, cudaFuncAttributeMaxDynamicSharedMemorySize, all_bytes<P, F>()); }

template <int P, typename F>
constexpr int places_of() { return way<degree_of(P), F>::GROUPS * VALUES_OF<degree_of(P), F>; }

template <int P, typename F>
void fill_places(const fmm_harmonics *h, int16_t *place) {
  constexpr int L = degree_of(P), G = way<L, F>::GROUPS, VALUES = VALUES_OF<L, F>, T = block_of_terms(L);
  for (int i = 0; i < G * VALUES; i++) place[i] = -1;
  for (int m = 0; m <= L; m++)
    for (int l = m; l <= L; l++)
      for (int sine = 0; sine <= (m > 0); sine++) {
        const int term = h->place[2 * fmm_harmonic_pair(L, l, m) + sine], warp = warp_of(G, L, m);
        int chi = 0;
        while (term >= h->begin[chi + 1]) chi++;
        place[warp * VALUES + values_below(G, L, warp, m) + 2 * (l - m) + sine] = (int16_t)(chi * T + term - h->begin[chi]);
      }
}
}

int fmm_cuda_up_moments_serve(const fmm_gpu_plan *p) {
  return fmm_cuda_may_take_moments(p) && p->up_moments_fit && leaves_can(p, p->leaf_batch, p->n_leaf_batches, FMM_MOMENTS_MANY);
}

int fmm_cuda_up_moments_bytes(int order, int single) {
#define BYTES(p) single ? all_bytes<p, float>() : all_bytes<p, double>()
  FMM_FOR_HARMONIC_ORDER(order, BYTES, INT32_MAX)
}

int fmm_cuda_up_moments_terms(int order) {
#define TERMS(p) block_of_terms(degree_of(p))
  FMM_FOR_HARMONIC_ORDER(order, TERMS, 0)
}

int fmm_cuda_up_moments_places(int order, int single) {
#define PLACES(p) single ? places_of<p, float>() : places_of<p, double>()
  FMM_FOR_HARMONIC_ORDER(order, PLACES, 0)
}

void fmm_cuda_up_moments_fill(int order, int single, const fmm_harmonics *h, int16_t *place) {
#define FILL(p) single ? fill_places<p, float>(h, place) : fill_places<p, double>(h, place)
  FMM_FOR_HARMONIC_ORDER(order, FILL, (void)0)
}

cudaError_t fmm_cuda_up_moments_prepare(int order, int single) {
#define ALLOW(p) single ? allow<p, float>() : allow<p, double>()
  FMM_FOR_HARMONIC_ORDER(order, ALLOW, cudaSuccess)
}

/* Moments are in units of the box, so that what is made of them has no factor of the level. */
cudaError_t fmm_cuda_up_moments_run(const fmm_gpu_plan *plan, const fmm_cuda_operators *o, const fmm_cuda_parity *of_leaves, cudaStream_t stream) {
  fmm_cuda_parity p[1] = {*of_leaves};
  const moments_job a = {plan->sums[FMM_SUM_P2M].d_range, {plan->d_source[0], plan->d_source[1], plan->d_source[2]}, plan->d_density, {plan->d_center[0], plan->d_center[1], plan->d_center[2]}, plan->d_half,
                         o->d_up_moments, plan->d_moment_place};
  p->d_scale = NULL;
  const int single = fmm_cuda_up_in_single(plan);
#define RUN(o) single ? run<o, float>(p, a, stream) : run<o, double>(p, a, stream)
  FMM_FOR_HARMONIC_ORDER(plan->order, RUN, cudaErrorInvalidValue)
}
