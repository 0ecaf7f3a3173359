/* Leaves upward on the GPU by solid harmonics, in float, where V's spectra are: the moments of sixteen leaves (kernels/harmonics.h) are summed and go by parity blocks to equivalent densities, by one matrix, in one launch.
 * An order m of the harmonics is one recurrence over degrees, of which two sums a degree are kept in registers, so orders are dealt to a thread block's eight warps. Four lanes a leaf follow one another through its
 * points, eight leaves together, the eight largest first, so that lanes wait less for one another; points come by chunks to shared memory, in units of the box's side from its middle, with densities times a
 * power of two that takes the leaf's largest to about 1. Degree 0, by far the largest where densities are of one sign, is summed in double. */
#include "kernels/harmonics_cuda.h"
#include "kernels/leaves_cuda.h"

namespace {
constexpr unsigned ALL_LANES = 0xffffffffu;
enum { LANES = 4, TOGETHER = 32 / LANES, CHUNK = 64, ROW = CHUNK + LANES /* points from one leaf's to the next's in shared memory, so that neighbours are in other banks */ };

/* Orders by warps: the longest recurrences first, each to the warp that has least. */
constexpr int warp_of(int degree, int order) {
  int filled[BLOCKS] = {};
  for (int m = 0;; m++) {
    int least = 0;
    for (int w = 1; w < BLOCKS; w++)
      if (filled[w] < filled[least]) least = w;
    if (m == order) return least;
    filled[least] += degree + 1 - m;
  }
}
/* Values, cosines and sines, that a warp has of orders below. */
constexpr int values_below(int degree, int warp, int order) {
  int values = 0;
  for (int m = 0; m < order; m++)
    if (warp_of(degree, m) == warp) values += 2 * (degree + 1 - m);
  return values;
}
constexpr int most_values(int degree) {
  int most = 0;
  for (int w = 0; w < BLOCKS; w++) most = values_below(degree, w, degree + 1) > most ? values_below(degree, w, degree + 1) : most;
  return (most + LANES - 1) / LANES * LANES;
}
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

struct power { float c, s; };
template <int M>
__device__ __forceinline__ power power_of(float x, float y) {
  if constexpr (M == 0) return power{1, 0};
  else if constexpr (M == 1) return power{x, y};
  else if constexpr (M % 2) {
    const power p = power_of<M - 1>(x, y);
    return power{p.c * x - p.s * y, p.c * y + p.s * x};
  } else {
    const power p = power_of<M / 2>(x, y);
    return power{p.c * p.c - p.s * p.s, 2 * p.c * p.s};
  }
}

/* A point to the sums of a warp's orders from M on. */
template <int L, int W, int M>
__device__ __forceinline__ void add_orders(const float4 &at, float r2, float (&sum)[most_values(L)]) {
  if constexpr (M <= L) {
    if constexpr (warp_of(L, M) == W) {
      constexpr int FIRST = values_below(L, W, M);
      const power p = power_of<M>(at.x, at.y);
      float h = at.w, before = 0;
#pragma unroll
      for (int l = M; l <= L; l++) {
        sum[FIRST + 2 * (l - M)] += M ? h * p.c : h;
        if (M) sum[FIRST + 2 * (l - M) + 1] += h * p.s;
        const float next = l == M ? at.z * h : at.z * h - (float)step_of(l + 1, M) * (r2 * before);
        before = h, h = next;
      }
    }
    add_orders<L, W, M + 1>(at, r2, sum);
  }
}
template <int L, int W>
__device__ __forceinline__ void add_points(const float4 *mine, int steps, float (&sum)[most_values(L)]) {
#pragma unroll 1
  for (int i = 0; i < steps; i++) {
    const float4 at = mine[i * LANES];
    add_orders<L, W, 0>(at, at.x * at.x + at.y * at.y + at.z * at.z, sum);
  }
}
template <int L>
__device__ __forceinline__ void add_points(const float4 *mine, int steps, float (&sum)[most_values(L)]) {
  switch (threadIdx.x >> 5) {
    case 0: return add_points<L, 0>(mine, steps, sum);
    case 1: return add_points<L, 1>(mine, steps, sum);
    case 2: return add_points<L, 2>(mine, steps, sum);
    case 3: return add_points<L, 3>(mine, steps, sum);
    case 4: return add_points<L, 4>(mine, steps, sum);
    case 5: return add_points<L, 5>(mine, steps, sum);
    case 6: return add_points<L, 6>(mine, steps, sum);
    default: return add_points<L, 7>(mine, steps, sum);
  }
}

/* Where leaves and their points lie; what they sum in double is put into x, where the term of degree 0 comes first. order: rows by falling number of points. */
__device__ __forceinline__ void find_leaves(const fmm_cuda_parity &p, const moments_job &a, leaf *all, int *order, double *x, int pitch) {
  const int lane = threadIdx.x & 31;
#pragma unroll
  for (int s = 0; s < 2; s++) {
    const int row = row_of(s), box = column_of(p, row).box;
    const fmm_cuda_range range = box < 0 ? fmm_cuda_range{} : a.range[at_of(row)];
    double total = 0, most = 0;
    for (int i = lane; i < range.count; i += 32) {
      const double q = a.density[range.begin + i];
      total += q, most = fmax(most, fabs(q));
    }
#pragma unroll
    for (int step = 16; step; step >>= 1) total += __shfl_xor_sync(ALL_LANES, total, step), most = fmax(most, __shfl_xor_sync(ALL_LANES, most, step));
    if (lane) continue;
    leaf of = {};
    if (box >= 0) of = leaf{{a.center[0][box], a.center[1][box], a.center[2][box]}, 0.5 / a.half[box], ldexp(1.0, most > 0 ? -max(min(ilogb(most), 1000), -1000) : 0), range.begin, range.count};
    all[row] = of, x[row * pitch] = total;
  }
  __syncthreads();
  if (threadIdx.x < BOXES) {
    int rank = 0;
    for (int i = 0; i < BOXES; i++) rank += all[i].count > all[threadIdx.x].count || (all[i].count == all[threadIdx.x].count && i < (int)threadIdx.x);
    order[rank] = (int)threadIdx.x;
  }
  __syncthreads();
}

/* Points [first, first + LANES steps) of eight leaves; of no density where there are none. */
__device__ __forceinline__ void stage(const moments_job &a, const leaf *all, const int *order, int first, int steps, float4 *staged) {
  for (int i = threadIdx.x; i < TOGETHER * CHUNK; i += THREADS) {
    const int slot = i / CHUNK, k = i % CHUNK;
    if (k >= steps * LANES) continue;
    const leaf &of = all[order[slot]];
    float4 v = {};
    if (first + k < of.count) {
      const int64_t from = of.begin + first + k;
      v.x = (float)((a.point[0][from] - of.center[0]) * of.per_side), v.y = (float)((a.point[1][from] - of.center[1]) * of.per_side), v.z = (float)((a.point[2][from] - of.center[2]) * of.per_side);
      v.w = (float)(a.density[from] * of.unit);
    }
    staged[slot * ROW + k] = v;
  }
}

/* Moments of eight leaves to x. */
template <int L>
__device__ __forceinline__ void sum_moments(const moments_job &a, const leaf *all, const int *order, float4 *staged, double *x) {
  constexpr int VALUES = most_values(L), PITCH = pitch_of(block_of_terms(L));
  const int lane = threadIdx.x & 31, points = all[order[0]].count; /* the most of the eight */
  float sum[VALUES] = {};
#pragma unroll 1
  for (int first = 0; first < points; first += CHUNK) {
    const int steps = (min(CHUNK, points - first) + LANES - 1) / LANES;
    __syncthreads(); /* all have read the ones before */
    stage(a, all, order, first, steps, staged);
    __syncthreads();
    add_points<L>(staged + lane / LANES * ROW + lane % LANES, steps, sum);
  }
  const int row = order[lane / LANES];
  const int16_t *place = a.place + (threadIdx.x >> 5) * VALUES + lane % LANES;
  const double unit = 1 / all[row].unit;
#pragma unroll
  for (int i = 0; i < VALUES; i += LANES) {
    float v[LANES];
#pragma unroll
    for (int k = 0; k < LANES; k++) v[k] = sum[i + k];
#pragma unroll
    for (int step = 1; step < LANES; step *= 2) /* of two values a lane keeps one, and sends the other */
#pragma unroll
      for (int k = 0; k < LANES; k += 2 * step) {
        const float kept = lane & step ? v[k + step] : v[k], sent = lane & step ? v[k] : v[k + step];
        v[k] = kept + __shfl_xor_sync(ALL_LANES, sent, step);
      }
    const float whole = v[0];
    const int at = __ldg(place + i);
    if (at >= 0) x[row * PITCH + at] = whole * unit;
  }
}

/* Behind x: points, then, where fewer regrouped values are, natural ones. */
template <int P>
constexpr int all_bytes() {
  constexpr int terms = bytes_of(block_of_terms(degree_of(P))) + TOGETHER * ROW * (int)sizeof(float4), values = with_natural(block_of_order(P));
  return terms > values ? terms : values;
}

template <int P>
__global__ void __launch_bounds__(THREADS, P <= 6 ? 3 : 2) by_moments(const fmm_cuda_parity p, const moments_job a) {
  constexpr int K = block_of_order(P), L = degree_of(P), T = block_of_terms(L), TILES = tiles_of(K);
  extern __shared__ __align__(16) double x[];
  __shared__ leaf all[BOXES];
  __shared__ int order[BOXES];
  fmm_cuda_await_earlier();
  for (int i = threadIdx.x; i < BOXES * pitch_of(T); i += THREADS) x[i] = 0;
  __syncthreads();
  find_leaves(p, a, all, order, x, pitch_of(T));
#pragma unroll 1
  for (int first = 0; first < BOXES; first += TOGETHER) sum_moments<L>(a, all, order + first, (float4 *)(x + BOXES * pitch_of(T)), x);
  __syncthreads();
  const task_of_all<K> mine;
  double sum[TILES][4] = {};
  multiply<TILES, 1, T>(sum, x + mine.chi * T, pitch_of(T), a.moments + mine.chi * TILES * 8 * T, 0);
  __syncthreads();
  put(mine, sum, x);
  __syncthreads();
  keep_and_spread<K>(p, pair_of(p), x, x + BOXES * pitch_of(K));
}

template <int P>
cudaError_t run(const fmm_cuda_parity *p, const moments_job &a, cudaStream_t stream) {
  return fmm_cuda_launch_when(p->early, by_moments<P>, dim3((unsigned)((p->n_boxes + BOXES - 1) / BOXES)), THREADS, all_bytes<P>(), stream, p->carveout, *p, a);
}
template <int P>
cudaError_t allow() { return cudaFuncSetAttribute(by_moments<P>, cudaFuncAttributeMaxDynamicSharedMemorySize, all_bytes<P>()); }

template <int P>
void fill_places(const fmm_harmonics *h, int16_t *place) {
  constexpr int L = degree_of(P), VALUES = most_values(L), T = block_of_terms(L);
  for (int i = 0; i < BLOCKS * VALUES; i++) place[i] = -1;
  for (int m = 0; m <= L; m++)
    for (int l = m; l <= L; l++)
      for (int sine = 0; sine <= (m > 0); sine++) {
        const int term = h->place[2 * fmm_harmonic_pair(L, l, m) + sine], warp = warp_of(L, m);
        int chi = 0;
        while (term >= h->begin[chi + 1]) chi++;
        if (l) place[warp * VALUES + values_below(L, warp, m) + 2 * (l - m) + sine] = (int16_t)(chi * T + term - h->begin[chi]);
      }
}
}

