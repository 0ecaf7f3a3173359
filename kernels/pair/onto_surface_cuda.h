/* Sums of points onto surfaces on the GPU (P2M, X) for the kernel 1/r in double, by a warp a surface or several: device code of kernels/pair/pair_lattice_cuda.cu.
 * A surface is a lattice: everything is in units of its step, from its first plane on, so a squared distance is one of P squares an axis, summed. Each lane has a run of RUN surface points that share two
 * coordinates and begin or end at an end of the third axis, or several runs (fmm_cuda_lattice_runs). What a lane needs of a source comes to shared memory, of 32 sources at a time, which a lane each makes:
 * squares of distances from the planes, distances along the axes from the middles of runs, and its density. Where a source is d steps along from a run's middle, at a squared distance B, the points k steps
 * off on either side have B + k^2 +- 2 k d: two squares and a distance are read of it whatever the run's length. Roots are twice their value (root_cuda.h), and sums halved at the end. */
#ifndef FMM_ONTO_SURFACE_CUDA_H
#define FMM_ONTO_SURFACE_CUDA_H
#include "kernels/pair/root_cuda.h"
#include "runtime/gpu/gpu_cuda.h"

namespace {
constexpr unsigned ALL_LANES = 0xffffffffu;

constexpr int run_of(int order) { return order == 3 ? 2 : order == 6 ? 5 : 4; }
/* Runs a lane, and lanes that have runs of their own; the others repeat them for every other source. */
constexpr int runs_of(int order) { return order == 8 ? 3 : order == 7 ? 2 : 1; }
constexpr int lanes_of(int order) { return order <= 4 ? 16 : 32; }

template <int P>
struct lattice {
  static constexpr int RUN = run_of(P), RUNS = runs_of(P), LANES = lanes_of(P), POINTS = 6 * (P - 1) * (P - 1) + 2;
  /* Of a source: squares by axis and plane, distances by axis and middle of runs, the density. */
  static constexpr int MIDDLES = P > RUN ? 2 : 1, ALONG = 3 * P, DENSITY = ALONG + 3 * MIDDLES, VALUES = (DENSITY + 2) / 2 * 2;
  static constexpr int PITCH = VALUES / 2 % 2 ? VALUES : VALUES + 2; /* an odd number of pairs: no bank conflicts */
  static constexpr double STEP = 2.0 / (P - 1);
};

/* What such sums read. */
struct onto_job {
  const fmm_cuda_tile *tile;
  const fmm_cuda_range *range;
  const fmm_cuda_run *run;
  const double *point[3], *density, *center[3], *half;
  double radius;
};
inline onto_job onto_job_of(const fmm_gpu_plan *p, fmm_cuda_sum sum) {
  onto_job a = {};
  a.tile = p->sums[sum].d_tile, a.range = p->sums[sum].d_range, a.run = p->d_run, a.density = p->d_density, a.half = p->d_half;
  for (int k = 0; k < 3; k++) a.point[k] = p->d_source[k], a.center[k] = p->d_center[k];
  a.radius = sum == FMM_SUM_P2M ? p->outer_radius : FMM_INNER_RADIUS;
  return a;
}

/* The runs of a lane: where the squares of their planes and the distance from their middles stand. */
template <int P>
struct runs {
  int a[lattice<P>::RUNS], b[lattice<P>::RUNS], along[lattice<P>::RUNS];
  __device__ explicit runs(const onto_job &job) {
#pragma unroll
    for (int u = 0; u < lattice<P>::RUNS; u++) {
      const fmm_cuda_run run = run_at(job, u);
      a[u] = run.a, b[u] = run.b, along[u] = lattice<P>::ALONG + run.axis * lattice<P>::MIDDLES + (run.begin > 0);
    }
  }
  static __device__ __forceinline__ fmm_cuda_run run_at(const onto_job &job, int u) { return job.run[u * lattice<P>::LANES + (threadIdx.x & 31) % lattice<P>::LANES]; }
};

/* What lanes need of a source; at: from the surface's first planes, in steps. */
template <int P>
__device__ __forceinline__ void stage(double *to, const double (&at)[3], double density) {
  typedef lattice<P> S;
  double v[S::VALUES] = {};
#pragma unroll
  for (int k = 0; k < 3; k++) {
#pragma unroll
    for (int i = 0; i < P; i++) v[k * P + i] = (at[k] - i) * (at[k] - i);
#pragma unroll
    for (int i = 0; i < S::MIDDLES; i++) v[S::ALONG + k * S::MIDDLES + i] = at[k] - (i * (P - S::RUN) + 0.5 * (S::RUN - 1));
  }
  v[S::DENSITY] = density;
#pragma unroll
  for (int i = 0; i < S::VALUES; i += 2) *(double2 *)(to + i) = make_double2(v[i], v[i + 1]);
}

/* A warp's sums onto a surface, in steps and twice their value. */
template <int P>
struct onto { double sum[lattice<P>::RUNS][lattice<P>::RUN]; };

template <int P>
__device__ __forceinline__ void add_source(const double *const (&at)[3 * lattice<P>::RUNS + 1], int from, onto<P> &to) {
  typedef lattice<P> S;
  const double density = at[3 * S::RUNS][from];
#pragma unroll
  for (int u = 0; u < S::RUNS; u++) {
    const double d = at[3 * u + 2][from], middle = fma(d, d, at[3 * u][from] + at[3 * u + 1][from]);
    if (S::RUN % 2) fmm_add_twice(to.sum[u][S::RUN / 2], density, middle);
#pragma unroll
    for (int i = 0; i < S::RUN / 2; i++) {
      const double k = 0.5 * (S::RUN - 1) - i, both = middle + k * k;
      fmm_add_twice(to.sum[u][i], density, fma(2 * k, d, both));
      fmm_add_twice(to.sum[u][S::RUN - 1 - i], density, fma(-2 * k, d, both));
    }
  }
}

/* A surface: its middle, and steps a unit of length. */
struct place { double center[3], steps; };
template <int P>
__device__ __forceinline__ place place_of_box(const onto_job &a, int box) {
  return place{{a.center[0][box], a.center[1][box], a.center[2][box]}, 1 / (lattice<P>::STEP * a.radius * a.half[box])};
}

/* Source `from` of a lane, in steps. */
struct source { double at[3], density; };
template <int P>
__device__ __forceinline__ source source_at(const onto_job &a, const place &s, int64_t from) {
  source v;
#pragma unroll
  for (int k = 0; k < 3; k++) v.at[k] = fma(a.point[k][from] - s.center[k], s.steps, 0.5 * (P - 1));
  v.density = a.density[from];
  return v;
}

/* The lanes' sources, `count` of them; staged: the warp's room. */
template <int P>
__device__ __forceinline__ void add_sources(const runs<P> &own, const source &v, int count, double *staged, onto<P> &to) {
  typedef lattice<P> S;
  const int lane = threadIdx.x & 31;
  __syncwarp(); /* all have read the ones before */
  if (lane < count) stage<P>(staged + lane * S::PITCH, v.at, v.density);
  __syncwarp();
  const double *at[3 * S::RUNS + 1]; /* in the lane's next source */
  const double *mine = staged + lane / S::LANES * S::PITCH;
#pragma unroll
  for (int u = 0; u < S::RUNS; u++) at[3 * u] = mine + own.a[u], at[3 * u + 1] = mine + own.b[u], at[3 * u + 2] = mine + own.along[u];
  at[3 * S::RUNS] = mine + S::DENSITY;
  constexpr int EACH = 32 / S::LANES, STEP = EACH * S::PITCH;
  int left = (count - lane / S::LANES + EACH - 1) / EACH;
#pragma unroll 1
  for (; left > 1; left -= 2) {
    add_source<P>(at, 0, to), add_source<P>(at, STEP, to);
#pragma unroll
    for (int i = 0; i <= 3 * S::RUNS; i++) at[i] += 2 * STEP;
  }
#pragma unroll 1
  for (; left > 0; left--) {
    add_source<P>(at, 0, to);
#pragma unroll
    for (int i = 0; i <= 3 * S::RUNS; i++) at[i] += STEP;
  }
}

/* A tile's ranges, by SHARE warps, of which this is one. */
template <int P, int SHARE>
__device__ __forceinline__ void sum_ranges(const onto_job &a, const fmm_cuda_tile &tile, const runs<P> &own, double *staged, int warp, onto<P> &to) {
  const int lane = threadIdx.x & 31;
  const place s = place_of_box<P>(a, tile.box);
  for (int window = 0; window < tile.range_count; window += 32) { /* a range a lane */
    int64_t from = 0; /* where the sources of the lane's range would begin were they the first of all; end: past them */
    int end = 0;
    if (lane < tile.range_count - window) {
      const fmm_cuda_range range = a.range[tile.range_begin + window + lane];
      from = range.begin, end = range.count;
    }
    const int length = end;
    for (int step = 1; step < 32; step *= 2) {
      const int before = __shfl_up_sync(ALL_LANES, end, step);
      if (lane >= step) end += before;
    }
    from -= end - length;
    const int64_t all = __shfl_sync(ALL_LANES, end, 31);
    const int stop = SHARE == 1 ? (int)all : (int)(all * (warp + 1) / SHARE);
    for (int first = SHARE == 1 ? 0 : (int)(all * warp / SHARE); first < stop; first += 32) {
      const int i = first + lane;
      int low = 0;
#pragma unroll
      for (int step = 16; step; step >>= 1)
        if (__shfl_sync(ALL_LANES, end, low + step - 1) <= i) low += step;
      const int64_t j = __shfl_sync(ALL_LANES, from, low) + i;
      add_sources(own, i < stop ? source_at<P>(a, s, j) : source{}, min(32, stop - first), staged, to);
    }
  }
}

/* A warp's sums to a surface's values. */
template <int P>
__device__ __forceinline__ void put_sums(const onto_job &a, double steps, const onto<P> &from, double *values) {
  typedef lattice<P> S;
#pragma unroll
  for (int u = 0; u < S::RUNS; u++) {
    const fmm_cuda_run run = runs<P>::run_at(a, u);
#pragma unroll
    for (int i = 0; i < S::RUN; i++) {
      double f = from.sum[u][i];
      if (S::LANES < 32) f += __shfl_xor_sync(ALL_LANES, f, 16);
      if ((threadIdx.x & 31) < S::LANES && run.point[i] >= 0) values[run.point[i]] = 0.5 * steps * f;
    }
  }
}
}
#endif