int fmm_cuda_up_moments_serve(const fmm_gpu_plan *p) {
  return fmm_cuda_may_take_moments(p) && p->up_moments_fit && leaves_can(p, p->leaf_batch, p->n_leaf_batches, FMM_LEAVES_MANY);
}

int fmm_cuda_up_moments_bytes(int order) {
#define BYTES(p) all_bytes<p>()
  FMM_FOR_HARMONIC_ORDER(order, BYTES, INT32_MAX)
}

int fmm_cuda_up_moments_terms(int order) {
#define TERMS(p) block_of_terms(degree_of(p))
  FMM_FOR_HARMONIC_ORDER(order, TERMS, 0)
}

int fmm_cuda_up_moments_places(int order) {
#define PLACES(p) BLOCKS * most_values(degree_of(p))
  FMM_FOR_HARMONIC_ORDER(order, PLACES, 0)
}

void fmm_cuda_up_moments_fill(int order, const fmm_harmonics *h, int16_t *place) {
#define FILL(p) fill_places<p>(h, place)
  FMM_FOR_HARMONIC_ORDER(order, FILL, (void)0)
}

cudaError_t fmm_cuda_up_moments_prepare(int order) {
#define ALLOW(p) allow<p>()
  FMM_FOR_HARMONIC_ORDER(order, ALLOW, cudaSuccess)
}

/* Moments are in units of the box, so that what is made of them has no factor of the level. */
cudaError_t fmm_cuda_up_moments_run(const fmm_gpu_plan *plan, const fmm_cuda_operators *o, const fmm_cuda_parity *of_leaves, cudaStream_t stream) {
  fmm_cuda_parity p[1] = {*of_leaves};
  const moments_job a = {plan->sums[FMM_SUM_P2M].d_range, {plan->d_source[0], plan->d_source[1], plan->d_source[2]}, plan->d_density, {plan->d_center[0], plan->d_center[1], plan->d_center[2]}, plan->d_half,
                         o->d_up_moments, plan->d_moment_place};
  p->d_scale = NULL;
#define RUN(o) run<o>(p, a, stream)
  FMM_FOR_HARMONIC_ORDER(plan->order, RUN, cudaErrorInvalidValue)
}
